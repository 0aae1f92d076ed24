"""The stage download: parts of files and archives, own text, held-out sets and refused settings."""

import gzip
import hashlib
import html
import itertools
import lzma
import shutil
import unicodedata
from collections import Counter
from types import SimpleNamespace

import pytest
from dvc.repo import Repo
from hypothesis import example, given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from pipeline.download import work
from pipeline.settings.download import DownloadConfig
from pipeline.settings.params import load
from pipeline.text import collecting
from pipeline.text.fetching import Fetcher
from pipeline.text.holding_out import hold_out
from tests.support.packed import build, snapshot, structs, zipped
from tests.support.projects import ROOT, without_git
from tests.support.refusals import refused
from transformer.config.reading import UserError, read


@pytest.fixture
def collect(tmp_path):
    """`collect(settings)` returns the files that download writes for a corpus's `download` section, by name."""

    def run(settings, languages=("en", "de"), name="raw"):
        config = read(DownloadConfig, settings, "params.yaml: corpora.x.download")
        out = tmp_path / "data" / name
        test = tmp_path / "data" / f"{name}-test"
        work(config, languages, Fetcher(None, tmp_path / "downloads", tmp_path / "checksums.json"), out, test)
        return {path.name: path.read_bytes() for folder in (out, test) for path in sorted(folder.iterdir())}

    return run


@pytest.fixture
def files(here):
    """`files(name=bytes)` writes files with this content into text/ and returns their paths."""
    (here / "text").mkdir()

    def write(**contents):
        for name, data in contents.items():
            (here / "text" / name).write_bytes(data)
        return {name: f"text/{name}" for name in contents}

    return write


def lines(*numbers, word="line"):
    return b"".join(b"%s %d\n" % (word.encode(), number) for number in numbers)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress])
def test_the_first_pairs_of_files(collect, files, pack):
    long = b"x" * 1_100_000 + b"\n"  # longer than what is read at a time
    names = {"en": long + lines(*range(9)), "de": lines(*range(20)), "exact": lines(1, 2, 3)[:-1]}
    at = files(**{name: pack(data) for name, data in names.items()})
    part = {"source": at["en"], "target": at["de"], "source_sha256": hashlib.sha256(names["en"]).hexdigest()}
    exact = {"source": at["exact"], "target": at["de"], "first": 3}
    written = collect({"train": [part | {"first": 3}, part | {"first": 1}], "dev": exact, "test": exact})
    assert written["train.en"] == long + lines(0, 1) + long
    assert written["train.de"] == lines(0, 1, 2, 0)
    assert (written["dev.en"], written["dev.de"]) == (lines(1, 2, 3), lines(0, 1, 2))
    with refused(f"{at['de']}: its sha256"):
        collect({"train": part | {"target_sha256": "0" * 64}, "dev": exact, "test": exact})


def test_the_first_pairs_of_members_of_an_archive_whose_sum_is_tested(collect, files, tmp_path):
    contents = {"en": lines(*range(5)), "fr.gz": gzip.compress(lines(*range(1, 10))), "ref.sgm": b"<seg>a</seg>" * 7}
    file = build(tmp_path / "text/mine.tgz", contents)
    data = file.read_bytes()
    part = {"archive": "mine", "source": "en", "target": "fr.gz"}
    settings = {"train": part | {"first": 3}, "dev": part | {"first": 5}, "test": part | {"target": "ref.sgm", "first": 2}}
    for kind in ("md5", "sha256"):
        value = hashlib.new(kind, data).hexdigest().upper()  # the case of the digits does not matter
        settings["archives"] = {"mine": {"url": "text/mine.tgz", kind: value}}
        written = collect(settings)
        assert (written["train.en"], written["train.de"]) == (lines(0, 1, 2), lines(1, 2, 3))
        assert (written["dev.en"], written["test.de"]) == (lines(*range(5)), b"a\na\n")
        with refused("text/mine.tgz: en has 5 lines; first: 6 asks for more"):
            collect(settings | {"dev": part | {"first": 6}})
        file.write_bytes(data[:-6] + bytes([data[-6] ^ 1]) + data[-5:])
        with refused(f"mine.tgz: its {kind} is"):
            collect(settings)
        file.write_bytes(data)


