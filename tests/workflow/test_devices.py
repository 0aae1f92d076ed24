"""Several GPUs on one machine: each stage uses its own. CUDA_VISIBLE_DEVICES simulates GPUs that do not exist."""

import copy
import os
import re
import subprocess
import sys
import tempfile

import pytest
import torch
from dvc.repo import Repo
from ruamel.yaml import YAML

from pipeline.running import devices, hardware, quota
from pipeline.settings.machine import machine
from tests.support.projects import ROOT, STAGES, without_git
from tests.support.stubs import StubProject

CLAIM = """
import os, sys
from pipeline.running import devices
devices.claim(int(sys.argv[1]))
print(os.environ["CUDA_VISIBLE_DEVICES"], flush=True)
sys.stdin.read()
"""
# A stub training waits until another training runs at the same time, on another GPU if there are GPUs.
RAN = 'with open("work/ran"'
MEETING = f"""
from pipeline.running import devices

devices.claim_for("train", params)
Path("work/claims").mkdir(exist_ok=True)
(Path("work/claims") / (os.environ["CUDA_VISIBLE_DEVICES"] or str(os.getpid()))).touch()  # the CPU has no number
deadline = time.monotonic() + 300
while len(list(Path("work/claims").iterdir())) < 2:
    assert time.monotonic() < deadline, "no other training runs at the same time, or it has the same GPU"
    time.sleep(0.05)
{RAN}"""


