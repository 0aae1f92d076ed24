import json
import random
import unicodedata
from argparse import Namespace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline import normalise
from pipeline.settings.normalise import NormaliseConfig
from pipeline.text.evaluation import EvaluationSet
from pipeline.text.normalising import Filter
from tests.support.packed import snapshot
from tests.support.refusals import refused
from transformer.cleaning import cleaner

SETS = {"train": "raw", "dev": "raw", "test": "test", "test_filtered": "test"}  # the folder of each set
PAIRS = [("A house.", "Ein Haus."), ("Two houses.", "Zwei Häuser.")]
SETTINGS = {"nfc": True, "punctuation": False, "entities": True, "invalid_utf8": "refuse", "max_words": 0}
SETTINGS |= {"max_ratio": 0.0, "deduplicate": False, "decontaminate": False}


def clean(text: str, **options) -> str:
    return cleaner(**({"entities": True, "nfc": True, "punctuation": False, "language": "en"} | options))(text)


def content(value) -> bytes:
    return value if isinstance(value, bytes) else "".join(f"{line}\n" for line in value).encode()


@pytest.fixture
def corpus(here):
    """A function that normalises the given sets and returns the report and the lines. All calls use the same folder."""

    def run(settings=None, **sets) -> tuple[dict, dict[str, list[str]]]:
        for name, (source, target) in ({key: zip(*PAIRS) for key in ("train", "dev", "test")} | sets).items():
            for language, lines in (("en", source), ("de", target)):
                (here / SETS[name] / f"{name}.{language}").write_bytes(content(lines))
        base, own = {"normalise": SETTINGS}, {"languages": ["en", "de"], "normalise": settings or {}}
        (here / "params.yaml").write_text(json.dumps({"base": base, "corpora": {"c": own}}))
        paths = {name: Path(name) for name in ("raw", "test", "out", "sets")}
        normalise.main(Namespace(corpus="c", text=Path("text.json"), report=Path("report.json"), **paths))
        texts = {path.name: path.read_bytes().decode() for path in Path("out").iterdir()}
        for path in Path("sets/c-test").glob("[nf]*.*"):
            name = path.name.replace("normalised", "test").replace("filtered", "test_filtered")
            texts[name] = path.read_bytes().decode()
        assert all(text.endswith("\n") for text in texts.values())
        return json.loads(Path("report.json").read_text())["sets"], {k: v[:-1].split("\n") for k, v in texts.items()}

    (here / "raw").mkdir()
    (here / "test").mkdir()
    return run


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("  two   spaces and a tab\there ", "two spaces and a tab here"),
        ("a\u00a0b\u2009c\u3000d\u202fe", "a b c d e"),
        ("a\rb\u2028c\u2029d\x85e\x0bf\x0cg\r", "a b c d e f g"),
        ("nul\x00 bell\x07 escape\x1b delete\x7f c1\x9f", "nul bell escape delete c1"),
        ("\ufeffmark, co\u00adoperate, zero\u200bwidth", "mark, cooperate, zerowidth"),
        ("e\u0301 \u212b e\u00ad\u0301", "é Å é"),
        ("&quot;&eacute;&#233;&#xe9;&quot; &lt;b&gt; &nbsp; x", '"ééé" <b> x'),
        ("&amp;quot; once", "&quot; once"),
        ("R&D; AT&T &copy &unknown; &notit; &#; &;", "R&D; AT&T &copy &unknown; &notit; &#; &;"),
        ("a&#10;b&NewLine;c&#13;d", "a b c d"),
        ("שלום, עולם \u200f(العربية)", "שלום, עולם \u200f(العربية)"),
        ("👩\u200d👩\u200d👧 🇩🇪 می\u200cخواهم", "👩\u200d👩\u200d👧 🇩🇪 می\u200cخواهم"),
        ("1 234 567,89", "1 234 567,89"),
        (" \t\u00a0\u200b", ""),
    ],
)
def test_a_line_is_cleaned(line, expected):
    assert clean(f"{line}\n") == f"{expected}\n"
    assert clean("&quot; e\u0301 “x”\n", entities=False, nfc=False) == "&quot; e\u0301 “x”\n", "without its rules"


def test_no_rule_of_punctuation_matches_across_a_line_feed():
    """test_languages.py has the output of Moses' script for each language."""
    line, other = "„Nein“, sagte er, „das geht nicht.“ Er ging.\n", "He said “no.”\n"
    blocks = [clean(text, punctuation=True, language="de") for text in (other + line + other, other, line)]
    assert blocks[0] == blocks[1] + blocks[2] + blocks[1] != other + line + other


