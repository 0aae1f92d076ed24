"""Kill every stage of the pipeline at random moments, run it again, and compare every byte of its outputs.

    python -m tests.kill_everything [--stages train report] [--kills 10] [--seed 1]      (make kill)

A copy of the project with a small corpus and model is built once. Then DVC or Snakemake starts each stage in turn, and
SIGKILL or SIGTERM is sent to the process of the stage, to the tool, which leaves the stage an orphan, or to all of their
processes. No output may be partial after the kill. The same command then runs again without any clean-up. It must succeed
and write the same bytes as an undisturbed run.
"""

import argparse
import contextlib
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
from ruamel.yaml import YAML
from tqdm import tqdm

from pipeline import code
from pipeline.running import stage as command_line
from tests.support.projects import STAGES, Project, module_of
from tests.support.shortened import RUN, SIZES, content, outputs, shortened

TOOLS = {"dvc": ("dvc", "repro", "--single-item"), "snakemake": ("snakemake", "--cores", "2", "--quiet", "all", "--")}
TARGETS = ("stage", "tool", "group")
MADE = ("data", "models", "scores", "results", "reports", "work", "dvc.lock")
PATIENCE = 300  # seconds, a limit for every wait

# The entries of the stages that the shortened project lacks
BACK = "model: demo-back/average"
MORE = {
    "target: text/demo/train.en.xz}": "target: text/demo/train.en.xz, first: 1500}",
    "corpora_in_use: [demo]": f"  demo-back: {{corpus: demo-reverse, {SIZES}}}\n\ncorpora_in_use: [demo, demo-reverse]",
    "\nsets: {}": "\nsets:\n  more: {corpus: demo, source: text/demo/dev.en.xz, target: text/demo/dev.de.xz, first: 20}",
    "\nreverse_values: {}": f"\nreverse_values:\n  source: {{model: {RUN}/average, corpus: demo, "
    "reverse: demo-back/average, sentences: 40, steps: 50}",
    "\nreverse_scores: {}": f"\nreverse_scores:\n  of-test: {{{BACK}, set: demo-test}}",
    "\nback_translations: {}": "\nback_translations:\n  mixed: {corpus: demo, run: demo-back, tagged: true, ratio: 1.0, "
    "monolingual: {text: text/demo/train.de.xz, skip: 2000, first: 100}, decoding: {beam: 1}}",
    "\nsearches: {}": "\nsearches:\n  small: {corpus: demo, model: tiny, trials: 3, steps: 40, metric: dev_bleu, seed: 1, "
    "space: {d_model: [16, 32], d_ff: [64], batch_tokens: [300], micro_batch_tokens: [300], evaluate_every: [20]}}",
}


def copy(source: Path, target: Path) -> None:
    for name in MADE:
        old = target / name
        shutil.rmtree(old) if old.is_dir() else old.unlink(missing_ok=True)
        (shutil.copytree if (source / name).is_dir() else shutil.copy2)(source / name, old)


@dataclass
class Built:
    """The shortened project, and a copy of the outputs of an undisturbed run."""

    project: Project
    kept: Path
    outputs: dict[str, list[str]]  # of each stage

    def restore(self, stage: str) -> None:
        """Restore all outputs, and remove `stage` from dvc.lock and from the run cache, so that it has to run."""
        copy(self.kept, self.project.root)
        shutil.rmtree(self.project.root / ".dvc/cache/runs", ignore_errors=True)
        path, yaml = self.project.root / "dvc.lock", YAML()
        lock = yaml.load(path.read_text())
        del lock["stages"][stage]
        yaml.dump(lock, path)
        if stage == "code":
            (self.project.root / code.NOTED).unlink()
            shutil.rmtree(self.project.root / "work/code")

    def processes(self) -> Iterator[psutil.Process]:
        """The processes whose working directory is the project."""
        for process in psutil.process_iter(["cwd", "status"]):
            if process.info["cwd"] == str(self.project.root) and process.info["status"] != psutil.STATUS_ZOMBIE:
                yield process

    def differing(self, stage: str) -> tuple[list[str], list[str]]:
        """The files of the stage that differ from the undisturbed run, and those of them that exist."""
        now, then = (content(each, stage, self.outputs) for each in (self.project, Project(self.kept)))
        return [name for name in now | then if now.get(name) != then.get(name)], [n for n in now if now[n] != then.get(n)]

    def start(self, stage: str, tool: str) -> subprocess.Popen:
        line = self.project.command(*TOOLS[tool], stage)
        log = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "errors": "replace"}
        return subprocess.Popen(**line, **log, start_new_session=True)

    def worker(self, stage: str, tool: subprocess.Popen) -> psutil.Process:
        """The process of the stage, as soon as it exists."""
        module = "pipeline.code" if stage == "code" else module_of(stage.partition("@")[0])
        while tool.poll() is None:
            for process in self.processes():
                try:
                    if module in process.cmdline():
                        return process
                except psutil.Error:
                    continue
            time.sleep(0.005)
        raise RuntimeError(f"{stage} did not start")


