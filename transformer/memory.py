"""Errors of torch and numpy when memory runs out."""

import contextlib
from collections.abc import Iterator

import torch

from transformer.config.reading import UserError

NO_MEMORY = ("you tried to allocate", "out of memory", "_STATUS_ALLOC_FAILED")


def out_of_memory(error: BaseException) -> bool:
    """Whether `error` reports a failed allocation.

    Torch on a GPU and numpy have exception classes for this. The other errors are recognised by their text: those of torch
    on the CPU ("you tried to allocate"), those of CUDA and NCCL ("out of memory"), and those of its libraries, such as
    CUBLAS_STATUS_ALLOC_FAILED.
    """
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in NO_MEMORY)


@contextlib.contextmanager
def enough_memory(work: str, remedy: str) -> Iterator[None]:
    """Wraps work that cannot be divided into smaller parts. Raises UserError where memory runs out."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not out_of_memory(error):
            raise
        raise UserError(f"out of memory {work}: {remedy}") from None
