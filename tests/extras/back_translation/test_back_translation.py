"""Back-translation: the settings, the monolingual text and the mixture. test_finished.py has the stages."""

import argparse
import copy
import gzip
import hashlib
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline import download, fetch_set
from pipeline.extras.back_translation import fetch_monolingual
from pipeline.extras.back_translation.augment import mix, repeated
from pipeline.extras.back_translation.back_translate import work
from pipeline.extras.back_translation.fetch_monolingual import write_raw
from pipeline.extras.back_translation.settings import Monolingual, decoder
from pipeline.learn_bpe import learn
from pipeline.settings.check import check
from pipeline.settings.normalise import NormaliseConfig
from pipeline.settings.params import load
from pipeline.settings.selection import bpe_dropout
from pipeline.settings.vocabulary import VocabularyConfig
from pipeline.text.binarised import SIDES, BinarisedSet
from pipeline.text.evaluation import EvaluationSet
from pipeline.text.fetching import Fetcher
from pipeline.text.normalising import Filter
from pipeline.text.words import WordTable
from tests.support.back_translations import VALUE, entry, with_runs
from tests.support.packed import build
from tests.support.projects import ROOT
from tests.support.refusals import refusals, refused, spoilt
from tests.support.small_run import write_params_yaml
from transformer.config.reading import UserError
from transformer.config.text import TextConfig
from transformer.config.vocabulary import UNK
from transformer.decoders.steps import Translation
from transformer.vocabulary import Vocabulary


@pytest.fixture
def selected(params) -> dict[str, Any]:
    return with_runs({**params, "studies": {}}, entry(), {"greedy": {"decoder": "greedy"}})


# The settings


BT, SET = "back_translations.own-bt", {"source": "text/a", "target": "text/b"}
TURNED = {"model": "forward/average", "set": "turned-test"}
BOTH = {"first": "forward/average", "second": "reverse/average"}


@pytest.mark.parametrize(
    ("place", "value", "expected"),
    [
        (f"{BT}.run", "revers", "'revers' is not in runs"),
        (f"{BT}.run", "forward", "forward translates en to de; a run from de to en is expected"),
        (f"{BT}.corpus", "onw", "'onw' is not in corpora; did you mean 'own'?"),
        (f"{BT}.ratio", 0, "ratio: 0 is not possible; a number above 0"),
        (f"{BT}.decoding", {"decoder": "mcts"}, "decoding.decoder: 'mcts' needs a value or references"),
        (f"{BT}.monolingual.text", "/etc/passwd", "put the file or a link to it into the folder"),
        (f"{BT}.monolingual.first", 0, "a whole number above 0"),
        ("back_translations.own", entry(), "'own' is also a name in `corpora`"),
        ("sets.own-bt-dev", {"corpus": "own", **SET}, "'own-bt-dev' is also a set of the corpus own-bt"),
        ("sets.new", {"corpus": "own-bt", **SET}, "corpus: 'own-bt' is not in corpora; "),
        ("corpora_in_use", ["own"], "corpora_in_use: ['own'] is not possible; [own, turned], the corpora of"),
        ("corpora_in_use", ["own", "turned", "own-bt"], "[own, turned], the corpora of"),
        ("corpora_in_use", ["own", "turned", "own"], "[own, turned], the corpora of"),
        ("corpora.own.vocabulary.unknown", "unk", "own-bt.tagged: true is not possible with the vocabulary of own"),
        ("reverse_scores.own.model", "revers/average", "did you mean 'reverse/average'?"),
        ("reverse_scores.own.model", "forward/average", "forward/average translates en to de; a run from de to en is "),
        ("reverse_scores.own.set", "own-dev", "'own-dev' is not the set of a decoding; did you mean 'own-test'"),
        ("reverse_scores.new", {"model": "reverse/average", "set": "own-test"}, "own-test is also the set of new"),
        ("runs.reverse_scores", {"corpus": "own", "model": "tiny"}, "'reverse_scores' is also a folder of models/"),
        ("decodings.new", TURNED, "new.model: forward/average translates en to de; a run from de to en is expected"),
        ("ensembles.both", BOTH, "both: the corpora are own and turned; two runs with the same corpus are expected"),
        ("sets.new", {"corpus": "own", "archive": "mine", **SET}, "new.archive: 'mine' is not an archive of corpora.own"),
        ("reverse_values.new", VALUE | {"reverse": "forward/average"}, "new.reverse: forward/average translates en"),
        ("reverse_values.new", VALUE | {"reverse": "revers/average"}, "'revers/average' is not the average of a run"),
        ("reverse_values.new", VALUE | {"corpus": "turned"}, "'turned' is not the corpus of the run; 'own' is"),
        ("reverse_values.greedy", VALUE, "'greedy' is also a name in `decodings`"),
        ("values.source", {"model": "forward/average", "corpus": "own"}, "'source' is also a name in `values`"),
    ],
)
def test_impossible_values_are_refused(selected, place, value, expected):
    said = refusals(spoilt(selected, place, value))
    assert any(expected in line for line in said), said


