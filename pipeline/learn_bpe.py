"""Learn the vocabulary that source and target share (section 5.1).

    python -m pipeline.learn_bpe CORPUS --text data/CORPUS/normalised --out data/CORPUS/vocabulary.model

Reads both sides of the training set and writes a SentencePiece model. The model is learnt from `sample_pairs` evenly
spaced pairs (params.yaml, base.vocabulary or the `vocabulary` of the corpus). It is learnt from all pairs if
`sample_pairs` is 0 or if the set has no more pairs.
"""

import argparse
import itertools
from collections.abc import Iterator
from pathlib import Path

from tqdm import tqdm

from pipeline.corpora.sets import blocks, count_lines, files_of, progress
from pipeline.settings import params
from pipeline.workflow import stage
from transformer.config.reading import UserError
from transformer.config.vocabulary import VocabularyConfig
from transformer.files import atomic
from transformer.vocabulary import Vocabulary, learn


def sample(path: Path, pairs: int, bar: tqdm) -> Iterator[bytes]:
    """Yield `pairs` evenly spaced lines of a file, as blocks of whole lines.

    Yields all lines if `pairs` is 0 or if the file has at most `pairs` lines.
    """
    first, total = 0, count_lines(path) if pairs else 0
    for lines in blocks(path, bar):
        if pairs < total:
            # Take each line at which number * pairs / total reaches the next integer.
            numbers = range(first, first + len(lines))
            taken = [(number + 1) * pairs // total > number * pairs // total for number in numbers]
            first += len(lines)
            lines = list(itertools.compress(lines, taken))
        yield b"".join(lines)


def main(arguments: argparse.Namespace) -> None:
    settings = params.load()
    config = params.section(settings, "corpora", arguments.corpus, "vocabulary", VocabularyConfig)
    paths = files_of(arguments.text, "train", params.languages(settings, arguments.corpus))
    with progress(paths) as bar:
        text = itertools.chain.from_iterable(sample(path, config.sample_pairs, bar) for path in paths)
        try:
            model = learn(text, config)
        except UserError as error:
            raise UserError(f"{arguments.text}: params.yaml: corpora.{arguments.corpus}.vocabulary.{error}") from None
    with atomic(arguments.out) as file:
        file.write(model)
    print(f"{arguments.out}: {Vocabulary(arguments.out).size:,} pieces")


if __name__ == "__main__":
    stage.script(main, "learn_bpe", __doc__, "text out", corpus="a name under `corpora` in params.yaml")
