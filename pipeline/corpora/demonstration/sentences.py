"""The kinds of sentence in the demonstration corpus: each function in SENTENCES draws one pair."""

from dataclasses import replace

from pipeline.corpora.demonstration import events, figures, frames, lexicon, phrases, predicates, questions
from pipeline.corpora.demonstration.adjuncts import in_place
from pipeline.corpora.demonstration.adjuncts import time as time_of
from pipeline.corpora.demonstration.clauses import (
    NONE,
    Clause,
    Complement,
    Nominal,
    finished,
    gerund,
    infinitive,
    join,
    main_after,
    main_clause,
    predicate,
    subordinate,
)
from pipeline.corpora.demonstration.dice import Dice
from pipeline.corpora.demonstration.events import CAN, COULD, FUTURE, PAST, PERFECT, PLUPERFECT, PRESENT, WOULD, Mood
from pipeline.corpora.demonstration.frames import BE, Frame
from pipeline.corpora.demonstration.inflection import ACCUSATIVE, GENITIVE, Noun, Pair
from pipeline.corpora.demonstration.predicates import Predicate

CONJUNCTIONS = [  # weight, (conjunction, mood of the main clause, mood of the subordinate clause)
    (9, (Pair("because", "weil"), PAST, PAST)),
    (6, (Pair("because", "weil"), PRESENT, PRESENT)),
    (6, (Pair("because", "weil"), FUTURE, PERFECT)),
    (6, (Pair("although", "obwohl"), PAST, PAST)),
    (5, (Pair("although", "obwohl"), PRESENT, PRESENT)),
    (6, (Pair("if", "wenn"), FUTURE, PRESENT)),
    (6, (Pair("when", "als"), PAST, PAST)),
    (3, (Pair("when", "wenn"), PRESENT, PRESENT)),
    (4, (Pair("before", "bevor"), PAST, PAST)),
    (6, (Pair("after", "nachdem"), PAST, PLUPERFECT)),
    (3, (Pair("as soon as", "sobald"), FUTURE, PRESENT)),
    (3, (Pair("so that", "damit"), PRESENT, CAN)),
    (3, (Pair("so that", "damit"), PAST, COULD)),
]
IT = phrases.it("n")
COUNTED = [determiner for determiner in phrases.QUANTIFIED if determiner.english not in ("all", "both")]
REASONS = [Pair("because of", "wegen"), Pair("despite", "trotz")]


def told(dice: Dice, clause: Clause, often: float = 0.45) -> Pair:
    """A main clause. If it has a time or a place, it begins with one of them with the probability `often`."""
    fronts = [field for field in ("time", "place") if getattr(clause, field).english]
    return main_clause(clause, dice.choose(fronts) if fronts and dice.chance(often) else "")


def statement(dice: Dice) -> Pair:
    return finished(told(dice, events.event(dice)))


def thing_statement(dice: Dice) -> Pair:
    return finished(told(dice, events.happening(dice)))


def pointing(dice: Dice) -> Pair:
    """A clause whose object has a relative clause: bought the book that he has read."""
    subject, mood = phrases.person(dice), dice.choose([PAST, PRESENT, PERFECT, FUTURE])
    kind = dice.choose(["person", *events.PASSIVE_KINDS])
    noun, plural = phrases.word(dice, [kind]), dice.chance(0.25)
    tail = events.relative_clause(dice, noun, plural)
    adjectives = phrases.described(dice, noun) if kind == "person" else []
    nominal = phrases.noun_phrase(noun, lexicon.THE, plural, adjectives, tail=tail)
    verb = dice.choose(events.OBJECT_FRAMES[kind]).verb
    clause = Clause(subject, verb, mood.tense, mood.modal, complement=predicates.accusative(nominal, negated=False))
    if dice.chance(0.4):
        clause = replace(clause, time=time_of(dice, mood.when()))
    return finished(told(dice, clause, often=1.0))


def lasting(dice: Dice) -> Pair:
    """A lasting state, in the English perfect and the German present tense.

    Has lived in Rome for three years: wohnt seit drei Jahren in Rom.
    """
    subject = phrases.person(dice)
    given = dice.choose([predicates.living, predicates.stative])(dice, subject, False)
    count, span = dice.choose(lexicon.COUNTS), dice.choose(lexicon.SPANS)
    time = Pair(f"for {count.english} {span.english}", f"seit {count.german} {span.german}")
    clause = Clause(subject, given.verb, complement=given.complement, time=time)
    front = "time" * dice.chance(0.3)
    english, german = main_clause(replace(clause, tense="perfect"), front), main_clause(clause, front)
    return finished(Pair(english.english, german.german))


def profession(dice: Dice) -> Pair:
    subject = dice.choose([phrases.name, phrases.titled, phrases.relative, phrases.pronoun])(dice)
    if not predicates.qualifies(subject):
        subject = phrases.personal(dice.choose(["he", "she"]))
    negated = dice.chance(0.2)
    given = predicates.profession(dice, subject, negated)
    mood = dice.choose([PRESENT, PAST, PERFECT])
    return finished(main_clause(Clause(subject, given.verb, mood.tense, negated=negated, complement=given.complement)))


