"""What the parts of the benchmark share: the device, the data, the settings, and how much each part does."""

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from benchmarks.workload import WMT14_EN_DE, random_pairs
from pipeline.settings.params import load, section
from pipeline.text.binarised import BinarisedSet
from transformer import fast
from transformer.config.model import ModelConfig
from transformer.config.training import TrainingConfig
from transformer.device import precision_of
from transformer.layers import Layers
from transformer.model import Transformer
from transformer.store import Store
from transformer.training import Trainer, batches_of, new_state


@dataclass(frozen=True)
class Scale:
    """The amount of work of each part. On a CPU, the parts only show that they work."""

    base: str  # the model of params.yaml that stands for base
    big: str
    vocabulary: int
    train: int  # pairs in an epoch
    dev: int  # pairs
    steps: int  # of `train`
    big_steps: int  # of `big`
    training: dict[str, Any] = field(default_factory=dict, hash=False)  # settings that differ from the model's own


# On a CPU this thread makes each step, as on a GPU, so that torch's profiler sees it.
SMALL = {"batch_tokens": 400, "micro_batch_tokens": 400, "warmup": 20, "threads": 1}
GPU = Scale("base", "big", 37000, WMT14_EN_DE, 2000, steps=2000, big_steps=1000)
CPU = Scale("tiny", "tiny", 90, 2000, 40, steps=6, big_steps=6, training=SMALL)


@dataclass(frozen=True)
class Bench:
    device: torch.device

    @property
    def scale(self) -> Scale:
        return GPU if self.device.type == "cuda" else CPU

    def model(self, name: str, **differences: Any) -> ModelConfig:
        return dataclasses.replace(section(load(), "models", name, "model", ModelConfig), **differences)

    def training(self, name: str, **differences: Any) -> TrainingConfig:
        own = section(load(), "models", name, "training", TrainingConfig)
        return dataclasses.replace(own, **{**self.scale.training, **differences})

    def train(self) -> BinarisedSet:
        return random_pairs(self.scale.vocabulary, self.scale.train)

    def dev(self) -> BinarisedSet:
        return random_pairs(self.scale.vocabulary, self.scale.dev)

    def network(self, config: ModelConfig, layers: Layers | None = None) -> Transformer:
        """A new model, always with the same weights, of the layers of a training unless others are given."""
        torch.manual_seed(1)
        layers = layers or fast.layers(self.device)
        return Transformer(config, self.scale.vocabulary, layers).to(self.device).train()

    def trainer(self, model: ModelConfig, config: TrainingConfig, folder: Path) -> Trainer:
        store, batches = Store(folder, config.keep, {}), batches_of(self.train(), config)
        state, precision = new_state(self.network(model), config, self.device), precision_of(config.precision, self.device)
        return Trainer(state, batches, self.dev(), config, store, self.device, precision, 3600.0)
