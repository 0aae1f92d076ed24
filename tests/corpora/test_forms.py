"""The forms of parallel text: each is read, or refused by a line that names the file and what would be valid."""

import bz2
import codecs
import gzip
import io
import itertools
import json
import lzma
import re
import tarfile
from collections import Counter

import pyarrow
import pyarrow.parquet
import pytest

from pipeline.settings.download import Part
from pipeline.text.archives import Unpacked
from pipeline.text.collecting import collect
from pipeline.text.fetching import Fetcher
from pipeline.text.forms import pairs, read_text, text
from tests.support import refusals
from tests.support.packed import parquet, structs, zipped
from tests.support.projects import demonstration
from transformer.config.reading import read

CODES = ("en", "de")
ENGLISH = [f"The bridge, “number” {n}." for n in range(99)]
GERMAN = [f"Die Brücke ist größer als {n}." for n in range(99)]
CHINESE = [f"红的船在第{n}号桥附近。" for n in range(99)]
JAPANESE = [f"赤い船は{n}番の橋の近くにあります。" for n in range(99)]


def plain(lines):
    return "".join(f"{line}\n" for line in lines).encode()


def table(pairs):
    return "".join("\t".join(cells) + "\n" for cells in pairs).encode()


def objects(values):
    return "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values).encode()


def tmx(units, header=""):
    body = "".join(
        "<tu>" + "".join(f'<tuv xml:lang="{code}"><seg>{seg}</seg></tuv>' for code, seg in unit) + "</tu>\n"
        for unit in units
    )
    return f'<?xml version="1.0"?>{header}<tmx version="1.4"><header/><body>\n{body}</body></tmx>\n'.encode()


def twice():
    """A table with two columns of the same name."""
    column, file = pyarrow.array([{"de": "a", "en": "b"}]), io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table([column, column], ["translation"] * 2), file)
    return file.getvalue()


WHOLE = parquet({"text": ["a"]})
EXPECTED = "columns of strings for en and de are expected, not "


@pytest.fixture
def collected(here):
    """`collected(part, languages, **files)` writes the files into text/ and returns the lines of both sides of the part."""
    (here / "text").mkdir()

    def run(part, languages=CODES, **files):
        for name, data in files.items():
            (here / "text" / name.replace("_", ".")).write_bytes(data)
        parts = (read(Part, part, "params.yaml: corpora.x.download.train"),)
        run.counts = collect({"train": parts}, {}, languages, Fetcher(None), here)["train"]
        return [(here / f"train.{code}").read_bytes().decode().split("\n")[:-1] for code in languages]

    return run


@pytest.fixture
def refused(collected):
    """`refused(said, part, languages, **files)`: the part is refused by one line that contains each text of `said`."""

    def run(said, *arguments, **files):
        with refusals.refused(*said):
            collected(*arguments, **files)

    return run


PAIRED = {
    "tsv": table(zip(ENGLISH, GERMAN)),
    "tsv with names": table([("id", "de", "en"), *((str(n), *pair) for n, pair in enumerate(zip(GERMAN, ENGLISH)))]),
    "jsonl": objects({"translation": {"en": en, "de": de}} for en, de in zip(ENGLISH, GERMAN)),
    "jsonl, flat": objects({"id": 1, "en": en, "de": de} for en, de in zip(ENGLISH, GERMAN)),
    "jsonl, by side": objects({"source": en, "target": de} for en, de in zip(ENGLISH, GERMAN)),
    "tmx": tmx([("en", en), ("de", de)] for en, de in zip(ENGLISH, GERMAN)),
    "tmx, other order, region, doctype": tmx(
        ([("FR-fr", "x"), ("de-CH", de), ("EN_us", en)] for en, de in zip(ENGLISH, GERMAN)),
        '<!DOCTYPE tmx SYSTEM "tmx14.dtd">',
    ),
    "tmx, in a namespace": tmx([("en", en), ("de", de)] for en, de in zip(ENGLISH, GERMAN)).replace(
        b"<tmx ", b'<tmx xmlns="http://www.lisa.org/tmx14" '
    ),
    "zip": zipped(("README", b"?"), ("C.de-en.en", plain(ENGLISH)), ("C.de-en.de", plain(GERMAN))),
    "zip of macOS": zipped(
        ("__MACOSX/._C.en", b"\0\5\x16\7"), ("C.en", plain(ENGLISH)), ("C.de", plain(GERMAN)), ("._C.de", b"\0\5")
    ),
    "parquet": parquet({"translation": [{"de": de, "en": en} for en, de in zip(ENGLISH, GERMAN)]}),
    "parquet, flat": parquet({"id": list(range(99)), "de": GERMAN, "en": ENGLISH}),
}


