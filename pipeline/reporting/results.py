"""The results in results/ as data frames: `runs` has a row for each run, `scores` for each run, set, weights and measure.

The stages `result` and `collect` write the files (pipeline/result.py, pipeline/collect.py). A run whose file is missing,
or is of other settings than params.yaml now gives it, has a row with its settings only. A value that is not known is None.
"""

import contextlib
import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from pipeline.reporting.published import LOWER, LOWER_CASED
from pipeline.scoring.bleu import HEADLINE
from pipeline.scoring.costs import COSTS, cost
from pipeline.scoring.intervals import Score
from pipeline.settings.registry import parts
from pipeline.settings.score_files import rounded, within
from pipeline.settings.selection import bpe_dropout, run_settings
from transformer.config.model import ModelConfig
from transformer.config.reading import UserError, hints, read_saved
from transformer.config.training import TrainingConfig
from transformer.files import digest, read_json

# Where scores are: a set and weights. `dev, last` is that of Table 3, and the filtered test set was scored in 2014.
LAST, TEST, TEST_FILTERED = ("dev", "last"), ("test", "average"), ("test_filtered", "average")
# Columns of `runs`, each with the keys of its value in the file of a run.
FACTS = {
    "parameters": ("training", "parameters"),
    "trained steps": ("training", "steps"),
    "dev PPL, last": ("translations", "dev", "last", "perplexity"),
    "dev PPL, average": ("translations", "dev", "average", "perplexity"),
    "accuracy": ("translations", "dev", "last", "accuracy"),
    "calibration error": ("translations", "dev", "last", "calibration_error"),
    "reliability": ("translations", "reliability", "dev.last"),
    "FLOPs, counted": ("flops", "analytic", "training_flops"),
    "data": ("training", "data_sum"),
    "settings": ("training", "settings_sha256"),
    "begins with": ("training", "initial"),
}
# The keys of the statistics in the file of a run, and their sets and weights. Files of earlier code lack the second.
STATISTICS = {"statistics": LAST, "test_statistics": TEST}
# Columns of `runs` with times and hardware, which only the pages show.
TIMES = {"seconds": "seconds", "tokens/s": "tokens_per_second", "hardware": "hardware", "GPUs": "gpus"}
TIMES |= {"trained in": "precision", "commit": "commit", "torch": "torch", "numpy": "numpy"}

# The columns of both frames
SCORES = ("run", "set", "weights", "measure", "score", "low", "high", "signature")
SAME = ["corpus", *hints(ModelConfig), *hints(TrainingConfig)]  # what is equal in two results of one run
COLUMNS = ["run", "selected", "model", "differences", "languages", *SAME, "bpe_dropout", *FACTS, *TIMES, *COSTS]


class Mean(NamedTuple):
    """The mean score of runs of `Results.alike`, and a text with the range of their scores, which is no 95% interval."""

    score: float
    text: str