SPECIAL = "ae\u0301\u00e9 \t\r\x00\x85\u00a0\u2028\u200b\u00ad\u3000\ufeff&;quot.\n\U0001f600"
AWKWARD = st.text(st.sampled_from(SPECIAL) | st.characters(exclude_categories=["Cs"]))


def plainly(line: str) -> str:
    """A reference implementation of cleaning a line. It uses the Unicode database instead of our tables."""
    kept = [c for c in line if (c.isspace() and c not in "\x1c\x1d\x1e\x1f") or unicodedata.category(c) != "Cc"]
    text = "".join(c for c in kept if c not in "\u00ad\u200b\ufeff")
    return " ".join(unicodedata.normalize("NFC", text).split())


@given(AWKWARD)
def test_cleaning_agrees_with_the_unicode_database_line_by_line(text):
    lines = text.split("\n")
    assert clean(f"{text}\n", entities=False).split("\n") == [*map(plainly, lines), ""]


@given(AWKWARD, AWKWARD)
def test_cleaning_blocks_equals_cleaning_lines_and_is_idempotent(first, second):
    first, second = f"{first}\n", f"{second}\n"
    assert clean(first + second) == clean(first) + clean(second)
    assert clean(first).count("\n") == first.count("\n")
    assert clean(clean(first), entities=False) == clean(first)


def test_training_pairs_with_a_sentence_of_dev_or_test_are_counted_and_dropped_on_request(corpus, capsys):
    """A pair counts once, if either side equals one of them after cleaning. An empty line is no sentence."""
    train = [("a", "b"), ("A  house.", "x"), ("y", "Zwei Häuser."), ("A house.", "Ein Haus."), ("new", "neu"), ("c", "neu")]
    train += [("A & B", "d")]  # in dev with a character reference, which cleaning replaces
    sets = {"train": zip(*train), "test": zip(("new", "neues"), ("", "")), "dev": zip(*PAIRS, ("A &amp; B", "C"))}
    report, texts = corpus(**sets)
    assert report["train"]["in_evaluation"] == 5 and len(texts["train.en"]) == 7
    assert "c: 5 training pairs with a sentence of dev or test are kept; " in capsys.readouterr().err
    sets |= {"train": zip(*train), "test": zip(("new", "neues"), ("", "")), "dev": zip(*PAIRS, ("A &amp; B", "C"))}
    report, texts = corpus({"decontaminate": True}, **sets)
    assert (texts["train.en"], texts["train.de"]) == (["a", "c"], ["b", "neu"])
    assert report["train"]["dropped"]["decontaminate"] == 5
    assert "5 training pairs with a sentence of dev or test were dropped" in capsys.readouterr().err
    corpus(train=zip(*[("a", "b")]), test=zip(*PAIRS), dev=zip(*PAIRS))
    assert capsys.readouterr().err == ""


def test_training_pairs_are_dropped_by_each_limit_and_counted(corpus):
    train = [
        ("kept", "behalten"), ("", "leer"), ("empty", " \u200b"), ("kept", "behalten"), ("1 2 3 4", "1 2 3 4 5"),
        ("1", "1 2 3"), ("1 2", "1 2 3 4"), ("kept", "anders"), ("1 2 3", "1"), ("kept ", "behalten"),
    ]  # fmt: skip
    report, texts = corpus({"max_words": 4, "max_ratio": 2.0, "deduplicate": True}, train=zip(*train))
    assert list(zip(texts["train.en"], texts["train.de"])) == [train[0], train[6], train[7]]
    assert report["train"]["dropped"] == {"empty": 2, "max_words": 1, "max_ratio": 2, "deduplicate": 2}
    assert (report["train"]["read"], report["train"]["kept"]) == (10, 3)
    assert report["train"]["changed"] == {"en": 1, "de": 1}


def test_no_line_of_another_set_is_dropped(corpus):
    held_out = (["", "the same", "the same", "a b c d"], ["leer", "", "", "1"])
    limits = {"max_words": 2, "max_ratio": 1.5, "deduplicate": True}
    report, texts = corpus(limits, dev=held_out, test=held_out, test_filtered=held_out)
    assert [texts["test_filtered.en"], texts["test_filtered.de"]] == list(held_out), "references, as they are"
    for name in ("dev", "test"):
        assert [texts[f"{name}.en"], texts[f"{name}.de"]] == list(held_out)
        assert report[name]["read"] == report[name]["kept"] == 4
        assert report[name]["empty"] == {"en": 1, "de": 2}
        assert "dropped" not in report[name]


