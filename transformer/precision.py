"""Mixed precision: weights and sums in float32, and matrix products in bfloat16 if the settings say so.

Exception: loss.py then adds the parts of the output embedding's gradient in bfloat16.
"""

import torch

UNITS = ("amx_bf16", "avx512_bf16")  # instructions of a CPU for products in bfloat16


def precision_of(config_precision: str, device: torch.device, new_shapes: bool = False) -> str:
    """The precision for the setting `precision`. `auto` is bfloat16 where the device has units for it, otherwise float32.

    GPUs since 2020 have such units. On a CPU, `auto` is float32 if every batch has a new shape (`new_shapes`): oneDNN
    plans its kernels for bfloat16 anew for each shape. With AMX, a small model then trains more slowly than in float32.
    """
    if config_precision != "auto":
        return config_precision
    if device.type == "cuda":
        units = torch.cuda.get_device_capability(device) >= (8, 0)
    else:
        known: dict[str, bool] = getattr(torch.cpu, "get_capabilities", dict)()  # torch before 2.13 may not have it
        units = not new_shapes and any(known.get(name) for name in UNITS)
    return "bfloat16" if units else "float32"


def autocast(device: torch.device, precision: str) -> torch.autocast:
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=precision == "bfloat16")
