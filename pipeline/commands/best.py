"""Print the best trial of a search as a line of `runs`. With --select, also add it to params.yaml.

python -m pipeline.commands.best NAME              prints the line
python -m pipeline.commands.best NAME --select     also adds it to `runs`, as NAME-best

Reads scores/searches/NAME.json or, without it, the record results/searches/NAME.json.
"""

import argparse
import re
import sys
from pathlib import Path
from typing import Any

from pipeline.commands.status import not_done
from pipeline.commands.study import BLOCK, with_blocks
from pipeline.settings import params
from pipeline.settings.check import check
from pipeline.settings.score_files import mapping, within
from pipeline.settings.searches import line
from pipeline.workflow import stage
from transformer.config.reading import UserError
from transformer.files import atomic, read_json

FOLDERS = (Path("scores/searches"), Path("results/searches"))


def best_run(name: str) -> dict[str, Any]:
    """Return the entry of `runs` that the search `name` found."""
    paths = [folder / f"{name}.json" for folder in FOLDERS]
    for path in paths:
        if path.is_file():
            return dict(mapping(within(read_json(path), "best", "run"), f"{path}: best.run"))
    known = sorted({*params.load()["searches"], *(path.stem for path in FOLDERS[1].glob("*.json"))})
    params.require_named(name, known, f"a search of params.yaml or of {FOLDERS[1]}")
    raise UserError(f"{name}: neither {paths[0]} nor {paths[1]} exists; `snakemake search@{name}` creates the first")


def with_run(text: str, name: str, run: dict[str, Any]) -> str:
    """Return the text of params.yaml with this entry of `runs`. Raises UserError if the result is invalid.

    A new entry becomes the last line of the block. If there is an entry with the same name, or the block is in flow style
    (`runs: {...}`), the block is written anew, without its comments.
    """
    runs = params.parse(text)["runs"]
    found = re.search(BLOCK.format(key="runs"), text, re.MULTILINE)
    # No match for a block in flow style, `runs: {...}`.
    first = found and re.match(r"runs:[ \t]*(?:#[^\n]*)?\r?\n(?:[ \t]*(?:#[^\n]*)?\r?\n)*([ \t]+)", found[0])
    if name in runs or not found or not first:
        return with_blocks(text, {"runs": {**runs, name: run}})
    end = found.start() + len(found[0].rstrip())
    text = f"{text[:end]}\n{first[1]}{line(name, run)}{text[end:]}"
    check(params.parse(text))
    return text


def main(arguments: argparse.Namespace) -> None:
    run, added = best_run(arguments.name), f"{arguments.name}-best"
    made_here = FOLDERS[0] / f"{arguments.name}.json"
    for stale in not_done(arguments.name).values() if made_here.is_file() else []:
        print(f"best: {stale}; {made_here} may be of other settings", file=sys.stderr)
    print(line(added, run))
    if arguments.select:
        path = params.PARAMS
        with atomic(path.resolve()) as file:  # a link stays a link
            file.write(with_run(params.text_of(), added, run).encode("utf-8"))
        print(f"{path}: {added} is added to runs; `snakemake --cores all` trains it")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="best", description=__doc__.split("\n\n")[0])
    parser.add_argument("name", help="a search of params.yaml, or of results/searches")
    parser.add_argument("--select", action="store_true", help="add the line to `runs` in params.yaml")
    stage.run(main, parser)
