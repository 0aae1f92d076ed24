"""Batches of sentences from several requests: one task translates as many waiting sentences at once as fit into a batch."""

import asyncio
import contextlib
import logging
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from transformer.translator import Translator

GATHER = 0.01  # the task waits at most so many seconds for as many texts as the last batch had
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Job:
    text: str
    pieces: int
    result: "asyncio.Future[Any]" = field(default_factory=asyncio.Future)


class Batcher:
    """The queue. The task `run` translates its texts in another thread, one batch at a time."""

    def __init__(self, translator: Translator, most: int) -> None:
        self.translator, self.most, self.last = translator, most, 1
        self.jobs: deque[Job] = deque()
        self.more = asyncio.Event()

    def submit(self, texts: list[str], lengths: list[int]) -> "list[asyncio.Future[Any]]":
        """Return a future for the translation of each normalised sentence, a Hypothesis. A cancelled one is not translated.

        `lengths` are the numbers of pieces, each at most `translator.longest`. If not all have room,
        raises asyncio.QueueFull and queues none.
        """
        if len(self.waiting()) + len(texts) > self.most:
            raise asyncio.QueueFull
        jobs = [Job(text, pieces) for text, pieces in zip(texts, lengths)]
        self.jobs.extend(jobs)
        self.more.set()
        return [job.result for job in jobs]

    def waiting(self) -> deque[Job]:
        """The texts in the queue, without those whose futures were cancelled."""
        self.jobs = deque(job for job in self.jobs if not job.result.cancelled())
        return self.jobs

    async def run(self) -> None:
        while True:
            batch = await self.next_batch()
            self.last = len(batch)
            try:
                results = await asyncio.to_thread(self.translator.hypotheses, [job.text for job in batch], "a batch")
            except Exception as error:  # the task must go on
                log.exception("a batch of %d texts failed", len(batch))
                for job in batch:
                    if not job.result.cancelled():
                        job.result.set_exception(error)
            else:
                for job, (result, *_) in zip(batch, results):
                    if not job.result.cancelled():
                        job.result.set_result(result)

    async def next_batch(self) -> list[Job]:
        """Wait for texts, and return those of the next batch, in order of arrival."""
        await self.arrived(1)
        # Clients of one batch send their next requests at about the same time. Without this wait, the first request would
        # become a batch of its own.
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.arrived(self.last), GATHER)
        batch: list[Job] = []
        longest = 0
        while self.waiting():
            longest = max(longest, self.jobs[0].pieces)
            if batch and longest * (len(batch) + 1) > self.translator.longest:
                break
            batch.append(self.jobs.popleft())
        return batch

    async def arrived(self, number: int) -> None:
        while len(self.waiting()) < number:
            self.more.clear()
            await self.more.wait()
