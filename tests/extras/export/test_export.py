"""Exported models give the same translations as this project."""

import functools
import json
import re
import shutil
import sys
from ast import literal_eval
from dataclasses import replace
from pathlib import Path

import ctranslate2
import numpy as np
import pytest
import torch
import torch.nn.functional as F
import transformers
from safetensors.torch import load_file

from benchmarks.decoding import SYSTEMS
from pipeline.extras.export.__main__ import FORMATS, marian_config, require_exportable
from pipeline.extras.export.model_card import card
from pipeline.learn_bpe import learn
from pipeline.settings.vocabulary import VocabularyConfig
from tests.support import in_process
from tests.support.projects import ROOT
from tests.support.random_weights import WORDS, random_model
from tests.support.refusals import refused
from transformer.checkpoint import VOCABULARY, WEIGHTS, load_model, write_settings, write_tensors
from transformer.config.decoding import DecodingConfig
from transformer.config.model import base
from transformer.config.vocabulary import BOS, EOS, PAD
from transformer.decoders.beam import PLAIN, Beam
from transformer.decoders.forced import log_probabilities
from transformer.decoders.steps import Sentences
from transformer.decoding import PAPER
from transformer.layout import pad
from transformer.model import Transformer
from transformer.translator import Translator
from transformer.vocabulary import Vocabulary

pytestmark = pytest.mark.slow


def random_lines(seed: int, number: int) -> list[str]:
    random = np.random.default_rng(seed)
    return [" ".join(random.choice(WORDS, length)) for length in random.integers(2, 8, number)]


