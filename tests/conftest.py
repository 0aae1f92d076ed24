"""Fixtures of several test files: settings of small models, and the project with stub stages after a run."""

import dataclasses
import fcntl
import gc
import multiprocessing
import os
import shutil
import signal
from collections import Counter
from pathlib import Path

import hypothesis
import pytest
import torch

from pipeline.code import NOTED
from pipeline.settings.blocks import with_studies
from pipeline.settings.params import load, section
from tests.support import forked
from tests.support.projects import Project
from tests.support.stubs import EDITED, StubProject
from transformer.config.decoding import DecodingConfig
from transformer.config.model import ModelConfig
from transformer.config.training import TrainingConfig

hypothesis.settings.register_profile("any machine", deadline=None)  # a busy machine must not fail a test
hypothesis.settings.load_profile("any machine")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell's script has started pytest in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ["MLFLOW_TRACKING_URI"] = "off"  # test_tracking sets its own store
MEMORY = Path("/dev/shm")  # where pytest's folders are, because on a disk each fsync takes time
if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > 8 << 30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))
Project.forked = True
torch.set_num_threads(1)  # also in fixtures of modules; two threads beside other processes wait for one another

# Processes that train are forks of a server that has imported torch, which saves the time of the import. They are not
# forks of the test process: if one of its threads ends during the fork, the child can find MKL's list of buffers locked
# or damaged, and waits for ever or ends with a segmentation fault.
IMPORTED = ["pipeline.training.workers", "pytest", "ruamel.yaml", "torch._dynamo", "transformer.training"]
multiprocessing.set_forkserver_preload(IMPORTED)

SMALL = {"N": 2, "d_model": 32, "d_ff": 64, "h": 4, "d_k": 8, "d_v": 8, "dropout": 0.0}


def pytest_configure(config: pytest.Config) -> None:
    """Let the processes of pytest-xdist share one server of stages and be forks of another (tests/support/forked.py)."""
    if getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput"):
        forked.start_for_stages()
        place = forked.listening(forked.start(forked.OF_TESTS))
        config.option.tx = [f"popen//python={place / forked.PROGRAM}"] * len(config.option.tx)


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups in a hook of its own
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that use `built` as slow, group tests, and run the slow groups and the slowest files first.

    Snakemake runs all stages for `built`, and often again in the test. If a long group started last, the other processes
    of `make test` would have nothing to do. Tests that share a module's fixture run in one process, so that it is made
    once; all others are divided among the processes.
    """
    for item in items:
        if "built" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)
        fixtures = item._fixtureinfo.name2fixturedefs.values() if isinstance(item, pytest.Function) else []
        if any(each[-1].scope == "module" for each in fixtures):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
    slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
    items.sort(key=lambda item: (not (slow[item.path] and item.get_closest_marker("xdist_group")), -slow[item.path]))


def pytest_collection_finish() -> None:
    """Let collections of garbage not visit what was imported. In the tests of memory, they took most of the time."""
    gc.freeze()


@pytest.fixture(scope="session")
def params():
    return with_studies(load())


@pytest.fixture(scope="session")
def settings(params):
    """`settings(h=1, ...)`: the base model of the paper with small sizes and these differences."""
    base = section(params, "models", "base", "model", ModelConfig)
    return lambda **differences: dataclasses.replace(base, **(SMALL | differences))


@pytest.fixture
def training_settings(params):
    base = section(params, "models", "base", "training", TrainingConfig)
    small = {"steps": 12, "batch_tokens": 60, "micro_batch_tokens": 60, "max_length": 20, "warmup": 4, "threads": 1}
    small |= {"checkpoint_every": 4, "evaluate_every": 5, "log_every": 3, "keep": 2}
    return lambda **differences: dataclasses.replace(base, **(small | differences))


@pytest.fixture
def decoding_settings(params):
    base = section(params, "models", "base", "decoding", DecodingConfig)
    return lambda **differences: dataclasses.replace(base, **differences)


@pytest.fixture(scope="session")
def built(tmp_path_factory, worker_id) -> StubProject:
    """A copy of the project with stub stages, in which `snakemake --cores 2` has built everything.

    The first process of pytest-xdist that needs it builds it, and each process has a copy.
    """
    shared = tmp_path_factory.getbasetemp()
    shared = shared if worker_id == "master" else shared.parent
    root, done = shared / "built", shared / "built.done"
    with open(shared / "built.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            shutil.rmtree(root, ignore_errors=True)
            root.mkdir()
            project = StubProject.new(root)
            project.snakemake()
            project.commit("built")
            project.run("git", "gc", "--quiet")  # leaves few files to copy
            (edited := project.copy(shared / "edited")).change_code()
            edited.run("python", "-m", "pipeline.code")
            shutil.copy(edited.root / NOTED, root / EDITED)
            done.touch()
    project = StubProject(root)
    project.ran()
    return project.copy(tmp_path_factory.mktemp("built") / "project")


@pytest.fixture
def project(built, tmp_path) -> StubProject:
    """A copy of `built` that the test may change."""
    return built.copy(tmp_path / "project")


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """The folder of the test, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True)
def same_numbers_in_any_order():
    """One thread, and random numbers that do not depend on the tests before."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
