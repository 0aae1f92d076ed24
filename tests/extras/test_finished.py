"""The whole project has run on unusual text, with runs in both directions and one on a back-translation.

Text and files of others are handled as documented or refused in one line. Nothing in them is executed.
"""

import csv
import json
import pickle
import re
import shutil
from argparse import Namespace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from dvc.dependency import param

from pipeline import code
from pipeline.commands.evaluate import System, common_set
from pipeline.extras.back_translation.settings import decoder
from pipeline.extras.reverse_scores.reverse import source_log_prob, source_probability
from pipeline.extras.search.settings import NOT_SEARCHED
from pipeline.extras.values import train_value as values
from pipeline.extras.values.settings import value_run
from pipeline.running.devices import definitions
from pipeline.running.unchanged import listed
from pipeline.settings.params import load
from pipeline.text.binarised import SIDES, describe, open_binarised
from pipeline.text.evaluation import EvaluationSet
from tests.support import in_process
from tests.support.back_translations import TINY, entry, with_runs
from tests.support.in_process import Refused
from tests.support.killed import kill
from tests.support.observed import declared, observing
from tests.support.packed import Payload, cut, write_sets
from tests.support.projects import ENVIRONMENT, ROOT, STAGES, demonstration
from tests.support.refusals import refused
from tests.support.small_run import write_params_yaml
from tests.support.trainers import files
from transformer import value
from transformer.cleaning import cleaner
from transformer.config.vocabulary import BOS, EOS, PAD
from transformer.decoders.registry import decoder_of
from transformer.translator import Translator
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
DECODINGS = {"same": {}, "drawn": {"decoder": "sampling"}}
DECODINGS |= {"searched": {"model": "values/source", "decoder": "value_beam"}}
SEARCH = {"corpus": "own", "model": "tiny", "trials": 1, "steps": 2, "metric": "dev_bleu", "seed": 1}
SEARCH |= {"space": {name: [value] for name, value in TINY.items() if name not in NOT_SEARCHED}}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folder in which all stages have run, and the command of each stage by its name."""
    folder = tmp_path_factory.mktemp("finished")
    long = [(LONG, "kurz"), ("words " * 20_000, LONG)]
    dev = demonstration("dev", 10) + AWKWARD[:7] + AWKWARD[8:]
    sets = {"train": demonstration("train", 120) + AWKWARD + long, "dev": dev}
    sets |= {"test": AWKWARD, "more": demonstration("train", 160)[120:] + demonstration("dev", 1) + AWKWARD[7:8]}
    write_sets(folder / "text", {name: zip(*pairs) for name, pairs in sets.items()})
    back_translation = entry(ratio=0.25, decoding={"decoder": "sampling", "top_k": 5, "extra_length": 9})
    params = with_runs(load(ROOT / "params.yaml"), back_translation, DECODINGS)
    params["sets"] = {"more": {"corpus": "own", "source": "text/more.en", "target": "text/more.de"}}
    params["ensembles"] = {"both": {"first": "forward/average", "second": "forward/average"}}
    params["values"] = {"chrf": {"model": "forward/average", "corpus": "own", "sentences": 20, "steps": 20}}
    params["searches"] = {"small": SEARCH}
    params["warm_starts"] = {"own-ws": {"corpus": "own", "model": "forward/average"}}
    params["runs"]["adapted"] = {"corpus": "own-ws", "model": "best", **TINY, "dropout": 0.3}
    params["base"]["decoding"]["attention_sentences"] = 0  # whose pictures take seconds
    best = {"averaging": {"choose": "dev_bleu", "checkpoints": 2}, "decoding": {"attention_sentences": 1}}
    params["models"]["best"] = params["models"]["tiny"] | best
    write_params_yaml(folder, params)
    left = folder / "scores/decodings/removed/decoding.json"  # DVC keeps the files of a removed line
    left.parent.mkdir(parents=True)
    left.write_text('{"set": "own-test"}')
    with in_process.inside(folder):
        stages = in_process.commands()
        with observing() as found:
            for command in stages.values():
                in_process.run(command)
    return folder, stages, dict(zip(stages, found, strict=True))


@pytest.fixture
def folder(made, monkeypatch):
    monkeypatch.chdir(made[0])
    return made[0]


def lines(path: str) -> list[str]:
    return Path(path).read_bytes().decode().removesuffix("\n").split("\n")


def content(path: str):
    return json.loads(Path(path).read_text())


# Unusual text


def test_every_untrusted_line_is_encoded_and_decoded_without_loss(folder):
    vocabulary = Vocabulary(Path("data/own/vocabulary.model"))
    for name in ("train", "dev"):
        pairs = open_binarised(Path("data/own/binarised"), name)
        for side, language in enumerate(LANGUAGES):
            decoded = vocabulary.decode([pairs.pair(number)[side].tolist() for number in range(len(pairs))])
            written = lines(f"data/own/normalised/{name}.{language}")
            assert decoded == [line.replace("\u2581", " ") for line in written]
    clean = cleaner(entities=True, nfc=True, punctuation=False, language="en")
    assert lines("data/sets/own-test/normalised.en") == [clean(f"{source}\n")[:-1] for source, _ in AWKWARD]
    counts = content("scores/corpora/own/normalise.json")["sets"]
    assert counts["train"]["dropped"]["empty"] == 3 and counts["train"]["kept"] == 129
    assert counts["test"]["empty"] == {"en": 2, "de": 2} and counts["test"]["kept"] == len(AWKWARD)
    left_out = content("scores/forward/training.json")["pairs_left_out"]
    assert left_out >= 2, "the long lines are left out"
    page = Path("reports/index.html").read_text(encoding="utf-8")
    for said in ("normalise@own: train: 3 of 132 ", "2 empty references (de)", f"train@forward: train: {left_out} of 129 "):
        assert said in page, said


def test_every_line_has_a_translation_and_the_report_shows_untrusted_text_as_text(folder):
    translations = lines("scores/forward/translations/test.average.txt")
    assert len(translations) == len(AWKWARD)
    assert [number for number, (source, _) in enumerate(AWKWARD) if not source and translations[number]] == []
    score = content("scores/forward/score.json")["test"]["average"]
    same = content("scores/decodings/same/score.json")["set"]
    assert score["pairs"] == len(AWKWARD) and score == same, "the same text, model and settings"
    page = Path("reports/index.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page and "&lt;script&gt;alert" in page
    for figure in Path("reports/figures").glob("*.svg"):
        ElementTree.parse(figure)


@pytest.mark.parametrize(
    ("name", "stage", "says"),
    [
        ("data/own/normalised/dev", "train", "the target of dev line 20 has .* pieces"),
        ("data/sets/own-test/normalised", "decode", "test average: line 11 is .* pieces long"),
    ],
)
def test_a_line_too_long_to_evaluate_or_translate_is_refused_at_the_start(made, here, name, stage, says):
    shutil.copytree(made[0], here, dirs_exist_ok=True)
    for language in LANGUAGES:
        with open(f"{name}.{language}", "a") as file:
            file.write(f"{LONG}\n")
    in_process.run(made[1]["binarise@own"])
    with pytest.raises(Refused, match=says):
        in_process.run(made[1][f"{stage}@forward"])


# Damaged files


def as_pickle(path: Path) -> None:
    path.write_bytes(pickle.dumps(Payload()))


def as_archive(path: Path) -> None:
    arrays = {f"0.{kind}": np.array([Payload()], dtype=object) for kind in ("encoder", "decoder", "cross")}
    with open(path, "wb") as file:
        np.savez(file, **arrays)


def other_vocabulary(path: Path) -> None:
    path.write_text(path.read_text().replace('"vocabulary_sha256": "', '"vocabulary_sha256": "0'))


@pytest.mark.parametrize(
    ("stage", "file", "spoil"),
    [
        ("learn_bpe@own", "data/own/normalised/train.en", Path.unlink),
        ("binarise@own", "data/own/vocabulary.model", as_pickle),
        ("binarise@own", "data/own/vocabulary.model", cut),
        ("train@forward", "data/own/binarised/train.source.ids.npy", as_pickle),
        ("train@forward", "data/own/binarised/binarised.json", other_vocabulary),
        ("average@forward", "models/forward/checkpoints/step-00000010.safetensors", as_pickle),
        ("average@forward", "models/forward/checkpoints/settings.json", cut),
        ("average@forward", "models/forward/checkpoints/settings.json", other_vocabulary),
        ("decode@forward", "models/forward/average/model.safetensors", cut),
        ("decode@forward", "models/forward/average/settings.json", other_vocabulary),
        ("decode@forward", "data/sets/own-test/normalised.en", as_pickle),
        ("score@forward", "scores/forward/translations/test.average.txt", as_pickle),
        ("score@forward", "scores/forward/translations/test.average.txt", cut),
        ("flops@forward", "scores/corpora/own/binarise.json", cut),
        ("result@forward", "scores/forward/score.json", cut),
        ("result@forward", "scores/forward/training.jsonl", as_pickle),
        ("report", "work/times/forward/training.json", cut),
        ("report", "results/forward.json", cut),
        ("report", "scores/adapted/translations/attention.npz", as_archive),
        ("report", "scores/adapted/translations/attention.npz", cut),
    ],
)  # fmt: skip
def test_a_damaged_file_is_named_in_one_line_and_nothing_is_executed(made, folder, stage, file, spoil):
    path = Path(file)
    good, before = path.read_bytes(), outputs(folder, path)
    try:
        spoil(path)
        with pytest.raises(Refused) as raised:
            in_process.run(made[1][stage])
    finally:
        path.write_bytes(good)
    assert path.name in str(raised.value) or str(path.parent) in str(raised.value)
    assert len(str(raised.value)) < 500
    assert outputs(folder, path) == before, "a file was created, changed or removed"


def outputs(folder: Path, *spoilt: Path) -> dict[str, bytes]:
    """The bytes of all files outside work/ by their paths, without those of `spoilt`."""
    return {str(path): data for path, data in files(folder).items() if "work" not in path.parts and path not in spoilt}


# The back-translation, and what depends on the run of the other direction


def test_reverse_scores_are_log_probabilities_of_the_source_by_the_run_of_the_other_direction(folder):
    """The reference is torch's cross-entropy of the logits, one pair at a time."""
    found = content("scores/reverse_scores/own.json")
    assert (found["model"], found["set"]) == ("reverse/average", "own-test")
    assert list(found["decodings"]) == sorted(DECODINGS)
    translator = Translator.load("models/reverse/average")
    sources = translator.encode(lines("data/sets/own-test/normalised.en"))
    texts = {name: f"scores/decodings/{name}/translation.txt" for name in DECODINGS}
    texts["references"] = "data/sets/own-test/normalised.de"
    for name, path in texts.items():
        scores = found["references"] if name == "references" else found["decodings"][name]
        for line, source, score in zip(lines(path), sources, scores, strict=True):
            given = torch.tensor([[*translator.encode(translator.normalise([line]))[0], EOS]])
            with torch.no_grad():
                logits = translator.model(given, torch.tensor([[BOS, *source]]))[0]
            logits[:, [PAD, BOS]] = float("-inf")
            loss = F.cross_entropy(logits, torch.tensor([*source, EOS]))
            assert score == pytest.approx(-loss.item() * (len(source) + 1), abs=1e-3)
            (probability,) = source_probability(translator, [line], translator.vocabulary.decode([source]))
            assert probability == pytest.approx(loss.neg().exp().item(), rel=1e-3)
    rows = {row["decoding"]: row for row in csv.DictReader(Path("reports/decoding.csv").read_text().splitlines())}
    assert source_log_prob(translator, [""], [[5, 6]])[0] < -1, "also of an empty translation"
    for name, scores in found["decodings"].items():
        mean = sum(scores) / len(AWKWARD)
        assert float(rows[name]["source log-probability"]) == pytest.approx(mean, abs=0.01)


