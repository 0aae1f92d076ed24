"""Transformers of other libraries with the same settings, each with its loss on our padded batches.

Each function imports its library when called, and raises ImportError if the library is not installed. Tensors are named
as in model.py. torch.nn.Transformer also applies `dropout` to the attention weights and after the ReLU.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.batch import Batch
from transformer.config.model import ModelConfig
from transformer.config.vocabulary import BOS, EOS, PAD
from transformer.layers import sinusoids
from transformer.model import loss

LONGEST = 512


class TorchTransformer(nn.Module):
    """torch.nn.Transformer with tied embeddings, sinusoidal positions and masks.

    Unlike our model, it also normalises the output of each stack.
    """

    positions: Tensor

    def __init__(self, config: ModelConfig, vocabulary: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, config.d_model, padding_idx=PAD)
        nn.init.normal_(self.embedding.weight, std=config.d_model**-0.5)
        self.transformer = nn.Transformer(
            config.d_model, config.h, config.N, config.N, config.d_ff, config.dropout, batch_first=True
        )
        self.register_buffer("positions", sinusoids(LONGEST, config.d_model))
        self.dropout, self.scale = nn.Dropout(config.dropout), math.sqrt(config.d_model)

    def forward(self, source_BS: Tensor, target_BT: Tensor) -> Tensor:
        padding = source_BS == PAD
        causal = nn.Transformer.generate_square_subsequent_mask(target_BT.shape[1], device=source_BS.device)
        hidden = self.transformer(
            self.embed(source_BS),
            self.embed(target_BT),
            tgt_mask=causal,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
            tgt_is_causal=True,
        )
        return F.linear(hidden, self.embedding.weight)

    def embed(self, ids: Tensor) -> Tensor:
        return self.dropout(self.embedding(ids) * self.scale + self.positions[: ids.shape[1]])


def torch_loss(model: nn.Module, batch: Batch, smoothing: float) -> Tensor:
    return loss(model(batch.source.ids_BS, batch.target.ids_BS), padded_labels(batch), smoothing)


def padded_labels(batch: Batch) -> Tensor:
    labels_BT = torch.zeros_like(batch.target.ids_BS)
    labels_BT.view(-1)[batch.real_N] = batch.labels_N
    return labels_BT


def marian(config: ModelConfig, vocabulary: int) -> nn.Module:
    from transformers import MarianConfig, MarianMTModel

    from pipeline.extras.export.__main__ import marian_config

    ids = {"pad_token_id": PAD, "eos_token_id": EOS, "decoder_start_token_id": BOS}
    return MarianMTModel(MarianConfig(**marian_config(config, vocabulary), **ids))


def marian_loss(model: nn.Module, batch: Batch, smoothing: float) -> Tensor:
    source_BS = batch.source.ids_BS
    output = model(
        input_ids=source_BS,
        attention_mask=(source_BS != PAD).long(),
        decoder_input_ids=batch.target.ids_BS,
        use_cache=False,
    )
    return loss(output.logits, padded_labels(batch), smoothing)
