"""The commands: a mistake of the user gives one line and exit status 1."""

import json
import re
import shutil
import signal
import subprocess
import sys
from importlib.util import find_spec

import pytest
from ruamel.yaml import YAML

from pipeline import code
from tests.support import in_process
from tests.support.projects import ROOT, STAGES, module_of, with_settings
from transformer.files import write_file

# Arguments that name a file, a folder or a run that does not exist, in a folder that holds params.yaml alone.
WRONG = {
    "pipeline.commands.accept": ["none"],
    "pipeline.commands.evaluate": ["none", "none.en", "none.de"],
    "pipeline.extras.export.__main__": ["none", "out", "--format", "marian"],
    "pipeline.extras.serving.__main__": ["none"],
    "pipeline.commands.plan": ["none"],
    "pipeline.commands.study": ["none"],
    "pipeline.extras.tracking.__main__": ["none"],
    "pipeline.commands.translate": ["none"],
    "benchmarks.decoding": ["none", "none.txt"],
}
WRONG = {
    name: words for name, words in WRONG.items() if find_spec(name.removesuffix(".__main__"))
}  # an extra may be deleted
# These fail if params.yaml is missing. They are started in an empty folder.
WITHOUT_PARAMS = {
    "pipeline.commands.check": [],
    "pipeline.commands.status": [],
    "benchmarks.training": ["--shape", "tiny"],
    "benchmarks.gpu.__main__": ["--part", "train"],
}
READS_NOTHING = {"pipeline.commands.schema", "benchmarks.layers", "benchmarks.record"}


def started(folder: str) -> set[str]:
    """The modules of a folder that are commands."""
    paths = [path for path in (ROOT / folder).rglob("*.py") if '__name__ == "__main__"' in path.read_text(encoding="utf-8")]
    return {path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".") for path in paths}


def test_no_command_is_left_out():
    assert {*WRONG, *WITHOUT_PARAMS, *READS_NOTHING} == started("benchmarks") | {
        name for name in started("pipeline") if name.startswith("pipeline.commands.") or name.endswith(".__main__")
    }


def name_of(command: str) -> str:
    """How a command calls itself."""
    own = {"pipeline.extras.serving.__main__": "page", "pipeline.extras.tracking.__main__": "track"}
    name = own.get(command, command.removesuffix(".__main__"))
    return name if name.startswith("benchmarks") else name.rpartition(".")[2]


def one_line(command: str, printed: str) -> None:
    assert "Traceback" not in printed and printed.count("\n") == 1, printed
    assert re.match(rf"{name_of(command)}: \S", printed)
    assert "none" in printed or "params.yaml" in printed or command == "pipeline.commands.accept"


@pytest.mark.parametrize("command", [*WRONG, *WITHOUT_PARAMS])
def test_what_does_not_exist_is_one_line_and_help_is_no_error_in_a_narrow_terminal(command, tmp_path, monkeypatch):
    if command in WRONG:
        with_settings(tmp_path)
    monkeypatch.setenv("COLUMNS", "1")
    with in_process.inside(tmp_path):
        status, _, errors = in_process.started([command, *(WRONG | WITHOUT_PARAMS)[command]])
        helped, text, said = in_process.started([command, "--help"])
    assert status == 1 and (helped, said) == (0, "") and text.startswith("usage: ")
    one_line(command, errors)


# Python would write the buffered output at the end of the process, when no `except` is left.
SHORT = "import argparse; from pipeline.running import stage; "
SHORT += "stage.run(lambda _: print('done'), argparse.ArgumentParser(prog='made'), checked=False)"
PLAIN = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)}  # without PYTHONUNBUFFERED


# The first command has no docstrings.
@pytest.mark.parametrize("command", ["-OO -m pipeline.commands.study", f'-c "{SHORT}"'])
def test_a_reader_that_stops_reading_is_no_error(command, tmp_path):
    with_settings(tmp_path)
    shell = f"'{sys.executable}' {command} | head -c 0; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", shell], cwd=tmp_path, env=PLAIN, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")


