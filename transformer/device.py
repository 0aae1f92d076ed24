"""The device of a model."""

import torch

from transformer.config.reading import UserError


def device_of(name: str | torch.device) -> torch.device:
    """The device `name`; `auto` is a GPU where there is one. Raises UserError unless it is a CPU or an existing GPU."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError):
        device = torch.device("meta")
    if device.type not in ("cpu", "cuda"):
        raise UserError(f"device: {name!r} is not possible; auto, cpu or cuda is expected")
    if device.type == "cuda" and (count := torch.cuda.device_count()) <= (device.index or 0):
        seen = f"torch sees {count} GPUs" if count else "torch sees no GPU"
        raise UserError(f"device: {str(name)!r} is not possible here, {seen}; auto or cpu is expected")
    return device
