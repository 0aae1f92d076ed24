"""The demonstration corpus: correct German, one translation for each English sentence, disjoint sets."""

import hashlib
import re
from dataclasses import replace

import pytest

from pipeline.corpora.demonstration import frames, lexicon
from pipeline.corpora.demonstration.clauses import (
    Clause,
    Complement,
    Nominal,
    finished,
    gerund,
    infinitive,
    main_after,
    main_clause,
    predicate,
    question,
    request,
    subject_question,
    subordinate,
)
from pipeline.corpora.demonstration.dice import Dice
from pipeline.corpora.demonstration.events import relative_clause
from pipeline.corpora.demonstration.grammar import generate, make
from pipeline.corpora.demonstration.inflection import (
    ACCUSATIVE,
    DATIVE,
    GENITIVE,
    Adjective,
    Noun,
    Pair,
    Verb,
    adjective_form,
    german_verb,
    with_an,
    with_s,
)
from pipeline.corpora.demonstration.lexicon import BARE, EVERY, NO, NOT_ANY, THE, THESE, THIS, A
from pipeline.corpora.demonstration.phrases import it, noun_phrase, personal
from pipeline.corpora.demonstration.predicates import directed, handing
from pipeline.corpora.demonstration.questions import WHO
from pipeline.corpora.demonstration.sentences import sentence
from pipeline.settings.download import GeneratorConfig
from transformer.config.reading import UserError, read

SMALL = GeneratorConfig(seed=1, train=300, dev=20, test=50)
MY, HIS, HER, OUR, THEIR, YOUR = lexicon.POSSESSIVES
MANY, SOME, SEVERAL, ALL, BOTH, FEW = lexicon.QUANTITIES
FRAMES = [f for table in vars(frames).values() if isinstance(table, list) for f in table if isinstance(f, frames.Frame)]
VERBS = [frame.verb for frame in FRAMES] + [made for made in vars(frames).values() if isinstance(made, Verb)]
WEIL, DASS, AFTER = Pair("because", "weil"), Pair("that", "dass"), Pair("after", "nachdem")
YESTERDAY = Pair("yesterday", "gestern")


def noun(english: str) -> Noun:
    everything = [*lexicon.NOUNS.values(), *lexicon.COMPOUNDS.values()]
    return next(noun for nouns in everything for noun in nouns if noun.english == english)


def adjective(english: str) -> Adjective:
    return next(a for adjectives in lexicon.ADJECTIVES.values() for a in adjectives if a.english == english)


def verb(english: str) -> Verb:
    return next(v for v in VERBS if f"{v.english.base} {v.english.tail}".strip() == english)


def frame(english: str) -> frames.Frame:
    return next(f for f in FRAMES if f"{f.verb.english.base} {f.verb.english.tail}".strip() == english)


def np(determiner, words: str, plural: bool = False) -> Nominal:
    """A noun phrase from English adjectives and a noun. The parts of a compound are joined by underscores."""
    *adjectives, last = words.split()
    return noun_phrase(noun(last.replace("_", " ")), determiner, plural, [adjective(word) for word in adjectives])


def name(word: str) -> Nominal:
    return Nominal(word, word, (word,) * 3)


def does(subject, english: str, given=None, **more) -> Clause:
    """A clause with a direct object, no object, or another complement."""
    negated = more.get("negated", False)
    if isinstance(given, Nominal):
        verb_, given = directed(frame(english), given, negated)[:2]
    else:
        verb_ = verb(english)
    return Clause(subject, verb_, complement=given or Complement(), **more)


def prepositional(nominal: Nominal, german: str, case: int, english: str = "") -> Complement:
    words = nominal.after(english, german, case)
    return Complement(words.english, last=words.german)


def told(clause: Clause, front: str = "") -> Pair:
    return finished(main_clause(clause, front))


def gives(given: Nominal, receiver: Nominal, backwards: bool) -> Clause:
    verb_, complement = handing(verb("give"), given, receiver, backwards, negated=False)[:2]
    return Clause(HE, verb_, "past", complement=complement)


