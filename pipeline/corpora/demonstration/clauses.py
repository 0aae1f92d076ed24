"""A clause of the demonstration corpus: what it says, and how English and German order it.

German puts the finite verb second in a main clause, first in a question and last in a subordinate clause; participles,
infinitives and separated prefixes close the clause. The fields between (the Mittelfeld) stand in one fixed order, so
that each English sentence has one translation.
"""

import re
from dataclasses import dataclass, replace

from pipeline.corpora.demonstration.frames import BE, HABEN, SEIN, WERDEN, Modal
from pipeline.corpora.demonstration.inflection import SINGULAR, EnglishVerb, Pair, Verb, english_verb

NONE = Pair("", "")
DO, HAVE = english_verb("do/did/done"), english_verb("have/had")
CONTRACTIONS = {"in dem": "im", "an dem": "am", "zu dem": "zum", "zu der": "zur", "von dem": "vom", "in das": "ins"}
CONTRACTIONS |= {"an das": "ans", "bei dem": "beim"}

COMMAS, COMMA_AND_MARK = re.compile(r"(\s*,)+"), re.compile(r",([.?!“])")
UNMISTAKABLE = ("mich", "mir", "uns", "ihn", "ihm", "ihr", "ihnen", "Ihnen")  # no subjects


@dataclass(frozen=True)
class Nominal:
    """A noun phrase or a pronoun in all the forms a clause may need."""

    english: str
    objective: str  # me, him; for a noun the same
    german: tuple[str, ...]  # by case
    agreement: int = SINGULAR
    gender: str = "m"  # m, f, n or p for a plural
    definite: bool = True
    pronoun: bool = False
    article: bool = False  # begins with "the", which German contracts with prepositions: im, zum
    reflexive: str = "sich"

    def after(self, english: str, german: str, case: int) -> Pair:
        """Behind a preposition."""
        words = f"{german} {self.german[case]}"
        if self.article:
            first, second, *rest = words.split(" ")
            words = " ".join([CONTRACTIONS.get(f"{first} {second}", f"{first} {second}"), *rest])
        return Pair(join(english, self.objective), words)


@dataclass(frozen=True)
class Complement:
    """What the verb takes: the English words, and the German ones by their place in the Mittelfeld."""

    english: str = ""
    pronoun: str = ""
    dative: str = ""
    definite: str = ""
    indefinite: str = ""
    last: str = ""  # prepositional object, direction, predicate
    kein: bool = False  # the object bears the negation


@dataclass(frozen=True)
class Clause:
    subject: Nominal
    verb: Verb
    tense: str = "present"  # present, past, perfect or pluperfect
    modal: Modal | None = None
    progressive: bool = False
    passive: bool = False
    negated: bool = False
    complement: Complement = Complement()
    often: Pair = NONE
    manner: Pair = NONE
    company: Pair = NONE
    place: Pair = NONE
    time: Pair = NONE
    content: Pair = NONE  # a clause that follows, its German with a comma: that he sleeps, dass er schläft


def join(*words: str) -> str:
    return " ".join(filter(None, words))


def main_clause(clause: Clause, front: str = "") -> Pair:
    """A statement. `front` names the field that stands first (`time`, `place`) instead of the subject."""
    if front:
        field = getattr(clause, front)
        return main_after(Pair(field.english + ",", field.german), replace(clause, **{front: NONE}))
    finite, end = second(clause)
    german = join(clause.subject.german[0], finite, middle(clause), end)
    return Pair(statement(clause), german + clause.content.german)


def main_after(front: Pair, clause: Clause) -> Pair:
    """A statement that something else begins, so that the German subject follows the verb."""
    finite, end = second(clause)
    german = join(front.german, finite, inverted(clause), end)
    return Pair(join(front.english, statement(clause)), german + clause.content.german)


def predicate(clause: Clause) -> Pair:
    """A main clause without its subject, to be joined by `and`."""
    finite, end = second(clause)
    english = statement(replace(clause, subject=replace(clause.subject, english="")))
    return Pair(english, join(finite, middle(clause), end) + clause.content.german)


def subordinate(conjunction: Pair, clause: Clause) -> Pair:
    """Verb-final in German: dass er das Buch gelesen hat, weil sie anruft."""
    finite, end, prefix = german_verbs(clause)
    german = join(conjunction.german, clause.subject.german[0], middle(clause), end, prefix + finite)
    return Pair(join(conjunction.english, statement(clause)), german + clause.content.german)


def question(clause: Clause, word: Pair = NONE) -> Pair:
    """Yes or no, or after a question word. Where English says "did", German speaks in the perfect."""
    auxiliary, verbs = english_verbs(clause, support=True)
    negation = "not" if clause.negated else ""
    english = join(
        word.english, auxiliary, clause.subject.english, negation, clause.often.english, verbs, rest_of(clause)
    )
    clause = spoken(clause)
    finite, end = second(clause)
    return Pair(english, join(word.german, finite, inverted(clause), end) + clause.content.german)


def subject_question(clause: Clause) -> Pair:
    """Who bought the book: the subject is the question word."""
    return Pair(main_clause(clause).english, main_clause(spoken(clause)).german)


def request(clause: Clause) -> Pair:
    """Please do not open the door: Bitte öffnen Sie die Tür nicht. The subject is `you`."""
    english = join("please", "do not" if clause.negated else "", infinitive(clause).english.removeprefix("to "))
    return Pair(english, question(clause, Pair("", "bitte")).german)


