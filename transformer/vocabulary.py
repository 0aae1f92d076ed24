"""The shared vocabulary of source and target (section 5.1): byte-pair encoding by SentencePiece.

Decoding the ids of normalised text restores the text, with two exceptions. U+2581, which SentencePiece uses for a
space, becomes a space. With `unknown: unk` in params.yaml, a character too rare to be a piece becomes ` ⁇ `; with
`byte_fallback` it is encoded as up to four byte pieces and restored. In a line of text, the names of special pieces
(`<s>`, `<0x41>`) are ordinary text.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import sentencepiece

from transformer.config.reading import UserError
from transformer.config.vocabulary import BOS, EOS, PAD, UNK

SPACE = "\u2581"

sentencepiece.SetMinLogLevel(2)  # errors only


class Vocabulary:
    """Encodes text as ids and decodes ids. `sha256` identifies the vocabulary in data, models and checkpoints."""

    def __init__(self, path: Path) -> None:
        """Read a model file of SentencePiece.

        Raises UserError if the file is missing, if it is no SentencePiece model or if its special pieces have other ids.
        """
        processor = sentencepiece.SentencePieceProcessor()
        try:
            model = Path(path).read_bytes()
            processor.LoadFromSerializedProto(model)
        except FileNotFoundError:
            raise UserError(f"{path} is missing; it is made by learn_bpe") from None
        except (RuntimeError, ValueError):
            raise UserError(
                f"{path} is not a SentencePiece model or is damaged; restore it, or make it with learn_bpe"
            ) from None
        ids = (processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id())
        if ids != (PAD, UNK, BOS, EOS):
            raise UserError(f"{path}: pad, unk, bos and eos are {ids}, not (0, 1, 2, 3); learn it with learn_bpe")
        self.name, self.processor = str(path), processor
        self.size: int = processor.GetPieceSize()
        self.sha256 = hashlib.sha256(model).hexdigest()

    def encode(self, lines: Sequence[str], threads: int = 1) -> list[list[int]]:
        """The ids of each line, without BOS and EOS."""
        return self.processor.Encode(list(lines), num_threads=threads)

    def sample(self, lines: Sequence[bytes], dropout: float, seed: int) -> list[list[int]]:
        """The ids of each line by BPE-dropout (Provilkov et al. 2020): each merge is left out with probability `dropout`.

        Up to version 0.2.1 of SentencePiece, the same arguments give the same ids: Encode starts a thread, whose random
        generator starts with the seed set here. Later versions salt it, so that each process gives other ids.
        """
        sentencepiece.set_random_generator_seed(seed)
        return self.processor.Encode(list(lines), enable_sampling=True, nbest_size=-1, alpha=dropout, num_threads=1)

    def decode(self, ids: Sequence[int] | Sequence[Sequence[int]]) -> str | list[str]:
        """The text of a sequence of ids, or the texts of several sequences, without PAD, BOS and EOS."""
        return self.processor.Decode(ids)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The pieces with these ids, as SentencePiece writes them."""
        return self.processor.IdToPiece([int(number) for number in ids])
