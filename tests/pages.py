"""The parts of README.md between the markers `from FILE` and `end`, which are written from that file of the project.

`python -m tests.pages` writes them (`make deps`, `make report`, and `make reproduce` at its end).
"""

import csv
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from ruamel.yaml import YAML

from tests.imports import ROOT
from transformer.files import atomic

BLOCK = re.compile(r"(<!-- from (\S+) -->\n)(.*?)(<!-- end -->\n)", re.DOTALL)


def written(page: str, root: Path = ROOT) -> str:
    """The text of a page with each of its blocks written anew from the file that the block names."""

    def block(match: re.Match[str]) -> str:
        source = root / match[2]
        return match[1] + WRITERS[source.name](source.read_text(encoding="utf-8"), match[3]) + match[4]

    return BLOCK.sub(block, page)


def paths(stage: Mapping, *keys: str) -> list[Path]:
    """What a stage declares under `keys`; a path with flags is a mapping of one key. `item` stands for any value."""
    entries = [entry for key in keys for entry in stage.get(key, [])]
    texts = [next(iter(entry)) if isinstance(entry, Mapping) else entry for entry in entries]
    return [Path(re.sub(r"\$\{[\w.]+\}", "item", text)) for text in texts]


def edges(dvc_yaml: str) -> dict[str, list[str]]:
    """For each stage the stages that read what it writes: a file of it, or a folder around or in it."""
    stages = {name: stage.get("do", stage) for name, stage in YAML(typ="safe").load(dvc_yaml)["stages"].items()}
    outs = {name: paths(stage, "outs", "metrics", "plots") for name, stage in stages.items()}
    deps = {name: [path for path in paths(stage, "deps") if path.suffix != ".py"] for name, stage in stages.items()}
    return {
        name: [
            reader
            for reader in stages
            if any(out.is_relative_to(dep) or dep.is_relative_to(out) for out in outs[name] for dep in deps[reader])
        ]
        for name in stages
    }


def graph(dvc_yaml: str, _: str) -> str:
    lines = [f"    {name} --> {' & '.join(readers)}\n" for name, readers in edges(dvc_yaml).items() if readers]
    return f"```mermaid\nflowchart LR\n{''.join(lines)}```\n"


def with_scores(summary: str, block: str) -> str:
    """Replace BLEU, its interval and the perplexity in the line of each run that the report has. Other lines stay."""
    for row in csv.DictReader(summary.splitlines()):
        keys = [*(f"test sacreBLEU{end}" for end in ("", " low", " high")), "dev PPL"]
        if all(row.get(key) for key in ("run", *keys)):
            bleu, low, high, perplexity = (f"{float(row[key]):.2f}" for key in keys)
            line = rf"^((?:\| `)?{re.escape(row['run'].split()[0])}\b.*? )[\d.]+ \([\d.]+( to |–)[\d.]+\)([ |]+)[\d.]+"
            block = re.sub(line, rf"\g<1>{bleu} ({low}\g<2>{high})\g<3>{perplexity}", block, flags=re.MULTILINE)
    return block


WRITERS: dict[str, Callable[[str, str], str]] = {"dvc.yaml": graph, "summary.csv": with_scores}
"""By the name of a file: from its text and the present text of the block to the new text."""

if __name__ == "__main__":
    page = ROOT / "README.md"
    with atomic(page, "w") as file:
        file.write(written(page.read_text(encoding="utf-8")))
