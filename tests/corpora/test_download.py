"""The stage download: WMT14 with the addresses of params.yaml, own text, held-out sets and refused settings."""

import argparse
import copy
import gzip
import hashlib
import html
import io
import itertools
import json
import lzma
import os
import pathlib
import shutil
import unicodedata
import urllib.parse
from collections import Counter

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from pipeline import download, fetch_monolingual, fetch_set
from pipeline.corpora.evaluation import EvaluationSet
from pipeline.corpora.fetching import Fetcher
from pipeline.corpora.holding_out import hold_out, order
from pipeline.corpora.transfer import PATIENT
from pipeline.download import work
from pipeline.settings.addresses import shards
from pipeline.settings.download import DownloadConfig
from pipeline.settings.params import load
from tests.local_site import Fault, serving
from tests.packed import build, snapshot, zipped
from tests.projects import python
from tests.refusals import refused
from transformer.config.reading import UserError, read

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def collect(tmp_path):
    """`collect(settings)` returns the files that download writes for a corpus's `download` section, by name."""

    def run(settings, languages=("en", "de"), mirror=None, name="raw"):
        patience = PATIENT.new(total=2, backoff_factor=0)
        fetcher = Fetcher(mirror, tmp_path / "downloads", tmp_path / "checksums.json", patience, timeout=5.0)
        config = read(DownloadConfig, settings, "params.yaml: corpora.x.download")
        out = tmp_path / "data" / name
        test = tmp_path / "data" / f"{name}-test"
        work(config, languages, fetcher, out, test)
        return {path.name: path.read_bytes() for folder in (out, test) for path in sorted(folder.iterdir())}

    return run


