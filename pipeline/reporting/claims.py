"""Claims of the paper and of Xiong et al. 2020 about changes of the base model, and what our runs found."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pipeline.reporting.deltas import Comparison, differing, note
from pipeline.reporting.evidence import Mean, Score
from pipeline.reporting.tables import Column, Table
from pipeline.reporting.variations import stated


@dataclass(frozen=True)
class Claim:
    """A claim about a change of the base model.

    `bleu(new, old)` returns the sign of the difference in BLEU that the claim predicts for a change from `old` to `new`: 0
    if it predicts no difference, None if it says nothing about this change.
    """

    source: str
    text: str
    bleu: Callable[[Any, Any], int | None]


def worse(new: Any, old: Any) -> int:
    return -1


def no_change(new: Any, old: Any) -> int:
    return 0


def with_size(new: Any, old: Any) -> int:
    return 1 if new > old else -1


def worse_if_smaller(new: Any, old: Any) -> int | None:
    return -1 if new < old else None


BIGGER = Claim("Table 3, C", "bigger models are better", with_size)

# The keys are the settings that differ from the base. d_k and d_v are left out if another setting differs as well.
CLAIMS = {
    ("h",): Claim("Table 3, A", "a single head is worse than several, and so are too many heads", worse),
    ("d_k",): Claim("Table 3, B", "a smaller key size hurts", worse_if_smaller),
    ("N",): BIGGER,
    ("d_model",): BIGGER,
    ("d_ff",): BIGGER,
    ("dropout",): Claim("Table 3, D", "dropout helps against over-fitting", worse),
    ("label_smoothing",): Claim("5.4", "label smoothing improves BLEU", worse),
    ("positions",): Claim("Table 3, E", "learned positions give nearly identical results", no_change),
    ("attention",): Claim("3.2.1", "dot products that are not scaled are worse where d_k is large", worse),
    ("schedule",): Claim("Xiong et al. 2020", "post-norm, the paper's, needs the warm-up", worse),
    ("norm", "schedule"): Claim("Xiong et al. 2020", "pre-norm does not need the warm-up", no_change),
}


def table(compared: Comparison) -> Table | None:
    """Return a table with one line for each run of the compared study that tests a claim. Return None if no run does."""
    if compared.study is None:
        return None
    columns = [Column("claim"), Column("difference, BLEU", "score"), Column("found"), Column("our change")]
    columns += [Column("difference, PPL %", "number", 1), Column("source"), Column("run", "run")]
    rows = []
    for own in compared.ours:
        new, old = stated(own.run), stated(compared.study.base)
        changed = differing(new, old)
        claim = CLAIMS.get(tuple(key for key in changed if key not in ("d_k", "d_v")) or (changed[0],))
        predicted = claim.bleu(new[changed[0]], old[changed[0]]) if claim else None
        if claim and predicted is not None:
            result = verdict(predicted, own.bleu, compared.seeds)
            rows.append([claim.text, own.bleu, result, own.change, own.perplexity, claim.source, own.run.name])
    says = (
        "A claim is decided if the interval does not contain 0 and the difference is larger than the distance of any seed "
        "of the base from their mean."
    )
    title = f"Published claims, tested by {compared.study.name}"
    return Table("claims", title, columns, rows, [f"{note(compared)} {says}"]) if rows else None


def verdict(predicted: int, difference: Score, seeds: Mean | None) -> str | None:
    """What the difference says about a claim that predicts its sign, or None if it has no interval."""
    if difference.low is None or difference.high is None:
        return None
    spread = max(seeds.high - seeds.score, seeds.score - seeds.low) if seeds else 0.0
    differs = not difference.low <= 0 <= difference.high and abs(difference.score) > spread
    if not predicted:
        return "differs" if differs else "no difference found"
    if not differs:
        return "not decided"
    return "holds" if difference.score * predicted > 0 else "contradicted"
