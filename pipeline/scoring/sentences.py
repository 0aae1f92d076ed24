"""Scores of single sentences against their references, from 0 to 1."""

from collections.abc import Callable

from sacrebleu.metrics import BLEU, CHRF

from pipeline.scoring.bleu import tokeniser

SentenceScore = Callable[[str, str], float]
"""Takes a translation and its reference."""


def sentence_score(metric: str, language: str = "") -> SentenceScore:
    """sacreBLEU's sentence BLEU (the tokeniser of `language`, exponential smoothing, effective order) or chrF."""
    scorer = BLEU(effective_order=True, tokenize=tokeniser(language)) if metric == "bleu" else CHRF()
    return lambda translation, reference: scorer.sentence_score(translation, [reference]).score / 100
