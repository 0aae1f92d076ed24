"""The blocks of README.md and docs/ between the markers `from PATH` and `end`, which are generated from that path.

`make pages` and `make bench` write the blocks.
"""

import csv
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ruamel.yaml import YAML

from tests.imports import ROOT
from transformer.files import atomic

BLOCK = re.compile(r"(<!-- from (\S+) -->\n)(.*?)(<!-- end -->\n)", re.DOTALL)


def written(page: str, root: Path = ROOT) -> str:
    """The text of a page with each block generated again. A block whose path does not exist is left as it is."""

    def block(match: re.Match[str]) -> str:
        source = root / match[2]
        if not source.exists():
            return match[0]
        return match[1] + WRITERS.get(source.name, benchmark)(source, match[3]) + match[4]

    return BLOCK.sub(block, page)


# A back-translation has the same files as a corpus, in its own folder. The `corpus` of a run names one or the other.
NAMES = {"${back_translations}": {"${key}": ("augmented",)}, "${runs}": {"${item.corpus}": ("item", "augmented")}}
NAMES["${searches}"] = NAMES["${runs}"]


def paths(stage: Mapping, *keys: str) -> list[Path]:
    """The paths that a stage declares under `keys`. A path with flags is a mapping. `item` replaces other variables."""
    entries = [entry for key in keys for entry in stage.get("do", stage).get(key, [])]
    texts = [next(iter(entry)) if isinstance(entry, Mapping) else entry for entry in entries]
    for variable, names in NAMES.get(stage.get("foreach", ""), {}).items():
        texts = [text.replace(variable, name) for text in texts for name in names]
    return [Path(re.sub(r"\$\{[\w.]+\}", "item", text)) for text in texts]


def edges(dvc_yaml: str) -> dict[str, list[str]]:
    """For each stage, the stages that read an output of it, a folder around an output or a path in an output."""
    stages = YAML(typ="safe").load(dvc_yaml)["stages"]
    outs = {name: paths(stage, "outs", "metrics", "plots") for name, stage in stages.items()}
    deps = {name: paths(stage, "deps") for name, stage in stages.items()}
    return {
        name: [
            reader
            for reader in stages
            if any(out.is_relative_to(dep) or dep.is_relative_to(out) for out in outs[name] for dep in deps[reader])
        ]
        for name in stages
        if name != "code"  # which all others follow
    }


def graph(dvc_yaml: Path, _: str) -> str:
    found = edges(dvc_yaml.read_text(encoding="utf-8"))
    lines = [f"    {name}-->{' & '.join(readers)}\n" for name, readers in found.items() if readers]
    return f"```mermaid\nflowchart LR\n{''.join(lines)}```\n"


def with_scores(summary: Path, block: str) -> str:
    """Replace BLEU, its interval and the perplexity in the line of each run that the report has. Other lines stay."""
    for row in rows_of(summary):
        keys = [*(f"test sacreBLEU{end}" for end in ("", " low", " high")), "dev PPL"]
        if all(row.get(key) for key in ("run", *keys)):
            bleu, low, high, perplexity = (f"{float(row[key]):.2f}" for key in keys)
            run = rf"{re.escape(row['run'].split()[0])}(?![\w-])"
            line = rf"^((?:\| `)?{run}.*? )[\d.]+ \([\d.]+( to |–)[\d.]+\)([ |]+)[\d.]+"
            block = re.sub(line, rf"\g<1>{bleu} ({low}\g<2>{high})\g<3>{perplexity}", block, flags=re.MULTILINE)
    return block


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown. Columns of numbers align to the right. A column of dashes is left out."""
    chosen = [[head, *cells] for head, *cells in zip(columns, *rows) if {*cells} != {"–"}]
    numbers = [all(re.match(r"[-+<]?\d|–", cell) for cell in cells) for _, *cells in chosen]
    head, *lines = (f"| {' | '.join(line)} |\n".replace("|  |", "| |") for line in zip(*chosen))
    return "".join([head, f"|{'|'.join('---:' if right else '---' for right in numbers)}|\n", *lines])


def benchmark(path: Path, _: str) -> str:
    """The tables of a file of benchmarks/results/, and below them a line that says how they were made."""
    record = json.loads(path.read_text(encoding="utf-8"))
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    made = f"`{record['command']}`; {record['hardware']}; {versions}; commit {record['commit']}; {record['date']}.\n"
    return "\n".join(["", *(table(**each) for each in record["tables"]), made, ""])


def speed(results: Path, _: str) -> str:
    """The README's table of our speed relative to a peer, for a small model and for base."""
    rows = [
        *(
            [f"training{how}, `torch.nn.Transformer`", *ratios([results / name], "torch.nn.Transformer")]
            for how, name in [("", "training.json"), (" in bfloat16", "training-bfloat16.json")]
        ),
        *(
            [f"decoding, {label}", *ratios(sorted(results.glob("decoding*.json")), f"{system}, float32")]
            for label, system in [("Hugging Face `generate`", "Hugging Face generate"), ("CTranslate2", "CTranslate2")]
        ),
    ]
    return table(["", "`tiny` (decoding: `claims`)", "base"], rows)