def batch(vocabulary: Vocabulary, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Random lines as sources, and their words in reverse order as targets."""
    lines = random_lines(seed, 32)
    sources, targets = vocabulary.encode(lines), vocabulary.encode([" ".join(line.split()[::-1]) for line in lines])
    return pad([[*ids, EOS] for ids in sources]), pad([[BOS, *ids, EOS] for ids in targets])


@pytest.fixture(scope="module")
def folder(settings, tmp_path_factory):
    """The folder of a model that was briefly trained to reverse lines."""
    torch.manual_seed(1)
    folder = tmp_path_factory.mktemp("model")
    config = VocabularyConfig(300, "byte_fallback", 0.9999, 0, 0.0, 1, 1, 1)
    (folder / "vocabulary.model").write_bytes(learn(["\n".join(WORDS * 3).encode() + b"\n"], config))
    vocabulary = Vocabulary(folder / "vocabulary.model")
    sizes = {"d_model": 64, "d_ff": 128, "d_k": 16, "d_v": 16}
    config = settings(**sizes, max_positions=4)  # shorter than the lines: it is no limit of a model with sinusoids
    model = Transformer(config, vocabulary.size)
    optimiser = torch.optim.Adam(model.parameters(), 2e-3)
    for step in range(100):
        source, target = batch(vocabulary, step)
        loss = F.cross_entropy(model(source, target[:, :-1]).flatten(0, 1), target[:, 1:].flatten(), ignore_index=PAD)
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()
    write_tensors(folder / WEIGHTS, model.state_dict(), {"loss": loss.item()})
    write_settings(folder, config, vocabulary.size, vocabulary.sha256)
    return folder


@pytest.fixture(scope="module")
def exported(folder, tmp_path_factory):
    """The folders of the exported model, by format."""
    out = {kind: tmp_path_factory.mktemp("exported") / kind for kind in FORMATS}
    for kind in FORMATS:
        in_process.run(["pipeline.extras.export.__main__", str(folder), str(out[kind]), "--format", kind])
    return out


POWER = replace(PAPER, penalty="power", precision="float32", threads=1)


@functools.cache
def translated(folder: Path, decoding: DecodingConfig) -> list[str]:
    return Translator.load(folder, **vars(decoding))(random_lines(1000, 200))


@pytest.mark.parametrize(
    "kind, alpha",
    [("transformer", 0.8), ("marian", 0.8), *(("ctranslate2", alpha) for alpha in (0.0, 0.4, 0.8, 1.2))],
)
def test_the_lines_of_python_on_the_card_translate_as_we_do(folder, here, monkeypatch, capsys, kind, alpha):
    decoding = replace(POWER, alpha=alpha)
    model, description = load_model(folder / WEIGHTS, torch.device("cpu"))
    FORMATS[kind](model, folder / VOCABULARY, here, decoding)
    text, lines = card(folder, description, kind, decoding), random_lines(1000, 200)
    (program,) = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # for CTranslate2
    capsys.readouterr()
    exec(program.replace('["A sentence."]', "lines"), {"lines": lines})
    theirs, ours = literal_eval(capsys.readouterr().out), translated(folder, decoding)
    assert sum(a != b for a, b in zip(ours, theirs, strict=True)) <= 1
    assert len(set(ours)) > 150 and sum(a.split() == b.split()[::-1] for a, b in zip(ours, lines)) > 20
    assert "No score of these weights" in text and "Licence: not recorded" in text


def test_with_as_many_finished_hypotheses_beam_search_is_that_of_ctranslate2(folder, exported):
    vocabulary, lines = Vocabulary(folder / VOCABULARY), random_lines(1000, 400)
    sources, beam = vocabulary.encode(lines), 4
    model, _ = load_model(folder / WEIGHTS, torch.device("cpu"))
    peer = ctranslate2.Translator(str(exported["ctranslate2"]), compute_type="float32", intra_threads=1)
    settings = {"beam_size": beam, "num_hypotheses": beam, "length_penalty": 1.0, "min_decoding_length": 0}
    theirs = peer.translate_batch(list(map(vocabulary.pieces, sources)), **settings, return_scores=True)
    config = replace(POWER, alpha=1.0, beam=beam)
    fairseqs, ours = (Beam(config, replace(PLAIN, finished=finished)) for finished in (beam, 0))
    with torch.inference_mode():
        found, others = (each.search(Sentences([model], sources, range(400), 50), beam) for each in (fairseqs, ours))
    lists = [[vocabulary.pieces(each.ids) for each in one] for one in found]
    assert lists == [each.hypotheses for each in theirs]
    for one, each in zip(found, theirs):
        assert [t.score for t in one] == pytest.approx(each.scores, abs=1e-3)
    assert sum(a[0].ids != b[0].ids for a, b in zip(found, others)) > 4, "the rules differ"


def test_the_systems_of_the_benchmark_find_the_same_translations():
    """With random weights, BOS is probable after BOS. It is impossible here, and must not take a place in their beams."""
    torch.manual_seed(2)
    model = Transformer(replace(base(), N=2, d_model=32, d_ff=64, h=4, d_k=8, d_v=8), 60).eval()
    sources = np.random.default_rng(1).integers(4, 60, (20, 9)).tolist()
    config = replace(PAPER, alpha=0.0, extra_length=0, precision="float32", threads=1)
    found = [list(*system(model, config)(sources, [[*range(20)]])) for system in SYSTEMS.values()]
    assert found[1:] == [found[0]] * 2 and len(set(map(tuple, found[0]))) > 5


def test_ctranslate2_has_a_position_for_each_piece_of_the_longest_line(folder, exported):
    vocabulary = Vocabulary(folder / "vocabulary.model")
    source, target = ([10 + place % 200 for place in range(length)] for length in (1024, 1024 + 50))
    model, _ = load_model(folder / WEIGHTS, torch.device("cpu"))
    (ours,) = log_probabilities([model], [source], [target], 8192)
    peer = ctranslate2.Translator(str(exported["ctranslate2"]), compute_type="float32", intra_threads=1)
    (theirs,) = peer.score_batch([vocabulary.pieces(source)], [vocabulary.pieces(target)], max_input_length=0)
    assert ours == pytest.approx(sum(theirs.log_probs), rel=1e-4)
    assert json.loads((exported["marian"] / "config.json").read_text())["max_position_embeddings"] == len(target) + 1


def test_the_tokenizer_of_marian_takes_every_line_for_text(folder, exported):
    tokenizer = transformers.MarianTokenizer.from_pretrained(exported["marian"])
    lines = [*random_lines(1, 5), "one </s> two<pad>", "Bonjour ! a man 's n't .", "<unk> <s>"]
    found = tokenizer(lines, padding=True)["input_ids"]
    assert [[id for id in row if id != PAD] for row in found] == [
        [*ids, EOS] for ids in Vocabulary(folder / VOCABULARY).encode(lines)
    ]
    assert tokenizer.batch_decode(found, skip_special_tokens=True) == lines


def test_a_model_for_marian_can_be_trained_further_with_label_smoothing_and_saved(exported, tmp_path):
    """The card's line keeps the sinusoids, which are not saved, from being trained."""
    from transformers.trainer_pt_utils import LabelSmoother  # takes a second

    model = transformers.MarianMTModel.from_pretrained(exported["marian"])
    (frozen,) = re.findall(r"`(for .*?)`", (exported["marian"] / "README.md").read_text())
    exec(frozen, {"model": model})
    labels = torch.tensor([[9, 8, EOS], [7, EOS, -100]])
    batch, optimiser = {"input_ids": labels.clamp(PAD), "labels": labels}, torch.optim.Adam(model.parameters(), 0.01)
    for _ in range(3):
        optimiser.zero_grad()
        loss = LabelSmoother(0.1)(model(**batch), labels)
        loss.backward()
        assert loss.isfinite() and all(each.grad.isfinite().all() for each in model.parameters() if each.grad is not None)
        optimiser.step()
    model.save_pretrained(tmp_path)
    again = transformers.MarianMTModel.from_pretrained(tmp_path)
    assert torch.equal(*(each.eval()(**batch).logits for each in (model, again)))


class ProxyError(Exception):
    """An error of the library for HTTP. It derives from Exception, like that of httpx."""


class Hub:
    """Stands for huggingface_hub: repositories are folders."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def HfApi(self):
        return self

    def create_repo(self, name, exist_ok):
        (self.folder / name).mkdir(parents=True, exist_ok=exist_ok)

    def upload_folder(self, repo_id, folder_path):
        return shutil.copytree(folder_path, self.folder / repo_id, dirs_exist_ok=True)

    def snapshot_download(self, name, revision, allow_patterns):
        if revision not in (None, "main") or not (self.folder / name).is_dir():
            raise ProxyError("404 Client Error.\nRepository Not Found")
        return self.folder / name


def test_a_model_pushed_to_the_hub_is_loaded_from_there(folder, tmp_path, monkeypatch):
    out = tmp_path / "out"
    command = ["pipeline.extras.export.__main__", str(folder), str(out), "--format", "transformer", "--push", "me/one"]
    monkeypatch.setitem(sys.modules, "huggingface_hub", Hub(tmp_path))
    in_process.run(command)
    lines, settings = random_lines(7, 20), {"precision": "float32", "penalty": "power"}
    for name in ("me/one", out):
        assert Translator.from_pretrained(name, **settings)(lines) == Translator.load(folder, **settings)(lines)
    for name, revision in (("me/none", None), ("me/one", "v2")):
        with refused(f"{name} cannot be fetched from the Hub: 404 Client Error."):
            Translator.from_pretrained(name, revision)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with refused("me/one is not a folder, and the Hub needs the package huggingface_hub"):
        Translator.from_pretrained("me/one")
    shutil.rmtree(out)
    with pytest.raises(in_process.Refused, match="--push needs the package huggingface_hub"):
        in_process.run(command)


def test_an_export_replaces_no_folder(folder, exported):
    with pytest.raises(in_process.Refused, match="exists already"):
        in_process.run(["pipeline.extras.export.__main__", str(folder), str(exported["marian"]), "--format", "marian"])


def test_an_export_of_a_run_has_the_decoding_settings_of_the_run(folder, here):
    """The penalty L^alpha is that of the library, so the card does not warn of another penalty."""
    shutil.copytree(folder, here / "models/demo-tiny/average")
    shutil.copy(ROOT / "studies.yaml", here)
    before, quick, after = (ROOT / "params.yaml").read_text(encoding="utf-8").partition("\n  quick:")
    after = re.sub(r"decoding: \{.*\}", "decoding: {beam: 3, penalty: power, alpha: 1.5, extra_length: 7}", after, count=1)
    (here / "params.yaml").write_text(before + quick + after, encoding="utf-8")
    for kind in FORMATS:
        in_process.run(["pipeline.extras.export.__main__", "demo-tiny", f"as-{kind}", "--format", kind])
    search = json.loads(Path("as-marian/generation_config.json").read_text())
    positions = json.loads(Path("as-marian/config.json").read_text())["max_position_embeddings"]
    assert (search["num_beams"], search["length_penalty"], search["max_length"]) == (3, 1.5, positions)
    assert positions == 1024 + 7 + 1
    marian, ctranslate2, own = (Path(f"as-{kind}/README.md").read_text(encoding="utf-8") for kind in FORMATS)
    assert "batch)) + 7}" in ctranslate2 and "beam_size=3, patience=3, length_penalty=1.5," in ctranslate2
    assert ".shape[1] + 7\n" in marian and "L^alpha" not in marian + ctranslate2
    assert '{"beam": 3, "penalty": "power", "alpha": 1.5, "extra_length": 7}' in own


def test_a_checkpoint_is_exported_in_place_of_the_average(settings, tmp_path):
    average, checkpoints = tmp_path / "run/average", tmp_path / "run/checkpoints"
    average.mkdir(parents=True)
    shutil.copytree(random_model(settings(), average), checkpoints)
    weights = {name: tensor + 1 for name, tensor in load_file(average / WEIGHTS).items()}
    write_tensors(checkpoints / "step-00000020.safetensors", weights, {})
    command = ["pipeline.extras.export.__main__", str(average), str(tmp_path / "out"), "--format"]
    for kind, name in (("transformer", "embedding"), ("marian", "model.shared.weight")):
        in_process.run([*command, kind, "--step", "20"])
        found = load_file(tmp_path / "out" / WEIGHTS)[name]
        assert torch.equal(found.sort()[0], weights["embedding"].sort()[0]), "Marian has another order of the columns"
        shutil.rmtree(tmp_path / "out")
    with pytest.raises(in_process.Refused, match="has no checkpoint of step 10; there is 20"):
        in_process.run([*command, "transformer", "--step", "10"])


def test_a_model_that_the_formats_do_not_support_is_refused(settings):
    differences = [{"norm": "pre"}, {"positions": "learned"}, {"attention": "additive"}, {"neighbourhood": 4}]
    for difference in [*differences, {"d_k": 4}, {"d_v": 4}]:
        with refused("models/x: ", *difference, "; the export formats"):
            require_exportable(settings(**difference), "models/x")
    config = marian_config(settings(dropout=0.1, attention_dropout=0.2, relu_dropout=0.3), 90)
    keys = ("dropout", "attention_dropout", "activation_dropout")  # which matter for further training
    assert [config[key] for key in keys] == [0.1, 0.2, 0.3]
