"""Run a benchmark and keep the tables that it prints, with the command, hardware, versions, commit and date.

    python -m benchmarks.record [--into NAME] BENCHMARK [ARGUMENTS ...]

BENCHMARK is a module of this folder, and ARGUMENTS are its own. Prints what it prints. Writes
benchmarks/results/NAME.json (default: BENCHMARK.json), from which `python -m tests.pages` writes docs/benchmarks.md.
"""

import argparse
import importlib.metadata
import re
import shlex
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import torch

from pipeline.workflow import stage
from pipeline.workflow.hardware import commit, hardware
from transformer.config.reading import UserError
from transformer.files import write_json

FOLDER, PACKAGE = Path(__file__).parent, "benchmarks"
PACKAGES = ("sentencepiece", "sacrebleu", "ctranslate2", "transformers", "joeynmt", "dvc", "snakemake")


def tables(lines: list[str]) -> list[dict[str, Any]]:
    """The Markdown tables among these lines: the columns and the rows of each, as texts."""
    found: list[dict[str, Any]] = []
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
    here = hardware(torch.device("cuda" if torch.cuda.is_available() else "cpu"))
    versions = {each.metadata["Name"]: each.version for each in importlib.metadata.distributions()}
    record = {
        "command": f"python {shlex.join(words)}",
        "hardware": f"{here['hardware']}, {here['cores']} cores",
        "versions": {name: here[name] for name in ("python", "torch")}
        | {name: versions[name] for name in PACKAGES if name in versions},
        "commit": commit(),
        "date": date.today().isoformat(),
        "tables": tables(lines),
    }
    write_json(FOLDER / "results" / f"{arguments.into or arguments.benchmark}.json", record)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="benchmarks.record", description=__doc__.split("\n\n")[0])
    parser.add_argument("--into", help="the name of the file, if a benchmark is kept more than once")
    parser.add_argument("benchmark")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    stage.run(main, parser, checked=False)
