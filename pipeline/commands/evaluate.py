"""Score a translation of any text by every measure, or compare two systems on one test set.

    python -m pipeline.commands.evaluate RUN SOURCE REFERENCE [--split] [--output FILE]
    python -m pipeline.commands.evaluate SYSTEM --against SYSTEM [--metric bleu-13a]
    python -m pipeline.commands.evaluate --hypothesis FILE --reference FILE... --language de [--against FILE]

The first form translates SOURCE with RUN, a run of params.yaml or a model folder, and prints all measures of
pipeline/scoring/bleu.py with 95% intervals and signatures. SOURCE and REFERENCE match line by line. The source is
normalised as the training text was; the reference is not changed. `--split` translates each sentence of a line by itself.
`--output` writes the translations to FILE. `--metric` names measures, of which chrf++ and ter are computed on request only.

The second form prints the score of the second system minus that of the first, with its interval. A system is a run, a
decoding, or a file with a translation of each line of the test set, but not both are files. A run translates the test set
of its corpus, a decoding the set that it names. The two sets may have different names if they have the same text. Two
decodings by one model differ by the search only. For them, p is the probability of a difference of at least this size if
both are equally good (two-sided, by bootstrap over the sentences). Two trainings also differ by their seeds, about which
one translation of each says nothing, so there is no p. The report compares trainings with three seeds.

The third form scores a file, or compares two, by one or several references, without a run. A file is plain text, .sgm, or
WMT's XML, of which `FILE#NAME` takes one translator or system. An empty line in one of several references counts as
missing, unless all are empty.

Reads params.yaml (base.scoring, runs, decodings). The second form also reads scores/RUN/translations/test.average.txt or
scores/decodings/NAME/translation.txt, and data/sets/SET, and writes nothing.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from pipeline.commands.status import not_done
from pipeline.orchestrating.results import in_columns
from pipeline.reporting.warned import several
from pipeline.running import stage
from pipeline.running.models import NAMED, STEP, is_folder, translator_of
from pipeline.running.translating import best
from pipeline.scoring.bleu import Measure, cell, headline, interval, measures, on_request, resampled
from pipeline.scoring.intervals import within
from pipeline.scoring.of_sets import aligned
from pipeline.settings.decodings import decoding_run
from pipeline.settings.download import require_encoding
from pipeline.settings.languages import not_known
from pipeline.settings.params import load, require_named
from pipeline.settings.score_files import content, rounded
from pipeline.settings.scoring import ScoringConfig, scoring
from pipeline.text.evaluation import EvaluationSet, read_lines, require_aligned
from pipeline.text.forms import read_text
from pipeline.text.wmt import Lines, read_sides
from transformer.config.reading import UserError, placed
from transformer.files import write_lines

MANY: dict[str, Any] = {"nargs": "+", "action": "extend"}  # an option with several values, which may be given again


def evaluate(arguments: argparse.Namespace) -> None:
    """Translate a text and score the translation."""
    settings, output = scoring(load()), arguments.output and arguments.output.resolve()  # a link stays a link
    if output and output.exists() and not output.is_file():
        raise UserError(f"--output: {arguments.output} is not a regular file; the path of a file is expected")
    paths = (arguments.source, arguments.reference)
    if output in [path.resolve() for path in paths]:
        raise UserError(f"--output: {arguments.output} is read as well and would be replaced; another path is expected")
    source, reference = (read_text(path, arguments.encoding) for path in paths)
    require_aligned(paths[0], len(source), paths[1], len(reference), source.documents, reference.documents)
    if not source:
        raise UserError(f"{arguments.source} is empty; there is nothing to translate")
    say_missing(reference)
    translator = translator_of(arguments.system, arguments.step)
    for stale in not_done(arguments.system).values() if not is_folder(arguments.system) else []:
        print(f"evaluate: {stale}; the model of its last training is used", file=sys.stderr)
    if translator.text_config is None:
        raise UserError(
            f"{arguments.system}: the model folder has no text.json, so its languages are unknown; "
            "run the stage average again"
        )
    if said := not_known(translator.text_config.languages[1:]):
        print(f"evaluate: {said}", file=sys.stderr)
    translator.say = partial(print, "evaluate:", file=sys.stderr)
    with placed(str(arguments.source), ": "):
        given = (line.removesuffix("\r").replace("\r", " ") for line in source)
        parts = list(translator.prepared(given, arguments.split, option="--split"))
    sentences = [sentence for part in parts for sentence in part.sentences]
    found = iter(translator.text(best(translator, sentences, str(arguments.source)).translations))
    lines = [part.joined(found, translator.languages[1]) for part in parts]
    known = chosen(arguments.metric, translator.text_config.languages[1])
    show(f"{arguments.system} on {arguments.source}", known, settings, lines, reference)
    if output:
        write_lines(output, lines)


def chosen(names: Sequence[str] | None, language: str) -> dict[str, Measure]:
    """The measures of these names, or, without names, all that need no request."""
    known = measures(language) | on_request(language)
    for name in names or ():
        require_named(name, list(known), "a measure")
    return {name: known[name] for name in names or measures(language)}


def show(title: str, known: Mapping[str, Measure], settings: ScoringConfig, lines: list[str], *references: Lines) -> None:
    """Print the table of the scores of `lines`: measure, score, 95% interval, signature."""
    rows = [["measure", "score", "95% interval", "signature"]]
    for name, measure in known.items():
        found = cell(measure, settings, lines, *references)
        bounds = "" if found["low"] is None else f"{rounded(found['low'])} to {rounded(found['high'])}"
        rows.append([name, rounded(found["score"]), bounds, found["signature"]])
    print(f"{title}: {len(lines):,} pairs", *in_columns(rows), sep="\n")


class System(NamedTuple):
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
    systems = [System.named(params, name) for name in (arguments.system, arguments.against)]
    folder = Path("data/sets", common_set(systems))
    for stale in not_done(*(system.name for system in systems if system.set)).values():
        print(f"evaluate: {stale}; its last translations are compared", file=sys.stderr)
    for path in (folder, *(system.translation for system in systems)):
        if not path.exists():
            raise UserError(f"{path} is missing; `make reproduce` writes it")
    test = EvaluationSet.open(folder)
    pairs = [
        aligned(system.translation, test.path("raw", "target"), read_lines if system.set else read_text)
        for system in systems
    ]
    known = chosen(arguments.metric or [headline(test.languages[1])], test.languages[1])
    contrast(f"set {folder.name}", known, scoring(params), systems, [segments for segments, _ in pairs], pairs[0][1])


def contrast(
    title: str,
    known: Mapping[str, Measure],
    settings: ScoringConfig,
    systems: Sequence[System],
    texts: Sequence[Sequence[str]],
    *references: Lines,
) -> None:
    """Print the scores of the texts of two systems by each measure, and the difference."""
    if not settings.bootstrap:
        raise UserError("params.yaml: base.scoring.bootstrap: 0 is not possible here; a number of resamples is expected")
    first, second = systems
    for metric, measure in known.items():
        drawn, rows = list[np.ndarray](), [["system", metric, "95% interval"]]
        for system, segments in zip(systems, texts):
            drawn.append(values := resampled(measure, measure.statistics(segments, *references), settings))
            low, high = interval(values[1:].tolist())
            rows.append([system.name, rounded(values[0]), f"{rounded(low)} to {rounded(high)}"])
        print(f"{title}, {len(references[0]):,} pairs, {measure.signature(settings)}")
        print(*in_columns(rows, numbers=True), sep="\n")
        found = within(drawn[1], drawn[0])
        if None in (first.model, second.model):
            tested = "; no p, because they may be of two trainings"
        elif first.model == second.model:
            tested = f", p = {found.p:.4f} (two-sided)"
        else:
            tested = "; no p, because one seed each says nothing about the variance of seeds"
        span = f"{rounded(found.low, form='+')} to {rounded(found.high, form='+')}, over the sentences"
        print(f"{second.name} minus {first.name}: {rounded(found.score, form='+')} ({span}){tested}")


def judge(arguments: argparse.Namespace) -> None:
    """Score a file, or compare two, by references in files."""
    settings, language, named = scoring(load()), arguments.language, (arguments.hypothesis, arguments.against)
    if said := not_known([language]):
        print(f"evaluate: {said}", file=sys.stderr)
    read = partial(read_sides, language=language, encoding=arguments.encoding)
    references = {name: lines for file in arguments.references for name, lines in read(file, "ref").items()}
    found = {name: lines for file in named if file for name, lines in read(file, "hyp").items()}
    if len(found) != (2 if arguments.against else 1):
        expected = "two different translations are" if arguments.against else "one translation is"
        raise UserError(f"{expected} expected, not {', '.join(found)}; FILE#SYSTEM takes one of an XML")
    for (name, lines), (another, others) in combinations([*found.items(), *references.items()], 2):
        order = [getattr(each, "documents", ()) for each in (lines, others)]
        require_aligned(name, len(lines), another, len(others), *order)
    for name, lines in found.items():
        if not lines or None in lines:
            raise UserError(f"{name} has no translation of segment {[*lines, None].index(None) + 1:,} of the set")
    texts = {name: [segment or "" for segment in lines] for name, lines in found.items()}
    answers = present(list(references.values()))
    say_missing(*answers)
    if arguments.against:
        systems, known = [System(name, Path(name)) for name in texts], arguments.metric or [headline(language)]
        contrast(f"by {' and '.join(references)}", chosen(known, language), settings, systems, [*texts.values()], *answers)
        return
    ((name, segments),) = texts.items()
    show(f"{name} by {' and '.join(references)}", chosen(arguments.metric, language), settings, segments, *answers)


def present(references: Sequence[Lines]) -> list[Lines]:
    """The references with None for each segment that one of several lacks. If all lack it, the first has an empty one."""
    rows = [[segment if segment and segment.strip() else None for segment in row] for row in zip(*references)]
    return list(map(list, zip(*(row if any(row) else ["", *row[1:]] for row in rows))))


def say_missing(*references: Lines) -> None:
    """Print for how many segments there is no reference. A translation of one lowers the score."""
    empty = sum(not any(segment and segment.strip() for segment in row) for row in zip(*references))
    if empty:
        print(f"evaluate: {several(empty, 'segment')} without a reference", file=sys.stderr)


def main(arguments: argparse.Namespace) -> None:
    given, texts = vars(arguments), [arguments.source, arguments.reference]
    with placed("--encoding", ": "):
        require_encoding(arguments.encoding or "utf-8")
    judged = [bool(given[key]) for key in ("hypothesis", "references", "language")]
    of_run = any([arguments.system, *texts, arguments.split, arguments.step, arguments.output])
    if any(judged) and (not all(judged) or of_run):
        raise UserError("--hypothesis, --reference and --language are expected together, without a run or its options")
    if not any(judged) and (
        arguments.system is None
        or (arguments.against is None) == (None in texts)
        or (arguments.against and any([*texts, arguments.split, arguments.step]))
    ):
        raise UserError("either SOURCE and REFERENCE, or --against and a second system, or --hypothesis are expected")
    (judge if any(judged) else compare if arguments.against else evaluate)(arguments)


def parser() -> argparse.ArgumentParser:
    options = stage.parser("evaluate", __doc__)
    options.add_argument("system", nargs="?", help=f"{NAMED}; with --against, a run, a decoding or a file of translations")
    options.add_argument("source", type=Path, nargs="?", help="text to translate, one segment per line")
    options.add_argument("reference", type=Path, nargs="?", help="reference translations, one segment per line")
    options.add_argument("--encoding", help="the encoding of the files if it is not UTF-8, such as latin-1")
    options.add_argument("--output", type=Path, help="a file for the translations")
    options.add_argument("--split", action="store_true", help="translate each sentence of a line by itself")
    options.add_argument("--step", **STEP)
    options.add_argument("--against", metavar="SYSTEM", help="the other system: a run, a decoding, or a file")
    options.add_argument("--metric", **MANY, help="such as chrf++ or ter (default: BLEU and chrF; --against: headline)")
    options.add_argument("--hypothesis", metavar="FILE", help="a file of translations; no run is needed")
    options.add_argument("--reference", dest="references", metavar="FILE", **MANY, help="its references")
    options.add_argument("--language", help="for --hypothesis: the code of the target language")
    return options


if __name__ == "__main__":
    stage.run(main, parser(), checked=False)