def test_the_first_pairs_of_several_files_with_both_sides(collect, files):
    pairs = [{"en": f"en {number}", "de": f"de {number}"} for number in range(6)]
    zips = [zipped(("a.en", lines(n)), ("a.de", lines(n, word="Zeile"))) for n in range(2)]
    files(**{f"t-0000{n}-of-00002.parquet": structs(pairs[3 * n :][:3]) for n in range(2)})
    at = files(a=zips[0], b=zips[1])
    table = {"parquet": ["text/t-*-of-00002.parquet"]}
    both = {"zip": [*at.values()]}
    written = collect({"train": table | {"first": 4}, "dev": both | {"first": 2}, "test": both | {"first": 1}})
    assert [written[f"{name}.en"].count(b"\n") for name in ("train", "dev", "test")] == [4, 2, 1]
    assert written["train.de"] == b"de 0\nde 1\nde 2\nde 3\n" and written["dev.de"] == lines(0, 1, word="Zeile")
    for part in (table | {"first": 7}, both | {"first": 3}):
        with refused(f"lines; first: {part['first']} asks for more"):
            collect({"train": part, "dev": table, "test": table})


def test_a_part_with_another_number_of_lines_than_is_known_is_refused(collect, files):
    at = files(en=lines(*range(5)), de=lines(*range(5), word="Zeile"))
    part = {"source": at["en"], "target": at["de"]}
    assert collect({"train": part | {"lines": 5}, "dev": part, "test": part})["train.en"] == lines(*range(5))
    with refused(f"{at['en']} has 5 lines; 6 are expected"):
        collect({"train": [part, part | {"lines": 6}], "dev": part, "test": part})
    with refused("lines: 5 is not possible; it is not possible with first"):
        collect({"train": part | {"lines": 5, "first": 2}, "dev": part, "test": part})


def test_the_first_of_every_so_many_pairs(collect, files):
    at = files(en=lines(*range(50_000)), de=lines(*range(50_000), word="Zeile"), table=b"a\tb\nc\td\ne\tf\n")
    part = {"source": at["en"], "target": at["de"]}
    settings = {"train": [part | {"every": 20}, part | {"first": 5, "every": 2}], "dev": part | {"first": 1, "every": 9}}
    written = collect(settings | {"test": {"tsv": [at["table"]], "every": 2}})
    assert written["train.en"] == lines(*range(0, 50_000, 20), 0, 2, 4) and written["dev.de"] == lines(0, word="Zeile")
    assert written["train.de"] == lines(*range(0, 50_000, 20), 0, 2, 4, word="Zeile")
    assert (written["test.en"], written["test.de"]) == (b"a\ne\n", b"b\nf\n")


def test_parts_are_appended_in_order_byte_for_byte_and_never_join_lines(collect, files):
    # Two texts longer than what is read at a time, the second without a line feed
    strange = "ä\n".encode() * 360_000 + b"a\rb\x00\xe2\x80\xa8c\xc2\x85 \xff\n\n" + b"x" * 1_100_000
    packed = lzma.compress(strange, preset=0)
    at = files(a_en=strange, a_de=b"x\n" * 360_003, b_en=lines(3), b_de=lines(4), packed=packed)
    parts = [{"source": at[f"{x}_en"], "target": at[f"{x}_de"]} for x in "ab"]
    packed = {"source": at["packed"], "target": at["a_de"]}
    written = collect({"train": parts, "dev": packed, "test": parts[::-1]})
    assert written["train.en"] == strange + b"\n" + lines(3) and written["dev.en"] == strange + b"\n"
    assert written["test.en"] == lines(3) + strange + b"\n"


