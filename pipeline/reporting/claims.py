"""Claims of the paper and of later papers about changes of the base model, and what our runs found."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.reporting.deltas import FAILED, Comparison, Own, differing, note
from pipeline.reporting.evidence import Mean, Score
from pipeline.reporting.tables import Column, Table
from pipeline.reporting.variations import stated


@dataclass(frozen=True)
class Claim:
    """A claim about a change of one setting. With `norm`, it is about models with this norm only.

    `bleu(new, old)` returns the sign of the difference in BLEU that the claim predicts for a change from `old` to `new`: 0
    if it predicts no difference, None if it says nothing about this change.
    """

    source: str
    text: str
    setting: str
    bleu: Callable[[Any, Any], int | None]
    norm: str | None = None


def number_of_heads(new: int, old: int) -> int | None:
    """In Table 3, 1 head and 32 heads, four times the base's 8, are worse than the base; 4 and 16 are not clearly worse.

    All rows with several heads are better than the row with 1.
    """
    return 1 if old == 1 < new else -1 if new == 1 < old or new >= 4 * old else None


def on_is_better(new: float, old: float) -> int | None:
    """For a setting that 0 turns off. The claim says nothing about a change from one positive value to another."""
    return -1 if new == 0 < old else 1 if old == 0 < new else None


def unscaled_is_worse(new: str, old: str) -> int | None:
    return -1 if (new, old) == ("dot_product", "scaled_dot_product") else None


def needs_warmup(new: str, old: str) -> int | None:
    return -1 if (new, old) == ("no_warmup", "warmup") else None


CLAIMS = (
    Claim("Table 3, A", "a single head is worse than several, and so are too many heads", "h", number_of_heads),
    Claim("Table 3, B", "a smaller key size hurts", "d_k", lambda new, old: -1 if new < old else None),
    *(
        Claim("Table 3, C", "bigger models are better", setting, lambda new, old: 1 if new > old else -1)
        for setting in ("N", "d_model", "d_ff")
    ),
    Claim("Table 3, D", "dropout helps against over-fitting", "dropout", on_is_better),
    Claim("5.4", "label smoothing improves BLEU", "label_smoothing", on_is_better),
    Claim("Table 3, E", "learned positions give nearly identical results", "positions", lambda new, old: 0),
    Claim("3.2.1", "dot products that are not scaled are worse where d_k is large", "attention", unscaled_is_worse),
    Claim("Xiong et al. 2020", "post-norm, the paper's, needs the warm-up", "schedule", needs_warmup, norm="post"),
    Claim("Xiong et al. 2020", "pre-norm does not need the warm-up", "schedule", lambda new, old: 0, norm="pre"),
    Claim("L. Wu et al. 2021", "R-Drop improves BLEU", "r_drop", on_is_better),
    Claim("Provilkov et al. 2020", "BPE-dropout improves BLEU", "bpe_dropout", on_is_better),
    Claim("Loshchilov and Hutter 2019", "decoupled weight decay generalises better", "weight_decay", on_is_better),
)


OF_TRAINING = ("schedule", "attention")  # the claims about these settings are about whether a training succeeds
HOLDS, EQUAL, THE_TRAINING_FAILED = "holds", "no difference found", "the training failed"  # some of the results


@dataclass(frozen=True)
class Finding:
    """What a run of ours found about a claim. `result` is None if the difference in BLEU has no interval."""

    claim: Claim
    own: Own
    result: str | None


def claim_about(new: Mapping[str, Any], old: Mapping[str, Any]) -> Claim | None:
    """The claim about the setting that changes from `old` to `new`. d_k and d_v may change with another setting."""
    changed = differing(new, old)
    settings = [key for key in changed if key not in ("d_k", "d_v")] or changed[:1]
    about = [claim for claim in CLAIMS if [claim.setting] == settings and claim.norm in (None, new["norm"])]
    return about[0] if about else None


def findings(compared: Comparison) -> list[Finding]:
    """Return one finding for each run of the compared study that tests a claim."""
    found = []
    for own in compared.ours:
        new, old = stated(own.run), stated(own.base)
        claim = claim_about(new, old)
        predicted = claim.bleu(new[claim.setting], old[claim.setting]) if claim else None
        if claim and predicted is not None:
            failed = own.failed and claim.setting not in OF_TRAINING
            result = THE_TRAINING_FAILED if failed else verdict(predicted, own.bleu, compared.seeds)
            found.append(Finding(claim, own, result))
    return found


def table(compared: Comparison) -> Table | None:
    """Return a table with one line for each finding. Return None if there is none."""
    if compared.study is None:
        return None
    columns = [Column("claim"), Column("difference, BLEU", "score"), Column("found"), Column("our change")]
    columns += [Column("difference, PPL %", "number", 1), Column("source"), Column("run", "run")]
    rows, others = [], ""
    for found in findings(compared):
        claim, own = found.claim, found.own
        rows.append([claim.text, own.bleu, found.result, own.change, own.perplexity, claim.source, own.run.name])
        if own.base not in compared.study.bases:
            others += f" {own.run.name} is compared with {own.base.name}."
    says = (
        "The spread of the base is the largest distance of one of its seeds from their mean. A claim is decided if the "
        "interval does not contain 0 and the difference is larger than this spread. A decided claim holds if the "
        "difference has the predicted sign, and is contradicted if it has the opposite sign. 'differs' means that the "
        "claim predicts no difference and one was found. "
        f"A training that ends more than {FAILED:.0f} BLEU below its base has failed, and decides nothing about the "
        "setting. The claims on the schedule and on scaling are about whether a training succeeds, so a failed training "
        "decides them."
    )
    title = f"Published claims, tested by {compared.study.name}"
    return Table("claims", title, columns, rows, [f"{note(compared)} {says}{others}"]) if rows else None


def verdict(predicted: int, difference: Score, seeds: Mean | None) -> str | None:
    """What the difference says about a claim that predicts its sign, or None if it has no interval."""
    if difference.low is None or difference.high is None:
        return None
    spread = max(seeds.high - seeds.score, seeds.score - seeds.low) if seeds else 0.0
    differs = not difference.low <= 0 <= difference.high and abs(difference.score) > spread
    if not predicted:
        return "differs" if differs else EQUAL
    if not differs:
        return "not decided"
    return HOLDS if difference.score * predicted > 0 else "contradicted"
