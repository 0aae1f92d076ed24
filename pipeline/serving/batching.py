"""Batches of texts from several requests: a worker thread translates as many waiting texts at once as fit into a batch."""

import logging
import threading
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from transformer.translator import Translator

GATHER = 0.01  # the worker waits at most so many seconds for as many texts as the last batch had
log = logging.getLogger(__name__)


def lengths_of(translator: Translator, texts: list[str]) -> list[int]:
    """The number of pieces of each text."""
    return [len(ids) for ids in translator.encode(translator.normalise(texts))]


class QueueFull(Exception):
    """The queue has no room for the texts of a request, or has stopped."""


@dataclass(frozen=True)
class Job:
    """A text in the queue."""

    text: str
    pieces: int
    result: "Future[Any]" = field(default_factory=Future)


class Batcher:
    """The queue and its worker."""

    def __init__(self, translator: Translator, waiting: int) -> None:
        """`waiting` is the largest number of texts in the queue. Only the worker's thread translates."""
        self.translator, self.most, self.last = translator, waiting, 1
        self.jobs: deque[Job] = deque()
        self.changed = threading.Condition()
        self.stopped = False
        self.worker = threading.Thread(target=self.run, name="batches", daemon=True)
        self.worker.start()

    def submit(self, texts: list[str], lengths: list[int]) -> "list[Future[Any]]":
        """Return a future for the translation of each text, a Hypothesis. The text of a cancelled future is not translated.

        `lengths` are the numbers of pieces, each at most `translator.longest`. Raises QueueFull, and then queues no text.
        """
        jobs = [Job(text, pieces) for text, pieces in zip(texts, lengths)]
        with self.changed:
            self.jobs = deque(job for job in self.jobs if not job.result.cancelled())
            if self.stopped or len(self.jobs) + len(jobs) > self.most:
                raise QueueFull
            self.jobs.extend(jobs)
            self.changed.notify()
        return [job.result for job in jobs]

    def waiting(self) -> int:
        """The number of texts in the queue."""
        with self.changed:
            return sum(not job.result.cancelled() for job in self.jobs)

    def stop(self) -> None:
        """Cancel the waiting texts, and end the worker after its current batch."""
        with self.changed:
            self.stopped = True
            for job in self.jobs:
                job.result.cancel()
            self.changed.notify()
        self.worker.join()

    def run(self) -> None:
        while batch := self.next_batch():
            self.last = len(batch)
            try:
                results = self.translator([job.text for job in batch], scores=True)
            except Exception as error:  # the worker must go on
                log.exception("a batch of %d texts failed", len(batch))
                for job in batch:
                    job.result.set_exception(error)
            else:
                for job, result in zip(batch, results):
                    job.result.set_result(result)

    def next_batch(self) -> list[Job]:
        """Return the texts of the next batch, in order of arrival. After `stop`, return []."""
        with self.changed:
            batch: list[Job] = []
            while not batch:
                self.changed.wait_for(lambda: self.stopped or self.jobs)
                if self.stopped:
                    return []
                # Clients of one batch send their next requests at about the same time. Without this wait, the first
                # request would become a batch of its own.
                self.changed.wait_for(lambda: self.stopped or len(self.jobs) >= self.last, GATHER)
                longest = 0
                while self.jobs:
                    longest = max(longest, self.jobs[0].pieces)
                    if batch and longest * (len(batch) + 1) > self.translator.longest:
                        break
                    job = self.jobs.popleft()
                    if job.result.set_running_or_notify_cancel():
                        batch.append(job)
            return batch
