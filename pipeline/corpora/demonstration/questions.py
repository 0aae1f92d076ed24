"""Draws the direct and indirect questions, the requests and the direct speech of the demonstration corpus."""

from dataclasses import replace

from pipeline.corpora.demonstration import events, frames, lexicon, phrases, predicates
from pipeline.corpora.demonstration.adjuncts import time as time_of
from pipeline.corpora.demonstration.clauses import (
    NONE,
    Clause,
    Nominal,
    finished,
    main_clause,
    question,
    request,
    subject_question,
    subordinate,
)
from pipeline.corpora.demonstration.dice import Dice
from pipeline.corpora.demonstration.events import CAN, FUTURE, PAST, PERFECT, PRESENT
from pipeline.corpora.demonstration.inflection import ACCUSATIVE, Pair

SPEECH = [PRESENT, PERFECT, FUTURE, CAN]
WHO = Nominal("who", "whom", ("wer", "wen", "wem"), pronoun=True)


def wondering(dice: Dice) -> Pair:
    """An indirect question with whether, why or when."""
    mood = dice.choose([PAST, PRESENT])
    word = dice.choose([Pair("whether", "ob"), Pair("whether", "ob"), Pair("why", "warum"), Pair("when", "wann")])
    content = events.event(dice, mood_=mood)
    if word.english == "when":
        content = replace(content, time=NONE, often=NONE)
    english, german = subordinate(word, content)
    asking = dice.chance(0.4)
    verb = frames.ASKING if asking else frames.KNOWING
    subject = phrases.name(dice) if asking else phrases.pronoun(dice)
    clause = Clause(subject, verb, mood.tense, negated=not asking, content=Pair(english, ", " + german))
    return finished(main_clause(clause))


def asking(dice: Dice) -> Pair:
    """A yes-no question, or a question with why, when or where."""
    word = dice.weigh([(50, NONE), (20, Pair("why", "warum")), (15, Pair("when", "wann")), (15, Pair("where", "wo"))])
    thing = word.english in ("", "why") and dice.chance(0.35)
    clause = events.happening(dice) if thing else events.event(dice)
    if word.english == "when":
        clause = replace(clause, time=NONE, often=NONE)
    if word.english == "where":
        given = predicates.transitive(dice, clause.subject, negated=False)
        clause = Clause(clause.subject, given.verb, PAST.tense, complement=given.complement)
    if word.english != "why":
        clause = replace(clause, negated=False) if not clause.complement.kein else clause
    return finished(question(clause, word), "?")


def asking_what(dice: Dice) -> Pair:
    """A question with who, what or which."""
    kind = dice.choose(events.PASSIVE_KINDS)
    frame = dice.choose(events.OBJECT_FRAMES[kind])
    mood = dice.choose([PAST, PAST, PERFECT, PRESENT, FUTURE])
    clause = Clause(phrases.person(dice), frame.verb, mood.tense, mood.modal)
    if dice.chance(0.5):
        clause = replace(clause, time=time_of(dice, mood.when()))
    draw = dice.weigh([(35, "who"), (25, "what"), (40, "which")])
    if draw == "who":
        clause = events.event(dice, WHO, mood, adorn=True)
        return finished(subject_question(replace(clause, negated=False) if not clause.complement.kein else clause), "?")
    if draw == "what":
        return finished(question(clause, Pair("what", "was")), "?")
    noun, plural = phrases.word(dice, [kind]), dice.chance(0.3)
    which = phrases.noun_phrase(noun, lexicon.WHICH, plural, phrases.described(dice, noun))
    return finished(question(clause, Pair(which.english, which.german[ACCUSATIVE])), "?")


def asking_politely(dice: Dice) -> Pair:
    you = phrases.personal("you")
    draw = dice.weigh([(6, predicates.transitive), (3, predicates.giving), (1, predicates.helping), (1, predicates.motion)])
    negated = dice.chance(0.2)
    given = draw(dice, you, negated)
    clause = Clause(you, given.verb, negated=negated, complement=given.complement)
    if not negated and dice.chance(0.3):
        clause = replace(clause, time=time_of(dice, "future"))
    return finished(request(clause), "!")


def quoted(dice: Dice) -> Pair:
    """Direct speech, before or after the name of the speaker."""
    speaker = dice.choose([phrases.name, phrases.relative, phrases.titled])(dice)
    said, asked = events.event(dice, mood_=dice.choose(SPEECH), adorn=dice.chance(0.5)), dice.chance(0.35)
    verb = frames.ASKING if asked else dice.choose(frames.QUOTING).verb
    inner = finished(question(said), "?") if asked else finished(main_clause(said), ".")
    tag = finished(main_clause(Clause(speaker, verb, "past")), "")
    if dice.chance(0.5):
        return Pair(f'{tag.english}, "{inner.english}"', f"{tag.german}: „{inner.german}“")
    english = inner.english if asked else inner.english[:-1] + ","
    german = inner.german if asked else inner.german[:-1]
    tag = Pair(f"{verb.english.past} {speaker.english}", f"{verb.german.past[speaker.agreement]} {speaker.german[0]}")
    return Pair(f'"{english}" {tag.english}.', f"„{german}“, {tag.german}.")
