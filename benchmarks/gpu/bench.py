"""What the parts of the benchmark share: the device, the data, the settings, and how much each part does."""

import dataclasses
import os
import platform
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.provenance import Table
from benchmarks.workload import WMT14_EN_DE, Repeated
from transformer import fast
from transformer.batch import Pairs
from transformer.binarised import BinarisedSet, describe, open_binarised
from transformer.config.model import ModelConfig
from transformer.config.reading import UserError, read
from transformer.config.training import TrainingConfig
from transformer.device import precision_of
from transformer.fast.graphs import Graphs
from transformer.files import read_json
from transformer.layers import Layers
from transformer.model import Transformer
from transformer.store import Store
from transformer.training import Trainer, batches_of, new_state

SETTINGS = "settings.json"


@dataclass(frozen=True)
class Scale:
    """The amount of work of each part. On a CPU, the parts only show that they work."""

    base: str  # the model of params.yaml that stands for base
    big: str
    pairs: int  # in an epoch
    steps: int  # of `train`
    big_steps: int  # of `big`
    seconds: int  # after which a part is stopped; 0: never
    training: dict[str, Any] = field(default_factory=dict, hash=False)  # settings that differ from the model's own


GPU = Scale("base", "big", WMT14_EN_DE, steps=2000, big_steps=1000, seconds=530)
SMALL = {"batch_tokens": 400, "micro_batch_tokens": 400, "warmup": 20}
CPU = Scale("tiny", "tiny", 2000, steps=6, big_steps=6, seconds=0, training=SMALL)


@dataclass(frozen=True)
class Bench:
    """A device, the folder that benchmarks.gpu.prepare wrote, and the settings that the command line changes."""

    device: torch.device
    data: Path
    out: Path
    batching: str = "by_length"

    @property
    def scale(self) -> Scale:
        return GPU if self.device.type == "cuda" else CPU

    @property
    def settings(self) -> dict[str, Any]:
        try:
            return read_json(self.data / SETTINGS)
        except FileNotFoundError:
            raise UserError(f"{self.data / SETTINGS} is missing; benchmarks.gpu.prepare makes the data") from None

    def section(self, model: str, name: str, cls: type) -> Any:
        return read(cls, self.settings["models"][model][name], f"{self.data / SETTINGS}: {model}.{name}")

    def model(self, name: str, **differences: Any) -> ModelConfig:
        return dataclasses.replace(self.section(name, "model", ModelConfig), **differences)

    def training(self, name: str, **differences: Any) -> TrainingConfig:
        chosen = {"batching": self.batching, **self.scale.training, **differences}
        if self.device.type == "cpu":
            chosen["threads"] = 1  # as on a GPU, this thread then makes each step, and torch's profiler sees it
        return dataclasses.replace(self.section(name, "training", TrainingConfig), **chosen)

    @property
    def vocabulary(self) -> int:
        return describe(self.data)["vocabulary_size"]

    def pairs(self, name: str) -> BinarisedSet:
        return open_binarised(self.data, name)

    def epoch(self) -> Repeated:
        """The training pairs, repeated to `scale.pairs` pairs."""
        return Repeated(self.pairs("train"), self.scale.pairs)

    def precision(self, config: TrainingConfig) -> str:
        return precision_of(config.precision, self.device)

    def network(self, config: ModelConfig, layers: Layers | None = None) -> Transformer:
        """A new model, always with the same weights, of the layers of a training unless others are given."""
        torch.manual_seed(1)
        layers = layers or fast.layers(self.device)
        return Transformer(config, self.vocabulary, layers).to(self.device).train()

    def trainer(
        self, model: ModelConfig, config: TrainingConfig, pairs: Pairs, folder: Path, layers: Layers | None = None
    ) -> Trainer:
        """The training of pipeline.train in a folder of its own."""
        store, batches = Store(folder, config.keep, {}), batches_of(pairs, config)
        state = new_state(self.network(model, layers), config, self.device)
        return Trainer(state, batches, self.pairs("dev"), config, store, self.device, self.precision(config), 3600.0)

    def synchronise(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def hardware(self) -> str:
        name = torch.cuda.get_device_name() if self.device.type == "cuda" else f"CPU {platform.machine()}"
        return f"{name}, {os.cpu_count()} CPU cores"


def versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__}
    return found | {"CUDA": torch.version.cuda or "–", "cuDNN": str(torch.backends.cudnn.version() or "–")}


@dataclass
class Outcome:
    """The results of a part so far. They are written even if the part fails or its time is up."""

    tables: list[Table] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def require_graphs(self, graphs: Graphs | None) -> None:
        """Count it as a failure if a training on a GPU went on without CUDA graphs."""
        if graphs and graphs.fault:
            self.failures.append(f"the training went on without CUDA graphs: {graphs.fault}")

    def table(self, *columns: str) -> list[list[str]]:
        """Begin a table. Returns the list of its rows, to which the caller appends."""
        rows: list[list[str]] = []
        self.tables.append({"columns": list(columns), "rows": rows})
        return rows

    def failed(self, name: str, error: Exception) -> str:
        """Add a failure. Returns the first line of the error."""
        said = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        self.failures.append(f"{name}: {said}")
        return said
