"""The block `reverse_scores`: the decodings of a set are scored by a run of the reverse direction.

A line of the block causes no training.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class ReverseScore:
    """A model folder below models/ (RUN/average) and a set below data/sets/. The model scores the set's decodings."""

    model: str
    set: str
