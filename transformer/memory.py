"""The errors of torch and numpy when memory runs out."""

import contextlib
import gc
from collections.abc import Iterator

import torch

from transformer.config.reading import UserError

NO_MEMORY = ("you tried to allocate", "out of memory", "_STATUS_ALLOC_FAILED", "Storage size calculation overflowed")


class OutOfMemory(UserError):
    """Memory ran out in work that cannot be divided into smaller parts."""


def out_of_memory(error: BaseException) -> bool:
    """Whether `error` reports a failed allocation.

    Torch on a GPU and numpy have exception classes for this. The other errors are recognised by their text: those of torch
    on the CPU ("you tried to allocate"; "Storage size calculation overflowed" for more than 2**63 bytes), those of CUDA
    and NCCL ("out of memory"), and those of CUDA's libraries, such as CUBLAS_STATUS_ALLOC_FAILED.
    """
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in NO_MEMORY)


def release_cached() -> None:
    """Collect garbage, and give memory that torch keeps on a GPU, but does not use, back to CUDA.

    Call this outside of an `except` block, whose traceback keeps tensors. An exception in a thread is part of a reference
    cycle, which only the garbage collector frees. CUDA graphs may still run; with expandable segments, torch would take
    their memory away without waiting for them.
    """
    gc.collect()
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
        torch.cuda.empty_cache()


@contextlib.contextmanager
def enough_memory(work: str, remedy: str) -> Iterator[None]:
    """Wraps work that cannot be divided into smaller parts. Raises OutOfMemory where memory runs out."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not out_of_memory(error):
            raise
        raise OutOfMemory(f"out of memory {work}: {remedy}") from None