def beginning(conjunction: Pair, first: Clause, last: Clause) -> Pair:
    words = subordinate(conjunction, first)
    return finished(main_after(Pair(words.english + ",", words.german + ","), last))


def with_clause(first: Pair, last: Pair) -> Pair:
    return finished(Pair(f"{first.english} {last.english}", f"{first.german}, {last.german}"))


YOU, HE, SHE, WE, THEY = (personal(word) for word in lexicon.PRONOUNS if word != "I")
ANNA, TEACHER, CHILD, GIRL = name("Anna"), np(THE, "old teacher"), np(THE, "child"), np(THE, "girl")
TO_BERLIN = Complement("to Berlin", last="nach Berlin")
READING = does(SHE, "read", np(THE, "book"), tense="past")
MODAL = {modal.auxiliary + (modal.verb.base if modal.verb else ""): modal for modal in frames.MODALS}
HAD_MORE_TIME = Clause(HE, frames.WISHING, "past", complement=Complement("more time", last="mehr Zeit"))


def says(pair: Pair, expected: str) -> None:
    """Assert that the sentence is `expected`: the English, a bar and the German."""
    assert " | ".join(pair) == expected


def test_the_verb_comes_second_whatever_stands_first():
    says(
        told(does(TEACHER, "read", np(A, "long letter"), tense="past", time=YESTERDAY)),
        "The old teacher read a long letter yesterday. | Der alte Lehrer las gestern einen langen Brief.",
    )
    says(
        told(does(TEACHER, "read", np(THE, "long letter"), tense="past", time=YESTERDAY), "time"),
        "Yesterday, the old teacher read the long letter. | Gestern las der alte Lehrer den langen Brief.",
    )
    now = Pair("now", "jetzt")
    says(
        told(does(SHE, "remember", prepositional(HE, "an", ACCUSATIVE), time=now, progressive=True), "time"),
        "Now, she is remembering him. | Jetzt erinnert sie sich an ihn.",
    )
    trip, in_rome = prepositional(np(THE, "trip"), "auf", ACCUSATIVE), Pair("in Rome", "in Rom")
    says(
        told(does(CHILD, "look forward to", trip, place=in_rome), "place"),
        "In Rome, the child looks forward to the trip. | In Rom freut sich das Kind auf die Reise.",
    )
    says(
        told(does(CHILD, "help", Complement("me", pronoun="mir"), tense="past", time=YESTERDAY), "time"),
        "Yesterday, the child helped me. | Gestern half mir das Kind.",
    )


def test_separable_verbs_split_in_main_clauses_only():
    says(told(does(ANNA, "call", np(HER, "sister"))), "Anna calls her sister. | Anna ruft ihre Schwester an.")
    says(
        told(does(ANNA, "call", np(HER, "sister"), tense="perfect")),
        "Anna has called her sister. | Anna hat ihre Schwester angerufen.",
    )
    says(
        with_clause(Pair("we wait", "wir warten"), subordinate(WEIL, does(ANNA, "call", np(HER, "brother")))),
        "We wait because Anna calls her brother. | Wir warten, weil Anna ihren Bruder anruft.",
    )
    says(infinitive(does(HE, "turn off", np(THE, "radio"))), "to turn off the radio | das Radio auszuschalten")
    says(gerund(does(HE, "rest")), "resting | sich auszuruhen")
    says(told(does(HE, "turn on", it("f"), tense="past")), "He turned it on. | Er schaltete sie ein.")


