"""Tables of our own runs: results, all scores, the BLEU matrix, means over seeds, studies, and what trainings cost."""

from collections.abc import Iterable, Sequence
from typing import Any

from pipeline.reporting import variations
from pipeline.reporting.evidence import Evidence, alike, over_seeds
from pipeline.reporting.published import SUSTAINED_TFLOPS, TABLE2, TRAININGS, utilisation
from pipeline.reporting.studies import Study
from pipeline.reporting.tables import Column, Table
from pipeline.reporting.variations import described

TRANSLATIONS = {
    "dev, last": ("dev", "last"),
    "dev, average": ("dev", "average"),
    "test": ("test", "average"),
    "test, filtered": ("test_filtered", "average"),
}
MEASURES = {
    "bleu-13a": "sacreBLEU 13a",
    "bleu-13a-lc": "sacreBLEU 13a, lower-cased",
    "bleu-intl": "sacreBLEU intl",
    "bleu-intl-lc": "sacreBLEU intl, lower-cased",
    "bleu-published": "published measure",
    "bleu-raw-reference": "the same, raw reference",
    "bleu-normalised": "the same, normalised reference",
    "bleu-tokenised": "on spaces, lower-cased",
    "chrf": "chrF",
}
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


def summary(runs: Sequence[Evidence]) -> Table:
    """The results of each run."""
    columns = [Column("run", "run"), Column("test sacreBLEU", "score"), Column("test BLEU, published measure", "score")]
    columns += [Column("chrF", "score"), Column("dev PPL", "number"), Column("corpus"), Column("parameters", "count")]
    rows = []
    for run in runs:
        cells = [run.name, *(run.measure(name) for name in ("bleu-13a", "bleu-published", "chrf"))]
        rows.append([*cells, run.at("translations", "dev", "average", "perplexity"), run.corpus, size(run)])
    note = "Averaged checkpoints, with 95% intervals by bootstrap; perplexity per word-piece."
    return Table("summary", "Runs", columns, rows, [note])


# Columns of runs.csv, each with the part and the keys of its value. RESULTS has the arguments of `Evidence.measure`.
FACTS = [
    (Column("parameters", "count"), ("training", "parameters")),
    (Column("steps", "count"), ("training", "steps")),
    (Column("dev PPL, last", "number"), ("translations", "dev", "last", "perplexity")),
    (Column("dev PPL, average", "number"), ("translations", "dev", "average", "perplexity")),
    (Column("FLOPs, counted", "power"), ("flops", "analytic", "training_flops")),
    (Column("data", "hash"), ("training", "data_sum")),
    (Column("settings", "hash"), ("training", "settings_sha256")),
]
RESULTS = [
    (Column("dev sacreBLEU, last", "score"), ("bleu-13a", "dev", "last")),
    (Column("dev sacreBLEU, average", "score"), ("bleu-13a", "dev", "average")),
    (Column("test sacreBLEU", "score"), ("bleu-13a", "test", "average")),
    (Column("test BLEU, published measure", "score"), ("bleu-published", "test", "average")),
    (Column("test chrF", "score"), ("chrf", "test", "average")),
]


def all_runs(runs: Sequence[Evidence]) -> Table:
    """One row for each run, with the hashes of its data and settings, which identify the origin of its numbers."""
    columns = [Column("run", "run"), Column("corpus"), Column("model"), Column("differences"), Column("recorded")]
    columns += [column for column, _ in RESULTS + FACTS] + [Column("sacreBLEU signature", "signature")]
    rows = []
    for run in runs:
        score = run.measure("bleu-13a")
        cells: list[Any] = [
            run.name,
            run.corpus,
            run.model,
            described(run.differences),
            "yes" if run.recorded else "no",
        ]
        cells += [run.measure(*place) for _, place in RESULTS]
        rows.append([*cells, *(run.at(*place) for _, place in FACTS), score and score.signature])
    note = "Recorded runs come from results/, the others are those that params.yaml selects."
    return Table("runs", "All runs", columns, rows, [note])


def bleu_matrix(runs: Sequence[Evidence]) -> Table:
    """Every measure of each run on the test set, and on the filtered part of the test set if there is one."""
    columns = [Column("run", "run"), *(Column(label, "score") for label in MEASURES.values()), Column("set")]
    rows = []
    for run in runs:
        for label in ("test", "test, filtered") if "test_filtered" in run.scores else ("test",):
            rows.append([run.name, *(run.measure(measure, *TRANSLATIONS[label]) for measure in MEASURES), label])
    note = "The same translations, scored by each measure; 95% intervals by bootstrap."
    table = Table("bleu-matrix", "BLEU matrix", columns, rows, [note])
    return table if len(table.values("set")) > 1 else table.without("set")


