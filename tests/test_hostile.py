"""Text and files of strangers, through every stage: handled as documented or refused in one line, and nothing executed."""

import json
import pickle
import shutil
import signal
from argparse import Namespace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from ruamel.yaml import YAML

from pipeline import average, binarise, decode, download, flops, learn_bpe, normalise, report, score, train
from pipeline.corpora.cleaning import cleaner
from pipeline.corpora.demonstration.grammar import generate
from pipeline.settings.download import GeneratorConfig
from pipeline.settings.params import load
from tests.imports import ROOT
from transformer.binarised import open_binarised
from transformer.config.reading import UserError
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


def write_sets(folder: Path, sets: dict[str, list[tuple[str, str]]]) -> None:
    folder.mkdir(exist_ok=True)
    for name, pairs in sets.items():
        for language, lines in zip(LANGUAGES, zip(*pairs), strict=True):
            (folder / f"{name}.{language}").write_bytes("".join(f"{line}\n" for line in lines).encode())


def write_params() -> None:
    """params.yaml with a corpus of the test's own files and a very small model."""
    params = load(ROOT / "params.yaml")
    files = {name: {la: f"own/{name}.{la}" for la in LANGUAGES} for name in ("train", "dev", "test")}
    sets = {name: [{"source": f["en"], "target": f["de"]}] for name, f in files.items()}
    params["corpora"]["own"] = {
        "languages": list(LANGUAGES),
        "download": sets,
        "normalise": {},
        "vocabulary": {"size": 500},
    }
    sizes = {"N": 1, "d_model": 16, "d_ff": 32, "h": 2, "d_k": 8, "d_v": 8}
    steps = {"steps": 10, "batch_tokens": 300, "micro_batch_tokens": 300, "checkpoint_every": 2, "evaluate_every": 5}
    params["runs"] = {"run": {"corpus": "own", "model": "tiny", **sizes, **steps, "log_every": 5}}
    params["corpora_in_use"] = ["own"]
    params["base"]["decoding"]["extra_length"] = 5
    with open("params.yaml", "w") as file:
        YAML(typ="safe").dump(params, file)


PATHS = {
    "download": {"out": "raw"},
    "normalise": {"raw": "raw", "out": "text", "report": "scores/corpora/own/normalise.json"},
    "learn_bpe": {"text": "text", "out": "vocabulary.model"},
    "binarise": {"text": "text", "vocabulary": "vocabulary.model", "out": "ids", "report": "scores/corpora/own/binarise.json"},
    "train": {"data": "ids", "vocabulary": "vocabulary.model", "out": "checkpoints", "scores": "scores/run", "times": "work/times/run/training.json"},
    "average": {"checkpoints": "checkpoints", "vocabulary": "vocabulary.model", "out": "average"},
    "decode": {"checkpoints": "checkpoints", "average": "average", "text": "text", "out": "scores/run/translations", "times": "work/times/run/decoding.json"},
    "score": {"translations": "scores/run/translations", "raw": "raw", "out": "scores/run/score.json", "metrics": "scores/run/metrics.json"},
    "flops": {"training": "scores/run/training.json", "corpus": "scores/corpora/own/binarise.json", "out": "scores/run/flops.json"},
    "report": {"scores": "scores", "times": "work/times", "results": "results", "out": "reports"},
}  # fmt: skip
STAGES = {module.__name__.rpartition(".")[2]: module for module in (download, normalise, learn_bpe, binarise, train, average, decode, score, flops, report)}  # fmt: skip


