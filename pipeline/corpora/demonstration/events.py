"""Draws whole clauses of the demonstration corpus: who does what, when, where and how; and relative clauses."""

from dataclasses import replace
from typing import NamedTuple

from pipeline.corpora.demonstration import adjuncts, frames, lexicon, phrases, predicates
from pipeline.corpora.demonstration.clauses import NONE, Clause, Nominal, subordinate
from pipeline.corpora.demonstration.dice import Dice
from pipeline.corpora.demonstration.frames import WILL, Frame, Modal
from pipeline.corpora.demonstration.inflection import (
    ACCUSATIVE,
    DATIVE,
    PLURAL,
    RELATIVE,
    SINGULAR,
    WHOSE,
    Determiner,
    Noun,
    Pair,
)
from pipeline.corpora.demonstration.predicates import Predicate


class Mood(NamedTuple):
    """A tense, or a modal verb with its tense."""

    tense: str
    modal: Modal | None = None

    def when(self) -> str:
        """The kind of time that suits the mood, as adjuncts.time names it."""
        if self.modal:
            return "past" if self.modal in frames.PAST_MODALS else "future"
        return {"present": "habit", "past": "past", "perfect": "perfect"}[self.tense]


PAST, PRESENT, PERFECT, FUTURE = Mood("past"), Mood("present"), Mood("perfect"), Mood("present", WILL)
PLUPERFECT, WOULD = Mood("pluperfect"), Mood("present", frames.WOULD)
CAN, COULD = Mood("present", frames.MODALS[0]), Mood("past", frames.PAST_MODALS[0])
TENSES = [(40, PAST), (30, PRESENT), (15, PERFECT), (5, FUTURE)]
PASSIVE_KINDS = ["text", "object", "vessel", "machine", "vehicle", "clothing", "building", "event"]
PASSIVE_KINDS += ["matter", "food", "opening"]
LOOSE = 0.14  # the probability of a relative clause after a noun that may have one
OBJECT_FRAMES = {
    kind: [frame for frame in frames.TRANSITIVE + frames.STATIVE if kind in frame.objects] for kind in lexicon.NOUNS
}


def mood(dice: Dice) -> Mood:
    if dice.chance(0.84):
        return dice.weigh(TENSES)
    if dice.chance(0.3):
        return Mood("past", dice.choose(frames.PAST_MODALS))
    return Mood("present", dice.choose(frames.MODALS))


def negatable(subject: Nominal) -> bool:
    """Whether a clause with this subject may be negated. "All children do not" has two meanings."""
    return subject.definite and not subject.english.startswith("every ")


def event(dice: Dice, subject: Nominal | None = None, mood_: Mood | None = None, adorn: bool = True) -> Clause:
    """Somebody does something. With `adorn`, the clause may say when, where or how."""
    subject = subject or phrases.person(dice, tail=relative)
    chosen = mood_ or mood(dice)
    negated = negatable(subject) and dice.chance(0.13)
    given = predicates.predicate(dice, subject, negated)
    clause = Clause(subject, given.verb, chosen.tense, chosen.modal, negated=negated, complement=given.complement)
    return adorned(dice, clause, chosen, given) if adorn else clause


def adorned(dice: Dice, clause: Clause, chosen: Mood, given: Predicate) -> Clause:
    """The clause with optional parts: the progressive or an adverb (often, already); a place, a companion or a manner; and
    a time, unless it has such an adverb.
    """
    when = chosen.when()
    if chosen == PRESENT and not given.stative and dice.chance(0.45):
        clause, when = replace(clause, progressive=True), "now"
    elif not clause.negated and not chosen.modal and dice.chance(0.16):
        words = lexicon.ALREADY if chosen == PERFECT else lexicon.OFTEN
        clause = replace(clause, often=dice.choose(words))
    if given.placeable:
        clause = located(dice, clause)
    odd = when == "habit" and (given.stative or clause.negated)  # "is young every week"
    if not clause.often.english and not odd and dice.chance(0.6):
        clause = replace(clause, time=adjuncts.time(dice, when))
    return clause


def located(dice: Dice, clause: Clause) -> Clause:
    draw = dice.weigh([(32, None), (39, "place"), (17, "company"), (12, "manner")])
    if draw == "place":
        return replace(clause, place=adjuncts.in_place(dice))
    if draw == "company":
        return replace(clause, company=adjuncts.company(dice))
    return replace(clause, manner=dice.choose(lexicon.MANNERS)) if draw else clause


def happening(dice: Dice) -> Clause:
    """A clause about a thing: a train arrives, a concert begins, a house is old, a letter is written."""
    draw = dice.weigh([(14, running), (12, taking_place), (10, lying), (28, describing), (36, passive)])
    return draw(dice)


def running(dice: Dice) -> Clause:
    return timed(dice, dice.choose(frames.RUNNING), adjuncts.in_place(dice, ["stop", "town"]))


def taking_place(dice: Dice) -> Clause:
    return timed(dice, dice.choose(frames.HAPPENING), adjuncts.in_place(dice, ["building", "town"], near=False))


