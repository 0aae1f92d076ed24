"""What trainings cost: the paper's estimate, the counted operations, the utilisation of the hardware, the energy."""

from collections.abc import Sequence
from typing import Any

from pipeline.reporting.evidence import Evidence
from pipeline.reporting.published import SUSTAINED_TFLOPS, TABLE2, TRAININGS
from pipeline.reporting.tables import Column, Table

COMPONENTS = {
    "encoder_self_attention_projections": "encoder projections",
    "encoder_self_attention": "encoder attention",
    "encoder_feed_forward": "encoder feed-forward",
    "decoder_self_attention_projections": "decoder projections",
    "decoder_self_attention": "decoder attention",
    "cross_attention_projections": "cross projections",
    "cross_attention": "cross attention",
    "decoder_feed_forward": "decoder feed-forward",
    "softmax_projection": "softmax projection",
}


def flops(runs: Sequence[Evidence]) -> Table:
    """The paper's two trainings, then ours."""
    kinds = {"hardware": "text", "precision": "text", "GPUs": "count", "training": "duration"}
    kinds |= {"sustained TFLOPS": "given", "FLOPs, estimated": "power"}
    columns = [Column("run", "run"), *(Column(label, kind, measured=True) for label, kind in kinds.items())]
    columns += [Column("MFU (%)", "number", 1, measured=True), Column("HFU (%)", "number", 1, measured=True)]
    columns += [Column("energy (kWh)", "number", 3, measured=True)]
    rows = [published_row(model) for model in TRAININGS] + [own_row(run) for run in runs]
    notes = [
        (
            "The FLOPs are estimated by the paper's formula: time x GPUs x sustained TFLOPS of one GPU (footnote 5; "
            "params.yaml: hardware)."
        ),
        (
            "MFU and HFU are the counted operations divided by the operations of the GPUs at their peak rate in the "
            "training time. HFU counts the masked half of the decoder's self-attention, MFU does not. A training on a "
            "CPU has neither, and no estimate. The energy is what the GPU reports."
        ),
    ]
    return Table("flops", "What the trainings cost", columns, rows, notes)


def published_row(model: str) -> list[Any]:
    training = TRAININGS[model]
    (row,) = [row for row in TABLE2 if row.model == model]
    cells = [f"{row.name}, the paper's", training.hardware, "float32", training.gpus, training.seconds]
    return [*cells, SUSTAINED_TFLOPS[training.hardware], row.flops_en_de, None, None, None]


def own_row(run: Evidence) -> list[Any]:
    cost = run.cost
    cells = [run.name, *(run.at("timing", key) for key in ("hardware", "precision", "gpus", "seconds"))]
    cells += [cost.sustained_tflops, cost.flops, cost.mfu and 100 * cost.mfu, cost.hfu and 100 * cost.hfu]
    return [*cells, cost.energy_joules and cost.energy_joules / 3.6e6]


def operations(runs: Sequence[Evidence]) -> Table:
    """The counted operations of each training, in total and by component."""
    columns = [Column("run", "run"), Column("total", "power"), Column("causal half", "power")]
    columns += [Column(label, "power") for label in COMPONENTS.values()]
    note = (
        "The counts are of the whole training: all matrix products on tokens without padding, forward and backward, as "
        "torch.utils.flop_counter counts them. The total includes the masked half of the decoder's self-attention; the "
        "next column leaves it out."
    )
    return Table("operations", "FLOPs, counted", columns, list(map(operations_row, runs)), [note])


def operations_row(run: Evidence) -> list[Any]:
    totals = [run.at("flops", "analytic", key) for key in ("training_flops", "training_flops_causal_half")]
    return [run.name, *totals, *(run.at("flops", "analytic", "components", key) for key in COMPONENTS)]
