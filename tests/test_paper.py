"""The numbers of the paper: published cells that can be computed without training, and the settings in params.yaml."""

import re
from itertools import pairwise

import pytest

from pipeline.commands.plan import parameters
from pipeline.reporting.published import BASE, SUSTAINED_TFLOPS, TABLE2, TABLE3, TRAININGS
from pipeline.scoring.costs import Lengths, estimate, forward_flops, training_flops
from pipeline.settings.blocks import ROW
from pipeline.settings.params import section
from pipeline.settings.selection import run_settings
from pipeline.settings.vocabulary import VocabularyConfig
from transformer.config.decoding import DecodingConfig
from transformer.config.model import ModelConfig
from transformer.config.reading import hints
from transformer.config.training import AveragingConfig, TrainingConfig
from transformer.optimisation import learning_rate

PIECES = 37_000  # "about 37000" (5.1)


def table3_row(model, training):
    """The row of Table 3 that agrees with these settings in everything that the paper states, or None."""
    stated = {key: {"bpe_dropout": 0.0, **model, **training}.get(key) for key in BASE}
    return next((row for row in TABLE3 if row.settings == stated), None)


def study(params, name):
    """The settings of every run of a study: {run: (corpus, model, training)}."""
    runs = params["studies"][name]["runs"]
    return {run: run_settings({**params, "runs": runs}, run) for run in runs}


def model_of(params, row):
    values = {**params["base"]["model"], **row.differs}
    return ModelConfig(**{key: values[key] for key in hints(ModelConfig)})


def millions(params, row, pieces):
    return parameters(model_of(params, row), pieces) / 1e6


def row_of(name):
    return next(row for row in TABLE3 if row.group == name)


# Table 2 (6.1)


@pytest.mark.parametrize("model, exact, used", [("base", 3.28e18, 0.29), ("big", 2.30e19, 0.42)])
def test_training_cost_is_time_by_gpus_by_sustained_tflops(params, model, exact, used):
    training = TRAININGS[model]
    flops = estimate(training.seconds, training.gpus, params["hardware"][training.hardware])
    (row,) = [row for row in TABLE2 if row.model == model]
    assert f"{flops:.2e}" == f"{exact:.2e}"
    assert f"{flops:.1e}" == f"{row.flops_en_de:.1e}"
    config, tokens = section(params, "models", model, "model", ModelConfig), 25_000
    forward = forward_flops(config, 37_000, Lengths(tokens, tokens, *[26 * tokens] * 3))
    counted = sum(training_flops(forward).values()) * training.steps
    assert f"{counted:.2e}" == f"{training.counted:.2e}" and round(counted / flops, 2) == used


def test_the_study_table2_has_both_models_on_both_corpora(params):
    of, found = params["studies"]["table2"]["runs"], {}
    for run, (corpus, model, training) in study(params, "table2").items():
        settings = {"bpe_dropout": 0.0, **vars(model), **vars(training)}
        found[corpus, of[run]["model"]] = {key: settings[key] for key in BASE}
    expected = {
        (f"wmt14-en-{target}", name): {**row_of(name).settings} for target in ("de", "fr") for name in ("base", "big")
    }
    expected["wmt14-en-fr", "big"]["dropout"] = 0.1  # instead of 0.3 (6.1)
    assert found == expected and len(of) == 4


# Table 3 (6.2)


def test_the_study_table3_has_each_row_once(params):
    runs = study(params, "table3")
    assert {corpus for corpus, _, _ in runs.values()} == {"wmt14-en-de"}
    rows = {run: table3_row(vars(model), vars(training)) for run, (_, model, training) in runs.items()}
    assert [run for run, row in rows.items() if row is None] == []
    assert len(rows) == len(TABLE3) == 20
    assert all(any(row is found for found in rows.values()) for row in TABLE3)
    assert all(re.fullmatch(ROW, row.key) for row in TABLE3), "as studies.yaml names them"


def test_the_whole_paper_is_22_trainings(params):
    studies = {name: study["runs"] for name, study in params["studies"].items()}
    assert studies["paper"] == {**studies["table2"], **studies["table3"]}
    assert len(studies["paper"]) == 22


def test_parameters_at_37000_pieces(params):
    assert round(millions(params, row_of("base"), PIECES), 1) == 63.1
    assert round(millions(params, row_of("big"), PIECES), 1) == 214.2


def test_no_single_vocabulary_size_gives_all_published_parameters(params):
    """About 41,000 pieces give the exact count of every row except big, which needs about 36,000."""
    for row in (row for row in TABLE3 if row.parameters):
        assert round(millions(params, row, 36_000 if row.group == "big" else 41_000)) == row.parameters, row.key
    few, many = (millions(params, row_of(name), 38_000) for name in ("base", "big"))
    assert round(few) < 65 and round(many) > 213, "fewer pieces are too few for base, and more are too many for big"


def test_rows_without_a_count_have_as_many_parameters_as_base(params):
    """A blank cell has the value of the base model. Learned positions add one table per side."""
    base = parameters(model_of(params, TABLE3[0]), PIECES)
    for row in (row for row in TABLE3 if row.parameters is None):
        extra = 2 * model_of(params, row).max_positions * 512 if row.group == "E" else 0
        assert parameters(model_of(params, row), PIECES) == base + extra


# Data, schedule and decoding (5, 6.1)


@pytest.mark.parametrize(
    "model, steps, a_step, checkpoints, peak",
    [("base", 100_000, 0.4, 5, 6.99e-4), ("big", 300_000, 1.0, 20, 4.94e-4)],  # the peak is d_model^-0.5 * 4000^-0.5
)
def test_settings_of_the_models(params, model, steps, a_step, checkpoints, peak):
    """A checkpoint is ten minutes of training (6.1)."""
    training = section(params, "models", model, "training", TrainingConfig)
    assert training.steps == steps == TRAININGS[model].steps
    assert training.checkpoint_every * a_step == pytest.approx(600)
    assert section(params, "models", model, "averaging", AveragingConfig).checkpoints == checkpoints <= training.keep
    decoding = section(params, "models", model, "decoding", DecodingConfig)
    assert (decoding.beam, decoding.penalty, decoding.alpha, decoding.extra_length) == (4, "gnmt", 0.6, 50)
    d_model = section(params, "models", model, "model", ModelConfig).d_model
    rates = [learning_rate(step, d_model, training) for step in range(1, 20_001)]
    assert rates.index(max(rates)) + 1 == 4000
    assert max(rates) == pytest.approx(peak, rel=1e-3)
    assert all(before < after for before, after in pairwise(rates[:4000]))
    assert all(before > after for before, after in pairwise(rates[3999:]))
    assert rates[999] == pytest.approx(max(rates) / 4)  # linear warm-up
    assert rates[15_999] == pytest.approx(max(rates) / 2)  # inverse square root of the step


def test_vocabularies_and_the_hardware_of_footnote_5(params):
    for corpus, pieces in (("wmt14-en-de", 37_000), ("wmt14-en-fr", 32_000)):
        assert section(params, "corpora", corpus, "vocabulary", VocabularyConfig).pieces == pieces
    assert SUSTAINED_TFLOPS.items() <= params["hardware"].items()
