"""The trained model that a command serves or registers."""

from pathlib import Path

from pipeline.settings.params import PARAMS, load, section
from transformer.checkpoint import SETTINGS
from transformer.config.decoding import DecodingConfig
from transformer.config.reading import UserError
from transformer.translator import Translator


def folder_of(run: str) -> Path:
    """The model folder of a run, or `run` itself if it is a model folder. Raises UserError if there is no model."""
    folder = Path("models") / run / "average"
    for path in (folder, Path(run)):
        if (path / SETTINGS).exists():
            return path
    raise UserError(f"{run}: no model in {folder} and no model folder of this name; train the run or name a folder")


def settings_of(run: str) -> dict:
    """The decoder settings of a run in params.yaml. A model folder has none, so that the paper's hold."""
    params = load() if PARAMS.exists() else {}
    if run not in params.get("runs", {}):
        return {}
    return vars(section(params, "models", params["runs"][run]["model"], "decoding", DecodingConfig))


def translator_of(run: str, **settings: object) -> Translator:
    return Translator.load(folder_of(run), **{**settings_of(run), **settings})