@pytest.fixture(autouse=True)
def own_locks(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.mark.parametrize(
    ("value", "gpus"),
    [
        ("0,1", ["0", "1"]),
        ("3, GPU-8932f937-d72c,MIG-GPU-8932/1/0", ["3", "GPU-8932f937-d72c", "MIG-GPU-8932/1/0"]),
        ("", []),
        ("-1", []),
        ("NoDevFiles", []),
        ("1,-1,2", ["1"]),  # CUDA ignores what follows an invalid entry
    ],
)
def test_the_visible_gpus_are_those_that_cuda_would_use(monkeypatch, params, value, gpus):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
    assert devices.visible() == gpus
    assert devices.usable(params) == gpus
    assert devices.usable({**params, "machine": {**params["machine"], "device": "cpu"}}) == []


class Claimer:
    """A process that has claimed GPUs."""

    def __init__(self, number: int, gpus: str) -> None:
        pipes = {name: subprocess.PIPE for name in ("stdin", "stdout", "stderr")}
        environment = {**os.environ, "CUDA_VISIBLE_DEVICES": gpus}
        arguments = [sys.executable, "-c", CLAIM, str(number)]
        self.process = subprocess.Popen(arguments, cwd=ROOT, env=environment, text=True, **pipes)
        self.gpus = self.process.stdout.readline().strip()

    def end(self) -> str:
        """Kill the process. Returns what it printed to standard error."""
        self.process.kill()
        return self.process.communicate()[1]


def test_processes_claim_different_gpus_and_a_killed_one_leaves_its_own_free():
    first, second = Claimer(1, "0,1,2"), Claimer(2, "0,1,2")
    third = Claimer(1, "0,1,2")
    assert (first.gpus, second.gpus, third.gpus) == ("0", "1,2", "0")
    assert first.end() == second.end() == ""
    assert third.end() == "warning: GPU 0: shared with another stage, because no other GPU is free\n"
    fourth = Claimer(3, "1,0,2")
    assert fourth.gpus == "1,0,2", "the order in which the user named them"
    assert fourth.end() == ""


@pytest.mark.parametrize(
    ("setting", "environment"), [({"device": "cpu"}, {}), ({}, {"LOCAL_RANK": "1"}), ({}, {"CUDA_VISIBLE_DEVICES": ""})]
)
def test_a_stage_on_a_cpu_and_a_worker_of_a_training_claim_nothing(params, tmp_path, monkeypatch, setting, environment):
    monkeypatch.chdir(ROOT)
    for name, value in {"CUDA_VISIBLE_DEVICES": "0,1", **environment}.items():
        monkeypatch.setenv(name, value)
    before = dict(os.environ)
    devices.claim_for("train", {**params, "machine": {**params["machine"], **setting}})
    assert dict(os.environ) == before and not list(tmp_path.iterdir())


def test_a_stage_claims_what_dvc_yaml_states(params, monkeypatch):
    monkeypatch.chdir(ROOT)
    eight = {**params, "machine": {**params["machine"], "processes": 8}}
    assert [devices.needed(name, eight) for name in ("train", "decode", "score", "record")] == [8, 1, 0, 0]


def test_times_state_all_gpus_of_a_training_and_a_stage_computes_with_its_threads(params, monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "NVIDIA H100")
    assert [hardware.hardware(torch.device(kind), 4)["gpus"] for kind in ("cuda", "cpu")] == [4, 0]
    config = machine({"machine": {**params["machine"], "device": "cpu"}})
    assert hardware.torch_device(config, threads=3).type == "cpu" and torch.get_num_threads() == 3


@pytest.fixture
def two_runs(project) -> StubProject:
    run = "  demo-tiny: {corpus: demo, model: quick}\n\ncorp"
    project.edit("params.yaml", run, run.replace("\n\n", "\n  other: {corpus: demo, model: quick, h: 1}\n\n"))
    return project


@pytest.mark.parametrize(("cores", "gpus", "threads"), [("4", "4,7", ""), ("2", "", ", threads: 1")])
def test_two_trainings_run_at_the_same_time_on_two_gpus_or_on_two_cores(two_runs, tmp_path, cores, gpus, threads):
    two_runs.edit("stub.py", RAN, MEETING)
    path = two_runs.root / "params.yaml"
    run = "{corpus: demo, model: quick"
    path.write_text(path.read_text(encoding="utf-8").replace(run, f"{run}, seed: 2{threads}"), encoding="utf-8")
    trainings = ["train@demo-tiny", "train@other"]
    two_runs.run("snakemake", "--cores", cores, *trainings, CUDA_VISIBLE_DEVICES=gpus, TMPDIR=str(tmp_path))
    assert sorted(two_runs.ran()) == trainings
    claims = {path.name for path in (two_runs.root / "work/claims").iterdir()}
    assert claims == set(gpus.split(",")) if gpus else len(claims) == 2


def test_a_training_of_several_processes_asks_for_as_many_gpus(two_runs):
    two_runs.edit("params.yaml", "  processes: 1 ", "  processes: 2 ")
    printed = two_runs.run("snakemake", "--dry-run", "--cores", "8", "decode@other", "train@other")
    asked = dict(re.findall(r"^rule (\S+):$.*?^ +resources: .*?gpu=(\d)", printed, re.MULTILINE | re.DOTALL))
    (threads,) = re.findall(r"^rule train@other:$.*?^ +threads: (\d+)", printed, re.MULTILINE | re.DOTALL)
    assert threads == "4", "two of each process"
    assert asked["train@other"] == "2" and asked["decode@other"] == "1"


def test_all_cores_are_those_of_the_quota_and_a_number_of_cores_or_gpus_is_a_number(two_runs):
    two_runs.edit("Snakefile", "quota.cores()", "1")
    for cores, threads in (("all", set()), ("99", {"2"})):  # Snakemake does not print one thread
        printed = two_runs.run("snakemake", "--dry-run", "--resources", "gpu=0", "--cores", cores, "train@other")
        assert {*re.findall(r"^ +threads: (\d+)", printed, re.MULTILINE)} == threads and "rule train@other" in printed
        assert {*re.findall(r"gpu=(\d)", printed)} == {"0"}, "as the command line limits it"


def test_a_stage_asks_for_the_threads_that_its_settings_give_it(params, here):
    """Also a stage that is new, of which only dvc.yaml knows."""
    params = copy.deepcopy(params)
    for section, threads in {"training": 3, "decoding": 5, "vocabulary": 8}.items():
        params["base"][section]["threads"] = threads
    space = {"threads": [4, 6], "dropout": {"low": 0.1, "high": 0.2, "scale": "linear"}}
    trial = {"corpus": "demo", "model": "quick", "trials": 1, "steps": 9, "metric": "dev_loss", "seed": 1}
    together = {"speed": [{"threads": 2, "dropout": 0.1}, {"threads": 7, "dropout": 0.2}]}
    spaces = {"s": space, "t": together, "u": {}, "x": {"threads": {"low": 2, "high": 8.0, "scale": "linear"}}}
    params["searches"] = {name: {**trial, "space": of} for name, of in spaces.items()}
    model = {"model": "demo-tiny/average", "set": "demo-test"}
    params["decodings"] = {"d": model, "e": {**model, "threads": 7}}
    params["values"] = {"v": {"model": "demo-tiny/average", "corpus": "demo"}}
    params["reverse_values"] = {"w": {"model": "demo-tiny/average", "corpus": "demo", "reverse": "turned/average"}}
    params["reverse_scores"] = {"r": model}
    decoding = {"decoder": "sampling", "threads": 9}
    back = {"corpus": "demo", "run": "x", "monolingual": {}, "decoding": decoding, "tagged": True, "ratio": 1}
    params["back_translations"] = {"b": back}
    params["models"]["quick"]["training"]["threads"], params["models"]["quick"]["decoding"]["threads"] = 4, 6
    params["runs"]["own"] = {"corpus": "demo", "model": "quick", "threads": 11}
    params["runs"]["other"] = {"corpus": "demo", "model": "deep"}
    with open(here / "params.yaml", "w", encoding="utf-8") as file:
        YAML(typ="safe").dump(params, file)
    text = (ROOT / "dvc.yaml").read_text(encoding="utf-8")
    new = re.search(r"^  decode_set:\n(    .*\n|\n)+", text, re.MULTILINE)[0]
    (here / "dvc.yaml").write_text(text + new.replace("decode_set", "new").replace("/${key}", "/new-${key}"))
    without_git(here)
    expected = {
        "binarise@demo": 8,
        "augment@b": 8,
        "back_translate@b": 9,
        "train_value@v": 5,
        "train_reverse_value@w": 5,
        "reverse_score@r": 5,
        "train@other": 3,
        "train@demo-tiny": 4,
        "train@own": 11,
        "tune@s": 6,
        "tune@t": 7,
        "tune@u": 4,
        "tune@x": 8,
        "decode@other": 5,
        "decode@demo-tiny": 6,
        "decode_set@d": 5,
        "decode_set@e": 7,
        "new@e": 7,
        "score@demo-tiny": 1,
    }
    with Repo() as repo:
        declared = {stage.name: stage.meta["snakemake"]["threads"] for stage in repo.index.stages}
    # An extra may be deleted
    expected = {stage: number for stage, number in expected.items() if stage.partition("@")[0] in (*STAGES, "new")}
    found = {stage: devices.threads_of(params, declared[stage]) for stage in expected}
    assert found == expected and {*map(type, found.values())} == {int}


@pytest.mark.parametrize(
    ("own", "files", "expected"),
    [
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 2),
        ("0::/\n", {"cpu.max": "max 100000\n"}, 8),
        ("0::/a/b\n", {"a/cpu.max": "300000 100000", "a/b/cpu.max": "max 100000", "cpu.max": "500000 100000"}, 3),
        ("5:cpu,cpuacct:/docker/x\n0::/\n", {"cpu/cpu.cfs_quota_us": "50000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 1),
        ("5:cpu:/x\n", {"cpu/x/cpu.cfs_quota_us": "-1\n", "cpu/x/cpu.cfs_period_us": "100000\n"}, 8),
        ("5:cpuset:/x\n", {"cpu/x/cpu.cfs_quota_us": "100000", "cpu/x/cpu.cfs_period_us": "100000"}, 8),
        ("0::/\n", {"cpu.max": "6400000 100000\n"}, 8),
        ("nothing of the kind", {}, 8),
    ],
)
def test_a_process_uses_no_more_cpus_than_the_quota_of_its_container(tmp_path, monkeypatch, own, files, expected):
    monkeypatch.setattr(quota, "OWN", tmp_path / "own")
    monkeypatch.setattr(quota, "ROOT", tmp_path / "groups")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(8))
    for path, text in {"own": own, **{f"groups/{name}": text for name, text in files.items()}}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    assert quota.cores() == expected