@pytest.mark.parametrize("kind", PAIRED)
def test_one_file_with_both_sides(collected, kind):
    form = kind.partition(",")[0].split()[0]
    assert collected({form: f"text/my.{form}"}, **{f"my_{form}": PAIRED[kind]}) == [ENGLISH, GERMAN]
    if kind not in ("tsv", "jsonl, by side"):  # whose sides have no languages
        assert collected({form: [f"text/my.{form}"] * 2}, ("de", "en")) == [GERMAN * 2, ENGLISH * 2]
        for codes in ("ger", "eng_Latn"), ("de-CH", "en_US"):
            assert collected({form: f"text/my.{form}"}, codes) == [GERMAN, ENGLISH]
    if form not in ("zip", "parquet"):
        for pack in (gzip.compress, lzma.compress, bz2.compress):
            assert collected({form: "text/packed"}, packed=pack(PAIRED[kind])) == [ENGLISH, GERMAN]


SCORED = [(f"{1 + at / 100}", english, german) for at, (english, german) in enumerate(zip(ENGLISH, GERMAN))]
PUBLISHED = {  # the rows, what own-text.md says of them, and which pairs remain
    "WikiMatrix, CCMatrix": (SCORED, {"columns": [2, 3], "score": 1, "least": 1.04}, 4),
    "Tatoeba": ([(str(at), en, str(-at), de) for at, (en, de) in enumerate(zip(ENGLISH, GERMAN))], {"columns": [2, 4]}, 0),
    "by name": ([("laser", "sl", "tl"), *SCORED], {"columns": ["sl", "tl"], "score": "laser", "least": 1.5}, 50),
    "by name, also the languages": ([("en", "x", "de"), *zip(GERMAN, "x" * 99, ENGLISH)], {"columns": ["de", "en"]}, 0),
}


@pytest.mark.parametrize("kind", PUBLISHED)
def test_a_table_is_read_by_the_columns_that_are_stated(collected, capsys, kind):
    rows, stated, start = PUBLISHED[kind]
    assert collected({"tsv": "text/my.gz", **stated}, my_gz=gzip.compress(table(rows))) == [ENGLISH[start:], GERMAN[start:]]
    assert (f"text/my.gz: {start} rows with a score below {stated.get('least')} are" in capsys.readouterr().err) == (
        start > 0
    )
    assert collected.counts.get("below", 0) == start


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ({"columns": [2, 4]}, "there is no column 4; its first row has 3"),
        ({"columns": ["laser", "tls"]}, "0 columns are named 'tls'; did you mean 'tl'?"),
        ({"columns": [2, 3], "score": 1, "least": 1}, "text/my: row 1, column 1: 'laser' is not a number"),
        ({"columns": [1, 2], "least": 1}, "columns: (1, 2) is not possible; tsv with columns, and score with least"),
        ({"columns": ["sl", "sl "]}, "0 columns are named 'sl '"),
        ({"columns": [2, 2]}, "columns: (2, 2) is not possible; different columns are expected for source"),
        ({"columns": [2, 1], "score": 1, "least": 0.5}, "columns: (2, 1) is not possible; different columns are expected"),
        ({"columns": [0, 2]}, "columns[0]: 0 is not possible; the number of a column, from 1, or its name"),
    ],
)
def test_columns_that_a_table_does_not_have_are_refused(refused, stated, said):
    refused([said], {"tsv": "text/my", **stated}, my=table([("laser", "sl", "tl"), *SCORED]))


CODED = {  # with a region, a script that stands for its region, and numbers that are no Indonesian
    ("pt-BR", "de"): {
        "tsv": table([("DE", "pt-BR"), ("b", "a")]),
        "jsonl": objects([{"pt-BR": "a", "de": "b", "translation": None}]),
        "tmx": tmx([[("PT_br", "a"), ("pt-PT", "x"), ("de", "b")]]),
        "parquet": parquet({"id": [1], "sentence_deu_Latn": ["b"], "sentence_por_BR": ["a"]}),
    },
    ("id", "zh-TW"): {
        "tsv": table([("id", "sentence_ind_Latn", "sentence_zho_Hant", "sentence_zho_Hans"), ("1", "a", "b", "x")]),
        "jsonl": objects([{"id": 1, "id_ID": "a", "zh-CHS": "x", "zh-CHT": "b"}]),
        "parquet": parquet({"id": [1], "ind_Latn": ["a"], "zh_rCN": ["x"], "zh-rTW": ["b"]}),
    },
}


@pytest.mark.parametrize("codes", CODED)
def test_a_language_may_have_a_region_or_a_script_and_a_number_is_no_indonesian(collected, codes):
    for form, data in CODED[codes].items():
        assert collected({form: "text/my"}, codes, my=data) == [["a"], ["b"]]


VARIED = {
    "tmx": tmx([[("pt", "autocarro"), ("pt-BR", "ônibus"), ("en", "bus")], [("en", "x"), ("en-GB", ""), ("pt-PT", "y")]]),
    "tsv": table([("en", "pt-BR", "pt", "en-GB"), ("bus", "ônibus", "autocarro", ""), ("x", "", "y", "")]),
    "jsonl": objects([{"pt-BR": "ônibus", "en": "bus", "pt": "autocarro"}, {"en_GB": "x", "por_PT": "y"}]),
}