@pytest.fixture
def files(tmp_path, monkeypatch):
    """`files(name=bytes)` writes files with this content into text/ and returns their paths."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").mkdir()

    def write(**contents):
        for name, data in contents.items():
            (tmp_path / "text" / name).write_bytes(data)
        return {name: f"text/{name}" for name in contents}

    return write


def lines(*numbers, word="line"):
    return b"".join(b"%s %d\n" % (word.encode(), number) for number in numbers)


def first_of(url):
    return url if isinstance(url, str) else url[0]


def wmt14(corpus, languages):
    """Small archives with the names and members of a WMT14 corpus, and the text expected from them."""
    contents, expected = {}, {}
    for name in ("train", "dev", "test", "test_filtered"):
        for n, part in enumerate(corpus[name]):
            for member, language in zip((part["source"], part["target"]), languages):
                plain = "".join(f"{part['archive']} {member} {i} & ä\n" for i in range(3 + n)).encode()
                if member.endswith(".sgm"):
                    segments = plain.decode().replace("&", "&amp;").split("\n")[:-1]
                    data = "\n".join(f'<seg id="1">{segment}</seg>' for segment in segments).encode()
                else:
                    data = gzip.compress(plain) if member.endswith(".gz") else plain
                contents.setdefault(part["archive"], {})[member] = data
                expected[f"{name}.{language}"] = expected.get(f"{name}.{language}", b"") + plain
    return contents, expected


@pytest.fixture(params=["wmt14-en-de", "wmt14-en-fr"])
def published(request, tmp_path):
    """A WMT14 corpus of params.yaml, and a site that serves small archives under their real names."""
    corpus = copy.deepcopy(load(ROOT / "params.yaml")["corpora"][request.param])
    settings = corpus["download"]
    contents, expected = wmt14(settings, corpus["languages"])
    with serving() as site:
        for name, archive in settings["archives"].items():
            path = urllib.parse.urlsplit(first_of(archive["url"])).path
            file = tmp_path / os.path.basename(path)
            site.files[path] = build(file, contents[name], "w:" if path.endswith(".tar") else "w:gz").read_bytes()
            file.unlink()
            for kind in ("sha256", "md5"):
                if archive.get(kind):
                    archive[kind] = hashlib.new(kind, site.files[path]).hexdigest()
        yield site, settings, tuple(corpus["languages"]), expected


def test_wmt14_comes_out_of_archives_with_the_real_names(published, collect, tmp_path):
    site, settings, languages, expected = published
    assert collect(settings, languages, mirror=site.url()) == expected
    assert not (tmp_path / "checksums.json").exists(), "all sums of WMT14 are published"
    asked = len(site.requests)
    assert collect(settings, languages, mirror=site.url()) == expected
    assert len(site.requests) == asked


@pytest.fixture
def themselves(published):
    """The same corpus, with addresses of the site in place of those of params.yaml, so that no mirror is needed."""
    site, settings, languages, expected = published
    for archive in settings["archives"].values():
        archive["url"] = site.url(urllib.parse.urlsplit(first_of(archive["url"])).path)
    return site, settings, languages, expected


def test_a_damaged_archive_leaves_the_corpus_as_it_was(themselves, collect, tmp_path):
    site, settings, languages, expected = themselves
    collect(settings, languages)
    path = "/wmt13/training-parallel-europarl-v7.tgz"
    site.files[path] = site.files[path][:-1]
    for file in (tmp_path / "downloads").rglob("*europarl*.tgz"):
        file.unlink()
    with pytest.raises(UserError, match=r"europarl-v7.tgz: its sha256 is"):
        collect(settings, languages)
    made = [file for file in (tmp_path / "data").rglob("*") if file.is_file()]
    assert {file.name: file.read_bytes() for file in made} == expected
    assert {folder.name for folder in (tmp_path / "data").iterdir()} == {"raw", "raw-test"}


def on_the_hub(pairs, languages, files):
    """Yield the Parquet files of a Hugging Face table of `pairs`: a struct `translation` with one text per language."""
    kind = pyarrow.struct([(language, pyarrow.string()) for language in sorted(languages)])
    size = -(-len(pairs) // files)
    for place in range(files):
        some = [dict(zip(languages, pair)) for pair in pairs[place * size : (place + 1) * size]]
        file = io.BytesIO()
        pyarrow.parquet.write_table(pyarrow.table({"translation": pyarrow.array(some, kind)}), file)
        yield file.getvalue()


def test_the_hub_s_parquet_is_a_second_source_of_the_same_pairs(published, collect, tmp_path):
    site, _, languages, expected = published
    settings = load(ROOT / "params.yaml")["corpora"][f"wmt14-en-{languages[1]}-hub"]["download"]
    config, urls = read(DownloadConfig, settings, "the hub's corpus"), {}
    for name in ("train", "dev", "test"):
        (part,) = getattr(config, name)
        urls[name] = part.files
        pairs = list(zip(*(expected[f"{name}.{language}"].decode().split("\n")[:-1] for language in languages)))
        for url, data in zip(urls[name], on_the_hub(pairs, languages, len(urls[name]))):
            path = urllib.parse.urlsplit(url).path
            site.files[path], site.faults[path] = data, [Fault(status=503), Fault(after=len(data) // 2)]
    assert [len(of_set) for of_set in urls.values()] == [{"de": 3, "fr": 30}[languages[1]], 1, 1]
    assert urls["dev"][0].endswith(f"/datasets/wmt/wmt14/resolve/main/{languages[1]}-en/validation-00000-of-00001.parquet")
    written = collect(settings, languages, mirror=site.url())
    assert written == {name: data for name, data in expected.items() if not name.startswith("test_filtered")}
    assert set(json.loads((tmp_path / "checksums.json").read_text())) == {url for some in urls.values() for url in some}


def test_a_star_stands_for_all_files_of_a_table_and_for_nothing_else():
    assert shards("x/train-*-of-00003.parquet") == [f"x/train-0000{number}-of-00003.parquet" for number in range(3)]
    assert shards("x/train-00001-of-00003.parquet") == ["x/train-00001-of-00003.parquet"]


@pytest.mark.parametrize("corpus", ["multi30k", "multi30k-lc-tok"])
def test_multi30k_comes_from_a_mirror_s_folder_by_file_names(collect, tmp_path, corpus):
    """The URLs are those of params.yaml. The files have a few lines each, and their own checksums."""
    settings = copy.deepcopy(load(ROOT / "params.yaml")["corpora"][corpus]["download"])
    (tmp_path / "mirror").mkdir()
    for number, ((part,), side) in enumerate(itertools.product(settings.values(), ("source", "target"))):
        assert part[side].startswith("https://raw.githubusercontent.com/multi30k/dataset/")
        name, data = part[side].rpartition("/")[2], lines(number, number)
        (tmp_path / "mirror" / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        part[f"{side}_sha256"] = hashlib.sha256(data).hexdigest()
    written = collect(settings, mirror=str(tmp_path / "mirror"))
    assert [written[f"{name}.{code}"] for name in ("train", "dev", "test") for code in ("en", "de")] == [
        lines(number, number) for number in range(6)
    ]


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress])
def test_the_first_pairs_of_files(collect, files, pack):
    long = b"x" * 3_000_000 + b"\n"  # longer than what is read at a time
    names = {"en": long + lines(*range(9)), "de": lines(*range(20)), "exact": lines(1, 2, 3)[:-1]}
    at = files(**{name: pack(data) for name, data in names.items()})
    part = {"source": at["en"], "target": at["de"]}
    exact = {"source": at["exact"], "target": at["de"], "first": 3}
    written = collect({"train": [part | {"first": 3}, part | {"first": 1}], "dev": exact, "test": exact})
    assert written["train.en"] == long + lines(0, 1) + long
    assert written["train.de"] == lines(0, 1, 2, 0)
    assert (written["dev.en"], written["dev.de"]) == (lines(1, 2, 3), lines(0, 1, 2))


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
    pairs = [(f"en {number}", f"de {number}") for number in range(6)]
    zips = [zipped(("a.en", lines(n)), ("a.de", lines(n, word="Zeile"))) for n in range(2)]
    files(**{f"t-0000{n}-of-00002.parquet": data for n, data in enumerate(on_the_hub(pairs, ("en", "de"), 2))})
    at = files(a=zips[0], b=zips[1])
    table = {"parquet": ["text/t-*-of-00002.parquet"]}
    both = {"zip": [*at.values()]}
    written = collect({"train": table | {"first": 4}, "dev": both, "test": both | {"first": 1}})
    assert [written[f"{name}.en"].count(b"\n") for name in ("train", "dev", "test")] == [4, 2, 1]
    assert written["train.de"] == b"de 0\nde 1\nde 2\nde 3\n" and written["dev.de"] == lines(0, 1, word="Zeile")
    for part in (table | {"first": 7}, both | {"first": 3}):
        with refused(f"lines; first: {part['first']} asks for more"):
            collect({"train": part, "dev": table, "test": table})


def test_parts_are_appended_in_order_and_never_join_lines(collect, files):
    at = files(a_en=lines(1, 2)[:-1], a_de=lines(5, 6), b_en=lines(3), b_de=lines(4), dev=lines(9), dev_de=lines(8))
    dev = {"source": at["dev"], "target": at["dev_de"]}
    train = [{"source": at[f"{x}_en"], "target": at[f"{x}_de"]} for x in "ab"]
    assert collect({"train": train, "dev": dev, "test": dev})["train.en"] == lines(1, 2, 3)
    assert collect({"train": train[::-1], "dev": dev, "test": dev})["train.en"] == lines(3, 1, 2)


def test_text_is_copied_byte_for_byte(collect, files):
    strange = "ä\n".encode() * 600_000 + b"a\rb\x00\xe2\x80\xa8c\xc2\x85 \xff\n\n" + b"x" * 3_000_000 + b"\n"
    at = files(en=strange, de=lines(*range(600_003)))
    (pathlib.Path(at["en"] + ".xz")).write_bytes(lzma.compress(strange))
    part = {"source": at["en"], "target": at["de"]}
    packed = {"source": at["en"] + ".xz", "target": at["de"]}
    written = collect({"train": part, "dev": packed, "test": part})
    assert written["train.en"] == strange == written["dev.en"]


def test_sides_of_different_length_are_refused_with_both_counts(collect, files, tmp_path):
    """Two parts with opposite faults are not aligned by chance."""
    at = files(en=lines(1, 2, 3), de=lines(1, 2), dev=lines(1), dev_de=lines(2))
    dev = {"source": at["dev"], "target": at["dev_de"]}
    part, turned = {"source": at["en"], "target": at["de"]}, {"source": at["de"], "target": at["en"]}
    before = snapshot(tmp_path)
    for train in (part, [part, turned]):
        with refused(f"{at['en']} has 3 lines and {at['de']} has 2"):
            collect({"train": train, "dev": dev, "test": dev})
    (tmp_path / "data").rmdir()
    assert snapshot(tmp_path) == before


def test_an_empty_corpus_is_refused(collect, files):
    at = files(empty=b"", none=b"", dev=lines(1), dev_de=lines(2))
    dev, empty = ({"source": at[a], "target": at[b]} for a, b in (("dev", "dev_de"), ("empty", "none")))
    with refused("test holds no pair"):
        collect({"train": dev, "dev": dev, "test": empty})


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
    for name, size in (("dev", 10), ("test", 30)):
        numbers = [int(text.split()[1]) for text in sets[name]]
        steps = [b - a for a, b in itertools.pairwise(numbers)]
        assert numbers == sorted(numbers) and max(steps) <= 2 * 1000 / size
    assert all(written[f"{name}.de"] == written[f"{name}.en"].replace(b"line", b"zeile") for name in sets)
    assert collect(settings, name="again") == written


# Some of these are the same source after `normalise`.
SOURCES = [*"abcdefgh \u2028", "a ", "a\u200b", "b c", "b  c", "b\u00a0c", "b\u2009c", "&amp;", "&", "\u00e9", "e\u0301"]
sides = st.lists(st.tuples(st.sampled_from(SOURCES), st.sampled_from("xyz \u00a0\u200b")), min_size=4, max_size=60)


def words(source: str) -> str:
    return unicodedata.normalize("NFC", " ".join(html.unescape(source).replace("\u200b", "").split()))


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
    text = b"".join(b"line %d %c\n" % (number // 2, 0xE8 + number % 2) for number in range(90)) + "ä\n".encode() * 600_000
    at = files(en=text, de=lines(*range(600_090)))
    written = collect(
        {"train": {"source": at["en"], "target": at["de"]}, "dev": {"hold_out": 10}, "test": {"hold_out": 30}}
    )
    found = {name: set(written[f"{name}.en"].decode(errors="replace").splitlines()) for name in ("train", "dev", "test")}
    assert len(found["dev"] | found["test"]) == 40 and not (found["dev"] | found["test"]) & found["train"]
    assert not found["dev"] & found["test"]


def test_turns_are_spread():
    assert order({"dev": 1, "test": 3}) == ["test", "dev", "test", "test"]
    assert Counter(order({"dev": 500, "test": 1500})[:400]) == {"dev": 100, "test": 300}


def test_holding_out_more_than_half_or_more_than_there_is_is_refused(collect, files):
    for sources, said in (
        (range(79), "40 pairs cannot be held out of the 79"),
        ([1] * 100, "only 1 different sources to hold out"),
    ):
        at = files(en=lines(*sources), de=lines(*range(1, len(sources) + 1)))
        with refused(said):
            collect(OWN | {"train": {"source": at["en"], "target": at["de"]}})


PAIR = {"source": "text/a.en", "target": "text/a.de"}
GOOD = {"train": [PAIR], "dev": [PAIR], "test": [PAIR]}
ARCHIVES = {"europarl": {"url": "http://host/a.tgz", "sha256": None}}


ARCHIVED = PAIR | {"archive": "europarl"}


@pytest.mark.parametrize(
    "change, said",
    [
        ({"dev": None}, "x.dev: None is not possible"),
        ({"train": []}, "x.train: [] is not possible"),
        ({"train": 3}, "a list is expected"),
        ({"train": [{"source": "a"}]}, "x.train[0].source: the keys source do not define a part"),
        ({"train": [PAIR | {"sources": "a"}]}, "x.train[0].sources: unknown key; did you mean 'source'"),
        ({"train": [PAIR | {"parquet": ["text/a"]}]}, "parquet: the keys parquet, source, target do not define a part"),
        (
            {"train": [ARCHIVED | {"target": PAIR["source"]}], "archives": ARCHIVES},
            "target: 'text/a.en' is the source as well",
        ),
        # nothing would compare the sum
        ({"train": [ARCHIVED | {"source_sha256": "0" * 64}], "archives": ARCHIVES}, "source_sha256, target do not define"),
        ({"train": [PAIR | {"source_sha256": "12"}]}, "source_sha256: '12' is not possible; a text of 64 hexadecimal"),
        ({"train": [PAIR | {"source": "file:///etc/passwd"}]}, "file: is refused"),
        ({"train": {"parquet": ["ftp://host/a.parquet"]}}, "ftp: is refused"),
        ({"train": {"parquet": ["https://host/*.parquet"]}}, "ends in a file name"),
        ({"train": {"parquet": []}}, "[] is not possible"),
        ({"train": [{"hold_out": 5}]}, "only dev and test can be held out"),
        ({"dev": [{"hold_out": 5}, PAIR]}, "each as one part"),
        ({"dev": {"hold_out": 0}}, "hold_out: 0 is not possible"),
        ({"dev": {"hold_out": 5, "first": 3}}, "first: the keys first, hold_out do not define a part"),
        ({"train": [PAIR | {"archive": "europal"}], "archives": ARCHIVES}, "did you mean 'europarl'"),
        ({"archives": {"a": {"url": ["http://host/a.zip", "text/a.zip"]}}}, "several addresses are http"),
        ({"archives": {"a": {"url": "file:///a.tgz"}}}, "file: is refused"),
        ({"archives": {"a": {"url": "text/a.tgz", "md5": "xyz"}}}, "md5: 'xyz' is not possible; a text of 32 hexadecimal"),
        ({"archives": {"a": {"url": "text/a.tgz", "md5": "0" * 32, "sha256": "0" * 64}}}, "one checksum is expected"),
        ({"train": [PAIR | {"first": 0}]}, "first: 0 is not possible"),
        *(
            ({"train": [PAIR | {"source": name}]}, "text/my.en")
            for name in ("my.en", "../my.en", "text/../my.en", "/my.en")
        ),
        ({"train": [PAIR | {"source": "text"}]}, "'text' is refused"),
        ({"train": {"parquet": ["a.parquet"]}}, "name it text/a.parquet"),
        ({"archives": {"a": {"url": "../a.tgz"}}}, "name it text/a.tgz"),
    ],
    ids=str,
)
def test_settings_that_cannot_be_are_refused(change, said):
    with refused(said):
        read(DownloadConfig, GOOD | change, "x")


def test_every_corpus_of_params_yaml_is_read():
    for name, corpus in load(ROOT / "params.yaml")["corpora"].items():
        read(DownloadConfig, corpus["download"], name)


def project(folder, corpora):
    """Write the project's params.yaml with additional corpora into a folder."""
    params = load(ROOT / "params.yaml")
    params["corpora"] |= corpora
    with open(folder / "params.yaml", "w") as file:
        YAML(typ="safe").dump(params, file)


