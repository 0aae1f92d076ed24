"""Learn the vocabulary that source and target share (section 5.1).

    python -m pipeline.learn_bpe CORPUS --text data/CORPUS/normalised --out data/CORPUS/vocabulary.model

Reads params.yaml (base.vocabulary, changed by the corpus) and both sides of the training set. Writes a SentencePiece
model. It is learnt from `sample_pairs` evenly spaced pairs, or from all pairs if `sample_pairs` is 0 or if the set has
no more pairs.
"""

import argparse
import io
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import sentencepiece
from tqdm import tqdm

from pipeline.running import stage
from pipeline.settings import params
from pipeline.settings.vocabulary import VocabularyConfig
from pipeline.text.sets import blocks, count_lines, files_of, progress
from transformer.config.reading import UserError, placed
from transformer.config.vocabulary import BOS, EOS, PAD, UNK
from transformer.files import write_file
from transformer.vocabulary import Vocabulary

LONGEST_WORD = 1000  # bytes; longer words are left out of learning


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


def learn(text: Iterable[bytes], config: VocabularyConfig) -> bytes:
    """Learn a vocabulary from `text`, blocks of whole lines. Returns the model file, the same for the same text.

    SentencePiece receives each distinct word with its count. From these it learns the same pieces as from the lines, in
    a fraction of the memory. Raises UserError if no vocabulary of this size can be learnt from the text.
    """
    counts: Counter[bytes] = Counter()
    for block in text:
        counts.update(block.split())  # at ASCII whitespace
    if all(len(word) > LONGEST_WORD for word in counts):
        raise UserError(f"there is no word of at most {LONGEST_WORD:,} bytes to learn a vocabulary from")
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


def main(arguments: argparse.Namespace) -> None:
    settings = params.load()
    config = params.section(settings, "corpora", arguments.corpus, "vocabulary", VocabularyConfig)
    paths = files_of(arguments.text, "train", params.languages(settings, arguments.corpus))
    with progress(paths) as bar:
        text = itertools.chain.from_iterable(sample(path, config.sample_pairs, bar) for path in paths)
        with placed(f"{arguments.text}: params.yaml: corpora.{arguments.corpus}.vocabulary"):
            model = learn(text, config)
    write_file(arguments.out, model)
    print(f"{arguments.out}: {Vocabulary(arguments.out).size:,} pieces")


if __name__ == "__main__":
    stage.script(main, "learn_bpe", __doc__, "text out", corpus="a name under `corpora` in params.yaml")
