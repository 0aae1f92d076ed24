"""Decoding of batches: the precision, the threads and the order of the batches. The searches are in decoders/."""

import copy
import dataclasses
import threading
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from transformer.alignment import Links
from transformer.arithmetic import portable
from transformer.config.decoding import DecodingConfig
from transformer.decoders.beam import Beam
from transformer.decoders.steps import Decoder, Sentences, Translation
from transformer.device import at_once, begin_with, precision_of
from transformer.model import Transformer

SHORTEST = 8  # tokens
SMALL = 1024  # tokens; batches are not made smaller than this to occupy more threads


# The default settings of a translator. The settings of the search are the paper's (6.1); the others change
# translations at most by rounding. All are equal to base.decoding of params.yaml, which explains each setting.
PAPER = DecodingConfig(
    beam=4,
    penalty="gnmt",
    alpha=0.6,
    extra_length=50,
    batch_tokens=0,
    precision="auto",
    arithmetic="native",
    threads=2,
    attention_sentences=3,
)


COPIES: WeakKeyDictionary[Transformer, Transformer] = WeakKeyDictionary()  # of models, in bfloat16


@dataclasses.dataclass(frozen=True)
class Hypothesis:
    """A translation of a line. A field that was not requested is None. An empty line has no pieces and no attention."""

    text: str
    score: float  # log-probability divided by the length penalty
    source: list[str]  # the pieces of the normalised line, then </s>
    target: list[str]  # the pieces of the translation, then </s>
    # Of cross-attention, [layers, heads, target pieces, source pieces]. Not compared: tensors have no truth value.
    attention: Tensor | None = dataclasses.field(default=None, compare=False)
    alignment: Links | None = None  # (source word, target word), from 0


def settings_on(device: torch.device, config: DecodingConfig, d_model: int) -> DecodingConfig:
    """The settings with the values that `precision: auto` and `batch_tokens: 0` stand for with this device and model.

    With smaller batches, a GPU waits for its host, and the short operations of a small model use a CPU poorly. A wider
    model needs more memory for each token.
    """
    tokens = config.batch_tokens or (on_gpu(device) if device.type == "cuda" else min(max(2**21 // d_model, 4096), 16384))
    precision: Any = precision_with(config.arithmetic, config.precision, device)  # a value that the setting may have
    arithmetic: Any = "portable" if device.type == "cpu" and portable() else "native"  # of this process
    return dataclasses.replace(config, precision=precision, arithmetic=arithmetic, batch_tokens=tokens)


def precision_with(arithmetic: str, precision: str, device: torch.device) -> str:
    """The precision for these settings. Portable arithmetic on a CPU has float32, also if this process is not portable."""
    return "float32" if (arithmetic, device.type) == ("portable", "cpu") else precision_of(precision, device)


def on_gpu(device: torch.device) -> int:
    """The tokens of a batch. With 262,144, decoding by base reserved 19.7 GiB of an H200, in float32 and bfloat16."""
    return 262144 if torch.cuda.get_device_properties(device).total_memory > 2**36 else 131072


def model_in(precision: str, model: Transformer) -> Transformer:
    """`model` for float32, and for bfloat16 a copy with all its weights in bfloat16, which is made once.

    Autocast would cast every weight at every step. The kernels of layer norm and softmax compute in float32, and the
    search computes log-probabilities in float32.
    """
    if precision != "bfloat16":
        return model
    if model not in COPIES:  # another thread may store its own copy meanwhile
        COPIES[model] = copy.deepcopy(model).bfloat16()
    return COPIES[model]


def search_batches(
    models: Sequence[Transformer],
    sources: Sequence[Sequence[int]],
    batches: Sequence[Sequence[int]],
    decoder: Decoder,
    config: DecodingConfig,
    n_best: int,
) -> Generator[tuple[list[list[Translation]], int], None, None]:
    """At most `n_best` translations of each sentence, batch by batch, with the number of prefixes scored for the batch.

    A batch has the numbers of its `sources`. Several models are an ensemble. The precision is that of their weights. On a
    CPU several batches are decoded concurrently and share the `threads`. At the end, also after an exception or Ctrl-C,
    the searches of other threads stop, and batches not yet begun are left undone.
    """
    number, stop = at_once(models[0].embedding.device, config.threads), threading.Event()

    @torch.inference_mode()
    def search(numbers: Sequence[int]) -> tuple[list[list[Translation]], int]:
        batch = Sentences(models, [sources[number] for number in numbers], numbers, config.extra_length, stop)
        return decoder.search(batch, n_best), batch.calls

    pool = ThreadPoolExecutor(number, "decode", begin_with, (config.threads // number,))
    try:
        yield from pool.map(search, batches)
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)


def translate(model: Transformer, sources: Sequence[Sequence[int]], config: DecodingConfig) -> list[Translation]:
    """The paper's translations of one batch."""
    ((found, _),) = search_batches([model], sources, [range(len(sources))], Beam(config), config, 1)
    return [translations[0] for translations in found]


def batches_by_length(lengths: Sequence[int], tokens: int, threads: int = 1) -> list[list[int]]:
    """Sentence numbers in batches of at most `tokens` tokens, padding included; longest first, so memory peaks early.

    A longer sentence is a batch of its own, and an empty one is in no batch. A sentence counts as at least `SHORTEST`
    tokens, because the logits of a decoding step take the same memory for each sentence, whatever its length. If several
    `threads` decode one batch each, `tokens` is lowered until each thread has about two batches, but not below `SMALL`.
    """
    if threads > 1:
        tokens = min(tokens, max(SMALL, sum(lengths) // (2 * threads)))
    batches: list[list[int]] = []
    for number in sorted(filter(lengths.__getitem__, range(len(lengths))), key=lambda n: -lengths[n]):
        if batches and max(lengths[batches[-1][0]], SHORTEST) * (len(batches[-1]) + 1) <= tokens:
            batches[-1].append(number)
        else:
            batches.append([number])
    return batches