def test_a_value_is_trained_for_the_probability_of_the_source(folder):
    of_value = content("scores/values/source.json")
    assert (of_value["reverse"], of_value["settings"]["score"]) == ("reverse/average", "source_probability")
    assert of_value["dev"]["prefixes"] != of_value["prefixes"], "the samples of dev are not those of the training text"
    run, cpu = value_run(load(), "source"), torch.device("cpu")
    translator = Translator.load("models/forward/average", cpu, **vars(run.samples.config))
    scored = values.scores_of(run, Namespace(reverse="models/reverse/average"), "de", cpu)
    dev = values.prefixes(translator, EvaluationSet.open(Path("data/sets/own-dev")).lines("normalised"), run, scored, "dev")
    head, _ = value.load(Path("models/values/source", value.VALUE), dev.hidden_MD.shape[1], cpu)
    loss = F.cross_entropy(head.logits(dev.hidden_MD), head.target(dev.score_M)).item()
    of_length = np.corrcoef(dev.length_M, dev.score_M)[0, 1]
    measured = {"loss": loss, "mean_value": head(dev.hidden_MD).mean().item(), "correlation_of_length": of_length}
    assert {key: of_value["dev"][key] for key in measured} == pytest.approx(measured, abs=1e-4), "of the head that is saved"
    assert content("results/values/source.json") == {"name": "source", **of_value}
    assert content("scores/decodings/searched/decoding.json")["settings"]["decoding"]["value"] == "source"


