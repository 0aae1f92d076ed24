"""Claims of the paper and of later papers about changes of the base model, and what our runs found."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from pipeline.reporting.changes import ELSEWHERE, FAILED, Change, Comparison
from pipeline.reporting.published import differing
from pipeline.reporting.studies import Headline
from pipeline.reporting.tables import Table, table, with_ends
from pipeline.scoring.intervals import LEVEL, SEEDS, Score, Seeds, holm, seeds_named


class Claim(NamedTuple):
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


def worse(value: str) -> Callable[[str, str], int | None]:
    """For a claim that a change to this value is worse."""
    return lambda new, old: -1 if new == value else None


XIONG = "Xiong et al. 2020"
CLAIMS = (
    Claim("Table 3, A", "a single head is worse than several, and so are too many heads", "h", number_of_heads),
    Claim("Table 3, B", "a smaller key size hurts", "d_k", lambda new, old: -1 if new < old else None),
    # 2 and 4 layers are worse than the base's 6. 8 layers are no better: -0.3.
    Claim(
        "Table 3, C", "fewer layers are worse; the row with more is no better", "N", lambda new, old: -1 if new < old else 0
    ),
    Claim("Table 3, C", "wider models are better", "d_model", lambda new, old: 1 if new > old else -1),
    Claim("Table 3, C", "wider models are better", "d_ff", lambda new, old: 1 if new > old else -1),
    Claim("Table 3, D", "dropout helps against over-fitting", "dropout", on_is_better),
    Claim("5.4", "label smoothing improves BLEU", "label_smoothing", on_is_better),
    Claim("Table 3, E", "learned positions give nearly identical results", "positions", lambda new, old: 0),
    Claim("3.2.1", "dot products that are not scaled are worse where d_k is large", "attention", worse("dot_product")),
    Claim(XIONG, "post-norm, the paper's, needs the warm-up", "schedule", worse("no_warmup"), norm="post"),
    Claim(XIONG, "pre-norm does not need the warm-up", "schedule", lambda new, old: 0, norm="pre"),
    Claim("L. Wu et al. 2021", "R-Drop improves BLEU", "r_drop", on_is_better),
    Claim("Provilkov et al. 2020", "BPE-dropout improves BLEU", "bpe_dropout", on_is_better),
    Claim("Loshchilov and Hutter 2019", "decoupled weight decay generalises better", "weight_decay", on_is_better),
)

ENOUGH = 8  # rows of Table 3, for a rank correlation
OF_TRAINING = ("schedule", "attention")  # the claims about these settings are about whether a training succeeds
HOLDS, OPEN, THE_TRAINING_FAILED = "holds", "not decided", "the training failed"  # some of the results
TESTED = "test, averaged"  # of ELSEWHERE, beside dev
RULE = (
    "p is two-sided and corrected by Holm's method over the rows of this table; the intervals are not corrected. A claim "
    f"is decided by {SEEDS} seeds on both sides and p below {LEVEL}. A decided claim holds if the difference has the "
    "predicted sign, and is contradicted if it has the opposite sign. 'differs' means that the claim predicts no "
    "difference and one was found. The verdict says if only dev (last checkpoint) or only test (averaged checkpoints) "
    f"supports it. A training that ends more than {FAILED:.0f} BLEU below its base has failed, and decides nothing about "
    "the setting. The claims on the schedule and on scaling are about whether a training succeeds, so failed trainings "
    "with three seeds decide them."
)
POST_HOC = (
    "The perplexity is tested against the sign of the paper's row, on the logarithms, by Welch's test, which does not "
    "assume that all settings vary equally between seeds. Where p by Welch's test is not below "
    f"{LEVEL}, the verdict on BLEU depends on that assumption. The tests of perplexity, of test and of Welch were added "
    "after the runs. Runs with equal seeds are not paired. The paper's rows seem to be single runs."
)


class Finding(NamedTuple):
    """What our runs found about a claim.

    `result` is the verdict of dev and test together. `perplexity` is the verdict on the perplexity, if the change is a row
    of Table 3. `p` has the keys of `Change.p`, corrected by Holm's method over the findings; None without a test.
    """

    claim: Claim
    change: Change
    result: str
    perplexity: str | None
    p: Mapping[str, float | None]


def claim_about(new: Mapping[str, Any], old: Mapping[str, Any]) -> Claim | None:
    """The claim about the setting that changes from `old` to `new`. d_k and d_v may change with another setting."""
    changed = differing(new, old)
    tied = ("d_k", "d_v") if {"h", "d_model"} & {*changed} else ("d_v",)
    settings = [key for key in changed if key not in tied]
    about = [claim for claim in CLAIMS if [claim.setting] == settings and claim.norm in (None, new["norm"])]
    return about[0] if about else None


def findings(compared: Comparison) -> list[Finding]:
    """One finding for each change of the compared study that tests a claim."""
    found = []
    for change in compared.changes:
        claim = claim_about(change.new, change.old)
        predicted = claim.bleu(change.new[claim.setting], change.old[claim.setting]) if claim else None
        if claim and predicted is not None:
            found.append((claim, change, predicted))
    tests = [change.p if not change.failed or claim.setting in OF_TRAINING else {} for claim, change, _ in found]
    corrected = {name: holm([p.get(name) for p in tests]) for name in ("BLEU", "Welch", "perplexity", *ELSEWHERE)}
    return [finding(*each, {name: p[place] for name, p in corrected.items()}) for place, each in enumerate(found)]


def finding(claim: Claim, change: Change, predicted: int, p: Mapping[str, float | None]) -> Finding:
    """The finding about one change, given the corrected p-values."""
    result, perplexity = verdict(change.bleu, p["BLEU"], predicted, change.seeds, change.failed), None
    on_test = change.elsewhere.get(TESTED)
    if on_test and p[TESTED] is not None and p["BLEU"] is not None:
        result = together(result, verdict(on_test, p[TESTED], predicted, change.seeds))
    if change.row and p["perplexity"] is not None:
        theirs = int(np.sign(round(change.row.effect[1], 1)))
        perplexity = verdict(change.perplexity, p["perplexity"], theirs, change.seeds)
    return Finding(claim, change, result, perplexity, p)


def together(dev: str, test: str) -> str:
    """The verdict of dev and test: that of both, or of the one that decides, or that they disagree."""
    if dev == test:
        return dev
    decided = [f"{result} on {name} only" for name, result in (("dev", dev), ("test", test)) if result != OPEN]
    return "dev and test disagree" if len(decided) > 1 else decided[0]


def verdict(difference: Score, p: float | None, predicted: int, seeds: int, failed: bool = False) -> str:
    """What a difference with the corrected `p` says about a claim that predicts its sign."""
    if p is None:
        return THE_TRAINING_FAILED if failed else seeds_named(seeds) if seeds < SEEDS else "no interval"
    if p >= LEVEL:
        return OPEN
    if not predicted:
        return "differs"
    return HOLDS if difference.score * predicted > 0 else "contradicted"


def claims_table(compared: Comparison) -> Table | None:
    """A line for each finding. None if no change is one that a claim is about."""
    rows, others = [], []
    for each in findings(compared):
        claim, change = each.claim, each.change
        paper = change.row.effect if change.row else (None, None)
        rows.append(
            {
                "claim": claim.text,
                **with_ends("BLEU, ours", change.bleu),
                "BLEU, paper": paper[0],
                "found": each.result,
                "p, Holm": each.p["BLEU"],
                **with_ends("PPL %, ours", change.perplexity),
                "PPL %, paper": paper[1],
                "PPL: found": each.perplexity,
                "our change": change.text,
                "the paper's change": change.row and f"{change.row.group}: {change.row.change}",
                "PPL: p, Holm": each.p["perplexity"],
                "p, Welch and Holm": each.p["Welch"],
                **{f"BLEU, {name}": of and of.score for name, of in change.elsewhere.items()},
                **{f"p, Holm: {name}": each.p[name] for name in ELSEWHERE},
                "source": claim.source,
                "run": change.runs[0],
            }
        )
        if change.bases[0] != compared.study.runs[0]:
            others.append(f"{change.runs[0]} is compared with {change.bases[0]}.")
    standing = {change.row.key: change.runs for change in compared.changes if change.row}
    others += [
        f"{run} is left out: {standing[row][0]} stands for its row of Table 3."
        for run, row in compared.study.rows.items()
        if run in compared.study.results.scored and run not in standing.get(row, [run])
    ]
    places = dict.fromkeys((label for label in rows[0] if "p, " in label), 4) if rows else {}
    places |= dict.fromkeys(("BLEU, paper", "PPL %, ours", "PPL %, paper"), 1)
    title = f"Published claims, tested by {compared.study.name}"
    notes = [compared.note(), RULE, POST_HOC, *agreement(compared), *([" ".join(others)] if others else [])]
    return table("claims", title, rows, notes, places=places) if rows else None


def agreement(compared: Comparison) -> list[str]:
    """A sentence with Spearman's rank correlations between the paper's rows and ours, if there are enough rows.

    Their intervals are from simulated effects, which vary around ours by the standard errors of the seeds.
    """
    tested = [each.change for each in findings(compared) if each.change.row and each.p["BLEU"] is not None]
    if len(tested) < ENOUGH or any(change.perplexity.low is None for change in tested):
        return []
    said, effects = [], np.array([change.row.effect for change in tested if change.row])
    of_bleu, of_perplexity = effects.round(9).T  # equal differences of decimals are equal
    for name, paper, differences in (
        ("perplexity", of_perplexity, [change.perplexity for change in tested]),
        ("BLEU", of_bleu, [change.bleu for change in tested]),
    ):
        ours, low, high, _ = np.array(differences, float).T
        drawn = np.random.default_rng(1).normal(ours, (high - low) / 4, (10_000, len(ours)))
        ranks = pd.DataFrame(np.vstack([paper, ours, drawn])).rank(axis=1).to_numpy()
        centred = ranks - ranks.mean(axis=1, keepdims=True)
        lengths = np.linalg.norm(centred, axis=1)
        found, *others = centred[1:] @ centred[0] / (lengths[1:] * lengths[0])
        low, high = np.quantile(others, [0.025, 0.975])
        said.append(f"{found:.2f} by {name} ({low:.2f} to {high:.2f})")
    return [f"Rank correlation of the {len(tested)} rows with the paper's: {', '.join(said)}."]


def against_first(compared: Comparison) -> Table | None:
    """A line for each change of a study. None if there is no change."""
    rows = [
        {
            "run": change.runs[0],
            **with_ends("difference, BLEU", change.bleu),
            "p, Holm": p,
            "seeds": seeds_named(change.seeds),
            "against": change.bases[0],
        }
        for change, p in zip(compared.changes, holm([each.bleu.p for each in compared.changes]))
    ]
    title = f"Runs of {compared.study.name} against the first"
    note = f"{compared.note()} p is two-sided and corrected by Holm's method."
    return table(f"changes-{compared.study.name}", title, rows, [note], places={"p, Holm": 4}) if rows else None


def smoothing(compared: Comparison) -> tuple[Table, list[str]] | None:
    """What label smoothing does to the loss, the accuracy and BLEU on dev (5.4), by the rules for all claims, and its runs.

    None if the study does not compare trainings that differ in nothing else.
    """
    alone = [each for each in findings(compared) if each.claim.setting == "label_smoothing" and not each.change.failed]
    if not alone:
        return None
    bleu, runs = alone[0], compared.study.results.runs
    sides = sorted((bleu.change.runs, bleu.change.bases), key=lambda side: -runs.at[side[0], "label_smoothing"])
    measured = {"raises the loss (nats)": compared.study.results.losses, "raises the accuracy": runs["accuracy"]}
    seeds = [Seeds.of_values(values.dropna(), compared.sides()) for values in measured.values()]
    scores, rows = [of.difference(*sides) for of in seeds], []
    for claim, of, score, p in zip(measured, seeds, scores, holm([score and score.p for score in scores])):
        said = verdict(score, p, 1, min(len(of.of(side)) for side in sides)) if score else "not measured"
        rows.append({"claim": claim, **with_ends("difference", score), "p, Holm": p, "found": said})
    difference = with_ends("difference", compared.seeds.difference(*sides))
    rows.append({"claim": "raises BLEU", **difference, "p, Holm": bleu.p["BLEU"], "found": bleu.result})
    note = (
        "The differences that label smoothing makes on dev, last checkpoint. Those of loss and accuracy have intervals "
        "over the seeds. p is two-sided and corrected by Holm's method over these two; that of BLEU is that of the claims."
    )
    title = "Label smoothing (5.4): the claims that it hurts perplexity and improves accuracy and BLEU"
    return table("smoothing", title, rows, [note], places={"difference": 3, "p, Holm": 4}), [*sides[0], *sides[1]]


def headline(compared: Comparison, of: Headline) -> Headline:
    """The headline `of` the compared study, with the claims of Table 3 that hold, of those that were tested."""
    found = [each for each in findings(compared) if each.change.row and each.result != THE_TRAINING_FAILED]
    if not (tested := [each for each in found if each.p["BLEU"] is not None]):
        return of
    others = [f"{each.change.text}: {each.result}." for each in found if each.result != HOLDS]
    ours = f"Models on {compared.study.corpus}; {compared.sample()}."
    others.append(f"{ours} Changes with fewer seeds and failed trainings are not counted.")
    says = "changes of Table 3 are found to have the effect on BLEU that the paper claims"
    held = sum(each.result == HOLDS for each in found)
    return replace(of, figure=f"{held} of {len(tested)}", says=says, note=" ".join(others))
