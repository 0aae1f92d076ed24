"""The settings of a run: its model's and its training's, with what the run itself changes of them."""

from collections.abc import Mapping

from pipeline.settings.params import entry, section
from transformer.config.model import ModelConfig
from transformer.config.reading import UserError, keys, shown, unknown
from transformer.config.training import TrainingConfig

STUDY = ("runs", "sets", "decodings")  # what a study holds; the last two may be left out


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


def study(params: Mapping, name: str) -> dict:
    """The blocks that the study `name` selects: its runs with their corpora, its sets and its decodings."""
    where, chosen = f"params.yaml: studies.{name}", entry(params, "studies", name)
    for key in chosen:
        if key not in STUDY:
            raise UserError(unknown(key, list(STUDY), where))
    blocks = {key: chosen.get(key, {}) for key in STUDY}
    for key, block in blocks.items():
        if not isinstance(block, Mapping):
            raise UserError(f"{where}.{key}: {shown(block)} is not a mapping")
    runs = blocks["runs"]
    corpora = dict.fromkeys(run_settings({**params, "runs": runs}, run)[0] for run in runs)
    return {"runs": runs, "corpora_in_use": list(corpora), "sets": blocks["sets"], "decodings": blocks["decodings"]}