def test_perfect_modal_verbs_future_and_passive():
    says(
        told(does(np(OUR, "neighbour"), "fly", TO_BERLIN, tense="perfect")),
        "Our neighbour has flown to Berlin. | Unser Nachbar ist nach Berlin geflogen.",
    )
    says(
        told(does(personal("I"), "repair", np(MY, "bicycle"), modal=MODAL["have"])),
        "I have to repair my bicycle. | Ich muss mein Fahrrad reparieren.",
    )
    says(
        told(does(HE, "open", np(THE, "window"), modal=MODAL["must"], negated=True)),
        "He must not open the window. | Er darf das Fenster nicht öffnen.",
    )
    says(
        told(does(HE, "open", np(THE, "window"), modal=MODAL["have"], negated=True)),
        "He does not have to open the window. | Er muss das Fenster nicht öffnen.",
    )
    says(told(does(THEY, "sleep", modal=MODAL["want"])), "They want to sleep. | Sie wollen schlafen.")
    says(
        told(does(np(THE, "plan"), "reject", modal=frames.WILL, passive=True)),
        "The plan will be rejected. | Der Plan wird abgelehnt werden.",
    )
    says(
        told(does(np(THE, "house", plural=True), "build", tense="perfect", passive=True)),
        "The houses have been built. | Die Häuser sind gebaut worden.",
    )
    says(
        told(does(np(THIS, "letter"), "write", passive=True, progressive=True)),
        "This letter is being written. | Dieser Brief wird geschrieben.",
    )


def test_negation_by_nicht_and_kein():
    says(told(does(SHE, "have", np(NO, "car"), negated=True)), "She does not have a car. | Sie hat kein Auto.")
    says(
        told(does(WE, "drink", np(NOT_ANY, "coffee"), negated=True)),
        "We do not drink any coffee. | Wir trinken keinen Kaffee.",
    )
    says(
        told(does(HE, "wait for", prepositional(np(THE, "bus"), "auf", ACCUSATIVE), negated=True)),
        "He does not wait for the bus. | Er wartet nicht auf den Bus.",
    )
    says(
        told(does(SHE, "read", np(MY, "novel"), negated=True, tense="perfect")),
        "She has not read my novel. | Sie hat meinen Roman nicht gelesen.",
    )
    says(told(does(SHE, "dance", negated=True, modal=MODAL["can"])), "She cannot dance. | Sie kann nicht tanzen.")


def test_two_objects_and_pronouns():
    says(told(gives(np(A, "book"), CHILD, backwards=False)), "He gave the child a book. | Er gab dem Kind ein Buch.")
    says(told(gives(it("m"), SHE, backwards=True)), "He gave it to her. | Er gab ihn ihr.")


def test_locations_take_the_dative_and_directions_the_accusative():
    on_table = np(THE, "table").after("on", "auf", ACCUSATIVE)
    moved = Complement(f"the key {on_table.english}", definite="den Schlüssel", last=on_table.german)
    says(
        told(does(HE, "put", moved)),
        "He puts the key on the table. | Er legt den Schlüssel auf den Tisch.",
    )
    says(
        told(does(np(THE, "key"), "lie", prepositional(np(THE, "table"), "auf", DATIVE, "on"))),
        "The key lies on the table. | Der Schlüssel liegt auf dem Tisch.",
    )
    says(
        told(does(THEY, "go", prepositional(np(THE, "small garden"), "in", ACCUSATIVE, "into"), tense="past")),
        "They went into the small garden. | Sie gingen in den kleinen Garten.",
    )
    says(
        told(does(THEY, "go", prepositional(np(THE, "station"), "zu", DATIVE, "to"), tense="perfect")),
        "They have gone to the station. | Sie sind zum Bahnhof gegangen.",
    )


def test_subordinate_clauses_are_verb_final():
    says(
        finished(subordinate(DASS, replace(READING, tense="perfect")), ""),
        "That she has read the book | Dass sie das Buch gelesen hat",
    )
    says(
        finished(subordinate(WEIL, replace(READING, modal=MODAL["can"])), ""),
        "Because she can read the book | Weil sie das Buch lesen kann",
    )
    says(
        beginning(AFTER, does(SHE, "get up", tense="pluperfect"), does(np(THE, "train"), "depart", tense="past")),
        "After she had got up, the train departed. | Nachdem sie aufgestanden war, fuhr der Zug ab.",
    )
    says(
        beginning(Pair("if", "wenn"), HAD_MORE_TIME, does(HE, "travel", TO_BERLIN, modal=frames.WOULD)),
        "If he had more time, he would travel to Berlin. | Wenn er mehr Zeit hätte, würde er nach Berlin reisen.",
    )


