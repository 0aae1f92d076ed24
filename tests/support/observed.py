"""What a stage reads and writes while it runs, and what dvc.yaml declares for it.

A stage is observed from the start to the end of its function `main`, in this process: settings by mappings that note what
is read, files by Python's audit events, and the project's functions by a trace of their calls. Not seen are files that a
library opens without Python (safetensors, which is therefore noted at `safe_open`), and questions whether a file exists.
"""

import argparse
import contextlib
import functools
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch._dynamo  # noqa: F401  by the first step of a training, where the import would be traced
from dvc.dependency.param import ParamsDependency
from dvc.repo import Repo

from pipeline import code
from pipeline.running import stage
from pipeline.settings import params
from tests.support.projects import ROOT
from transformer import checkpoint

WATCHED = ("data", "models", "scores", "results", "reports", "text")  # and studies.yaml
PREFIX = f"{ROOT}{os.sep}"


@dataclass
class Seen:
    """Settings by their paths in params.yaml, and files by their paths in the project."""

    settings: set[str] = field(default_factory=set)
    read: set[str] = field(default_factory=set)
    written: set[str] = field(default_factory=set)
    programs: set[str] = field(default_factory=set)  # that were started
    modules: set[Path] = field(default_factory=set)  # of which a function ran, but for a module that changes no result
    opened_by_listed: set[str] = field(default_factory=set)  # files that modules opened which change no result
    returned_by_listed: dict[str, str] = field(default_factory=dict)  # their functions, and the type that came back
    renamed: list[tuple[str, str]] = field(default_factory=list)

    def settle(self) -> None:
        """Give files with temporary names the names that they got."""
        for files in (self.read, self.written):
            for path in [path for path in files if path.endswith(".partial") or ".partial/" in path]:
                files.remove(path)
                for old, new in self.renamed:
                    if path == old or path.startswith(f"{old}/"):
                        path = new + path[len(old) :]
                files.add(path)


WATCHING: list[Seen] = []  # what is being observed, at most one
BOTTOM: list[FrameType] = []  # the frame that called `main`


def module_of(frame: FrameType) -> Path | None:
    """The module of the project whose code a frame runs."""
    return module_at(frame.f_code.co_filename)


@functools.cache
def module_at(name: str) -> Path | None:
    within = name.startswith((f"{PREFIX}pipeline", f"{PREFIX}transformer")) and name.endswith(".py")  # no templates
    return Path(name[len(PREFIX) :]) if within else None


def by_listed(frame: FrameType | None) -> bool:
    """Whether a module that changes no result has called this frame, or is its own."""
    while frame is not None and frame is not BOTTOM[-1]:
        if module_of(frame) in code.CHANGE_NO_RESULT:
            return True
        frame = frame.f_back
    return False


class Noted(dict):
    """A mapping of params.yaml. It notes each value that is read, and itself if somebody asks for all its keys."""

    def __init__(self, content: dict, path: str = "") -> None:
        self.path = path
        super().__init__({key: self.within(key, value) for key, value in content.items()})

    def within(self, key: str, value: Any) -> Any:
        return Noted(value, f"{self.path}.{key}".lstrip(".")) if isinstance(value, dict) else value

    def note(self, key: str | None = None) -> None:
        path = self.path if key is None else f"{self.path}.{key}"
        if WATCHING and self.path and not by_listed(sys._getframe(2)):
            WATCHING[-1].settings.add(path)

    def __getitem__(self, key: str) -> Any:
        value = super().__getitem__(key)
        if not isinstance(value, Noted):
            self.note(key)
        return value

    def get(self, key: str, default: Any = None) -> Any:
        return self[key] if key in self else default  # noqa: SIM401  which would call this function

    def pop(self, key: str, *default: Any) -> Any:
        value = self.get(key)
        return super().pop(key, *default) if value is None else (super().pop(key), value)[1]

    def __iter__(self) -> Iterator[str]:
        self.note()
        return super().__iter__()

    def keys(self) -> Any:
        return dict.fromkeys(self).keys()

    def items(self) -> Any:
        return [(key, self[key]) for key in self]

    def values(self) -> Any:
        return [self[key] for key in self]

    def __or__(self, other: Any) -> Any:
        return {**self, **other}

    def __ror__(self, other: Any) -> Any:
        return {**other, **self}

    def __repr__(self) -> str:
        return repr({**self})


