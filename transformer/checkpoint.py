"""Weights and training states in safetensors files. Loading such a file cannot execute code.

Everything except the tensors is JSON under one metadata key, because the order of several keys would vary between
files. The JSON includes a CRC-32 of the whole content, which detects damage such as a flipped bit in a weight.
"""

import json
import os
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from transformer.config.model import ModelConfig
from transformer.config.reading import Count, UserError, convert, read_saved, require
from transformer.files import read_json, write_file, write_json
from transformer.model import Transformer

WEIGHTS, SETTINGS, VOCABULARY = "model.safetensors", "settings.json", "vocabulary.model"  # of a model folder
MOST_PIECES = 10_000_000  # the largest vocabulary; a larger number in settings.json would exhaust the memory


def write_tensors(path: Path, tensors: dict[str, Tensor], description: dict[str, Any]) -> None:
    """Write `tensors` and `description`, a JSON object, into one file, atomically."""
    on_cpu = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    whole = {"crc32": crc32(on_cpu, description), "content": description}
    content = save(on_cpu, {"description": json.dumps(whole, sort_keys=True)})
    write_file(path, content)


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and the description that `write_tensors` wrote. The tensors are on the CPU.

    Raises UserError for a file that is missing, unreadable, damaged or not written by `write_tensors`.
    """
    try:
        with safe_open(os.fspath(path), framework="pt") as file:
            whole = json.loads((file.metadata() or {})["description"])
            names = file.keys()
            tensors, description = {name: file.get_tensor(name) for name in names}, whole["content"]
            if whole["crc32"] != crc32(tensors, description):
                raise ValueError("its checksum differs")
    except FileNotFoundError:
        raise UserError(f"{path} is missing") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error}") from None
    except (SafetensorError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise UserError(
            f"{path} is damaged or is not a checkpoint of this project ({error}); remove it or restore it"
        ) from None
    return tensors, description


def crc32(tensors: dict[str, Tensor], description: dict[str, Any]) -> int:
    """The CRC-32 of the description and of each tensor with its name, dtype and shape. It detects damage, not forgery."""
    total = zlib.crc32(json.dumps(description, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        total = zlib.crc32(f"{name} {tensor.dtype} {list(tensor.shape)}".encode(), total)
        # numpy declares the buffer protocol for Python 3.12 and later only.
        total = zlib.crc32(tensor.reshape(-1).view(torch.uint8).numpy(), total)  # type: ignore[arg-type]
    return total


def load_weights(model: nn.Module, tensors: dict[str, Tensor], path: Path) -> None:
    """Load `tensors` into `model`. Raises UserError if a name or a shape differs or a value is not finite.

    `path` is the file of the tensors, for the error message.
    """
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not torch.isfinite(tensor).all():
            raise UserError(f"{path}: {name!r} holds values that are not finite")
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        first = str(error).splitlines()[1].strip()[:200]  # the first difference
        raise UserError(f"{path}: it is of a model with other settings: {first}") from None


class Saved(NamedTuple):
    """The content of settings.json."""

    model: ModelConfig
    vocabulary_size: int
    vocabulary_sha256: str
    max_length: int | None  # pieces of the longest training line, EOS included; None if earlier code wrote the file


def write_settings(
    folder: Path, config: ModelConfig, vocabulary_size: int, vocabulary_sha256: str, max_length: int | None = None
) -> None:
    """Write settings.json, which is needed to use the weights in `folder`. `Saved` describes the content."""
    content = Saved(config, vocabulary_size, vocabulary_sha256, max_length)._asdict()
    write_json(folder / SETTINGS, content | {"model": vars(config)})


def read_settings(folder: Path) -> Saved:
    """The settings that belong to the weights in `folder`, from settings.json.

    A setting that did not exist when the file was written gets its value from `ModelConfig.ABSENT`. Raises UserError
    for a file that is missing, damaged or written by newer code.
    """
    path = folder / SETTINGS
    try:
        content = read_json(path)
        config = read_saved(ModelConfig, content["model"], f"{path}: model")
        size = convert(int, content["vocabulary_size"], f"{path}: vocabulary_size")
        sha256 = convert(str, content["vocabulary_sha256"], f"{path}: vocabulary_sha256")
        longest = convert(Count | None, content.get("max_length"), f"{path}: max_length")
    except (FileNotFoundError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path} is missing or damaged ({error})") from None
    require(0 < size <= MOST_PIECES, f"{path}: vocabulary_size", size, f"1 to {MOST_PIECES} pieces are expected")
    return Saved(config, size, sha256, longest)


def load_model(weights: Path, device: torch.device) -> tuple[Transformer, dict[str, Any]]:
    """The model with these weights, in evaluation mode, and the description in their file.

    settings.json is read from the same folder. Raises UserError in the cases of `read_settings`, `read_tensors` and
    `load_weights`.
    """
    settings = read_settings(weights.parent)
    with torch.random.fork_rng(devices=()):  # the caller's random numbers stay the same
        model = Transformer(settings.model, settings.vocabulary_size)
    tensors, description = read_tensors(weights)
    load_weights(model, tensors, weights)
    return model.to(device).eval(), description


def average(checkpoints: list[tuple[int, Path]]) -> dict[str, Tensor]:
    """The mean of the weights in these checkpoints (6.1), summed in float64 and returned in float32.

    `checkpoints` are steps with their files. Raises UserError as `read_tensors` does, or if a step, name or shape differs.
    """
    total: dict[str, Tensor] = {}
    for step, path in checkpoints:
        tensors, description = read_tensors(path)
        if description.get("step") != step:
            raise UserError(f"{path} holds the weights of step {description.get('step')}, not {step}: swapped or renamed")
        shapes = {name: tensor.shape for name, tensor in tensors.items()}
        if total and shapes != {name: tensor.shape for name, tensor in total.items()}:
            raise UserError(f"{path} holds other weights than {checkpoints[0][1]}: checkpoints of different models")
        for name, tensor in tensors.items():
            total[name] = tensor.double() + total.get(name, 0)
    return {name: (tensor / len(checkpoints)).float() for name, tensor in total.items()}
