"""Scores of single sentences against their references, from 0 to 1."""

from collections.abc import Callable
from typing import Literal

from sacrebleu.metrics import BLEU, CHRF

SentenceScore = Callable[[str, str], float]
"""Takes a translation and its reference."""


def sentence_score(metric: Literal["bleu", "chrf"]) -> SentenceScore:
    """sacreBLEU's sentence BLEU (exponential smoothing, effective order) or chrF."""
    scorer = BLEU(effective_order=True) if metric == "bleu" else CHRF()
    return lambda translation, reference: scorer.sentence_score(translation, [reference]).score / 100
