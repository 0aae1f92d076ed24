"""Compare two systems' translations of one test set: is their difference significant?

    python -m pipeline.commands.compare RUN RUN [--metric bleu-13a]

A system is a run, or a file with a translation of each line of the test set. At least one of the two is a run: its
corpus determines the test set. The test is sacreBLEU's paired bootstrap resampling (Koehn 2004): p is the probability
of a difference of this size if the systems were equally good.

Reads params.yaml (base.scoring, runs, corpora.CORPUS.languages), scores/RUN/translations/test.average.txt and
data/CORPUS/raw/test.TARGET. Prints a table; writes nothing.
"""

import argparse
import os
from collections.abc import Mapping
from pathlib import Path

from pipeline.scoring.bleu import HEADLINE, Measure, measures
from pipeline.scoring.segments import aligned
from pipeline.settings.params import entry, languages, load
from pipeline.settings.scoring import scoring
from pipeline.workflow import stage
from transformer.config.reading import UserError, unknown


def translation(system: str) -> Path:
    return Path(system) if Path(system).is_file() else Path("scores", system, "translations", "test.average.txt")


def common_corpus(params: Mapping, systems: list[str]) -> str:
    """The corpus whose test set both systems translate."""
    of_runs = {system: entry(params, "runs", system)["corpus"] for system in systems if not Path(system).is_file()}
    if not of_runs:
        raise UserError(f"{' and '.join(systems)} are both files; one of the two must be a run of params.yaml")
    if len(set(of_runs.values())) > 1:
        told = ", ".join(f"{run} of {corpus}" for run, corpus in of_runs.items())
        raise UserError(f"runs of two corpora cannot be compared: {told}")
    return next(iter(of_runs.values()))


def paired(systems: Mapping[str, list[str]], references: list[str], measure: Measure, resamples: int) -> tuple:
    """sacreBLEU's signature and its result (score, mean, ci, p_value) for each system, the first being the baseline."""
    from sacrebleu.significance import PairedTest

    prepared = [(system, [measure.hypothesis(line) for line in segments]) for system, segments in systems.items()]
    if prepared[0][1] == prepared[1][1]:  # sacreBLEU would report its smallest p-value: no resample differs by more
        raise UserError(f"{' and '.join(systems)} translate every line alike; there is no difference to test")
    answers = [[measure.reference(line) for line in references]]
    signatures, results = PairedTest(prepared, {"": measure.metric}, answers, test_type="bs", n_samples=resamples)()
    (metric,) = signatures
    for name, value in measure.steps.items():
        signatures[metric].update(name, value)
    return str(signatures[metric]), results[metric]


def table(metric: str, systems: list[str], results: list) -> str:
    width = max(len(system) for system in ["system", *systems])
    rows = [f"{'system':{width}}  {metric:>{max(len(metric), 6)}}  95% interval         p"]
    for system, result in zip(systems, results):
        p = "" if result.p_value is None else f"{result.p_value:.4f}"
        interval = f"{result.mean:6.2f} ± {result.ci:.2f}"
        rows.append(f"{system:{width}}  {result.score:{max(len(metric), 6)}.2f}  {interval:15}  {p:>6}".rstrip())
    return "\n".join(rows)


def main(arguments: argparse.Namespace) -> None:
    params, systems = load(), [arguments.first, arguments.second]
    if systems[0] == systems[1]:
        raise UserError(f"{systems[0]} is compared with itself; two systems are expected")
    corpus, settings = common_corpus(params, systems), scoring(params)
    _, target = languages(params, corpus)
    if arguments.metric not in measures(target):
        raise UserError(unknown(arguments.metric, list(measures(target)), "--metric"))
    segments, reference = {}, Path("data", corpus, "raw", f"test.{target}")
    for system in systems:
        segments[system], references = aligned(translation(system), reference)
    os.environ["SACREBLEU_SEED"] = str(settings.seed)  # PairedTest takes the seed only from there
    signature, results = paired(segments, references, measures(target)[arguments.metric], settings.bootstrap)
    print(f"test set of {corpus}, {len(references):,} pairs, {signature}")
    print(table(arguments.metric, systems, results))


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(prog="compare", description=__doc__.split("\n\n")[0])
    options.add_argument("first", help="a run, or a file of translations of the same test set")
    options.add_argument("second", help="as the first")
    options.add_argument("--metric", default=HEADLINE, help=f"a measure of the BLEU matrix ({HEADLINE})")
    return options


if __name__ == "__main__":
    stage.run(main, parser())
