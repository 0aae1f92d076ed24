"""Run a benchmark and keep the tables that it prints, with the command, hardware, versions, commit and date.

    python -m benchmarks.record [--into NAME] BENCHMARK [ARGUMENTS ...]

BENCHMARK is a module of this folder, and ARGUMENTS are its arguments. Prints its output. Writes
benchmarks/results/NAME.json (default: BENCHMARK.json), and README.md there, which has the tables of all files.
benchmarks.gpu writes such files itself.
"""

import argparse
import importlib.metadata
import re
import shlex
import subprocess
import sys
from pathlib import Path

import torch

from benchmarks.provenance import Table, write_page, write_record
from pipeline.workflow import stage
from pipeline.workflow.hardware import commit, hardware
from transformer.config.reading import UserError

FOLDER, PACKAGE = Path(__file__).parent, "benchmarks"
PACKAGES = ("sentencepiece", "sacrebleu", "ctranslate2", "transformers", "joeynmt", "dvc", "snakemake")


def tables(lines: list[str]) -> list[Table]:
    """The Markdown tables among these lines: the columns and the rows of each, as texts."""
    found: list[Table] = []
    for before, line in zip(["", *lines], lines):
        cells = [cell.strip() for cell in line.strip()[1:-1].split("|")]
        if line.startswith("|") and not before.startswith("|"):
            found.append({"columns": cells, "rows": []})
        elif line.startswith("|") and not all(re.fullmatch(":?-+:?", cell) for cell in cells):
            found[-1]["rows"].append(cells)
    return found


def main(arguments: argparse.Namespace) -> None:
    if not (path := FOLDER / f"{arguments.benchmark}.py").is_file():
        raise UserError(f"{path}: no such benchmark")
    words, lines = ["-m", f"{PACKAGE}.{arguments.benchmark}", *arguments.arguments], []
    with subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            lines.append(line)
    if process.returncode:
        raise UserError(f"python {shlex.join(words)} ended with status {process.returncode}; nothing is written")
    if not (found := tables(lines)):
        raise UserError(f"python {shlex.join(words)} printed no table; nothing is written")
    here = hardware(torch.device("cuda" if torch.cuda.is_available() else "cpu"))
    versions = {each.metadata["Name"]: each.version for each in importlib.metadata.distributions()}
    shown = {name: here[name] for name in ("python", "torch")}
    shown |= {name: versions[name] for name in PACKAGES if name in versions}
    path = FOLDER / "results" / f"{arguments.into or arguments.benchmark}.json"
    hardware_of = f"{here['hardware']}, {here['cores']} cores, {here['instructions']}"
    made_by = commit(PACKAGE, f":!{PACKAGE}/results")
    write_record(path, f"python {shlex.join(words)}", hardware_of, shown, made_by, found)
    write_page(path.parent)


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks.record", description=__doc__.split("\n\n")[0])
    parser.add_argument("--into", help="the name of the file, if a benchmark is kept more than once")
    parser.add_argument("benchmark", help="a module of this folder")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    return parser


if __name__ == "__main__":
    stage.run(main, options(), checked=False)
