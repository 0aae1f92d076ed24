"""Slurm: the requests of the stages, the workers on the nodes and requeued jobs."""

import argparse
import os
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
from ruamel.yaml import YAML
from snakemake_executor_plugin_slurm.submit_string import get_submit_command
from snakemake_executor_plugin_slurm.utils import set_gres_string

from pipeline.orchestrating import slurm
from pipeline.running import stage
from pipeline.settings.machine import machine
from pipeline.settings.params import load
from pipeline.training import nodes
from tests.support.projects import ROOT
from tests.support.refusals import refused
from tests.support.small_run import PATIENCE, Training, saved

TRAIN = "train@demo-tiny"
JOB = {"JobState": "RUNNING", "NodeList": "n[1-2]", "CPUs/Task": "2"}
SRUN = f"""#!{sys.executable}
import os, subprocess, sys

number = next(int(word.partition("=")[2]) for word in sys.argv if word.startswith("--ntasks="))
environment = [{{**os.environ, "SLURM_PROCID": str(rank), "SLURM_LOCALID": "0"}} for rank in range(number)]
tasks = [subprocess.Popen(sys.argv[sys.argv.index("sh"):], env=each) for each in environment]
open("tasks", "w").write(" ".join(str(task.pid) for task in tasks))
sys.exit(max(status if status >= 0 else 128 - status for status in [task.wait() for task in tasks]))
"""
SBATCH = """#!/bin/sh
printf '%s\\n' "$@" > submitted
echo "no more jobs" >&2
exit 1
"""


class FakeSlurm:
    """Substitutes for Slurm's commands. They record how they are called and give fixed answers."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.bin = folder, folder / "bin"
        self.bin.mkdir()
        for command, answer in {"scontrol": "", "sinfo": "main*", "squeue": "", "sacct": ""}.items():
            self.says(command, answer)

    def says(self, command: str, answer: str) -> None:
        self.script(command, f"#!/bin/sh\necho {command} $* >> {self.folder}/calls\ncat << END\n{answer}\nEND\n")

    def script(self, command: str, text: str) -> None:
        (self.bin / command).write_text(text)
        (self.bin / command).chmod(0o755)

    def job(self, **differences: str) -> None:
        facts = " ".join(f"{key}={value}" for key, value in (JOB | differences).items())
        self.script(
            "scontrol",
            f"#!/bin/sh\necho scontrol $* >> {self.folder}/calls\n"
            f"[ $2 = hostnames ] && printf 'n1\\nn2\\n' || echo 'JobId=7 {facts} Comment=rule_train'\n",
        )

    def calls(self) -> list[str]:
        path = self.folder / "calls"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def fake(tmp_path, monkeypatch) -> FakeSlurm:
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path / "bin"), os.environ["PATH"]]))
    return FakeSlurm(tmp_path)


def needs(name: str) -> dict:
    stages = YAML(typ="safe").load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
    return stages[name]["do"]["meta"]["snakemake"]


def submitted(name: str, **differences: object) -> set[str]:
    """The options by which Snakemake's plugin submits a stage, with these settings of `machine`."""
    requests = slurm.requests(
        f"{name}@x", needs(name) | {"threads": 2}, machine({"machine": load()["machine"] | differences})
    )
    threads = requests.pop("threads")

    class Resources(dict):
        __getattr__ = dict.__getitem__

    job = SimpleNamespace(threads=threads, resources=Resources(requests, runtime=requests.pop("minutes")))
    fixed = dict.fromkeys(("run_uuid", "slurm_logfile", "comment_str", "account", "partition", "workdir"), "")
    words = (get_submit_command(job, fixed) + set_gres_string(job)).split()
    return {word for word in words if word.startswith(("--nodes", "--ntasks", "--cpus", "--g"))} | {
        f"{word} {value}" for word, value in pairwise(words) if word in ("-t", "--mem")
    }


@pytest.mark.parametrize(
    "settings, options",
    [
        ({}, {"--gpus=1", "--cpus-per-task=2", "--mem 16000"}),
        ({"processes": 4}, {"--gpus=4", "--cpus-per-task=8", "--mem 64000"}),
        ({"nodes": 2}, {"--nodes=2", "--ntasks=2", "--gres=gpu:1", "--cpus-per-task=2", "--mem 16000"}),
        (
            {"nodes": 2, "processes": 4},
            {"--nodes=2", "--ntasks-per-node=4", "--gres=gpu:4", "--cpus-per-task=2", "--mem 64000"},
        ),
        ({"device": "cpu"}, {"--ntasks=1", "--cpus-per-task=2", "--mem 16000"}),
        ({"device": "cpu", "nodes": 2}, {"--nodes=2", "--ntasks=2", "--cpus-per-task=2", "--mem 16000"}),
    ],
)
def test_a_training_requests_its_nodes_gpus_cpus_memory_and_time(settings, options):
    assert submitted("train", **settings) == options | {"-t 4320"}
    if "device" not in settings:
        assert submitted("decode", **settings) == submitted("decode"), "only trainings use several nodes and processes"
    assert "--gpus=1" in submitted("decode") and "--gpus=1" not in submitted("score")


@pytest.fixture
def stale(project):
    """A project in which only the training and the stages after it are stale."""
    run = "\nruns:\n  demo-tiny: {corpus: demo, model: quick"
    project.edit("params.yaml", f"{run}}}", f"{run}, seed: 2}}")
    return project


