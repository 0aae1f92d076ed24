"""Draws the noun phrases of the demonstration corpus."""

from collections.abc import Callable, Sequence

from pipeline.corpora.demonstration import lexicon
from pipeline.corpora.demonstration.clauses import NONE, Nominal, join
from pipeline.corpora.demonstration.dice import Dice
from pipeline.corpora.demonstration.inflection import (
    FIRST,
    GENITIVE,
    PLURAL,
    SINGULAR,
    Adjective,
    Determiner,
    Noun,
    Pair,
    adjective_form,
    with_an,
)
from pipeline.corpora.demonstration.lexicon import BARE, EVERY, NO, NOT_ANY, THE, THESE, THIS, A

CASES = range(4)
SINGULARS = [(44, THE), (16, A), (5, THIS), (2, EVERY)]
PLURALS = [(14, THE), (5, BARE), (3, THESE)]
KEIN = {A: NO, BARE: NOT_ANY}
QUANTIFIED = [*lexicon.QUANTITIES, *lexicon.NUMBERS]
INDEFINITE = [A, BARE, NO, NOT_ANY, *QUANTIFIED]
PLACES, UNIQUE = ("building", "area", "stop"), ("weather", "link", "measure")
SEVERAL = ("brother", "sister", "son", "daughter", "uncle", "aunt")  # relatives of whom a person may have several
OWNABLE = ("text", "object", "vehicle", "building", "matter")


def word(dice: Dice, kinds: Sequence[str]) -> Noun:
    """A noun of one of the kinds, sometimes a compound."""
    kind = dice.choose(kinds)
    compounds = lexicon.COMPOUNDS.get(kind, [])
    if compounds and (kind == "link" or dice.chance(0.1)):
        return dice.choose(compounds)
    return dice.choose(lexicon.NOUNS[kind])


def noun_phrase(
    noun: Noun,
    determiner: Determiner,
    plural: bool,
    adjectives: Sequence[Adjective] = (),
    very: bool = False,
    tail: Pair = NONE,
) -> Nominal:
    """The noun with determiner and adjectives, inflected for all cases. `tail` is a relative clause or a genitive."""
    gender = "p" if plural else noun.gender
    words = [noun.english_plural if plural else noun.english]
    words = ["very"] * very + [adjective.english for adjective in adjectives] + words
    english = with_an(" ".join(words)) if determiner.english == "a" else join(determiner.english, *words)
    german = tuple(
        join(
            determiner.form(gender, case),
            "sehr" if very else "",
            *(adjective_form(adjective, determiner.adjectives, gender, case) for adjective in adjectives),
            noun.form(case, plural) + tail.german,
        )
        for case in CASES
    )
    english += tail.english
    return Nominal(
        english=english,
        objective=english,
        german=german,
        agreement=PLURAL if plural else SINGULAR,
        gender=gender,
        definite=determiner not in INDEFINITE,
        article=determiner is THE,
    )


def determined(dice: Dice, noun: Noun, simple: bool, known: bool) -> tuple[Determiner, bool]:
    """A determiner that suits the noun, and whether the noun is plural.

    `simple` excludes quantities, numbers, "every" and a missing article. With `simple`, `known` also excludes "a".
    """
    if noun.kind == "relative":
        owner = dice.choose(lexicon.POSSESSIVES) if dice.chance(0.7) else owned_by(dice)
        return owner, noun.english in SEVERAL and dice.chance(0.25)
    if noun.kind in UNIQUE:
        return (THIS if dice.chance(0.15) else THE), False
    if noun.mass:
        return (THE if simple or dice.chance(0.5) else BARE), False
    plural = dice.chance(0.1 if noun.kind in PLACES else 0.27)
    if dice.chance(0.12) and noun.kind not in ("person", "stop"):
        return dice.choose(lexicon.POSSESSIVES), plural
    if dice.chance(0.09) and not simple:
        return dice.choose(lexicon.QUANTITIES if dice.chance(0.6) else lexicon.NUMBERS), True
    determiner = dice.weigh(PLURALS if plural else SINGULARS)
    excluded = (A, EVERY, BARE) if known else (EVERY, BARE) if simple else ()
    return (THE if determiner in excluded else determiner), plural


def owned_by(dice: Dice) -> Determiner:
    """A name as a possessive: Anna's, Annas."""
    name = dice.choose(lexicon.MEN + lexicon.WOMEN)
    return Determiner(f"{name}'s", f"{name}s", "none", "strong")


def described(dice: Dice, noun: Noun) -> list[Adjective]:
    """At most two adjectives that suit the noun. The second is an age or a colour: the friendly old man."""
    if not dice.chance(0.5):
        return []
    choices = lexicon.ADJECTIVES[noun.kind]
    first = dice.choose(choices)
    seconds = [choice for choice in choices if choice.english in lexicon.SECOND]
    if first in seconds or not seconds or not dice.chance(0.12):
        return [first]
    return [first, dice.choose(seconds)]


