"""A copy of the project whose stages take no time, to try the two orchestrators on.

The copy has all of the project's own files. A stage run as a script writes, into every output that dvc.yaml declares
for it, a digest of the data and the settings that dvc.yaml lets it see, and its name into work/ran.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.imports import ROOT, STAGES

FILES = (
    "params.yaml",
    "dvc.yaml",
    "Snakefile",
    ".dvcignore",
    ".gitignore",
    "profiles",
    "pipeline",
    "transformer",
    "results",
)
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

name, _, key = os.environ["DVC_STAGE"].partition("@")
params, dvc = (YAML(typ="safe").load(Path(path).read_text()) for path in ("params.yaml", "dvc.yaml"))
stage = dvc["stages"][name].get("do") or dvc["stages"][name]
item = params["runs"].get(key, {}) if "runs" in str(dvc["stages"][name].get("foreach")) else {}

def filled(entry):
    text = next(iter(entry)) if isinstance(entry, dict) else entry
    return re.sub(r"\\$\\{(?:item\\.)?(\\w+)\\}", lambda match: item.get(match[1], key), text)

def setting(place):
    value = params
    for part in place.split("."):
        value = value[part]
    return repr(value)

with open("work/ran", "a") as file:
    file.write(os.environ["DVC_STAGE"] + "\\n")
if os.environ.get("STUB_FAILS") == name:
    sys.exit(f"{name}: what is wrong, where, and what would be right")
seen = [filled(stage["cmd"])] + [setting(filled(entry)) for entry in stage.get("params", [])]
for dependency in map(Path, map(filled, stage["deps"])):
    files = [path for path in sorted([dependency, *dependency.rglob("*")]) if path.is_file()]
    seen += [f"{path} {path.read_text()}" for path in files if path.suffix != ".py"]
digest = int(hashlib.sha256("\\n".join(seen).encode()).hexdigest()[:12], 16)
for out in map(Path, map(filled, [*stage.get("outs", []), *stage.get("metrics", [])])):
    out = out if out.suffix else out / "made"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(f'{{"digest": {digest}}}\\n')
    if os.environ.get("STUB_HANGS") == name:
        time.sleep(600)
"""


class StubProject:
    def __init__(self, root: Path) -> None:
        self.root = root

    @classmethod
    def new(cls, root: Path) -> "StubProject":
        """The project's own files, in a git repository of its own."""
        for name in FILES:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
            copy(ROOT / name, root / name)
        (root / ".dvc").mkdir()
        for name in ("config", ".gitignore"):
            shutil.copy2(ROOT / ".dvc" / name, root / ".dvc" / name)
        (root / "stub.py").write_text(STUB)
        for stage in STAGES:
            script = root / f"pipeline/{stage}.py"
            script.write_text(AS_SCRIPT + script.read_text(encoding="utf-8"), encoding="utf-8")
        project = cls(root)
        project.run("git", "init", "--quiet")
        project.commit("the project")
        return project

    def copy(self, root: Path) -> "StubProject":
        shutil.copytree(self.root, root, symlinks=True, dirs_exist_ok=True)
        return StubProject(root)

    def command(self, *arguments: str, **environment: str) -> dict:
        """What to start a process with: this environment's tools, in the project."""
        if arguments[0] in ("dvc", "snakemake"):
            arguments = (sys.executable, "-m", *arguments)
        # DVC's own variables, where the suite is itself run by a stage, are not for the copy
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("DVC_", "SNAKEMAKE_", "STUB_"))}
        path = os.pathsep.join([str(Path(sys.executable).parent), clean["PATH"]])
        return {"args": arguments, "cwd": self.root, "env": {**clean, "PATH": path, **environment}}

    def run(self, *arguments: str, status: int = 0, **environment: str) -> str:
        """What a command printed, errors included; it has to exit with `status`."""
        done = subprocess.run(
            **self.command(*arguments, **environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == status, f"{arguments}: exit status {done.returncode}\n{done.stdout}"
        return done.stdout

    def commit(self, message: str) -> None:
        self.run("git", "add", "--all")
        who = ("-c", "user.name=a test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false")
        self.run("git", *who, "commit", "--quiet", "--message", message)

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace a text that stands in the file just once."""
        text = (self.root / path).read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{path}: {old!r} stands there {text.count(old)} times"
        (self.root / path).write_text(text.replace(old, new), encoding="utf-8")

    def ran(self) -> list[str]:
        """The stages that have run since this was last asked."""
        log = self.root / "work/ran"
        names = log.read_text().split() if log.exists() else []
        log.unlink(missing_ok=True)
        return names

    def snakemake(self) -> list[str]:
        self.run("snakemake", "--cores", "2")
        return self.ran()

    def repro(self) -> list[str]:
        self.run("dvc", "repro")
        return self.ran()

    def planned(self, *targets: str) -> list[str]:
        """The stages that Snakemake would run, sorted."""
        lines = self.run("snakemake", "--dry-run", *targets).split("\n")
        return sorted(line[5:-1] for line in lines if line.startswith("rule ") and line != "rule all:")
