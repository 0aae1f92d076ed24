"""Scores of single sentences, and the utilities of MBR decoding: the mean similarity of a candidate to references."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from math import fsum

from fastchrf import aggregate_chrf, pairwise_chrf
from sacrebleu.metrics import BLEU, CHRF

from pipeline.scoring.bleu import tokeniser
from transformer.decoders.mbr import Utility

Texts = Callable[[Sequence[Sequence[int]]], list[str]]
"""Detokenises the ids of several sentences."""
SentenceScore = Callable[[str, str], float]
"""Takes a translation and its reference. Returns a score from 0 to 1."""


def sentence_score(metric: str, language: str = "") -> SentenceScore:
    """sacreBLEU's sentence BLEU (the tokeniser of `language`, exponential smoothing, effective order) or chrF."""
    scorer = BLEU(effective_order=True, tokenize=tokeniser(language)) if metric == "bleu" else CHRF()
    return lambda translation, reference: scorer.sentence_score(translation, [reference]).score / 100


def bleu(candidates: list[str], references: list[str], language: str) -> list[float]:
    """The mean sentence BLEU of each candidate, from 0 to 100, as are the other utilities."""
    score, counts = sentence_score("bleu", language), Counter(references)
    return [
        100 * fsum(count * score(candidate, text) for text, count in counts.items()) / len(references)
        for candidate in candidates
    ]


def chrf(candidates: list[str], references: list[str]) -> list[float]:
    """The mean sentence chrF of each candidate. fastChrF computes the same scores as sacreBLEU."""
    (rows,) = pairwise_chrf([spaced(candidates)], [spaced(references)])
    return [sum(row) / len(row) for row in rows]


def chrf_aggregate(candidates: list[str], references: list[str]) -> list[float]:
    """The chrF of each candidate against the mean n-gram counts of the references (Vamvas and Sennrich 2024)."""
    (scores,) = aggregate_chrf([spaced(candidates)], [spaced(references)])
    return list(scores)


def spaced(texts: list[str]) -> list[str]:
    """The texts with single spaces between words. Unlike fastChrF, sacreBLEU also splits at U+001C to U+001F."""
    return [" ".join(text.split()) for text in texts]


def utility(name: str, texts: Texts, language: str = "") -> Utility:
    """The utility `name` on the ids of sentences in `language`."""
    utilities: dict[str, Callable] = {
        "bleu": partial(bleu, language=language),
        "chrf": chrf,
        "chrf_aggregate": chrf_aggregate,
    }
    return lambda candidates, references: utilities[name](texts(candidates), texts(references))
