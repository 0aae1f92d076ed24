"""The shared vocabulary of source and target (section 5.1): byte-pair encoding, learnt and applied by SentencePiece.

Decoding the ids of normalised text restores the text, with two exceptions. U+2581, which SentencePiece uses for a
space, becomes a space. With `unknown: unk` in params.yaml, a character too rare to be a piece becomes ` ⁇ `; with
`byte_fallback` it is encoded as up to four byte pieces and restored. In a line of text, the names of special pieces
(`<s>`, `<0x41>`) are ordinary text.
"""

import hashlib
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece

from transformer.config.reading import UserError
from transformer.config.vocabulary import BOS, EOS, PAD, UNK, VocabularyConfig

SPACE = "\u2581"
LONGEST_WORD = 1000  # bytes; longer words are left out of learning

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

    def encode_block(
        self, lines: Sequence[bytes], threads: int = 1, dropout: float = 0.0, seed: int = 0
    ) -> tuple[np.ndarray, np.ndarray]:
        """The ids of the lines, one line after the other, and the number of ids in each line.

        With `dropout`, each merge is left out with this probability (BPE-dropout, Provilkov et al. 2020). The same `seed`
        then gives the same ids: Encode starts a thread, whose random generator starts with it.
        """
        sampling: dict[str, Any] = {}
        if dropout:
            sentencepiece.set_random_generator_seed(seed)
            sampling, threads = {"enable_sampling": True, "nbest_size": -1, "alpha": dropout}, 1
        ids = self.processor.Encode(list(lines), num_threads=threads, return_type="numpy", **sampling)
        return np.concatenate(ids), np.fromiter(map(len, ids), np.int64, len(ids))

    def decode(self, ids: Sequence[int] | Sequence[Sequence[int]]) -> str | list[str]:
        """The text of a sequence of ids, or the texts of several sequences, without PAD, BOS and EOS."""
        return self.processor.Decode(ids)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The pieces with these ids, as SentencePiece writes them."""
        return self.processor.IdToPiece([int(number) for number in ids])


def learn(text: Iterable[bytes], config: VocabularyConfig) -> bytes:
    """Learn a vocabulary from `text`, blocks of whole lines. Returns the model file, the same for the same text.

    SentencePiece receives each distinct word with its count. From these it learns the same pieces as from the lines, in
    a fraction of the memory. Raises UserError if no vocabulary of this size can be learnt from the text.
    """
    counts = count_words(text)
    if not counts:
        raise UserError("there is no word to learn a vocabulary from")
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.Train(
            sentence_iterator=table(counts),
            input_format="tsv",
            model_writer=model,
            model_type="bpe",
            vocab_size=config.pieces,
            character_coverage=config.character_coverage,
            byte_fallback=config.unknown == "byte_fallback",
            pad_id=PAD,
            unk_id=UNK,
            bos_id=BOS,
            eos_id=EOS,
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            num_threads=1,  # the model file records the number of threads, and more save little time
            minloglevel=2,
        )
    except (RuntimeError, ValueError) as error:
        raise UserError(f"pieces: {config.pieces} is not possible with this text; {reason(str(error))}") from None
    return model.getvalue()


def count_words(text: Iterable[bytes]) -> Counter[bytes]:
    """The count of each word. Words are separated by ASCII whitespace."""
    counts: Counter[bytes] = Counter()
    for block in text:
        counts.update(block.split())
    return counts


def table(counts: Counter[bytes]) -> Iterator[bytes]:
    """The lines of SentencePiece's input format "tsv": word, tab, count."""
    return (b"%s\t%d" % item for item in counts.items() if len(item[0]) <= LONGEST_WORD)


def reason(message: str) -> str:
    """Return the size that an error message of SentencePiece asks for, or else the message in one line."""
    if most := re.search(r"set it to a value <= (\d+)", message):
        return f"at most {most[1]} pieces can be learnt from it"
    if least := re.search(r"smaller than required_chars\. \d+ vs (\d+)", message):
        return f"at least {least[1]} pieces are needed for its characters"
    return f"SentencePiece says: {' '.join(message.split())}"
