"""Table 3 at two scales: is it nearer to the paper's at the larger one? The rule is in studies.yaml."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from pipeline.reporting.changes import ROWS, Change, of_study
from pipeline.reporting.published import TABLE3, described
from pipeline.reporting.results import TEST, Results
from pipeline.reporting.studies import Study
from pipeline.reporting.tables import Table, table
from pipeline.scoring.intervals import LEVEL, MEASURES, SEEDS, Seeds, Spread

SMALL, LARGE, BESIDE = NAMES = "scale-s", "scale-l", "multi30k-claims"  # the studies; the last one is of another corpus
COLUMNS = {"effect": "ln PPL, {}", "low": "ln PPL, {} low", "high": "ln PPL, {} high", "BLEU": "BLEU, {}", "n": "seeds, {}"}
PAPER = {key: float(np.log(row.perplexity / TABLE3[0].perplexity)) for key, row in ROWS.items()}  # the paper's effects
ENOUGH = 2  # rows, for a distance: there is no verdict on a single row
DRAWS = 100_000
EFFECTS = (
    "The effect is the mean of ln dev perplexity (last checkpoint) over the seeds, minus that of the base. Its 95% "
    f"interval has a t distribution and a variance between seeds that is pooled over {SMALL} and {LARGE}, and over the "
    f"rows of Table 3 in {BESIDE}. A row with fewer than {SEEDS} seeds has none. Our differences in BLEU are on the test "
    "set, by averaged checkpoints. The paper's are on newstest2013, by the last checkpoint."
)
RULE = (
    "The rule was committed before the runs. D2 is the mean over the rows of (effect - the paper's)^2 - v (1/n + 1/m). v "
    "is the variance between seeds, pooled as above; n and m are the numbers of seeds of row and base. The small Table 3 "
    f"moves towards the paper's if D2 falls from {SMALL} to {LARGE} by more than the {1 - LEVEL:.0%} quantile of simulated "
    f"trainings, in which both scales have the effects of {BESIDE}. There is no verdict about D2 of {BESIDE}, which has "
    "another corpus and other languages, about the rank correlations, or about the signs of BLEU."
)


class Scale(NamedTuple):
    """A study as a small Table 3.

    `planned` has the keys of its rows, and `changes` those that have results. `rows` has for each of these the `effect`
    with its interval, the difference in `BLEU`, the numbers `n` and `m` of seeds, and the effect of the `paper`. `spread`
    is that of ln perplexity between seeds, None if no setting has two.
    """

    name: str
    planned: Collection[str]
    changes: Mapping[str, Change]
    measure: str
    rows: pd.DataFrame
    spread: Spread | None

    def distance(self, rows: Sequence[str]) -> float | None:
        """D2 over these rows. None if they are fewer than ENOUGH, or one has no result."""
        if not self.spread or not ENOUGH <= len(rows) == self.rows.index.isin(rows).sum():
            return None
        of = self.rows.loc[rows]
        return float(((of["effect"] - of["paper"]) ** 2 - self.spread.seeds * (1 / of["n"] + 1 / of["m"])).mean())


def measured(known: Sequence[Study], results: Results) -> list[Scale]:
    """The scales of NAMES, with or without results. Empty if neither of the first two has ENOUGH rows."""
    # Without the first run of a study, another one would be its base.
    studies = [each for each in known if each.name in NAMES and each.runs[0] == next(iter(each.planned))]
    found = {study.name: of_study(study) for study in studies}
    changes = {
        name: {each.row.key: each for each in of.changes if each.row and each.bases[0] == of.study.runs[0]}
        for name, of in found.items()
    }
    scales = []
    for name in NAMES:
        pooled = [each for of in (NAMES[2:] if name == BESIDE else NAMES[:2]) for each in changes.get(of, {}).values()]
        seeds = Seeds.of_values(results.losses.dropna(), [side for each in pooled for side in (each.runs, each.bases)])
        planned, measure = (found[name].study.rows.values(), found[name].measure) if name in found else ((), "")
        bleu, rows = results.at(measure, *TEST)["score"].astype(float), {}
        for key, each in changes.get(name, {}).items():
            if effect := seeds.difference(each.runs, each.bases):
                numbers = [len(seeds.of(side)) for side in (each.runs, each.bases)]
                ours = bleu.reindex(each.runs).mean() - bleu.reindex(each.bases).mean()
                rows[key] = (*effect[:3], ours, *numbers, PAPER[key])
        frame = pd.DataFrame.from_dict(rows, "index", float, [*COLUMNS, "m", "paper"])
        scales.append(Scale(name, planned, changes.get(name, {}), measure, frame, seeds.spread))
    return scales if any(len(scale.rows) >= ENOUGH for scale in scales[:2]) else []


def common(scales: Sequence[Scale]) -> list[str]:
    """The rows that both scales have, or those of the only one with ENOUGH rows, in the order of Table 3."""
    found = [scale.rows.index for scale in scales[:2] if len(scale.rows) >= ENOUGH]
    return [row for row in ROWS if all(row in of for of in found)]


def quantile(scales: Sequence[Scale], spread: Spread, effects: pd.Series) -> float:
    """The quantile of D2(SMALL) - D2(LARGE) where both have these `effects`, by simulated seeds. v is estimated anew."""
    random, distances = np.random.default_rng(1), []
    v = spread.seeds * random.chisquare(spread.freedom, DRAWS) / spread.freedom
    for scale in scales[:2]:
        of = scale.rows.loc[effects.index]
        own, base = np.sqrt(spread.seeds / of[["n", "m"]].to_numpy()).T
        errors = own * random.standard_normal((DRAWS, len(of))) - base * random.standard_normal((DRAWS, 1))
        squares = ((effects - of["paper"]).to_numpy() + errors) ** 2
        distances.append(squares.mean(axis=1) - v * (1 / of["n"] + 1 / of["m"]).mean())
    return float(np.quantile(distances[0] - distances[1], 1 - LEVEL))


def verdict(scales: Sequence[Scale]) -> str:
    """What the rule says about the two scales."""
    rows, spread = common(scales), scales[0].spread
    small, large, beside = (scale.distance(rows) for scale in scales)
    if small is None or large is None or beside is None or spread is None:
        return f"There is no verdict: it needs at least {ENOUGH} rows with results in {SMALL}, {LARGE} and {BESIDE}."
    limit = quantile(scales, spread, scales[2].rows["effect"][rows])
    says = "moves towards" if small - large > limit else "is not found to move towards"
    return f"D2 falls by {small - large:.5f}, and the quantile is {limit:.5f}: the small Table 3 {says} the paper's."


def tables(scales: Sequence[Scale]) -> list[Table]:
    """The effect of each row at each scale, and the distances from the paper. No table without scales."""
    rows, compared = [ROWS[key] for key in ROWS if any(key in scale.planned for scale in scales[:2])], common(scales)
    if not rows:
        return []
    frame = pd.DataFrame({"the paper's change": [f"{row.group}: {row.change}" for row in rows]}, [row.key for row in rows])
    frame["ln PPL, paper"], frame["BLEU, paper"] = frame.index.map(PAPER), [row.effect[0] for row in rows]
    others = []
    for scale in scales:
        labels = {column: label.format(scale.name) for column, label in COLUMNS.items()}
        frame = frame.join(scale.rows[list(COLUMNS)].astype({"n": "Int64"}).rename(columns=labels))
        shown = [scale.changes[key] for key in frame.index if key in scale.changes]
        others += [f"{scale.name} {described(each.new, each.old)}" for each in shown if not each.same_ratio]
    measures = [f"{scale.name}: {MEASURES[scale.measure]}." for scale in scales if scale.measure]
    note = f"{' '.join(measures)} Changes by another ratio than in the paper: {', '.join(others) or 'none'}."
    places = {label: 1 if "BLEU" in label else 3 for label in frame}
    fine, distances = {"D2": 4, "deviation of a seed": 4}, [distance_row(scale, compared) for scale in scales]
    return [
        table("scales", "Table 3 at two scales: effects on the perplexity", frame, [EFFECTS, note], places=places),
        table("scales-distance", "Distances from the paper's Table 3", distances, [verdict(scales), RULE], places=fine),
    ]


def distance_row(scale: Scale, rows: Sequence[str]) -> dict[str, Any]:
    """How far these rows of a scale are from the paper's. Rank correlation: Spearman's."""
    distance, of, spread = scale.distance(rows), scale.rows.reindex(rows), scale.spread if len(scale.rows) else None
    ranks = of[["effect", "paper"]].dropna().rank()  # method="spearman" would import scipy.stats for a second
    signs = [ours * ROWS[row].effect[0] > 0 for row, ours in of["BLEU"].dropna().items()]
    return {
        "study": scale.name,
        "rows": f"{of['effect'].count()} of {len(rows)}",
        "D2": distance,
        "D": distance and float(np.sign(distance) * abs(distance) ** 0.5),
        "rank correlation": None if distance is None else ranks["effect"].corr(ranks["paper"]),
        "BLEU: signs as the paper's": f"{sum(signs)} of {len(signs)}" if signs else None,
        "deviation of a seed": spread and float(spread.seeds**0.5),
        "degrees of freedom": spread and spread.freedom,
    }
