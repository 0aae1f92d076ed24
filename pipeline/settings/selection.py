"""The settings of a run: those of its model, with the values that the entry of the run in params.yaml overrides."""

from collections.abc import Mapping

from pipeline.settings.params import entry, require_known, section, text_corpus
from transformer.config.model import ModelConfig
from transformer.config.reading import UserError, keys, shown
from transformer.config.training import TrainingConfig


def run_settings(params: Mapping, name: str) -> tuple[str, ModelConfig, TrainingConfig]:
    """Return the name of the corpus, the model settings and the training settings of run `name`."""
    run = entry(params, "runs", name)
    valid = ["corpus", "model", *keys(ModelConfig), *keys(TrainingConfig)]
    require_known(run, valid, params, f"params.yaml: runs.{name}")
    for key in ("corpus", "model"):
        if not isinstance(run.get(key), str):
            raise UserError(f"params.yaml: runs.{name}.{key}: a name is expected, not {shown(run.get(key))}")
    entry(params, "corpora", text_corpus(params, run["corpus"]))
    return (
        run["corpus"],
        section(params, "models", run["model"], "model", ModelConfig, name),
        section(params, "models", run["model"], "training", TrainingConfig, name),
    )