def test_the_data_of_a_run_are_those_of_the_corpus_and_the_synthetic_pairs(folder):
    data = folder / "data"
    for part in ("dev", "test"):
        assert outputs(data / f"sets/own-bt-{part}") == outputs(data / f"sets/own-{part}")
    for name in ("vocabulary.model", "text.json"):
        assert (data / "own-bt" / name).read_bytes() == (data / "own" / name).read_bytes()
    text = content("models/augmented/average/text.json")
    assert text == {"languages": ["en", "de"], "entities": True, "nfc": True, "punctuation": False}
    own, mixture = outputs(data / "own/binarised"), outputs(data / "own-bt/binarised")
    assert own.keys() == mixture.keys()
    changed = {"binarised.json", *(f"train.{side}.{kind}.npy" for side in SIDES for kind in ("ids", "offsets"))}
    assert {name for name in own if own[name] != mixture[name]} == changed
    sources, targets = (lines(f"data/own-bt/synthetic/train.{code}") for code in LANGUAGES)
    assert 30 < len(sources) == len(targets) <= 42 and set(targets) <= set(lines("text/more.de"))
    assert content("scores/corpora/own-bt/back_translate.json")["sets"]["synthetic"]["in_evaluation"] == 2, (
        "one of dev, one of test"
    )
    chosen, clean = decoder(load(), "own-bt"), cleaner(entities=True, nfc=True, punctuation=False, language="en")
    translator = Translator.load("models/reverse/average", "cpu", **vars(chosen.config))
    drawn = translator.n_best(lines("data/own-bt/monolingual/train.de"), "x", 1, decoder=decoder_of(chosen))
    assert set(sources) <= {clean(f"{text}\n")[:-1] for text in translator.text([best for (best,) in drawn])}
    assert len(open_binarised(data / "own-bt/binarised", "train")) == max(129, 4 * len(sources)) + len(sources)


