"""What trainings cost: the paper's estimate, the operations counted, how well the hardware was used, the energy."""

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
    columns = [Column("run", "run"), Column("hardware"), Column("precision"), Column("GPUs", "count")]
    columns += [Column("training", "duration")]
    columns += [Column("sustained TFLOPS", "given"), Column("FLOPs, estimated", "power")]
    columns += [Column("FLOPs, counted", "power"), Column("causal half", "power")]
    columns += [Column("MFU (%)", "number", 1), Column("HFU (%)", "number", 1), Column("energy (kWh)", "number", 3)]
    rows = [published_row(model) for model in TRAININGS] + [own_row(run) for run in runs]
    notes = [
        (
            "Estimated by the paper's formula: time x GPUs x sustained TFLOPS of one (footnote 5; params.yaml: hardware). "
            "Counted are all matrix products on real tokens, forward and backward, as torch.utils.flop_counter counts "
            "them, the masked half of the decoder's self-attention too; without it in the column after."
        ),
        (
            "MFU is the operations without that half, HFU those with it, over the GPUs' peak in that time. A processor has "
            "neither, nor an estimate; energy is what the GPU reports."
        ),
    ]
    return Table("flops", "What the trainings cost", columns, rows, notes)


def published_row(model: str) -> list[Any]:
    training = TRAININGS[model]
    (row,) = [row for row in TABLE2 if row.model == model]
    cells = [f"{row.name}, the paper's", training.hardware, "float32", training.gpus, training.seconds]
    return [*cells, SUSTAINED_TFLOPS[training.hardware], row.flops_en_de, None, None, None, None, None]


def own_row(run: Evidence) -> list[Any]:
    mfu, hfu, energy = (run.at("flops", key) for key in ("mfu", "hfu", "energy_joules"))
    cells = [run.name, *(run.at("timing", key) for key in ("hardware", "precision", "gpus", "seconds"))]
    cells += [run.at("flops", "paper_estimate", key) for key in ("sustained_tflops", "flops")]
    cells += [run.at("flops", "analytic", key) for key in ("training_flops", "training_flops_causal_half")]
    return [*cells, mfu and 100 * mfu, hfu and 100 * hfu, energy and energy / 3.6e6]


def operations(runs: Sequence[Evidence]) -> Table:
    """The count by component."""
    columns = [Column("run", "run"), *(Column(label, "power") for label in COMPONENTS.values())]
    rows = [[run.name, *(run.at("flops", "analytic", "components", key) for key in COMPONENTS)] for run in runs]
    note = "Of a whole training, forward and backward: the sum of a line is what stands above as counted."
    return Table("operations", "FLOPs by component", columns, rows, [note])
