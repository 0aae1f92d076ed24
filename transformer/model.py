"""The Transformer (section 3): encoder and decoder (3.1), embeddings and logits (3.4), and the loss (5.4).

Training and incremental decoding use the same code. Faster layers for a GPU are in transformer/fast/ and come in by the
argument `layers`.

Shapes: B sentences, S source positions, T target positions or hypotheses, P either, D d_model, V vocabulary.

Initialisation, as in the authors' tensor2tensor of 2017 (the paper does not state it):
    matrices                        Glorot-uniform. W^Q, W^K and W^V of all heads are one matrix, as in
                                    torch.nn.MultiheadAttention (in tensor2tensor's cross-attention, W^Q is separate).
    embeddings, learned positions   normal, standard deviation d_model^-0.5
    biases                          0
    layer norms                     gain 1, bias 0
"""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.attention import Masks, MultiHeadAttention
from transformer.config.model import ModelConfig
from transformer.config.vocabulary import PAD
from transformer.layers import REFERENCE, DecoderLayer, EncoderLayer, LayerCache, Layers, Positions

Place = tuple[Tensor, int]
"""(positions, stop): the position of each id in its sentence, which broadcasts to the shape of the ids, and a number above
all of them. The table of encodings needs `stop` rows; to read the largest position from a GPU would mean to wait for it."""


class Transformer(nn.Module):
    """Encoder and decoder of N layers (3.1).

    Source embedding, target embedding and pre-softmax projection share one matrix (3.4).
    """

    def __init__(self, config: ModelConfig, vocabulary_size: int, layers: Layers = REFERENCE) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Parameter(torch.empty(vocabulary_size, config.d_model))
        self.source_positions, self.target_positions = Positions(config), Positions(config)  # two: learned tables differ
        self.dropout = layers.dropout(config.dropout)
        # torch does not type ModuleList by its elements.
        self.encoder: Sequence[EncoderLayer] = nn.ModuleList(  # type: ignore[assignment]
            layers.encoder(config, layers.dropout) for _ in range(config.N)
        )
        self.decoder: Sequence[DecoderLayer] = nn.ModuleList(  # type: ignore[assignment]
            layers.decoder(config, layers.dropout) for _ in range(config.N)
        )
        # Pre-norm normalises the output of each stack (Xiong et al. 2020). With post-norm, as in the paper, every layer
        # normalises its own output.
        pre = config.norm == "pre"
        self.encoder_norm = nn.LayerNorm(config.d_model) if pre else nn.Identity()
        self.decoder_norm = nn.LayerNorm(config.d_model) if pre else nn.Identity()
        self.initialise()
        # This switches cuDNN's attention off for the whole process. It takes 0.2 seconds to plan each new shape. On Hopper
        # GPUs, its backward pass can return NaN with a mask at lengths such as 64 and 192, if all scores of a query are
        # very low (pytorch issue 196678).
        torch.backends.cuda.enable_cudnn_sdp(False)

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

    def forward(self, source_BS: Tensor, target_BT: Tensor) -> Tensor:
        """Logits of the token after each target position, [B, T, V].

        Each row is a sentence, padded at its end by PAD. The source ends with EOS, and the target begins with BOS.
        """
        return self.logits(self.hidden(source_BS, target_BT))

    def hidden(
        self,
        source_BS: Tensor,
        target_BT: Tensor,
        masks: Masks | None = None,
        source_place: Place | None = None,
        target_place: Place | None = None,
    ) -> Tensor:
        """The decoder's output, [B, T, D]. Packed rows, which hold several sentences, need masks and places."""
        masks = masks or Masks.of(source_BS, target_BT, self.config.neighbourhood)
        memory_BSD = self.encode(source_BS, masks, source_place)
        return self.decode(target_BT, memory_BSD, masks, target_place)

    def encode(self, source_BS: Tensor, masks: Masks, place: Place | None = None) -> Tensor:
        """The encoder's output, [B, S, D]."""
        x_BSD = self.embed(source_BS, self.source_positions, place)
        for layer in self.encoder:
            x_BSD = layer(x_BSD, masks.encoder)
        return self.encoder_norm(x_BSD)

    def decode(
        self,
        target_BT: Tensor,
        memory_BSD: Tensor | None,
        masks: Masks,
        place: Place | None = None,
        caches: Sequence[LayerCache | None] | None = None,
    ) -> Tensor:
        """The decoder's output, [B, T, D].

        In incremental decoding, there is a cache for each layer, the memory is None (see `DecoderLayer`), and the target
        has the newest token of each of T hypotheses.
        """
        x_BTD = self.embed(target_BT, self.target_positions, place)
        for layer, cache in zip(self.decoder, caches or [None] * self.config.N):
            x_BTD = layer(x_BTD, memory_BSD, masks, cache)
        return self.decoder_norm(x_BTD)

    def embed(self, ids_BP: Tensor, positions: Positions, place: Place | None) -> Tensor:
        """Embeddings times sqrt(d_model) plus position encodings, with dropout on the sum (3.4, 3.5, 5.4); [B, P, D].

        Without a `place`, each row is one sentence.
        """
        length = ids_BP.shape[1]
        position, stop = place or (torch.arange(length, device=ids_BP.device), length)
        x_BPD = F.embedding(ids_BP, self.embedding) * math.sqrt(self.config.d_model)
        return self.dropout(x_BPD + positions(position, stop))

    def logits(self, hidden: Tensor) -> Tensor:
        """The decoder's output projected on the vocabulary (3.4), [..., V]."""
        return F.linear(hidden, self.embedding)


def loss(logits_BTV: Tensor, labels_BT: Tensor, smoothing: float) -> Tensor:
    """The cross-entropy with the target (1 - smoothing) * onehot + smoothing / V (5.4), summed over tokens but PAD."""
    # Training computes the same in fast/loss.py, without all logits in memory.
    return F.cross_entropy(
        logits_BTV.flatten(0, 1), labels_BT.flatten(), ignore_index=PAD, label_smoothing=smoothing, reduction="sum"
    )
