"""Labels of the stages `decode` and `score`: each belongs to its weights, its text and its measure."""

import json
import math
import shutil

import pytest
import sacrebleu
import sentencepiece
import torch
import torch.nn.functional as F

from pipeline.settings.params import load
from pipeline.text.evaluation import read_lines
from tests.support import in_process
from tests.support.models import LINES, OLD, TRANSLATIONS, model_folder
from tests.support.packed import write_evaluation_set
from tests.support.pairs import Listed
from tests.support.projects import COMPOUND, HYPOTHESES, REFERENCES
from tests.support.small_run import write_params_yaml, write_yaml
from tests.support.torch_twin import logits_of
from transformer.checkpoint import read_settings, read_tensors, write_tensors
from transformer.files import write_lines

PLACES = "--dev data/sets/demo-dev --test data/sets/demo-test"
DECODE = f"pipeline.decode run --checkpoints checkpoints --average average {PLACES} --out translations --times times.json"
SCORE = f"pipeline.score run --translations translations {PLACES} --training training.jsonl --out score.json"
SCORE += " --metrics metrics.json --plots plots"


@pytest.fixture
def place(tmp_path):
    """The current folder, with params.yaml."""
    with in_process.inside(tmp_path):
        write_yaml(tmp_path, {"run": {"corpus": "demo", "model": "tiny"}}, scoring={"bootstrap": 0, "seed": 1})
        params = load(tmp_path / "params.yaml")
        params["models"]["tiny"]["decoding"] = {"extra_length": 49}
        write_params_yaml(tmp_path, params)
        yield tmp_path


def exchanged(text, one, other):
    return text.replace(one, "*").replace(other, one).replace("*", other)


def test_each_translation_and_perplexity_is_of_its_weights_and_set(place):
    """The checkpoints are the average with the embeddings of two German words exchanged, which exchanges the words."""
    folder = model_folder(place / "average")
    config = read_settings(folder).model
    average, _ = read_tensors(folder / "model.safetensors")
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "vocabulary.model"))
    (place / "checkpoints").mkdir()
    shutil.copy(OLD / "model/settings.json", place / "checkpoints")
    weights = {"average": average}
    for step, words in {1: ["Katze", "Hund"], 2: ["Katze", "Vogel"]}.items():
        both = pieces.encode(words)
        assert [len(ids) for ids in both] == [1, 1]
        order = torch.arange(len(average["embedding"]))
        order[[both[0][0], both[1][0]]] = order[[both[1][0], both[0][0]]]
        weights["last"] = average | {"embedding": average["embedding"][order]}
        write_tensors(place / f"checkpoints/step-{step:08d}.safetensors", weights["last"], {"step": step})
    text, answers = ["of no use"] * 3, ["der Hund hört die Katze", "die Katze mag", "die Hund"]
    write_evaluation_set(place / "data/sets/demo-dev", raw=(text, text), normalised=(LINES, answers))
    write_evaluation_set(place / "data/sets/demo-test", raw=(text, text), normalised=(LINES[::-1], text))
    in_process.run(DECODE.split())
    written = {name: read_lines(place / f"translations/{name}.txt") for name in ("dev.last", "dev.average", "test.average")}
    last = [exchanged(line, "Katze", "Vogel") for line in TRANSLATIONS]
    assert written == {"dev.last": last, "dev.average": TRANSLATIONS, "test.average": TRANSLATIONS[::-1]}
    samples = [tuple(sample.values()) for sample in json.loads((place / "translations/samples.json").read_text())]
    assert samples == list(zip(LINES[::-1], text, TRANSLATIONS[::-1]))
    pairs = Listed(pieces.encode(LINES), pieces.encode(answers))
    written = json.loads((place / "translations/translations.json").read_text())
    described = written["dev"]
    assert written["settings"]["decoding"]["extra_length"] == 49, "of the model"
    for name in ("last", "average"):
        in_float64 = {key: tensor.double() for key, tensor in weights[name].items()}
        logits, labels = logits_of(config, in_float64, pairs, (range(3), []))
        mean = F.cross_entropy(logits, labels).item()
        probability, token = logits.softmax(1).max(1)
        right, number = (token == labels).double(), (probability * 10).int()
        bins = [(number == n) for n in range(10) if (number == n).any()]
        points = [
            {"probability": probability[of].mean().item(), "accuracy": right[of].mean().item(), "tokens": int(of.sum())}
            for of in bins
        ]
        found = written["reliability"][f"dev.{name}"]
        assert len(found) == len(points)
        for one, expected in zip(found, points):
            assert one == pytest.approx(expected, abs=1e-5)
        error = sum(abs(each["probability"] - each["accuracy"]) * each["tokens"] for each in points) / len(labels)
        values = {"loss": mean, "perplexity": math.exp(mean), "accuracy": right.mean().item()}
        assert described[name] == pytest.approx(values | {"calibration_error": error}, rel=1e-5, abs=1e-5)
    assert described["last"]["loss"] > 1.01 * described["average"]["loss"]


SECOND = ["die Katze die Hund", "die Katze die Katze mag", "die Vogel die Katze mag"]  # not what the model prefers