def hook(event: str, arguments: tuple) -> None:
    if not WATCHING or event not in ("open", "os.rename", "os.link", "subprocess.Popen"):
        return
    seen = WATCHING[-1]
    if event == "subprocess.Popen":
        seen.programs.add(os.path.basename(arguments[1][0]))
    elif event == "open":
        path, mode, flags = arguments
        if not isinstance(path, int) and not os.path.isdir(path):
            writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) if mode is None else set(mode) & {*"wax+"}
            opened(path, seen.written if writes else seen.read)
    else:
        old, new = map(local, arguments[:2])
        if event == "os.rename":
            seen.renamed.append((old, new))
            opened(new, seen.written)
        else:
            opened(old, seen.read)
            opened(new, seen.written)


def local(path: Any) -> str:
    return os.path.relpath(os.path.abspath(os.fsdecode(path)))


def opened(path: Any, files: set[str]) -> None:
    path = local(path)
    if path.split(os.sep)[0] in (*WATCHED, "studies.yaml"):
        files.add(path)
        if by_listed(sys._getframe(2)):
            WATCHING[-1].opened_by_listed.add(path)


def trace(frame: FrameType, event: str, _: Any) -> Callable | None:
    """Note the modules whose functions run, and what comes back from those that change no result."""
    module = module_at(frame.f_code.co_filename)
    if module is None or module in WATCHING[-1].modules:
        return None
    listed, caller = module in code.CHANGE_NO_RESULT, frame.f_back
    if listed and caller is not BOTTOM[-1] and not by_listed(caller):

        def returned(frame: FrameType, event: str, value: Any) -> Callable:
            if event == "return" and value is not None:
                WATCHING[-1].returned_by_listed[f"{module}: {frame.f_code.co_qualname}"] = type(value).__name__
            return returned

        frame.f_trace_lines = False
        return returned
    if not listed and not by_listed(caller):
        WATCHING[-1].modules.add(module)
    return None


@contextlib.contextmanager
def observing() -> Iterator[list[Seen]]:
    """Observe each stage that `stage.run` starts in this process while the block runs, in the order of their starts.

    Calls are traced in the first stage of each kind, but not in `report`, whose libraries make millions of them.
    """
    found: list[Seen] = []
    kinds = {"report"}
    run, parse, safe_open = stage.run, params.parse, checkpoint.safe_open
    for script in code.scripts().values():
        code.closure(script)  # kept by the module: in a traced stage, it would take four times as long

    def observed(main: Callable, parser: argparse.ArgumentParser, **options: Any) -> None:
        def watched(*given: Any) -> Any:
            found.append(Seen())
            WATCHING.append(found[-1])
            BOTTOM.append(sys._getframe())
            measuring = sys.gettrace()  # coverage
            if parser.prog not in kinds:
                sys.settrace(trace)
            kinds.add(parser.prog)
            try:
                return main(*given)
            finally:
                sys.settrace(measuring)
                WATCHING.pop().settle()
                BOTTOM.pop()

        run(watched, parser, **options)

    def noting(text: str, path: Path = params.PARAMS) -> dict[str, Any]:
        content = parse(text, path)
        return Noted(content) if path == params.PARAMS else content

    def noting_open(path: Any, *arguments: Any, **options: Any) -> Any:
        hook("open", (path, "rb", 0))
        return safe_open(path, *arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stage, "run", observed)
        patch.setattr(params, "parse", noting)
        patch.setattr(checkpoint, "safe_open", noting_open)
        yield found


sys.addaudithook(hook)  # Python has no way to remove it


def declared() -> dict[str, dict[str, list[str]]]:
    """The params, deps and outs of each stage in the current folder, resolved by DVC, each in the order of dvc.yaml."""
    with Repo() as repo:
        return {
            one.name: {
                "params": [path for each in one.deps if isinstance(each, ParamsDependency) for path in each.params],
                "deps": [each.def_path for each in one.deps if not isinstance(each, ParamsDependency)],
                "outs": [each.def_path for each in one.outs],
            }
            for one in repo.index.stages
        }