def test_each_side_has_the_punctuation_of_its_language(corpus):
    """The two expected lines are the output of mosesdecoder's normalize-punctuation.perl."""
    line = "“Well”, she said — “it’s late”."
    _, texts = corpus({"punctuation": True, "entities": False}, train=([line], [line]))
    text = {"languages": ["en", "de"], "entities": False, "nfc": True, "punctuation": True}
    assert json.loads(Path("text.json").read_text()) == text, "for a translator"
    assert texts["train.en"] == ['"Well," she said - "it\'s late."']
    assert texts["train.de"] == ['"Well", she said - "it\'s late".']


SHORT = st.text("ab ", max_size=2)  # so that two pairs often have the same letters, divided otherwise


@given(st.lists(st.tuples(SHORT, SHORT), max_size=60))
def test_deduplication_agrees_with_the_pairs_themselves(pairs):
    select = Filter(NormaliseConfig(**SETTINGS))
    assert [pair for pair in pairs if select.is_new(*pair)] == list(dict.fromkeys(pairs))


def test_blocks_of_any_size_give_the_same_bytes(corpus, monkeypatch):
    words = ["Häuser", "日本語", "\U0001f600", "a\u2028b", "e\u0301", "", "&quot;x", "plain ascii"]
    draw = random.Random(1).choices
    lines = [[" ".join(draw(words, k=3)) for _ in range(300)] for _ in "st"]
    expected = corpus({"deduplicate": True}, train=lines)
    for size in (2, 7, 64):
        monkeypatch.setattr("pipeline.text.sets.BLOCK", size)
        assert corpus({"deduplicate": True}, train=lines) == expected


REFUSED = {
    "raw/dev.en has fewer lines than raw/dev.de": {"dev": (["line"] * 2, ["Zeile"] * 3)},
    "raw/dev.de has fewer lines than raw/dev.en": {"dev": (["line"] * 700, ["Zeile"] * 2)},
    "raw/train.en has fewer lines than raw/train.de": {"train": ([], ["Zeile"])},
    "raw/train.en and raw/train.de: no line is left": {"train": (["", "x"], ["x", ""])},
    "raw/dev.de: line 3, byte 4 (0xe4) is not UTF-8; ": {"dev": (["1", "2", "3"], "é\nü\n".encode() + b"auf\xe4h\n")},
}


@pytest.mark.parametrize("size", [2, 64, 1 << 20])
@pytest.mark.parametrize("said", REFUSED)
def test_sets_that_cannot_be_are_refused_and_the_last_output_stays(corpus, monkeypatch, said, size):
    corpus()
    before = snapshot(Path("out"))
    monkeypatch.setattr("pipeline.text.sets.BLOCK", size)
    with refused(said):
        corpus(**REFUSED[said])
    assert snapshot(Path("out")) == before


def test_bytes_that_are_not_utf8_are_replaced_on_request(corpus):
    broken = b"H\xe4user\ngood\ncut \xe2\x82\n\xff\xfe\n"  # the line feed after a truncated sequence is kept
    report, texts = corpus({"invalid_utf8": "replace"}, train=(broken, ["1", "2", "3", "4"]))
    assert texts["train.en"] == ["H\ufffduser", "good", "cut \ufffd", "\ufffd\ufffd"]
    assert report["train"]["invalid"] == {"en": 3, "de": 0}


@pytest.mark.parametrize("form", ["raw", "filtered"])
def test_damaged_references_are_replaced_or_refused_before_a_training_needs_them(corpus, form):
    sides = (["A house.", "Two houses."], b"Ein Haus.\nZwei H\xe4user.\n")
    sets = {"dev": sides, "test": sides} if form == "raw" else {"test_filtered": sides}
    corpus({"invalid_utf8": "replace"}, **sets)
    for part in ("test", "dev")[: len(sets)]:
        assert EvaluationSet.open(Path(f"sets/c-{part}")).lines(form)[1] == ["Ein Haus.", "Zwei H\ufffduser."]
    with refused(f"{next(iter(sets))}.de: line 2, byte 7 (0xe4) is not UTF-8"):
        corpus(**sets)
