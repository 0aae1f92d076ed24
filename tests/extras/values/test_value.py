"""The value, which predicts the final score: its training, calibration, file, settings and figures."""

import dataclasses
from argparse import Namespace

import numpy as np
import pytest
import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from pipeline.extras.values import train_value as values
from pipeline.extras.values.section import tables
from pipeline.extras.values.settings import value_run
from pipeline.extras.values.train_value import evenly, states, trained, whole
from pipeline.scoring.calibration import calibration
from pipeline.settings.check import check
from tests.support.prefixes import CPU, SOURCES, Ids, sharpened
from tests.support.refusals import refused
from transformer import value
from transformer.config.value import ValueConfig
from transformer.config.vocabulary import BOS, EOS
from transformer.decoders.registry import decoder_of
from transformer.decoders.steps import Sentences
from transformer.translator import Translator

CONFIG = ValueConfig("chrf", sentences=10, bins=11, hidden=32, steps=20, batch=64, learning_rate=0.01, seed=1)


def examples(count=2000, seed=0):
    """Random hidden states and their scores. One unit decides the score, with noise."""
    generator = torch.Generator().manual_seed(seed)
    hidden = torch.randn(count, 8, generator=generator)
    noise = 0.1 * torch.randn(count, generator=generator)
    return hidden, (torch.sigmoid(2 * hidden[:, 3]) + noise).clamp(0, 1)


@pytest.mark.slow
def test_a_head_learns_the_expected_score():
    head = trained(*examples(), dataclasses.replace(CONFIG, steps=300))
    hidden, _ = examples(seed=1)
    predicted, expected = head(hidden), torch.sigmoid(2 * hidden[:, 3])
    assert (predicted - expected).abs().mean() < 0.05
    assert ((predicted > 0) & (predicted < 1)).all()


def test_the_seed_decides_the_head_and_nothing_else_does():
    hidden, score = examples()
    torch.manual_seed(99)
    before = torch.get_rng_state()
    one = trained(hidden, score, CONFIG)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(3)
    rates: list[float] = []
    hook = register_optimizer_step_pre_hook(lambda adam, *_: rates.append(adam.param_groups[0]["lr"]))
    again, other = (trained(hidden, score, dataclasses.replace(CONFIG, seed=seed)) for seed in (1, 2))
    hook.remove()
    assert torch.equal(one(hidden), again(hidden)) and not torch.equal(one(hidden), other(hidden))
    assert rates == pytest.approx([*np.linspace(0.01, 0, 20, endpoint=False)] * 2), "the rate falls to 0"


def test_the_target_is_a_distribution_with_the_score_as_its_mean():
    head = value.ValueHead(4, CONFIG)
    scores = torch.tensor([0.0, 0.1, 0.25, 0.77, 1.0])
    target = head.target(scores)
    torch.testing.assert_close(target.sum(1), torch.ones(5))
    torch.testing.assert_close(target @ head.centre_W, scores)
    assert ((target > 1e-5).sum(1) <= 2).all(), "at most the two nearest bins"


def test_a_saved_head_predicts_alike_and_a_wrong_file_is_refused(tmp_path):
    hidden, score = examples()
    head, path = trained(hidden, score, CONFIG), tmp_path / value.VALUE
    value.save(head, path, {"model": "demo-tiny/average"})
    loaded, said = value.load(path, 8, CPU)
    assert torch.equal(loaded(hidden), head(hidden)) and said["model"] == "demo-tiny/average"
    with refused("it is of a model with other settings"):
        value.load(path, 16, CPU)
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    with refused("is damaged"):
        value.load(path, 8, CPU)