def comparison(dice: Dice) -> Pair:
    someone = dice.choose([phrases.name, phrases.titled, phrases.relative, phrases.pronoun, None])
    subject = someone(dice) if someone else phrases.thing(dice, ["person"], known=True)
    negated = events.negatable(subject) and dice.chance(0.3)
    given = predicates.comparing(dice, "person", negated)
    tense = dice.choose(["present", "past"])
    return finished(main_clause(Clause(subject, given.verb, tense, negated=negated, complement=given.complement)))


def combined(dice: Dice) -> Pair:
    """A main clause and an adverbial clause. After an adverbial clause, the German main verb precedes its subject."""
    conjunction, mood, other = dice.weigh(CONJUNCTIONS)
    main = events.event(dice, mood_=mood, adorn=dice.chance(0.5))
    clause = circumstance(dice, main.subject, other)
    if dice.chance(0.45):
        first = subordinate(conjunction, clause)
        return finished(main_after(Pair(first.english + ",", first.german + ","), main))
    first, last = main_clause(main), subordinate(conjunction, clause)
    return finished(Pair(join(first.english, last.english), f"{first.german}, {last.german}"))


def circumstance(dice: Dice, subject: Nominal, mood: Mood) -> Clause:
    """An adverbial clause, rarely about the weather. In half of the other cases, the subject is a pronoun for `subject`."""
    if dice.chance(0.08) and mood in (PAST, PRESENT, PERFECT):
        return Clause(IT, dice.choose(frames.WEATHER), mood.tense)
    about = phrases.reference(subject) if dice.chance(0.5) else phrases.person(dice)
    adorn = mood is not PLUPERFECT and dice.chance(0.5)
    return events.event(dice, about, mood, adorn)


def reason(dice: Dice) -> Pair:
    """A sentence that begins with a reason or an event. The German preposition takes the genitive: wegen des Regens."""
    if dice.chance(0.35):
        words, nominal = Pair("during", "während"), phrases.thing(dice, ["event"], simple=True)
    else:
        words = dice.choose(REASONS)
        nominal = phrases.thing(dice, ["weather", "weather", "matter", "text", "event"], simple=True)
    english, german = nominal.after(*words, GENITIVE)
    mood = dice.choose([PAST, PERFECT, COULD])
    clause = events.event(dice, mood_=mood, adorn=False) if dice.chance(0.6) else events.passive(dice)
    return finished(main_after(Pair(english + ",", german), clause))


def reported(dice: Dice) -> Pair:
    """Reported speech (says that) or a judgement (it is clear that). The German subordinate clause ends with its verb."""
    mood = dice.choose([PAST, PRESENT])
    said = dice.choose([PAST] if mood is PAST else [PRESENT, PERFECT, FUTURE])
    content = events.event(dice, mood_=said) if dice.chance(0.7) else events.happening(dice)
    if mood is PAST and content.tense != "past":
        content = replace(content, tense="past", modal=None, progressive=False, time=NONE)
    english, german = subordinate(Pair("that", "dass"), content)
    that = Pair(english, ", " + german)
    if dice.chance(0.2):
        english, german = dice.choose(lexicon.JUDGEMENTS)
        complement = Complement(english, last=german)
        return finished(main_clause(Clause(IT, BE, mood.tense, complement=complement, content=that)))
    clause = Clause(phrases.person(dice), dice.choose(frames.SAYING).verb, mood.tense, content=that)
    if dice.chance(0.25):
        clause = replace(clause, time=time_of(dice, mood.when()))
    return finished(told(dice, clause, often=1.0))


def trying(dice: Dice) -> Pair:
    """A verb with an infinitive: tries to read the book, versucht, das Buch zu lesen."""
    clause = events.event(dice, adorn=False)
    clause = replace(clause, verb=dice.choose(frames.TRYING).verb, complement=Complement(), negated=False)
    aim = replace(clause, modal=None)
    given = predicates.action(dice, clause.subject)
    english, german = infinitive(replace(aim, verb=given.verb, complement=given.complement))
    return finished(told(dice, replace(clause, content=Pair(english, ", " + german))))


def purpose(dice: Dice) -> Pair:
    """A clause of purpose or circumstance: in order to, without, instead of (um, ohne, anstatt)."""
    mood = dice.choose([PAST, PRESENT, PERFECT, FUTURE])
    clause = replace(events.event(dice, mood_=mood), often=NONE)
    given = predicates.action(dice, clause.subject)
    aim = Clause(clause.subject, given.verb, complement=given.complement)
    english, german, form = dice.weigh(
        [
            (50, ("in order", "um", infinitive)),
            (25, ("without", "ohne", gerund)),
            (25, ("instead of", "anstatt", gerund)),
        ]
    )
    words = form(aim)
    content = Pair(join(english, words.english), f", {german} {words.german}")
    return finished(told(dice, replace(clause, content=content)))