@dataclass(frozen=True)
class Results:
    """All that is known. `curves` are by run, the others by name.

    `statistics`, with a row a sentence, are by run and by measure, set and weights, as the arguments of `at`.
    """

    runs: pd.DataFrame
    scores: pd.DataFrame
    curves: Mapping[str, pd.DataFrame]
    statistics: Mapping[str, Mapping[tuple[str, str, str], np.ndarray]]
    decodings: Mapping[str, dict]
    extras: Mapping[str, Mapping[str, dict]]  # the files of each extra, by its folder

    def of(self, names: Sequence[str]) -> "Results":
        """The results of these runs, in this order, with all decodings and the files of all extras."""
        scores = self.scores[self.scores["run"].isin(names)]
        return dataclasses.replace(self, runs=self.runs.loc[list(names)], scores=scores)

    @cached_property
    def selected(self) -> list[str]:
        return list(self.runs.index[self.runs["selected"].astype(bool)])

    @cached_property
    def scored(self) -> list[str]:
        """The runs with scores."""
        return list(self.runs.index[self.runs.index.isin(self.scores["run"])])

    @cached_property
    def losses(self) -> pd.Series:
        """The logarithm of the dev perplexity of each run, last checkpoint: nats per piece. NaN if it is not known."""
        return np.log(self.runs["dev PPL, last"].astype(float))

    def at(self, measure: str, chosen: str, weights: str) -> pd.DataFrame:
        """The scores of all runs by one measure on one set with these weights, by run."""
        return self.by_place.get((measure, chosen, weights), self.scores[:0].set_index("run"))

    @cached_property
    def by_place(self) -> dict[Any, pd.DataFrame]:
        return {place: here.set_index("run") for place, here in self.scores.groupby(["measure", "set", "weights"])}

    def score(self, run: str | None, *place: str) -> Score | None:
        """The score of a run. `place` has the arguments of `at`. None without a run or a score."""
        found = self.at(*place)
        return Score(*found.loc[run, ["score", "low", "high"]]) if run in found.index else None

    def columns(self, cells: Mapping[str, tuple[str, str, str]]) -> pd.DataFrame:
        """A column for each score and for the ends of its interval, `LABEL low` and `LABEL high`, by run.

        `cells` maps each label to the arguments of `at`.
        """
        found: dict[str, pd.Series] = {}
        for label, place in cells.items():
            here = self.at(*place)
            found |= {label: here["score"], f"{label} low": here["low"], f"{label} high": here["high"]}
        return pd.DataFrame(found, dtype=object).reindex(self.runs.index)

    @cached_property
    def groups(self) -> list[list[str]]:
        """`alike` for all runs."""
        return self.alike(self.runs.index)

    def alike(self, names: Iterable[str]) -> list[list[str]]:
        """Group the runs of `names` that differ only in the seed, or in the seed and the precision.

        Precisions are told apart if a seed was trained in two. Of runs with equal seeds and precisions, keep the first.
        """
        kept: dict[tuple, str] = {}
        for name in names:
            kept.setdefault(self.trainings[name], name)
        seeds = Counter((settings, seed) for settings, seed, _ in kept)
        twice = {settings for (settings, _), times in seeds.items() if times > 1}
        groups: dict[tuple, list[str]] = {}
        for (settings, _, precision), name in kept.items():
            groups.setdefault((settings, settings in twice and precision), []).append(name)
        return list(groups.values())

    @cached_property
    def trainings(self) -> dict[str, tuple[str, Any, Any]]:
        """What a training is made of, by run: its settings and data, its seed and its precision.

        With portable arithmetic, `auto` is float32. Otherwise it may be bfloat16, by the machine.
        """
        compared = [key for key in SAME if key not in ("seed", "precision", "arithmetic")] + ["bpe_dropout", "data"]
        settings = [repr(row) for row in self.runs[compared].values.tolist()]
        precision = self.runs["precision"].mask(self.runs["arithmetic"] == "portable", "float32")
        return dict(zip(self.runs.index, zip(settings, self.runs["seed"], precision)))

    def over_seeds(self, runs: Sequence[str], *place: str) -> Mean | None:
        """The mean of a score (arguments of `at`); None if a run does not have it, or if there is only one run."""
        scores = self.at(*place)["score"].reindex(runs).dropna()
        if len(scores) < max(2, len(runs)):
            return None
        precisions = sorted(set(self.runs.loc[list(runs), "trained in"]) - {None})
        mixed = f", in {' and '.join(precisions)}" if len(precisions) > 1 else ""
        return Mean(fmean(scores), f"mean of {len(scores)} seeds ({rounded(min(scores))} to {rounded(max(scores))}){mixed}")


