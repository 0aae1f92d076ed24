import hashlib
import json
import multiprocessing
import shutil
from argparse import Namespace
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tqdm import tqdm

from pipeline import binarise, learn_bpe
from pipeline.text.binarised import describe, id_type, open_binarised, write_description, write_side
from tests.support.packed import cut, flip, write_sets
from tests.support.projects import HYPOTHESES as TARGET
from tests.support.projects import REFERENCES as SOURCE
from tests.support.refusals import refused
from transformer.vocabulary import Vocabulary

SETS = {"train": (SOURCE, TARGET), "dev": (["", "Haus", "日本語 😀"], ["ein Haus", "", ""])}
VOCABULARY = {"pieces": 400, "unknown": "byte_fallback", "character_coverage": 0.9999, "sample_pairs": 0, "threads": 2}
VOCABULARY |= {"bpe_dropout": 0.0, "segmentations": 1, "seed": 1}


def write_params(**differences) -> None:
    own = {"languages": ["en", "de"], "vocabulary": differences}
    Path("params.yaml").write_text(json.dumps({"base": {"vocabulary": VOCABULARY}, "corpora": {"c": own}}))


def run_learn_bpe() -> bytes:
    learn_bpe.main(Namespace(corpus="c", text=Path("text"), out=Path("vocabulary.model")))
    return Path("vocabulary.model").read_bytes()


def run_binarise(out: str = "data") -> dict[str, bytes]:
    paths = {"text": Path("text"), "vocabulary": Path("vocabulary.model"), "out": Path(out)}
    binarise.main(Namespace(corpus="c", report=Path("report.json"), **paths))
    return {path.name: path.read_bytes() for path in sorted(Path(out).iterdir())}


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """A folder in which learn_bpe and binarise have run on SETS."""
    folder = tmp_path_factory.mktemp("binarised")
    write_sets(folder / "text", SETS)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_params()
        run_learn_bpe()
        run_binarise()
    return folder


@pytest.fixture
def folder(made, here):
    """A copy of `made` that a test may change."""
    shutil.copytree(made, here, dirs_exist_ok=True)
    return here


def test_every_line_has_the_ids_that_the_vocabulary_gives_it(made):
    vocabulary = Vocabulary(made / "vocabulary.model")
    for name, sides in SETS.items():
        data = open_binarised(made / "data", name)
        encoded = [vocabulary.encode(lines) for lines in sides]
        assert len(data) == len(sides[0])
        assert [[part.tolist() for part in data.pair(i)] for i in range(len(data))] == [list(p) for p in zip(*encoded)]
        assert data.lengths("source").tolist() == [len(ids) for ids in encoded[0]]
        assert data.lengths("target").tolist() == [len(ids) for ids in encoded[1]]
        assert data.lengths("target").dtype == np.int64 and data.source[0].dtype == np.uint16


def test_the_arrays_are_npy_files_with_the_checksums_of_sha256sum(made):
    ids, offsets = (np.load(made / f"data/train.target.{part}.npy", mmap_mode="r") for part in ("ids", "offsets"))
    description, report = describe(made / "data"), json.loads((made / "report.json").read_text())
    assert (ids.dtype, offsets.dtype, offsets[-1]) == (np.uint16, np.int64, len(ids))
    sums = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in made.glob("*/*.npy")}
    lines = "".join(f"{sums[name]}  {name}\n" for name in sorted(sums))
    assert len(sums) == 8 and description["sum"] == report["data_sum"] == hashlib.sha256(lines.encode()).hexdigest()
    assert description["vocabulary_sha256"] == hashlib.sha256((made / "vocabulary.model").read_bytes()).hexdigest()
    assert report["sets"] == description["sets"] and report["sets"]["train"]["target_tokens"] == len(ids)


def test_blocks_of_any_size_and_any_threads_give_the_same_bytes(folder, monkeypatch):
    expected, model = run_binarise(), Path("vocabulary.model").read_bytes()
    for path in Path("text").iterdir():
        if path.name != "dev.de":  # it ends in empty lines
            path.write_bytes(path.read_bytes().removesuffix(b"\n"))  # the last line needs no line feed
    for size, threads in ((2, 1), (50, 2), (1000, 1)):
        monkeypatch.setattr("pipeline.text.sets.BLOCK", size)
        write_params(threads=threads)
        assert run_learn_bpe() == model
        assert run_binarise(f"data-{size}") == expected


