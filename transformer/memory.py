"""Running out of memory, which torch and numpy report in three ways."""

import contextlib
from collections.abc import Iterator

import torch

from transformer.config.reading import UserError


def out_of_memory(error: BaseException) -> bool:
    """Whether the allocator of a GPU, of a processor or of numpy had no more; a processor's has no class of its own."""
    kinds = (torch.OutOfMemoryError, MemoryError)
    return isinstance(error, kinds) or (isinstance(error, RuntimeError) and "you tried to allocate" in str(error))


@contextlib.contextmanager
def enough_memory(work: str, remedy: str) -> Iterator[None]:
    """Around what cannot be done in smaller parts. Raises UserError where memory runs out."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not out_of_memory(error):
            raise
        raise UserError(f"out of memory {work}: {remedy}") from None