def test_a_set_of_different_or_of_empty_sides_is_refused_and_the_corpus_stays_as_it_was(collect, files, tmp_path):
    """Two parts with opposite faults are not aligned by chance."""
    at = files(en=lines(1, 2, 3), de=lines(1, 2), dev=lines(1), dev_de=lines(2), empty=b"", none=b"")
    dev, part, turned, empty = (
        {"source": at[a], "target": at[b]} for a, b in (("dev", "dev_de"), ("en", "de"), ("de", "en"), ("empty", "none"))
    )
    collect({"train": dev, "dev": dev, "test": dev})
    before = snapshot(tmp_path)
    for train in (part, [part, turned]):
        with refused(f"{at['en']} has 3 lines and {at['de']} has 2"):
            collect({"train": train, "dev": dev, "test": dev})
    with refused("test holds no pair"):
        collect({"train": dev, "dev": dev, "test": empty})
    assert snapshot(tmp_path) == before


def test_the_demonstration_and_its_reverse_are_the_text_of_the_project(collect, tmp_path):
    shutil.copytree(ROOT / "text/demo", tmp_path / "text/demo")
    demo, turned = (load(ROOT / "params.yaml")["corpora"][name] for name in ("demo", "demo-reverse"))
    written = collect(demo["download"])
    assert collect(turned["download"], turned["languages"], name="reverse") == written
    sizes = {"train": 40_000, "dev": 500, "test": 1000}
    assert {name: data.count(b"\n") for name, data in written.items()} == {
        f"{name}.{language}": size for name, size in sizes.items() for language in ("en", "de")
    }
    english = [line for name in sizes for line in written[f"{name}.en"].split(b"\n")[:-1]]
    assert len(set(english)) == sum(sizes.values()), "no sentence of dev or test is in train"


OWN = {"dev": {"hold_out": 10}, "test": {"hold_out": 30}}


def test_dev_and_test_are_held_out_evenly_spread(collect, files):
    at = files(en=lines(*range(1000)), de=lines(*range(1000), word="zeile"))
    settings = OWN | {"train": [{"source": at["en"], "target": at["de"]}]}
    written = collect(settings)
    sets = {name: written[f"{name}.en"].split(b"\n")[:-1] for name in ("train", "dev", "test")}
    assert {name: len(some) for name, some in sets.items()} == {"train": 960, "dev": 10, "test": 30}
    assert len(set().union(*sets.values())) == 1000
    assert sorted(int(text.split()[1]) for text in sets["dev"] + sets["test"]) == [*range(0, 1000, 25)]
    for name, size in (("dev", 10), ("test", 30)):
        numbers = [int(text.split()[1]) for text in sets[name]]
        steps = [b - a for a, b in itertools.pairwise([0, *numbers, 1000])]
        assert numbers == sorted(numbers) and max(steps) <= 2 * 1000 / size
    assert all(written[f"{name}.de"] == written[f"{name}.en"].replace(b"line", b"zeile") for name in sets)
    assert collect(settings, name="again") == written


# Some of these are the same source after `normalise`.
SOURCES = [*"abcdefgh \u2028", "a ", "a\u200b", "b c", "b  c", "b\u00a0c", "b\u2009c", "&amp;", "&", "\u00e9", "e\u0301"]
sides = st.lists(st.tuples(st.sampled_from(SOURCES), st.sampled_from("xyz \u00a0\u200b")), min_size=4, max_size=60)


def words(source: str) -> str:
    return unicodedata.normalize("NFC", " ".join(html.unescape(source).replace("\u200b", "").split()))


