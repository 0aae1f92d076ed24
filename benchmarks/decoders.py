"""Systems that translate with our weights: ours, Hugging Face's `generate` called in three ways, and CTranslate2.

Each function takes the precision to compute in: float32 or bfloat16, for CTranslate2 also int8. It imports its library
when called, and raises ImportError if the library is not installed.
"""

import functools
import tempfile
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.peers import marian
from pipeline.commands.export import ctranslate2_spec, tensors_of
from transformer.config.decoding import DecodingConfig
from transformer.config.vocabulary import BOS, EOS, PAD
from transformer.decoding import by_threads, model_in, translate_batches
from transformer.layout import pad
from transformer.model import Transformer

Batch = list[list[int]]
"""Source sentences or their translations, as ids of pieces."""

Translate = Callable[[list[Batch]], list[Batch]]
"""A function from batches of sources to batches of translations."""


def ours(model: Transformer, config: DecodingConfig, precision: str) -> Translate:
    converted = model_in(precision, model)

    def translations(batches: list[Batch]) -> list[Batch]:
        return [[result.ids for result in results] for results in translate_batches(converted, batches, config)]

    return translations


@functools.lru_cache(1)  # all ways to call generate share one model
def hugging_face(model: Transformer, config: DecodingConfig, precision: str) -> Callable[[Batch], Batch]:
    from transformers.utils import logging

    logging.set_verbosity_error()
    peer: Any = marian(model.config, len(model.embedding)).eval()
    missing = peer.load_state_dict(tensors_of(model), strict=False)
    assert not missing.unexpected_keys, missing
    peer.tie_weights()
    device = model.embedding.device
    peer.to(device, getattr(torch, precision))

    @torch.inference_mode()
    def translations(sources: Batch) -> Batch:
        rows = pad([[*source, EOS] for source in sources]).to(device)
        limit = max(map(len, sources)) + config.extra_length
        out = peer.generate(
            input_ids=rows,
            attention_mask=(rows != PAD).long(),
            num_beams=config.beam,
            length_penalty=0.0,
            max_new_tokens=limit,
        )
        return [[token for token in row if token not in (PAD, BOS, EOS)] for row in out.tolist()]

    return translations


def batch_by_batch(model: Transformer, config: DecodingConfig, precision: str) -> Translate:
    generate = hugging_face(model, config, precision)
    return lambda batches: list(map(generate, batches))


def called_by_threads(model: Transformer, config: DecodingConfig, precision: str) -> Translate:
    generate = hugging_face(model, config, precision)
    return lambda batches: list(by_threads(generate, batches, config.threads, 1))


def ctranslate2(model: Transformer, config: DecodingConfig, precision: str) -> Translate:
    import ctranslate2

    pieces = [f"<{number}>" for number in range(len(model.embedding))]
    for number, name in ((BOS, "<s>"), (EOS, "</s>"), (PAD, "<pad>"), (1, "<unk>")):
        pieces[number] = name
    number_of = {piece: number for number, piece in enumerate(pieces)}
    device = model.embedding.device.type
    batches_at_once = config.threads if device == "cpu" else 1
    with tempfile.TemporaryDirectory() as folder:
        ctranslate2_spec(model.cpu(), pieces).save(folder)
        model.to(device)
        peer = ctranslate2.Translator(
            folder, device=device, inter_threads=batches_at_once, intra_threads=1, compute_type=precision
        )

    def start(sources: Batch) -> list:
        return peer.translate_batch(
            [[pieces[token] for token in source] for source in sources],
            beam_size=config.beam,
            length_penalty=0.0,
            min_decoding_length=0,
            max_decoding_length=max(map(len, sources)) + config.extra_length,
            asynchronous=True,
        )

    def translations(batches: list[Batch]) -> list[Batch]:
        started = [start(sources) for sources in batches]
        return [[[number_of[p] for p in one.result().hypotheses[0]] for one in results] for results in started]

    return translations


BY_THREADS = "Hugging Face generate, called by threads"
IN_ORDER = "Hugging Face generate, 32 lines in order"
SYSTEMS = {
    "ours": ours,
    "Hugging Face generate": batch_by_batch,
    BY_THREADS: called_by_threads,
    IN_ORDER: batch_by_batch,  # the caller passes batches of 32 lines in the order of the text
    "CTranslate2": ctranslate2,
}