def run(name: str) -> None:
    """One stage, in this process, on the folders of PATHS."""
    paths = {key: Path(value) for key, value in PATHS[name].items()}
    assert not STAGES[name].main(Namespace(**{"corpus": "own", "run": "run", **paths}))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder in which every stage has run on a corpus of plain and of awkward lines."""
    folder = tmp_path_factory.mktemp("hostile")
    plain = [pair for name, *pair in generate(GeneratorConfig(seed=1, train=60, dev=1, test=1)) if name == "train"]
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        long = [(LONG, "kurz"), ("words " * 20_000, LONG)]
        write_sets(folder / "own", {"train": plain + AWKWARD + long, "dev": plain[:9] + AWKWARD, "test": AWKWARD})
        write_params()
        for name in STAGES:
            run(name)
    for number, handler in handlers.items():
        signal.signal(number, handler)
    return folder


@pytest.fixture
def folder(made, monkeypatch):
    monkeypatch.chdir(made)
    return made


def lines(path: Path) -> list[str]:
    return path.read_bytes().decode().removesuffix("\n").split("\n")


def test_every_line_of_strangers_becomes_ids_and_comes_back(folder):
    vocabulary = Vocabulary(Path("vocabulary.model"))
    for name in ("train", "dev", "test"):
        pairs = open_binarised(Path("ids"), name)
        for side, language in enumerate(LANGUAGES):
            ids = [pairs.pair(number)[side].tolist() for number in range(len(pairs))]
            assert vocabulary.decode(ids) == [
                line.replace("\u2581", " ") for line in lines(Path(f"text/{name}.{language}"))
            ]
    clean = cleaner(entities=True, nfc=True, punctuation=False, language="en")
    assert lines(Path("text/test.en")) == [clean(f"{source}\n")[:-1] for source, _ in AWKWARD]
    counts = json.loads(Path("scores/corpora/own/normalise.json").read_text())["sets"]
    assert counts["train"]["dropped"]["empty"] == 3 and counts["train"]["kept"] == 69
    assert counts["test"]["empty"] == {"en": 2, "de": 2} and counts["test"]["kept"] == len(AWKWARD)
    assert json.loads(Path("scores/run/training.json").read_text())["pairs_left_out"] >= 2, "the long lines"


def test_every_line_has_a_translation_and_an_empty_one_its_own(folder):
    translations = lines(Path("scores/run/translations/test.average.txt"))
    assert len(translations) == len(AWKWARD)
    assert [number for number, (source, _) in enumerate(AWKWARD) if not source and translations[number]] == []
    assert json.loads(Path("scores/run/score.json").read_text())["test"]["average"]["pairs"] == len(AWKWARD)


def test_the_report_shows_strangers_text_as_text(folder):
    page = Path("reports/index.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page and "&lt;script&gt;alert" in page
    for figure in Path("reports/figures").glob("*.svg"):
        ElementTree.parse(figure)


@pytest.mark.parametrize(
    ("name", "stage", "says"),
    [("dev", "train", "a dev line is .* pieces long"), ("test", "decode", "test average: line 11 is .* pieces long")],
)
def test_a_line_too_long_to_evaluate_or_translate_is_refused_before_the_hours_it_takes(
    made, tmp_path, monkeypatch, name, stage, says
):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    for language in LANGUAGES:
        with open(f"text/{name}.{language}", "a") as file:
            file.write(f"{LONG}\n")
    run("binarise")
    with pytest.raises(UserError, match=says):
        run(stage)


class Payload:
    """Unpickled, it makes the file `evil`."""

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
        ("learn_bpe", "text/train.en", Path.unlink),
        ("binarise", "vocabulary.model", as_pickle),
        ("binarise", "vocabulary.model", cut),
        ("train", "ids/train.source.ids.npy", as_pickle),
        ("train", "ids/train.source.ids.npy", as_array),
        ("train", "ids/dev.target.offsets.npy", cut),
        ("train", "ids/binarised.json", as_pickle),
        ("train", "ids/binarised.json", other_vocabulary),
        ("average", "checkpoints/step-00000010.safetensors", as_pickle),
        ("average", "checkpoints/step-00000010.safetensors", cut),
        ("average", "checkpoints/settings.json", as_pickle),
        ("average", "checkpoints/settings.json", cut),
        ("average", "checkpoints/settings.json", other_vocabulary),
        ("decode", "average/model.safetensors", as_pickle),
        ("decode", "average/model.safetensors", cut),
        ("decode", "average/vocabulary.model", as_pickle),
        ("decode", "average/settings.json", other_vocabulary),
        ("decode", "text/test.en", as_pickle),
        ("score", "scores/run/translations/test.average.txt", as_pickle),
        ("score", "scores/run/translations/test.average.txt", cut),
        ("flops", "scores/run/training.json", as_pickle),
        ("report", "work/times/run/training.json", cut),
        ("flops", "scores/corpora/own/binarise.json", cut),
        ("report", "scores/run/score.json", cut),
        ("report", "scores/run/training.jsonl", as_pickle),
        ("report", "scores/run/translations/attention.npz", as_pickle),
        ("report", "scores/run/translations/attention.npz", as_array),
        ("report", "scores/run/translations/attention.npz", as_archive),
        ("report", "scores/run/translations/attention.npz", cut),
        ("report", "scores/run/translations/attention.json", cut),
    ],
)  # fmt: skip
def test_a_spoilt_file_is_named_in_one_line_and_nothing_is_executed(folder, stage, file, spoil):
    path = Path(file)
    good, outputs = (
        path.read_bytes(),
        {f: f.read_bytes() for f in folder.rglob("*") if f.is_file() and f != folder / path},
    )
    try:
        spoil(path)
        with pytest.raises((UserError, OSError)) as raised:
            run(stage)
    finally:
        path.write_bytes(good)
    assert path.name in str(raised.value) or str(path.parent) in str(raised.value)
    assert len(str(raised.value)) < 500
    after = {
        f: f.read_bytes() for f in folder.rglob("*") if f.is_file() and f != folder / path and "work" not in f.parts
    }
    assert after == {f: content for f, content in outputs.items() if "work" not in f.parts}, (
        "no `evil`, and nothing lost"
    )
