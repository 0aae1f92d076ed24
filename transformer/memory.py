"""Memory: how a process keeps it, and the errors of torch and numpy when it runs out."""

import contextlib
import ctypes
import gc
from collections.abc import Iterator

import torch

from transformer.config.reading import UserError

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # of malloc.h
NO_MEMORY = ("you tried to allocate", "out of memory", "_STATUS_ALLOC_FAILED", "Storage size calculation overflowed")


def out_of_memory(error: BaseException) -> bool:
    """Whether `error` reports a failed allocation.

    Torch on a GPU and numpy have exception classes for this. The other errors are recognised by their text: those of torch
    on the CPU ("you tried to allocate"; "Storage size calculation overflowed" for more than 2**63 bytes), those of CUDA
    and NCCL ("out of memory"), and those of CUDA's libraries, such as CUBLAS_STATUS_ALLOC_FAILED.
    """
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in NO_MEMORY)


def keep_freed() -> None:
    """Keep memory that this process frees, for its next allocations. Does nothing unless the C library is glibc.

    By default, glibc returns freed buffers of some MB to the operating system. A training allocates the same sizes in
    each step. Each returned page costs a page fault at its next use, when it is filled with zeros. In threads other
    than the first, glibc still returns buffers of more than 64 MB.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "gnu_get_libc_version"):
        libc.mallopt(M_MMAP_MAX, 0)
        libc.mallopt(M_TRIM_THRESHOLD, -1)


def release_cached() -> None:
    """Give the memory that torch keeps on a GPU, but does not use, back to CUDA. Does nothing else on a CPU.

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
    """Wraps work that cannot be divided into smaller parts. Raises UserError where memory runs out."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not out_of_memory(error):
            raise
        raise UserError(f"out of memory {work}: {remedy}") from None
