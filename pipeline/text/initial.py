"""The first weights of a training that begins with those of a model: they are in its data."""

from pathlib import Path

from pipeline.settings.selection import require_same
from pipeline.text.binarised import DESCRIPTION, INITIAL, describe, require_whole
from transformer.checkpoint import load_weights, read_tensors
from transformer.config.model import ModelConfig
from transformer.config.reading import read_saved
from transformer.model import Transformer


def load(network: Transformer, data: Path) -> str | None:
    """Load the weights in the folder `data`, if it has some, into a model. Returns the name of the model that they are of.

    Raises UserError if they are damaged, or belong to a model with other settings.
    """
    description = describe(data)
    if INITIAL not in description["sha256"]:
        return None
    model, path = description["initial"]["model"], data / INITIAL
    settings = read_saved(ModelConfig, description["initial"]["settings"], f"{data / DESCRIPTION}: initial.settings")
    require_same(settings, network.config, model, str(data))
    require_whole(path, description["sha256"])
    load_weights(network, read_tensors(path)[0], path)
    return model