@pytest.mark.parametrize("form", VARIED)
def test_of_several_variants_the_exact_code_counts_else_the_first_with_text_and_their_number_is_said(
    collected, capsys, form
):
    for pt in ("pt", "por_Latn"):
        assert collected({form: "text/my"}, ("eng", pt), my=VARIED[form]) == [["bus", "x"], ["autocarro", "y"]]
        [said] = [line for line in capsys.readouterr().err.split("\n") if "several" in line]
        assert said.startswith("text/my: 1 ") and "pt-BR" in said and collected.counts["variants"] == 1
    if form != "jsonl":  # in which every row must have both sides
        assert collected({form: "text/my"}, ("eng", "pt_BR"))[1][0] == "ônibus"


INCOMPLETE = {
    "tmx": tmx([[("en", "a"), ("de", "b")], [("en", "c"), ("de", " ")], [("en", "d"), ("fr", "e")]]),
    "jsonl": objects([{"en": "a", "de": "b"}, {"en": "c", "de": None}, {"de": "d", "en": None}]),
    "parquet": structs([{"de": "b", "en": "a"}, {"de": None, "en": "c"}, {"de": "d", "en": None}]),
}


@pytest.mark.parametrize("form", INCOMPLETE)
def test_a_unit_without_a_language_and_a_row_with_a_null_are_left_out_and_counted(collected, capsys, form):
    assert collected({form: "text/my"}, my=INCOMPLETE[form]) == [["a"], ["b"]]
    assert "text/my: 2 rows or units have no text for en or de" in capsys.readouterr().err
    assert collected.counts["incomplete"] == 2


def test_a_row_of_tabs_is_a_pair_of_empty_lines_which_normalise_counts(collected):
    assert collected({"tsv": "text/my"}, my=b"a\tb\n\t\n\nc\td\n") == [["a", "", "c"], ["b", "", "d"]]
    scored = {"columns": [2, 3], "score": 1, "least": 1}
    assert collected({"tsv": "text/my", **scored}, my=b"1\ta\tb\n\t\t\r\n0\tc\td\n") == [["a", ""], ["b", ""]]


def test_of_the_variants_of_a_language_that_in_its_usual_script_comes_first(collected):
    """The scripts are those of CLDR's likely subtags, and of the modifiers of locales, which KDE4 on OPUS has."""
    variants = {"zh": "zh_TW zh_CN", "zh-Hant": "zh_CN zh_TW", "sr": "sr@latin sr-Cyrl", "sr_Latn": "sr sr@Latn"}
    for code, names in variants.items():
        first, second = names.split()
        zip_file = zipped(("K.en", b"a\n"), (f"K.{first}", b"no\n"), (f"K.{second}", b"yes\n"))
        assert collected({"zip": "text/my.zip"}, ("en", code), my_zip=zip_file) == [["a"], ["yes"]]
        unit = [(first, "no"), ("en", "a"), (second, "yes")]
        assert collected({"tmx": "text/my.tmx"}, ("en", code), my_tmx=tmx([unit])) == [["a"], ["yes"]]


SEGMENTED = {
    "▁": ["▁The ▁cust omer ▁read .", "▁She ▁has ▁been ▁a ▁pi lot ."],
    "@@": ["The cust@@ omer read a re@@ port .", "She has been a pi@@ lot .", "She reads ."],
    "##": ["The cust ##omer read .", "She has been a pi ##lot ."],
    "￭": ["The customer read ￭.", "She has been a pilot ￭."],
    "</w>": ["The</w> cust omer</w> read</w>"],
    "AT": ["A 30 ##AT##-##AT## year contract .", "She reads ."],
    "@-@": ["A 30 @-@ year contract of 1 @,@ 000 pages ."],
    "|": ["The|DT customer|NN reads|VBZ .|."],
    "_": ["Hà_Nội là thủ_đô của Việt_Nam .", "She reads ."],
    "words": ["我们 在 北京 大学 学习 中文 已经 两 年 了 。", "私 は 東京 の 大学 で 学ん で い ます 。"],
    "": [
        "The ## of @@ twins",
        "#tag ##",
        "She@@home",
        "a | b",
        "yes|no",
        "set my_name",
        "好了 你走吧 我知道 真的吗 不是 没关系",
    ],
}


@pytest.mark.parametrize("mark", SEGMENTED)
def test_text_in_pieces_is_said(collected, capsys, mark):
    english = SEGMENTED[mark] * 50
    collected({"source": "text/a", "target": "text/b"}, a=plain(english), b=plain(GERMAN[:1] * len(english)))
    collected({"tsv": "text/c"}, c=table(zip(english, GERMAN[:1] * len(english))))
    assert collected.counts.get("segmented") == ([1] if mark else None)
    said = [line for line in capsys.readouterr().err.split("\n") if "pieces" in line]
    assert [line.partition(":")[0] for line in said] == ["text/a", "text/c"] * bool(mark)
    collected({"source": "text/a", "target": "text/b"}, a=plain([*ENGLISH, english[0]]), b=plain([*GERMAN, "x"]))
    assert "pieces" not in capsys.readouterr().err, "one line of a hundred"


