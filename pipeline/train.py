"""Train a run's model (section 5). A training that was stopped is resumed.

    python -m pipeline.train RUN --data data/CORPUS/binarised --vocabulary data/CORPUS/vocabulary.model \\
        --out models/RUN/checkpoints --scores scores/RUN --times work/times/RUN/training.json

Reads the binarised pairs, which must be encoded with the given vocabulary. Writes the last checkpoints for averaging
and the model's settings to --out. Writes the losses (training.jsonl) and a summary (training.json) to --scores. Writes
the times and the hardware to --times.

SIGTERM, SIGINT and machine.time_limit_minutes stop the training. It then saves its state and exits with status 75. It also
stops if Snakemake, DVC or the process that started its workers is killed.

If machine.processes is above 1, that many processes share the training. `torchrun --nproc-per-node N -m pipeline.train`
has the same effect. If machine.nodes is above 1, the training uses that many nodes of a Slurm allocation, and each node
runs machine.processes processes.
"""

import argparse
import hashlib
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import torch

from pipeline import code
from pipeline.running import followers, hardware, stage
from pipeline.running.progress import Progress, say, warn
from pipeline.running.times import write_times
from pipeline.settings.machine import MachineConfig, machine
from pipeline.settings.params import load
from pipeline.settings.selection import run_settings
from pipeline.text import initial
from pipeline.text.binarised import SIDES, describe, open_binarised
from pipeline.training import more_steps, nodes, outcome, workers, workspace
from transformer.checkpoint import write_settings
from transformer.config.model import ModelConfig
from transformer.config.reading import UserError
from transformer.config.training import TrainingConfig
from transformer.device import precision_of
from transformer.fast.proof import proved
from transformer.files import atomic_folder, digest, sha256, write_file, write_json
from transformer.memory import enough_memory
from transformer.model import Transformer
from transformer.parallel import WorkerLost, Workers
from transformer.store import Store
from transformer.training import Diverged, Trainer, batches_of, new_state


@enough_memory("in making the model", "take a smaller model, or a larger machine")
def trainer(
    model: ModelConfig,
    config: TrainingConfig,
    arguments: argparse.Namespace,
    place: Path,
    options: MachineConfig,
    group: Workers,
) -> Trainer:
    """Return the training whose state is in the folder `place`, or a new training if the folder has no state.

    Raises UserError in these cases:

    - machine.device is `cuda`, but torch sees no GPU.
    - A dev line has more than micro_batch_tokens pieces, or no training pair is within max_length.
    - The data are damaged, or were encoded with another vocabulary.
    - The data begin with the weights of a model of other settings.
    - The saved state or its log is damaged, or was made with other settings, other data or other hardware.
    """
    tell = say if group.rank == 0 else lambda text: None
    data, vocabulary = arguments.data, sha256(arguments.vocabulary)
    device, precision, identity = conditions(options, config)
    train_set, dev_set = (open_binarised(data, name, vocabulary_sha256=vocabulary) for name in ("train", "dev"))
    longest, line, side = max((int((of := dev_set.lengths(side)).max()), int(of.argmax()) + 1, side) for side in SIDES)
    if longest > config.micro_batch_tokens:
        raise UserError(
            f"{data}: the {side} of dev line {line} has {longest:,} pieces, and micro_batch_tokens is "
            f"{config.micro_batch_tokens:,}; split the line in the text of the corpus"
        )
    batches = batches_of(train_set, config, train_set.segmentations)
    if not len(batches):
        raise UserError(f"{data}: no training pair is within max_length {config.max_length} (of {len(train_set)} pairs)")
    if batches.left_out:
        tell(f"{batches.left_out:,} pairs are longer than max_length {config.max_length} and left out")
    torch.manual_seed(config.seed)
    size = describe(data)["vocabulary_size"]
    layers, reason = proved(device, options.kernels, model, size, precision)
    network = Transformer(model, size, layers)
    store = Store(place, config.keep, identity | {more_steps.FOLDER: place.name}, writes=group.rank == 0)
    state = new_state(network, config, device)
    if reason and group.rank == 0:
        warn(f"our kernels are not used, which is slower: {reason}")
    if store.resume(state):
        tell(f"resuming at step {state.step} from {store.state}")
    elif origin := initial.load(network, data):
        tell(f"beginning with the weights of models/{origin}")
    seconds = options.save_every_minutes * 60
    return Trainer(state, batches, dev_set, config, store, device, precision, seconds, warn, group)


def conditions(options: MachineConfig, config: TrainingConfig) -> tuple[torch.device, str, dict[str, Any]]:
    """Return the device, the precision and the identity of a training (see `identity_of`)."""
    device = hardware.torch_device(options, config.threads, config.arithmetic)
    precision = precision_of(config.precision, device)
    return device, precision, identity_of(device, precision, config.threads)


def identity_of(device: torch.device, precision: str, threads: int) -> dict[str, Any]:
    """Return what the bytes of a training depend on, besides settings, data and the version of torch.

    A state is resumed only if its identity equals this one. The version of torch is not part of the identity, so an
    update costs no training. Rounding may then differ. With portable arithmetic, the CPU is not part of it.
    """
    here = hardware.hardware(device)
    if here["arithmetic"] == "portable":
        return {"device": device.type, "arithmetic": "portable", "precision": precision, "threads": threads}
    identity = {"device": device.type, "hardware": here["hardware"], "precision": precision, "threads": threads}
    return identity | ({"instructions": here["instructions"]} if device.type == "cpu" else {})


