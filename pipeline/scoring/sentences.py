"""Scores of single sentences against their references, from 0 to 1."""

from collections.abc import Callable

from sacrebleu.metrics import BLEU, CHRF

SentenceScore = Callable[[str, str], float]
"""Takes a translation and its reference."""


def sentence_score(metric: str) -> SentenceScore:
    """sacreBLEU's sentence BLEU (exponential smoothing, effective order) or chrF."""
    scorer = {"bleu": BLEU(effective_order=True), "chrf": CHRF()}[metric]
    return lambda translation, reference: scorer.sentence_score(translation, [reference]).score / 100
