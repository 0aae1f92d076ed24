"""The demonstration corpus: any number of English-German sentence pairs from a grammar, determined by a seed.

The English sentence determines the translation, so a perfect model would score 100 BLEU. The model has to learn German
agreement in gender, case and number, the positions of the verb, separable verbs, compounds and the format of numbers.
The words are in lexicon.py and frames.py, their forms in inflection.py, and the word order in clauses.py.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from pipeline.corpora.demonstration.dice import Dice
from pipeline.corpora.demonstration.sentences import sentence
from pipeline.settings.download import GeneratorConfig

WORDS = range(4, 29)  # the length of a sentence in words, in both languages


def generate(config: GeneratorConfig) -> Iterator[tuple[str, str, str]]:
    """Yields (set, English, German). test and dev come before train, so they do not depend on the size of train.

    An English sentence occurs only once in all sets together.
    """
    dice, seen = Dice(config.seed), set()
    for name in ("test", "dev", "train"):
        left = getattr(config, name)
        while left:
            english, german = sentence(dice)
            if english not in seen and len(english.split()) in WORDS and len(german.split()) in WORDS:
                seen.add(english)
                left -= 1
                yield name, english, german


def make(config: GeneratorConfig, languages: tuple[str, str], folder: Path) -> dict[str, int]:
    """Write the corpus to files, one per set and language. Returns the number of pairs in each set."""
    pairs: dict[str, int] = {}
    with ExitStack() as stack:
        files: dict[str, list[IO[str]]] = {}
        for name, english, german in generate(config):
            if name not in files:
                paths = [folder / f"{name}.{language}" for language in languages]
                files[name] = [stack.enter_context(open(p, "w", encoding="utf-8", newline="\n")) for p in paths]
            sides = {"en": english, "de": german}
            for file, language in zip(files[name], languages):
                file.write(sides[language] + "\n")
            pairs[name] = pairs.get(name, 0) + 1
    return pairs
