"""The results of a training: training.json, which has no times and no hardware, and the times file, which has both."""

import json
from datetime import UTC, datetime
from typing import Any

from pipeline.running import hardware
from transformer.files import digest
from transformer.training import Trainer

# In the order of `Batches.sums`. A training that was resumed at its last step has them in another order.
SUMS = ("source_tokens", "target_tokens", "source_squared", "target_squared", "source_target")


def summary(training: Trainer, settings: dict, binarised: dict) -> dict[str, Any]:
    state = training.state
    records = [json.loads(line) for line in training.store.records()]
    last = [record for record in records if "dev_loss" in record][-1]
    return {
        "steps": state.step,
        "parameters": sum(parameter.numel() for parameter in state.model.parameters()),
        "dev_loss": last["dev_loss"],
        "dev_perplexity": last["dev_perplexity"],
        **{key: state.sums[key] for key in SUMS},
        "pairs_left_out": training.batches.left_out,
        "batches_an_epoch": len(training.batches),
        "settings": settings,
        "settings_sha256": digest(settings),
        "data_sum": binarised["sum"],
        **({"initial": binarised["initial"]["model"]} if "initial" in binarised else {}),
        # Absent in records of trainings in which two pairs of streams of random numbers were equal: the first epoch and the
        # composition of mixed batches, and the first share of a step on several threads and the step on one.
        "streams": "distinct",
    }


def timing(training: Trainer, started: str, commit: str | None, earlier_code: list[str]) -> dict[str, Any]:
    """Return the times and the hardware. The seconds are a sum over all starts, of the work that was kept.

    `started` is the time of the last start, `commit` the git commit at this time.
    """
    state = training.state
    return {
        "seconds": round(state.seconds, 3),
        "tokens_per_second": round((state.sums["source_tokens"] + state.sums["target_tokens"]) / state.seconds, 1),
        "precision": training.precision,
        "threads": training.config.threads,
        "processes": training.workers.number,
        **hardware.hardware(training.device, training.workers.number),
        "commit": commit,
        "adopted_from_code": earlier_code,
        "started": started,
        "ended": now(),
    }


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