@pytest.mark.parametrize(
    ("name", "words"), {"made": ["-c", SHORT], "study": ["-m", "pipeline.commands.study", "--help"]}.items()
)
def test_a_short_output_that_a_full_disk_does_not_take_is_one_line(name, words):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, *words], env=PLAIN, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (1, f"{name}: [Errno 28] No space left on device\n")


# What a shell, a locale, an interpreter's option, a terminal and a proxy can do to a program
HARD = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "COLUMNS": "1", "TERM": "dumb", "HOME": "/nowhere"}
HARD |= dict.fromkeys(("http_proxy", "https_proxy", "ALL_PROXY"), "nonsense://:x")


# Runs commands, which are given in JSON, as forks of one process that has imported what takes seconds.
FORKS = """
import gc, json, os, runpy, sys, torch, transformer.translator
import pipeline.orchestrating.project, pipeline.running.stage
gc.freeze()  # a collection in a fork would copy the memory of all these modules
for command, *arguments in json.loads(sys.argv[1]):
    if not (fork := os.fork()):
        os.dup2(os.open(f"{command}.errors", os.O_WRONLY | os.O_CREAT), 2)
        sys.argv = [command, *arguments]
        runpy.run_module(command, run_name="__main__", alter_sys=True)
        sys.exit()
    with open(f"{command}.status", "w") as file:
        file.write(str(os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1])))
"""


@pytest.mark.slow
def test_no_command_prints_a_traceback_in_hard_times(tmp_path):
    with_settings(tmp_path)
    calls = json.dumps([[command, *words] for command, words in WRONG.items()])
    line = f"{sys.executable} -s -c '{FORKS}' '{calls}' <&- >&-"
    subprocess.run(["bash", "-c", line], cwd=tmp_path, env=PLAIN | HARD, check=True, stderr=subprocess.PIPE)
    for command in WRONG:
        status, errors = ((tmp_path / f"{command}.{end}").read_text() for end in ("status", "errors"))
        assert status == "1" and errors.count("\n") == 1, f"{command}: {status} {errors}"
        assert errors.partition(": ")[0] in (command.removesuffix(".__main__"), name_of(command)), f"{command}: {errors}"


def test_a_stage_that_dvc_runs_refuses_a_wrong_name_in_one_line_before_it_reads_its_arguments(tmp_path, monkeypatch):
    shutil.copy(ROOT / "dvc.yaml", tmp_path)
    text = (ROOT / "params.yaml").read_text(encoding="utf-8")
    (tmp_path / "params.yaml").write_text(text.replace("\nruns:\n", '\nruns:\n  "-h": {corpus: demo, model: tiny}\n'))
    with in_process.inside(tmp_path):
        write_file(code.FOLDER / "train", code.described("train"))
        monkeypatch.setenv("DVC_STAGE", "train@-h")
        status, _, errors = in_process.started(["pipeline.train", "-h"])
        assert (status, errors.count("\n")) == (1, 1) and errors.startswith("train: params.yaml: runs: '-h'"), errors


@pytest.mark.parametrize("stage", STAGES[1:])
def test_a_folder_for_a_file_and_a_missing_file_are_one_line(stage, tmp_path):
    with_settings(tmp_path)
    (tmp_path / "folder").mkdir()
    definition = YAML(typ="safe").load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"][stage]
    options = re.findall(r"--\w+", definition.get("do", definition)["cmd"])
    block = definition.get("foreach", "")
    named = {"${runs}": ["demo-tiny"], "${corpora_in_use}": ["demo"], "": []}.get(block, ["none"])
    with in_process.inside(tmp_path):
        for place in ("folder", "missing/file"):
            words = [word for option in options for word in (option, place)]
            status, _, errors = in_process.started([module_of(stage), *named, *words])
            assert status in (0, 1) and "Traceback" not in errors, errors
            assert sum(line.startswith(f"{stage}: ") for line in errors.splitlines()) == status, errors