NAMES = ["../evil", "a/b", "/evil", "a;touch evil", "$(touch evil)", "a.b", "-x", "", "a b", "..", "a\n"]


def test_a_name_that_could_lead_elsewhere_is_refused(tmp_path, monkeypatch):
    own = {"languages": ["en", "de"], "download": GOOD}
    project(tmp_path, dict.fromkeys(NAMES, own) | {"own": own | {"languages": ["en", "../de"]}})
    monkeypatch.chdir(tmp_path)
    before = snapshot(tmp_path)
    for corpus in [*NAMES, "own"]:
        with pytest.raises(UserError, match="a name of letters"):
            download.main(argparse.Namespace(corpus=corpus, out=pathlib.Path("data/raw"), test=pathlib.Path("data/test")))
    assert snapshot(tmp_path) == before


def test_a_set_and_monolingual_text_have_the_languages_and_the_punctuation_of_their_corpus(tmp_path, monkeypatch):
    """Monolingual text is in the target language. The normalised lines are Moses' output for each language."""
    monkeypatch.chdir(tmp_path)
    pathlib.Path("text").mkdir()
    lines = ["“Well”, she said — “it’s late”.", "“Well”, he said — “it’s late”."]
    english, german = '"Well," she said - "it\'s late."', '"Well", he said - "it\'s late".'
    files = {"source": "text/new.en", "target": "text/new.de"}
    for path, line in zip(files.values(), lines):
        pathlib.Path(path).write_text(f"{line}\n", encoding="utf-8")
    own = {"train": files, "dev": {"hold_out": 2}, "test": {"hold_out": 3}}
    corpus = {"languages": ["en", "de"], "download": own, "normalise": {"punctuation": True}, "vocabulary": {}}
    params = load(ROOT / "params.yaml")
    params["corpora"]["mine"], params["sets"]["new"] = corpus, {"corpus": "mine", **files}
    back = {"corpus": "mine", "run": "reverse", "tagged": False, "ratio": 1.0, "decoding": {}}
    params["back_translations"]["mine-bt"] = back | {"monolingual": {"text": "text/new.de"}}
    with open("params.yaml", "w") as file:
        YAML(typ="safe").dump(params, file)
    fetch_set.main(argparse.Namespace(name="new", out=pathlib.Path("data/new")))
    found = EvaluationSet.open(pathlib.Path("data/new"))
    assert (found.corpus, found.languages) == ("mine", ("en", "de"))
    assert found.lines("raw") == ([lines[0]], [lines[1]]) and found.lines("normalised") == ([english], [german])
    out, report = pathlib.Path("data/mine-bt"), pathlib.Path("report.json")
    fetch_monolingual.main(argparse.Namespace(name="mine-bt", out=out, report=report))
    assert {path.name: path.read_text() for path in out.iterdir()} == {"train.de": f"{german}\n"}
    assert json.loads(report.read_text())["language"] == "de"


