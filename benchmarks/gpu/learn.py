"""Part `learn`: a short training, whose best dev loss has to be below that of a bigram model of the target language.

The bigram model is estimated from the target side of the same training text (benchmarks.gpu.prepare) and does not see the
source. The part keeps the last weights for `decode`.
"""

import tempfile
from contextlib import closing
from pathlib import Path

from benchmarks.gpu.bench import Bench, Outcome
from transformer.binarised import describe
from transformer.checkpoint import WEIGHTS, write_settings, write_tensors
from transformer.files import atomic_folder
from transformer.model import Transformer

SECONDS = 420  # after which the training stops at the next step
EVALUATIONS = 8


def run(bench: Bench, outcome: Outcome) -> None:
    steps = bench.scale.learning
    every = max(1, steps // EVALUATIONS)
    limits = {"steps": steps, "checkpoint_every": steps, "keep": 1, "evaluate_every": every, "log_every": every}
    config = bench.training(bench.scale.base, **limits)
    bigram_loss = bench.settings["bigram_loss"]
    rows = outcome.table("step", "seconds", "training loss", "dev loss", "dev loss of a bigram model")
    outcome.figures |= {"bigram_loss": bigram_loss, "points": []}
    model = bench.model(bench.scale.base)
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(bench.trainer(model, config, bench.pairs("train"), Path(folder))) as trainer,
    ):
        state, loss = trainer.state, 0.0

        def tick(record: dict | None) -> None:
            nonlocal loss
            if record and "loss" in record:
                loss = record["loss"]
            elif record:
                point = {"step": state.step, "seconds": round(state.seconds, 1), "dev_loss": record["dev_loss"]}
                outcome.figures["points"].append(point)
                cells = [f"{state.step:,}", f"{state.seconds:.0f}", f"{loss:.3f}", f"{record['dev_loss']:.3f}"]
                rows.append([*cells, f"{bigram_loss:.3f}"])

        trainer.run(tick, lambda: state.seconds > SECONDS)
        outcome.require_graphs(trainer.own_gradients.graphs)
    best = min((point["dev_loss"] for point in outcome.figures["points"]), default=float("inf"))
    outcome.figures["learned"] = best < bigram_loss
    if best >= bigram_loss:
        outcome.failures.append(
            f"the best dev loss is {best:.3f}; it should be below that of a bigram model, {bigram_loss:.3f}"
        )
    keep(state.model, bench)


def keep(model: Transformer, bench: Bench) -> None:
    with atomic_folder(bench.out / "model") as folder:
        write_tensors(folder / WEIGHTS, model.state_dict(), {})
        write_settings(folder, model.config, len(model.embedding), describe(bench.data)["vocabulary_sha256"])
