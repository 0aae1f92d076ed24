"""Estimates of the tokens, operations, memory and disk of a training before it runs.

The lengths of a corpus come from the report of binarise. Until the corpus is built, they are those of WMT14. Lengths are in
pieces, EOS included.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.settings.params import text_corpus
from pipeline.settings.score_files import content, within
from transformer.config.model import ModelConfig
from transformer.config.training import TrainingConfig
from transformer.flops import Lengths, forward_flops, training_flops

TYPICAL = (27.0, 29.0)  # pieces of the source and the target of a WMT14 pair (benchmarks/workload.py)
DEV = 3000  # pairs of the dev set, as in newstest2013
FULL = 0.97  # tokens of the longer side of a batch / batch_tokens: 0.96 to 0.985 in results/, 0.94 with `batching: mixed`
SPREAD = 1.25  # sum of n^2 / (sum of n * mean n): 1.13 in the demonstration, 1.4 for log-normal lengths
COPIES = 2  # DVC's cache holds a second copy of the outputs if the file system cannot share blocks
PROCESS = 330e6  # memory in bytes of a training of a small model, on a CPU
TRAINED_WEIGHT = 16  # bytes of a weight, its gradient and Adam's two moments
# Bytes kept for the backward pass / (tokens x N (8 d_model + 2 d_ff)), in float32: 4.7 to 5.1 with the widths of `base`
KEPT = 4.9


@dataclass(frozen=True)
class Corpus:
    source: float  # mean number of pieces per sentence
    target: float
    vocabulary: int
    dev: int  # pairs of the dev set


def corpus(params: Mapping[str, Any], name: str) -> Corpus:
    pieces = {**params["base"]["vocabulary"], **params["corpora"][text_corpus(params, name)]["vocabulary"]}["pieces"]
    built = within(content(Path("scores/corpora", name, "binarise.json")), "sets")
    if not built:
        return Corpus(*TYPICAL, pieces, DEV)
    source, target = (built["train"][f"{side}_tokens"] / built["train"]["pairs"] + 1 for side in ("source", "target"))
    return Corpus(source, target, pieces, built["dev"]["pairs"])


@dataclass(frozen=True)
class Training:
    """A planned training."""

    model: ModelConfig
    config: TrainingConfig
    corpus: Corpus

    @property
    def parameters(self) -> int:
        """The number of weights, counted in a model that takes no memory for them."""
        import torch  # most commands do not need it

        from transformer.model import Transformer

        with torch.device("meta"):
            return sum(weight.numel() for weight in Transformer(self.model, self.corpus.vocabulary).parameters())

    @property
    def lengths(self) -> Lengths:
        """The estimated sums over the pairs of all steps."""
        longer = self.config.steps * self.config.batch_tokens * FULL
        scale = longer / max(self.corpus.source, self.corpus.target)
        n, m = scale * self.corpus.source, scale * self.corpus.target
        seen, predicted = self.corpus.source * SPREAD, self.corpus.target * SPREAD
        return Lengths(*map(round, (n, m, n * seen, m * predicted, m * seen)))

    @property
    def tokens(self) -> int:
        return self.lengths.source_tokens + self.lengths.target_tokens

    @property
    def flops(self) -> int:
        passes = 2 if self.config.r_drop else 1
        return passes * sum(training_flops(forward_flops(self.model, self.corpus.vocabulary, self.lengths)).values())

    @property
    def disk(self) -> int:
        """Bytes of checkpoints and average, their copies in DVC's cache, and the folder in work/, which `train` removes."""
        weights = COPIES * (self.config.keep + 1) + self.config.keep + 3
        return weights * self.parameters * 4

    @property
    def memory(self) -> float:
        """Peak memory in bytes: the process, weights, gradients, moments, and what is kept for the backward pass."""
        part = min(self.config.micro_batch_tokens, self.config.batch_tokens) * FULL
        both = (self.corpus.source + self.corpus.target) / max(self.corpus.source, self.corpus.target)
        kept = KEPT * self.model.N * (8 * self.model.d_model + 2 * self.model.d_ff)
        return PROCESS + self.parameters * TRAINED_WEIGHT + part * both * kept
