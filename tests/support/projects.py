"""A copy of the project in a git repository of its own, and commands that run in it."""

import lzma
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Self

from ruamel.yaml import YAML

from pipeline import code
from tests.support import forked

ROOT = Path(__file__).parents[2]
COMPOUND = ROOT / "tests/data/compound-bleu"  # 30 translations, their references, and what Moses' scripts make of both
HYPOTHESES, REFERENCES = ((COMPOUND / name).read_text(encoding="utf-8").split("\n")[:-1] for name in ("hyp.de", "ref.de"))
# Of a process that runs the code of the project in another folder
OF_TESTS = {"PYTHONPATH": str(ROOT), "MLFLOW_TRACKING_URI": "off"}
ENVIRONMENT = os.environ | OF_TESTS
STAGES = tuple(YAML(typ="safe").load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"])

FILES = (
    "params.yaml",
    "studies.yaml",
    "dvc.yaml",
    "Snakefile",
    ".dvcignore",
    ".gitignore",
    "profiles",
    "pipeline",
    "transformer",
    "results/demo-tiny-h1.json",  # of all records, which every stage checks and the report draws
    "text/demo",
)


def demonstration(name: str, number: int) -> list[tuple[str, str]]:
    """The first pairs (English, German) of a set of the demonstration."""
    files = [(ROOT / f"text/demo/{name}.{language}.xz").read_bytes() for language in ("en", "de")]
    return list(zip(*(lzma.decompress(file).decode().splitlines()[:number] for file in files)))


def with_settings(folder: Path, *others: str) -> None:
    """Copy params.yaml, studies.yaml and other files of the project into a folder."""
    for name in ("params.yaml", "studies.yaml", *others):
        shutil.copy(ROOT / name, folder)


def without_git(folder: Path) -> None:
    """Let DVC take a folder for a project."""
    (folder / ".dvc").mkdir()
    (folder / ".dvc/config").write_text("[core]\n    no_scm = true\n    analytics = false\n")


def heeding_signals() -> None:
    """For `preexec_fn`. A background job of a shell starts processes that ignore SIGINT, and `nohup` SIGHUP."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def first(download: dict[str, list[dict]], **pairs: int) -> None:
    """Shorten the sets of a corpus, whose block `download` this is, to their first pairs."""
    for name, number in pairs.items():
        download[name][0]["first"] = number


def module_of(stage: str) -> str:
    """The module of the script of a stage, such as pipeline.train, wherever in pipeline/ it is."""
    return ".".join(code.scripts()[stage].with_suffix("").parts)


class Project:
    forked = False  # tests/conftest.py makes it true

    def __init__(self, root: Path) -> None:
        self.root = root

    @classmethod
    def new(cls, root: Path) -> Self:
        for name in FILES:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
            copy(ROOT / name, root / name)
        (root / ".dvc").mkdir()
        for name in ("config", ".gitignore"):
            shutil.copy2(ROOT / ".dvc" / name, root / ".dvc" / name)
        project = cls(root)
        project.prepare()
        project.keep_to_itself()
        project.run("git", "init", "--quiet")
        project.commit("the project")
        return project

    def prepare(self) -> None:
        """Changes to the copy before the first commit."""

    def keep_to_itself(self) -> None:
        """Keep DVC's cache of file times in the project, not in the folder that all projects of the machine share."""
        (self.root / ".dvc/config.local").write_text(f"[core]\n    site_cache_dir = {self.root / '.dvc/tmp/site'}\n")

    def command(self, *arguments: str, **environment: str) -> dict:
        """Arguments for subprocess that start a command of this environment in the project."""
        if arguments[0] in ("dvc", "snakemake"):
            arguments = (sys.executable, "-m", *arguments)
        # If a stage runs the tests, its DVC variables must not reach the copy. PYTHONDONTWRITEBYTECODE would delay the
        # start of each stage by half a second, because the copy would have no compiled modules.
        left_out = ("DVC_", "SNAKEMAKE_", "STUB_", "PYTHONDONTWRITEBYTECODE")
        clean = {key: value for key, value in os.environ.items() if not key.startswith(left_out)}
        path = os.pathsep.join([str(Path(sys.executable).parent), clean["PATH"]])
        return {"args": arguments, "cwd": self.root, "env": {**clean, "PATH": path, **environment}}

    def run(self, *arguments: str, status: int = 0, stdin: int | None = None, **environment: str) -> str:
        """Run a command, which must exit with `status`. Returns its output, including standard error.

        In tests, DVC, Snakemake and the modules of `pipeline` are forks (tests/support/forked.py).
        """
        command = self.command(*arguments, **environment)
        words = arguments[2:] if arguments[:2] == ("python", "-m") else arguments
        if self.forked and (words[0] in ("dvc", "snakemake") or words[0].startswith("pipeline.")):
            ended, printed = forked.run(words[0], words[1:], command["cwd"], command["env"], stdin)
        else:
            done = subprocess.run(**command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
            # concurrent writes of a progress bar and a line can split a character
            ended, printed = done.returncode, done.stdout.decode("utf-8", errors="replace")
        assert ended == status, f"{arguments}: exit status {ended}\n{printed}"
        return printed

    def commit(self, message: str) -> None:
        self.run("git", "add", "--all")
        who = ("-c", "user.name=a test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false")
        self.run("git", *who, "commit", "--quiet", "--message", message)

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace a text that occurs exactly once in the file."""
        text = (self.root / path).read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{path}: {old!r} stands there {text.count(old)} times"
        (self.root / path).write_text(text.replace(old, new), encoding="utf-8")