def test_questions_and_requests():
    says(finished(question(READING), "?"), "Did she read the book? | Hat sie das Buch gelesen?")
    says(
        finished(question(does(YOU, "call", TEACHER), Pair("why", "warum")), "?"),
        "Why do you call the old teacher? | Warum rufen Sie den alten Lehrer an?",
    )
    says(
        finished(subject_question(does(WHO, "find", np(THE, "bag", plural=True), tense="past")), "?"),
        "Who found the bags? | Wer hat die Taschen gefunden?",
    )
    says(
        finished(request(does(YOU, "close", np(THE, "door"), negated=True)), "!"),
        "Please do not close the door! | Bitte schließen Sie die Tür nicht!",
    )


def test_no_english_verb_is_ambiguous_between_present_and_past():
    says(told(does(THEY, "read", np(A, "poem"))), "They are reading a poem. | Sie lesen ein Gedicht.")


def test_a_second_predicate_shares_the_subject():
    both = predicate(does(ANNA, "take off", np(THE, "coat"), tense="past"))
    assert both == ("took off the coat", "zog den Mantel aus")


# The German adjective endings after der, after ein and without an article, by gender or plural and by case.
ENDINGS = """
weak    m e en en en    weak    f e e en en    weak    n e e en en    weak    p en en en en
mixed   m er en en en   mixed   f e e en en    mixed   n es es en en  mixed   p en en en en
strong  m er en em en   strong  f e e er er    strong  n es es em en  strong  p e e en er
"""


def test_adjective_endings():
    rows = re.findall(r"(\w+) +([mfnp]) (\w+) (\w+) (\w+) (\w+)", ENDINGS)
    assert len(rows) == 12
    for declension, gender, *endings in rows:
        forms = [adjective_form(adjective("old"), declension, gender, case) for case in range(4)]
        assert forms == ["alt" + ending for ending in endings], (declension, gender)


@pytest.mark.parametrize(
    "phrase, forms",
    [
        (np(THE, "young boy"), ["der junge Junge", "den jungen Jungen", "dem jungen Jungen", "des jungen Jungen"]),
        (np(A, "dark house"), ["ein dunkles Haus", "ein dunkles Haus", "einem dunklen Haus", "eines dunklen Hauses"]),
        (np(OUR, "expensive lamp"), ["unsere teure Lampe"] * 2 + ["unserer teuren Lampe"] * 2),
        (np(THESE, "castle", True), ["diese Schlösser"] * 2 + ["diesen Schlössern", "dieser Schlösser"]),
        (np(MANY, "red car", True), ["viele rote Autos"] * 2 + ["vielen roten Autos", "vieler roter Autos"]),
        (np(ALL, "old man", True), ["alle alten Männer"] * 2 + ["allen alten Männern", "aller alten Männer"]),
        (np(BARE, "cold milk"), ["kalte Milch", "kalte Milch", "kalter Milch", "kalter Milch"]),
        (np(EVERY, "girl"), ["jedes Mädchen", "jedes Mädchen", "jedem Mädchen", "jedes Mädchens"]),
        (np(NO, "student"), ["kein Student", "keinen Studenten", "keinem Studenten", "keines Studenten"]),
        (np(THE, "high price"), ["der hohe Preis", "den hohen Preis", "dem hohen Preis", "des hohen Preises"]),
        (np(THE, "CO2_report"), ["der CO2-Bericht", "den CO2-Bericht", "dem CO2-Bericht", "des CO2-Berichts"]),
        (np(THE, "Berlin-Hamburg_line"), ["die Berlin-Hamburg-Linie"] * 2 + ["der Berlin-Hamburg-Linie"] * 2),
        (np(A, "music_school"), ["eine Musikschule"] * 2 + ["einer Musikschule"] * 2),
    ],
    ids=lambda value: value.english if isinstance(value, Nominal) else "",
)  # fmt: skip
def test_noun_phrases_agree(phrase, forms):
    assert list(phrase.german) == forms