@pytest.mark.parametrize(
    "first", [("English", "German"), ("en", "de"), ("src", "tgt"), ("source_text", "target_text"), ("", "")]
)
def test_a_first_row_of_names_is_said(collected, capsys, first):
    collected({"source": "text/a", "target": "text/b"}, a=plain([first[0], *ENGLISH]), b=plain([first[1], *GERMAN]))
    collected({"tsv": "text/c"}, ("fr", "de"), c=table([first or ("No", "Nein"), *zip(ENGLISH, GERMAN)]))
    assert capsys.readouterr().err.count("seems to name columns") == 2 * bool(first[0])
    assert collected.counts.get("named") == ([1] if first[0] else None)


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("a table with |||", b"a b ||| c\nd ||| e\n"),
        ("a table with |||", b"0 ||| a b ||| LM= -1 ||| -2\n0 ||| a ||| LM= -2 ||| -3\n"),
        ("a text with lines of mark-up", b"<url>http://a.org/1</url>\n<keywords>a, b</keywords>\nEins.\n"),
        ("a pointer of Git LFS", b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n"),
        ("a table with tabs", b"1\tA.\r\n2\tB.\r\n\r\n3\tC.\r\n"),
        ("a table with tabs", b"a\tb\n" * 20 + b'"c\nd"\te\n'),
        ("word alignments", b"0-0 1-2\n0-0\n"),
        ("a tar file", tarfile.TarInfo("my.de").tobuf()),
        ("an HTML page", b"<!DOCTYPE html><html>\n"),
        ("an XML file", b'<?xml version="1.0"?>\n<dataset>\n'),
        ("an XML file", b'<xliff version="1.2"><file/></xliff>\n'),
        ("an XML file; text without mark-up", b'<xliff version="1.2">\n <file original="a">\n'),
        ("subtitles", b"1\r\n00:00:01,000 --> 00:00:02,000\r\nText\r\n"),
        ("a catalogue of gettext", b'#: menu.c\nmsgctxt "menu"\nmsgid "One"\nmsgstr "Eins"\n'),
        ("a JSON file", b'[{"en": "a",\n'),
        ("a JSON file", b'[\n  "One.",\n  "Two."\n]\n'),
        ("not text", b"%PDF-1.7\n\xff\xff"),
        ("not text, or compressed in a way that is not read", b"\x28\xb5\x2f\xfd\0\0\0"),
        ("not text, or compressed in a way", gzip.compress(lzma.compress(b"a\n"), mtime=0)),  # as all processes collect it
        ("not text, or compressed in a way", gzip.compress(gzip.compress(b"a\n", mtime=0), mtime=0)),
    ],
)
def test_lines_of_another_form_are_named_also_after_a_byte_order_mark(refused, kind, data):
    for mark in (b"", codecs.BOM_UTF8) if data.isascii() and b"\0" not in data else (b"",):
        refused([f"text/b is {kind}"], {"source": "text/a", "target": "text/b"}, a=plain(ENGLISH), b=mark + data)


@pytest.mark.parametrize("form", ["tsv", "jsonl", "tmx", "parquet", "zip"])
def test_a_file_of_another_form_than_the_stated_one_is_named(refused, form):
    other = {"not text, or compressed in a way": b"\x28\xb5\x2f\xfd\x20\x02a\n"}
    other |= {} if form == "zip" else {"a zip file": zipped(("a.en", b"a\n"))}
    other |= {"a pointer of Git LFS": b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n"}
    for kind, data in other.items():
        refused([f"text/my is {kind}"], {form: "text/my"}, my=data)
    members = zipped(("a.en", table(zip(ENGLISH, GERMAN))), ("a.de", plain(GERMAN)))
    refused(["text/my.zip: a.en is a table", "{tsv: FILE}", "unpacked"], {"zip": "text/my.zip"}, my_zip=members)


@pytest.mark.parametrize(
    "lines",
    [
        *([first, *ENGLISH[1:]] for first in ("Rar!", "Lzip packs files.", "%PDF is a comment.")),
        ["One\ttab", *["Another\ttab"] * 5, "none", "none"],
        ["Das Zeichen \x1b$B steht hier: ä ö ü."],
        ["An \x1b$B escape", "x"],
        ["ab\0c"],
    ],
)
def test_a_text_may_begin_with_the_name_of_a_form_and_hold_an_escape_sequence_or_a_nul(collected, lines):
    part = {"source": "text/a", "target": "text/b"}
    assert collected(part, a=plain(lines), b=plain(GERMAN[: len(lines)]))[0] == lines


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress, bz2.compress])
def test_a_text_for_a_command_is_read_in_every_form(tmp_path, encoding, pack):
    lines = ["Größe", "", "\x85 zwei"]
    path = tmp_path / "text"
    path.write_bytes(pack("\n".join(lines).encode(encoding)))
    assert read_text(path, encoding if encoding == "latin-1" else None) == lines
    path.write_bytes("".join(f"<seg>{line}</seg>" for line in ("a", "b")).encode())
    assert read_text(path) == ["a", "b"]
    path.write_bytes("Größe\n".encode("latin-1"))
    with refusals.refused(str(path), "is not UTF-8"):
        read_text(path)


