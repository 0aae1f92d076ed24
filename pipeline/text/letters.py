"""Tells by the frequencies of letters whether the two sides of a corpus are in each other's language."""

from collections.abc import Sequence
from statistics import fmean

from charset_normalizer.constant import FREQUENCIES

from pipeline.settings.languages import language_of

ENOUGH = 1_000  # letters on each side; the languages of fewer than 100 are sometimes confused
# The codes of languages, and the names by which charset_normalizer has their letters. Of Japanese, these are the hiragana.
NAMES = (
    "ar Arabic, bg Bulgarian, cs Czech, da Danish, de German, el Greek, en English, es Spanish, et Estonian, fa Farsi, "
    "fi Finnish, fr French, he Hebrew, hi Hindi, hr Croatian, hu Hungarian, id Indonesian, it Italian, ja Japanese——, "
    "kk Kazakh, ko Korean, lt Lithuanian, nl Dutch, no Norwegian, pl Polish, pt Portuguese, ro Romanian, ru Russian, "
    "sk Slovak, sl Slovene, sr Serbian, sv Swedish, ta Tamil, th Thai, tr Turkish, uk Ukrainian, vi Vietnamese, zh Chinese"
)
LETTERS = {code: FREQUENCIES.get(name, []) for code, name in map(str.split, NAMES.split(", "))}  # the most frequent first


def swapped(sides: Sequence[str], languages: tuple[str, str]) -> bool:
    """Whether the letters of the source are rather those of the second language, and those of the target of the first.

    False if a side has too few letters to tell, or if the letters of a language are not known.
    """
    first, second = (LETTERS.get(language_of(code)) for code in languages)
    source, target = (list(filter(str.isalpha, side.lower())) for side in sides)
    if not (first and second) or min(len(source), len(target)) < ENOUGH:
        return False
    return rank(source, second) < rank(source, first) and rank(target, first) < rank(target, second)


def rank(letters: list[str], frequent: list[str]) -> float:
    """Return the mean rank of `letters` among the `frequent` ones: 0 for the most frequent, 1 for those not among them."""
    ranks = {letter: place / len(frequent) for place, letter in enumerate(frequent)}
    return fmean(ranks.get(letter, 1.0) for letter in letters)
