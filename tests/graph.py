"""The graph of the stages in README.md, drawn from dvc.yaml.

`python -m tests.graph` (`make deps`) writes it between its two markers.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from ruamel.yaml import YAML

from tests.imports import ROOT

BEGIN, END = "<!-- from dvc.yaml, by `make deps` -->\n", "<!-- end -->\n"


# The stages of a back-translation write what the stages of a corpus write, under its own name. A run reads either.
NAMES = {"${back_translations}": {"${key}": ("augmented",)}, "${runs}": {"${item.corpus}": ("item", "augmented")}}


def paths(stage: Mapping, *keys: str) -> list[Path]:
    """What a stage declares under `keys`; a path with flags is a mapping of one key. `item` stands for any other value."""
    entries = [entry for key in keys for entry in stage.get("do", stage).get(key, [])]
    texts = [next(iter(entry)) if isinstance(entry, Mapping) else entry for entry in entries]
    for variable, names in NAMES.get(stage.get("foreach", ""), {}).items():
        texts = [text.replace(variable, name) for text in texts for name in names]
    return [Path(re.sub(r"\$\{[\w.]+\}", "item", text)) for text in texts]


def edges(dvc_yaml: str) -> dict[str, list[str]]:
    """For each stage the stages that read what it writes: a file of it, or a folder around or in it."""
    stages = YAML(typ="safe").load(dvc_yaml)["stages"]
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


def graph(dvc_yaml: str) -> str:
    lines = [f"    {name}-->{' & '.join(readers)}\n" for name, readers in edges(dvc_yaml).items() if readers]
    return f"```mermaid\nflowchart LR\n{''.join(lines)}```\n"


def with_graph(readme: str, dvc_yaml: str) -> str:
    head, _, rest = readme.partition(BEGIN)
    _, _, tail = rest.partition(END)
    assert tail, f"README.md has no block between {BEGIN!r} and {END!r}"
    return head + BEGIN + graph(dvc_yaml) + END + tail


if __name__ == "__main__":
    readme = ROOT / "README.md"
    dvc_yaml = (ROOT / "dvc.yaml").read_text(encoding="utf-8")
    readme.write_text(with_graph(readme.read_text(encoding="utf-8"), dvc_yaml), encoding="utf-8")