@pytest.mark.parametrize(
    "entry, forms",
    [
        ("arbeiten", "ich arbeite, er arbeitet, sie arbeiten, ich arbeitete, sie arbeiteten, gearbeitet"),
        ("ändern", "ich ändere, er ändert, sie ändern, ich änderte, sie änderten, geändert"),
        ("öffnen", "ich öffne, er öffnet, sie öffnen, ich öffnete, sie öffneten, geöffnet"),
        ("besuchen", "ich besuche, er besucht, sie besuchen, ich besuchte, sie besuchten, besucht"),
        ("reparieren", "ich repariere, er repariert, sie reparieren, ich reparierte, sie reparierten, repariert"),
        ("ein|schalten", "ich schalte, er schaltet, sie schalten, ich schaltete, sie schalteten, eingeschaltet"),
        ("lesen, liest, las, gelesen", "ich lese, er liest, sie lesen, ich las, sie lasen, gelesen"),
        ("können, kann, konnte, gekonnt", "ich kann, er kann, sie können, ich konnte, sie konnten, gekonnt"),
    ],
)
def test_verbs_are_conjugated(entry, forms):
    made = german_verb(entry)
    words = [*made.present, made.past[0], made.past[2], made.participle]
    subjects = ["ich", "er", "sie", "ich", "sie", ""]
    assert ", ".join(f"{subject} {word}".strip() for subject, word in zip(subjects, words)) == forms


def test_english_forms():
    assert [with_s(word) for word in ("go", "carry", "play", "radio")] == ["goes", "carries", "plays", "radios"]
    assert [with_an(word) for word in ("old man", "UN expert", "EU law")] == ["an old man", "a UN expert", "an EU law"]


def test_prepositions_contract_with_the_article_alone():
    garden = np(THE, "garden")
    assert garden.after("in", "in", DATIVE).german == "im Garten"
    assert garden.after("into", "in", ACCUSATIVE).german == "in den Garten"
    assert np(THIS, "garden").after("in", "in", DATIVE).german == "in diesem Garten"
    assert np(THE, "house").after("because of", "wegen", GENITIVE).german == "wegen des Hauses"


def test_relative_pronouns_agree():
    """Exactly the relative pronouns of the noun's gender and number occur. Their case in the clause is not tested."""
    allowed = {"m": "der den dem dessen", "f": "die der deren", "n": "das dem dessen", "p": "die denen deren"}
    dice, seen = Dice(1), {key: set() for key in allowed}
    for _ in range(1500):
        some, plural = noun(dice.choose(["man", "woman", "girl", "house", "library", "tower"])), dice.chance(0.3)
        english, german = relative_clause(dice, some, plural)
        pronoun = re.match(r", (?:in )?(\w+) ", german)[1]
        seen["p" if plural else some.gender].add(pronoun)
        assert german.endswith(",") and english.split()[0] in {"who", "whom", "whose", "that", "in"}
    assert seen == {key: set(words.split()) for key, words in allowed.items()} | {"f": {"die", "der", "deren"}}


def finite_forms(separated: bool) -> set[str]:
    """All finite verb forms. Separable verbs have their prefix unless `separated`."""
    verbs = [some.german for some in [*VERBS, *frames.WEATHER]]
    verbs += [made for made in vars(frames).values() if isinstance(made, frames.GermanVerb)]
    return {("" if separated else v.prefix) + form for v in verbs for form in (*v.present, *v.past)}