@pytest.mark.parametrize("kind", PAIRED)
def test_one_file_as_both_sides_is_refused_by_the_form_that_is_meant(refused, kind):
    form = kind.partition(",")[0].split()[0]
    name, data = f"text/my.{form}", PAIRED[kind]
    refused([f"{{{form}: {name}}}"], {"source": name, "target": name}, **{f"my_{form}": data})
    said = [name.removesuffix(form), f"{{{form}: text/my." if form != "tmx" else "{tmx: "]
    refused(said, {"source": name, "target": "text/other"}, **{f"my_{form}": data, "other": data})
    refused(said, {"source": name, "target": "text/other"}, **{f"my_{form}": data, "other": plain(GERMAN)})


def test_equal_sides_are_refused(refused, collected):
    part = {"source": "text/a", "target": "text/b"}
    refused(["text/a and text/b hold the same text"], part, a=plain(ENGLISH), b=gzip.compress(plain(ENGLISH)))
    refused(["hold the same text"], {"tsv": "text/my.tsv"}, my_tsv=table(zip(ENGLISH, ENGLISH)))
    assert collected(part, a=plain(ENGLISH), b=plain([*ENGLISH[:-1], "x"])) == [ENGLISH, [*ENGLISH[:-1], "x"]]


@pytest.mark.parametrize("codes", [*itertools.combinations(["en-GB", "de", "ja", "zh"], 2)])
def test_sides_in_the_language_of_the_other_are_said(collected, capsys, codes):
    """Nothing is said of sides in the right order, of a language without known letters, and of a few words."""
    english, german = zip(*demonstration("dev", 99))
    lines = {"en-GB": english, "de": german, "ja": JAPANESE, "zh": CHINESE}
    a, b = (plain(lines[code] * 2) for code in codes)
    few = {"a": plain(lines[codes[1]][:5]), "b": plain(lines[codes[0]][:5])}
    part = {"source": "text/a", "target": "text/b"}

    def said(languages, **files):
        collected(part, languages, **files)
        return [line for line in capsys.readouterr().err.split("\n") if "languages" in line]

    assert said(codes, a=plain(lines[codes[1]][::-1] * 2), b=b) == [], "both sides are in one language"
    assert said(codes, a=a, b=b) == said((codes[0], "xx"), a=b, b=a) == said(codes, **few) == []
    assert collected.counts["swapped"] == []
    [swapped] = said(codes, a=b, b=a)
    assert all(each in swapped for each in ("text/a", "text/b", f"[{codes[0]}, {codes[1]}]"))
    assert collected.counts["swapped"] == [1]


GROWING = "".join(f'<!ENTITY e{n + 1} "{f"&e{n};" * 10}">' for n in range(9))
GROWING = f'<!DOCTYPE t [<!ENTITY e0 "{"x" * 99}">{GROWING}]>'