def test_a_run_on_a_warm_start_has_the_vocabulary_the_weights_and_the_ids_of_its_model(folder):
    data, model = folder / "data/own-ws", folder / "models/forward/average"
    assert (data / "vocabulary.model").read_bytes() == (model / "vocabulary.model").read_bytes()
    assert (data / "binarised/initial.safetensors").read_bytes() == (model / "model.safetensors").read_bytes()
    own = {name: ids for name, ids in outputs(folder / "data/own/binarised").items() if name.endswith(".npy")}
    assert own.items() <= outputs(data / "binarised").items(), "the text is the same"
    assert content("scores/adapted/training.json")["initial"] == "forward/average"
    runs = csv.DictReader(lines("reports/runs.csv"))
    assert [run["corpus"] for run in runs if "begins with forward/average" in run["differences"]] == ["own-ws"]


def test_everything_that_knows_runs_knows_a_run_on_a_back_translation(folder, monkeypatch):
    assert content("scores/augmented/score.json").keys() == content("scores/forward/score.json").keys()
    assert content("scores/augmented/training.json")["data_sum"] == describe(Path("data/own-bt/binarised"))["sum"]
    page = Path("reports/index.html").read_text()
    assert "augmented" in page and "own-bt" in page
    forward, augmented, reverse = (System.named(load(), name) for name in ("forward", "augmented", "reverse"))
    assert common_set([forward, augmented]) == "own-test", "the same text under two names"
    with refused("translations of two sets"):
        common_set([forward, reverse])
    for name in ("load_path", "dpath"):  # which the commands replace, for one process
        monkeypatch.setattr(param, name, getattr(param, name))
    for command, said in (("plan", " stages would run"), ("status", "own-bt")):
        status, out, errors = in_process.started([f"pipeline.commands.{command}"])
        assert status == 0 and said in out, errors


# dvc.yaml declares what a stage reads and writes, and the digest of its code what it runs

