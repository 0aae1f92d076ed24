"""The demonstration corpus: English-German sentence pairs from a grammar, as many as wanted, the same for a seed.

A translation is a function of the English sentence, so a perfect model would score 100 BLEU, and it must learn what
German asks for: gender, case and number in agreement, the places of the verb, separable verbs, compounds and numbers.
The words stand in demonstration/lexicon.py and frames.py, their forms in inflection.py, the order in clauses.py.
"""

from collections.abc import Iterator

from pipeline.corpora.demonstration.dice import Dice
from pipeline.corpora.demonstration.sentences import sentence
from pipeline.settings.download import GeneratorConfig

WORDS = range(4, 29)  # of a sentence, on either side


def generate(config: GeneratorConfig) -> Iterator[tuple[str, str, str]]:
    """(set, English, German): test, then dev, then train, so that more training data leaves the others as they are.

    No English sentence comes twice, within a set or across.
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