def test_bpe_dropout_samples_several_segmentations_of_the_training_text(folder, monkeypatch, capsys):
    """Each segmentation of a line is another sequence of pieces of the same text. Dev is encoded without dropout."""
    plain = run_binarise()
    write_params(bpe_dropout=0.3, segmentations=3)
    first = run_binarise("sampled")
    said = "sentencepiece==0.2.1" in capsys.readouterr().err
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as another:
        assert said != (another.submit(run_binarise, "again").result() == first)
    write_params(bpe_dropout=0.1, segmentations=3)
    assert len(run_binarise("less")["train.source.ids.npy"]) < len(first["train.source.ids.npy"])
    write_params(bpe_dropout=0.3, segmentations=3, seed=2)
    assert run_binarise("other")["train.source.ids.npy"] != first["train.source.ids.npy"]
    assert all(first[name] == plain[name] for name in plain if name.startswith("dev."))
    data, vocabulary = open_binarised(Path("sampled"), "train"), Vocabulary(Path("vocabulary.model"))
    lines = len(SOURCE)
    assert (data.segmentations, len(data)) == (3, 3 * lines)
    differing = np.zeros(2, int)
    for line in range(lines):
        pairs = [data.pair(line + place * lines) for place in range(3)]
        assert {vocabulary.decode(source.tolist()) for source, _ in pairs} == {SOURCE[line]}
        assert {vocabulary.decode(target.tolist()) for _, target in pairs} == {TARGET[line]}
        differing += np.array([len(set(map(tuple, side))) > 1 for side in zip(*pairs)])
    assert min(differing) > 0.9 * lines, "on both sides"
    monkeypatch.setattr("pipeline.text.sets.BLOCK", 2)
    write_sets(Path("text"), {"train": ([SOURCE[0]] * 20, [TARGET[0]] * 20)})
    run_binarise("blocks")
    data = open_binarised(Path("blocks"), "train")
    assert len({tuple(data.pair(line)[0].tolist()) for line in range(20)}) > 15, "each block is sampled anew"


def test_ids_beyond_65535_take_four_bytes(tmp_path):
    blocks = [(np.array([65_536, 5]), np.array([1, 0, 1])), (np.array([69_999]), np.array([1]))]
    counts = [write_side(tmp_path, f"dev.{side}", iter(blocks), id_type(70_000)) for side in ("source", "target")]
    assert counts == [(4, 3)] * 2
    sets = {"dev": {"pairs": 4, "source_tokens": 3, "target_tokens": 3}}
    write_description(tmp_path, 70_000, "", ("en", "de"), sets)
    data = open_binarised(tmp_path, "dev")
    assert [data.pair(i)[0].tolist() for i in range(4)] == [[65_536], [], [5], [69_999]]


def changed(path: Path, change) -> None:
    path.write_text(change(path.read_text()))


def described(**changes) -> tuple:
    """Another description, which is found without reading the arrays."""
    return "binarised.json", lambda path: changed(path, lambda text: json.dumps(json.loads(text) | changes)), ""


COUNTS = {"pairs": 3, "source_tokens": 1, "target_tokens": 1}
DAMAGES = [
    ("train.source.ids.npy", cut, "is not the file that binarise wrote"),
    ("train.source.ids.npy", flip, "is not the file that binarise wrote"),
    ("train.source.ids.npy", Path.unlink, "is missing"),
    ("binarised.json", lambda path: changed(path, lambda text: text[:-9]), ""),
    ("binarised.json", Path.unlink, "is missing"),
    described(sum="0"),
    described(vocabulary_size="400"),
    described(sets={"train": {}}),
    described(sets={"train": COUNTS | {"segmentations": 2}}),  # three pairs are not the same lines twice
    described(sets={"train": COUNTS | {"segmentations": 0}}),
]


@pytest.mark.parametrize(("file", "damage", "expected"), DAMAGES)
def test_damaged_data_are_refused_by_the_name_of_the_file(folder, file, damage, expected):
    damage(Path("data") / file)
    with refused(f"data/{file} {expected}"):
        open_binarised(Path("data"), "train")


def test_another_vocabulary_or_set_is_refused(folder):
    own = Vocabulary(Path("vocabulary.model")).sha256
    open_binarised(Path("data"), "dev", vocabulary_sha256=own)
    with refused(f"with the vocabulary {own[:12]}; run binarise with the vocabulary {'0' * 12}"):
        open_binarised(Path("data"), "dev", vocabulary_sha256="0" * 64)
    with refused("no set 'tset'; there are train, dev"):
        open_binarised(Path("data"), "tset")


@given(st.integers(0, 60), st.integers(0, 60), st.sampled_from([2, 9, 1000]), st.booleans())
def test_a_sample_has_the_right_size_and_the_same_evenly_spaced_pairs(tmp_path_factory, total, pairs, size, end):
    path = tmp_path_factory.mktemp("sample") / "train.en"
    text = "".join(f"{number}\n" for number in range(total))
    path.write_text(text if end else text.removesuffix("\n"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipeline.text.sets.BLOCK", size)
        taken = [int(number) for number in b"".join(learn_bpe.sample(path, pairs, tqdm(disable=True))).split()]
    if pairs == 0 or pairs >= total:
        assert taken == list(range(total))
    else:
        gaps = np.diff([-1, *taken, total])
        assert len(taken) == pairs
        assert total // pairs <= gaps[:-1].min() and gaps.max() <= -(-total // pairs)


def test_the_vocabulary_is_learnt_from_the_sampled_training_pairs_only(folder):
    model = run_learn_bpe()
    shutil.copy("text/train.en", "text/dev.en")
    assert run_learn_bpe() == model
    write_params(sample_pairs=10, pieces=320)
    write_sets(Path("text"), {"train": [[line for line in side for _ in range(3)] for side in (SOURCE, TARGET)]})
    sampled = run_learn_bpe()
    write_params(pieces=320)
    write_sets(Path("text"), {"train": [side[2::3] for side in (SOURCE, TARGET)]})
    assert len(SOURCE) == 30
    assert run_learn_bpe() == sampled


def test_a_vocabulary_too_large_for_the_corpus_is_refused_with_its_key(folder):
    write_params(pieces=50_000)
    with refused("text: params.yaml: corpora.c.vocabulary.pieces: 50000 ", "at most "):
        run_learn_bpe()
