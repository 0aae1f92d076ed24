"""What the paper and Xiong et al. 2020 claim about changes of the base model, and what our runs found."""

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

    `bleu` is the sign of the difference in BLEU that it predicts, given the new value and the base's. It is 0 if the
    claim is that the change makes no difference.
    """

    source: str
    text: str
    bleu: Callable[[Any, Any], int]


def worse(new: Any, old: Any) -> int:
    return -1


def no_change(new: Any, old: Any) -> int:
    return 0


def with_size(new: Any, old: Any) -> int:
    return 1 if new > old else -1


BIGGER = Claim("Table 3, C", "bigger models are better", with_size)

# By the changed settings, apart from sizes of keys and values that change with another one.
CLAIMS = {
    ("h",): Claim("Table 3, A", "a single head is worse than several, and so are too many heads", worse),
    ("d_k",): Claim("Table 3, B", "a smaller key size hurts", worse),
    ("N",): BIGGER,
    ("d_model",): BIGGER,
    ("d_ff",): BIGGER,
    ("dropout",): Claim("Table 3, D", "dropout helps against over-fitting", worse),
    ("label_smoothing",): Claim("5.4", "label smoothing hurts perplexity and improves BLEU", worse),
    ("positions",): Claim("Table 3, E", "learned positions give nearly identical results", no_change),
    ("attention",): Claim("3.2.1", "dot products that are not scaled are worse where d_k is large", worse),
    ("schedule",): Claim("Xiong et al. 2020", "post-norm, the paper's, needs the warm-up", worse),
    ("norm", "schedule"): Claim("Xiong et al. 2020", "pre-norm does not need the warm-up", no_change),
}


def table(compared: Comparison) -> Table | None:
    """Return a table with a line for each run of the compared study that tests a claim, or None if there is none."""
    if compared.study is None:
        return None
    columns = [Column("claim"), Column("source"), Column("our change"), Column("BLEU", "score")]
    columns += [Column("PPL %", "number", 1), Column("found"), Column("run", "run")]
    rows = []
    for own in compared.ours:
        new, old = stated(own.run), stated(compared.study.base)
        changed = differing(new, old)
        claim = CLAIMS.get(tuple(key for key in changed if key not in ("d_k", "d_v")) or ("d_k",))
        if claim:
            result = verdict(claim.bleu(new[changed[0]], old[changed[0]]), own.bleu, compared.seeds)
            rows.append([claim.text, claim.source, own.change, own.bleu, own.perplexity, result, own.run.name])
    says = (
        "A claim is decided if the interval does not contain 0 and the difference is larger than those between the seeds "
        "of the base."
    )
    title = f"The paper's claims, tested by {compared.study.name}"
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
