"""The settings of a run: those of its model, with the values that the entry of the run in params.yaml overrides."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.settings.params import entry, section, text_corpus
from transformer.config.model import ModelConfig
from transformer.config.reading import UserError, hints, read_keys
from transformer.config.training import TrainingConfig


@dataclass(frozen=True)
class Run:
    """A line of `runs`: a corpus, a model, and the settings in which the run differs from the model."""

    corpus: str
    model: str

    @staticmethod
    def further(_: Mapping) -> dict[str, Any]:
        return hints(ModelConfig) | hints(TrainingConfig)


def run_settings(params: Mapping, name: str) -> tuple[str, ModelConfig, TrainingConfig]:
    """Return the name of the corpus, the model settings and the training settings of run `name`."""
    run = read_keys(Run, entry(params, "runs", name), f"params.yaml: runs.{name}")
    return (
        run["corpus"],
        section(params, "models", run["model"], "model", ModelConfig, name),
        section(params, "models", run["model"], "training", TrainingConfig, name),
    )


def bpe_dropout(params: Mapping, corpus: str) -> float:
    """The BPE-dropout of a corpus. A run does not list it: a change makes new data, and so a new training."""
    own = params["corpora"][text_corpus(params, corpus)].get("vocabulary", {})
    return {**params["base"]["vocabulary"], **own}["bpe_dropout"]


FREE = ("dropout", "attention_dropout", "relu_dropout")  # settings with which the same weights compute the same function


def require_same(found: ModelConfig, wanted: ModelConfig, model: str, where: str) -> None:
    """Raise UserError if a model cannot begin with the weights of `model`, which has the settings `found`."""
    free = (*FREE, "max_positions") if found.positions == "sinusoidal" else FREE
    pairs = {key: (value, vars(wanted)[key]) for key, value in vars(found).items() if key not in free}
    if differ := [f"{key} is {ours} here and {its} in {model}" for key, (its, ours) in pairs.items() if its != ours]:
        raise UserError(f"{where}: {'; '.join(differ)}; equal values are expected, as a run begins with its weights")
