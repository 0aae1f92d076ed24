"""Draws the predicates of the demonstration corpus: a verb with its complement."""

from dataclasses import replace
from typing import NamedTuple

from pipeline.corpora.demonstration import adjuncts, frames, lexicon, phrases
from pipeline.corpora.demonstration.clauses import Complement, Nominal, join
from pipeline.corpora.demonstration.dice import Dice
from pipeline.corpora.demonstration.frames import BE, Frame
from pipeline.corpora.demonstration.inflection import ACCUSATIVE, DATIVE, NOMINATIVE, PLURAL, Verb

PARTICLES = ("on", "off", "up", "away", "back")


class Predicate(NamedTuple):
    verb: Verb
    complement: Complement
    stative: bool = False  # has no progressive
    placeable: bool = True  # may take a place, a companion or a manner


def some_person(dice: Dice) -> Nominal:
    return phrases.thing(dice, ["person"], simple=True)


def individual(dice: Dice, subject: Nominal) -> Nominal:
    """A definite person: a pronoun, a name, somebody's brother. There is no article that negation turns into kein."""
    draw = dice.weigh([(32, None), (28, phrases.name), (16, phrases.titled), (24, phrases.relative)])
    return draw(dice) if draw else phrases.pronoun(dice, other_than=subject.english)


def taken(dice: Dice, subject: Nominal, frame: Frame, negated: bool = False, simple: bool = False) -> Nominal:
    """A noun phrase that the verb takes as its object."""
    if frame.objects[0] == "person" and dice.chance(0.5):
        return individual(dice, subject)
    return phrases.thing(dice, frame.objects, negated, simple)


def accusative(nominal: Nominal, negated: bool, english: str = "") -> Complement:
    """A direct object in its German position: a pronoun is early, an indefinite noun is late."""
    field = "pronoun" if nominal.pronoun else "definite" if nominal.definite else "indefinite"
    kein = negated and field == "indefinite"
    return Complement(english or nominal.objective, **{field: nominal.german[ACCUSATIVE]}, kein=kein)


def directed(frame: Frame, nominal: Nominal, negated: bool) -> Predicate:
    """A verb and its direct object. A pronoun precedes an English particle: turns on the radio, turns it on."""
    verb, english = frame.verb, nominal.objective
    if nominal.pronoun and verb.english.tail in PARTICLES:
        english = f"{english} {verb.english.tail}"
        verb = Verb(replace(verb.english, tail=""), verb.german)
    return Predicate(verb, accusative(nominal, negated, english), frame.stative, placeable=not frame.stative)


def transitive(dice: Dice, subject: Nominal, negated: bool) -> Predicate:
    frame = dice.choose(frames.TRANSITIVE)
    return directed(frame, taken(dice, subject, frame, negated), negated)


def stative(dice: Dice, subject: Nominal, negated: bool) -> Predicate:
    frame = dice.choose(frames.STATIVE)
    return directed(frame, taken(dice, subject, frame, negated), negated)


def giving(dice: Dice, subject: Nominal, negated: bool) -> Predicate:
    """A verb with two objects: "gives the child a book" or "gives a book to the child"."""
    explaining = dice.chance(0.3)
    frame = dice.choose(frames.EXPLAINING if explaining else frames.GIVING)
    receiver = individual(dice, subject) if negated or dice.chance(0.6) else some_person(dice)
    gift = phrases.thing(dice, frame.objects, negated, simple=True)  # not "gave her books", which is ambiguous
    return handing(frame.verb, gift, receiver, explaining or dice.chance(0.4), negated)


def handing(verb: Verb, gift: Nominal, receiver: Nominal, backwards: bool, negated: bool) -> Predicate:
    """A verb with a gift and its receiver: "him a book", with `backwards` "it to him". Two German pronouns are "es ihm"."""
    english = join(gift.objective, "to", receiver.objective) if backwards else join(receiver.objective, gift.objective)
    given = accusative(gift, negated, english)
    if receiver.pronoun:
        return Predicate(verb, replace(given, pronoun=join(given.pronoun, receiver.german[DATIVE])))
    return Predicate(verb, replace(given, dative=receiver.german[DATIVE]))


def helping(dice: Dice, subject: Nominal, negated: bool) -> Predicate:
    frame = dice.choose(frames.HELPING)
    nominal = individual(dice, subject) if negated or dice.chance(0.5) else some_person(dice)
    english, german = nominal.objective, nominal.german[DATIVE]
    complement = Complement(english, pronoun=german) if nominal.pronoun else Complement(english, dative=german)
    return Predicate(frame.verb, complement)


