"""The settings of a training (section 5) and of the averaging after it (6.1)."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from transformer.config.reading import require, require_seed, require_threads


@dataclass(frozen=True)
class TrainingConfig:
    """One training (5.1 to 5.4). params.yaml explains each setting."""

    # As in ModelConfig.
    ABSENT: ClassVar[dict[str, Any]] = {
        "schedule": "warmup",
        "batching": "by_length",
        "weight_decay": 0.0,
        "r_drop": 0.0,
    }

    seed: int
    steps: int
    batch_tokens: int
    micro_batch_tokens: int
    max_length: int
    batching: Literal["by_length", "mixed"]
    label_smoothing: float
    r_drop: float
    schedule: Literal["warmup", "no_warmup"]
    warmup: int
    lr_scale: float
    beta1: float
    beta2: float
    epsilon: float
    weight_decay: float
    precision: Literal["auto", "float32", "bfloat16"]
    threads: int
    checkpoint_every: int
    keep: int
    evaluate_every: int
    log_every: int
    patience: int

    def __post_init__(self) -> None:
        sizes = ("steps", "batch_tokens", "micro_batch_tokens", "max_length", "warmup", "lr_scale", "epsilon")
        for key in (*sizes, "checkpoint_every", "keep", "evaluate_every", "log_every"):
            valid = 0 < getattr(self, key) < 2**31
            require(valid, key, getattr(self, key), "a number above 0 and below 2**31 is expected")
        require_threads(self.threads)
        require_seed(self.seed)
        require(self.patience >= 0, "patience", self.patience, "0 (off) or a whole number above it is expected")
        for key in ("weight_decay", "r_drop"):
            require(getattr(self, key) >= 0, key, getattr(self, key), "0 (off) or a number above it is expected")
        for key in ("label_smoothing", "beta1", "beta2"):
            require(0 <= getattr(self, key) < 1, key, getattr(self, key), "a number from 0 to below 1 is expected")
        require(
            self.max_length <= min(self.batch_tokens, self.micro_batch_tokens),
            "max_length",
            self.max_length,
            f"at most batch_tokens ({self.batch_tokens}) and micro_batch_tokens ({self.micro_batch_tokens}) is expected",
        )
        require(
            self.checkpoint_every <= self.steps,
            "checkpoint_every",
            self.checkpoint_every,
            f"at most steps ({self.steps}) is expected",
        )


@dataclass(frozen=True)
class AveragingConfig:
    """How many of the last checkpoints are averaged (6.1)."""

    checkpoints: int

    def __post_init__(self) -> None:
        require(self.checkpoints > 0, "checkpoints", self.checkpoints, "a whole number above 0 is expected")
