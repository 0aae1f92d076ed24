"""A copy of the project with stub stages, for tests of Snakemake and DVC.

The copy has the files that the workflow reads. A stub stage writes a digest of its commands, data and parameters to each
of its outputs, all as dvc.yaml declares them. It appends its name to work/ran.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from dvc.dependency import param
from dvc.repo import Repo

from pipeline import code
from pipeline.orchestrating.project import read_settings_once
from tests.support import forked
from tests.support.projects import STAGES, Project, heeding_signals

AS_SCRIPT = """\
if __name__ == "__main__":
    import runpy

    runpy.run_path("stub.py")
    raise SystemExit
"""
STUB = """\
import hashlib, os, re, sys, time
from pathlib import Path
from ruamel.yaml import YAML
from pipeline.running.merges import require_all_whole
from pipeline.settings.check import check
from pipeline.settings.params import load
from transformer.config.reading import UserError

stage_name = os.environ.get("DVC_STAGE", "report")  # `make report` runs without DVC
name, _, key = stage_name.partition("@")
params, dvc = load(), YAML(typ="safe").load(Path("dvc.yaml").read_text())
try:
    check(params)
    require_all_whole()
except UserError as error:
    sys.exit(f"{name}: {error}")
stage = dvc["stages"][name].get("do") or dvc["stages"][name]
block = re.sub(r"\\W", "", dvc["stages"][name].get("foreach", ""))
item = params[block].get(key, {}) if isinstance(params.get(block), dict) else {}

def filled(entry):
    text = next(iter(entry)) if isinstance(entry, dict) else entry
    return re.sub(r"\\$\\{(?:item\\.)?(\\w+)\\}", lambda match: item.get(match[1], key), text)

def setting(place):
    value = params
    for part in place.split("."):
        value = value[part]
    return repr(value)

with open("work/ran", "a") as file:
    file.write(stage_name + "\\n")
if os.environ.get("STUB_FAILS") == name:
    sys.exit(f"{name}: what is wrong, where, and what would be right")
seen = [filled(stage["cmd"])] + [setting(filled(entry)) for entry in stage.get("params", [])]
for dependency in map(Path, map(filled, stage["deps"])):
    files = [path for path in sorted([dependency, *dependency.rglob("*")]) if path.is_file()]
    seen += [f"{path} {path.read_bytes()!r}" for path in files if not str(path).startswith("work/code/")]
digest = int(hashlib.sha256("\\n".join(seen).encode()).hexdigest()[:12], 16)
for out in map(Path, map(filled, [each for key in ("outs", "metrics", "plots") for each in stage.get(key, [])])):
    out = out if out.suffix else out / "made"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(f'{{"digest": {digest}}}\\n')
    if os.environ.get("STUB_HANGS") == name:
        time.sleep(600)
if os.environ.get("STUB_CLOCK"):  # set back by a day: what was made before seems to be from tomorrow
    for stamp in Path("work/.stamps").iterdir():
        os.utime(stamp, (time.time() + 86400,) * 2)
"""


MODEL = "transformer/model.py"
EDITED = Path(".dvc/tmp/edited.json")  # the digests of the code after `change_code`


class StubProject(Project):
    read = 0  # length of the part of work/ran that has been read

    def prepare(self) -> None:
        (self.root / "stub.py").write_text(STUB)
        for stage in STAGES[1:]:  # `code` is no stub
            script = self.root / code.scripts()[stage]
            script.write_text(AS_SCRIPT + script.read_text(encoding="utf-8"), encoding="utf-8")

    def copy(self, root: Path) -> "StubProject":
        subprocess.run(["cp", "-a", self.root, root], check=True)  # half of the time of `copytree`
        project = StubProject(root)
        project.read = self.read
        project.keep_to_itself()
        return project

    def clone(self, root: Path) -> "StubProject":
        """A clone by git, which has no data, with the digests of its code, which take seconds."""
        self.run("git", "clone", "--quiet", str(self.root), str(root))
        (root / code.NOTED.parent).mkdir()
        shutil.copy(self.root / code.NOTED, root / code.NOTED)
        project = StubProject(root)
        project.keep_to_itself()
        return project

    def change_code(self) -> None:
        """Change the meaning of the model, on which the training depends. The digests, which take seconds, are noted."""
        with open(self.root / MODEL, "a", encoding="utf-8") as file:
            file.write("\nA = 1\n")
        if (self.root / EDITED).exists():
            shutil.copy(self.root / EDITED, self.root / code.NOTED)

    def ran(self) -> list[str]:
        """The stages that have run since the last call."""
        log = self.root / "work/ran"
        text = log.read_text()[self.read :] if log.exists() else ""
        names = text[: text.rfind("\n") + 1]
        self.read += len(names)
        return names.split()

    def snakemake(self) -> list[str]:
        self.run("snakemake", "--cores", "2")
        return self.ran()

    @contextlib.contextmanager
    def at_work(self, *command: str, forks: bool = True) -> Iterator[subprocess.Popen]:
        """Start a tool that works on the stage score until the block ends. The tool is then killed.

        With `forks`, the process in the block is not the tool itself, and cannot be sent a signal in its place.
        """
        started = self.command(*command, STUB_HANGS="score")
        if forks:
            started["args"] = (forked.folder() / forked.PROGRAM, *started["args"][1:])
            started["env"] = forked.with_program(started["env"])
        process = subprocess.Popen(
            **started,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
            preexec_fn=heeding_signals,
        )
        try:
            deadline = time.monotonic() + 120
            while "score@demo-tiny" not in self.ran():
                assert process.poll() is None and time.monotonic() < deadline
                time.sleep(0.05)
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()

    def stale(self) -> set[str]:
        """The stages that `dvc status` lists, without `code`, which is always run. DVC runs in this process."""
        with pytest.MonkeyPatch.context() as patch, Repo(str(self.root)) as repo:
            for name in ("load_path", "dpath"):
                patch.setattr(param, name, None)  # to be put back
            read_settings_once()
            names = {name.rpartition(":")[2] for name in repo.status()}  # names are relative to this process's folder
        return names - {"code"}

    def planned(self, *targets: str) -> list[str]:
        """The stages that Snakemake would run, sorted."""
        lines = self.run("snakemake", "--dry-run", *targets).split("\n")
        return sorted(line[5:-1] for line in lines if line.startswith("rule ") and line != "rule all:")
