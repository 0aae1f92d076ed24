"""Weights and training states in safetensors files: nothing in them is ever executed.

What is not a tensor stands as JSON under one metadata key (several would be written in no fixed order).
"""

import json
import os
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from transformer.config.model import ModelConfig
from transformer.config.reading import UserError, read
from transformer.files import atomic, read_json, write_json
from transformer.model import Transformer

WEIGHTS, SETTINGS = "model.safetensors", "settings.json"


def write_tensors(path: Path, tensors: dict[str, Tensor], description: dict[str, Any]) -> None:
    """`tensors` and the JSON `description` as one file, written whole or not at all."""
    on_cpu = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    content = save(on_cpu, {"description": json.dumps(description, sort_keys=True)})
    with atomic(path) as file:
        file.write(content)


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """What `write_tensors` wrote. Raises UserError for a file that is missing, truncated or of another kind."""
    try:
        with safe_open(os.fspath(path), framework="pt") as file:
            description = json.loads((file.metadata() or {})["description"])
            names = file.keys()
            return {name: file.get_tensor(name) for name in names}, description
    except FileNotFoundError:
        raise UserError(f"{path} is missing") from None
    except (SafetensorError, KeyError, ValueError) as error:
        raise UserError(
            f"{path} is damaged or no checkpoint of this project ({error}); remove it or restore it"
        ) from None


def load_weights(model: nn.Module, tensors: dict[str, Tensor], path: Path) -> None:
    """Put `tensors` into `model`, or say how they differ in name or shape."""
    expected = model.state_dict()
    for name in expected.keys() ^ tensors.keys():
        where = "lacks" if name in expected else "holds unknown"
        raise UserError(f"{path} {where} weights {name!r}: it belongs to a model of other settings")
    for name, tensor in expected.items():
        if tensor.shape != tensors[name].shape:
            shapes = f"{list(tensors[name].shape)}, not {list(tensor.shape)}"
            raise UserError(f"{path}: {name!r} is of shape {shapes}: it belongs to a model of other settings")
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not torch.isfinite(tensor).all():
            raise UserError(f"{path}: {name!r} holds values that are not finite")
    model.load_state_dict(tensors)


def write_settings(folder: Path, config: ModelConfig, vocabulary_size: int, vocabulary_sha256: str) -> None:
    """What is needed beside weights to use them."""
    content = {"model": vars(config), "vocabulary_size": vocabulary_size, "vocabulary_sha256": vocabulary_sha256}
    write_json(folder / SETTINGS, content)


def read_settings(folder: Path) -> tuple[ModelConfig, int, str]:
    path = folder / SETTINGS
    try:
        content = read_json(path)
        config = read(ModelConfig, content["model"], f"{path}: model")
        return config, int(content["vocabulary_size"]), str(content["vocabulary_sha256"])
    except (FileNotFoundError, json.JSONDecodeError, KeyError, TypeError) as error:
        raise UserError(f"{path} is missing or damaged ({error})") from None


def load_model(weights: Path, device: torch.device) -> tuple[Transformer, dict[str, Any]]:
    """The model in `weights`, whose settings stand beside it, ready for use; and the file's description."""
    config, vocabulary_size, _ = read_settings(weights.parent)
    model = Transformer(config, vocabulary_size)
    tensors, description = read_tensors(weights)
    load_weights(model, tensors, weights)
    return model.to(device).eval(), description


def average(paths: list[Path]) -> dict[str, Tensor]:
    """The mean of the weights in `paths` (section 6.1), summed in float64."""
    total: dict[str, Tensor] = {}
    for path in paths:
        tensors, _ = read_tensors(path)
        if total and total.keys() != tensors.keys():
            raise UserError(f"{path} holds other weights than {paths[0]}: checkpoints of different models")
        for name, tensor in tensors.items():
            total[name] = tensor.double() + total.get(name, 0)
    return {name: (tensor / len(paths)).float() for name, tensor in total.items()}