def test_own_text_is_two_files_in_text_and_four_lines(tmp_path):
    files = {"source": "text/mine.en", "target": "text/mine.de"}
    (tmp_path / "text").mkdir()
    own = {"train": [files], "dev": {"hold_out": 2}, "test": {"hold_out": 3}}
    project(tmp_path, {"mine": {"languages": ["en", "de"], "download": own, "normalise": {}, "vocabulary": {}}})
    for name, word in zip(files.values(), ("line", "zeile")):
        (tmp_path / name).write_bytes(lines(*range(20), word=word))
    run = python(tmp_path, "-m", "pipeline.download", "mine", "--out", "data/mine/raw", "--test", "data/mine/test")
    assert run.returncode == 0 and "data/mine/raw/train.{en,de}: 15 pairs" in run.stderr
    (tmp_path / "text/mine.de").write_bytes(lines(*range(19)))
    run = python(tmp_path, "-m", "pipeline.download", "mine", "--out", "data/mine/raw", "--test", "data/mine/test")
    assert (run.returncode, run.stderr.splitlines()[-1]) == (
        1,
        "download: text/mine.en has 20 lines and text/mine.de has 19; they must match line by line",
    )
    assert (tmp_path / "data/mine/raw/train.en").read_bytes().count(b"\n") == 15


def test_an_edit_and_a_deletion_of_own_text_are_noticed_by_both_tools(built, tmp_path):
    project, elsewhere = built.copy(tmp_path / "project"), tmp_path / "my.en"
    linked, plain = project.root / "text/my.en", project.root / "text/mine/my.de"
    elsewhere.write_text("one\n")
    linked.symlink_to(elsewhere)
    plain.parent.mkdir()
    plain.write_text("eins\n")
    for change in (lambda: None, lambda: elsewhere.write_text("two\n"), plain.unlink):
        change()
        assert "download@demo" in project.planned()
        project.run("dvc", "repro", "--single-item", "download@demo")
        assert project.ran() == ["download@demo"]
        assert "download@demo" not in project.stale()
    elsewhere.unlink()
    for tool in (("dvc", "repro"), ("snakemake", "--dry-run")):
        assert "text/my.en" in project.run(*tool, status=255 if tool[0] == "dvc" else 1)