@pytest.fixture(scope="module")
def corpus() -> list[tuple[str, str, str]]:
    return list(generate(GeneratorConfig(seed=3, train=5000, dev=100, test=200)))


def test_subordinate_clauses_end_with_their_verb(corpus):
    forms, seen = finite_forms(separated=False), 0
    for _, _, german in corpus:
        if clause := re.search(r", (?:dass|weil|obwohl|wenn|als|nachdem|bevor|ob|damit) ([^,„“]+)\.$", german):
            seen += 1
            assert clause[1].split()[-1] in forms, german
    assert seen > 500


def test_the_verb_is_second(corpus):
    """The verb follows a one-word adverb or a clause, and begins a question."""
    forms, seen = finite_forms(separated=True), {"adverb": 0, "clause": 0, "question": 0}
    starts = {
        "adverb": r"^(?:Gestern|Vorgestern|Heute|Jetzt|Übermorgen|Bald) (?!Abend)(\w+)",
        "clause": r"^(?:Weil|Obwohl|Wenn|Als|Nachdem|Bevor|Damit) [^,]+, (?!de|die |das |in )(\w+)",
        "question": r"^(?:Warum |Wann |Wo )?(\w+)[^„“:,]*\?$",
    }
    for _, _, german in corpus:
        for kind, start in starts.items():
            found = re.match(start, german)
            if found and not re.match("Wer |Was |Welche", german):
                seen[kind] += 1
                assert found[1][0].lower() + found[1][1:] in forms, german
    assert min(seen.values()) > 50, seen


def test_prepositions_govern_their_case(corpus):
    """No dative follows für and no accusative follows mit. (After a comma, um and ohne are conjunctions.)"""
    text = "\n".join(german for _, _, german in corpus)
    assert len(re.findall(r"\b(?:für|ohne|um) den\b|\b(?:mit|aus|von) dem\b", text)) > 20
    assert not re.findall(r"(?<!,) (?:für|ohne|um) (?:dem|der|einem|\w+em)\b", text)
    assert not re.findall(r"\b(?:mit|aus|von|seit|zu) (?:das|die|einen|eine|diese|dieses|jeden|jedes)\b", text)