def test_keys_parents_and_tags_that_are_needed_and_those_that_are_not(selected):
    without = copy.deepcopy(selected)
    del without["back_translations"]["own-bt"]["tagged"]
    with refused("own-bt.tagged is missing"):
        check(without)
    untagged = spoilt(spoilt(selected, "corpora.own.vocabulary.unknown", "unk"), f"{BT}.tagged", False)
    check(untagged)  # the vocabulary may have unknown pieces
    del selected["runs"]["forward"]
    selected["decodings"] = selected["reverse_scores"] = selected["reverse_values"] = {}
    check(selected)
    with refused("corpora_in_use: ['turned'] is not possible; [turned, own], the corpora of"):
        check(selected | {"corpora_in_use": ["turned"]})


def test_the_reverse_run_can_itself_be_trained_on_a_back_translation(selected):
    """Iterated back-translation (Hoang et al. 2018)."""
    selected["back_translations"]["turned-bt"] = entry(corpus="turned", run="forward")
    selected["runs"]["reverse-2"] = {**selected["runs"]["reverse"], "corpus": "turned-bt"}
    selected["back_translations"]["own-bt-2"] = entry(run="reverse-2")
    check(selected)


def test_the_bpe_dropout_of_synthetic_pairs_is_that_of_the_corpus_that_they_extend(selected):
    assert bpe_dropout(spoilt(selected, "corpora.own.vocabulary.bpe_dropout", 0.3), "own-bt") == 0.3


# The monolingual text


@pytest.fixture
def fetched(here):
    """A function that fetches some lines of a text with this content into a file. It returns the lines."""
    Path("text").mkdir()

    def fetch(
        content: bytes, skip: int | None = None, first: int | None = None, encoding: str | None = None
    ) -> list[bytes]:
        Path("text/more.de.gz").write_bytes(gzip.compress(content, 1))
        chosen = Monolingual("text/more.de.gz", hashlib.sha256(content).hexdigest(), skip, first, encoding)
        write_raw(chosen, Fetcher(None), Path("raw.de"))
        return Path("raw.de").read_bytes().splitlines(keepends=True)

    return fetch


@pytest.mark.parametrize("end", [b"\n", b""])
def test_the_chosen_lines_are_those_of_a_slice(fetched, end):
    """The text is longer than the chunks in which it is read."""
    lines = [b"%d %s\n" % (number, b"x" * (number % 90)) for number in range(30_000)]
    content = b"".join(lines).removesuffix(b"\n") + end
    for skip, first in ((None, None), (0, 3), (7, None), (7, 20), (999, 1), (29_990, None)):
        assert fetched(content, skip, first) == lines[skip or 0 :][:first], (skip, first)
    assert fetched(b"f\xfcr\n" + content, encoding="cp1252")[0] == "für\n".encode()


@pytest.mark.parametrize(("skip", "first"), [(3, None), (9, 1), (1, 3)])
def test_too_few_lines_are_refused_with_their_number(fetched, skip, first):
    with refused("more.de.gz", f"{max(3 - skip, 0)} lines are left after skip: {skip}; at least "):
        fetched(b"a\nb\nc\n", skip, first)


# The synthetic pairs


class Backwards:
    """A translator that reverses each line. The translation of a line with an x is empty."""

    text_config: TextConfig | None = None

    def normalise(self, lines):
        return [line.upper() for line in lines]

    def n_best(self, lines, name, count, tick, decoder):
        self.lines = lines
        return [[Translation([4], 0.0)] for _ in lines]

    def text(self, translations):
        return [line[::-1].replace(".", "  ") if "x" not in line else "" for line in self.lines]


def test_synthetic_pairs_are_aligned_clean_and_filtered(selected, tmp_path):
    config = NormaliseConfig(**{**selected["base"]["normalise"], "max_ratio": 2.0, "decontaminate": True})
    select = Filter(config, ({"nuen"}, {"vier"}))
    (tmp_path / "text").write_text("eins zwei\nx\na.b.c\ndrei\nvier\nneun\n")
    paths = [tmp_path / "train.en", tmp_path / "train.de"]
    made = work(Backwards(), decoder(selected, "own-bt"), tmp_path / "text", paths, config, select)
    counts = made["sets"]["synthetic"]
    assert [path.read_text() for path in paths] == ["iewz snie\nierd\n", "eins zwei\ndrei\n"]
    assert counts["dropped"] == {"empty": 1, "max_words": 0, "max_ratio": 1, "deduplicate": 0, "decontaminate": 2}
    assert (counts["read"], counts["kept"], made["pieces"]) == (6, 2, 12)
    other = Backwards()  # the text of whose training was normalised by other rules
    other.text_config = TextConfig(("de", "en"), config.entities, config.nfc, not config.punctuation)
    work(other, decoder(selected, "own-bt"), tmp_path / "text", paths, config, Filter(config))
    assert [path.read_text().split("\n")[0] for path in paths] == ["IEWZ SNIE", "eins zwei"]
    (tmp_path / "text").write_text("x\na.b.c\nx\n")
    with pytest.raises(UserError, match=r"dropped: 2 empty, 0 max_words, 1 max_ratio, 0 deduplicate$"):
        work(Backwards(), decoder(selected, "own-bt"), tmp_path / "text", paths, config, Filter(config))


