"""Runs a benchmark, prints its tables and keeps them on request, with how they were made.

    python -m benchmarks.record

writes benchmarks/results/README.md, which has the tables of all files there.
"""

import argparse
import importlib.metadata
import json
import re
import shlex
import sys
from collections.abc import Callable, Iterable
from datetime import date
from pathlib import Path
from typing import Any, TypedDict

from pipeline.running import stage
from pipeline.running.hardware import commit, hardware
from transformer.device import device_of
from transformer.files import write_file, write_json

RESULTS = Path(__file__).parent / "results"
PACKAGES = ("numpy", "triton", "sentencepiece", "sacrebleu", "ctranslate2", "transformers", "dvc", "snakemake")


class Table(TypedDict):
    """All cells are strings. A value that was not measured is a dash."""

    columns: list[str]
    rows: list[list[str]]


def shown(table: Table) -> str:
    """The table in Markdown. Columns of numbers align to the right."""
    columns, rows = table["columns"], table["rows"]
    numbers = [all(re.match(r"[-+]?[\d.,]+|–", row[place]) for row in rows) for place in range(len(columns))]
    lines = [columns, ["---:" if right else "---" for right in numbers], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def run(measure: Callable[[argparse.Namespace], Iterable[Table]], parser: argparse.ArgumentParser) -> None:
    """Print the tables that `measure` makes of the arguments. With --record, write them to a file once all are made."""
    parser.add_argument("--record", metavar="NAME", help="write benchmarks/results/NAME.json and the page of all results")

    def main(arguments: argparse.Namespace) -> None:
        tables = []
        for table in measure(arguments):
            print(shown(table), flush=True)
            tables.append(table)
        if arguments.record:
            write_json(RESULTS / f"{arguments.record}.json", {**made_by(parser.prog), "tables": tables})
            write_page(RESULTS)

    stage.run(main, parser, checked=False)


def made_by(prog: str) -> dict[str, Any]:
    here = hardware(device_of("auto"))
    installed = {each.metadata["Name"]: each.version for each in importlib.metadata.distributions()}
    versions = {name: installed[name] for name in PACKAGES if name in installed}
    return {
        "command": f"python -m {prog} {shlex.join(sys.argv[1:])}",
        "hardware": f"{here['hardware']}, {here['cores']} cores, {here['instructions']}",
        "versions": {"python": here["python"], "torch": here["torch"], **versions},
        "commit": commit("benchmarks", ":!benchmarks/results"),
        "date": date.today().isoformat(),
    }


def write_page(folder: Path) -> None:
    """Write README.md with the tables of all JSON files of a folder, and below them how they were made."""
    parts = [
        "# Benchmarks\n\nWritten by `python -m benchmarks.record` from the files beside this page. Ours and its peers take "
        "turns in one run, so compare ratios, not times. Real tokens leave out padding. A dash was not measured. A command "
        "is that of its commit; later code may not have it.\n"
    ]
    for path in sorted(folder.glob("*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
        made = f"`{record['command']}`; {record['hardware']}; {versions}; commit {record['commit']}; {record['date']}.\n"
        parts += [f"## {path.stem}\n", *(shown(table) for table in record["tables"]), made]
    write_file(folder / "README.md", "\n".join(parts))


if __name__ == "__main__":
    write_page(RESULTS)
