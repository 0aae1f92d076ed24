"""Sentences with figures: English 1,250 and 3.5 are German 1.250 and 3,5."""

from pipeline.corpora.demonstration import adjuncts, frames, lexicon, phrases, predicates
from pipeline.corpora.demonstration.clauses import Clause, Complement, finished, main_clause
from pipeline.corpora.demonstration.dice import Dice
from pipeline.corpora.demonstration.frames import BE
from pipeline.corpora.demonstration.inflection import DATIVE, GENITIVE, PLURAL, Determiner, Pair

EXTENTS = {  # the upper bound of the number (exclusive), and its unit
    "tower": (200, Pair("metres high", "Meter hoch")),
    "church": (120, Pair("metres high", "Meter hoch")),
    "garden": (90, Pair("metres long", "Meter lang")),
    "table": (300, Pair("centimetres long", "Zentimeter lang")),
    "bed": (220, Pair("centimetres long", "Zentimeter lang")),
    "line": (900, Pair("kilometres long", "Kilometer lang")),
}
ATTENDED = ("exhibition", "concert", "conference", "lecture")


def decimal(dice: Dice) -> Pair:
    """A number from 1.1 to 30.9 with one decimal."""
    return in_tenths(10 * (1 + dice.below(30)) + 1 + dice.below(9))


def in_tenths(number: int) -> Pair:
    whole, tenth = divmod(number, 10)
    return Pair(f"{whole}.{tenth}", f"{whole},{tenth}")


def thousands(dice: Dice) -> Pair:
    whole, rest = 1 + dice.below(60), 50 * dice.below(20)
    return Pair(f"{whole},{rest:03}", f"{whole}.{rest:03}")


def amount(dice: Dice) -> Pair:
    """A round number, such as 40 or 3,250."""
    if dice.chance(0.5):
        return thousands(dice)
    number = str(10 * (2 + dice.below(90)))
    return Pair(number, number)


def price(dice: Dice) -> Pair:
    """A price in euros: a round amount, or a price from 2.20 to 61.95 with cents."""
    if dice.chance(0.5):
        number = amount(dice)
        return Pair(f"{number.english} euros", f"{number.german} Euro")
    whole, cents = 2 + dice.below(60), dice.choose(["20", "50", "80", "95"])
    return Pair(f"{whole}.{cents} euros", f"{whole},{cents} Euro")


def figure(dice: Dice) -> Pair:
    draws = [(20, costing), (20, extent), (20, rising), (15, share), (25, crowd), (15, age), (15, distance)]
    return finished(dice.weigh(draws)(dice))


def costing(dice: Dice) -> Pair:
    subject = phrases.thing(dice, ["object", "machine", "vehicle", "clothing", "text"], known=True)
    english, german = price(dice)
    chosen = "past" if subject.agreement == PLURAL else tense(dice)  # "they cost" could be present or past
    return main_clause(Clause(subject, frames.COST, chosen, complement=Complement(english, last=german)))


def tense(dice: Dice) -> str:
    return dice.choose(["present", "past"])


def extent(dice: Dice) -> Pair:
    """An extent: is 150 metres high."""
    name = dice.choose(list(EXTENTS))
    most, unit = EXTENTS[name]
    nouns = [noun for kind in ("building", "area", "surface") for noun in lexicon.NOUNS[kind] if noun.english == name]
    noun = nouns[0] if nouns else dice.choose(lexicon.LINES)
    determiner = dice.choose([lexicon.THE, lexicon.THE, lexicon.THIS])
    subject = phrases.noun_phrase(noun, determiner, False, phrases.described(dice, noun))
    number = most // 5 + dice.below(most * 4 // 5)
    complement = Complement(f"{number} {unit.english}", last=f"{number} {unit.german}")
    return main_clause(Clause(subject, BE, tense(dice), complement=complement))