# The mixture

REAL = {"source": ["a house", "the small house", "Ω", "a dog"], "target": ["ein Haus", "das kleine Haus", "Ω", "Hund"]}
MADE = {"source": ["a small dog", "house house", "the"], "target": ["ein kleiner Hund", "Haus Haus", "das"]}


@pytest.fixture(scope="module")
def words(tmp_path_factory) -> WordTable:
    config = VocabularyConfig(**{**load()["base"]["vocabulary"], "pieces": 300, "character_coverage": 0.99})
    path = tmp_path_factory.mktemp("vocabulary") / "vocabulary.model"
    text = "\n".join(line for lines in (REAL, MADE) for side in SIDES for line in lines[side] if line != "Ω")
    path.write_bytes(learn([text.encode() * 3], config))
    return WordTable(Vocabulary(path), 1)


def segmented(lines: list[str], vocabulary: Vocabulary, segmentation: int) -> list[list[int]]:
    """The ids of the lines, spelt with more and more single characters."""
    return vocabulary.sample([line.encode() for line in lines], segmentation / 3, 1)


def in_memory(lines: dict[str, list[str]], vocabulary: Vocabulary, segmentations: int = 1) -> BinarisedSet:
    sides = []
    for side in SIDES:
        ids = [ids for number in range(segmentations) for ids in segmented(lines[side], vocabulary, number)]
        sides.append((np.concatenate(ids).astype(np.uint16), np.cumsum([0, *map(len, ids)])))
    return BinarisedSet(*sides, segmentations)


@pytest.fixture
def mixed(words, tmp_path, params):
    """A function that mixes REAL, repeated to `lines` pairs, with MADE. It returns the ids of train and dev by side."""

    def make(lines: int, tag: bool, **dropout: Any) -> list[dict[str, list[list[int]]]]:
        paths = [tmp_path / "train.en", tmp_path / "train.de"]
        for path, side in zip(paths, SIDES):
            path.write_text("".join(f"{line}\n" for line in MADE[side]))
        config = VocabularyConfig(**{**params["base"]["vocabulary"], **dropout})
        sets = {
            "train": in_memory(REAL, words.vocabulary, config.segmentations),
            "dev": in_memory(REAL, words.vocabulary),
        }
        counts = mix(sets, paths, words, config, tag, lines, tmp_path)
        found = []
        for name in ("train", "dev"):
            ids, offsets = ({s: np.load(tmp_path / f"{name}.{s}.{part}.npy") for s in SIDES} for part in ("ids", "offsets"))
            found.append({s: [ids[s][a:b].tolist() for a, b in pairwise(offsets[s])] for s in SIDES})
            assert counts[name]["pairs"] == len(offsets["source"]) - 1
            assert [counts[name][f"{s}_tokens"] for s in SIDES] == [len(ids[s]) for s in SIDES]
        assert counts["train"].get("segmentations", 1) == config.segmentations
        return found

    return make


def test_with_bpe_dropout_every_segmentation_has_all_pairs_and_the_tag(mixed, words):
    train, dev = mixed(5, True, bpe_dropout=0.5, segmentations=4, seed=3)
    vocabulary = words.vocabulary
    assert dev["source"] == vocabulary.encode(REAL["source"])
    spellings, real = set(), set()
    for number, start in enumerate(range(0, 32, 8)):
        source, target = (train[side][start : start + 8] for side in SIDES)
        assert [ids[0] == UNK for ids in source] == [False] * 5 + [True] * 3
        assert vocabulary.decode([ids[1:] for ids in source[5:]]) == MADE["source"]
        assert vocabulary.decode(target[5:]) == MADE["target"]
        for side, ids in zip(SIDES, (source, target)):
            own = segmented(REAL[side], vocabulary, number)
            assert ids[:5] == [own[place] for place in (0, 0, 1, 2, 3)]
        spellings.add(str(source[5:]))
        real.add(str(source[:5]))
    assert len(train["source"]) == 32 and len(spellings) > 1 and len(real) > 1
    assert mixed(5, True, bpe_dropout=0.5, segmentations=4, seed=3) == [train, dev]


