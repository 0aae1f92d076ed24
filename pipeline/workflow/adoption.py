"""Decides whether a stage is stale only because of code, and marks such a stage as up to date without running it.

Only dvc.lock records the files and settings from which a stage made its outputs. They are compared with the current ones.
"""

import difflib
import hashlib
import io
import re
import subprocess
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dvc.dependency import ParamsDependency
from dvc.stage import PipelineStage
from dvc.stage.decorators import rwlocked
from dvc.stage.serialize import to_lockfile
from dvc.utils.serialize import dumps_yaml, parse_yaml_for_update

from pipeline.workflow.lock_files import LOCK, keep_or_put_back
from pipeline.workflow.syntax import same_syntax
from transformer.binarised import DESCRIPTION
from transformer.config.model import ModelConfig
from transformer.config.reading import UserError
from transformer.config.training import TrainingConfig
from transformer.config.vocabulary import VocabularyConfig
from transformer.files import atomic, read_json

# The former and the current command that checks params.yaml. Neither changes an output.
CHECKS = ("python -m pipeline.check", "python -m pipeline.commands.check")
ABSENT = {
    "model": ModelConfig.ABSENT,
    "training": TrainingConfig.ABSENT,
    "vocabulary": VocabularyConfig.ABSENT,
}
ALIKE = 0.5  # the least similarity, from 0 to 1, of the old and the new content of a renamed module; as in git


def entry(stage: PipelineStage) -> Mapping[str, Any] | None:
    """Return the stage's entry in dvc.lock, or None if dvc.lock has none."""
    return stage.dvcfile.lockfile_contents.get("stages", {}).get(stage.name)


def is_code(path: str) -> bool:
    return path.endswith(".py")


def code_before(stage: PipelineStage) -> dict[str, str]:
    """Return the md5 of each module that the stage depended on when it made its outputs."""
    return {dep["path"]: dep["md5"] for dep in (entry(stage) or {}).get("deps", []) if is_code(dep["path"])}


def code_now(stage: PipelineStage) -> dict[str, str]:
    return {dep.def_path: dep.get_hash().value for dep in stage.deps if is_code(dep.def_path)}


@rwlocked(read=["deps", "outs"])
def obstacles(stage: PipelineStage) -> list[str]:
    """Return a message for each output, and for each input other than code, that differs from dvc.lock."""
    if (before := entry(stage)) is None:
        return ["dvc.lock has no entry for it"]
    data = [dep for dep in stage.deps if not is_code(dep.def_path) and not isinstance(dep, ParamsDependency)]
    gone = {dep["path"] for dep in before.get("deps", []) if not is_code(dep["path"])} - {dep.def_path for dep in data}
    found = [] if own(before["cmd"]) == own(stage.cmd) else ["its command has changed"]
    found += [f"{path} is no longer a dependency" for path in sorted(gone)]
    changed = {path: state for dep in data for path, state in dep.workspace_status().items()}
    found += [f"{path} is {state}" for path, state in changed.items() if not narrowed(stage, before, path)]
    found += [f"{path} has changed" for path in changed_settings(stage, before)]
    return found + [f"{path} is {state}" for out in stage.outs for path, state in out.workspace_status().items()]


def own(command: str | list[str]) -> list[str]:
    """Return the stage's commands without the check of params.yaml and without the path of the times file."""
    lines_ = [line for line in ([command] if isinstance(command, str) else command) if line not in CHECKS]
    return [re.sub(r" --times \S+", "", line) for line in lines_]


def narrowed(stage: PipelineStage, before: Mapping[str, Any], path: str) -> bool:
    """Return whether `path` is a folder of binarised data whose present files, except DESCRIPTION, are unchanged.

    Sets may have been removed since the stage ran: earlier versions also binarised the test set, which no training
    reads.
    """
    (old,) = [dep["md5"] for dep in before["deps"] if dep["path"] == path] or [""]
    listing = Path(stage.repo.cache.local.path, old[:2], old[2:])
    if not (old.endswith(".dir") and Path(path, DESCRIPTION).is_file() and listing.is_file()):
        return False
    held = {file["relpath"]: file["md5"] for file in read_json(listing)}
    now = {file.name: file for file in Path(path).iterdir() if file.name != DESCRIPTION}
    return bool(now) and all(held.get(name) == md5(file) for name, file in now.items())


def md5(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "md5").hexdigest()


def changed_settings(stage: PipelineStage, before: Mapping[str, Any]) -> list[str]:
    changed = []
    for dep in stage.deps:
        if isinstance(dep, ParamsDependency):
            old, new = before.get("params", {}).get(dep.def_path, {}), dep.read_params()
            changed += old.keys() - new.keys()
            changed += [path for path in new if path not in old or not same_setting(path, old[path], new[path])]
    return sorted(changed)


