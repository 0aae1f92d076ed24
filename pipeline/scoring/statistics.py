"""The statistics of each dev sentence from which tests between trainings compute BLEU, as results/ keeps them."""

from pathlib import Path

from pipeline.corpora.evaluation import EvaluationSet
from pipeline.scoring.bleu import PUBLISHED, measure
from pipeline.scoring.of_sets import aligned

# The measures of the statistics, by preference. Results from before a measure existed lack it, so a comparison with one of
# these uses the next measure.
MEASURES = {
    PUBLISHED: "BLEU as the paper computes it",
    "bleu-raw-reference": "BLEU as the paper computes it, but with the typographic quotes of the reference",
}


def statistics(translation: Path, dev: EvaluationSet) -> dict[str, list[str]]:
    """What BLEU is computed from, by measure: one text per statistic, which holds its value for each sentence in order.

    The statistics are the lengths of hypothesis and reference, the number of matching n-grams of each order, and the
    number of all n-grams of each order.
    """
    hypotheses, references = aligned(translation, dev.path("raw", "target"))
    counts = {name: measure(dev.languages[1], name).statistics(hypotheses, references) for name in MEASURES}
    return {name: [" ".join(f"{number:.0f}" for number in column) for column in of.T] for name, of in counts.items()}
