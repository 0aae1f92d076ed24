"""Train a run's model (section 5), from where it stood if an earlier start was stopped.

    python -m pipeline.train RUN --data data/CORPUS/binarised --out models/RUN/checkpoints --scores scores/RUN

Reads the binarised pairs; writes the last checkpoints that averaging needs, with the model's settings beside them, and
into the scores the losses (training.jsonl), a summary (training.json) and what depends on the machine (timing.json).
SIGTERM and SIGINT, and machine.time_limit_minutes, stop it with its state saved and exit status 75.
"""

import argparse
import json
import shutil
import signal
import sys
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import torch
from tqdm import tqdm

from pipeline import machine, stage, tracking, workspace
from pipeline.params import load
from pipeline.runs import run_settings
from transformer.binarised import describe, open_binarised
from transformer.checkpoint import write_settings
from transformer.config.model import ModelConfig
from transformer.config.reading import UserError
from transformer.config.training import TrainingConfig
from transformer.data import Batches
from transformer.files import atomic, atomic_folder, write_json
from transformer.model import Transformer
from transformer.store import Store
from transformer.training import Trainer, new_state, precision_of

# What computes the result: taken before anything else is imported, so that it is the same whoever starts the training.
CODE = [module.__file__ for name, module in sys.modules.items() if name.startswith("transformer.") and module.__file__]


def trainer(
    model: ModelConfig, config: TrainingConfig, data: Path, place: Path, options: machine.MachineConfig
) -> Trainer:
    """The training as it stands in `place`, or a new one."""
    device = machine.torch_device(options, config.threads)
    precision = precision_of(config.precision, device)
    train_set, dev_set = (open_binarised(data, name) for name in ("train", "dev"))
    batches = Batches(train_set, config.seed, config.batch_tokens, config.max_length)
    if not len(batches):
        raise UserError(
            f"{data}: no training pair is within max_length {config.max_length} (of {len(train_set)} pairs)"
        )
    if batches.left_out:
        print(
            f"{batches.left_out:,} pairs are longer than max_length {config.max_length} and left out", file=sys.stderr
        )
    torch.manual_seed(config.seed)
    network = Transformer(model, describe(data)["vocabulary_size"])
    identity = {"device": device.type, "precision": precision, "threads": config.threads}
    store = Store(place, config.keep, identity)
    state = new_state(network, config, device)
    if store.resume(state):
        print(f"resuming at step {state.step} from {store.state}", file=sys.stderr)
    seconds = options.save_every_minutes * 60
    warn = partial(tqdm.write, file=sys.stderr)  # which a progress bar gives way to
    return Trainer(state, batches, dev_set, config, store, device, precision, seconds, warn)


def follow(training: Trainer, run: str, limit_minutes: float | None) -> bool:
    """Run it behind a progress bar; false where a signal or the time limit stopped it."""
    stopped: list[str] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda n, _: stopped.append(signal.Signals(n).name))
    started, state, config = time.monotonic(), training.state, training.config
    bar = tqdm(total=config.steps, initial=state.step, desc=f"train {run}", unit="step", mininterval=1.0)
    tokens_before = sum(state.sums.get(key, 0) for key in ("source_tokens", "target_tokens"))

    def tick(record: dict | None) -> None:
        bar.update(state.step - bar.n)
        if record and "loss" in record:
            rate = (record["tokens"] - tokens_before) / (time.monotonic() - started)
            bar.set_postfix(loss=f"{record['loss']:.3f}", lr=f"{record['learning_rate']:.1e}", tokens_s=f"{rate:,.0f}")
        elif record:
            bar.write(f"step {record['step']}: dev perplexity {record['dev_perplexity']:.3f}", file=sys.stderr)

    def stop() -> bool:
        if limit_minutes and time.monotonic() - started > limit_minutes * 60 and not stopped:
            stopped.append(f"the time limit of {limit_minutes:g} minutes")
        return bool(stopped)

    with bar:
        done = training.run(tick, stop)
    if not done:
        print(f"stopped by {stopped[0]} at step {state.step}; the same command goes on from there", file=sys.stderr)
    return done


def summary(training: Trainer, settings: dict, data_sum: str) -> dict:
    """What is known at the end and is the same wherever it ran: training.json."""
    state = training.state
    records = [json.loads(line) for line in training.store.records()]
    last = [record for record in records if "dev_loss" in record][-1]
    return {
        "steps": state.step,
        "parameters": sum(parameter.numel() for parameter in state.model.parameters()),
        "dev_loss": last["dev_loss"],
        "dev_perplexity": last["dev_perplexity"],
        **state.sums,
        "pairs_left_out": training.batches.left_out,
        "batches_an_epoch": len(training.batches),
        "settings": settings,
        "settings_sha256": workspace.digest(settings),
        "data_sum": data_sum,
    }


def timing(training: Trainer, started: str, earlier_code: list[str]) -> dict:
    """What depends on the machine and the moment: timing.json."""
    state = training.state
    return {
        "seconds": round(state.seconds, 3),
        "tokens_per_second": round((state.sums["source_tokens"] + state.sums["target_tokens"]) / state.seconds, 1),
        "steps_per_second": round(state.step / state.seconds, 4),
        "precision": training.precision,
        "threads": training.config.threads,
        **machine.hardware(training.device),
        "commit": machine.commit(),
        "adopted_from_code": earlier_code,
        "started": started,
        "ended": now(),
    }


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def publish(training: Trainer, binarised: dict, out: Path) -> None:
    """The checkpoints and the model's settings, as one folder that is there whole or not at all."""
    config = training.state.model.config
    with atomic_folder(out) as folder:
        shutil.copytree(training.store.checkpoints, folder, dirs_exist_ok=True)
        write_settings(folder, config, binarised["vocabulary_size"], binarised["vocabulary_sha256"])


def main(arguments: argparse.Namespace) -> int:
    params, run, started = load(), arguments.run, now()
    options, (_, model, config) = machine.machine(params), run_settings(params, run)
    settings = {"model": vars(model), "training": vars(config)}
    binarised = describe(arguments.data)
    with workspace.lock(run):
        key = workspace.digest([settings, binarised["sum"]])
        place, earlier_code = workspace.claim(run, key, workspace.code_digest(CODE))
        training = trainer(model, config, arguments.data, place, options)
        description = {"model": params["runs"][run]["model"], "settings": settings, "data_sum": binarised["sum"]}
        with tracking.following(run, training.store.log, description):
            if not follow(training, run, options.time_limit_minutes):
                return stage.INTERRUPTED
        publish(training, binarised, arguments.out)
        with atomic(arguments.scores / "training.jsonl") as file:
            file.writelines(training.store.records())
        write_json(arguments.scores / "training.json", summary(training, settings, binarised["sum"]))
        write_json(arguments.scores / "timing.json", timing(training, started, earlier_code))
        workspace.release(run)
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="train", description=__doc__.split("\n\n")[0])
    parser.add_argument("run", help="a run of params.yaml")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--scores", type=Path, required=True)
    stage.run(main, parser)
