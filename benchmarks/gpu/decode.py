"""Part `decode`: beam search on newstest2014 by precision and batch size.

The first row has the precision and the batch size that `auto` and 0 stand for on this device. The weights are those
that part `learn` saved, or random if there are none. Random weights rarely choose EOS, so nearly every translation
reaches its maximum length.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.gpu.bench import Bench, Outcome
from benchmarks.profile import host_waits, profiled
from transformer.checkpoint import WEIGHTS, load_model
from transformer.config.decoding import DecodingConfig
from transformer.decoding import batches_by_length, model_in, settings_on, translate, translate_batches
from transformer.model import Transformer

GOAL = 40_000  # target tokens/s on an H200, in the first row
OTHERS = (131_072, 65_536)  # batch_tokens of further rows


@dataclass(frozen=True)
class Decoded:
    """The translations in the order of the sources, and the seconds they took."""

    ids: list[list[int]]
    seconds: float

    @property
    def tokens(self) -> int:
        return sum(len(ids) + 1 for ids in self.ids)


def weights(bench: Bench) -> tuple[str, Transformer]:
    path = bench.out / "model" / WEIGHTS
    if path.exists():
        return "learnt by `learn`", load_model(path, bench.device)[0]
    return "random", bench.network(bench.model(bench.scale.base)).eval()


def decoded(bench: Bench, model: Transformer, sources: list[list[int]], config: DecodingConfig) -> Decoded:
    batches = batches_by_length([len(source) for source in sources], max(1, config.batch_tokens // config.beam))
    held = model_in(config.precision, model)
    chosen = [[sources[number] for number in numbers] for numbers in batches]
    list(translate_batches(held, [chosen[0], chosen[-1]], config))  # a warm-up
    bench.synchronise()
    began, ids = time.perf_counter(), [list[int]()] * len(sources)
    for numbers, translations in zip(batches, translate_batches(held, chosen, config)):
        for number, translation in zip(numbers, translations):
            ids[number] = translation.ids
    return Decoded(ids, time.perf_counter() - began)


def variations(bench: Bench) -> Iterator[DecodingConfig]:
    width = bench.model(bench.scale.base).d_model
    chosen = settings_on(bench.device, bench.decoding(precision="auto", batch_tokens=0), width)
    yield chosen
    for precision in ("float32", "bfloat16"):
        if precision != chosen.precision:
            yield bench.decoding(precision=precision, batch_tokens=chosen.batch_tokens)
    for tokens in OTHERS:
        if tokens != chosen.batch_tokens:
            yield bench.decoding(precision=chosen.precision, batch_tokens=tokens)


def run(bench: Bench, outcome: Outcome) -> None:
    made, model = weights(bench)
    pairs = bench.pairs("test")
    numbers = range(min(len(pairs), bench.scale.sentences))
    sources = [ids for ids in (pairs.pair(number)[0].tolist() for number in numbers) if ids]
    columns = ("weights", "precision", "batch tokens", "target tokens/s", "goal", "sentences/s")
    rows, first = outcome.table(*columns, "same as the first row"), None
    outcome.figures |= {"weights": made, "sentences": len(sources), "runs": []}
    for config in variations(bench):
        found = decoded(bench, model, sources, config)
        first = first or found
        same = sum(mine == theirs for mine, theirs in zip(found.ids, first.ids)) / len(sources)
        speed, goal = found.tokens / found.seconds, f"{GOAL:,}" if found is first else "–"
        cells = [config.precision, f"{config.batch_tokens:,}", f"{speed:,.0f}", goal]
        rows.append([made, *cells, f"{len(sources) / found.seconds:,.0f}", f"{same:.1%}"])
        settings = {"precision": config.precision, "batch_tokens": config.batch_tokens}
        outcome.figures["runs"].append({**settings, "seconds": found.seconds, "target_tokens": found.tokens})
    look_inside(bench, outcome, model, sources)


def look_inside(bench: Bench, outcome: Outcome, model: Transformer, sources: list[list[int]]) -> None:
    """Report attention kernels and host waits of a batch of the shortest sentences, and the whole part's peak memory."""
    config = next(variations(bench))
    held, some = model_in(config.precision, model), sorted(sources, key=len)[: 4 * 16]

    def once() -> None:
        translate(held, some, config)  # in this thread, the only one that the profiler follows

    waits = host_waits(once, bench.device)
    _, calls = profiled(once, bench.device)
    outcome.inside(bench.device, f"{len(some)} sentences: host waits", waits, calls)
