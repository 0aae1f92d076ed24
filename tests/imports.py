"""The code of a stage: the modules of this project that its script imports, directly or indirectly.

`python -m tests.imports` (`make deps`) writes them into dvc.yaml.
"""

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

from ruamel.yaml import YAML

ROOT = Path(__file__).parent.parent
STAGES = tuple(YAML(typ="safe").load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"])

# These modules check settings, show progress, assign GPUs or call MLflow and Slurm. They do not change a result, so an
# edit to one of them makes no stage stale.
CHANGE_NO_RESULT = {
    "pipeline/__init__.py",
    "pipeline/settings/check.py",
    "pipeline/tracking/client.py",
    "pipeline/workflow/devices.py",
    "pipeline/workflow/progress.py",
    "pipeline/workflow/slurm.py",
    "pipeline/workflow/stage.py",
    "transformer/__init__.py",
}


@functools.cache
def imports(path: Path, root: Path = ROOT) -> set[str]:
    """The modules of the project that a file imports anywhere, as paths from the root. Empty modules are omitted."""
    found: set[str] = set()
    for name in imported_names(ast.parse(path.read_text(encoding="utf-8"))):
        parts = name.split(".")
        if parts[0] not in ("pipeline", "transformer"):
            continue
        # The last part may be a module (`from pipeline.settings import params`) or a name that a module defines.
        for length in range(1, len(parts) + 1):
            place = root.joinpath(*parts[:length])
            for module in (place.with_suffix(".py"), place / "__init__.py"):
                if module.is_file() and module.stat().st_size:
                    found.add(module.relative_to(root).as_posix())
    return found


def imported_names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports in this project are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def closure(stage: str, root: Path = ROOT) -> list[str]:
    """The files of the project on which the output of a stage depends. The script of the stage is first."""
    script = f"pipeline/{stage}.py"
    seen, waiting = {script}, [script]
    while waiting:
        for module in imports(root / waiting.pop(), root) - seen - CHANGE_NO_RESULT:
            seen.add(module)
            waiting.append(module)
    return [script, *sorted(seen - {script})]


def with_code(dvc_yaml: str, root: Path = ROOT) -> str:
    """The text of dvc.yaml with the correct code dependencies of each stage, which precede those on data."""
    pattern = re.compile(r"^( +)- pipeline/(\w+)\.py\n(?: +- (?:pipeline|transformer)/[\w/]+\.py\n)*", re.MULTILINE)
    return pattern.sub(lambda m: "".join(f"{m[1]}- {path}\n" for path in closure(m[2], root)), dvc_yaml)


if __name__ == "__main__":
    path = ROOT / "dvc.yaml"
    path.write_text(with_code(path.read_text(encoding="utf-8")), encoding="utf-8")