def joined(dice: Dice) -> Pair:
    """Two predicates of one subject, or two clauses."""
    mood = dice.choose([PAST, PAST, PRESENT, PERFECT, FUTURE])
    first = events.event(dice, mood_=mood, adorn=dice.chance(0.5))
    second = events.event(dice, phrases.reference(first.subject), mood, adorn=not first.time.english and dice.chance(0.5))
    link = dice.weigh([(45, "and"), (30, "but"), (25, "so")])
    head = told(dice, first)
    if link == "and":
        tail = predicate(replace(second, subject=first.subject))
        return finished(Pair(f"{head.english} and {tail.english}", f"{head.german} und {tail.german}"))
    if link == "but":
        tail = main_clause(second)
        return finished(Pair(f"{head.english}, but {tail.english}", f"{head.german}, aber {tail.german}"))
    tail = main_after(Pair("so", "deshalb"), second)
    return finished(Pair(f"{head.english}, {tail.english}", f"{head.german}, {tail.german}"))


def referring(dice: Dice) -> Pair:
    """A thing, and then a pronoun for it that agrees in gender: er, sie, es; ihn, sie, es."""
    subject, kind = phrases.person(dice), dice.choose(["text", "object", "clothing", "vehicle"])
    frame, noun = dice.choose(events.OBJECT_FRAMES[kind]), phrases.word(dice, [kind])
    article = dice.choose([lexicon.THE, lexicon.THE, lexicon.A, lexicon.THIS])
    nominal = phrases.noun_phrase(noun, article, False, phrases.described(dice, noun))
    head = main_clause(Clause(subject, frame.verb, "past", complement=predicates.accusative(nominal, negated=False)))
    if dice.chance(0.4):
        clause = replace(events.describing(dice, phrases.it(noun.gender), kind), tense="past")
        tail = subordinate(Pair("because", "weil"), clause)
        return finished(Pair(f"{head.english} {tail.english}", f"{head.german}, {tail.german}"))
    given = passing_on(dice, subject, noun) if dice.chance(0.5) else doing_more(dice, noun, frame)
    tail = predicate(Clause(subject, given.verb, "past", complement=given.complement))
    return finished(Pair(f"{head.english} and {tail.english}", f"{head.german} und {tail.german}"))


def passing_on(dice: Dice, subject: Nominal, noun: Noun) -> Predicate:
    """A predicate that gives the thing to somebody: gave it to Anna, gab ihn Anna, gab ihn ihr."""
    receiver = predicates.individual(dice, subject)
    it = phrases.it(noun.gender)
    return predicates.handing(dice.choose(frames.GIVING).verb, it, receiver, backwards=True, negated=False)


def doing_more(dice: Dice, noun: Noun, frame: Frame) -> Predicate:
    others = [other for other in events.OBJECT_FRAMES[noun.kind] if other is not frame and not other.stative]
    return predicates.directed(dice.choose(others), phrases.it(noun.gender), negated=False)


def existing(dice: Dice) -> Pair:
    """There is a thing at a place. In German the place is first: in Berlin gibt es."""
    kind = dice.choose(["town", "area", "building"])
    place = in_place(dice, [kind], near=False)
    noun = phrases.word(dice, ["person", "building", "event"] if kind == "town" else ["person", "machine"])
    plural = dice.chance(0.5)
    determiner = dice.choose(COUNTED) if plural else lexicon.A
    nominal = phrases.noun_phrase(noun, determiner, plural, phrases.described(dice, noun))
    tense = "past" if dice.chance(0.35) else "present"
    verb = BE.english.finite(tense, nominal.agreement)
    english = f"there {verb} {nominal.english} {place.english}"
    return finished(Pair(english, f"{place.german} {'gab' if tense == 'past' else 'gibt'} es {nominal.german[ACCUSATIVE]}"))


def conditional(dice: Dice) -> Pair:
    """A conditional: if he had, he would (wenn er hätte, würde er)."""
    subject = phrases.person(dice)
    english, german = dice.choose(lexicon.WISHES)
    wish = Clause(subject, frames.WISHING, "past", complement=Complement(english, last=german))
    then = events.event(dice, phrases.reference(subject), WOULD, adorn=False)
    first = subordinate(Pair("if", "wenn"), wish)
    if dice.chance(0.7):
        return finished(main_after(Pair(first.english + ",", first.german + ","), then))
    then, wish = replace(then, subject=subject), replace(wish, subject=then.subject)
    first, last = main_clause(then), subordinate(Pair("if", "wenn"), wish)
    return finished(Pair(f"{first.english} {last.english}", f"{first.german}, {last.german}"))


SENTENCES = [
    (23, statement),
    (13, thing_statement),
    (5, pointing),
    (2, lasting),
    (2, profession),
    (3, comparison),
    (18, combined),
    (3, reason),
    (11, reported),
    (3, questions.wondering),
    (3, trying),
    (3, purpose),
    (5, questions.asking),
    (4, questions.asking_what),
    (2, questions.asking_politely),
    (4, questions.quoted),
    (6, joined),
    (4, referring),
    (3, existing),
    (3, conditional),
    (6, figures.figure),
]


def sentence(dice: Dice) -> Pair:
    return dice.weigh(SENTENCES)(dice)
