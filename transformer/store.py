"""The folder in which a training keeps its state between two starts.

It holds `state.safetensors` (all that resuming needs), `training.jsonl` (the losses) and `checkpoints/` (the weights
for averaging). The state is saved at intervals of time, when the training is stopped and at its end. A killed training
resumes at its last saved state. Records and weights of later steps are removed, and the repeated steps write them again.
"""

import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from transformer.checkpoint import load_weights, read_tensors, write_tensors
from transformer.config.reading import UserError
from transformer.files import naming, sync_folder, write_file
from transformer.model import Transformer


@dataclass
class TrainingState:
    """Everything that changes during a training. `state.safetensors` holds this and the `identity` of the training.

    Random numbers and the position in the data are functions of the seed and `step`, so neither is saved.
    """

    model: Transformer
    optimiser: torch.optim.Optimizer
    loss_sum: Tensor  # since the last record, in float64; on the device, so that no step waits for it
    micro_batch_tokens: int  # as in the settings, or lower once memory has run out
    step: int = 0
    loss_tokens: int = 0  # target tokens of `loss_sum`
    best_dev_loss: float = float("inf")
    evaluations_since_best: int = 0
    sums: dict[str, int] = field(default_factory=dict)  # of lengths, over all steps
    seconds: float = 0.0  # over all starts

    def numbers(self) -> dict[str, Any]:
        """All but the tensors."""
        return {key: value for key, value in vars(self).items() if key not in ("model", "optimiser", "loss_sum")}

    def tensors(self) -> dict[str, Tensor]:
        names = [name for name, _ in self.model.named_parameters()]
        tensors = {f"model.{name}": tensor for name, tensor in self.model.state_dict().items()}
        for index, moments in self.optimiser.state_dict()["state"].items():
            tensors |= {f"optimiser.{key}.{names[index]}": torch.as_tensor(moments[key]) for key in moments}
        return tensors | {"loss_sum": self.loss_sum}

    def finite(self) -> bool:
        """Whether all tensors are finite. Waits for the device once."""
        return bool(torch.stack([torch.isfinite(tensor).all() for tensor in self.tensors().values()]).all())

    def restore(self, tensors: dict[str, Tensor], numbers: dict[str, Any], path: Path) -> None:
        """Load the state that was read from `path`."""
        weights = {n.removeprefix("model."): t for n, t in tensors.items() if n.startswith("model.")}
        load_weights(self.model, weights, path)
        moments: dict[int, dict[str, Tensor]] = {}
        for index, (name, _) in enumerate(self.model.named_parameters() if numbers["step"] else ()):
            # The optimiser keeps these tensors. Without the copies it would keep the file mapped to memory, which NFS then
            # cannot remove.
            keys = ("step", "exp_avg", "exp_avg_sq")
            moments[index] = {key: tensors[f"optimiser.{key}.{name}"].clone() for key in keys}
        self.optimiser.load_state_dict({**self.optimiser.state_dict(), "state": moments})
        self.loss_sum.copy_(tensors["loss_sum"])
        for key in self.numbers():
            setattr(self, key, numbers[key])