def same_setting(path: str, old: Any, new: Any) -> bool:
    """Return whether the old and the new value at `path` in params.yaml have the same effect.

    `ABSENT` maps each key that was added later to the value that keeps the earlier behaviour. A new key with this value
    has no effect.
    """
    if not (isinstance(old, Mapping) and isinstance(new, Mapping)):
        return old == new
    of_run = {**ABSENT["model"], **ABSENT["training"]}
    absent = of_run if path.startswith("runs.") else ABSENT.get(path.rpartition(".")[2], {})
    return {key: value for key, value in new.items() if key in old or key not in absent or absent[key] != value} == old


@dataclass(frozen=True)
class Change:
    """A module that differs in more than comments, layout and docstrings.

    `old` is None for an added module, and `new` is None for a removed one. `lines` counts the differing lines.
    """

    old: str | None
    new: str | None
    lines: int

    def __str__(self) -> str:
        path = self.new if self.old == self.new else f"{self.old or '(nothing)'} -> {self.new or '(nothing)'}"
        return f"{path}: {self.lines} {'line differs' if self.lines == 1 else 'lines differ'}"


def code_changes(stage: PipelineStage) -> list[Change]:
    """Return the modules in which the stage's current code differs from the code that made its outputs.

    Raises UserError if git does not have the code that made the outputs.
    """
    before, now = code_before(stage), code_now(stage)
    differing = {path: md5 for path, md5 in before.items() if now.get(path) != md5}
    known = modules_in_git(set(differing.values()))
    if missing := [path for path, md5 in differing.items() if md5 not in known]:
        raise UserError(
            f"{stage.name}: the version of {', '.join(missing)} that made its outputs is not in git, so the code "
            "cannot be compared; run the stage again"
        )
    old = {path: known[md5] for path, md5 in differing.items()}
    new = {path: Path(path).read_bytes() for path, md5 in now.items() if before.get(path) != md5}
    pairs = partners(old, new)
    moved = {module(a): module(b) for a, b in pairs if a and b and a != b}
    return [
        Change(a, b, differing_lines(old[a] if a else b"", new[b] if b else b""))
        for a, b in pairs
        if not (a and b and same_syntax(old[a], new[b], moved))
    ]


def modules_in_git(sums: Collection[str]) -> dict[str, bytes]:
    """Return the contents of the Python files in git's history whose md5 is in `sums`, by md5."""
    try:
        listed = git("rev-list", "--objects", "--all").decode().splitlines()
        names = {line.split(" ")[0] for line in listed if line.endswith(".py")}
        content = io.BytesIO(git("cat-file", "--batch", given="".join(f"{name}\n" for name in names).encode()))
    except (OSError, subprocess.SubprocessError):  # no git, no repository, or a timeout
        return {}
    found = {}
    while head := content.readline():  # git prints for each object: a line (name, type, size), its content, a line feed
        blob = content.read(int(head.split()[-1]))
        content.read(1)
        if (md5 := hashlib.md5(blob, usedforsecurity=False).hexdigest()) in sums:
            found[md5] = blob
    return found


def git(*arguments: str, given: bytes = b"") -> bytes:
    return subprocess.run(["git", *arguments], input=given, capture_output=True, check=True, timeout=60).stdout


def partners(old: Mapping[str, bytes], new: Mapping[str, bytes]) -> list[tuple[str | None, str | None]]:
    """Pair each module with its new version: the module at the same path, or else the most similar added module.

    A module that was removed is paired with None, and None is paired with a module that was added.
    """
    pairs = [(path, path) for path in old if path in new]
    left, right = (sorted(one.keys() - other.keys()) for one, other in ((old, new), (new, old)))
    likeness = [(difflib.SequenceMatcher(None, lines(old[a]), lines(new[b])).ratio(), a, b) for a in left for b in right]
    for ratio, a, b in sorted(likeness, reverse=True):
        if ratio >= ALIKE and a in left and b in right:
            pairs.append((a, b))
            left.remove(a)
            right.remove(b)
    return [*pairs, *((path, None) for path in left), *((None, path) for path in right)]


def module(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def lines(content: bytes) -> list[bytes]:
    return content.split(b"\n")


def differing_lines(old: bytes, new: bytes) -> int:
    """Return the number of lines that were added, removed or replaced."""
    codes = difflib.SequenceMatcher(None, lines(old), lines(new), autojunk=False).get_opcodes()
    return sum(max(b - a, d - c) for tag, a, b, c, d in codes if tag != "equal")


def rewrite(stages: Iterable[PipelineStage]) -> None:
    """Record in dvc.lock that the current code made the outputs of these stages. The caller must hold DVC's lock."""
    content = parse_yaml_for_update(LOCK.read_text(encoding="utf-8"), str(LOCK))
    for stage in stages:
        fill_cache(stage)
        stage.save_deps()
        content["stages"].update(to_lockfile(stage))
    with atomic(LOCK, "w") as file:
        file.write(dumps_yaml(content))
    keep_or_put_back()


@rwlocked(write=["outs"])
def fill_cache(stage: PipelineStage) -> None:
    """Put the stage's outputs into DVC's cache. DVC treats an output that is not in its cache as stale."""
    for out in stage.outs:
        if out.use_cache and out.changed_cache():
            out.save()
            out.commit()
