"""Write a digest of the code of each stage, so that only a change of its meaning makes the stage stale.

    python -m pipeline.code

Reads pipeline/ and transformer/. Writes work/code/STAGE, on which the stage depends. Its lines are digests of
the meaning of the modules (running/meaning.py) that the stage's script imports or names, directly or indirectly. The
first line is the digest of which module imports which. No line has a path, so a moved module makes no stage stale. The
files in the folder `templates` beside a module are digested as bytes. The version of a library has a line if the library
makes bytes of the stage. `code` has no other settings and takes about a second.
"""

import ast
import functools
import hashlib
import json
import re
import sys
from importlib import metadata
from pathlib import Path

from pipeline.running.meaning import Meaning
from transformer.config.reading import UserError
from transformer.files import atomic_folder, write_file

ROOT = Path(__file__).parents[1]
FOLDER = Path("work/code")
NOTED = Path("work/.code.json")
PACKAGES = ("pipeline", "transformer")
CALLED = re.compile(rb"^    stage\.script\(\s*[\w.]+,\s*[\"'](\w+)", re.MULTILINE)

# An update of these libraries may change what they return. A stage that imports one depends on its version. The versions
# of torch and numpy are recorded with the times of a run: an update of them should not cost days of training.
LIBRARIES = ("sacrebleu", "sacremoses", "sentencepiece")

# These modules check settings, show progress, assign GPUs or call followers and Slurm. They do not change a result, so an
# edit to one of them, or to a module that only they import, makes no stage stale.
CHANGE_NO_RESULT = {
    Path("pipeline/__init__.py"),
    Path("pipeline/code.py"),
    Path("pipeline/settings/check.py"),
    Path("pipeline/running/devices.py"),
    Path("pipeline/running/followers.py"),
    Path("pipeline/running/progress.py"),
    Path("pipeline/orchestrating/slurm.py"),
    Path("pipeline/running/stage.py"),
    Path("pipeline/running/unchanged.py"),
    Path("transformer/__init__.py"),
}


def scripts() -> dict[str, Path]:
    """Return the script of each stage besides `code`: the module that calls `stage.script` with the stage's name.

    It may be in any folder. dvc.yaml also names it, but DVC does not allow a stage to depend on that file. Raises UserError
    if two modules give the same name, as a copy of a script does: the digest could be that of the copy.
    """
    found = dict[str, Path]()
    for path in sorted(existing()):
        if called := CALLED.search((ROOT / path).read_bytes()):
            name = called[1].decode()
            if found.setdefault(name, path) != path:
                raise UserError(f"{found[name]} and {path} are both scripts of the stage {name}; move one out of pipeline/")
    return found


def described(stage: str) -> str:
    """Return the content of work/code/STAGE for the present code. Raises UserError if a module has a syntax error."""
    return text(lines(scripts()[stage]))


def text(about: list[tuple[str, str]]) -> str:
    return "".join(f"{line}\n" for line, _ in about)


def lines(script: Path) -> list[tuple[str, str]]:
    """Return the lines about a stage with this script, each with the name of what it digests."""
    modules = closure(script)
    found = [(meaning.own, path.as_posix()) for path, meaning in modules.items()]
    for folder in {ROOT / path.parent / "templates" for path in modules}:
        for path in folder.glob("[!.]*[!~]"):  # hidden files and backups belong to editors and operating systems
            found.append((hashed(path.name, path.read_bytes()), path.relative_to(ROOT).as_posix()))
    imported = {name for meaning in modules.values() for name in meaning.libraries}
    found += [(f"{library} {version(library)}", library) for library in LIBRARIES if library in imported]
    return [(structure(modules, script), "imports"), *sorted(found)]


def closure(script: Path) -> dict[Path, Meaning]:
    """Return the script of a stage and the modules on which its result depends, with their meanings."""
    known, seen, waiting = existing(), dict[Path, Meaning](), {script}
    while waiting:
        path = waiting.pop()
        seen[path] = meaning_of((ROOT / path).read_bytes(), path, known)
        waiting |= imports(seen[path], known) - seen.keys() - CHANGE_NO_RESULT
    return seen