def test_lines_are_clean_text(corpus):
    for _, english, german in corpus:
        for text in (english, german):
            assert text and text == text.strip() and not re.search(r"[\n\r\t]|  | [.,?!]|,,|\.\.|,[.?!“]", text), text
            assert re.search(r"[.?!][\"“]?$", text) and re.match(r"[\"„]?[A-ZÄÖÜ0-9]", text), text
            assert 4 <= len(text.split()) <= 28
        assert english.isascii() and english.count('"') in (0, 2)
        assert '"' not in german and (german.count("„"), german.count("“")) == (english.count('"') // 2,) * 2
    mean = sum(len(english.split()) for _, english, _ in corpus) / len(corpus)
    assert 10 < mean < 13


def test_numbers_have_the_german_format(corpus):
    """1,250 becomes 1.250, 3.5 becomes 3,5 and 3:45 p.m. becomes 15.45 Uhr. No number is lost."""
    seen = 0
    for _, english, german in corpus:
        for hour, minutes, half in re.findall(r"(\d+):(\d\d) ([ap])\.m\.", english):
            assert f"{int(hour) + 12 * (half == 'p')}.{minutes} Uhr" in german
        for number in re.findall(r"\b\d+[.,]\d+\b", english):
            seen += 1
            assert number.translate(str.maketrans(".,", ",.")) in german, (english, german)
        for number in re.findall(r"(?<![\d.,:])\d{2,}(?![\d.,:])", english):
            assert re.search(rf"\b{number}\b", german), (english, german)
    assert seen > 100


def test_equal_english_sentences_have_equal_translations(monkeypatch):
    """With a small vocabulary the same English sentence occurs often, always with the same German one."""
    for kind, nouns in lexicon.NOUNS.items():
        monkeypatch.setitem(lexicon.NOUNS, kind, nouns[:1] + [some for some in nouns if some.english == "exhibition"])
    for kind, adjectives in lexicon.ADJECTIVES.items():
        monkeypatch.setitem(lexicon.ADJECTIVES, kind, adjectives[:2])
    for times in lexicon.TIMES:
        monkeypatch.setitem(lexicon.TIMES, times, lexicon.TIMES[times][:1])
    for few in [
        "MEN",
        "WOMEN",
        "SURNAMES",
        "TOWNS",
        "COUNTRIES",
        "DAYS",
        "MONTHS",
        "COUNTS",
        "OFTEN",
        "ALREADY",
        "MANNERS",
        "NUMBERS",
        "QUANTITIES",
    ]:
        monkeypatch.setattr(lexicon, few, getattr(lexicon, few)[:1])
    monkeypatch.setattr(lexicon, "POSSESSIVES", [HER, HER, THEIR, YOUR])
    monkeypatch.setattr(lexicon, "COMPOUNDS", {"link": lexicon.COMPOUNDS["link"][:1]})
    dice, known, again = Dice(5), {}, 0
    for _ in range(12000):
        english, german = sentence(dice)
        again += english in known
        assert known.setdefault(english, german) == german
    assert again > 100


def test_words_have_one_translation():
    nouns = [noun for nouns in lexicon.NOUNS.values() for noun in nouns]
    assert len({noun.english for noun in nouns}) == len({noun.german for noun in nouns}) == len(nouns) > 150
    translations = {}
    for kind, adjectives in lexicon.ADJECTIVES.items():
        assert len({a.english for a in adjectives}) == len(adjectives), kind
        for some in adjectives:
            translations.setdefault(some.english, set()).add(some.german)
    assert {word for word, german in translations.items() if len(german) > 1} == {
        "heavy"
    }  # stark for rain, schwer for a box
    assert len(translations) > 60
    assert len({f"{v.english.base} {v.english.tail}" for v in VERBS}) > 90


def test_counts_and_disjoint_sets():
    rows = list(generate(SMALL))
    assert [name for name, _, _ in rows] == ["test"] * 50 + ["dev"] * 20 + ["train"] * 300
    assert len({english for _, english, _ in rows}) == len({(english, german) for _, english, german in rows}) == 370


def test_more_training_data_leaves_dev_and_test_alone():
    few, many = (list(generate(replace(SMALL, train=train))) for train in (10, 300))
    assert many[: len(few)] == few
    assert next(generate(replace(SMALL, seed=2))) != few[0]


def test_the_same_bytes_for_a_seed():
    text = "".join(f"{name}\t{english}\t{german}\n" for name, english, german in generate(SMALL))
    assert hashlib.sha256(text.encode()).hexdigest() == "dbc76bd37a8c41486bdf9cfc3df9c7dc91642b5de0768a9e9bc76d7de0c01179"


def test_the_order_of_the_languages_does_not_change_the_files(tmp_path):
    for languages in (("en", "de"), ("de", "en")):
        folder = tmp_path / languages[0]
        folder.mkdir()
        assert make(SMALL, languages, folder) == {"test": 50, "dev": 20, "train": 300}
    pairs = [(english, german) for name, english, german in generate(SMALL) if name == "dev"]
    for languages in ("en", "de"):
        read_back = [(tmp_path / languages / f"dev.{language}").read_text().splitlines() for language in ("en", "de")]
        assert list(zip(*read_back)) == pairs


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"train": 0}, "train: 0 is not possible"),
        ({"seed": -1}, "seed: -1 is not possible"),
        ({"dev": 1.5}, "dev: 1.5 is of the wrong type"),
        ({"trian": 5}, "did you mean 'train'"),
    ],
)
def test_wrong_settings_are_refused(wrong, message):
    with pytest.raises(UserError, match=re.escape(message)):
        read(GeneratorConfig, {"seed": 1, "train": 5, "dev": 5, "test": 5} | wrong, "generate")