class Store:
    """The folder of one training. A state is resumed only if it was saved with the same `identity`.

    The store of the first worker `writes`. Those of the others read the state, and write and remove no file.
    """

    def __init__(self, folder: Path, keep: int, identity: dict[str, Any], writes: bool = True) -> None:
        self.state, self.log = folder / "state.safetensors", folder / "training.jsonl"
        self.checkpoints, self.keep, self.identity = folder / "checkpoints", keep, identity
        self.checkpoints.mkdir(parents=True, exist_ok=True)
        self.saved, self.writes = 0, writes  # the step of the saved state

    def save(self, state: TrainingState) -> None:
        if not self.writes:
            return
        if self.log.exists():
            sync_folder(self.log)
        checkpoints = [step for step, _ in self.weights()][-self.keep :]
        files = {"records": sum(1 for _ in self.records()), "checkpoints": checkpoints}
        description = {"identity": self.identity, "numbers": state.numbers(), "files": files}
        write_tensors(self.state, state.tensors(), description)
        self.saved = state.step
        self.prune()

    def resume(self, state: TrainingState) -> bool:
        """Restore the saved state, if there is one, and remove records and weights of later steps.

        Returns False if the training starts from step 0. Raises UserError if the state was saved with another `identity`,
        or by code whose states lack a part, if the state or the log is damaged, or if records or weights have been removed
        since it was saved.
        """
        files: dict[str, Any] = {"records": 0, "checkpoints": []}
        if self.state.exists():
            tensors, description = read_tensors(self.state)
            if not {"identity", "numbers", "files"} <= description.keys():
                raise UserError(f"{self.state} is not the state of a training; restore it, or remove it to train again")
            saved, files = description["identity"], description["files"]
            if other := [key for key, now in self.identity.items() if saved.get(key) != now]:
                differ = "; ".join(f"{key} {saved.get(key)!r}, now {self.identity[key]!r}" for key in other)
                raise UserError(f"{self.state} was made with {differ}: change it back, or remove the file")
            try:
                state.restore(tensors, description["numbers"], self.state)
            except KeyError as error:
                remedy = "resume it with the code that saved it, or remove it to train again"
                raise UserError(f"{self.state} lacks {error}, which this code saves; {remedy}") from None
        self.saved = state.step
        if self.writes:
            self.cut_back(state, files)
        else:
            state.loss_sum.zero_()  # the first worker has the sum over all workers
        return state.step > 0

    def cut_back(self, state: TrainingState, files: dict[str, Any]) -> None:
        """Remove the records and weights of later steps.

        `files` has the number of records and the steps of the checkpoints from the time of the save. Raises UserError if
        one of these records or checkpoints is missing.
        """
        kept = [line for line in self.records() if json.loads(line)["step"] <= state.step]
        weights = dict(self.weights())
        remedy = f"restore what was removed, or remove {self.state.parent} to train again"
        if len(kept) < files["records"]:
            raise UserError(f"{self.log} has {len(kept)} of the {files['records']} records of {self.state}; {remedy}")
        if missing := [step for step in files["checkpoints"] if step not in weights]:
            steps = ", ".join(map(str, missing))
            raise UserError(f"{self.checkpoints} lacks the checkpoints of steps {steps}, which {self.state} had; {remedy}")
        write_file(self.log, b"".join(kept))
        for step, path in weights.items():
            if step > state.step:
                path.unlink()

    def records(self) -> Iterator[bytes]:
        """Yield the lines of the log up to the first one that a kill or a power failure has cut off or damaged."""
        if self.log.exists():
            with open(self.log, "rb") as file:
                yield from itertools.takewhile(is_whole, file)

    def record(self, entry: dict[str, Any]) -> None:
        if self.writes:
            with naming(self.log), open(self.log, "ab") as file:
                file.write(json.dumps(entry).encode() + b"\n")

    def save_weights(self, state: TrainingState) -> None:
        """Save a checkpoint of the weights for averaging. Then remove old ones (see `prune`)."""
        if self.writes:
            path = self.checkpoints / f"step-{state.step:08d}.safetensors"
            write_tensors(path, state.model.state_dict(), {"step": state.step})
            self.prune()

    def prune(self) -> None:
        """Keep the last `keep` checkpoints, and the last `keep` up to the saved state, from which a training resumes."""
        before = [path for step, path in self.weights() if step <= self.saved]
        after = [path for step, path in self.weights() if step > self.saved]
        for path in before[: -self.keep] + after[: -self.keep]:
            path.unlink()

    def weights(self) -> list[tuple[int, Path]]:
        return step_files(self.checkpoints)


def is_whole(line: bytes) -> bool:
    """Whether a line of the log is complete and has the step of its record."""
    try:
        return line.endswith(b"\n") and int(json.loads(line)["step"]) >= 0
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return False


def step_files(folder: Path) -> list[tuple[int, Path]]:
    """The steps and paths of the checkpoints in `folder`, oldest first. Temporary files are ignored."""
    named = ((re.fullmatch(r"step-(\d+)\.safetensors", path.name), path) for path in folder.iterdir())
    return sorted((int(match[1]), path) for match, path in named if match)
