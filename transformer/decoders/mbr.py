"""Minimum Bayes risk decoding: the candidate with the highest mean utility against references drawn from the model.

Kumar and Byrne 2004; with sampled references, Eikema and Aziz 2020.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from transformer.decoders.steps import Decoder, Sentences, Translation

Utility = Callable[[Sequence[Sequence[int]], Sequence[Sequence[int]]], Sequence[float]]
"""Takes the ids of candidates and of references, returns the utility of each candidate: the mean over the references, or
for `chrf_aggregate` the utility against all references at once."""


@dataclass(frozen=True)
class Pool:
    """A decoder and the number of translations that are taken from it for each sentence."""

    decoder: Decoder
    number: int


@dataclass(frozen=True)
class Mbr:
    """MBR decoding as a `Decoder`. The score of a translation is its utility.

    Equal candidates count once. Equal references count as often as they were drawn. Equal pools are drawn once. Pools
    of `mcts` with an oracle are never equal. Of equally good candidates, the one that its decoder ranks higher is first. If
    the search for a candidate or a reference of a sentence ran out of its budget, `finished` is False.
    """

    candidates: Pool
    references: Pool
    utility: Utility

    def search(self, batch: Sentences, n_best: int) -> list[list[Translation]]:
        drawn = {pool: pool.decoder.search(batch, pool.number) for pool in {self.candidates, self.references}}
        return [
            self.ranked(candidates, references)[:n_best]
            for candidates, references in zip(drawn[self.candidates], drawn[self.references])
        ]

    def ranked(self, candidates: Sequence[Translation], references: Sequence[Translation]) -> list[Translation]:
        different = list({tuple(each.ids): each.ids for each in candidates}.values())
        scores = self.utility(different, [each.ids for each in references])
        finished = all(each.finished for each in (*candidates, *references))
        found = [Translation(ids, score, finished) for ids, score in zip(different, scores)]
        return sorted(found, key=lambda each: -each.score)

    def width(self, n_best: int) -> int:
        return max(pool.decoder.width(pool.number) for pool in (self.candidates, self.references))