class Interruption:
    """A call of the object returns True after SIGTERM, SIGINT, SIGHUP or the time limit.

    SIGTERM also comes if the process that started this one has ended (pipeline/running/launcher.py). `Trainer.run` calls
    the object after every step. The constructor installs the handlers of the signals.
    """

    def __init__(self, limit_minutes: float | None) -> None:
        self.reason: str | None = None
        self.started, self.limit_minutes = time.monotonic(), limit_minutes
        hangup = [] if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else [signal.SIGHUP]  # nohup ignores it
        for number in (signal.SIGTERM, signal.SIGINT, *hangup):
            signal.signal(number, self.note)

    def note(self, number: int, _frame: Any) -> None:
        self.reason = signal.Signals(number).name

    def __call__(self) -> bool:
        if self.limit_minutes and time.monotonic() - self.started > self.limit_minutes * 60 and not self.reason:
            self.reason = f"the time limit of {self.limit_minutes:g} minutes"
        return bool(self.reason)


def follow(training: Trainer, stop: Interruption) -> bool:
    """Run the training with a progress bar. Returns False if it was interrupted."""
    started, state, config = time.monotonic(), training.state, training.config
    bar = Progress(total=config.steps, initial=state.step, unit="step")
    tokens_before = sum(state.sums.get(key, 0) for key in ("source_tokens", "target_tokens"))

    def tick(record: dict | None) -> None:
        bar.update(state.step - bar.n)
        if record and "loss" in record:
            rate = (record["tokens"] - tokens_before) / (time.monotonic() - started)
            bar.set_postfix_str(f"loss {record['loss']:.3f}, {rate:,.0f} tokens/s", refresh=False)
        elif record:
            say(f"step {record['step']}: dev perplexity {record['dev_perplexity']:.3f}")

    with bar:
        done = training.run(tick, stop)
        if done:
            bar.total = state.step  # `patience` may end a training early; an incomplete bar leaves its file
    if not done:
        reason = stop.reason or "another worker"
        say(f"stopped by {reason} at step {state.step}; the same command resumes it")
    return done


def publish(training: Trainer, binarised: dict, out: Path) -> None:
    """Write the last `keep` checkpoints and the model's settings to the folder `out`, atomically.

    Raises UserError if there is no checkpoint, so that an earlier model in `out` is not lost.
    """
    config, checkpoints = training.state.model.config, training.store.weights()
    if not checkpoints:
        place = training.store.state.parent
        raise UserError(f"{place} holds the last state of a training without its checkpoints; remove it to train again")
    with atomic_folder(out) as folder:
        for _, path in checkpoints[-training.config.keep :]:
            shutil.copyfile(path, folder / path.name)
        vocabulary = binarised["vocabulary_size"], binarised["vocabulary_sha256"]
        write_settings(folder, config, *vocabulary, training.config.max_length)


def lead(arguments: argparse.Namespace, options: MachineConfig, group: Workers) -> int:
    """Train as the first or only worker, which writes all files. Returns the exit status."""
    params, run, started, commit = load(), arguments.run, outcome.now(), hardware.commit()
    _, model, config = run_settings(params, run)
    binarised = describe(arguments.data)
    settings, key = key_of(model, config, binarised)
    present, (_, _, identity) = digest(arguments.code or code.described("train")), conditions(options, config)
    with workspace.lock(run):
        more_steps.prepare(run, config, lambda other: key_of(model, other, binarised)[1], identity, present)
        place, earlier_code = workspace.claim(run, key, present)
        training = trainer(model, config, arguments, place, options, group)
        group.wait()
        description = {"settings": settings, "data_sum": binarised["sum"]}
        with followers.following(run, training.store.log, description):
            if not follow(training, Interruption(options.time_limit_minutes)):
                return stage.INTERRUPTED
        publish(training, binarised, arguments.out)
        write_file(arguments.scores / "training.jsonl", b"".join(training.store.records()))
        summary = arguments.scores / "training.json"
        write_json(summary, outcome.summary(training, settings, binarised))
        write_times(arguments.times, summary, outcome.timing(training, started, commit, earlier_code))
        write_file(place / workspace.PUBLISHED, hashlib.md5(summary.read_bytes()).hexdigest())
        if others := workspace.unfinished(run):
            where = ", ".join(map(str, others))
            warn(f"unfinished trainings of {run} with other settings are still there; `rm -r` removes them: {where}")
    return 0


def assist(arguments: argparse.Namespace, options: MachineConfig, group: Workers) -> int:
    """Train as one of the other workers, after the first worker has claimed the folder. Returns the exit status.

    If an error occurs in all workers, only the first worker reports it.
    """
    _, model, config = run_settings(load(), arguments.run)
    group.wait()
    _, key = key_of(model, config, describe(arguments.data))
    training = trainer(model, config, arguments, workspace.folder(arguments.run, key), options, group)
    try:
        done = training.run(lambda record: None, Interruption(options.time_limit_minutes))
    except Diverged:
        return workers.LOST
    return 0 if done else stage.INTERRUPTED


def key_of(model: ModelConfig, config: TrainingConfig, binarised: dict) -> tuple[dict, str]:
    """Return the settings of a training, and a digest of settings and data. The digest names the folder in work/."""
    settings = {"model": vars(model), "training": vars(config)}
    return settings, digest([settings, binarised["sum"]])


def main(arguments: argparse.Namespace) -> int:
    options = machine(load())
    if not workers.launched() and options.nodes > 1:
        return nodes.start(options.nodes, options.processes)
    if not workers.launched() and options.processes > 1:
        return workers.start(options.processes)
    try:
        with workers.joined(hardware.device_type(options)) as group:
            return (assist if group.rank else lead)(arguments, options, group)
    except WorkerLost:
        return workers.LOST


if __name__ == "__main__":
    options, remedy = "data vocabulary out scores times", f"the finished training is kept: {workspace.UNDO}"
    stage.script(main, "train", __doc__, options, remedy, run="a run of params.yaml")
