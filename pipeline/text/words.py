"""Encodes normalised text as ids, each distinct word once."""

from itertools import chain, islice

import numpy as np

from transformer.config.reading import UserError
from transformer.vocabulary import SPACE, Vocabulary

DISTINCT_WORDS = 1 << 19  # kept by a WordTable, in about 150 MB


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
        encoded = self.vocabulary.processor.Encode(words, num_threads=self.threads)
        lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
        self.starts = np.concatenate([self.starts, len(self.ids) + np.cumsum(lengths) - lengths])
        self.lengths = np.concatenate([self.lengths, lengths])
        self.ids = np.concatenate([self.ids, np.fromiter(chain.from_iterable(encoded), np.int32)])
