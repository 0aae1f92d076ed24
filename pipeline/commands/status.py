"""Print the state of every stage (running, stale and why, waiting or done) and the scores so far.

    python -m pipeline.commands.status

Compares the present code with the recorded code, and changes no file of git. Reads DVC's index and dvc.lock without
DVC's locks, so it also works while stages run.
"""

import argparse
import sys
import time
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import networkx
import psutil
from dvc.stage import PipelineStage

from pipeline import code
from pipeline.orchestrating.costly import changes, told
from pipeline.orchestrating.lock_files import LOCK, fault, writing
from pipeline.orchestrating.project import opened, read_settings_once
from pipeline.orchestrating.results import results, table
from pipeline.reporting.warned import large
from pipeline.running import stage
from pipeline.running.progress import place_of
from pipeline.settings.addresses import TEXT
from pipeline.settings.params import load
from pipeline.training.workspace import unfinished
from transformer.config.reading import UserError

SHOWN = 20  # at most this many stages of each kind are listed; of the others, only the number is printed
KINDS = ("running", "stale", "waiting", "done")


@dataclass(frozen=True)
class State:
    """`kind`: running, stale (it can run now), waiting (for other stages) or done. `why` is printed with it.

    `made` says whether dvc.lock has outputs of the stage.
    """

    stage: str
    kind: str
    why: str = ""
    made: bool = False

    def __str__(self) -> str:
        return f"{self.stage} is {self.kind}{': ' if self.kind == 'stale' else ' '}{self.why}".rstrip()


def states(*ignored: str) -> list[State]:
    """Return the states of all stages, in the order in which they run. Raises UserError if DVC cannot read the project.

    A change of the paths in `ignored` makes no stage stale.

    DVC writes dvc.lock non-atomically, so an incomplete dvc.lock is read again for five seconds.
    """
    read_settings_once()
    deadline = time.monotonic() + 5
    while LOCK.exists() and (wrong := fault(LOCK.read_bytes())):
        if time.monotonic() > deadline:
            raise UserError(wrong)
        time.sleep(0.1)
    try:
        code.write()
    except (UserError, OSError) as error:  # OSError: the project is another user's, for example
        print(f"the present code cannot be noted, so the recorded code is compared: {error}", file=sys.stderr)
    found: dict[str, State] = {}
    with opened(locked=False) as repo:
        graph, written = repo.index.graph, writing()
        for one in networkx.dfs_postorder_nodes(graph):  # an edge leads from a stage to a stage that it depends on
            before = [found[other.name] for other in graph.successors(one)]
            found[one.name] = State("code", "done") if one.name == "code" else state_of(one, before, written, ignored)
    return list(found.values())


def not_done(*names: str) -> dict[str, State]:
    """Return the first stage that is not up to date of each run, decoding or other entry of params.yaml, by its name.

    An entry whose stages are all up to date is left out. Without a project of DVC, there are no stages. The files in text/
    do not count: what was made of them has hashes of its own, and any other file there is none of the entry's.
    """
    found: dict[str, State] = {}
    for state in states(TEXT) if Path(".dvc").exists() else []:
        name = state.stage.partition("@")[2]
        if name in names and state.kind != "done":
            found.setdefault(name, state)
    return found


def state_of(one: PipelineStage, before: Iterable[State], written: Mapping[str, int], ignored: Container[str]) -> State:
    """Return the state of a stage. `written` has the paths that DVC processes are writing, with their process ids."""
    (kind, _, name), made = one.name.partition("@"), any(out.hash_info for out in one.outs)
    if pids := [written[out.fs_path] for out in one.outs if out.fs_path in written]:
        return State(one.name, "running", place_of(one.name, begun(pids[0])), made)
    if waits := [other.stage for other in before if other.kind != "done"]:
        more = f" and {len(waits) - 2} more" if len(waits) > 2 else ""
        return State(one.name, "waiting", f"for {', '.join(waits[:2])}{more}", made)
    light, heavy = changes(one) if made else ({}, {})
    changed = {path: change for path, change in (light | heavy).items() if path not in ignored}
    if changed or not made:
        saved = sorted(unfinished(name), key=lambda path: path.stat().st_mtime) if kind == "train" else []
        reached = place_of(one.name).partition(", ")[0]
        stopped = f"; stopped at {reached}, {saved[-1]} holds its state" if reached and saved else ""
        return State(one.name, "stale", (told(changed) if made else "never run") + stopped, made)
    return State(one.name, "done", made=made)


def begun(pid: int) -> float:
    """Return the time at which a process started, in seconds since 1970."""
    try:
        return psutil.Process(pid).create_time()
    except psutil.NoSuchProcess:
        return 0.0


def lines(found: list[State]) -> list[str]:
    counts = {kind: sum(state.kind == kind for state in found) for kind in KINDS}
    told = [f"{len(found)} stages: " + ", ".join(f"{number} {kind}" for kind, number in counts.items() if number)]
    for kind in KINDS[:-1]:
        chosen = [state for state in found if state.kind == kind]
        told += [f"{kind:8} {state.stage}{': ' if state.why else ''}{state.why}" for state in chosen[:SHOWN]]
        told += [f"{kind:8} and {len(chosen) - SHOWN} more"] if len(chosen) > SHOWN else []
    return told


def main(_: argparse.Namespace) -> None:
    print("\n".join(lines(states())))
    params = load()
    scored = sorted((one for one in results(params) if one.bleu is not None), key=lambda one: -(one.bleu or 0))
    if scored:
        print("", *large(params), *table(scored), sep="\n")


if __name__ == "__main__":
    stage.run(main, stage.parser("status", __doc__))