def test_calibration_measures_what_it_says():
    generator = np.random.default_rng(5)
    score, length = generator.random(4000), generator.integers(0, 10, 4000)
    measured = calibration(score, score, length)
    assert measured["correlation"] == 1.0 and abs(measured["correlation_of_length"]) < 0.1
    assert measured["calibration_error"] == 0.0
    biased = calibration(score / 2, score, length)
    assert biased["correlation"] == 1.0 and biased["calibration_error"] == pytest.approx(score.mean() / 2, abs=1e-5)
    assert (biased["mean_value"], biased["mean_score"]) == pytest.approx((score.mean() / 2, score.mean()), abs=1e-5)
    for point in biased["reliability"]:
        assert point["score"] == pytest.approx(2 * point["value"], abs=1e-5)
    blind = calibration(np.full(4000, 0.5), score, np.where(score > 0.5, 3, 1))
    assert blind["correlation"] is None and blind["correlation_of_length"] == pytest.approx(0.866, abs=0.02)
    several = [20, 20, 30, 29]
    value, score = (np.repeat(each, several) for each in ([1.0, 0.95, 0.15, 0.55], [0.8, 0.6, 0.2, 0.5]))
    measured = calibration(value, score, np.arange(99))
    points = [tuple(point.values()) for point in measured["reliability"]]
    assert points == [pytest.approx((0.15, 0.2, 30)), pytest.approx((0.975, 0.7, 40))], "29 prefixes are too few"
    assert measured["calibration_error"] == pytest.approx((0.05 * 30 + 0.05 * 29 + 0.275 * 40) / 99, abs=1e-6)


def test_states_are_those_that_the_search_sees(settings, decoding_settings):
    """The hidden states of whole samples, in batches, are those of the steps of incremental decoding."""
    model = sharpened(settings())
    translator = Translator(model, Ids(), decoding_settings(extra_length=3, precision="float32"), {})
    targets = [whole(source, [9, 8, 7][: len(source)], 3) for source in SOURCES]
    assert targets[0] == [BOS, 9, 8, 7, EOS] and whole([5], [9] * 4, 3) == [BOS, 9, 9, 9, 9], "cut: without EOS"
    found = states(translator, SOURCES, targets)
    for source, target, hidden in zip(SOURCES, targets, found):
        step = Sentences([model], [source], [0], 3).start()
        with torch.inference_mode():
            for token, expected in zip(target, hidden):
                step(torch.tensor([[token]]), torch.tensor([[0]]))
                torch.testing.assert_close(step.hidden_BKD[0, 0], expected, atol=1e-4, rtol=1e-4)


class Numbers(Ids):
    def decode(self, sentences):
        return [" ".join(map(str, ids)) for ids in sentences]


def test_every_prefix_has_the_score_of_its_sample(params, settings, decoding_settings):
    translator = Translator(sharpened(settings()), Numbers(), decoding_settings(extra_length=3, precision="float32"), {})
    run = value_run(with_value(params, samples={"decoder": "sampling", "number": 2}), "v")
    lines = [*Numbers().decode(SOURCES[:2]), "", *Numbers().decode(SOURCES[2:])]
    references, asked = [f"of {line}" for line in lines], []

    def scored(*texts):
        asked.extend(zip(*texts, strict=True))
        return [number / 16 for number in range(len(asked))]

    found = values.prefixes(translator, (lines, references), run, scored, "x")
    drawn = translator.n_best(lines, "x", 2, decoder=decoder_of(run.samples))
    samples = [(line, sample.ids) for line, both in zip(lines, drawn) if line for sample in both]
    assert asked == [(*Numbers().decode([ids]), line, f"of {line}") for line, ids in samples] and len(asked) == 10
    lengths = [len(ids) + 1 + (len(ids) < len(line.split()) + 3) for line, ids in samples]
    assert found.length_M.tolist() == [place for length in lengths for place in range(length)]
    assert found.score_M.tolist() == [number / 16 for number, length in enumerate(lengths) for _ in range(length)]
    assert found.hidden_MD.shape == (sum(lengths), 32)