def thing(
    dice: Dice,
    kinds: Sequence[str],
    negated: bool = False,
    simple: bool = False,
    known: bool = False,
    tail: Callable[[Dice, Noun, bool], Pair] | None = None,
) -> Nominal:
    """A noun phrase of one of the kinds. `tail` draws a relative clause.

    If `negated`, kein replaces "a" or a missing article, and "the" replaces "every", quantities and numbers.
    """
    noun = word(dice, kinds)
    determiner, plural = determined(dice, noun, simple or known, known)
    if negated:
        determiner = THE if determiner in (EVERY, *QUANTIFIED) else KEIN.get(determiner, determiner)
    follows = NONE
    if determiner in (THE, A) and tail is not None and noun.kind not in UNIQUE:
        follows = tail(dice, noun, plural)
    elif determiner is THE and dice.chance(0.08) and noun.kind in OWNABLE:
        follows = owner(dice)
    adjectives = [] if follows != NONE and noun.kind != "person" else described(dice, noun)
    very = intensified(dice, adjectives) and determiner not in (EVERY, NOT_ANY)
    return noun_phrase(noun, determiner, plural, adjectives, very, follows)


def intensified(dice: Dice, adjectives: Sequence[Adjective]) -> bool:
    """Whether "very" precedes the adjective: "very old", but never "very yellow"."""
    return len(adjectives) == 1 and adjectives[0].english not in lexicon.ABSOLUTE and dice.chance(0.12)


def owner(dice: Dice) -> Pair:
    """An owner in the genitive: of the old teacher, des alten Lehrers."""
    noun = word(dice, ["person"])
    determiner = dice.choose([THE, THE, THIS, *lexicon.POSSESSIVES[:4]])
    possessor = noun_phrase(noun, determiner, False, described(dice, noun))
    return Pair(f" of {possessor.english}", f" {possessor.german[GENITIVE]}")


def person(dice: Dice, tail: Callable | None = None) -> Nominal:
    draw = dice.weigh([(30, pronoun), (13, name), (5, titled), (10, relative), (3, couple), (39, None)])
    return draw(dice) if draw else thing(dice, ["person"], tail=tail)


def pronoun(dice: Dice, other_than: str = "") -> Nominal:
    """A personal pronoun other than the subject `other_than`. After "I" or "we", it is neither of them: not "we see me"."""
    out = ("I", "we") if other_than in ("I", "we") else (other_than,)
    return personal(dice.choose([word for word in ("I", *lexicon.PRONOUNS) if word not in out]))


def personal(english: str) -> Nominal:
    objective, *german = lexicon.PRONOUNS[english]
    agreement = {"I": FIRST, "he": SINGULAR, "she": SINGULAR}.get(english, PLURAL)
    reflexive = {"I": "mich", "we": "uns"}.get(english, "sich")
    gender = {"he": "m", "she": "f"}.get(english, "p")
    return Nominal(english, objective, tuple(german), agreement, gender, pronoun=True, reflexive=reflexive)


def it(gender: str) -> Nominal:
    """The pronoun for a thing: er, sie or es."""
    return Nominal("it", "it", lexicon.IT[gender], SINGULAR, gender, pronoun=True)


def reference(nominal: Nominal) -> Nominal:
    """The pronoun for people who were mentioned before."""
    if nominal.pronoun:
        return nominal
    return personal("they" if nominal.agreement == PLURAL else "he" if nominal.gender == "m" else "she")


def name(dice: Dice) -> Nominal:
    gender = dice.choose("mf")
    chosen = dice.choose(lexicon.MEN if gender == "m" else lexicon.WOMEN)
    return Nominal(chosen, chosen, (chosen,) * 3, SINGULAR, gender)


def titled(dice: Dice) -> Nominal:
    """A title and a surname, such as Mr Weber. In German, Herr becomes Herrn in every case but the nominative."""
    surname = dice.choose(lexicon.SURNAMES)
    if dice.chance(0.5):
        return Nominal(f"Mrs {surname}", f"Mrs {surname}", (f"Frau {surname}",) * 3, SINGULAR, "f")
    german = (f"Herr {surname}", f"Herrn {surname}", f"Herrn {surname}")
    return Nominal(f"Mr {surname}", f"Mr {surname}", german)


def relative(dice: Dice) -> Nominal:
    return thing(dice, ["relative"])


def couple(dice: Dice) -> Nominal:
    """Two people: Anna and her brother."""
    noun = dice.choose(lexicon.NOUNS["relative"])
    family = noun_phrase(noun, dice.choose(lexicon.POSSESSIVES), False, described(dice, noun))
    first, second = name(dice), family if dice.chance(0.5) else name(dice)
    english = f"{first.english} and {second.english}"
    german = tuple(f"{first.german[case]} und {second.german[case]}" for case in range(3))
    return Nominal(english, english, german, PLURAL, "p")
