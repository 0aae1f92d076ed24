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
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import sentencepiece

from transformer.config.reading import UserError
from transformer.config.vocabulary import BOS, EOS, PAD, UNK, VocabularyConfig

SPACE = "\u2581"
LONGEST_WORD = 1000  # bytes; longer words are left out of learning
DISTINCT_WORDS = 1 << 19  # kept by a WordTable, in about 150 MB

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

    def sample(self, lines: Sequence[bytes], dropout: float, seed: int) -> list[np.ndarray]:
        """The ids of each line by BPE-dropout (Provilkov et al. 2020): each merge is left out with probability `dropout`.

        The same arguments give the same ids in one process. SentencePiece also salts its generator in each process, so
        that another one gives other ids. Encode starts a thread, whose generator starts with the seed set here.
        """
        sentencepiece.set_random_generator_seed(seed)
        return self.processor.Encode(
            list(lines), enable_sampling=True, nbest_size=-1, alpha=dropout, num_threads=1, return_type="numpy"
        )

    def decode(self, ids: Sequence[int] | Sequence[Sequence[int]]) -> str | list[str]:
        """The text of a sequence of ids, or the texts of several sequences, without PAD, BOS and EOS."""
        return self.processor.Decode(ids)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The pieces with these ids, as SentencePiece writes them."""
        return self.processor.IdToPiece([int(number) for number in ids])


class WordTable(dict):
    """Encodes blocks of text, each distinct word once.

    No piece contains an inner space (else UserError is raised), so the ids of a line whose words are separated by single
    spaces are the concatenated ids of its words. For normalised text, a table of words therefore gives the same ids as
    `Vocabulary.encode`, in a fraction of the time. The table maps each word to a number w. The ids of word w are
    `ids[starts[w] : starts[w] + lengths[w]]`. The next block empties a table of more than `distinct_words` words.
    """

    def __init__(self, vocabulary: Vocabulary, threads: int, distinct_words: int = DISTINCT_WORDS) -> None:
        crossing = next((p for p in vocabulary.pieces(range(vocabulary.size)) if SPACE in p[1:]), None)
        if crossing:
            raise UserError(f"{vocabulary.name}: the piece {crossing!r} holds a space; learn the vocabulary with learn_bpe")
        self.vocabulary, self.threads, self.distinct_words = vocabulary, threads, distinct_words
        self.forget()

    def forget(self) -> None:
        """Empty the table."""
        self.clear()
        self.starts, self.lengths = np.empty(0, np.int64), np.empty(0, np.int64)
        self.ids = np.empty(0, np.int32)

    def __missing__(self, word: bytes) -> int:
        self[word] = number = len(self)
        return number

    def encode(self, block: bytes) -> tuple[np.ndarray, np.ndarray]:
        """The concatenated ids of the lines in `block`, and the number of ids in each line. Each line ends with "\\n"."""
        if len(self) > self.distinct_words:
            self.forget()
        known = len(self)
        words = block.replace(b"\n", b" ").split(b" ")[:-1]
        numbers = np.fromiter(map(self.__getitem__, words), np.int64, len(words))
        if len(self) > known:
            self.learn(list(islice(reversed(self), len(self) - known))[::-1])
        lengths = self.lengths[numbers]
        ends = np.cumsum(lengths)
        # The id at position i of the result is at starts[word] + (i - position of the word's first id) in the table.
        place = np.repeat(self.starts[numbers] - ends + lengths, lengths)
        place += np.arange(len(place))
        characters = np.frombuffer(block, np.uint8)
        separators = characters[(characters == ord(" ")) | (characters == ord("\n"))]  # one after each word
        return self.ids[place], np.diff(ends[separators == ord("\n")], prepend=0)

    def learn(self, words: list[bytes]) -> None:
        """Add the ids of `words` to the table."""
        encoded = self.vocabulary.processor.Encode(words, num_threads=self.threads, return_type="numpy")
        lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
        self.starts = np.concatenate([self.starts, len(self.ids) + np.cumsum(lengths) - lengths])
        self.lengths = np.concatenate([self.lengths, lengths])
        self.ids = np.concatenate([self.ids, *encoded])


def learn(text: Iterable[bytes], config: VocabularyConfig) -> bytes:
    """Learn a vocabulary from `text`, blocks of whole lines. Returns the model file, the same for the same text.

    SentencePiece receives each distinct word with its count. From these it learns the same pieces as from the lines, in
    a fraction of the memory. Raises UserError if no vocabulary of this size can be learnt from the text.
    """
    counts: Counter[bytes] = Counter()
    for block in text:
        counts.update(block.split())  # at ASCII whitespace
    if not counts:
        raise UserError("there is no word to learn a vocabulary from")
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.Train(
            sentence_iterator=(b"%s\t%d" % (word, n) for word, n in counts.items() if len(word) <= LONGEST_WORD),
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


def reason(message: str) -> str:
    """Return the size that an error message of SentencePiece asks for, or else the message in one line."""
    if most := re.search(r"set it to a value <= (\d+)", message):
        return f"at most {most[1]} pieces can be learnt from it"
    if least := re.search(r"smaller than required_chars\. \d+ vs (\d+)", message):
        return f"at least {least[1]} pieces are needed for its characters"
    return f"SentencePiece says: {' '.join(message.split())}"
