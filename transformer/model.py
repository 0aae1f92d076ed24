"""The Transformer (section 3).

Shapes: B sentences, S source positions, T target positions, D d_model, V vocabulary, K beam.

Initialisation (the paper gives none; the authors' tensor2tensor, as it was in 2017):
    matrices                    Glorot-uniform; W^Q, W^K and W^V of all heads as one matrix, which torch has, too (in
                                cross-attention the authors had W^Q by itself)
    embeddings, learned positions   normal, deviation d_model^-0.5
    biases                      0
    layer norms                 gain 1, bias 0
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.attention import MultiHeadAttention, added, position_mask, sentence_mask
from transformer.config.model import ModelConfig
from transformer.config.vocabulary import PAD
from transformer.dropout import dropout
from transformer.layers import DecoderLayer, EncoderLayer, LayerCache, Masks, Positions, Weights
from transformer.layout import Rows


@dataclass
class DecoderCache:
    """What the decoder keeps between two steps."""

    layers: list[LayerCache]
    source_mask: Tensor | None  # [B, 1, 1, S], added to scores
    mask_BKN: Tensor  # added to scores: which of the N keys in `layers` are each hypothesis's own or its ancestors'
    ends: list[int]  # of each position's keys

    def advance(self, parent_BK: Tensor, neighbourhood: int) -> None:
        """A new position, at which each hypothesis goes on from that one of its sentence's."""
        mask_BKN = self.mask_BKN.gather(1, parent_BK[..., None].expand(-1, -1, self.mask_BKN.shape[2]))
        if neighbourhood and len(self.ends) > neighbourhood:
            mask_BKN[..., : self.ends[-1 - neighbourhood]] = float("-inf")
        own_KK = added(torch.eye(parent_BK.shape[1], dtype=torch.bool, device=parent_BK.device))
        self.mask_BKN = torch.cat([mask_BKN, own_KK.expand(len(parent_BK), -1, -1)], 2)
        self.ends.append(self.mask_BKN.shape[2])

    def select(self, sentences: Tensor) -> None:
        """Keep these sentences."""
        for layer in self.layers:
            layer.select(sentences)
        self.mask_BKN = self.mask_BKN.index_select(0, sentences)
        if self.source_mask is not None:
            self.source_mask = self.source_mask.index_select(0, sentences)


class Transformer(nn.Module):
    """Encoder and decoder of N layers with one embedding matrix for source, target and pre-softmax projection (3.4)."""

    def __init__(self, config: ModelConfig, vocabulary_size: int) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Parameter(torch.empty(vocabulary_size, config.d_model))
        self.source_positions = Positions(config)
        self.target_positions = Positions(config)
        self.encoder = nn.ModuleList(EncoderLayer(config) for _ in range(config.N))
        self.decoder = nn.ModuleList(DecoderLayer(config) for _ in range(config.N))
        # Pre-norm leaves the last sum unnormalised (Xiong et al. 2020); post-norm, the paper's, needs nothing here.
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
        """Let torch.compile make one program of each kind of layer, for rows of any number and width; the weights stay.

        One layer is compiled for all of its kind, so it takes a sixth of what the whole model would.
        """
        for layer in [*self.encoder, *self.decoder]:
            layer.compile(dynamic=True, backend=backend)

    def forward(self, source_BS: Tensor, target_BT: Tensor) -> Tensor:
        """Logits of the token after each target position, [B, T, V]. Ids are padded at the end by PAD."""
        return self.logits(self.hidden(Rows(source_BS), Rows(target_BT)))

    def hidden(self, source: Rows, target: Rows, keep: Weights | None = None) -> Tensor:
        """The decoder's output, [B, T, D]. `keep` collects the attention weights."""
        masks = self.masks(source, target)
        memory_BSD = self.encode(source, masks, keep)
        x_BTD = self.embed(target, self.target_positions)
        for layer in self.decoder:
            x_BTD = layer(x_BTD, memory_BSD, masks, keep)
        return self.decoder_norm(x_BTD)

    def logits(self, hidden: Tensor) -> Tensor:
        return F.linear(hidden, self.embedding)

    def masks(self, source: Rows, target: Rows | None = None) -> Masks:
        near = self.config.neighbourhood
        if source.sentence_BS is not None:
            encoder = sentence_mask(source, source, neighbourhood=near)
            return Masks(sentence_mask(target, source), encoder, sentence_mask(target, target, True, near))
        cross = (source.ids_BS != PAD)[:, None, None, :]
        length, device = source.ids_BS.shape[1], source.ids_BS.device
        encoder = position_mask(length, False, near, device)
        decoder = None
        if near and target is not None:
            length = target.ids_BS.shape[1]
            decoder = position_mask(length, True, near, device)
        return Masks(cross, cross if encoder is None else cross & encoder, decoder)

    def embed(self, rows: Rows, positions: Positions, start: int = 0) -> Tensor:
        """Embeddings times sqrt(d_model) plus positions, with dropout on the sum (3.4, 3.5, 5.4)."""
        x = F.embedding(rows.ids_BS, self.embedding) * math.sqrt(self.config.d_model)
        added = positions(start, start + rows.ids_BS.shape[1])
        x = x + (added if rows.position_BS is None else F.embedding(rows.position_BS, added))
        return dropout(x, self.config.dropout, self.training)

    def encode(self, source: Rows, masks: Masks, keep: Weights | None = None) -> Tensor:
        """The encoder's output, [B, S, D]."""
        x_BSD = self.embed(source, self.source_positions)
        for layer in self.encoder:
            x_BSD = layer(x_BSD, masks, keep)
        return self.encoder_norm(x_BSD)

    def start(self, source_BS: Tensor) -> DecoderCache:
        """Encode once; the cache from which `step` goes on with one hypothesis a sentence."""
        source = Rows(source_BS)
        masks = self.masks(source)
        memory_BSD = self.encode(source, masks)
        layers = [LayerCache(*layer.cross_attention.keys_values(memory_BSD)) for layer in self.decoder]
        return DecoderCache(layers, added(masks.source), memory_BSD.new_empty(len(source_BS), 1, 0), [])

    def step(self, tokens_BK: Tensor, parent_BK: Tensor, cache: DecoderCache) -> Tensor:
        """Logits of the token that follows each hypothesis, [B, K, V].

        Given are its newest token and which of its sentence's hypotheses at the last step it goes on from: 0 to K - 1, of
        the K of that step, 1 before the first.
        """
        position = len(cache.ends)
        cache.advance(parent_BK, self.config.neighbourhood)
        mask = cache.mask_BKN[:, None]
        x_BKD = self.embed(Rows(tokens_BK.flatten()[:, None]), self.target_positions, position).view(
            *tokens_BK.shape, -1
        )
        for layer, layer_cache in zip(self.decoder, cache.layers):
            x_BKD = layer.step(x_BKD, layer_cache, mask, cache.source_mask)
        return self.logits(self.decoder_norm(x_BKD))
