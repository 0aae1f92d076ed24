"""Mixed precision: weights and sums in float32, and matrix products in bfloat16 if the settings say so."""

import torch


def precision_of(config_precision: str, device: torch.device) -> str:
    """The precision of a setting. `auto` is bfloat16 on a GPU that supports it (since 2020), otherwise float32."""
    if config_precision != "auto":
        return config_precision
    return "bfloat16" if device.type == "cuda" and torch.cuda.get_device_capability(device) >= (8, 0) else "float32"


def autocast(device: torch.device, precision: str) -> torch.autocast:
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=precision == "bfloat16")
