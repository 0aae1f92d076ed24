"""What the parts of the benchmark share: the device, the data and the settings."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.workload import random_pairs
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

# On a CPU this thread makes each step, as on a GPU, so that torch's profiler sees it.
SMALL = {"batch_tokens": 400, "micro_batch_tokens": 400, "warmup": 20, "threads": 1}


@dataclass(frozen=True)
class Bench:
    """A device. On a CPU a small model with few pairs stands for all models, to show that the parts work."""

    device: torch.device

    @property
    def cuda(self) -> bool:
        return self.device.type == "cuda"

    @property
    def vocabulary(self) -> int:
        return 37000 if self.cuda else 90

    def model(self, name: str = "base", **differences: Any) -> ModelConfig:
        own = section(load(), "models", name if self.cuda else "tiny", "model", ModelConfig)
        return dataclasses.replace(own, **differences)

    def training(self, name: str = "base", **differences: Any) -> TrainingConfig:
        own = section(load(), "models", name if self.cuda else "tiny", "training", TrainingConfig)
        return dataclasses.replace(own, **({} if self.cuda else SMALL) | differences)

    def train(self) -> BinarisedSet:
        return random_pairs(self.vocabulary, 4_500_000 if self.cuda else 2000)  # as many as in WMT14 EN-DE

    def dev(self) -> BinarisedSet:
        return random_pairs(self.vocabulary, 2000 if self.cuda else 40)

    def network(self, config: ModelConfig, layers: Layers | None = None) -> Transformer:
        """A new model, always with the same weights, of the layers of a training unless others are given."""
        torch.manual_seed(1)
        layers = layers or fast.layers(self.device)
        return Transformer(config, self.vocabulary, layers).to(self.device).train()

    def trainer(self, model: ModelConfig, config: TrainingConfig, folder: Path) -> Trainer:
        store, batches = Store(folder, config.keep, {}), batches_of(self.train(), config)
        state, precision = new_state(self.network(model), config, self.device), precision_of(config.precision, self.device)
        return Trainer(state, batches, self.dev(), config, store, self.device, precision, 3600.0)
