"""DVC's view of the project, for the commands and the Snakefile. The import of DVC takes a second."""

import contextlib
import functools
import os
import sqlite3
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from dvc.dependency import param
from dvc.exceptions import DvcException
from dvc.repo import Repo, lock_repo
from dvc.scm import SCMError
from dvc.stage import PipelineStage
from dvc.utils.serialize import load_path, parse_yaml_for_update
from dvc.utils.strictyaml import YAMLValidationError, determine_linecol

from pipeline import code
from pipeline.running.devices import definitions
from pipeline.running.merges import MENDED
from pipeline.settings.addresses import TEXT, left_beside
from pipeline.settings.score_files import within
from transformer.config.reading import UserError

NEEDS = ("threads", "gpu", "mem_mb", "minutes")


@contextlib.contextmanager
def opened(locked: bool = True) -> Iterator[Repo]:
    """Open the project. If `locked`, wait until no other DVC process writes dvc.lock, which is not written atomically.

    From then on, the stages that this process starts find its Python as `python`, even if the environment is not
    activated, and write standard output and error in order. Raises UserError if DVC cannot read the project, or cannot
    write its databases, for example on a full disk.
    """
    require_files(Path(TEXT))
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    os.environ.update(PATH=path, PYTHONUNBUFFERED="1", PYTHONSAFEPATH="")
    try:
        with Repo(_wait_for_lock=locked) as repo, lock_repo(repo) if locked else contextlib.nullcontext():
            repo.scm_context.quiet = True  # no advice about `git add`
            yield repo
    except SCMError as error:
        raise UserError(f"{error}; clone the project with git, or run `git init` in this folder") from None
    except (DvcException, sqlite3.Error) as error:
        definitions()  # names the line of dvc.yaml that is damaged, which DVC does not
        raise UserError(invalid(error) if isinstance(error, YAMLValidationError) else f"DVC: {error}") from None


def invalid(error: YAMLValidationError) -> str:
    """Return where a file of DVC is not as DVC expects it, with the line, which the message of DVC's error lacks."""
    first = error.exc.errors[0]
    line, _, _ = determine_linecol(parse_yaml_for_update(error.text, error.path), first.path)
    key = ".".join(map(str, first.path)) or "the file"
    return f"{Path(error.path)}, line {line or 1}: {key}: {first.error_message}; {MENDED}"


def require_files(folder: Path) -> None:
    """Raise UserError for what DVC cannot read in a folder: a name that is not UTF-8, a pipe, or a link to nothing."""
    for path in folder.rglob("*"):
        if str(path) != os.fsencode(path).decode(errors="replace"):
            raise UserError(f"{os.fsencode(path)!r}: the name of the file is not UTF-8; rename it")
        if not (path.is_file() or path.is_dir() or left_beside(path)):
            if path.is_symlink():
                raise UserError(f"{path} is a link to a file that is not there; put the file back, or remove the link")
            raise UserError(f"{path} is a pipe, a socket or a device; {folder}/ holds files, so write its content into one")


def require_declared(stages: Iterable[PipelineStage]) -> None:
    """Raise UserError for a stage that lacks a script, an output, or what Snakemake reads in its `meta`."""
    scripts = {"code", *code.scripts()}
    for stage in stages:
        kind = stage.name.partition("@")[0]
        lacking = [f"meta.snakemake.{each}" for each in NEEDS if within(stage.meta, "snakemake", each) is None]
        lacking += [] if stage.outs else ["outs"]
        lacking += [] if kind in scripts else [f'a script with `stage.script(main, "{kind}", ...)` in pipeline/']
        if lacking:
            raise UserError(f"dvc.yaml: the stage {kind} lacks {', '.join(lacking)}; see CONTRIBUTING.md")


def read_settings_once() -> None:
    """Let DVC parse params.yaml once until it changes, not once for each stage, and take a setting from it by its keys.

    The package dpath, which DVC uses, looks at all of params.yaml for each setting.
    """

    @functools.cache
    def loaded(path: str, fs: Any, *_: int) -> Any:
        return load_path(path, fs)

    def load(path: str, fs: Any) -> Any:
        file = os.stat(path)
        return loaded(path, fs, file.st_mtime_ns, file.st_size, file.st_ino)

    param.load_path, param.dpath = load, SimpleNamespace(get=setting)


def setting(settings: Any, path: str, separator: str) -> Any:
    for key in path.split(separator):
        if not isinstance(settings, Mapping):
            raise KeyError(path)
        settings = settings[key]
    return settings


def refresh(repo: Repo) -> None:
    """Record the digests of the code (work/code) if one has changed. Otherwise DVC does not know which stages are stale.

    Raises UserError if a module has a syntax error, and if another stage is running, for which DVC locks work/code.
    """
    code.write()
    if repo.status(["code"]) == {"code": ["always changed"]}:
        return
    try:
        repo.reproduce(["code"], single_item=True)
    except DvcException as error:
        raise UserError(f"the code has changed, and the stage `code` has not recorded it: {error.__cause__}") from None


def code_of(name: str, md5: str) -> str | None:
    """Return the code, as in work/code, that made the outputs of a stage, if DVC has recorded and cached all of them.

    Returns None if dvc.lock has no entry of this stage with an output of this `md5`. That of a clone may have one whose
    outputs were made elsewhere, and are not in this cache.
    """
    if not Path(".dvc").is_dir():
        return None
    with contextlib.suppress(UserError, OSError), opened(locked=False) as repo:
        for stage in repo.index.stages:
            if stage.name == name and md5 in [out.hash_info.value for out in stage.outs] and stage.outs_cached():
                code = next(dep.hash_info.value for dep in stage.deps if dep.def_path.startswith("work/code/"))
                return Path(repo.cache.local.oid_to_path(code)).read_text(encoding="utf-8")
    return None