def load_results(params: Mapping, results: Path) -> Results:
    """Read results/. The runs of params.yaml come first, in its order, then the others by name."""
    files = {path.stem: path for path in sorted(results.glob("*.json"), key=lambda path: path.stem)}
    rows, scores, curves, statistics = [], list[dict](), dict[str, pd.DataFrame](), dict[str, dict[Any, np.ndarray]]()
    for name in dict.fromkeys([*params["runs"], *files]):
        row = selected_row(params, name) if name in params["runs"] else {}
        if name in files:
            known = about(files[name], "run")
            with naming(files[name]):
                made = row_of(params, name, known, results)
                if all(made[key] == row[key] for key in SAME if row):
                    row = made | {"selected": name in params["runs"]}
                    scores += score_rows(name, known["score"], known["corpus"] == LOWER_CASED)
                    curves[name] = pd.DataFrame(known["curve"])
                    statistics[name] = {
                        (measure, *place): np.array([column.split() for column in of], float).T
                        for key, place in STATISTICS.items()
                        for measure, of in known.get(key, {}).items()
                    }
        rows.append({"run": name, **row})
    folders = ("decodings", *(each.FOLDER for each in parts("pipeline.extras.*.section")))
    extras = {of: {path.stem: about(path, "name") for path in sorted((results / of).glob("*.json"))} for of in folders}
    found = curves, statistics, extras.pop("decodings"), extras
    return Results(frame(rows, COLUMNS).set_index("run"), frame(scores, SCORES), *found)


def frame(rows: Sequence[Mapping], columns: Sequence[str]) -> pd.DataFrame:
    """A frame of objects: whole numbers stay whole numbers, and None stays None."""
    made = pd.DataFrame(list(rows), columns=columns, dtype=object)
    return made.where(made.notna(), None)


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Turn an error about an entry that is missing or wrong into a UserError that names the file."""
    try:
        yield
    except UserError as error:
        raise error if str(path) in str(error) else UserError(f"{path}: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(
            f"{path}: {error!r}; a file of `result` or `collect` is expected; make it again, or move it elsewhere"
        ) from None


def about(path: Path, key: str) -> dict[str, Any]:
    """The content of a file in results/. Raises UserError if it is not about what its name says."""
    with naming(path):
        if (known := read_json(path))[key] != path.stem:
            raise UserError(f"the {key} {path.stem!r} is expected, not {known[key]!r}")
        return known


def row_of(params: Mapping, name: str, known: Mapping, results: Path) -> dict[str, Any]:
    """The row of a run in `runs`, from its file and its times."""
    training = known["training"]
    if digest(training["settings"]) != training["settings_sha256"]:
        raise UserError("settings_sha256 is not that of the settings; the file was edited or is damaged")
    settings = vars(read_saved(ModelConfig, training["settings"]["model"], "settings.model"))
    settings |= vars(read_saved(TrainingConfig, training["settings"]["training"], "settings.training"))
    head = {key: known[key] for key in ("corpus", "model", "differences", "languages", "bpe_dropout")}
    facts = {label: within(known, *keys) for label, keys in FACTS.items()}
    return {"selected": False, **head, **settings, **facts, **times_row(params, name, known, results)}


def times_row(params: Mapping, name: str, known: Mapping, results: Path) -> dict[str, Any]:
    """The times and the costs of a training. They are left out if they are those of another training of this name."""
    path = results / "times" / f"{name}.json"
    times = read_json(path) if path.is_file() else {}
    timing = times.get("training") if times.get("training_sha256") == digest(known["training"]) else None
    found = {label: within(timing, key) for label, key in TIMES.items()}
    return {**found, **cost(timing, str(path), known["flops"], params)}


def selected_row(params: Mapping, name: str) -> dict[str, Any]:
    """The row of a run of params.yaml that has no results: its settings."""
    corpus, model, training = run_settings(params, name)
    differences = {key: value for key, value in params["runs"][name].items() if key not in ("corpus", "model")}
    head = {"selected": True, "corpus": corpus, "model": params["runs"][name]["model"], "differences": differences}
    return {**head, **vars(model), **vars(training), "bpe_dropout": bpe_dropout(params, corpus)}


def score_rows(run: str, score: Mapping, lower_cased: bool) -> list[dict[str, Any]]:
    """The rows of a run in `scores`."""
    return [
        {"run": run, "set": chosen, "weights": weights, "measure": measure, **value}
        for chosen, by_weights in score.items()
        for weights, found in by_weights.items()
        for measure, value in named_measures(found["metrics"], lower_cased).items()
    ]


def named_measures(metrics: Mapping[str, Any], lower_cased: bool) -> dict[str, Any]:
    """The measures of a score file. The first one, whose name depends on the language, is also the headline."""
    named = {HEADLINE: next(iter(metrics.values())), **metrics}
    return {LOWER * lower_cased + measure: value for measure, value in named.items()}
