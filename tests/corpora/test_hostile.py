"""Untrusted text and files in every stage: handled as documented or refused in one line. Nothing is executed."""

import functools
import json
import pickle
import shutil
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from ruamel.yaml import YAML

from pipeline.settings.params import load
from tests import in_process
from tests.in_process import Refused
from tests.packed import write_sets
from tests.projects import ROOT, demonstration
from transformer.binarised import open_binarised
from transformer.cleaning import cleaner
from transformer.vocabulary import Vocabulary

LONG = "x" * 100_000
AWKWARD = [
    ("<pad> <s> </s> <0x41> \u2581", "<script>alert(1)</script> &amp; \\input{x} | `x`"),
    ("nul \x00 and bell \x07", "Nul \x00 und Glocke \x07"),
    ("a\rcarriage return", "ein\rWagenrücklauf\r"),
    ("line\u2028and paragraph\u2029separators", "Zeilen\u2028und\x85Absätze"),
    ("", "leer"),
    ("empty", ""),
    ("", ""),
    ("12 345,67 + 89", "12 345,67 + 89"),
    ("שלום עולם \u200f(العربية)", "مرحبا بالعالم"),
    ("👩\u200d👩\u200d👧 🇩🇪 smile 😀", "lächeln 😀 \uffff"),
]
LANGUAGES = ("en", "de")

pytestmark = pytest.mark.slow


def write_params() -> None:
    """Write params.yaml with a corpus of the test's files and a very small model."""
    params = load(ROOT / "params.yaml")
    files = {name: {la: f"text/{name}.{la}" for la in LANGUAGES} for name in ("train", "dev", "test")}
    sets = {name: [{"source": f["en"], "target": f["de"]}] for name, f in files.items()}
    params["corpora"]["own"] = {
        "languages": list(LANGUAGES),
        "download": sets,
        "normalise": {},
        "vocabulary": {"pieces": 500},
    }
    sizes = {"N": 1, "d_model": 16, "d_ff": 32, "h": 2, "d_k": 8, "d_v": 8}
    steps = {"steps": 10, "batch_tokens": 300, "micro_batch_tokens": 300, "checkpoint_every": 2, "evaluate_every": 5}
    params["runs"] = {"run": {"corpus": "own", "model": "tiny", **sizes, **steps, "log_every": 5}}
    params["corpora_in_use"] = ["own"]
    params["base"]["decoding"]["extra_length"] = 5
    with open("params.yaml", "w") as file:
        YAML(typ="safe").dump(params, file)


@functools.cache
def by_kind() -> dict[str, list[str]]:
    """The command of each stage by its kind, the name before `@`. Each kind has one stage here."""
    return {name.partition("@")[0]: command for name, command in in_process.commands().items()}


