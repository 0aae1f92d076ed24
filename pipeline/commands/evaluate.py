"""Score a translation of any text by every measure, or compare two systems on one test set.

    python -m pipeline.commands.evaluate RUN SOURCE REFERENCE [--split] [--output FILE]
    python -m pipeline.commands.evaluate SYSTEM --against SYSTEM [--metric bleu-13a]

The first form translates SOURCE with RUN, a run of params.yaml or a model folder, and prints all measures of
pipeline/scoring/bleu.py with 95% intervals and signatures. SOURCE and REFERENCE match line by line. The source is
normalised as the training text was; the reference is not changed. `--split` translates each sentence of a line by itself.
`--output` writes the translations to FILE.

The second form prints the score of the second system minus that of the first, with its interval. A system is a run, a
decoding, or a file with a translation of each line of the test set, but not both are files. A run translates the test set
of its corpus, a decoding the set that it names. The two sets may have different names if they have the same text. Two
decodings by one model differ by the search only. For them, p is the probability of a difference of at least this size if
both are equally good (two-sided, by bootstrap over the sentences). Two trainings also differ by their seeds, about which
one translation of each says nothing, so there is no p. The report compares trainings with three seeds.

Reads params.yaml (base.scoring, runs, decodings). The second form also reads scores/RUN/translations/test.average.txt or
scores/decodings/NAME/translation.txt, and data/sets/SET, and writes nothing.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Self

import numpy as np

from pipeline.commands.status import not_done
from pipeline.orchestrating.results import in_columns
from pipeline.running import stage
from pipeline.running.models import NAMED, is_folder, translator_of
from pipeline.running.translating import best
from pipeline.scoring.bleu import headline, interval, measures, resampled
from pipeline.scoring.intervals import within
from pipeline.scoring.of_sets import aligned, scores
from pipeline.settings.decodings import decoding_run
from pipeline.settings.languages import not_known
from pipeline.settings.params import load, require_named
from pipeline.settings.score_files import content, rounded
from pipeline.settings.scoring import scoring
from pipeline.text.evaluation import EvaluationSet, read_lines, require_aligned
from pipeline.text.forms import read_text
from transformer.config.reading import UserError, placed
from transformer.files import write_lines


def table(metrics: Mapping[str, Mapping]) -> list[str]:
    """The lines of the table: measure, score, 95% interval, signature."""
    rows = [["measure", "score", "95% interval", "signature"]]
    for name, cell in metrics.items():
        bounds = "" if cell["low"] is None else f"{rounded(cell['low'])} to {rounded(cell['high'])}"
        rows.append([name, rounded(cell["score"]), bounds, cell["signature"]])
    return in_columns(rows)


def evaluate(arguments: argparse.Namespace) -> None:
    """Translate a text and score the translation."""
    settings, output = scoring(load()), arguments.output and arguments.output.resolve()  # a link stays a link
    if output and output.exists() and not output.is_file():
        raise UserError(f"--output: {arguments.output} is not a regular file; the path of a file is expected")
    paths = (arguments.source, arguments.reference)
    if output in [path.resolve() for path in paths]:
        raise UserError(f"--output: {arguments.output} is read as well and would be replaced; another path is expected")
    source, reference = (read_text(path, arguments.encoding) for path in paths)
    require_aligned(paths[0], len(source), paths[1], len(reference))
    if not source:
        raise UserError(f"{arguments.source} is empty; there is nothing to translate")
    translator = translator_of(arguments.system)
    for stale in not_done(arguments.system).values() if not is_folder(arguments.system) else []:
        print(f"evaluate: {stale}; its last model translates", file=sys.stderr)
    if translator.text_config is None:
        raise UserError(
            f"{arguments.system}: the model folder has no text.json, so its languages are unknown; "
            "run the stage average again"
        )
    if said := not_known(translator.text_config.languages[1:]):
        print(f"evaluate: {said}", file=sys.stderr)
    translator.say = partial(print, "evaluate:", file=sys.stderr)
    with placed(str(arguments.source), ": "):
        parts = list(translator.prepared((line.replace("\r", " ") for line in source), arguments.split, option="--split"))
    sentences = [sentence for part in parts for sentence in part.sentences]
    found = iter(translator.text(best(translator, sentences, str(arguments.source)).translations))
    lines = [part.joined(found, translator.languages[1]) for part in parts]
    scored = scores(lines, reference, translator.text_config.languages[1], settings)
    print(f"{arguments.system} on {arguments.source}: {scored['pairs']:,} pairs", *table(scored["metrics"]), sep="\n")
    if output:
        write_lines(output, lines)


@dataclass(frozen=True)
class System:
    """A translation of a test set: of a run, of a decoding or in a file, whose set and model are not known."""

    name: str
    translation: Path
    set: str | None = None
    model: str | None = None

    @classmethod
    def named(cls, params: Mapping, name: str) -> Self:
        if Path(name).is_file():
            return cls(name, Path(name))
        if name in params["decodings"]:
            run, folder = decoding_run(params, name), Path("scores", "decodings", name)
            model = (content(folder / "decoding.json") or {}).get("model", run.model)  # a value's is the run's
            return cls(name, folder / "translation.txt", run.set, model)
        require_named(name, [*params["runs"], *params["decodings"]], "a run or a decoding of params.yaml, and not a file")
        path = Path("scores", name, "translations", "test.average.txt")
        return cls(name, path, f"{params['runs'][name]['corpus']}-test", f"{name}/average")


def text_of(name: str) -> tuple[bytes, ...] | str:
    """Both sides of a set, or its name if there is no such set.

    The test sets of a corpus, of a part of this corpus and of its back-translation can have the same text.
    """
    if not (folder := Path("data/sets", name)).exists():
        return name
    test = EvaluationSet.open(folder)
    return tuple(test.path("raw", side).read_bytes() for side in ("source", "target"))


def common_set(systems: Sequence[System]) -> str:
    """The name of the set that all systems translate. Raises UserError if there is no such set."""
    sets = {system.name: system.set for system in systems if system.set}
    if not sets:
        named = " and ".join(system.name for system in systems)
        raise UserError(f"{named} are both files; one of the two must be a run or a decoding")
    if len(names := set(sets.values())) > 1 and len(set(map(text_of, names))) > 1:
        told = ", ".join(f"{system} translates {name}" for system, name in sets.items())
        raise UserError(f"translations of two sets cannot be compared: {told}")
    return next(iter(sets.values()))


def compare(arguments: argparse.Namespace) -> None:
    """Print the scores of two systems on their test set, and the difference."""
    params = load()
    settings, systems = scoring(params), [System.named(params, name) for name in (arguments.system, arguments.against)]
    folder = Path("data/sets", common_set(systems))
    if not settings.bootstrap:
        raise UserError("params.yaml: base.scoring.bootstrap: 0 is not possible here; a number of resamples is expected")
    for stale in not_done(*(system.name for system in systems if system.set)).values():
        print(f"evaluate: {stale}; its last translations are compared", file=sys.stderr)
    for path in (folder, *(system.translation for system in systems)):
        if not path.exists():
            raise UserError(f"{path} is missing; `make reproduce` writes it")
    test = EvaluationSet.open(folder)
    known, metric = measures(test.languages[1]), arguments.metric or headline(test.languages[1])
    require_named(metric, list(known), "a measure of BLEU or chrF")
    measure, drawn, rows = known[metric], list[np.ndarray](), [["system", metric, "95% interval"]]
    for system in systems:
        segments, references = aligned(
            system.translation, test.path("raw", "target"), read_lines if system.set else read_text
        )
        drawn.append(values := resampled(measure, measure.statistics(segments, references), settings))
        low, high = interval(values[1:].tolist())
        rows.append([system.name, rounded(values[0]), f"{rounded(low)} to {rounded(high)}"])
    print(f"set {folder.name}, {len(references):,} pairs, {measure.signature(settings)}")
    print(*in_columns(rows, numbers=True), sep="\n")
    found, (first, second) = within(drawn[1], drawn[0]), systems
    if first.model == second.model:
        tested = f", p = {found.p:.4f} (two-sided)"
    elif None in (first.model, second.model):
        tested = "; no p, because they are not known to be of one training"
    else:
        tested = "; no p, because one seed each says nothing about the variance of seeds"
    span = f"{rounded(found.low, form='+')} to {rounded(found.high, form='+')}, over the sentences"
    print(f"{second.name} minus {first.name}: {rounded(found.score, form='+')} ({span}){tested}")


def main(arguments: argparse.Namespace) -> None:
    texts = [arguments.source, arguments.reference]
    if (arguments.against is None) == (None in texts) or (arguments.against and any([*texts, arguments.split])):
        raise UserError("either SOURCE and REFERENCE, or --against and a second system, are expected")
    if arguments.against:
        compare(arguments)
    else:
        evaluate(arguments)


def parser() -> argparse.ArgumentParser:
    options = stage.parser("evaluate", __doc__)
    options.add_argument("system", help=f"{NAMED}; with --against, a run, a decoding or a file of translations")
    options.add_argument("source", type=Path, nargs="?", help="text to translate, one segment per line")
    options.add_argument("reference", type=Path, nargs="?", help="reference translations, one segment per line")
    options.add_argument("--encoding", help="of SOURCE and REFERENCE, if not UTF-8, such as latin-1")
    options.add_argument("--output", type=Path, help="a file for the translations")
    options.add_argument("--split", action="store_true", help="translate each sentence of a line by itself")
    options.add_argument("--against", metavar="SYSTEM", help="the other system: a run, a decoding, or a file")
    options.add_argument("--metric", help="for --against: a measure of BLEU or chrF (default: bleu-13a for most languages)")
    return options


if __name__ == "__main__":
    stage.run(main, parser(), checked=False)
