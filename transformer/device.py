"""The device of a model, how many threads of this process use it, and the precision of the computation on it."""

import threading
from collections.abc import Callable
from functools import partial

import torch

from transformer.arithmetic import portable
from transformer.config.reading import UserError

AT_ONCE = 4  # Python threads; in decoding, more gained nothing, because of the interpreter lock
BEGINNING = threading.Lock()


def at_once(device: torch.device, threads: int) -> int:
    """The number of Python threads that share the work: on a CPU `threads`, but at most `AT_ONCE`; on a GPU 1.

    Each of them may use `threads` divided by this number, rounded down, so of 5 to 7 `threads` four are used.
    The operations of small matrices gain little from several threads of OpenMP, which wait for each other after each
    operation. Torch releases the interpreter lock during an operation.
    """
    return min(threads, AT_ONCE) if device.type == "cpu" else 1


def begin_with(threads: int) -> None:
    """Let this new thread use so many threads of OpenMP, as the initializer of a pool.

    `torch.set_num_threads` also sets the number for every thread that is new to torch. A further thread restores that.
    """
    with BEGINNING:
        before = torch.get_num_threads()  # a new thread has the number that was set last, in any thread
        torch.set_num_threads(threads)
        other = threading.Thread(target=torch.set_num_threads, args=(before,))
        other.start()
        other.join()


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
        seen = f"torch sees {count} GPU{'s' * (count > 1)}" if count else "torch sees no GPU"
        raise UserError(f"device: {str(name)!r} is not possible here, {seen}; auto or cpu is expected")
    return device


def same_gpu(device: torch.device) -> Callable[[], object]:
    """A function with which another thread takes the caller's GPU. Each thread has a current GPU, at first GPU 0."""
    return partial(torch.cuda.set_device, torch.cuda.current_device()) if device.type == "cuda" else lambda: None


def precision_of(config_precision: str, device: torch.device) -> str:
    """The precision for the setting `precision`. `auto` is bfloat16 where the device has units for it, otherwise float32.

    GPUs since 2020 have such units, and CPUs with AMX or AVX512_BF16. Portable arithmetic on a CPU is in float32.
    """
    if config_precision != "auto":
        return config_precision
    if device.type == "cuda":
        units = torch.cuda.get_device_capability(device) >= (8, 0)
    else:
        known: dict[str, bool] = getattr(torch.cpu, "get_capabilities", dict)()  # torch before 2.13 may not have it
        units = not portable() and bool(known.get("amx_bf16") or known.get("avx512_bf16"))
    return "bfloat16" if units else "float32"


def autocast(device: torch.device, precision: str) -> torch.autocast:
    """The context of mixed precision: weights and sums in float32, and matrix products in `precision`.

    Exceptions: with bfloat16 on a CPU, fast/loss.py adds the parts of the output embedding's gradient in bfloat16; with
    bfloat16 on a GPU, the layers of transformer/fast/ keep the sums of the residuals in bfloat16.

    Cast weights are not cached. The threads that share a batch on a CPU would also share the cache, and a CUDA graph must
    not use tensors that were made outside of it. In a pass, each weight is cast once.
    """
    enabled = precision == "bfloat16"
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=enabled, cache_enabled=False)