def run(kind: str) -> None:
    in_process.run(by_kind()[kind])


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder in which every stage has run on a corpus of ordinary and unusual lines."""
    folder = tmp_path_factory.mktemp("hostile")
    plain = demonstration("train", 60)
    with in_process.inside(folder):
        long = [(LONG, "kurz"), ("words " * 20_000, LONG)]
        sets = {"train": plain + AWKWARD + long, "dev": plain[:9] + AWKWARD, "test": AWKWARD}
        write_sets(folder / "text", {name: zip(*pairs) for name, pairs in sets.items()})
        write_params()
        for kind in by_kind():
            run(kind)
    return folder


@pytest.fixture
def folder(made, monkeypatch):
    monkeypatch.chdir(made)
    return made


def lines(path: Path) -> list[str]:
    return path.read_bytes().decode().removesuffix("\n").split("\n")


def test_every_untrusted_line_is_encoded_and_decoded_without_loss(folder):
    vocabulary = Vocabulary(Path("data/own/vocabulary.model"))
    for name in ("train", "dev"):
        pairs = open_binarised(Path("data/own/binarised"), name)
        for side, language in enumerate(LANGUAGES):
            ids = [pairs.pair(number)[side].tolist() for number in range(len(pairs))]
            assert vocabulary.decode(ids) == [
                line.replace("\u2581", " ") for line in lines(Path(f"data/own/normalised/{name}.{language}"))
            ]
    clean = cleaner(entities=True, nfc=True, punctuation=False, language="en")
    assert lines(Path("data/sets/own-test/normalised.en")) == [clean(f"{source}\n")[:-1] for source, _ in AWKWARD]
    counts = json.loads(Path("scores/corpora/own/normalise.json").read_text())["sets"]
    assert counts["train"]["dropped"]["empty"] == 3 and counts["train"]["kept"] == 69
    assert counts["test"]["empty"] == {"en": 2, "de": 2} and counts["test"]["kept"] == len(AWKWARD)
    assert json.loads(Path("scores/run/training.json").read_text())["pairs_left_out"] >= 2, "the long lines are left out"


def test_every_line_has_a_translation_and_an_empty_line_an_empty_one(folder):
    translations = lines(Path("scores/run/translations/test.average.txt"))
    assert len(translations) == len(AWKWARD)
    assert [number for number, (source, _) in enumerate(AWKWARD) if not source and translations[number]] == []
    assert json.loads(Path("scores/run/score.json").read_text())["test"]["average"]["pairs"] == len(AWKWARD)


def test_the_report_shows_untrusted_text_as_text(folder):
    page = Path("reports/index.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page and "&lt;script&gt;alert" in page
    for figure in Path("reports/figures").glob("*.svg"):
        ElementTree.parse(figure)


@pytest.mark.parametrize(
    ("name", "stage", "says"),
    [
        ("dev", "train", "the target of dev line 20 has .* pieces"),
        ("test", "decode", "test average: line 11 is .* pieces long"),
    ],
)
def test_a_line_too_long_to_evaluate_or_translate_is_refused_at_the_start(made, tmp_path, monkeypatch, name, stage, says):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    for language in LANGUAGES:
        path = f"data/own/normalised/dev.{language}" if name == "dev" else f"data/sets/own-test/normalised.{language}"
        with open(path, "a") as file:
            file.write(f"{LONG}\n")
    run("binarise")
    with pytest.raises(Refused, match=says):
        run(stage)


class Payload:
    """An object that creates the file `evil` when it is unpickled."""

    def __reduce__(self):
        return open, ("evil", "w")


def as_pickle(path: Path) -> None:
    path.write_bytes(pickle.dumps(Payload()))


def as_array(path: Path) -> None:
    with open(path, "wb") as file:
        np.save(file, np.array([Payload()], dtype=object), allow_pickle=True)


def as_archive(path: Path) -> None:
    arrays = {f"0.{kind}": np.array([Payload()], dtype=object) for kind in ("encoder", "decoder", "cross")}
    with open(path, "wb") as file:
        np.savez(file, **arrays)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def other_vocabulary(path: Path) -> None:
    path.write_text(path.read_text().replace('"vocabulary_sha256": "', '"vocabulary_sha256": "0'))


@pytest.mark.parametrize(
    ("stage", "file", "spoil"),
    [
        ("learn_bpe", "data/own/normalised/train.en", Path.unlink),
        ("binarise", "data/own/vocabulary.model", as_pickle),
        ("binarise", "data/own/vocabulary.model", cut),
        ("train", "data/own/binarised/train.source.ids.npy", as_pickle),
        ("train", "data/own/binarised/train.source.ids.npy", as_array),
        ("train", "data/own/binarised/dev.target.offsets.npy", cut),
        ("train", "data/own/binarised/binarised.json", as_pickle),
        ("train", "data/own/binarised/binarised.json", other_vocabulary),
        ("average", "models/run/checkpoints/step-00000010.safetensors", as_pickle),
        ("average", "models/run/checkpoints/step-00000010.safetensors", cut),
        ("average", "models/run/checkpoints/settings.json", as_pickle),
        ("average", "models/run/checkpoints/settings.json", cut),
        ("average", "models/run/checkpoints/settings.json", other_vocabulary),
        ("decode", "models/run/average/model.safetensors", as_pickle),
        ("decode", "models/run/average/model.safetensors", cut),
        ("decode", "models/run/average/vocabulary.model", as_pickle),
        ("decode", "models/run/average/settings.json", other_vocabulary),
        ("decode", "data/sets/own-test/normalised.en", as_pickle),
        ("score", "scores/run/translations/test.average.txt", as_pickle),
        ("score", "scores/run/translations/test.average.txt", cut),
        ("flops", "scores/run/training.json", as_pickle),
        ("report", "work/times/run/training.json", cut),
        ("flops", "scores/corpora/own/binarise.json", cut),
        ("result", "scores/run/score.json", cut),
        ("result", "scores/run/training.jsonl", as_pickle),
        ("report", "results/run.json", cut),
        ("report", "scores/run/translations/attention.npz", as_pickle),
        ("report", "scores/run/translations/attention.npz", as_array),
        ("report", "scores/run/translations/attention.npz", as_archive),
        ("report", "scores/run/translations/attention.npz", cut),
        ("report", "scores/run/translations/attention.json", cut),
    ],
)  # fmt: skip
def test_a_damaged_file_is_named_in_one_line_and_nothing_is_executed(folder, stage, file, spoil):
    path = Path(file)
    good, before = path.read_bytes(), outputs(folder, path)
    try:
        spoil(path)
        with pytest.raises(Refused) as raised:
            run(stage)
    finally:
        path.write_bytes(good)
    assert path.name in str(raised.value) or str(path.parent) in str(raised.value)
    assert len(str(raised.value)) < 500
    assert outputs(folder, path) == before, "a file was created, changed or removed"


def outputs(folder: Path, spoilt: Path) -> dict[Path, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and "work" not in path.parts)
    return {path: path.read_bytes() for path in files if path != folder / spoilt}