@example(pairs=[("&amp;", "x"), ("&", "y"), ("e\u0301", "x"), ("\u00e9", "y")], sizes=(1, 1))
@given(pairs=sides, sizes=st.tuples(st.integers(1, 4), st.integers(1, 4)))
def test_nothing_held_out_stays_in_train(tmp_path_factory, pairs, sizes):
    folder = tmp_path_factory.mktemp("held")
    for i, language in enumerate(("en", "de")):
        (folder / f"train.{language}").write_bytes("".join(pair[i] + "\n" for pair in pairs).encode())
    try:
        left = hold_out(folder, ("en", "de"), len(pairs), dict(zip(("dev", "test"), sizes)))
    except UserError:
        usable = {words(source) for source, target in pairs if words(source) and words(target)}
        assert 2 * sum(sizes) > len(pairs) or len(usable) < sum(sizes)
        return
    written = {}
    for name in ("train", "dev", "test"):
        both = [(folder / f"{name}.{language}").read_bytes().decode().split("\n")[:-1] for language in ("en", "de")]
        written[name] = list(zip(*both, strict=True))
    held = [words(source) for name in ("dev", "test") for source, _ in written[name]]
    assert (len(written["dev"]), len(written["test"]), len(written["train"])) == (*sizes, left)
    assert all(words(side) for name in ("dev", "test") for pair in written[name] for side in pair)
    assert len(set(held)) == len(held) and not set(held) & {words(source) for source, _ in written["train"]}
    assert written["train"] == [pair for pair in pairs if words(pair[0]) not in held]
    assert not Counter(written["dev"] + written["test"]) - Counter(pairs)


