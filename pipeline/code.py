"""Write a digest of the code of each stage, so that only a change of its meaning makes the stage stale.

    python -m pipeline.code

Reads pipeline/ and transformer/. Writes work/code/STAGE, on which the stage depends in dvc.yaml: a line for each module
that the stage's script imports, directly or indirectly, with a digest of the module's syntax tree. Comments, docstrings,
layout and positions are not part of the digest. The files in the folder `templates` beside an imported module are digested
as bytes. `code` has no other settings and takes about a second.
"""

import ast
import functools
import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from transformer.config.reading import UserError
from transformer.files import atomic_folder

ROOT = Path(__file__).parents[1]
FOLDER = Path("work/code")
PACKAGES = ("pipeline", "transformer")

# These modules check settings, show progress, assign GPUs or call MLflow and Slurm. They do not change a result, so an
# edit to one of them, or to a module that only they import, makes no stage stale.
CHANGE_NO_RESULT = {
    Path("pipeline/__init__.py"),
    Path("pipeline/code.py"),
    Path("pipeline/settings/check.py"),
    Path("pipeline/tracking/client.py"),
    Path("pipeline/workflow/devices.py"),
    Path("pipeline/workflow/progress.py"),
    Path("pipeline/workflow/slurm.py"),
    Path("pipeline/workflow/stage.py"),
    Path("pipeline/workflow/unchanged.py"),
    Path("transformer/__init__.py"),
}


def scripts() -> list[str]:
    """Return the names of the stages that have a script, which are all stages except `code`."""
    return sorted(path.stem for path in (ROOT / "pipeline").glob("[!._]*.py") if path.stem != "code")


def described(script: str) -> str:
    """Return the content of work/code/SCRIPT for the present code. Raises UserError if a module has a syntax error."""
    modules = closure(script)
    digests = {path: digest_of((ROOT / path).read_bytes(), path) for path in modules}
    for folder in {ROOT / path.parent / "templates" for path in modules}:
        for path in folder.glob("[!.]*[!~]"):  # hidden files and backups belong to editors and operating systems
            digests[path.relative_to(ROOT)] = hashlib.sha256(path.read_bytes()).hexdigest()
    return "".join(f"{digests[path]}  {path.as_posix()}\n" for path in sorted(digests))


def closure(script: str) -> set[Path]:
    """Return the script of a stage and the modules on which its result depends."""
    seen = {Path("pipeline", f"{script}.py")}
    waiting = list(seen)
    while waiting:
        path = waiting.pop()
        found = imports((ROOT / path).read_bytes(), path) - seen - CHANGE_NO_RESULT
        seen |= found
        waiting += found
    return seen


@functools.cache
def tree(content: bytes, path: Path) -> ast.Module:
    try:
        return ast.parse(content)
    except SyntaxError as error:
        raise UserError(f"{path}, line {error.lineno}: {error.msg}") from None


@functools.cache
def imports(content: bytes, path: Path) -> set[Path]:
    """Return the modules of the project that a module imports anywhere. Empty modules are left out."""
    found: set[Path] = set()
    for name in imported_names(tree(content, path)):
        parts = name.split(".")
        # The last part may be a module (`from pipeline.settings import params`) or a name that a module defines.
        for length in range(1, len(parts) + 1) if parts[0] in PACKAGES else ():
            place = Path(*parts[:length])
            modules = (place.with_suffix(".py"), place / "__init__.py")
            found |= {module for module in modules if (ROOT / module).is_file() and (ROOT / module).stat().st_size}
    return found


def imported_names(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports in this project are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@functools.cache
def digest_of(content: bytes, path: Path) -> str:
    return hashlib.sha256(repr(meaning(tree(content, path))).encode()).hexdigest()


def meaning(node: Any) -> Any:
    """Return a syntax tree as nested tuples, without docstrings and positions.

    Fields that are None or an empty list are left out. Python 3.12 and 3.13 added such fields, so all versions agree.
    """
    if isinstance(node, list):
        return tuple(meaning(each) for each in node if not is_text(each))
    if not isinstance(node, ast.AST):
        return node
    fields = ((name, meaning(value)) for name, value in ast.iter_fields(node))
    return type(node).__name__, *(field for field in fields if field[1] not in (None, ()))


def is_text(node: Any) -> bool:
    """Return whether a statement is only a string, as a docstring is."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def changed(before: str, now: str) -> list[str]:
    """Return the files whose lines differ between two texts of `described`."""
    return sorted({line.partition("  ")[2] for line in set(before.splitlines()) ^ set(now.splitlines())})


def write() -> None:
    """Write work/code, unless it is current. Commands that show what is stale call it, too: DVC then compares this code.

    Raises UserError if a module has a syntax error.
    """
    texts = {script: described(script) for script in scripts()}
    if texts != {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*")}:
        with atomic_folder(FOLDER) as folder:
            for script, text in texts.items():
                (folder / script).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    try:
        write()
    except (UserError, OSError) as error:
        sys.exit(f"code: {error}")