def infinitive(clause: Clause) -> Pair:
    """to read the book, das Buch zu lesen."""
    verb = clause.verb.english
    german = join(middle(clause), clause.verb.german.full_infinitive(zu=True))
    return Pair(join("to", verb.base, verb.tail, rest_of(clause)), german)


def gerund(clause: Clause) -> Pair:
    """reading the book, das Buch zu lesen."""
    verb = clause.verb.english
    return Pair(join(verb.gerund(), verb.tail, rest_of(clause)), infinitive(clause).german)


def spoken(clause: Clause) -> Clause:
    keeps = clause.passive or clause.modal or clause.verb.english.base in ("be", "have")
    return replace(clause, tense="perfect") if clause.tense == "past" and not keeps else clause


def statement(clause: Clause) -> str:
    """English from the subject on."""
    auxiliary, verbs = english_verbs(clause, support=clause.negated)
    negation = "not" if clause.negated else ""
    return join(clause.subject.english, auxiliary, negation, clause.often.english, verbs, rest_of(clause))


def rest_of(clause: Clause) -> str:
    fields = (clause.complement, clause.manner, clause.company, clause.place, clause.time, clause.content)
    return join(*(field.english for field in fields))


def english_verbs(clause: Clause, support: bool) -> tuple[str, str]:
    """The auxiliary, if any, and the other verbs. `support`: a simple verb needs "do"."""
    tense, agreement = clause.tense, clause.subject.agreement
    verb, after = clause.verb.english, clause.verb.english.tail
    if clause.passive:
        verb, after = BE.english, join(verb.participle, after)
    if clause.progressive:
        return BE.english.finite(tense, agreement), join(verb.gerund(), after)
    if clause.modal and clause.modal.auxiliary:
        return clause.modal.auxiliary, join(clause.modal.tail, verb.base, after)
    if clause.modal:
        verb, after, tense = clause.modal.verb, join(clause.modal.verb.tail, verb.base, after), clause.modal.tense
    if tense in ("perfect", "pluperfect"):
        return HAVE.finite("past" if tense == "pluperfect" else "present", agreement), join(verb.participle, after)
    return simple_verb(verb, tense, agreement, after, support)


def simple_verb(verb: EnglishVerb, tense: str, agreement: int, after: str, support: bool) -> tuple[str, str]:
    if verb.base == "be":
        return verb.finite(tense, agreement), after
    if tense == "present" and verb.base == verb.past and agreement != SINGULAR and not support:
        return BE.english.finite(tense, agreement), join(verb.gerund(), after)  # "they read" would say two things
    if support:
        return DO.finite(tense, agreement), join(verb.base, after)
    return "", join(verb.finite(tense, agreement), after)


def german_verbs(clause: Clause) -> tuple[str, str, str]:
    """The finite verb, what closes the clause, and a separable prefix."""
    verb, agreement, tense = clause.verb.german, clause.subject.agreement, clause.tense
    if clause.modal:
        modal = clause.modal.negated if clause.negated else clause.modal.german
        full = f"{verb.participle} werden" if clause.passive else verb.full_infinitive()
        return modal.finite(clause.modal.tense, agreement), full, ""
    if tense in ("perfect", "pluperfect"):
        auxiliary = SEIN if clause.passive or verb.auxiliary == "sein" else HABEN
        participle = f"{verb.participle} worden" if clause.passive else verb.participle
        return auxiliary.finite("past" if tense == "pluperfect" else "present", agreement), participle, ""
    if clause.passive:
        return WERDEN.finite(tense, agreement), verb.participle, ""
    return verb.finite(tense, agreement), "", verb.prefix


def second(clause: Clause) -> tuple[str, str]:
    finite, end, prefix = german_verbs(clause)
    return finite, end or prefix


def inverted(clause: Clause) -> str:
    """From the subject on where the verb stands before it: gestern freute sich der Lehrer, gestern freute er sich."""
    subject = clause.subject
    if subject.pronoun:
        return join(subject.german[0], middle(clause))
    if clause.verb.german.reflexive:
        return join(subject.reflexive, subject.german[0], middle(clause, reflexive=False))
    if clause.complement.pronoun in UNMISTAKABLE:
        rest = replace(clause, complement=replace(clause.complement, pronoun=""))
        return join(clause.complement.pronoun, subject.german[0], middle(rest))
    return join(subject.german[0], middle(clause))


def middle(clause: Clause, reflexive: bool = True) -> str:
    """The Mittelfeld behind the subject."""
    given = clause.complement
    return join(
        clause.subject.reflexive if reflexive and clause.verb.german.reflexive else "",
        given.pronoun,
        clause.time.german,
        clause.often.german,
        given.dative,
        given.definite,
        "nicht" if clause.negated and not given.kein else "",
        clause.manner.german,
        clause.company.german,
        clause.place.german,
        given.indefinite,
        given.last,
    )


def finished(pair: Pair, mark: str = ".") -> Pair:
    """The sentence with its capital, its commas in order and `mark` at its end."""
    return Pair(*(written(words + mark) for words in pair))


def written(words: str) -> str:
    if ",," in words or ", ," in words or " ," in words:
        words = COMMAS.sub(",", words)  # a relative clause brings commas; its neighbours may, too
    words = COMMA_AND_MARK.sub(r"\1", words).replace("..", ".").replace("can not ", "cannot ")
    start = 1 if words[0] in '"„' else 0
    return words[:start] + words[start].upper() + words[start + 1 :]
