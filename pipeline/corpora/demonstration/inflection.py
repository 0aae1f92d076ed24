"""German and English inflection for the demonstration corpus, from entries as in a dictionary.

A noun is `man/men: der Mann, Mannes, Männer` (English singular and plural; article, nominative, genitive, plural).
A verb is `get/got up: auf|stehen, steht, stand, ist aufgestanden` (a bar after a separable prefix; `ist` for sein).
An adjective is `old, older: alt, älter`. Nouns and verbs may omit regular forms: `cry: weinen`, `lamp: die Lampe, Lampen`.
"""

from dataclasses import dataclass
from typing import NamedTuple

NOMINATIVE, ACCUSATIVE, DATIVE, GENITIVE = range(4)
FIRST, SINGULAR, PLURAL = range(3)  # agreement of a verb: I, he, they ("you" and German "Sie" are plural)

ARTICLES = {"der": "m", "die": "f", "das": "n"}
DEFINITE = {
    "m": ("der", "den", "dem", "des"),
    "f": ("die", "die", "der", "der"),
    "n": ("das", "das", "dem", "des"),
    "p": ("die", "die", "den", "der"),
}
STRONG = {
    "m": ("er", "en", "em", "es"),
    "f": ("e", "e", "er", "er"),
    "n": ("es", "es", "em", "es"),
    "p": ("e", "e", "en", "er"),
}
RELATIVE = {gender: forms[:3] for gender, forms in DEFINITE.items()} | {"p": ("die", "die", "denen")}
WHOSE = {"m": "dessen", "f": "deren", "n": "dessen", "p": "deren"}
INSEPARABLE = ("be", "ent", "er", "ge", "ver", "zer", "über", "unter")
GERUNDS = {"get": "getting", "put": "putting", "swim": "swimming", "run": "running", "forget": "forgetting"}
GERUNDS |= {"begin": "beginning", "stop": "stopping", "cut": "cutting", "lie": "lying", "travel": "travelling"}
GERUNDS |= {"cancel": "cancelling", "plan": "planning", "see": "seeing", "agree": "agreeing", "be": "being"}
AN_EXCEPTIONS = ("uni", "use", "UN ", "US ")


class Pair(NamedTuple):
    """A text and its translation."""

    english: str
    german: str


@dataclass(frozen=True, eq=False)
class Noun:
    english: str
    english_plural: str
    german: str
    gender: str  # m, f or n
    genitive: str
    plural: str
    kind: str

    @property
    def mass(self) -> bool:
        return self.plural == "-"

    def form(self, case: int, plural: bool) -> str:
        """The German form. A masculine noun without -s in the genitive is weak: den Jungen, dem Studenten."""
        if plural:
            return self.plural + ("n" if case == DATIVE and self.plural[-1] not in "ns" else "")
        weak = self.gender == "m" and not self.genitive.endswith("s")
        return self.genitive if case == GENITIVE or (weak and case != NOMINATIVE) else self.german


@dataclass(frozen=True, eq=False)
class Adjective:
    english: str
    english_comparative: str  # empty if there is none
    german: str
    comparative: str

    def stem(self) -> str:
        """The stem, to which endings are added: hoch, hohe; teuer, teure; dunkel, dunkle."""
        if self.german == "hoch":
            return "hoh"
        if self.german.endswith(("euer", "auer", "el")):
            return self.german[:-2] + self.german[-1]
        return self.german.removesuffix("e")


@dataclass(frozen=True)
class EnglishVerb:
    base: str
    past: str
    participle: str
    tail: str  # the words after every form: `on` in "turn on"

    def finite(self, tense: str, agreement: int) -> str:
        if self.base == "be":
            return (("was", "was", "were") if tense == "past" else ("am", "is", "are"))[agreement]
        if tense == "past":
            return self.past
        if agreement != SINGULAR:
            return self.base
        return "has" if self.base == "have" else with_s(self.base)

    def gerund(self) -> str:
        if self.base in GERUNDS:
            return GERUNDS[self.base]
        silent = self.base.endswith("e") and not self.base.endswith("ee")
        return (self.base[:-1] if silent else self.base) + "ing"


@dataclass(frozen=True)
class GermanVerb:
    prefix: str  # the separable prefix, or empty
    infinitive: str  # without the prefix
    present: tuple[str, str, str]  # ich, er, sie (plural)
    past: tuple[str, str, str]
    participle: str
    auxiliary: str  # haben or sein
    reflexive: bool

    def finite(self, tense: str, agreement: int) -> str:
        return (self.past if tense == "past" else self.present)[agreement]

    def full_infinitive(self, zu: bool = False) -> str:
        """The infinitive: anrufen, lesen. With `zu`: anzurufen, zu lesen."""
        if not zu:
            return self.prefix + self.infinitive
        return f"{self.prefix}zu{self.infinitive}" if self.prefix else f"zu {self.infinitive}"


