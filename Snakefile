"""Snakemake schedules the stages of dvc.yaml. DVC decides which stages are stale, runs them and caches their outputs.

Each rule runs one stage. Its only output is a stamp file, so Snakemake never deletes or touches data files, nor compares
their times. When a workflow starts, this file removes the stamps of the stages that DVC finds stale and of those after
them, and gives all other stamps the same old time. Snakemake therefore notices every change that DVC notices: by another
tool, a pull, a checkout or an edit. Targets are names of stages: `snakemake --cores all train@demo-tiny`.
"""

import os
import signal
import sys
from pathlib import Path

from snakemake.logging import logger


def interrupted(*_):
    sys.exit("snakemake: interrupted; no stage was started")


at_interrupt = signal.signal(signal.SIGINT, interrupted)  # Python's own handler would print a traceback

sys.path.insert(0, workflow.basedir)  # import the modules of this checkout, even if another one is installed

from pipeline.reporting.warned import large, said
from pipeline.orchestrating.results import show
from pipeline.orchestrating.screen import LOGS, Screen, take_over

dry = workflow.output_settings.dryrun
if workflow.is_main_process:
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `snakemake --dag | head` ends like other programs
if workflow.is_main_process and not (dry or workflow.output_settings.verbose):
    # Before the imports below, which take a second
    take_over(logger, Screen(lambda: show_results(), lambda: missing, said))

import networkx
from filelock import FileLock, Timeout
from snakemake.dag import DAG
from snakemake.scheduling.job_scheduler import JobScheduler
from snakemake.utils import available_cpu_count

from pipeline import code
from pipeline.settings.machine import machine
from pipeline.settings.params import load
from pipeline.settings.blocks import with_studies
from pipeline.running import devices, quota
from pipeline.orchestrating import slurm, termination
from pipeline.orchestrating.costly import confirm, costly
from pipeline.orchestrating.lock_files import clear_rwlock, keep_or_put_back, write_atomically
from pipeline.orchestrating.project import opened, read_settings_once, refresh, require_declared
from pipeline.running.stage import failed, require_sound
from transformer.config.reading import UserError

STAMPS = Path("work/.stamps")  # not the folder of a run: no name of a run starts with a dot
OLD = 946684800  # the year 2000: older than any stamp that a stage leaves, and the same for all


def only_one():
    """Return a lock. Until this process ends, it keeps other workflows from changing the stamps."""
    STAMPS.mkdir(parents=True, exist_ok=True)
    try:
        return FileLock(STAMPS / ".lock", blocking=False).acquire()
    except Timeout:
        sys.exit("snakemake: another snakemake is running in this folder; wait for it or stop it")


def set_stamps(graph, stale):
    """Remove the stamps of the stale stages and of all stages that depend on them, and return these. Give all others OLD.

    With the stamp of a target present, Snakemake would not notice that a stamp before it is missing.
    """
    changed = [stage for stage in graph if stage.addressing in stale]
    removed = {after for stage in changed for after in (stage, *networkx.ancestors(graph, stage))}
    for stage in graph:
        path = STAMPS / stage.addressing
        path.unlink(missing_ok=True)  # in a shared folder, only its owner may set the times of a file
        if stage not in removed:
            path.touch()
            os.utime(path, (OLD, OLD))
    return {stage.addressing for stage in removed}


def refuse_to_touch(_):
    sys.exit("snakemake: --touch would call stages done that did not run; see `python -m pipeline.commands.accept --help`")


DAG.check_touch_compatible = refuse_to_touch
long_trainings, missing = {}, set()

try:
    params = load()
    if workflow.is_main_process:  # the jobs of a cluster also execute this file
        os.environ.update(SNAKEMAKE_STAGES="run")  # they end if this process is killed (pipeline/running/launcher.py)
        require_sound(with_studies(params))
        lock = only_one()
        clear_rwlock()
    with opened() as repo:
        if workflow.is_main_process:
            if restored := keep_or_put_back(dry):
                print(f"snakemake: {restored}", file=sys.stderr)
            code.write()  # `onstart` records it: a dry run and a listing change no file in git
        graph = repo.index.graph
        require_declared(graph)
        if workflow.is_main_process:
            read_settings_once()
            write_atomically()
            stale = {name for name in repo.status() if name != "code"}
            missing = set_stamps(graph, stale)
            long_trainings = costly(graph, stale)
    hardware = machine(params)
    signal.signal(signal.SIGINT, at_interrupt)
    if workflow.is_main_process:
        termination.install(JobScheduler)
except (UserError, OSError) as error:
    sys.exit(failed("snakemake", error))

for line in long_trainings.values():
    print(f"snakemake: {line}", file=sys.stderr)


onstart:  # not called in a dry run
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    at_stop = signal.signal(signal.SIGINT, interrupted)
    try:
        confirm(long_trainings, {job.rule.name for job in workflow.dag.needrun_jobs()})
        with opened() as repo:
            refresh(repo)
    except (UserError, OSError) as error:
        sys.exit(failed("snakemake", error))
    signal.signal(signal.SIGINT, at_stop)


def show_results():
    """Print the results if the stage `report` is in the workflow. Without it, the scores may be those of other settings."""
    if any(job.rule.name == "report" for job in workflow.dag.jobs):
        try:
            show(large)
        except (UserError, OSError) as error:
            failed("snakemake", error)


onsuccess:
    show_results()


# `--cores all` counts the CPUs of the machine, also in a container that may use fewer.
if workflow.resource_settings.cores == available_cpu_count():
    workflow.register_resource("_cores", quota.cores())


SUBMITTED = "cluster" in config  # profiles/slurm sets it
if ignored := ", ".join(config.keys() - {"cluster"}):
    sys.exit(f"snakemake: --config {ignored} changes no setting; settings are in params.yaml")


# The stages share the GPUs of this machine, and each claims its own (pipeline/running/devices.py). Without a GPU, only
# their threads limit how many run at a time. `--resources gpu=N` on the command line takes precedence.
# (`workflow.local_exec` cannot be used instead, because it is true while this file is read, whatever the executor is.)
if not SUBMITTED and "gpu" not in workflow.global_resources:
    workflow.register_resource("gpu", len(devices.usable(params)) or os.cpu_count())


report: "profiles/report.rst"


container: "docker-daemon:attention:latest"  # the image of the Dockerfile, which only `--sdm apptainer` uses (not tried)


rule all:
    input:
        [STAMPS / stage.addressing for stage in graph],


for stage in graph:
    needs = {**stage.meta["snakemake"], "threads": devices.threads_of(params, stage.meta["snakemake"]["threads"])}
    if SUBMITTED:
        needs = slurm.requests(stage.name, needs, hardware)
    elif stage.name.startswith("train@"):
        needs = {**needs, "threads": needs["threads"] * hardware.processes}

    rule:
        name:
            stage.addressing
        input:
            [STAMPS / before.addressing for before in graph.successors(stage)],
        output:
            STAMPS / stage.addressing,
        log:
            LOGS / f"{stage.addressing}.log",
        threads: needs["threads"]
        resources:
            runtime=needs["minutes"],
            **{name: value for name, value in needs.items() if name not in ("threads", "minutes")},
        params:
            stage=stage.addressing,
            job=slurm.JOB if SUBMITTED else "",
        shell:
            "{params.job}python -m pipeline.orchestrating.single {params.stage:q} > {log:q} 2>&1 && touch {output:q}"
