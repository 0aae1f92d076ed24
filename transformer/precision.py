"""Mixed precision: weights and sums in float32, and matrix products in bfloat16 if the settings say so.

Exception: loss.py then adds the parts of the output embedding's gradient in bfloat16.
"""

import torch


def precision_of(config_precision: str, device: torch.device) -> str:
    """The precision for the setting `precision`. `auto` is bfloat16 where the device has units for it, otherwise float32.

    GPUs since 2020 have such units, and CPUs with AMX or AVX512_BF16.
    """
    if config_precision != "auto":
        return config_precision
    if device.type == "cuda":
        units = torch.cuda.get_device_capability(device) >= (8, 0)
    else:
        known: dict[str, bool] = getattr(torch.cpu, "get_capabilities", dict)()  # torch before 2.13 may not have it
        units = bool(known.get("amx_bf16") or known.get("avx512_bf16"))
    return "bfloat16" if units else "float32"


def autocast(device: torch.device, precision: str) -> torch.autocast:
    """The context of autocast for `precision`.

    On a CPU it does not cache cast weights, because the threads that share a batch would also share the cache.
    """
    cached, enabled = device.type == "cuda", precision == "bfloat16"
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=enabled, cache_enabled=cached)
