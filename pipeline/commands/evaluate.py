"""Translate any text and score the translation by every measure.

    python -m pipeline.commands.evaluate RUN SOURCE REFERENCE [--output FILE]

Translates SOURCE with RUN, a run of params.yaml or a model folder, and prints all measures of pipeline/scoring/bleu.py with
95% intervals and signatures. SOURCE and REFERENCE match line by line. The source is normalised as the training text was;
the reference is not changed. `--output` writes the translations to FILE. Reads params.yaml (base.scoring, runs).

The report compares trainings with several seeds, and decodings. `sacrebleu REFERENCE -i ONE OTHER --paired-bs` compares
two files of translations.
"""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from pipeline.commands.status import not_done
from pipeline.corpora.evaluation import read_aligned
from pipeline.scoring.of_sets import scores
from pipeline.settings.params import load
from pipeline.settings.scoring import scoring
from pipeline.workflow import stage
from pipeline.workflow.models import NAMED, is_folder, translator_of
from pipeline.workflow.progress import Progress
from pipeline.workflow.results import in_columns
from transformer.config.reading import UserError
from transformer.files import write_lines
from transformer.translator import Translator


def translations(translator: Translator, lines: list[str], name: str) -> list[str]:
    with Progress(total=sum(map(bool, lines)), unit="sentence") as bar:
        return translator.text(translator.translate(translator.normalise(lines), name, bar.update))


def table(metrics: Mapping[str, Mapping]) -> list[str]:
    """The lines of the table: measure, score, 95% interval, signature."""
    rows = [["measure", "score", "95% interval", "signature"]]
    for name, cell in metrics.items():
        interval = "" if cell["low"] is None else f"{cell['low']:.2f} to {cell['high']:.2f}"
        rows.append([name, f"{cell['score']:.2f}", interval, cell["signature"]])
    return in_columns(rows)


def main(arguments: argparse.Namespace) -> None:
    settings, output = scoring(load()), arguments.output and arguments.output.resolve()  # a link stays a link
    if output and output.exists() and not output.is_file():
        raise UserError(f"--output: {arguments.output} is not a regular file; the path of a file is expected")
    source, reference = read_aligned(arguments.source, arguments.reference)
    if not source:
        raise UserError(f"{arguments.source} is empty; there is nothing to translate")
    translator = translator_of(arguments.run)
    for stale in not_done(arguments.run).values() if not is_folder(arguments.run) else []:
        print(f"evaluate: {stale}; its last model translates", file=sys.stderr)
    if translator.text_config is None:
        raise UserError(
            f"{arguments.run}: the model folder has no text.json, so its languages are unknown; run the stage average again"
        )
    lines = translations(translator, source, str(arguments.source))
    scored = scores(lines, reference, translator.text_config.languages[1], settings)
    print(f"{arguments.run} on {arguments.source}: {scored['pairs']:,} pairs", *table(scored["metrics"]), sep="\n")
    if output:
        write_lines(output, lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="evaluate", description=__doc__.split("\n\n")[0])
    parser.add_argument("run", help=NAMED)
    parser.add_argument("source", type=Path, help="text to translate, one segment per line")
    parser.add_argument("reference", type=Path, help="reference translations, one segment per line")
    parser.add_argument("--output", type=Path, help="a file for the translations")
    stage.run(main, parser, checked=False)