def test_a_sample_is_scored_against_its_reference_or_by_its_source(params, monkeypatch):
    run, given = value_run(with_value(params), "v"), (["ein Haus"], ["a house"], ["ein Haus"])
    assert values.scores_of(run, Namespace(), "de", CPU)(*given) == [1.0]
    monkeypatch.setattr(Translator, "load", lambda *_, **__: "reverse")
    monkeypatch.setattr(values, "source_probability", lambda *arguments: arguments)
    of_source = values.scores_of(dataclasses.replace(run, reverse="r/average"), Namespace(reverse=None), "de", CPU)
    assert of_source(*given) == ("reverse", ["ein Haus"], ["a house"])


def test_training_text_is_evenly_spaced():
    lines = [str(number) for number in range(10)]
    assert evenly(lines, 20) == lines and evenly(lines, 10) == lines
    assert evenly(lines, 3) == ["0", "3", "6"] and evenly([], 5) == []


# The settings


def with_value(params, **entries):
    return {**params, "studies": {}, "values": {"v": {"model": "demo-tiny/average", "corpus": "demo"} | entries}}


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ({"model": "other/average"}, "values.v.model: 'other/average' is not the average of a run"),
        ({"corpus": "multi30k"}, "values.v.corpus: 'multi30k' is not the corpus of the run; 'demo' is expected"),
        ({"bins": 1}, "values.v.bins: 1 is not possible"),
        ({"score": "comet"}, "values.v.score: 'comet' is not possible; one of bleu, chrf is expected"),
        ({"step": 5}, "values.v.step: unknown key; did you mean 'steps'"),
        ({"samples": {"decoder": "value_beam", "number": 1}}, "samples.decoder: 'value_beam' needs a value or references"),
        ({"samples": {"decoder": "mcts", "number": 1, "objective": "oracle_bleu"}}, "samples.decoder: 'mcts' needs a "),
    ],
)
def test_a_wrong_value_is_refused(params, entries, said):
    check(with_value(params))
    with refused(said):
        check(with_value(params, **entries))


def test_a_decoding_uses_the_model_of_a_value_and_one_that_needs_a_value_has_it(params):
    params = with_value(params, sentences=7)
    assert value_run(params, "v").settings.sentences == 7 and value_run(params, "v").samples.decoder == "sampling"
    line = {"set": "demo-test", "decoder": "value_beam"}
    check({**params, "decodings": {"d": {"model": "values/v", **line}}})
    check({**params, "decodings": {"d": {"model": "values/v", "set": "demo-test"}}})
    for wrong, said in [
        ("demo-tiny/average", "'demo-tiny/average' has no value, which the decoder value_beam needs; values/NAME"),
        ("values/w", "'values/w' is not a model here; did you mean 'values/v'"),
    ]:
        with refused(said):
            check({**params, "decodings": {"d": {"model": wrong, **line}}})
    of_mbr = {"set": "demo-test", "decoder": "mbr", "candidates": {"decoder": "value_beam", "number": 2}}
    check({**params, "decodings": {"d": {"model": "values/v", **of_mbr}}})
    with refused("'demo-tiny/average' has no value, which the decoder mbr needs"):
        check({**params, "decodings": {"d": {"model": "demo-tiny/average", **of_mbr}}})


# The report


def test_the_report_has_a_table_of_values():
    generator = np.random.default_rng(5)
    score = generator.random(3000)
    measured = calibration((score + generator.random(3000)) / 2, score, generator.integers(0, 12, 3000))
    content = {"v": {"model": "demo-tiny/average", "settings": {"score": "chrf"}, "dev": measured}}
    (found,) = tables(content)
    (row,) = found.rows()
    assert (row["value"], row["final score"], row["prefixes"]) == ("v", "chrf", 3000)
    shown = [row[label] for label in ("correlation", "correlation of the length", "calibration error")]
    assert shown == [measured[key] for key in ("correlation", "correlation_of_length", "calibration_error")]