def existing() -> frozenset[Path]:
    """Return the modules of the project. Hidden files and folders belong to editors."""
    paths = (path.relative_to(ROOT) for package in PACKAGES for path in (ROOT / package).rglob("[!.]*.py"))
    return frozenset(path for path in paths if not any(part.startswith(".") for part in path.parts))


def imports(module: Meaning, known: frozenset[Path]) -> set[Path]:
    """Return the modules of the project that a module imports or names anywhere. Empty modules are left out."""
    named = {named for block in module.references for named, _, _ in block}
    packages = {package / "__init__.py" for each in named for package in each.parents} & known
    return {each for each in named | packages if (ROOT / each).stat().st_size}


def structure(modules: dict[Path, Meaning], script: Path) -> str:
    """Return the digest of which module of a closure imports which. It does not depend on their paths.

    A module stands in it by its digest. If several modules have equal digests, what they import tells them apart, and so
    on. A round therefore digests each module again, with the digests of what it names. There are enough rounds also for
    modules that import each other.
    """
    digests = {path: meaning.own for path, meaning in modules.items()}
    for _ in range(1 + len(digests) - len(set(digests.values()))):
        blocks = {
            path: [sorted((digests.get(each, ""), *names) for each, *names in block) for block in meaning.references]
            for path, meaning in modules.items()
        }
        digests = {path: hashed(digests[path], blocks[path]) for path in modules}
    return hashed(digests[script], sorted(digests.values()))


def hashed(*values: object) -> str:
    return hashlib.sha256(repr(values).encode()).hexdigest()


def version(library: str) -> str:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:  # only some languages need sacremoses
        return "is not installed"


@functools.cache
def meaning_of(content: bytes, path: Path, known: frozenset[Path]) -> Meaning:
    def found(name: str) -> tuple[list[Path], str]:
        """Return the modules that a dotted name or a pattern such as `pipeline.extras.*.section` names."""
        parts = name.split(".")
        if parts[0] not in PACKAGES or len(parts) < 2 or not re.fullmatch(r"[\w.*]+", name):
            return [], ""
        if "*" in name:
            return sorted(each for each in known if each.match(f"{'/'.join(parts)}.py")), ""
        for length in (len(parts), len(parts) - 1):  # the last part may be a name that a module defines
            for place in (Path(*parts[:length]).with_suffix(".py"), Path(*parts[:length], "__init__.py")):
                if place in known:
                    return [place], ".".join(parts[length:])
        return [], ""

    try:
        return Meaning(ast.parse(content), found)
    except SyntaxError as error:
        raise UserError(f"{path}, line {error.lineno}: {error.msg}") from None


def changed(before: str, stage: str) -> list[str]:
    """Return the names of what differs between a text of `described` and the present code of the stage.

    A module that is no longer imported is not named, but the module that imported it is.
    """
    now, known = lines(scripts()[stage]), set(before.splitlines())
    named = sorted({name for line, name in now[1:] if line not in known})
    return named or ["imports"] * (before != text(now))


def write() -> None:
    """Write work/code, unless it is current. Commands that show what is stale call it, too: DVC then compares this code.

    Raises UserError if a module has a syntax error.
    """
    texts = current()
    if texts != {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*")}:
        with atomic_folder(FOLDER) as folder:
            for stage, content in texts.items():
                (folder / stage).write_text(content, encoding="utf-8")


def current() -> dict[str, str]:
    """Return what `described` returns for each stage. Syntax trees take a second, so a file keeps it."""
    paths = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*"))
    files = [(str(path.relative_to(ROOT)), path.read_bytes()) for path in paths if path.suffix != ".pyc" and path.is_file()]
    key = hashed(sys.version, *map(version, LIBRARIES), files)
    try:
        known, texts = json.loads(NOTED.read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError):
        known = ""
    if known != key:
        texts = {stage: text(lines(script)) for stage, script in scripts().items()}
        write_file(NOTED, json.dumps([key, texts]))
    return texts


if __name__ == "__main__":
    try:
        write()
    except (UserError, OSError) as error:
        sys.exit(f"code: {error}")
