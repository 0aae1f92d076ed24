"""Compare two systems' translations of one test set, with the interval of the difference between their scores.

    python -m pipeline.commands.compare SYSTEM SYSTEM [--metric bleu-13a]

A system is a run, a decoding, or a file with a translation of each line of the test set. At least one of the two must
be a run or a decoding. A run translates the test set of its corpus. A decoding translates the set that it names. The
two sets may have different names if they have the same text.

Two decodings by one model differ by the search only. For them, p is the probability of a difference of this size if both
are equally good (two-sided, by bootstrap over the sentences). Two trainings also differ by their seeds, about which one
translation of each says nothing, so there is no p. The report compares trainings with three seeds.

Reads params.yaml (base.scoring, runs, decodings), scores/RUN/translations/test.average.txt or
scores/decodings/NAME/translation.txt, and data/sets/SET. Prints a table; writes nothing.
"""

import argparse
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from pipeline.commands.status import not_done
from pipeline.corpora.evaluation import EvaluationSet
from pipeline.scoring.bleu import HEADLINE, interval, measures
from pipeline.scoring.intervals import Difference, resampled, within
from pipeline.scoring.of_sets import aligned
from pipeline.settings.decodings import decoding_run
from pipeline.settings.params import load, require_named
from pipeline.settings.scoring import scoring
from pipeline.workflow import stage
from pipeline.workflow.text import in_columns
from transformer.config.reading import UserError


def translation(params: Mapping, system: str) -> Path:
    if Path(system).is_file():
        return Path(system)
    if system in params["decodings"]:
        return Path("scores", "decodings", system, "translation.txt")
    return Path("scores", system, "translations", "test.average.txt")


def set_of(params: Mapping, system: str) -> str:
    """The set that a run or a decoding translates."""
    if system in params["decodings"]:
        return decoding_run(params, system).set
    valid = [*params["runs"], *params["decodings"]]
    require_named(system, valid, "a run or a decoding of params.yaml, and not a file")
    return f"{params['runs'][system]['corpus']}-test"


def same_text(names: Iterable[str]) -> bool:
    """Return whether the sets have the same text, whatever their names.

    The test sets of a corpus, of a part of this corpus and of its back-translation can have the same text.
    """
    folders = [Path("data/sets") / name for name in names]
    if not all(folder.exists() for folder in folders):
        return False
    sets = [EvaluationSet.open(folder) for folder in folders]
    return len({tuple(one.path("raw", side).read_bytes() for side in ("source", "target")) for one in sets}) == 1


def common_set(params: Mapping, systems: list[str]) -> str:
    """The name of the set that both systems translate. Raises UserError if there is no such set."""
    sets = {system: set_of(params, system) for system in systems if not Path(system).is_file()}
    if not sets:
        raise UserError(f"{' and '.join(systems)} are both files; one of the two must be a run or a decoding")
    if len(set(sets.values())) > 1 and not same_text(set(sets.values())):
        told = ", ".join(f"{system} translates {name}" for system, name in sets.items())
        raise UserError(f"translations of two sets cannot be compared: {told}")
    return next(iter(sets.values()))


def model_of(params: Mapping, system: str) -> str | None:
    """The model that translated, RUN/average for example. None for a file, whose model is not known."""
    if Path(system).is_file():
        return None
    return decoding_run(params, system).model if system in params["decodings"] else f"{system}/average"


def table(metric: str, scores: Mapping[str, np.ndarray]) -> str:
    rows = [["system", metric, "95% interval"]]
    for system, values in scores.items():
        low, high = interval(values[1:].tolist())
        rows.append([system, f"{values[0]:.2f}", f"{low:.2f} to {high:.2f}"])
    return "\n".join(in_columns(rows, numbers=True))


def conclusion(found: Difference, same_model: bool) -> str:
    text = f"difference {found.score:+.2f} ({found.low:+.2f} to {found.high:+.2f}, over the sentences)"
    if same_model:
        return f"{text}, p = {found.p:.4f} (two-sided)"
    return f"{text}; no p, because one seed each says nothing about the variance between trainings"


def main(arguments: argparse.Namespace) -> None:
    params, systems = load(), [arguments.first, arguments.second]
    if systems[0] == systems[1]:
        raise UserError(f"{systems[0]} is compared with itself; two systems are expected")
    name, settings = common_set(params, systems), scoring(params)
    if not settings.bootstrap:
        raise UserError("params.yaml: base.scoring.bootstrap: 0 is not possible here; a number of resamples is expected")
    for stale in not_done(*(system for system in systems if not Path(system).is_file())).values():
        print(f"compare: {stale}; its last translations are compared", file=sys.stderr)
    for path in (Path("data/sets") / name, *(translation(params, system) for system in systems)):
        if not path.exists():
            raise UserError(f"{path} is missing; `make reproduce` writes it")
    test = EvaluationSet.open(Path("data/sets") / name)
    target = test.languages[1]
    require_named(arguments.metric, list(measures(target)), "a measure of BLEU or chrF")
    measure, scores = measures(target)[arguments.metric], dict[str, np.ndarray]()
    for system in systems:
        segments, references = aligned(translation(params, system), test.path("raw", "target"))
        scores[system] = resampled(measure, measure.statistics(segments, references), settings)
    first, second = scores.values()
    if np.array_equal(first, second):
        score = f"{first[0]:.2f} {arguments.metric}"
        raise UserError(f"{' and '.join(systems)} have the same score, {score}; there is no difference to test")
    print(f"set {name}, {len(references):,} pairs, {measure.signature(settings.bootstrap, settings.seed)}")
    print(table(arguments.metric, scores))
    models = {model_of(params, system) for system in systems}
    print(conclusion(within(second, first), same_model=len(models) == 1))


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(prog="compare", description=__doc__.split("\n\n")[0])
    options.add_argument("first", help="a run, a decoding, or a file of translations of the test set")
    options.add_argument("second", help="the other system: a run, a decoding, or a file")
    options.add_argument(
        "--metric", default=HEADLINE, help=f"a measure of BLEU or chrF, as in the reports (default: {HEADLINE})"
    )
    return options


if __name__ == "__main__":
    stage.run(main, parser())
