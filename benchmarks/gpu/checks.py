"""Part `check`: the correctness checks.

Each check is a function that raises AssertionError if its claim about training or decoding on a device is false. It returns
the figures that it found. tests/test_gpu.py runs the checks in pytest.
"""

import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.gpu.bench import Bench
from benchmarks.record import Table
from transformer.batch import Batch
from transformer.config.model import ModelConfig
from transformer.config.reading import UserError
from transformer.config.training import TrainingConfig
from transformer.data import in_order
from transformer.decoding import model_in, translate
from transformer.fast.graphs import CudaCapture, Graphs
from transformer.fast.proof import NEAR, Measured, differences, gradients_of, measured
from transformer.layers import Layers
from transformer.layout import joined, packed, padded, tabled
from transformer.model import Transformer
from transformer.perplexity import batch_loss
from transformer.step import Step
from transformer.training import new_state
from transformer.translator import PAPER

RESUMED = 1e-3  # the largest accepted relative difference of a loss after resuming; a GPU adds in no fixed order


def checked(bench: Bench) -> ModelConfig:
    """The model with two layers in each stack, without dropout."""
    return bench.model(N=2, dropout=0.0)


def layouts(bench: Bench) -> list[Batch]:
    """The same dev pairs padded, packed, in a table with empty positions, and in one row."""
    pairs, limit = bench.dev(), bench.training().batch_tokens
    batches = [*in_order(pairs, limit)]
    numbers = batches[len(batches) // 2]
    width = int(max(pairs.lengths(side)[numbers].max() for side in ("source", "target"))) + 9
    table = tabled(pairs, numbers, len(numbers) + 1, width)
    alone, rows, one = (layout(pairs, numbers) for layout in (padded, packed, joined))
    return [batch.to(bench.device) for batch in (alone, rows, table, one)]


def compared(ours: Measured, theirs: Measured, precision: str) -> str:
    """The differences of loss and gradients. Raises AssertionError if one is larger than NEAR allows."""
    loss, gradients = differences(ours, theirs)
    said = f"{precision}: loss {loss:.1e}, gradients {gradients:.1e}"
    most = NEAR[precision]
    assert loss <= most[0] and gradients <= most[1], f"{said}; at most {most[0]:.0e} and {most[1]:.0e} are expected"
    return said


def packed_equals_padded(bench: Bench) -> str:
    """All layouts of the same pairs give the same loss and gradients.

    A neighbourhood that no sentence exceeds changes nothing but the kernels: attention then has a mask.
    """
    model, batches, said = bench.network(checked(bench)), layouts(bench), []
    for precision in NEAR:
        model.config = checked(bench)
        alone, *others = (measured(model, batch, precision) for batch in batches)
        model.config = replace(model.config, neighbourhood=max(batch.source.ids_BS.shape[1] for batch in batches))
        others.append(measured(model, batches[1], precision))
        said += [compared(other, alone, precision) for other in others]
    return "; ".join(said)


def fast_equals_reference(bench: Bench) -> str:
    """The layers of a training give the loss and gradients of the reference, in their layout and in padded rows.

    The dev loss is the same, too. Padded rows in float32 and the layout of training in bfloat16 are checked.
    """
    reference, ours = (bench.network(checked(bench), layers) for layers in (Layers(), None))
    alone, rows, _, one = layouts(bench)
    cases = [("float32", alone, alone), ("bfloat16", one if bench.cuda else rows, rows)]
    said = [compared(measured(ours, own, of), measured(reference, other, of), of) for of, own, other in cases]
    _, own, other = cases[1]
    difference = abs(dev_loss(ours, own) / dev_loss(reference, other) - 1)
    assert difference <= NEAR["float32"][0], f"the dev losses differ by {difference:.1e}"
    return "; ".join([*said, f"dev loss {difference:.1e}"])


def dev_loss(model: Transformer, batch: Batch) -> float:
    """The loss of a batch as in the evaluation of a training: in float32, without dropout and gradients."""
    model.eval()
    with torch.inference_mode():
        loss = batch_loss(model, batch, 0.0).item()
    model.train()
    return loss


def graphs_equal_separate_launches(bench: Bench) -> str:
    """The gradients of passes that are replayed from CUDA graphs equal those without graphs, with the same dropout.

    Batches of two shapes take turns, with a dev loss between them. A CPU has no graphs; there the passes are computed
    again.
    """
    pairs, config = bench.dev(), bench.training()
    first = next(iter(in_order(pairs, config.batch_tokens)))
    halves = first[: len(first) // 2], first[len(first) // 2 : 2 * (len(first) // 2)]
    width = int(max(pairs.lengths(side)[first].max() for side in ("source", "target"))) + 1
    turns = [(0, 0), (1, 0), (0, 8), (1, 8), (0, 0), (1, 8), (1, 0)]  # a half, and how much wider its rows are
    batches = [tabled(pairs, halves[half], len(halves[half]), width + more) for half, more in turns]
    model = bench.network(replace(checked(bench), dropout=0.1))
    capture = CudaCapture() if bench.cuda else torch.enable_grad()
    warnings, found = list[str](), list[Measured]()
    for graphs in (None, Graphs(model, capture, warnings.append)):
        with closing(Step(new_state(model, config, bench.device), config, bench.device, "bfloat16")) as own:
            own.graphs = graphs
            for step, batch in enumerate(batches):
                model.zero_grad()
                own.seed(step, 0)
                loss = own.add(batch, len(batch.labels_N)).item()
                found.append((loss, gradients_of(model)))
                if step == len(turns) // 2:
                    dev_loss(model, batch.to(bench.device))
    assert not warnings, warnings[0]
    return "; ".join(compared(ours, theirs, "bfloat16") for ours, theirs in zip(found[len(turns) :], found))


def resumed_equals_uninterrupted(bench: Bench) -> str:
    """A training that is stopped, saved and resumed has the losses of an uninterrupted one, up to RESUMED."""
    config = bench.training(steps=6, log_every=1, evaluate_every=6, checkpoint_every=3, keep=1)
    model = replace(checked(bench), dropout=0.1)

    def trained(folder: Path, config: TrainingConfig, until: int = 6) -> list[float]:
        records: list[dict] = []
        with closing(bench.trainer(model, config, folder)) as trainer:
            trainer.store.resume(trainer.state)
            trainer.run(lambda record: records.append(record or {}), lambda: trainer.state.step >= until)
        return [record[key] for record in records for key in ("loss", "dev_loss") if key in record]

    with tempfile.TemporaryDirectory() as name:
        whole = trained(Path(name, "whole"), config)
        resumed = trained(Path(name, "stopped"), config, 3) + trained(Path(name, "stopped"), config)
    assert len(whole) == len(resumed) == 7, (whole, resumed)
    most = max(abs(one / other - 1) for one, other in zip(resumed, whole))
    assert most <= RESUMED, f"losses differ by {most:.1e}; at most {RESUMED:.0e} is expected"
    return f"losses differ by at most {most:.1e}"


def decoding_equals_that_of_the_cpu(bench: Bench) -> str:
    """In float32, decoding a batch on the device gives the scores of decoding its sentences one by one on the CPU.

    At least 90% of the translations have to be equal. In bfloat16, the mean score on the device has to be near that.
    """
    config, pairs = replace(PAPER, precision="float32", extra_length=5), bench.dev()
    sources = [pairs.pair(number)[0].tolist() for number in range(min(16, len(pairs)))]
    model = bench.network(checked(bench)).eval()
    ours = translate(model, sources, config)
    halved = [each.score for each in translate(model_in("bfloat16", model), sources, config)]
    model.cpu()
    theirs = [translate(model, [source], config)[0] for source in sources]
    same = sum(one.ids == other.ids for one, other in zip(ours, theirs))
    most = max(abs(one.score / other.score - 1) for one, other in zip(ours, theirs))
    mean = abs(sum(halved) / sum(each.score for each in theirs) - 1)
    said = f"{same} of {len(sources)} translations equal, scores differ by at most {most:.1e}; bfloat16: mean {mean:.1e}"
    assert same >= 0.9 * len(sources) and most <= 1e-3 and mean <= NEAR["bfloat16"][1], said
    return said


def no_host_wait_in_a_step(bench: Bench) -> str:
    """The host does not wait for the GPU in a training step, after the first 20."""
    model, training = bench.model(), bench.training()
    with (
        tempfile.TemporaryDirectory() as name,
        closing(bench.trainer(model, training, Path(name))) as trainer,
    ):
        trainer.state.model.train()
        for _ in range(20):
            trainer.advance()
        waits = host_waits(trainer.advance, bench)
        if any(wait.startswith("graphs.py") for wait in waits):  # the first graphs are checked once
            waits = host_waits(trainer.advance, bench)
    assert not waits, f"the host waits at {', '.join(waits)}"
    return "0 waits"


# Operators that copy a tensor's value, or a size that depends on it, to the host.
READ_BY_HOST = {"aten::_local_scalar_dense", "aten::nonzero", "aten::equal"}
# On a CPU, this operator reads the number of steps with an operator of READ_BY_HOST; on a GPU, it does not. Calls within it
# are therefore not counted.
READS_ITSELF = "aten::_fused_adamw_"


def within(event: Any, name: str) -> bool:
    parent = event.cpu_parent
    return parent is not None and (parent.name == name or within(parent, name))


def host_waits(run: Callable[[], object], bench: Bench) -> list[str]:
    """Call `run`, and name each place at which the host waits for the GPU, which is then idle.

    On a CPU these are the operators that would wait for a GPU.
    """
    if not bench.cuda:
        with profile(activities=[ProfilerActivity.CPU]) as profiler:
            run()
        return [each.name for each in profiler.events() if each.name in READ_BY_HOST and not within(each, READS_ITSELF)]
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            run()
        finally:
            torch.cuda.set_sync_debug_mode("default")
    waits = [warning for warning in seen if "called a synchronizing" in str(warning.message)]
    return [f"{Path(warning.filename).name}:{warning.lineno}" for warning in waits]


CHECKS: dict[str, Callable[[Bench], str]] = {
    check.__name__.replace("_", " "): check
    for check in (
        packed_equals_padded,
        fast_equals_reference,
        graphs_equal_separate_launches,
        no_host_wait_in_a_step,
        decoding_equals_that_of_the_cpu,
        resumed_equals_uninterrupted,
    )
}


def run(bench: Bench) -> Iterator[Table]:
    """Yield one table. Raises UserError if a check fails, once all have run."""
    rows, failed = [], []
    for name, check in CHECKS.items():
        began = time.perf_counter()
        try:
            result, said = "holds", check(bench)
        except Exception as error:  # the other checks go on
            result, said = "fails", f"{type(error).__name__}: {' '.join(str(error).split())}"
            failed.append(name)
        rows.append([name, result, said, f"{time.perf_counter() - began:.0f}"])
    yield {"columns": ["check", "result", "figures", "seconds"], "rows": rows}
    if failed:
        raise UserError(f"{', '.join(failed)}: failed")