def timed(dice: Dice, frame: Frame, place: Pair) -> Clause:
    subject = phrases.thing(dice, frame.subjects, tail=relative)
    chosen = dice.weigh(TENSES)
    negated = negatable(subject) and dice.chance(0.1)
    time = adjuncts.time(dice, chosen.when()) if dice.chance(0.7) and not (negated and chosen is PRESENT) else NONE
    place = place if dice.chance(0.5) else NONE
    return Clause(subject, frame.verb, chosen.tense, chosen.modal, negated=negated, place=place, time=time)


def lying(dice: Dice) -> Clause:
    frame = dice.choose(frames.LYING)
    subject = phrases.thing(dice, frame.subjects, known=True, tail=relative)
    given = predicates.lying(dice, frame)
    tense = dice.choose(["present", "past"])
    progressive = tense == "present" and dice.chance(0.5)
    return Clause(subject, given.verb, tense, progressive=progressive, complement=given.complement)


def describing(dice: Dice, subject: Nominal | None = None, kind: str = "") -> Clause:
    """A thing with an adjective or a comparison: is old, is older than, is not as old as."""
    kind = kind or dice.choose([*PASSIVE_KINDS, "transport", "link", "area"])
    subject = subject or phrases.thing(dice, [kind], known=True, tail=relative)
    negated = negatable(subject) and dice.chance(0.15)
    comparing = dice.chance(0.35)
    given = predicates.comparing(dice, kind, negated) if comparing else predicates.being(dice, kind)
    return Clause(subject, given.verb, dice.choose(["present", "past"]), negated=negated, complement=given.complement)


def passive(dice: Dice) -> Clause:
    """A passive clause: something is done, by somebody or at some time."""
    kind = dice.choose(PASSIVE_KINDS)
    subject = phrases.thing(dice, [kind], tail=relative)
    frame = dice.choose([frame for frame in OBJECT_FRAMES[kind] if not frame.stative])
    chosen = dice.weigh([*TENSES, (14, Mood("present", dice.choose(frames.NEEDFUL)))])
    negated = negatable(subject) and dice.chance(0.1)
    clause = Clause(subject, frame.verb, chosen.tense, chosen.modal, passive=True, negated=negated)
    if dice.chance(0.45):
        agent = phrases.thing(dice, ["person"], simple=True) if dice.chance(0.6) else phrases.name(dice)
        clause = replace(clause, company=agent.after("by", "von", DATIVE))
    if dice.chance(0.45) and not (negated and chosen is PRESENT):
        clause = replace(clause, time=adjuncts.time(dice, chosen.when()))
    return clause


def relative(dice: Dice, noun: Noun, plural: bool) -> Pair:
    """A relative clause with the probability LOOSE, else nothing."""
    return relative_clause(dice, noun, plural) if dice.chance(LOOSE) else NONE


def relative_clause(dice: Dice, noun: Noun, plural: bool) -> Pair:
    """A relative clause for the noun. It has no adjunct of time or place, which could also belong to the main clause."""
    gender = "p" if plural else noun.gender
    draws = [subject_relative, object_relative]
    draws += [whose_relative] if noun.kind == "person" else []
    draws += [place_relative] if noun.kind == "building" else []
    english, german = dice.choose(draws)(dice, noun, gender)
    return Pair(" " + english, f", {german},")


def subject_relative(dice: Dice, noun: Noun, gender: str) -> Pair:
    """The pronoun is the subject: who waits for him, that is broken."""
    agreement = PLURAL if gender == "p" else SINGULAR
    word = "who" if noun.kind == "person" else "that"
    subject = Nominal(word, word, RELATIVE[gender], agreement, gender, pronoun=True)
    if noun.kind == "person":
        return subordinate(NONE, event(dice, subject, dice.weigh(TENSES), adorn=False))
    return subordinate(NONE, describing(dice, subject, noun.kind))


def object_relative(dice: Dice, noun: Noun, gender: str) -> Pair:
    """The pronoun is the object, in the accusative: whom he met, that she bought."""
    frames_ = OBJECT_FRAMES.get(noun.kind)
    if not frames_:
        return subject_relative(dice, noun, gender)
    chosen = dice.weigh(TENSES)
    subject = dice.choose([phrases.pronoun, phrases.name, phrases.relative])(dice)
    clause = Clause(subject, dice.choose(frames_).verb, chosen.tense, chosen.modal)
    word = "whom" if noun.kind == "person" else "that"
    return subordinate(Pair(word, RELATIVE[gender][ACCUSATIVE]), clause)


def whose_relative(dice: Dice, noun: Noun, gender: str) -> Pair:
    """The pronoun is a possessive (dessen, deren): whose brother lives in Berlin."""
    whose = Determiner("whose", WHOSE[gender], "none", "strong")
    subject = phrases.noun_phrase(dice.choose(lexicon.NOUNS["relative"]), whose, plural=False)
    return subordinate(NONE, event(dice, subject, dice.weigh(TENSES), adorn=False))


def place_relative(dice: Dice, noun: Noun, gender: str) -> Pair:
    """The pronoun follows a preposition: in which she works."""
    subject = dice.choose([phrases.pronoun, phrases.name, phrases.relative])(dice)
    clause = Clause(subject, dice.choose(frames.LIVING).verb, dice.choose(["present", "past"]))
    return subordinate(Pair("in which", f"in {RELATIVE[gender][DATIVE]}"), clause)