def seconds_of(built: Built, stage: str) -> float:
    """The duration of the stage undisturbed. Its bytes must be those of the first run."""
    built.restore(stage)
    with built.start(stage, "dvc") as tool:
        worker, began = built.worker(stage, tool), time.monotonic()
        worker.wait(PATIENCE)
        seconds = time.monotonic() - began
        tool.communicate()
    assert tool.returncode == 0 and not built.differing(stage)[0], stage
    return seconds


def kill(built: Built, stage: str, seconds: float, chance: random.Random) -> str:
    """Kill the stage, run it again, and return what was wrong, or an empty text."""
    # Snakemake runs the stage `code` only before another one
    name = "dvc" if stage == "code" else chance.choice([*TOOLS])
    target, sent = chance.choice(TARGETS), chance.choice([signal.SIGKILL, signal.SIGTERM])
    moment, alive = chance.uniform(0, seconds), False
    while not alive:
        built.restore(stage)
        with built.start(stage, name) as tool:
            worker = built.worker(stage, tool)
            time.sleep(moment)
            alive = worker in built.processes()
            victims = {"stage": [worker], "tool": [psutil.Process(tool.pid)], "group": list(built.processes())}[target]
            for victim in victims if alive else []:
                with contextlib.suppress(psutil.NoSuchProcess):  # it ended with another victim
                    victim.send_signal(sent)
            moment /= 2  # if the stage had ended
            tool.wait(PATIENCE)  # an orphan may still write to the log
    # A temporary file, which DVC ignores, may be left. The next run removes it.
    half, said, status = [name for name in built.differing(stage)[1] if ".partial" not in name], "", 1
    for _ in range(3):  # an orphan may still be at work: the tool refuses to start beside it
        tool = built.start(stage, name)
        said, _ = tool.communicate(timeout=PATIENCE)
        status = tool.returncode
        psutil.wait_procs(list(built.processes()), PATIENCE)
        if not status:
            break
        if "'./dvc.lock' validation failed" in said and name == "dvc":  # in part; the Snakefile restores it by itself
            shutil.copy2(built.kept / "dvc.lock", built.project.root / "dvc.lock")
    wrong = f"exit status {status}: {said[-1000:]}" if status else ", ".join(half + built.differing(stage)[0])
    return wrong and f"{stage}: {sent.name} to the {target}, {name}: {wrong}"


def main(arguments: argparse.Namespace) -> int:
    os.environ["MLFLOW_TRACKING_URI"] = "off"
    found: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        for name in ("project", "kept"):
            (root / name).mkdir()
        project = shortened(root / "project")
        for old, new in MORE.items():
            project.edit("params.yaml", old, new)
        project.run("snakemake", "--cores", "2")
        built = Built(project, root / "kept", {"code": ["work/code"], **outputs(project.root)})
        copy(project.root, built.kept)
        # One stage of each kind
        kinds = {stage.partition("@")[0]: stage for stage in reversed(built.outputs)}
        stages = [stage for kind, stage in kinds.items() if kind in arguments.stages or not arguments.stages]
        for stage in tqdm(stages, unit="stage"):
            seconds = seconds_of(built, stage)
            chances = [random.Random(f"{arguments.seed} {stage} {number}") for number in range(arguments.kills)]
            wrong = [said for chance in chances if (said := kill(built, stage, seconds, chance))]
            tqdm.write("\n".join([f"{stage}: {arguments.kills - len(wrong)} of {arguments.kills} kills mended", *wrong]))
            found += wrong
    return 1 if found else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="kill_everything", description=__doc__.split("\n\n")[0])
    parser.add_argument("--stages", nargs="+", default=[], choices=STAGES)
    parser.add_argument("--kills", type=int, default=10, help="kills of each stage")
    parser.add_argument("--seed", type=int, default=1)
    command_line.run(main, parser, checked=False)