UNREAD = {"work/code/": "DVC compares it", "hardware": "of GPUs", "peak_tflops": "of GPUs"}
RETURNED = {  # by modules that change no result
    "code.py": "a digest, which names folders in work/ and is compared",
    "unchanged.py": "what is compared at the end of a stage",
    "client.py": "a context without a value",
}


def below(path: str, places: list[str], separator: str) -> bool:
    return any(path == place or path.startswith(place + separator) for place in places)


def inserted(kind: str, name: str) -> list[str]:
    """The settings of an entry that dvc.yaml inserts into commands and paths, which DVC compares."""
    definition = definitions()[kind]
    block = definition.get("foreach", "").strip("${}")
    return [f"{block}.{name}.{key}" for key in re.findall(r"\$\{item\.(\w+)\}", str(definition))]


def test_what_a_stage_reads_and_writes_is_declared(made, folder):
    """Also read are `machine`, which changes no result, and what the stage itself has written."""
    of_stages, params = declared(), load()
    for stage, seen in made[2].items():
        of, (kind, _, name) = of_stages[stage], stage.partition("@")
        for key in ("params", "deps"):
            assert sorted(listed(stage, params, key)) == sorted(of[key]), "DVC compares what the stage itself compares"
        settings = [*of["params"], *inserted(kind, name), "machine"]
        assert {path for path in seen.settings if not below(path, settings, ".")} == set(), f"{stage}: params"
        assert {path for path in seen.read if not below(path, of["deps"] + of["outs"], "/")} == set(), f"{stage}: deps"
        outs = [*of["outs"], *["results/times"] * (stage == "report")]  # times are no results
        assert {path for path in seen.written if not below(path, outs, "/")} == set(), f"{stage}: outs"
        assert seen.programs <= {"git"}, f"{stage}: what other programs read is not seen"


def test_what_is_declared_is_read_and_written(made, folder):
    """By one of the entries of a stage."""
    left: dict[tuple, str] = {}
    used = set()
    for stage, of in declared().items():
        for section, separator in (("params", "."), ("deps", "/"), ("outs", "/")) if stage in made[2] else ():
            seen = {"params": made[2][stage].settings, "deps": made[2][stage].read, "outs": made[2][stage].written}[section]
            for number, place in enumerate(of[section]):
                line = stage.partition("@")[0], section, number
                left[line] = place
                used |= {line for path in seen if below(path, [place], separator)}
    assert {line[0] for line in left} == set(STAGES) - {"code"}, "a stage has not run"
    assert [left[line] for line in left.keys() - used if not left[line].startswith(tuple(UNREAD))] == []
    for name in UNREAD:
        assert any(place.startswith(name) for place in left.values()), f"{name} is in UNREAD, and dvc.yaml has no such line"


def test_an_edit_of_a_back_translation_concerns_one_of_its_stages(folder):
    """And those after it, if its outputs change."""
    concerned = {"ratio": "augment", "decoding.beam": "back_translate", "monolingual.first": "fetch_monolingual"}
    of_stages = declared()
    for key, stage in concerned.items():
        edited = f"back_translations.own-bt.{key}"
        found = {name for name, of in of_stages.items() if below(edited, of["params"], ".")}
        assert found == {f"{stage}@own-bt", "report"}, key


def test_a_module_that_runs_is_in_the_digest_and_one_outside_gives_and_reads_nothing(made):
    digested = {kind: code.closure(script).keys() for kind, script in code.scripts().items()}
    for stage, seen in made[2].items():
        assert seen.modules <= digested[stage.partition("@")[0]], stage
        assert seen.opened_by_listed == set(), stage
        assert [place for place in seen.returned_by_listed if not place.split(":")[0].endswith(tuple(RETURNED))] == [], (
            stage
        )
    assert sum(bool(seen.modules) for seen in made[2].values()) == len(code.scripts()) - 1, (
        "all but the report's are traced"
    )


@pytest.mark.more
@pytest.mark.parametrize("kind", ["fetch_monolingual", "back_translate", "augment"])
def test_a_stage_killed_and_run_again_writes_the_same_bytes(made, kind):
    folder, stages, _ = made
    before = outputs(folder)
    module, *arguments = stages[f"{kind}@own-bt"]
    kill(module, arguments, folder, ENVIRONMENT)
    with in_process.inside(folder):
        in_process.run([module, *arguments])  # as `made` ran it: other variables can mean other arithmetic
    assert outputs(folder) == before