def rising(dice: Dice) -> Pair:
    """A change: rose by 2.5 percent, or from 2.5 to 3.1 degrees."""
    subject = phrases.thing(dice, ["measure"])
    verb, past = dice.choose([frames.RISE, frames.FALL]), dice.chance(0.6)
    degrees = subject.english.endswith("temperature")
    unit = Pair("degrees", "Grad") if degrees else Pair("percent", "Prozent")
    if degrees and dice.chance(0.5):
        low = 11 + dice.below(200)
        first, last = in_tenths(low), in_tenths(low + 1 + dice.below(90))
        first, last = (first, last) if verb is frames.RISE else (last, first)
        words = (
            f"from {first.english} to {last.english} {unit.english}",
            f"von {first.german} auf {last.german} {unit.german}",
        )
    else:
        number = decimal(dice)
        words = f"by {number.english} {unit.english}", f"um {number.german} {unit.german}"
    complement = Complement(words[0], last=words[1])
    if past:
        time = adjuncts.time(dice, "past")
        return main_clause(Clause(subject, verb, "past", time=time, complement=complement), "time")
    return main_clause(Clause(subject, verb, "perfect", complement=complement))


def share(dice: Dice) -> Pair:
    """A share of a group, which is a genitive plural in German: 4.5 percent of the tourists."""
    noun = dice.choose(lexicon.NOUNS["person"])
    number = decimal(dice)
    group = phrases.noun_phrase(noun, lexicon.THE, True, phrases.described(dice, noun))
    english = f"{number.english} percent of {group.english}"
    german = f"{number.german} Prozent {group.german[GENITIVE]}"
    subject = phrases.Nominal(english, english, (german,) * 3, PLURAL, "p")
    return crowd_does(dice, subject)


def crowd(dice: Dice) -> Pair:
    """A number of people: about 12,500 tourists."""
    noun = dice.choose(lexicon.NOUNS["person"])
    number = amount(dice)
    words = dice.choose([Pair("", ""), Pair("about ", "etwa "), Pair("more than ", "mehr als "), Pair("almost ", "fast ")])
    determiner = Determiner(words.english + number.english, words.german + number.german, "none", "strong")
    return crowd_does(dice, phrases.noun_phrase(noun, determiner, True, phrases.described(dice, noun)))


def crowd_does(dice: Dice, subject: phrases.Nominal) -> Pair:
    """What a crowd did: visited the exhibition in 1998, travelled to Rome."""
    if dice.chance(0.4):
        english, german = adjuncts.to_place(dice, ["town", "country"])
        verb, complement = frames.TRAVEL, Complement(english, last=german)
    else:
        verb, complement = frames.VISIT, predicates.accusative(crowded(dice), negated=False)
    front = dice.chance(0.5)
    clause = Clause(subject, verb, "past", complement=complement, time=adjuncts.time(dice, "past"))
    return main_clause(clause, "time" * front)


def crowded(dice: Dice) -> phrases.Nominal:
    """A building or an event that many people visit."""
    if dice.chance(0.6):
        return phrases.thing(dice, ["building"], simple=True)
    nouns = [noun for noun in lexicon.NOUNS["event"] if noun.english in ATTENDED]
    noun = dice.choose(nouns)
    return phrases.noun_phrase(noun, dice.choose([lexicon.THE, lexicon.A]), False, phrases.described(dice, noun))


def age(dice: Dice) -> Pair:
    subject = dice.choose([phrases.name, phrases.titled])(dice)
    number = 20 + dice.below(70)
    complement = Complement(f"{number} years old", last=f"{number} Jahre alt")
    return main_clause(Clause(subject, BE, tense(dice), complement=complement))


def distance(dice: Dice) -> Pair:
    """A distance: is 3.5 kilometres away from the station, vom Bahnhof entfernt."""
    subject, place = (phrases.thing(dice, [kind], known=True) for kind in ("building", "stop"))
    number, goal = decimal(dice), place.after("from", "von", DATIVE)
    english, german = (
        f"{number.english} kilometres away {goal.english}",
        f"{number.german} Kilometer {goal.german} entfernt",
    )
    return main_clause(Clause(subject, BE, tense(dice), complement=Complement(english, last=german)))
