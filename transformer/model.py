"""The Transformer (section 3).

Shapes: B sentences, S source positions, T target positions, D d_model, V vocabulary, K hypotheses per sentence, N keys.

Initialisation, as in the authors' tensor2tensor of 2017 (the paper does not state it):
    matrices                        Glorot-uniform. W^Q, W^K and W^V of all heads are one matrix, as in
                                    torch.nn.MultiheadAttention (in tensor2tensor's cross-attention, W^Q is separate).
    embeddings, learned positions   normal, standard deviation d_model^-0.5
    biases                          0
    layer norms                     gain 1, bias 0
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.attention import MultiHeadAttention, additive_mask, position_mask, sentence_mask
from transformer.compilation import configure
from transformer.config.model import ModelConfig
from transformer.config.vocabulary import PAD
from transformer.dropout import dropout
from transformer.fused import Spans, lowered, trains, usable, within_sentences
from transformer.layers import DecoderLayer, EncoderLayer, LayerCache, Masks, Positions
from transformer.layout import Rows


@dataclass
class DecoderCache:
    """The state of incremental decoding between two steps."""

    layers: list[LayerCache]
    source_mask: Tensor  # [B, 1, 1, S], additive
    mask_BKN: Tensor  # additive: which of the N keys in `layers` belong to each hypothesis or its ancestors
    ends: list[int]  # for each position, the number of keys up to and including it

    def advance(self, parent_BK: Tensor, neighbourhood: int) -> None:
        """Extend the mask by one position. Each hypothesis continues hypothesis `parent_BK` of its sentence."""
        mask_BKN = self.mask_BKN.gather(1, parent_BK[..., None].expand(-1, -1, self.mask_BKN.shape[2]))
        if neighbourhood and len(self.ends) > neighbourhood:
            mask_BKN[..., : self.ends[-1 - neighbourhood]] = float("-inf")
        own_KK = torch.eye(parent_BK.shape[1], dtype=torch.bool, device=parent_BK.device)
        own_KK = additive_mask(own_KK, mask_BKN.dtype)
        self.mask_BKN = torch.cat([mask_BKN, own_KK.expand(len(parent_BK), -1, -1)], 2)
        self.ends.append(self.mask_BKN.shape[2])

    def select(self, sentences: Tensor) -> None:
        """Keep the sentences with these indices and drop the others."""
        for layer in self.layers:
            layer.select(sentences)
        self.mask_BKN = self.mask_BKN.index_select(0, sentences)
        self.source_mask = self.source_mask.index_select(0, sentences)


class Transformer(nn.Module):
    """Encoder and decoder of N layers (3.1).

    Source embedding, target embedding and pre-softmax projection share one matrix (3.4).
    """

    def __init__(self, config: ModelConfig, vocabulary_size: int) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Parameter(torch.empty(vocabulary_size, config.d_model))
        self.source_positions = Positions(config)
        self.target_positions = Positions(config)
        # torch does not type ModuleList by its elements.
        self.encoder: Sequence[EncoderLayer] = nn.ModuleList(  # type: ignore[assignment]
            EncoderLayer(config) for _ in range(config.N)
        )
        self.decoder: Sequence[DecoderLayer] = nn.ModuleList(  # type: ignore[assignment]
            DecoderLayer(config) for _ in range(config.N)
        )
        # Pre-norm normalises the output of each stack (Xiong et al. 2020). With post-norm, as in the paper, every layer
        # normalises its own output.
        final = nn.LayerNorm if config.norm == "pre" else lambda _: nn.Identity()
        self.encoder_norm, self.decoder_norm = final(config.d_model), final(config.d_model)
        self.initialise()

    @torch.no_grad()
    def initialise(self) -> None:
        deviation = self.config.d_model**-0.5
        nn.init.normal_(self.embedding, std=deviation)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)
            elif isinstance(module, MultiHeadAttention):
                nn.init.xavier_uniform_(module.projection)
                if module.kind == "additive":
                    nn.init.xavier_uniform_(module.v_HE)
            elif isinstance(module, Positions) and module.learned:
                nn.init.normal_(module.table, std=deviation)

    def compile_layers(self, backend: str | Callable = "inductor") -> None:
        """Compile the layers in place by torch.compile, for any number of rows of any width.

        All layers of a kind share one program, so this takes a sixth of the time of compiling the whole model.
        """
        configure()
        torch.compiler.assume_constant_result(usable)  # marks it; here, because this imports torch._dynamo
        for layer in [*self.encoder, *self.decoder]:
            layer.compile(dynamic=True, backend=backend)

    def forward(self, source_BS: Tensor, target_BT: Tensor) -> Tensor:
        """Logits of the token after each target position, [B, T, V]. Ids are padded at the end by PAD."""
        return self.logits(self.hidden(Rows(source_BS), Rows(target_BT)))

    def hidden(self, source: Rows, target: Rows) -> Tensor:
        """The decoder's output, [B, T, D]."""
        masks = self.masks(source, target)
        memory_BSD = self.encode(source, masks)
        x_BTD = self.embed(target, self.target_positions)
        for layer in self.decoder:
            x_BTD = layer(x_BTD, memory_BSD, masks)
        return self.decoder_norm(x_BTD)

    def logits(self, hidden: Tensor) -> Tensor:
        """The decoder's output projected on the vocabulary (3.4), [..., V]."""
        return F.linear(hidden, self.embedding)

    def masks(self, source: Rows, target: Rows | None = None) -> Masks:
        """The masks of a batch. Without a `target`, the masks of the encoder and of incremental decoding."""
        near = self.config.neighbourhood
        if source.sentence_BS is not None:
            assert target is not None, "packed rows need a target"
            if within_sentences(self.config, source.ids_BS.device):
                between = Spans.between
                return Masks(between(target, source), between(source, source), between(target, target, causal=True))
            encoder = sentence_mask(source, source, neighbourhood=near)
            return Masks(sentence_mask(target, source), encoder, sentence_mask(target, target, True, near))
        cross = (source.ids_BS != PAD)[:, None, None, :]
        length, device = source.ids_BS.shape[1], source.ids_BS.device
        inside = position_mask(length, False, near, device)
        decoder = None
        if near and target is not None:
            length = target.ids_BS.shape[1]
            decoder = position_mask(length, True, near, device)
        return Masks(cross, cross if inside is None else cross & inside, decoder)

    def embed(self, rows: Rows, positions: Positions, start: int = 0) -> Tensor:
        """Embeddings times sqrt(d_model) plus position encodings, with dropout on the sum (3.4, 3.5, 5.4); [B, S, D].

        `start` is the position of the first column of unpacked rows.
        """
        x = F.embedding(rows.ids_BS, self.embedding) * math.sqrt(self.config.d_model)
        stop = start + rows.ids_BS.shape[1]
        x = x + (positions(start, stop) if rows.position_BS is None else positions.at(rows.position_BS))
        if trains(self, x) and self.config.norm == "post":
            x = lowered(x)
        return dropout(x, self.config.dropout, self.training)

    def encode(self, source: Rows, masks: Masks) -> Tensor:
        """The encoder's output, [B, S, D]."""
        x_BSD = self.embed(source, self.source_positions)
        for layer in self.encoder:
            x_BSD = layer(x_BSD, masks)
        return self.encoder_norm(x_BSD)

    def start(self, source_BS: Tensor) -> DecoderCache:
        """Encode the sources. Returns the cache for the first `step`, with one hypothesis of each sentence."""
        source = Rows(source_BS)
        masks = self.masks(source)
        memory_BSD = self.encode(source, masks)
        layers = [LayerCache(*layer.cross_attention.keys_values(memory_BSD)) for layer in self.decoder]
        assert isinstance(masks.source, Tensor)
        source_mask = additive_mask(masks.source, memory_BSD.dtype)
        return DecoderCache(layers, source_mask, memory_BSD.new_empty(len(source_BS), 1, 0), [])

    def step(self, tokens_BK: Tensor, parent_BK: Tensor, cache: DecoderCache) -> tuple[Tensor, Tensor]:
        """Decode one position. Returns the decoder's output, [B, K, D], and the logits of the next token, [B, K, V].

        `tokens_BK` is the newest token of each hypothesis. `parent_BK` is the hypothesis of the previous step that
        the token continues, as a number within the sentence. At the first step this is 0.
        """
        position = len(cache.ends)
        cache.advance(parent_BK, self.config.neighbourhood)
        mask = cache.mask_BKN[:, None]
        x_BKD = self.embed(Rows(tokens_BK.flatten()[:, None]), self.target_positions, position).view(*tokens_BK.shape, -1)
        for layer, layer_cache in zip(self.decoder, cache.layers):
            x_BKD = layer.step(x_BKD, layer_cache, mask, cache.source_mask)
        hidden_BKD = self.decoder_norm(x_BKD)
        return hidden_BKD, self.logits(hidden_BKD)