def scores(runs: Sequence[Evidence]) -> Table:
    """Every score with its signature, which is the same for all sets."""
    columns = [Column("run", "run"), Column("measure"), *(Column(label, "score") for label in TRANSLATIONS)]
    rows = []
    for run in runs:
        for measure, label in MEASURES.items():
            cells = [run.measure(measure, *place) for place in TRANSLATIONS.values()]
            known = [cell for cell in cells if cell]
            rows.append([run.name, label, *cells, known[0].signature if known else None])
    return Table("scores", "All scores", [*columns, Column("signature", "signature")], rows, grouped=True)


def study_table(study: Study) -> Table:
    """The runs of a study, best first, with the settings in which they differ."""
    varied, labels = study.varied(), {key: label for label, key in variations.SETTINGS.items()}
    columns = [Column("run", "run"), Column("test sacreBLEU", "score", drawn=True)]
    columns += [Column(labels.get(key, key), "given") for key in varied]
    columns += [Column("dev sacreBLEU, last", "score", drawn=True), Column("dev PPL, last", "number")]
    columns += [Column("corpus"), Column("model"), Column("parameters", "count")]
    columns += [Column("training", "duration", measured=True), Column("hardware", measured=True)]
    rows = []
    for run in study.best_first():
        cells: list[Any] = [run.name, run.measure("bleu-13a"), *variation(run, study.base, varied)]
        cells += [run.measure("bleu-13a", "dev", "last"), run.at("translations", "dev", "last", "perplexity")]
        cells += [run.corpus, run.model, size(run)]
        rows.append([*cells, run.at("timing", "seconds"), run.at("timing", "hardware")])
    title = study.name if len(study.corpora) > 1 else f"{study.name}, on {study.corpus}"
    table = Table(f"study-{study.name}", title, columns, rows, study_notes(study))
    same = [label for label in ("corpus", "model", "parameters", "hardware") if len(table.values(label)) == 1]
    on = table.values("hardware") if "hardware" in same else set()
    return table.without(*same).with_measured_notes(f"Trained on {each}." for each in on if each)


def size(run: Evidence) -> int | None:
    return run.at("training", "parameters")


def variation(run: Evidence, base: Evidence, varied: Sequence[str]) -> list[str]:
    """Return the values of the settings as text. Values equal to the base's are empty, except for the base itself."""
    values = [run.settings.get(key) for key in varied]
    same = [run is not base and value == base.settings.get(key) for key, value in zip(varied, values)]
    return ["" if equal or value is None else str(value) for equal, value in zip(same, values)]


def study_notes(study: Study) -> list[str]:
    sizes = {size(run) for run in study.runs}
    parameters = [f"{number:,} parameters" for number in sizes if number] if len(sizes) == 1 else []
    models = sorted({run.model for run in study.runs})
    about = ", ".join([f"Model {models[0]}", *parameters]) + ". " if len(models) == 1 else ""
    base = f" An empty setting is that of {study.base.name}." if study.varied() else ""
    note = (
        f"{about}Test set: averaged checkpoint. Dev set: last checkpoint, as in Table 3. 95% intervals by bootstrap; "
        f"perplexity per word-piece.{base}"
    )
    return [line for line in (note, study.caveat(), study.claim()) if line]


def seeds(runs: Iterable[Evidence]) -> Table | None:
    """Return a table of means over runs of `alike`, or None if there are no such runs."""
    names = [name for name in MEASURES if name != "chrf"]
    rows = []
    for same in alike(run for run in runs if run.scores):
        if len(same) > 1:
            found = [over_seeds(same, name) for name in names]
            means = [each and each.score for each in found]
            rows.append([same[0].corpus, same[0].model, ", ".join(run.name for run in same), len(same), *means])
    columns = [Column("corpus"), Column("model"), Column("runs"), Column("seeds", "count")]
    columns += [Column(MEASURES[name], "number") for name in names]
    note = "Means of BLEU on the test set over runs that differ only in the seed, or in the seed and the precision."
    return Table("seeds", "Means over seeds", columns, rows, [note]) if rows else None


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
            "params.yaml: hardware). The MFU of the paper's trainings is that of this rate."
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
    rate = SUSTAINED_TFLOPS[training.hardware]
    return [*cells, rate, row.flops_en_de, 100 * utilisation(training), None, None]


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
