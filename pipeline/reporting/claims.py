"""Claims of the paper and of later papers about changes of the base model, and what our runs found."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pipeline.reporting.changes import FAILED, Change, Comparison, described, differing, note, published_difference
from pipeline.reporting.paper_tables import with_ends
from pipeline.reporting.published import BASE
from pipeline.reporting.results import Score
from pipeline.reporting.studies import Headline
from pipeline.reporting.tables import Table
from pipeline.scoring.intervals import LEVEL, SEEDS, between, holm, seeds_named, spread


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


def number_of_layers(new: int, old: int) -> int:
    """In Table 3, 2 and 4 layers are worse than the base's 6. 8 layers are no better: -0.3."""
    return -1 if new < old else 0


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
    Claim("Table 3, C", "fewer layers are worse; more are no better", "N", number_of_layers),
    *(
        Claim("Table 3, C", "wider models are better", setting, lambda new, old: 1 if new > old else -1)
        for setting in ("d_model", "d_ff")
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
HOLDS, NOT_DECIDED, THE_TRAINING_FAILED = "holds", "not decided", "the training failed"  # some of the results


@dataclass(frozen=True)
class Finding:
    """What our runs found about a claim. `p` is corrected by Holm's method over the findings, or None without a test."""

    claim: Claim
    change: Change
    result: str
    p: float | None


def claim_about(new: Mapping[str, Any], old: Mapping[str, Any]) -> Claim | None:
    """The claim about the setting that changes from `old` to `new`. d_k and d_v may change with another setting."""
    changed = differing(new, old)
    settings = [key for key in changed if key not in ("d_k", "d_v")] or changed[:1]
    about = [claim for claim in CLAIMS if [claim.setting] == settings and claim.norm in (None, new["norm"])]
    return about[0] if about else None


def findings(compared: Comparison) -> list[Finding]:
    """One finding for each change of the compared study that tests a claim."""
    found = []
    for change in compared.changes:
        claim = claim_about(change.new, change.old)
        predicted = claim.bleu(change.new[claim.setting], change.old[claim.setting]) if claim else None
        if claim and predicted is not None:
            decides = not change.failed or claim.setting in OF_TRAINING
            found.append((claim, change, predicted, change.p if decides else None))
    corrected = holm([p for *_, p in found])
    return [
        Finding(claim, change, verdict(change, predicted, p), p)
        for (claim, change, predicted, _), p in zip(found, corrected)
    ]


def verdict(change: Change, predicted: int, p: float | None) -> str:
    """What a difference with the corrected `p` says about a claim that predicts its sign."""
    if p is None:
        few = seeds_named(change.seeds) if change.seeds < SEEDS else "no interval"
        return THE_TRAINING_FAILED if change.failed else few
    if p >= LEVEL:
        return NOT_DECIDED
    if not predicted:
        return "differs"
    return HOLDS if change.bleu.score * predicted > 0 else "contradicted"


def table(compared: Comparison) -> Table:
    """A line for each finding."""
    rows, others = [], ""
    for found in findings(compared):
        claim, change = found.claim, found.change
        paper = published_difference(change.row) if change.row else (None, None)
        rows.append(
            {
                "claim": claim.text,
                **with_ends("difference, BLEU", change.bleu),
                "BLEU, paper": paper[0],
                "the paper's change": f"{change.row.group}: {described(change.row.settings, BASE)}" if change.row else None,
                "p, Holm": found.p,
                "found": found.result,
                "our change": change.text,
                "difference, PPL %": change.perplexity,
                "PPL %, paper": paper[1],
                "source": claim.source,
                "run": change.runs[0],
            }
        )
        if change.bases[0] != compared.study.runs[0]:
            others += f" {change.runs[0]} is compared with {change.bases[0]}."
    says = (
        f"p is two-sided and corrected by Holm's method over the rows of this table; the intervals are not corrected. A "
        f"claim is decided by {SEEDS} seeds on both sides and p below {LEVEL}. A decided claim holds if the difference has "
        "the predicted sign, and is contradicted if it has the opposite sign. 'differs' means that the claim predicts no "
        f"difference and one was found. A training that ends more than {FAILED:.0f} BLEU below its base has failed, and "
        "decides nothing about the setting. The claims on the schedule and on scaling are about whether a training "
        "succeeds, so failed trainings with three seeds decide them."
    )
    title, places = (
        f"Published claims, tested by {compared.study.name}",
        {"p, Holm": 4, **dict.fromkeys(("BLEU, paper", "difference, PPL %", "PPL %, paper"), 1)},
    )
    return Table("claims", title, pd.DataFrame(rows, dtype=object), [f"{note(compared)} {says}{others}"], places)


def of_smoothing(compared: Comparison) -> list[Table]:
    """What label smoothing does to the loss, the accuracy and BLEU (5.4), if the study has runs with and without it."""
    runs, rows = compared.study.results.runs, list[dict[str, Any]]()
    found = [each for each in compared.changes if differing(each.new, each.old) == ["label_smoothing"] and not each.failed]
    for change in found[:1]:
        sign = 1 if change.new["label_smoothing"] > change.old["label_smoothing"] else -1  # of what smoothing changes
        losses = runs["dev PPL, last"].map(lambda value: value and math.log(value))
        measured = {
            "raises the loss (nats)": over_seeds_only(compared, change, losses),
            "raises the accuracy": over_seeds_only(compared, change, runs["accuracy"]),
            "raises BLEU": (change.bleu, change.p),
        }
        for (claim, (score, _)), p in zip(measured.items(), holm([p for _, p in measured.values()])):
            said = seeds_named(change.seeds) if change.seeds < SEEDS and score else "not measured"
            if p is not None and score:
                said = NOT_DECIDED if p >= LEVEL else HOLDS if sign * score.score > 0 else "contradicted"
            rows.append({"claim": claim, **with_ends("difference", turned(score, sign)), "p, Holm": p, "found": said})
    note = (
        "The differences that label smoothing makes on dev, last checkpoint. Those of loss and accuracy have intervals "
        "over the seeds. p is two-sided and corrected by Holm's method over the three."
    )
    title = "Label smoothing hurts perplexity, but improves accuracy and BLEU (5.4)"
    places = {"difference": 3, "p, Holm": 4}
    return [Table("smoothing", title, pd.DataFrame(rows, dtype=object), [note], places)] if rows else []


def turned(score: Score | None, sign: int) -> Score | None:
    """The score, or the opposite difference if `sign` is -1."""
    if score is None or sign > 0 or score.low is None or score.high is None:
        return score and Score(sign * score.score, score.low, score.high)
    return Score(-score.score, -score.high, -score.low)


def over_seeds_only(compared: Comparison, change: Change, values: pd.Series) -> tuple[Score | None, float | None]:
    """The difference of a measure without sentences, and its p-value. The variance is that between seeds of all runs."""
    sides = [*(each.bases for each in compared.changes), *(each.runs for each in compared.changes if not each.failed)]
    known = {tuple(side): values[list(side)] for side in sides if values[list(side)].notna().all()}
    groups = {side: np.array([[value, value] for value in found], dtype=float) for side, found in known.items()}
    ours, others = (groups.get(tuple(side)) for side in (change.runs, change.bases))
    if ours is None or others is None:
        return None, None
    if change.seeds < SEEDS:
        return Score(float(ours.mean() - others.mean())), None
    tested = between(ours, others, spread(list(groups.values())))
    return Score(tested.score, tested.low, tested.high), tested.p


def headline(compared: Comparison, of: Headline) -> Headline:
    """The headline `of` the compared study, with the claims of Table 3 that hold. Failed trainings are not counted."""
    found = [each for each in findings(compared) if each.change.row and each.result != THE_TRAINING_FAILED]
    if all(each.p is None for each in found):
        return of
    others = [each for each in found if each.result != HOLDS]
    rest = " ".join(f"{each.change.text}: {each.result}." for each in others)
    corpus = compared.study.results.runs["corpus"].iloc[0]
    note = f"{rest} Models on {corpus}; {compared.sample()}. Failed trainings are not counted."
    says = "changes of Table 3 are found to have the effect on BLEU that the paper claims"
    return Headline(of.study, of.trained, of.runs, f"{len(found) - len(others)} of {len(found)}", says, note.strip())