def attention_weights_of(model: Transformer, source: Rows, target: Rows) -> dict[str, list[Tensor]]:
    """The attention weights of `model` for `source` and `target`.

    The keys are "encoder", "decoder" and "cross". Each value has one tensor [B, H, Q, K] per layer.
    """
    modules = {
        "encoder": [layer.self_attention for layer in model.encoder],
        "decoder": [layer.self_attention for layer in model.decoder],
        "cross": [layer.cross_attention for layer in model.decoder],
    }
    kept: dict[str, list[Tensor]] = {kind: [] for kind in modules}
    hooks = [
        module.register_forward_hook(partial(keep_weights, kept[kind]), with_kwargs=True)
        for kind in modules
        for module in modules[kind]
    ]
    try:
        model.hidden(source, target)
    finally:
        for hook in hooks:
            hook.remove()
    return kept


def keep_weights(
    kept: list[Tensor], attention: MultiHeadAttention, inputs: tuple, options: dict[str, Any], output: Tensor
) -> Tensor:
    """A forward hook that appends the weights of `attention` to `kept` and returns the output computed from them."""
    q_BHQE, k_BHKE, v_BHKE, mask = inputs
    kept.append(attention.weights(q_BHQE, k_BHKE, mask, **options))
    return attention.attended(kept[-1], v_BHKE)