def test_the_profile_submits_a_training_that_is_told_before_its_limit_and_queued_again(stale, fake):
    fake.script("sbatch", SBATCH)
    path = os.pathsep.join([str(fake.bin), str(Path(sys.executable).parent), os.environ["PATH"]])
    printed = stale.run("snakemake", "--workflow-profile", "profiles/slurm", TRAIN, status=1, PATH=path)
    assert "no more jobs" in printed
    words = (stale.root / "submitted").read_text().split("\n")
    assert {"--signal=TERM@300", "--requeue", "--gpus=1", "--cpus-per-task=2", "16000", "4320"} <= set(words)
    assert words[words.index("-p") + 1] == "main"
    assert words[words.index("--output") + 1] == str(stale.root / f"work/logs/slurm/rule_{TRAIN}/%j.log")


def test_the_profile_keeps_what_the_default_profile_says_of_the_stamps():
    default, cluster = (YAML(typ="safe").load(ROOT / f"profiles/{name}/config.yaml") for name in ("default", "slurm"))
    del default["cores"]
    assert {key: cluster.get(key) for key in default} == default


MINE = {"SLURM_JOB_ID": "7", slurm.MARK: "1"}


@pytest.mark.parametrize(
    "environment, state, queued",
    [
        (MINE, "RUNNING", True),
        (MINE, "CANCELLED", False),
        (MINE | {"RANK": "0"}, "RUNNING", False),
        ({"SLURM_JOB_ID": "7"}, "RUNNING", False),
        ({}, "RUNNING", False),
    ],
)
def test_only_the_job_of_a_stage_that_nobody_cancelled_is_queued_again(fake, environment, state, queued):
    fake.job(JobState=state)
    assert bool(slurm.requeue(environment)) == queued
    assert ("scontrol requeue 7" in fake.calls()) == queued
    fake.script("scontrol", "#!/bin/sh\necho 'Requested operation is disabled' >&2\nexit 1\n")
    assert "Requested operation is disabled" in slurm.requeue(MINE)


def test_a_stage_that_was_stopped_is_queued_again_and_one_that_failed_is_not(fake, monkeypatch, capsys):
    fake.job()
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.setattr(sys, "argv", ["train"])
    for name, value in MINE.items():
        monkeypatch.setenv(name, value)
    for status, said in ((1, ""), (stage.INTERRUPTED, "train: job 7 is queued again\n")):
        with pytest.raises(SystemExit) as ended:
            stage.run(lambda _, status=status: status, argparse.ArgumentParser("train"), checked=False)
        assert ended.value.code == status and capsys.readouterr().err == said
        assert ("scontrol requeue 7" in fake.calls()) == bool(said)


def test_the_command_of_a_stage_survives_the_signal_that_the_training_handles():
    """Slurm signals all processes of a step. The shell and a child without a handler continue."""
    handler = "import signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(75))\nprint(flush=True)\n"
    handler += "while True: time.sleep(0.1)"  # signal.pause() would wait for ever if the signal came just before it
    between = f"import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', {handler!r}]).returncode)"
    shell = subprocess.Popen(
        ["bash", "-c", f"""{slurm.JOB}"$0" -c "$1"; echo status $?""", sys.executable, between],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    shell.stdout.readline()
    os.killpg(shell.pid, signal.SIGTERM)
    assert shell.stdout.read() == "status 75\n"
    assert shell.wait() == 0


def test_an_allocation_that_does_not_fit_is_refused(fake, monkeypatch):
    """If Slurm names no host and each node took its own instead, each would start a training of its own."""
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    with refused("machine.nodes: 2 needs an allocation of Slurm", "1 is possible here"):
        nodes.start(2, 1)
    fake.job()
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    with refused("machine.nodes is 3, but job 7 has the nodes n1, n2"):
        nodes.start(3, 1)
    fake.says("sinfo", "")
    with refused("sinfo shows no node n1, which this job has"):  # the first node, where worker 0 is
        nodes.start(2, 1)
    fake.script("scontrol", "#!/bin/sh\necho 'Invalid job id specified' >&2\nexit 1\n")
    with pytest.raises(OSError, match="Invalid job id specified"):
        nodes.start(2, 1)


@pytest.mark.more
def test_workers_on_two_nodes_stop_together_and_a_killed_one_ends_the_job(fake, tmp_path, monkeypatch):
    fake.job()
    fake.says("sinfo", "127.0.0.1")
    fake.script("srun", SRUN)
    fake.script("scancel", f"#!/bin/sh\nkill -TERM $(cat {tmp_path}/tasks)\n")
    monkeypatch.setenv("SLURM_JOB_ID", str(os.getpid()))
    training = Training(tmp_path, processes=1, nodes=2)
    try:
        process = training.start()
        saved(process, training.work)
        process.terminate()
        _, output = process.communicate(timeout=PATIENCE)
        assert process.returncode == stage.INTERRUPTED, output
        assert "stopped by SIGTERM at step" in output

        process = training.start()
        while "resuming at step" not in process.stderr.readline():
            assert process.poll() is None
        os.kill(int((tmp_path / "tasks").read_text().split()[1]), signal.SIGKILL)
        _, output = process.communicate(timeout=PATIENCE)
        assert process.returncode == 1
        assert "the training on n1, n2 ended with status 137" in output
    finally:
        training.kill()
