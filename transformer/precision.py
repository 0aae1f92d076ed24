"""Mixed precision: weights and sums in float32, matrix products in bfloat16 where that is the setting."""

import torch


def precision_of(config_precision: str, device: torch.device) -> str:
    """`auto` is bfloat16 on a GPU and float32 on a processor."""
    if config_precision != "auto":
        return config_precision
    return "bfloat16" if device.type == "cuda" else "float32"


def autocast(device: torch.device, precision: str) -> torch.autocast:
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=precision == "bfloat16")