@pytest.mark.parametrize(
    ("part", "data", "said"),
    [
        ("tsv", table([("a", "b"), ("c",)]), ["row 2 has 1 columns, and the first row has 2"]),
        ("tsv", b'a\tb\n"c\nd"\te\n', ["row 2 has 1 columns", "a line break in quotes is not read"]),
        ("tsv", b'a\tb\n"c\td"\te\n', ["row 2 has 3 columns", "a tab or a line break in quotes"]),
        ("tsv", table([("a", "b", "c")]), ["first row is 'a, b, c'", "columns en and de, or two without names"]),
        ("tsv", table([('"a"', '"b"'), ('"c"', '"d"')]), ["cells are in quotes"]),
        ("tsv", table([("a", "b"), ('"say ""a"", then ""b"""', "c")]), ["cells are in quotes"]),
        ("tsv", b"one,eins\n", ["first row is 'one,eins'", "with tabs"]),
        ("jsonl", b'{"en": "a", "de": "b"}\n{"en": "a", "de": 5}\n', ["row 2 has no text for en and de"]),
        ("jsonl", b'{"en": "a", "de": "b"}\n{"en": "a"}\n', ["row 2 has no text for en and de"]),
        ("jsonl", b'{"en": "a", "de": "b"}\n{"en": \n', ["row 2 is '{\"en\": ' (Expecting value: ", "a JSON object"]),
        ("jsonl", b'{"en": "\\ud800", "de": "b"}\n', ["row 1 has no text for en and de"]),
        ("jsonl", b'{"en": "\\udcaa", "de": "b"}\n', ["row 1 has no text for en and de"]),
        ("jsonl", b"[" * 99_999, ["row 1 is '[[[", "a JSON object in each line"]),
        ("jsonl", b"[1]\n", ["row 1 is '[1]'; a JSON object in each line"]),
        ("jsonl", b"x" * (17 << 20), ["more than 16,777,216 bytes"]),
        ("tmx", PAIRED["tmx"][:-20], ["damaged or not a TMX file"]),
        ("tmx", b'<?xml version="1.0" encoding="shift_jis"?><tmx/>', ["multi-byte encodings", "convert the file to UTF-8"]),
        ("tmx", tmx([[("en", "a"), ("fr", "b")]]), ["its languages are en, fr"]),
        ("tmx", tmx([[("en", "a"), ("de", "&x;")]], '<!DOCTYPE t [<!ENTITY x SYSTEM "file:///etc/passwd">]>'), ["damaged"]),
        ("tmx", tmx([[("en", "a"), ("de", "&e9;")]], GROWING), ["damaged or not a TMX file"]),
        ("tmx", tmx([[("en", " " * (17 << 20)), ("de", "b")]]), ["more than 16,777,216 bytes"]),
        ("zip", zipped(("a.en", b"1"), ("b.en", b"2"), ("a.de", b"3")), ["holds a.en and b.en; one .en is"]),
        ("zip", zipped(("a.en", b"1\n"), ("a.de", b"3\n4\n")), ["a.en has 1 lines and ", "a.de has 2"]),
        ("zip", PAIRED["zip"][:-30], ["damaged"]),
        ("parquet", b"PAR1", ["damaged or truncated"]),
        ("parquet", WHOLE, [EXPECTED, "text (string)"]),
        ("parquet", twice(), [EXPECTED, "translation.en"]),
        ("parquet", structs([{"de": 1, "en": 1}], pyarrow.int64()), [EXPECTED, "translation.en (int64)"]),
        ("parquet", structs([{"de": b"a", "en": b"b"}], pyarrow.binary()), [EXPECTED, "translation.en (binary)"]),
        ("parquet", WHOLE[:-7], ["damaged"]),
        ("parquet", WHOLE.replace(b"text", b"t\xffxt"), ["damaged"]),
        ("parquet", structs([{"de": "x" * 1000, "en": "y" * 1000}] * 30_000), ["bytes unpack to"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_file_with_both_sides_that_is_damaged_or_does_not_fit_is_named(refused, part, data, said):
    refused(["text/my", *said], {part: "text/my"}, my=data)


def test_codes_within_a_segment_of_tmx_are_no_text(collected):
    data = tmx(
        [
            [("en", " "), ("de", "y")],
            [("en", "a <bpt>{b}<sub>c</sub></bpt>bold<ept>{/b}</ept> <hi>word</hi>\n&amp; more"), ("de", "x")],
        ]
    )
    assert collected({"tmx": "text/my.tmx"}, my_tmx=data) == [["a bold word & more"], ["x"]]


ENCODED = [
    ("de", GERMAN, name) for name in ("latin-1", "cp1252", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig")
]
ENCODED += [("zh", CHINESE, name) for name in ("gbk", "gb18030")]
ENCODED += [("ja", JAPANESE, name) for name in ("shift_jis", "euc_jp", "iso2022_jp")]
MARKED = ("utf-16", "utf-32", "utf-8-sig")


@pytest.mark.parametrize(("code", "lines", "encoding"), ENCODED)
def test_another_encoding_is_read_as_stated_or_refused_with_a_guess(collected, refused, code, lines, encoding):
    part, data = {"source": "text/a", "target": "text/b"}, "".join(f"{line}\r\n" for line in lines).encode(encoding)
    if encoding in MARKED:
        found = collected(part, ("en", code), a=plain(ENGLISH), b=data)
    else:
        said = ["text/b: line 1", "is not UTF-8. As ", "`encoding: ", "iconv -f "]
        said += [f"a line reads {lines[0]!r}"] if encoding in ("cp1252", "gbk", "utf-16-le") else []
        refused(said, part, ("en", code), a=plain(ENGLISH), b=data)
        refused(said, part | {"first": 2}, ("en", code))
        found = collected(part | {"encoding": ["utf-8", encoding]}, ("en", code))
    assert [line.removesuffix("\r") for line in found[1]] == lines


def test_a_table_in_another_encoding(collected, refused):
    data = table(zip(ENGLISH, GERMAN)).decode().replace("“", '"').replace("”", '"').encode("latin-1")
    refused(["text/my.tsv: line 1", "is not UTF-8", "Brücke"], {"tsv": "text/my.tsv"}, my_tsv=data)
    assert collected({"tsv": "text/my.tsv", "encoding": "latin-1"})[1] == GERMAN
    rows = objects([{"en": "The bridge is large.", "de": line} for line in GERMAN]).decode().encode("latin-1")
    refused(["text/my.jsonl: line 1", "is not UTF-8", "Brücke"], {"jsonl": "text/my.jsonl"}, my_jsonl=rows)
    assert collected({"jsonl": "text/my.jsonl", "encoding": "latin-1"})[1] == GERMAN
    joined = 2 * (codecs.BOM_UTF8 + objects([{"en": "a", "de": "b"}]))
    assert collected({"jsonl": "text/my.jsonl"}, my_jsonl=joined) == [["a", "a"], ["b", "b"]]
    assert collected({"tsv": "text/my.tsv", "encoding": "utf-8-sig"}, my_tsv=table(zip(ENGLISH, GERMAN))) == [
        ENGLISH,
        GERMAN,
    ]
    assert collected({"tsv": "text/my.tsv"}, my_tsv=b"a\tb\r\n \r\nc\td\r\n") == [["a", "c"], ["b", "d"]]
    assert collected({"tsv": "text/my.tsv"}, my_tsv=b"en\tde\n") == [[], []], "names alone, without rows"


def test_a_wrong_encoding_is_refused(refused):
    part = {"source": "text/a", "target": "text/b"}
    text = {"a": plain(CHINESE), "b": plain(GERMAN).decode().encode("latin-1")}
    refused(["text/a is UTF-8, not iso8859-1", "[utf-8, iso8859-1]"], part | {"encoding": "latin-1"}, **text)
    refused(["text/b: at line 1", "is not ascii"], part | {"encoding": ["utf-8", "ascii"]}, **text)
    for wrong in ("klingon", "base64", "rot13"):
        refused([f"encoding: '{wrong}' is not possible"], part | {"encoding": wrong}, **text)
    refused(["encoding: 'latin-1' is not possible"], {"tmx": "text/a", "encoding": "latin-1"}, **text)


@pytest.mark.parametrize("chunk", [46, 1 << 20])  # 46 bytes end in half of a character after one that is damaged
def test_single_damaged_characters_are_named_and_left_to_normalise(collected, capsys, monkeypatch, chunk):
    """Most lines are UTF-8, so the file is. The bytes pass unchanged."""
    monkeypatch.setattr(Unpacked, "__iter__", lambda self: iter(lambda: self.read(chunk), b""))
    damaged = [line.encode() for line in GERMAN]
    damaged[7] = damaged[7].replace("ü".encode(), b"\xfc")
    damaged[9] = damaged[9].replace("ü".encode(), b"\xc3")
    with pytest.raises(UnicodeDecodeError):
        collected({"source": "text/a", "target": "text/b"}, a=plain(ENGLISH), b=b"\n".join(damaged))
    assert "text/b: line 8 (byte 0xfc) and 1 more are damaged UTF-8" in capsys.readouterr().err
    rows = [b'{"en": "%d", "de": "%s"}' % row for row in enumerate(damaged)]
    with pytest.raises(UnicodeDecodeError):
        collected({"jsonl": "text/my.jsonl"}, my_jsonl=b"\n".join(rows))
    assert "text/my.jsonl: line 8 (byte 0xfc) and 1 more are damaged UTF-8" in capsys.readouterr().err


def test_line_ends_of_an_old_mac_are_named(refused, collected):
    part, data = {"source": "text/a", "target": "text/b"}, plain(GERMAN).replace(b"\n", b"\r")
    refused(["text/b: its lines end in CR", "tr '\\r' '\\n' < text/b"], part, a=plain(ENGLISH), b=data)
    few = plain(["a\rb", "c\rd", "e"])
    assert collected(part, a=few, b=plain(GERMAN[:3]))[0] == ["a\rb", "c\rd", "e"], "less than one in each line"


def stream(data, label="test"):
    return Unpacked(io.BufferedReader(io.BytesIO(data)), label)


SGM = """<refset setid="newstest2014" srclang="any" trglang="de">
<doc docid="1" genre="news"><hl>
<seg id="1"> Standard &amp; Poor&apos;s </seg>
</hl><p>
<SEG id="2">a &quot;b&quot;
c</SEG><seg id="3"></seg><seg id="4"/><!-- <seg>none</seg> --><seg>&lt;d&gt; \u2028 e</seg><seg>AT&T ?a=1&copy=2</seg>
</p></doc></refset>
"""


def test_sgm_gives_its_segments_one_a_line():
    for head in ("", '<?xml version="1.0"?>\n', "<!DOCTYPE mteval SYSTEM 'x'>\n"):
        found = b"".join(text(stream((head + SGM).encode()))).decode()
        assert found == 'Standard & Poor\'s\na "b" c\n\n\n<d> \u2028 e\nAT&T ?a=1&copy=2\n'
    assert b"".join(text(stream("<seg>für</seg>".encode("latin-1")), "latin-1")).decode() == "für\n"


def documents(names, tag="refset", by="A"):
    segments = '<seg id="1">{0} {1} 1</seg><seg id="2">{0} {1} 2</seg>'
    held = "".join(f'<doc sysid="{by}" docid="{name}">{segments.format(name, tag)}</doc>\n' for name in names)
    return f'<{tag} setid="x">\n{held}</{tag}>\n'


@pytest.mark.parametrize("change", [str, lambda sgm: sgm.replace('"', "'"), lambda sgm: re.sub('="(.*?)"', r" = \1", sgm)])
@pytest.mark.parametrize("pack", [str.encode, lambda sgm: gzip.compress(sgm.encode("utf-16"))])
def test_the_documents_of_both_sgm_files_are_the_same_in_order(collected, refused, change, pack):
    part, source = {"source": "text/a.sgm", "target": "text/b.sgm"}, pack(change(documents("xy", "srcset")))
    sides = collected(part, a_sgm=source, b_sgm=documents("xy").encode())
    assert sides == [[f"{name} {tag} {number}" for name in "xy" for number in (1, 2)] for tag in ("srcset", "refset")]
    moved = re.sub(r'(<seg id="2">x.*?</seg>)(</doc>\n<doc.*?>)', r"\2\1", documents("xy"))
    for other in (documents("yx"), documents("xz"), moved):
        refused(["text/a.sgm and text/b.sgm have different documents"], part, a_sgm=source, b_sgm=pack(change(other)))
    nameless = re.sub("<doc[^>]*>", "<doc>", documents("yx"))
    assert collected(part, a_sgm=source, b_sgm=nameless.encode())[1][0] == "y refset 1"


@pytest.mark.parametrize("quote", ['"', "'"])
def test_the_name_of_a_document_may_have_a_space_and_its_translator_may_change(collected, refused, quote):
    part, names = {"source": "text/a.sgm", "target": "text/b.sgm"}, ["news 1", "news 2"]
    source = documents(names, "srcset").replace('"', quote).encode()
    refused(["have different documents"], part, a_sgm=source, b_sgm=documents(names[::-1]).replace('"', quote).encode())
    several = documents(names[:1], by="A") + documents(names[1:], by="B")  # two sets in one file
    assert len(collected(part, a_sgm=source, b_sgm=several.replace('"', quote).encode())[1]) == 4


def test_of_two_sgm_files_the_documents_of_the_first_pairs_are_not_compared(collected):
    part = {"source": "text/a.sgm", "target": "text/b.sgm", "first": 2}
    sides = collected(part, a_sgm=documents("xyz", "srcset").encode(), b_sgm=documents("xy").encode())
    assert sides == [["x srcset 1", "x srcset 2"], ["x refset 1", "x refset 2"]]


TWICE = "it holds several texts, one after the other"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        *(
            (documents("x") + second, TWICE)
            for second in (documents("x", by="B"), documents("x"), documents("x", "srcset"))
        ),
        (SGM.replace("</SEG>", ""), "<seg> are opened"),
        (SGM[: SGM.index("</SEG>")], "<seg> are opened"),
        ("<seg>f\xfcr</seg>", "is not UTF-8"),
    ],
)
def test_a_broken_sgm_or_one_with_several_texts_is_named(content, said):
    with refusals.refused("test: ", said):
        b"".join(text(stream(content.encode("latin-1", "ignore"))))


@pytest.mark.parametrize("chunk", [1, 2, 3, 1 << 20])
@pytest.mark.parametrize("data", [b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", "ä€😀\n".encode() * 9, b"\xef\xbb\xbf", b""])
def test_chunks_may_divide_characters_and_the_byte_order_mark(monkeypatch, chunk, data):
    read = Unpacked.read
    monkeypatch.setattr(Unpacked, "read", lambda self, size=chunk: read(self, size if size < 4 else chunk))
    assert b"".join(text(stream(data))) == data.removeprefix(codecs.BOM_UTF8)


def test_parquet_gives_trimmed_lines_and_leaves_bytes_that_are_no_utf_8_to_normalise(tmp_path):
    path, rows = tmp_path / "a.parquet", [{"de": "für\r\nzwei\ndrei ", "en": "for"}, {"de": "", "en": "\u2028x"}]
    strings = (pyarrow.string(), pyarrow.large_string(), pyarrow.string_view())
    for kind in (*strings, pyarrow.dictionary(pyarrow.int32(), pyarrow.string())):  # pandas writes categories so
        path.write_bytes(structs(rows, kind))
        found = [(b"for\n", "für zwei drei\n".encode()), ("\u2028x\n".encode(), b"\n")]
        assert list(pairs("parquet", path, CODES, None, Counter())) == found
    damaged = pyarrow.array([b"f\xfcr"]).view(pyarrow.string())
    path.write_bytes(
        parquet({"translation": pyarrow.StructArray.from_arrays([damaged, pyarrow.array(["b"])], CODES[::-1])})
    )
    assert list(pairs("parquet", path, CODES, None, Counter())) == [(b"b\n", b"f\xfcr\n")]
