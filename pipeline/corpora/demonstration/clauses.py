"""A clause of the demonstration corpus: its content, and its word order in English and German.

German puts the finite verb second in a main clause and after a question word, first in a yes-no question, and last in a
subordinate clause. Participles, infinitives and separated prefixes end the clause. The fields before this end (the
Mittelfeld) have one fixed order, so that each English sentence has one translation.
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
UNMISTAKABLE = ("mich", "mir", "uns", "ihn", "ihm", "ihr", "ihnen", "Ihnen")  # never a subject here: "ihr" is only "her"


@dataclass(frozen=True)
class Nominal:
    """A noun phrase or a pronoun in all the forms that a clause may need."""

    english: str
    objective: str  # me, him; a noun does not change
    german: tuple[str, ...]  # by case
    agreement: int = SINGULAR
    gender: str = "m"  # m, f or n; p for a plural
    definite: bool = True
    pronoun: bool = False
    article: bool = False  # begins with "the"; German contracts the article with some prepositions: im, zum
    reflexive: str = "sich"

    def after(self, english: str, german: str, case: int) -> Pair:
        """The phrase after a preposition, which governs `case` in German."""
        words = f"{german} {self.german[case]}"
        if self.article:
            first, second, *rest = words.split(" ")
            words = " ".join([CONTRACTIONS.get(f"{first} {second}", f"{first} {second}"), *rest])
        return Pair(join(english, self.objective), words)


@dataclass(frozen=True)
class Complement:
    """The complement of a verb: the English words, and the German words by their position in the Mittelfeld."""

    english: str = ""
    pronoun: str = ""
    dative: str = ""
    definite: str = ""
    indefinite: str = ""
    last: str = ""  # a prepositional object, a direction or a predicate
    kein: bool = False  # the negation is in the object (kein), not in "nicht"


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
    content: Pair = NONE  # a clause that follows, in German after a comma: that he sleeps, dass er schläft


def join(*words: str) -> str:
    return " ".join(filter(None, words))


def main_clause(clause: Clause, front: str = "") -> Pair:
    """A statement. It begins with the field that `front` names (`time` or `place`), or with the subject."""
    if front:
        field = clause.time if front == "time" else clause.place
        rest = replace(clause, time=NONE) if front == "time" else replace(clause, place=NONE)
        return main_after(Pair(field.english + ",", field.german), rest)
    finite, end = second(clause)
    german = join(clause.subject.german[0], finite, middle(clause), end)
    return Pair(statement(clause), german + clause.content.german)


def main_after(front: Pair, clause: Clause) -> Pair:
    """A statement that begins with `front`. The German subject then follows the verb."""
    finite, end = second(clause)
    german = join(front.german, finite, inverted(clause), end)
    return Pair(join(front.english, statement(clause)), german + clause.content.german)


def predicate(clause: Clause) -> Pair:
    """A main clause without its subject, for use after `and`."""
    finite, end = second(clause)
    english = statement(replace(clause, subject=replace(clause.subject, english="")))
    return Pair(english, join(finite, middle(clause), end) + clause.content.german)


def subordinate(conjunction: Pair, clause: Clause) -> Pair:
    """A subordinate clause. The verb is last in German: dass er das Buch gelesen hat, weil sie anruft."""
    finite, end, prefix = german_verbs(clause)
    german = join(conjunction.german, clause.subject.german[0], middle(clause), end, prefix + finite)
    return Pair(join(conjunction.english, statement(clause)), german + clause.content.german)


def question(clause: Clause, word: Pair = NONE) -> Pair:
    """A yes-no question, or a question that begins with `word`. `spoken` gives the German tense."""
    auxiliary, verbs = english_verbs(clause, support=True)
    negation = "not" if clause.negated else ""
    english = join(word.english, auxiliary, clause.subject.english, negation, clause.often.english, verbs, rest_of(clause))
    clause = spoken(clause)
    finite, end = second(clause)
    return Pair(english, join(word.german, finite, inverted(clause), end) + clause.content.german)


def subject_question(clause: Clause) -> Pair:
    """A question whose subject is the question word: who bought the book."""
    return Pair(main_clause(clause).english, main_clause(spoken(clause)).german)


def request(clause: Clause) -> Pair:
    """A request to `you`. Please do not open the door: Bitte öffnen Sie die Tür nicht."""
    english = join("please", "do not" if clause.negated else "", infinitive(clause).english.removeprefix("to "))
    return Pair(english, question(clause, Pair("", "bitte")).german)


def infinitive(clause: Clause) -> Pair:
    """The infinitive with its complement: to read the book, das Buch zu lesen."""
    verb = clause.verb.english
    german = join(middle(clause), clause.verb.german.full_infinitive(zu=True))
    return Pair(join("to", verb.base, verb.tail, rest_of(clause)), german)


def gerund(clause: Clause) -> Pair:
    """The gerund with its complement. In German it is an infinitive: reading the book, das Buch zu lesen."""
    verb = clause.verb.english
    return Pair(join(verb.gerund(), verb.tail, rest_of(clause)), infinitive(clause).german)


def spoken(clause: Clause) -> Clause:
    """The clause with the perfect instead of the past, as in spoken German. Passives, modals, be and have keep the past."""
    keeps = clause.passive or clause.modal or clause.verb.english.base in ("be", "have")
    return replace(clause, tense="perfect") if clause.tense == "past" and not keeps else clause


def statement(clause: Clause) -> str:
    """The English words of a statement, from its subject on."""
    auxiliary, verbs = english_verbs(clause, support=clause.negated)
    negation = "not" if clause.negated else ""
    return join(clause.subject.english, auxiliary, negation, clause.often.english, verbs, rest_of(clause))


def rest_of(clause: Clause) -> str:
    fields = (clause.complement, clause.manner, clause.company, clause.place, clause.time, clause.content)
    return join(*(field.english for field in fields))


def english_verbs(clause: Clause, support: bool) -> tuple[str, str]:
    """The auxiliary or form of be (empty if none) and the other verbs. With `support`, "do" replaces an empty auxiliary."""
    tense, agreement = clause.tense, clause.subject.agreement
    verb, after = clause.verb.english, clause.verb.english.tail
    if clause.passive:
        verb, after = BE.english, join(verb.participle, after)
    if clause.progressive:
        return BE.english.finite(tense, agreement), join(verb.gerund(), after)
    if clause.modal and clause.modal.auxiliary:
        return clause.modal.auxiliary, join(clause.modal.tail, verb.base, after)
    if clause.modal:
        assert clause.modal.verb is not None  # a modal without an auxiliary has a verb
        verb, after, tense = clause.modal.verb, join(clause.modal.verb.tail, verb.base, after), clause.modal.tense
    if tense in ("perfect", "pluperfect"):
        return HAVE.finite("past" if tense == "pluperfect" else "present", agreement), join(verb.participle, after)
    return simple_verb(verb, tense, agreement, after, support)


def simple_verb(verb: EnglishVerb, tense: str, agreement: int, after: str, support: bool) -> tuple[str, str]:
    if verb.base == "be":
        return verb.finite(tense, agreement), after
    if tense == "present" and verb.base == verb.past and agreement != SINGULAR and not support:
        return BE.english.finite(tense, agreement), join(verb.gerund(), after)  # "they read" could be present or past
    if support:
        return DO.finite(tense, agreement), join(verb.base, after)
    return "", join(verb.finite(tense, agreement), after)


def german_verbs(clause: Clause) -> tuple[str, str, str]:
    """The finite verb, the words at the end of the clause, and a separable prefix."""
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
    """The words after a verb that precedes its subject: gestern freute sich der Lehrer, gestern freute er sich."""
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
    """The Mittelfeld after the subject."""
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
    """The sentence with a capital letter, without doubled commas, and with `mark` at its end."""
    return Pair(*(written(words + mark) for words in pair))


def written(words: str) -> str:
    if ",," in words or ", ," in words or " ," in words:
        words = COMMAS.sub(",", words)  # a relative clause and the words next to it may each add a comma
    words = COMMA_AND_MARK.sub(r"\1", words).replace("..", ".").replace("can not ", "cannot ")
    start = 1 if words[0] in '"„' else 0
    return words[:start] + words[start].upper() + words[start + 1 :]
