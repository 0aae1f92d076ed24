"""The bounds of the server."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    body: int  # bytes of a request's body
    texts: int  # texts of a request
    pieces: int  # subword pieces of a text
    waiting: int  # texts in the queue
    traces: int  # searches that are shown at the same time
    seconds: float  # for receiving the body of a request, and again for its answer


LIMITS = Limits(body=2**18, texts=64, pieces=256, waiting=256, traces=8, seconds=30.0)
