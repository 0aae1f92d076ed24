"""The settings of a run: its model's and its training's, with what the run itself changes of them."""

from collections.abc import Mapping

from pipeline.settings.params import entry, section
from transformer.config.model import ModelConfig
from transformer.config.reading import UserError, keys, shown, unknown
from transformer.config.training import TrainingConfig


def run_settings(params: Mapping, name: str) -> tuple[str, ModelConfig, TrainingConfig]:
    """The corpus, the model and the training of run `name`, its own differences applied."""
    run = entry(params, "runs", name)
    valid = ["corpus", "model", *keys(ModelConfig), *keys(TrainingConfig)]
    for key in run:
        if key not in valid:
            raise UserError(unknown(key, valid, f"params.yaml: runs.{name}"))
    for key in ("corpus", "model"):
        if not isinstance(run.get(key), str):
            raise UserError(f"params.yaml: runs.{name}.{key}: a name is expected, not {shown(run.get(key))}")
    entry(params, "corpora", run["corpus"])
    return (
        run["corpus"],
        section(params, "models", run["model"], "model", ModelConfig, name),
        section(params, "models", run["model"], "training", TrainingConfig, name),
    )
