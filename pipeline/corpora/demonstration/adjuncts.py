"""Draws the places, times and companions in sentences of the demonstration corpus."""

from collections.abc import Callable, Sequence

from pipeline.corpora.demonstration import lexicon
from pipeline.corpora.demonstration.clauses import NONE, join
from pipeline.corpora.demonstration.dice import Dice
from pipeline.corpora.demonstration.inflection import ACCUSATIVE, DATIVE, Pair
from pipeline.corpora.demonstration.phrases import name, relative, thing, titled

LOCATIONS = {"building": "in", "area": "in", "stop": "an"}
NEAR = [Pair("behind", "hinter"), Pair("in front of", "vor"), Pair("next to", "neben")]
ON = [Pair("on", "auf"), Pair("under", "unter"), Pair("behind", "hinter"), Pair("next to", "neben")]


def in_place(dice: Dice, kinds: Sequence[str] = ("building", "area", "stop", "town"), near: bool = True) -> Pair:
    """A place where something happens: in the old house, im alten Haus."""
    kind = dice.choose(kinds)
    if kind == "town":
        town = dice.choose(lexicon.TOWNS)
        return Pair(f"in {town.english}", f"in {town.german}")
    place = thing(dice, [kind], simple=True)
    if near and kind == "building" and dice.chance(0.25):
        return place.after(*dice.choose(NEAR), DATIVE)
    german = LOCATIONS[kind]
    return place.after({"in": "in", "an": "at"}[german], german, DATIVE)


def to_place(dice: Dice, kinds: Sequence[str]) -> Pair:
    """A place that somebody goes to: nach Berlin, in die Schweiz, zum Bahnhof, in den Garten."""
    kind = dice.choose(kinds)
    if kind == "town":
        town = dice.choose(lexicon.TOWNS)
        return Pair(f"to {town.english}", f"nach {town.german}")
    if kind == "country":
        country = dice.choose(lexicon.COUNTRIES)
        return Pair(f"to {country.english}", country.german)
    place = thing(dice, [kind], simple=True)
    if kind == "area":
        return place.after("into", "in", ACCUSATIVE)
    return place.after("to", "zu", DATIVE)


def surface(dice: Dice, case: int) -> Pair:
    """A place on or near a surface: on the table. `case` is DATIVE (auf dem Tisch) or ACCUSATIVE (auf den Tisch)."""
    return thing(dice, ["surface"], simple=True).after(*dice.choose(ON), case)


def company(dice: Dice) -> Pair:
    english, german, case = dice.choose(
        [("with", "mit", DATIVE), ("without", "ohne", ACCUSATIVE), ("for", "für", ACCUSATIVE)]
    )
    companion = dice.choose([name, titled, relative])(dice)
    return companion.after(english, german, case)


def time(dice: Dice, when: str) -> Pair:
    """A time: yesterday, gestern. `when` is the kind of time: past, perfect, now, habit or future."""
    draws: list[tuple[int, Callable | None]] = [(60, None)]
    if when == "past":
        draws += [(14, ago), (8, in_year), (10, on_day), (8, on_date)]
    if when == "future":
        draws += [(10, ahead), (16, on_day), (14, at_hour)]
    draw = dice.weigh(draws)
    return draw(dice) if draw else dice.choose(lexicon.TIMES[when])


def ago(dice: Dice) -> Pair:
    count, span = dice.choose(lexicon.COUNTS), dice.choose(lexicon.SPANS)
    return Pair(f"{count.english} {span.english} ago", f"vor {count.german} {span.german}")


def ahead(dice: Dice) -> Pair:
    count, span = dice.choose(lexicon.COUNTS), dice.choose(lexicon.SPANS)
    return Pair(f"in {count.english} {span.english}", f"in {count.german} {span.german}")


def year(dice: Dice) -> int:
    return 1950 + dice.below(70)


def in_year(dice: Dice) -> Pair:
    number = year(dice)
    return Pair(f"in {number}", f"im Jahr {number}")


def on_day(dice: Dice) -> Pair:
    day = dice.choose(lexicon.DAYS)
    part = dice.choose([NONE, Pair("morning", "morgen"), Pair("evening", "abend")])
    return Pair(join(f"on {day.english}", part.english), f"am {day.german}{part.german}")


def on_date(dice: Dice) -> Pair:
    month, day = dice.choose(lexicon.MONTHS), 1 + dice.below(28)
    if dice.chance(0.5):
        return Pair(f"on {month.english} {day}", f"am {day}. {month.german}")
    number = year(dice)
    return Pair(f"on {month.english} {day}, {number}", f"am {day}. {month.german} {number}")


def at_hour(dice: Dice) -> Pair:
    """A time of day: at 3:45 p.m., um 15.45 Uhr."""
    hour, minutes, afternoon = 1 + dice.below(11), 5 * dice.below(12), dice.chance(0.5)
    half = "p.m." if afternoon else "a.m."
    return Pair(f"at {hour}:{minutes:02} {half}", f"um {hour + 12 * afternoon}.{minutes:02} Uhr")
