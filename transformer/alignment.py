"""The attention weights of a model, and the word alignment of a translation from those of cross-attention.

Shapes: L layers, H heads, T target pieces, S source pieces; both with EOS. Those of attention are as in attention.py.
"""

import copy
import math
import re
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from functools import partial
from itertools import accumulate
from statistics import mode

from torch import Tensor

from transformer.attention import MultiHeadAttention
from transformer.model import Transformer
from transformer.vocabulary import SPACE, Vocabulary

Links = list[tuple[int, int]]
"""Pairs of a source word and a target word, numbered from 0. Words are separated by whitespace."""

Weights = dict[str, list[Tensor]]
"""One tensor [B, H, Q, K] per layer under each of the keys "encoder", "decoder" and "cross"."""

WeightsOf = Callable[[Tensor, Tensor], Weights]


def attention_weights_of(model: Transformer) -> WeightsOf:
    """A function that computes the attention weights of `model` for a batch with one sentence in each row.

    Its arguments are the ids of the source [B, S] and of the target [B, T]. It belongs to one thread.
    """
    # Hooks on a copy with the same weights do not see the calls of other threads. A copy takes longer than a short line.
    copied = copy.deepcopy(model, {id(tensor): tensor for tensor in [*model.parameters(), *model.buffers()]})
    modules = {
        "encoder": [layer.self_attention for layer in copied.encoder],
        "decoder": [layer.self_attention for layer in copied.decoder],
        "cross": [layer.cross_attention for layer in copied.decoder],
    }
    kept: Weights = {}
    for kind, attentions in modules.items():
        for attention in attentions:
            attention.register_forward_hook(partial(keep_weights, kept, kind))

    def weights(source_BS: Tensor, target_BT: Tensor) -> Weights:
        kept.update({kind: [] for kind in modules})
        copied.hidden(source_BS, target_BT)
        return dict(kept)

    return weights


def keep_weights(kept: Weights, kind: str, attention: MultiHeadAttention, inputs: tuple, output: Tensor) -> Tensor:
    """A forward hook that appends the weights of `attention` to `kept` and returns the output computed from them."""
    x_BQD, memory_BKD, mask, *_ = inputs
    q_BHQE, k_BHKE, v_BHKE = attention.projections(x_BQD, memory_BKD)
    weights_BHQK = attention.weights(q_BHQE, k_BHKE, mask)
    kept[kind].append(weights_BHQK)
    return attention.output((attention.dropout(weights_BHQK) @ v_BHKE).transpose(1, 2).flatten(2))


def links(cross_LHTS: Tensor, source_words: Sequence[int], target_words: Sequence[int]) -> Links:
    """The alignment, sorted.

    A source word and a target word are linked if a piece of the target word attends most to a piece of the source word.
    The weights are those of one layer, averaged over its heads. This layer is at five sixths of the depth, rounded up. In
    the base model it is the fifth of six layers; this layer aligns best (Garg et al. 2019). In the demonstration it is
    the second of two layers.
    `source_words` and `target_words` give, for each piece but EOS, the number of its word, or -1 if it is in no word.
    """
    weights_TS = cross_LHTS[math.ceil(5 * len(cross_LHTS) / 6) - 1].mean(0)
    if not (source_words and target_words):
        return []
    best_T = weights_TS[: len(target_words), : len(source_words)].argmax(1).tolist()
    pairs = {(source_words[best], word) for best, word in zip(best_T, target_words)}
    return sorted(pair for pair in pairs if min(pair) >= 0)


def words_of_source(pieces: Sequence[str]) -> list[int]:
    """The number of the word of each piece of a line.

    Only spaces separate words here, and the character U+2581 counts as one, because pieces write a space as U+2581. A
    line has no other white space, unless its text was not normalised.
    """
    return words_of(pieces, [beginning.split(SPACE) for beginning in accumulate(pieces)])


def words_of_given(pieces: Sequence[str], line: str, given: str, clean: Callable[[str], str]) -> list[int]:
    """The number of the word of the text `given` that each piece of the normalised `line` comes from, or -1."""
    owners, found = owners_of(line, given, clean), list[int]()
    before = place = 0
    for piece, word in zip(pieces, words_of_source(pieces)):
        place = place if word == before else 0
        byte = re.fullmatch("<0x(..)>", piece)  # the first byte of a character stands for it
        size = int(byte[1], 16) >> 6 != 2 if byte else len(piece.strip(SPACE))
        found.append(-1 if word < 0 else mode(owners[word][place : place + size] or owners[word][:place][-1:]))
        before, place = word, place + size
    return found


def owners_of(line: str, given: str, clean: Callable[[str], str]) -> list[list[int]]:
    """For each word of the normalised `line`, the number of the word of `given` that each of its characters comes from.

    Where words differ, `clean` says how many characters each word of `given` has become. Without words, it is -1.
    """
    words, after, owners = given.split(), list(filter(None, line.replace(" ", SPACE).split(SPACE))), list[int]()
    for same, i, end, j, last in SequenceMatcher(None, words, after).get_opcodes():
        cleaned = [word if same == "equal" else "".join(clean(word).split()) for word in words[i:end]]
        source = [number for number, word in enumerate(cleaned, i) for _ in word] or [max(i - 1, 0) if words else -1]
        size = sum(map(len, after[j:last]))
        owners += [source[place * len(source) // size] for place in range(size)]
    of_characters = iter(owners)
    return [[next(of_characters) for _ in word] for word in after]


def words_of_target(vocabulary: Vocabulary, ids: Sequence[int]) -> list[int]:
    """The number of the word of each piece of a translation, from its text: byte and unknown pieces may hold whitespace."""
    pieces, texts = vocabulary.pieces(ids), list(vocabulary.decode([ids[:end] for end in range(1, len(ids) + 1)]))
    for place in reversed(range(len(texts) - 1)):
        if texts[place].endswith("\ufffd") and vocabulary.processor.IsByte(int(ids[place + 1])):
            texts[place] = texts[place + 1]  # the bytes so far are a part of a character, which may be a space
    return words_of(pieces, [text.split() for text in texts])


def words_of(pieces: Sequence[str], beginnings: Sequence[list[str]]) -> list[int]:
    """The number of the word of each piece, -1 if it has no text. `beginnings` has the words up to its end."""
    return [sum(map(bool, words)) - 1 if piece.strip(SPACE) else -1 for piece, words in zip(pieces, beginnings)]
