"""Run a benchmark and keep the tables that it prints, with the command, hardware, versions, commit and date.

    python -m benchmarks.record [--into NAME] BENCHMARK [ARGUMENTS ...]

BENCHMARK is the name of a module of this folder, and ARGUMENTS are its own. Prints what the benchmark prints. Writes
benchmarks/results/NAME.json (default: BENCHMARK.json). `python -m tests.pages` then writes docs/benchmarks.md and the
table of speed in README.md from these files.
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
from transformer.config.reading import UserError, unknown
from transformer.files import write_json

FOLDER, PACKAGE = Path(__file__).parent, "benchmarks"
PACKAGES = ("sentencepiece", "sacrebleu", "ctranslate2", "transformers", "joeynmt", "dvc", "snakemake")


def tables(output: str) -> list[dict[str, Any]]:
    """The Markdown tables of a text: the columns and the rows of each, as texts."""
    found: list[dict[str, Any]] = []
    inside = False
    for line in output.splitlines():
        cells = [cell.strip() for cell in line.strip()[1:-1].split("|")] if line.startswith("|") else []
        if cells and not inside:
            found.append({"columns": cells, "rows": []})
        elif cells and not all(re.fullmatch(":?-+:?", cell) for cell in cells):
            found[-1]["rows"].append(cells)
        inside = bool(cells)
    return found


def versions() -> dict[str, str]:
    installed = {found.metadata["Name"]: found.version for found in importlib.metadata.distributions()}
    return {name: installed[name] for name in PACKAGES if name in installed}


def main(arguments: argparse.Namespace) -> None:
    benchmarks = [path.stem for path in FOLDER.glob("*.py") if '__name__ == "__main__"' in path.read_text("utf-8")]
    if arguments.benchmark not in benchmarks or arguments.benchmark == "record":
        raise UserError(unknown(arguments.benchmark, sorted({*benchmarks} - {"record"}), "benchmarks"))
    words, lines = ["-m", f"{PACKAGE}.{arguments.benchmark}", *arguments.arguments], []
    with subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            lines.append(line)
    if process.returncode:
        raise UserError(f"python {shlex.join(words)} ended with status {process.returncode}; nothing is written")
    made_on = hardware(torch.device("cuda" if torch.cuda.is_available() else "cpu"))
    record = {
        "command": f"python {shlex.join(words)}",
        "hardware": f"{made_on['hardware']}, {made_on['cores']} cores",
        "versions": {"Python": made_on["python"], "torch": made_on["torch"], **versions()},
        "commit": commit(),
        "date": date.today().isoformat(),
        "tables": tables("".join(lines)),
    }
    path = FOLDER / "results" / f"{arguments.into or arguments.benchmark}.json"
    write_json(path, record)
    print(f"{path} written", file=sys.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="benchmarks.record", description=__doc__.split("\n\n")[0])
    parser.add_argument("--into", help="the name of the file, if a benchmark is kept more than once")
    parser.add_argument("benchmark")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    stage.run(main, parser, checked=False)