def test_sources_that_differ_in_invalid_bytes_only_are_not_in_two_sets(collect, files):
    """With `invalid_utf8: replace`, U+FFFD takes the place of these bytes. No line is lost."""
    text = b"".join(b"line %d %c\n" % (number // 2, 0xE8 + number % 2) for number in range(90)) + "ä\n".encode() * 6_000
    at = files(en=text, de=lines(*range(6_090)))
    written = collect(
        {"train": {"source": at["en"], "target": at["de"]}, "dev": {"hold_out": 10}, "test": {"hold_out": 30}}
    )
    found = {name: set(written[f"{name}.en"].decode(errors="replace").splitlines()) for name in ("train", "dev", "test")}
    assert len(found["dev"] | found["test"]) == 40 and not (found["dev"] | found["test"]) & found["train"]
    assert not found["dev"] & found["test"]


def test_holding_out_more_than_half_or_more_than_there_is_is_refused(collect, files):
    for sources, said in (
        (range(79), "40 pairs cannot be held out of the 79"),
        ([1] * 100, "only 1 different sources to hold out"),
    ):
        at = files(en=lines(*sources), de=lines(*range(1, len(sources) + 1)))
        with refused(said):
            collect(OWN | {"train": {"source": at["en"], "target": at["de"]}})


PAIR = {"source": "text/a.en", "target": "text/a.de"}
TABLE = {"tsv": "text/a.tsv"}
GOOD = {"train": [PAIR], "dev": [PAIR], "test": [PAIR]}
ARCHIVES = {"europarl": {"url": "http://host/a.tgz", "sha256": None}}


ARCHIVED = PAIR | {"archive": "europarl"}
OUTSIDE = ("my.en", "../my.en", "text/../my.en", "/my.en")


HUB = "https://huggingface.co"


@pytest.mark.parametrize(
    "change, said",
    [
        ({"dev": None}, "x.dev: None is not possible"),
        ({"train": [{"source": "a"}]}, "x.train[0].source: the keys source do not define a part"),
        ({"train": [PAIR | {"parquet": ["text/a"]}]}, "parquet: the keys parquet, source, target do not define a part"),
        ({"train": [PAIR | {"target": PAIR["source"]}]}, "target: 'text/a.en' is the source as well"),
        # nothing would compare the sum
        ({"train": [ARCHIVED | {"source_sha256": "0" * 64}], "archives": ARCHIVES}, "source_sha256, target do not define"),
        ({"train": [PAIR | {"source_sha256": "12"}]}, "source_sha256: '12' is not possible; a text of 64 hexadecimal"),
        ({"train": [PAIR | {"source": "file:///etc/passwd"}]}, "file: is refused"),
        ({"train": {"parquet": ["ftp://host/a.parquet"]}}, "ftp: is refused"),
        ({"train": {"parquet": ["https://host/*.parquet"]}}, "ends in a file name"),
        ({"train": {"parquet": [f"{HUB}/datasets/a/b/blob/main/*-of-00002.parquet"]}}, "has /resolve/ in place of /blob/"),
        ({"train": [PAIR | {"source": "https://GitHub.com/a/b/blob/main/c/my.en"}]}, "has /raw/ in place of /blob/"),
        ({"train": [{"hold_out": 5}]}, "only dev and test can be held out"),
        ({"dev": [{"hold_out": 5}, PAIR]}, "each as one part"),
        ({"test_filtered": {"hold_out": 5}}, "only dev and test can be held out"),
        ({"dev": []}, "x.dev: [] is not possible; at least one entry is expected"),
        ({"train": TABLE | {"tsv": []}}, "tsv: [] is not possible; at least one entry is expected"),
        ({"train": TABLE | {"encoding": ["utf-8", "gbk"]}}, "encoding: ('utf-8', 'gbk') is not possible; 1 is expected"),
        ({"dev": {"hold_out": 5, "first": 3}}, "first: the keys first, hold_out do not define a part"),
        ({"train": [PAIR | {"archive": "europal"}], "archives": ARCHIVES}, "did you mean 'europarl'"),
        ({"archives": {"a": {"url": ["http://host/a.zip", "text/a.zip"]}}}, "several addresses are http"),
        ({"archives": {"a": {"url": "text/a.tgz", "md5": "0" * 32, "sha256": "0" * 64}}}, "one checksum is expected"),
        *(({"train": [PAIR | {"source": name}]}, "text/my.en") for name in OUTSIDE),
        ({"train": {"parquet": ["a.parquet"]}}, "name it text/a.parquet"),
        ({"archives": {"a": {"url": "../a.tgz"}}}, "name it text/a.tgz"),
    ],
    ids=str,
)
def test_settings_that_cannot_be_are_refused(change, said):
    with refused(said):
        read(DownloadConfig, GOOD | change, "x")


def test_all_addresses_of_an_archive_are_those_of_one_file(tmp_path):
    asked, urls = [], ["https://a/x.tgz", "https://b/x.tgz"]
    path = build(tmp_path / "x.tgz", {"en": lines(1), "de": lines(2)})
    fetcher = SimpleNamespace(fetch=lambda *arguments: asked.append(arguments) or path)
    part = {"archive": "x", "source": "en", "target": "de"}
    settings = {"archives": {"x": {"url": urls}}, **dict.fromkeys(("train", "dev", "test"), part)}
    config = read(DownloadConfig, settings, "x")
    found = collecting.collect({"train": config.train}, config.archives, ("en", "de"), fetcher, tmp_path)
    assert found == {"train": {"read": 1, "kept": 1, "swapped": []}}
    assert asked == [(urls[0], None, urls[1])]


def test_an_edit_and_a_deletion_of_own_text_are_noticed_also_behind_a_link(here):
    """DVC follows links to files in the folder on which the stage depends."""
    elsewhere, plain = here / "my.en", here / "text/mine/my.de"
    plain.parent.mkdir(parents=True)
    plain.write_text("eins\n")
    elsewhere.write_text("one\n")
    (here / "text/my.en").symlink_to(elsewhere)
    shutil.copy(ROOT / ".dvcignore", here)
    stage = YAML(typ="safe").load(ROOT / "dvc.yaml")["stages"]["download"]["do"]
    without_git(here)
    with Repo() as repo:
        repo.run(name="download", cmd="true", deps=[path for path in stage["deps"] if "work/" not in path])
        for text, stale in (("one\n", False), ("two\n", True), ("one\n", False)):
            elsewhere.write_text(text)
            assert bool(repo.status()) == stale
        plain.unlink()
        assert repo.status()