@pytest.mark.parametrize(("lines", "tag"), [(4, False), (4, True), (5, True), (7, True), (8, True), (11, True)])
def test_real_pairs_come_first_evenly_repeated_and_synthetic_ones_carry_the_tag(mixed, words, lines, tag):
    train, dev = mixed(lines, tag)
    vocabulary = words.vocabulary
    assert dev == {side: vocabulary.encode(REAL[side]) for side in SIDES}
    pairs = list(zip(train["source"], train["target"], strict=True))
    known = list(zip(*(vocabulary.encode(REAL[side]) for side in SIDES)))
    counts = [pairs[:lines].count(pair) for pair in known]
    assert sum(counts) == lines and max(counts) - min(counts) <= 1
    synthetic = [[UNK] * tag + ids for ids in vocabulary.encode(MADE["source"])]
    assert pairs[lines:] == list(zip(synthetic, vocabulary.encode(MADE["target"])))
    assert vocabulary.decode([target for _, target in pairs[lines:]]) == MADE["target"]


def test_there_are_at_most_ratio_synthetic_pairs_per_real_pair():
    for synthetic, ratio, lines in ((100, 1.0, 100), (50, 1.0, 100), (300, 2.0, 150), (301, 2.0, 151), (100, 0.5, 200)):
        assert repeated(100, synthetic, ratio) == lines


def test_a_set_and_monolingual_text_have_the_languages_and_the_punctuation_of_their_corpus(here):
    """Monolingual text is in the target language, and its lines are dropped as pairs are. Normalised lines are Moses'.

    The mirror has the files of the corpus, which is on no site, and its archive has those of a set.
    """
    for folder in ("mirror", "text"):
        Path(folder).mkdir()
    lines = ["“Well”, she said — “it’s late”.", "“Well”, he said — “it’s late”."]
    english, german = '"Well," she said - "it\'s late."', '"Well", he said - "it\'s late".'
    members = {f"new.{code}": f"{line}\n".encode() for code, line in zip(("en", "de"), lines)}
    more = f"{lines[1]}\n\n \t \n{'Wort ' * 10}\nEin &quot;Hund&quot;.\nein  Hund\nein Hund\n".encode()
    for name, content in [*members.items(), ("more.de", more)]:
        Path("mirror", name).write_bytes(content)
    build(here / "text/own.tgz", members)
    files = {"source": "http://127.0.0.1:1/new.en", "target": "http://127.0.0.1:1/new.de"}
    dropping = {"max_words": 9, "deduplicate": True}
    own = {"archives": {"own": {"url": "text/own.tgz"}}, "train": files, "dev": files, "test": files}
    corpus = {"languages": ["en", "de"], "download": own, "normalise": {"punctuation": True, **dropping}, "vocabulary": {}}
    params = load(ROOT / "params.yaml")
    params["corpora"]["mine"], params["machine"]["mirror"] = corpus, "mirror"
    params["sets"]["new"] = {"corpus": "mine", **files}
    params["sets"]["packed"] = {"corpus": "mine", "archive": "own", "source": "new.en", "target": "new.de"}
    back = {"corpus": "mine", "run": "reverse", "tagged": False, "ratio": 1.0, "decoding": {}}
    params["back_translations"]["mine-bt"] = back | {"monolingual": {"text": "http://127.0.0.1:1/more.de"}}
    write_params_yaml(Path(), params)
    report = Path("report.json")
    download.main(argparse.Namespace(corpus="mine", out=Path("data/raw"), test=Path("data/test"), report=report))
    assert [counts["kept"] for counts in json.loads(report.read_text())["sets"].values()] == [1, 1, 1]
    assert Path("data/raw/train.de").read_bytes() == Path("data/test/test.de").read_bytes() == members["new.de"]
    for name in ("new", "packed"):
        fetch_set.main(argparse.Namespace(name=name, out=Path("data", name), report=report))
        assert json.loads(report.read_text())["sets"][name]["kept"] == 1
        found = EvaluationSet.open(Path("data", name))
        assert (found.corpus, found.languages) == ("mine", ("en", "de"))
        assert found.lines("raw") == ([lines[0]], [lines[1]]) and found.lines("normalised") == ([english], [german])
    out = Path("data/mine-bt")
    fetch_monolingual.main(argparse.Namespace(name="mine-bt", out=out, report=report))
    assert {path.name: path.read_text() for path in out.iterdir()} == {"train.de": f'{german}\nEin "Hund".\nein Hund\n'}
    counts = json.loads(report.read_text())["sets"]["monolingual"]
    assert (counts["read"], counts["kept"]) == (7, 3)
    assert counts["dropped"] == {"empty": 2, "max_words": 1, "max_ratio": 0, "deduplicate": 1}