def prepositional(dice: Dice, subject: Nominal, negated: bool) -> Predicate:
    """A verb with a prepositional object: waits for him, is interested in the law."""
    frame = dice.choose(frames.PREPOSITIONAL)
    english, german = taken(dice, subject, frame, simple=True).after("", frame.preposition, frame.case)
    interested = frame.verb.english.base == "be"
    return Predicate(frame.verb, Complement(english, last=german), stative=interested, placeable=not interested)


def intransitive(dice: Dice, subject: Nominal, negated: bool) -> Predicate:
    return Predicate(dice.choose(frames.INTRANSITIVE).verb, Complement())


def motion(dice: Dice, subject: Nominal, negated: bool) -> Predicate:
    frame = dice.choose(frames.MOTION)
    english, german = adjuncts.to_place(dice, frame.objects)
    return Predicate(frame.verb, Complement(english, last=german), placeable=False)


def boarding(dice: Dice, subject: Nominal, negated: bool) -> Predicate:
    frame = dice.choose(frames.BOARDING)
    english, german = phrases.thing(dice, frame.objects, simple=True).after("", frame.preposition, frame.case)
    return Predicate(frame.verb, Complement(english, last=german))


def living(dice: Dice, subject: Nominal, negated: bool) -> Predicate:
    frame = dice.choose(frames.LIVING)
    english, german = adjuncts.in_place(dice, frame.objects)
    return Predicate(frame.verb, Complement(english, last=german), placeable=False)


def putting(dice: Dice, subject: Nominal, negated: bool) -> Predicate:
    frame = dice.choose(frames.PUTTING)
    nominal, where = phrases.thing(dice, frame.objects, negated), adjuncts.surface(dice, ACCUSATIVE)
    complement = accusative(nominal, negated, join(nominal.objective, where.english))
    return Predicate(frame.verb, replace(complement, last=where.german), placeable=False)


def lying(dice: Dice, frame: Frame) -> Predicate:
    english, german = adjuncts.surface(dice, DATIVE)
    return Predicate(frame.verb, Complement(english, last=german), placeable=False)


def being(dice: Dice, kind: str) -> Predicate:
    """A verb with an adjective: is tired, looks very old, becomes famous."""
    seeming = kind in ("person", "relative") and dice.chance(0.35)
    verb = dice.choose(frames.SEEMING).verb if seeming else BE
    adjective = dice.choose(lexicon.ADJECTIVES[kind])
    very = phrases.intensified(dice, [adjective])
    complement = Complement("very " * very + adjective.english, last="sehr " * very + adjective.german)
    return Predicate(verb, complement, stative=True, placeable=False)


def feeling(dice: Dice, subject: Nominal, negated: bool) -> Predicate:
    return being(dice, "person")


def comparing(dice: Dice, kind: str, negated: bool) -> Predicate:
    """A comparison: is older than, is not as old as."""
    choices = [adjective for adjective in lexicon.ADJECTIVES[kind] if adjective.comparative]
    adjective = dice.choose(choices)
    other = individual(dice, phrases.personal("I")) if kind == "person" else phrases.thing(dice, [kind], simple=True)
    if negated:
        words = f"as {adjective.english} as {other.objective}", f"so {adjective.german} wie {other.german[NOMINATIVE]}"
    else:
        than = f"{adjective.english_comparative} than {other.objective}"
        words = than, f"{adjective.comparative} als {other.german[NOMINATIVE]}"
    return Predicate(BE, Complement(words[0], last=words[1]), stative=True, placeable=False)


def profession(dice: Dice, subject: Nominal, negated: bool) -> Predicate:
    """A profession of one man or woman: is a doctor, ist Arzt, ist Ärztin."""
    english, german = dice.choose(lexicon.PROFESSIONS[subject.gender])
    kein = {"m": "kein ", "f": "keine "}[subject.gender] if negated else ""
    complement = Complement(english, last=kein + german, kein=negated)
    verb = BE if negated or dice.chance(0.7) else frames.BECOME
    return Predicate(verb, complement, stative=True, placeable=False)


PREDICATES = [
    (38, transitive),
    (6, stative),
    (9, giving),
    (6, helping),
    (10, prepositional),
    (8, intransitive),
    (9, motion),
    (3, boarding),
    (5, living),
    (4, putting),
    (7, feeling),
]


ACTIONS = [(weight, draw) for weight, draw in PREDICATES if draw not in (stative, feeling)]


def action(dice: Dice, subject: Nominal) -> Predicate:
    """A predicate for something that a person can try to do."""
    return dice.weigh(ACTIONS)(dice, subject, False)


def predicate(dice: Dice, subject: Nominal, negated: bool) -> Predicate:
    return dice.weigh(PREDICATES)(dice, subject, negated)


def qualifies(subject: Nominal) -> bool:
    """Whether `subject` is one man or woman, so that the form of a profession is known."""
    return subject.agreement != PLURAL and subject.gender in lexicon.PROFESSIONS