def ratios(paths: Sequence[Path], system: str) -> list[str]:
    """The fourth cell of the rows of `system`, for the small model and for base. The first cell names the model."""
    tables = [each for path in paths for each in json.loads(path.read_text(encoding="utf-8"))["tables"]]
    of = {row[0].startswith("base"): row[3] for each in tables for row in each["rows"] if row[1] == system}
    return [of.get(False, "–"), of.get(True, "–")]


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def differences(path: Path, _: str) -> str:
    """The README's table of the changes in Table 3 that one of our runs makes as well."""
    columns = ["change", "BLEU, paper", "ours", "perplexity, paper", "ours", "our change"]
    rows = []
    for row in rows_of(path):
        if row["run"]:
            paper, ours = (f"{round(float(row[f'PPL %, {whose}'])):+}%" for whose in ("paper", "ours"))
            bleu = [f"{float(row['BLEU, paper']):+.1f}", difference(row, "BLEU, ours")]
            rows.append([row["the paper's change"], *bleu, paper, ours, row["our change"]])
    return table(columns, rows)


def difference(row: Mapping[str, str], column: str) -> str:
    """A difference with its sign and, if it has one, its interval."""
    score, low, high = (row[f"{column}{end}"] for end in ("", " low", " high"))
    between = f" ({float(low):+.1f} to {float(high):+.1f})" if low else ""
    return f"{float(score):+.1f}{between}"


def claims(path: Path, _: str) -> str:
    """The table of the claims with what our runs found."""
    columns = ["claim", "source", "our change", "BLEU (95%)", "p, Holm", "perplexity", "found"]
    rows = []
    for row in rows_of(path):
        p = "–" if not (value := row["p, Holm"]) else "<0.001" if float(value) < 0.001 else f"{float(value):.3f}"
        known = difference(row, "difference, BLEU"), p, f"{float(row['difference, PPL %']):+.1f}%"
        rows.append([row["claim"], row["source"], row["our change"], *known, row["found"]])
    return table(columns, rows)


def published(path: Path, _: str) -> str:
    """The README's table of a published result on Multi30k and of ours with the same settings and measure."""
    rows = [row for row in rows_of(path) if row["test set"].startswith("multi30k")]
    if any(row["implementation"] == "ours" for row in rows):  # this row is the mean of our seeds
        rows = [row for row in rows if not row["implementation"].startswith("ours, ")]
    head = f"{rows[0]['test set']}, {rows[0]['measure']}"
    cells = []
    for row in rows:
        low, high = (row[f"BLEU {end}"] for end in ("low", "high"))
        between = f" ({float(low):.2f}–{float(high):.2f})" if low else ""
        cells.append([f"{row['implementation']}, {row['source'].split(',')[0]}", f"{float(row['BLEU']):.2f}{between}"])
    return table([head, "BLEU (95%)"], cells)


WRITERS: dict[str, Callable[[Path, str], str]] = {"dvc.yaml": graph, "summary.csv": with_scores, "results": speed} | {
    "table3-differences.csv": differences,
    "claims.csv": claims,
    "toolkits.csv": published,
}
"""The writer of a block, by the last part of its path. It takes the path and the present text. It returns the new text."""

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

if __name__ == "__main__":
    for page in PAGES:
        with atomic(page, "w") as file:
            file.write(written(page.read_text(encoding="utf-8")))
