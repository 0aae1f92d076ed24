"""The settings of a training (section 5) and of the averaging after it (6.1)."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from transformer.config.arithmetic import Arithmetic, require_float32
from transformer.config.reading import Count, NotNegative, Positive, Seed, Share, Threads, Whole, require


@dataclass(frozen=True)
class TrainingConfig:
    """One training (5.1 to 5.4). params.yaml explains each setting."""

    # As in ModelConfig.
    ABSENT: ClassVar[dict[str, Any]] = {
        "batching": "by_length",
        "weight_decay": 0.0,
        "r_drop": 0.0,
        "arithmetic": "native",
    }

    seed: Seed
    steps: Count
    batch_tokens: Count
    micro_batch_tokens: Count
    max_length: Count
    batching: Literal["by_length", "mixed"]
    label_smoothing: Share
    r_drop: NotNegative
    schedule: Literal["warmup", "no_warmup"]
    warmup: Count
    lr_scale: Positive
    beta1: Share
    beta2: Share
    epsilon: Positive
    weight_decay: NotNegative
    precision: Literal["auto", "float32", "bfloat16"]
    arithmetic: Arithmetic
    threads: Threads
    checkpoint_every: Count
    keep: Count
    evaluate_every: Count
    log_every: Count
    patience: Whole

    def __post_init__(self) -> None:
        tokens = self.batch_tokens, self.micro_batch_tokens
        expected = "at most batch_tokens ({}) and micro_batch_tokens ({}) is expected".format(*tokens)
        require(self.max_length <= min(tokens), "max_length", self.max_length, expected)
        expected = f"at most steps ({self.steps}) is expected"
        require(self.checkpoint_every <= self.steps, "checkpoint_every", self.checkpoint_every, expected)
        require_float32(self.precision, self.arithmetic)


@dataclass(frozen=True)
class AveragingConfig:
    """Which checkpoints are averaged (6.1)."""

    checkpoints: Count
    choose: Literal["last", "dev_loss", "dev_bleu"]