class Verb(NamedTuple):
    english: EnglishVerb
    german: GermanVerb


@dataclass(frozen=True, eq=False)
class Determiner:
    """An article, possessive or quantity. `endings` is its declension, `adjectives` that of the adjectives after it."""

    english: str
    german: str
    endings: str  # definite, strong, ein or none
    adjectives: str  # weak, mixed or strong

    def form(self, gender: str, case: int) -> str:
        if self.endings == "none":
            return self.german
        if self.endings == "definite":
            return DEFINITE[gender][case]
        return self.german + ("" if self.endings == "ein" and endless(gender, case) else STRONG[gender][case])


def endless(gender: str, case: int) -> bool:
    """Whether ein and mein have no ending in this gender and case: ein Mann, ein Kind."""
    return (gender in "mn" and case == NOMINATIVE) or (gender == "n" and case == ACCUSATIVE)


def adjective_form(adjective: Adjective, declension: str, gender: str, case: int) -> str:
    if declension == "strong" or (declension == "mixed" and endless(gender, case)):
        ending = "en" if case == GENITIVE and gender in "mn" else STRONG[gender][case]
    else:
        plain = gender != "p" and (case == NOMINATIVE or (case == ACCUSATIVE and gender in "fn"))
        ending = "e" if plain else "en"
    return adjective.stem() + ending


def with_s(word: str) -> str:
    """The regular plural of an English noun, or the third person of a verb."""
    if word.endswith(("s", "x", "ch", "sh", "o")) and not word.endswith(("dio", "oto")):
        return word + "es"
    return word[:-1] + "ies" if word.endswith("y") and word[-2] not in "aeou" else word + "s"


def with_ed(word: str) -> str:
    if word.endswith("e"):
        return word + "d"
    return word[:-1] + "ied" if word.endswith("y") and word[-2] not in "aeou" else word + "ed"


def with_an(words: str) -> str:
    """`words` with `a` or `an` before them."""
    return ("an " if words[0] in "aeiouAEIOU" and not words.startswith(AN_EXCEPTIONS) else "a ") + words


def entries(text: str) -> list[str]:
    """The parts of `text` between semicolons, with single spaces."""
    return [" ".join(entry.split()) for entry in text.split(";")]


def noun(entry: str, kind: str) -> Noun:
    """Read `man/men: der Mann, Mannes, Männer`. A feminine noun omits the genitive; a mass noun has the plural `-`."""
    english, german = entry.split(": ")
    singular, _, plural = english.partition("/")
    forms = german.split(", ")
    article, nominative = forms[0].split(" ")
    genitive = nominative if ARTICLES[article] == "f" else forms[1]
    return Noun(singular, plural or with_s(singular), nominative, ARTICLES[article], genitive, forms[-1], kind)


def adjective(entry: str) -> Adjective:
    """Read `old, older: alt, älter` or `tired: müde`."""
    (english, _, older), (german, _, comparative) = (side.partition(", ") for side in entry.split(": "))
    return Adjective(english, older, german, comparative)


def verb(entry: str) -> Verb:
    """Read `put/put on: an|ziehen, zieht, zog, angezogen`, `wait for: warten` or `rest: sich aus|ruhen`."""
    english, german = entry.split(": ")
    return Verb(english_verb(english), german_verb(german))


def english_verb(entry: str) -> EnglishVerb:
    forms, _, tail = entry.partition(" ")
    base, *rest = forms.split("/")
    past = rest[0] if rest else with_ed(base)
    return EnglishVerb(base, past, rest[-1] if rest else past, tail)


def german_verb(entry: str) -> GermanVerb:
    infinitive, *forms = entry.removeprefix("sich ").split(", ")
    prefix, _, infinitive = infinitive.rpartition("|")
    third, past, participle = forms or weak_forms(prefix, infinitive)
    auxiliary, _, participle = participle.rpartition(" ")
    stem = infinitive.removesuffix("n").removesuffix("e")
    return GermanVerb(
        prefix=prefix,
        infinitive=infinitive,
        present=(stem + "e" if third.endswith(("t", "d")) else third, third, infinitive),
        past=(past, past, past + ("n" if past.endswith("e") else "en")),
        participle=participle,
        auxiliary="sein" if auxiliary == "ist" else "haben",
        reflexive=entry.startswith("sich "),
    )


def weak_forms(prefix: str, infinitive: str) -> tuple[str, str, str]:
    """The third person, preterite and participle of a regular verb: arbeitet, arbeitete, gearbeitet."""
    stem = infinitive.removesuffix("n").removesuffix("e")
    link = "e" if stem.endswith(("t", "d", "ffn", "chn")) else ""
    bare = infinitive.endswith("ieren") or infinitive.startswith(INSEPARABLE)
    return f"{stem}{link}t", f"{stem}{link}te", f"{prefix}{'' if bare else 'ge'}{stem}{link}t"