def test_an_oracle_knows_the_references_and_each_sentence_says_whether_its_search_ended(place):
    """The tree search needs few simulations to find these references. The normalised ones are the model's translations."""
    model_folder(place / "average")
    chosen = {"oracle": {"decoder": "mcts", "objective": "oracle_chrf", "simulations": 200, "temperature": 4.0}}
    chosen |= {"cut": {"decoder": "exact", "max_steps": 5}, "whole": {"decoder": "exact"}}
    same = {"model": "run/average", "set": "demo-test", "precision": "float32", "extra_length": 4}
    params = load(place / "params.yaml")
    write_params_yaml(place, params | {"decodings": {name: same | line for name, line in chosen.items()}})
    write_evaluation_set(place / "data/sets/demo-test", raw=(LINES, SECOND), normalised=(LINES, TRANSLATIONS))
    ended = {}
    for name in chosen:
        in_process.run(f"pipeline.decode_set {name} --model average --set data/sets/demo-test --out {name}".split())
        written = json.loads((place / name / "sentences.json").read_text())
        ended[name] = [sentence["finished"] for sentence in written]
    assert read_lines(place / "oracle/translation.txt") == SECOND
    assert json.loads((place / "oracle/score.json").read_text())["set"]["metrics"]["chrf"]["score"] == 100
    assert ended == {"oracle": [True] * 3, "cut": [False] * 3, "whole": [True] * 3}


def test_a_set_of_another_corpus_is_normalised_as_the_text_of_the_model_was(place):
    model_folder(place / "average")
    params, line = load(place / "params.yaml"), {"model": "run/average", "set": "demo-test", "precision": "float32"}
    write_params_yaml(place, params | {"decodings": {"here": line}})
    raw = [line.replace(" ", "&nbsp;") for line in LINES]
    write_evaluation_set(place / "data/sets/demo-test", raw=(raw, SECOND), normalised=(raw, SECOND))
    in_process.run(["pipeline.decode_set", "here", "--model", "average", "--set", "data/sets/demo-test", "--out", "here"])
    assert read_lines(place / "here/translation.txt") == TRANSLATIONS


BLEU = {"bleu-13a": {}, "bleu-13a-lc": {"lowercase": True}}
BLEU |= {"bleu-intl": {"tokenize": "intl"}, "bleu-intl-lc": {"tokenize": "intl", "lowercase": True}}
WORDS = {"tokenize": "none", "smooth_method": "none", "force": True}


def expected(hypotheses, references):
    """The scores by sacreBLEU, for the paper's BLEU of the lines that Moses' Perl scripts wrote.

    The arguments are numbers of lines of the 30 pairs.
    """
    plain, split = ([read_lines(COMPOUND / f"{name}.{end}de") for name in ("hyp", "ref")] for end in ("", "tok-split."))
    text, answers = [plain[0][n] for n in hypotheses], [[plain[1][n] for n in references]]
    scores = {name: sacrebleu.corpus_bleu(text, answers, **more) for name, more in BLEU.items()}
    scores["bleu-tokenised"] = sacrebleu.corpus_bleu(text, answers, **WORDS, lowercase=True)
    scores["chrf"] = sacrebleu.corpus_chrf(text, answers)
    normalised = read_lines(COMPOUND / "ref-normalised.tok-split.de")
    published = [read_lines(COMPOUND / f"{name}-published.tok-split.de") for name in ("hyp", "ref")]
    cells = {"raw-reference": split, "normalised": (split[0], normalised), "published": published}
    for name, (ours, theirs) in cells.items():
        text, answers = [ours[n] for n in hypotheses], [[theirs[n] for n in references]]
        scores[f"bleu-{name}"] = sacrebleu.corpus_bleu(text, answers, **WORDS)
    return {name: round(score.score, 4) for name, score in scores.items()}


def test_each_score_is_of_its_text_and_measure(place):
    """Some lines of the translations stand at wrong places. The normalised references are of no use for scores."""
    dev, test, filtered = list(range(30)), list(range(24)), [3, 4, 8, 15, 22]
    texts = {"dev.last": [1, 0, *dev[2:]], "dev.average": [*dev[:28], 29, 28], "test.average": [2, 1, 0, 4, 3, *test[5:]]}
    for name, lines in {"dev": dev, "test": test}.items():
        sides = [f"source {n}" for n in lines], [REFERENCES[n] for n in lines]
        forms = {"raw": sides, "normalised": (sides[0], ["other"] * len(lines))}
        forms |= {"filtered": [[side[n] for n in filtered] for side in sides]} if name == "test" else {}
        write_evaluation_set(place / f"data/sets/demo-{name}", **forms)
    for name, lines in texts.items():
        write_lines(place / f"translations/{name}.txt", (HYPOTHESES[n] for n in lines))
    perplexities = {"dev": {"last": {"perplexity": 4.5}, "average": {"perplexity": 4.25}}}
    (place / "translations/translations.json").write_text(json.dumps(perplexities))
    (place / "training.jsonl").write_text('{"step": 1, "loss": 9.5}\n{"step": 2, "loss": 8.5, "dev_loss": 7.5}\n')
    in_process.run(SCORE.split())
    written = json.loads((place / "score.json").read_text())
    cells = {name: expected(lines, dev if name.startswith("dev") else test) for name, lines in texts.items()}
    cells["test_filtered.average"] = expected([texts["test.average"][n] for n in filtered], filtered)
    for name, scores in cells.items():
        of_set, checkpoint = name.split(".")
        cell = written[of_set][checkpoint]
        assert {measure: entry["score"] for measure, entry in cell["metrics"].items()} == scores, name
        assert len(set(scores.values())) == len(scores) == 9
    assert len({json.dumps(scores) for scores in cells.values()}) == 4
    of_test = cells["test.average"]
    chosen = {"test_sacrebleu": "bleu-13a", "test_bleu_published": "bleu-published", "test_chrf": "chrf"}
    metrics = json.loads((place / "metrics.json").read_text())
    losses = {"dev_perplexity": 4.25, "loss": 8.5, "dev_loss": 7.5}
    assert metrics == {name: of_test[measure] for name, measure in chosen.items()} | losses
    drawn = json.loads((place / "plots/bleu.json").read_text())
    assert {each["set"]: each["bleu"] for each in drawn} == {
        name.replace(".", ", "): scores["bleu-13a"] for name, scores in cells.items()
    }
