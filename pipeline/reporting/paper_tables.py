"""Tables 2 and 3 of the paper, and results of toolkits, with our results. A run is in the row with equal settings."""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

from pipeline.reporting import variations
from pipeline.reporting.evidence import Evidence, Score, alike, over_seeds
from pipeline.reporting.published import (
    BIG_EN_FR_IN_THE_TEXT,
    TABLE2,
    TABLE3,
    TOOLKITS,
    TRAININGS,
    Table2Row,
    Table3Row,
    utilisation,
)
from pipeline.reporting.tables import Column, Table
from pipeline.reporting.variations import stated

EN_DE, EN_FR = "wmt14-en-de", "wmt14-en-fr"

OF_BLEU = (
    "BLEU is case-sensitive, on text with ASCII quotes that Moses tokenised, with German compounds split, as published "
    "WMT14 results are. A run that was recorded before this measure existed has a dash. sacreBLEU with its 13a "
    "tokenisation can be compared across papers. Intervals are 95%, by bootstrap over the sentences."
)


def on(corpus: str, name: str) -> bool:
    """Whether `corpus` is the paper's corpus `name`. Its copy on the Hugging Face hub has the same pairs."""
    return corpus.removesuffix("-hub") == name


def of_table2(runs: Sequence[Evidence], corpus: str, row: Table2Row) -> list[Evidence]:
    """The runs that reproduce a row on a corpus. The big model has a dropout of 0.1 on EN-FR (6.1).

    A run has the averaging and the decoding of its model in params.yaml, so a run of another model is in no row.
    """
    if row.model is None:
        return []
    (settings,) = [other.settings for other in TABLE3 if other.group == row.model]
    if corpus == EN_FR:
        settings = {**settings, "dropout": 0.1}
    return [run for run in runs if on(run.corpus, corpus) and run.model == row.model and stated(run) == settings]


def table2(runs: Sequence[Evidence]) -> Table:
    columns = [Column("model")]
    for pair in ("EN-DE", "EN-FR"):
        columns += [Column(f"{pair} BLEU, paper", "given"), Column(f"{pair} BLEU, ours", "score")]
        columns += [Column(f"{pair} sacreBLEU, ours", "score")]
        columns += [Column("EN-DE BLEU, ours, of 2,737 lines", "score")] if pair == "EN-DE" else []
    for pair in ("EN-DE", "EN-FR"):
        columns += [Column(f"{pair} FLOPs, paper", "power"), Column(f"{pair} FLOPs, ours", "power", measured=True)]
        columns += [Column(f"{pair} FLOPs, counted", "power")]
    columns += [Column("EN-DE run", "run"), Column("EN-FR run", "run")]
    rows = []
    for row in TABLE2:
        pairs = list(zip_longest(of_table2(runs, EN_DE, row), of_table2(runs, EN_FR, row))) or [(None, None)]
        rows += [table2_row(row, *pair) for pair in pairs]
    notes = [
        (
            "newstest2014 as test-full has it (3,003 lines), from the averaged checkpoints. The EN-DE set that was scored "
            f"in 2014 has 2,737 of these lines. {OF_BLEU}"
        ),
        f"EN-FR of the big model: Table 2 and the abstract say 41.8, the text of 6.1 says {BIG_EN_FR_IN_THE_TEXT}.",
        (
            "The paper's FLOPs are an estimate: training time x GPUs x sustained TFLOPS. The paper states one cost for "
            "both language pairs. The counted FLOPs are those of our training. They do not depend on its time."
        ),
        (
            "Counted in the same way, the paper's trainings have "
            + " and ".join(
                f"{training.counted:.1e} FLOPs ({name}: {utilisation(training):.0%} of its estimate)"
                for name, training in TRAININGS.items()
            )
            + ", which is the utilisation of its GPUs."
        ),
    ]
    return Table("table2", "Table 2: BLEU on newstest2014, and the cost of training", columns, rows, notes)


def table2_row(row: Table2Row, en_de: Evidence | None, en_fr: Evidence | None) -> list[Any]:
    def ours(run: Evidence | None) -> list[Any]:
        return [run and run.measure("bleu-published"), run and run.measure("bleu-13a")]

    filtered = en_de and en_de.measure("bleu-published", "test_filtered")

    def flops(run: Evidence | None) -> list[float | None]:
        return [run.cost.flops, run.at("flops", "analytic", "training_flops")] if run else [None, None]

    cells = [row.name, row.bleu_en_de, *ours(en_de), filtered, row.bleu_en_fr, *ours(en_fr)]
    cells += [row.flops_en_de, *flops(en_de), row.flops_en_fr, *flops(en_fr)]
    return [*cells, en_de and en_de.name, en_fr and en_fr.name]


def table3(runs: Sequence[Evidence]) -> Table:
    """The paper's rows, each with our runs of the same settings. Our other runs of a group follow its last row."""
    columns = [Column("row"), *variations.columns()]
    columns += [Column("PPL, paper", "number"), Column("PPL, ours", "number")]
    columns += [Column("BLEU, paper", "given"), Column("BLEU, ours", "score"), Column("sacreBLEU, ours", "score")]
    columns += [Column("params, paper (1e6)", "given"), Column("params, ours (1e6)", "number", 1)]
    columns += [Column("run", "run")]
    on_corpus = [run for run in runs if on(run.corpus, EN_DE) and run.settings]
    not_published = [run for run in on_corpus if stated(run) not in [row.settings for row in TABLE3]]
    rows = []
    for group in variations.GROUPS:
        for row in [row for row in TABLE3 if row.group == group]:
            ours: list[Evidence | None] = [run for run in on_corpus if stated(run) == row.settings]
            rows += [table3_row(group, row.settings, run, row) for run in ours or [None]]
        more = [run for run in not_published if variations.group(stated(run)) == group]
        rows += [table3_row(f"{group}, ours", stated(run), run) for run in more]
    notes = [
        (
            "newstest2013, from the last checkpoint, without averaging; perplexity per word-piece. An empty setting is "
            f'the base model\'s. A row marked "ours" has settings that the paper does not report. {OF_BLEU}'
        ),
        (
            "Perplexity per piece depends on the vocabulary. The paper's vocabulary is not published, so its perplexities "
            "cannot be compared exactly with ours."
        ),
        (
            "With one shared matrix of 37,000 pieces the base model has 63.1 million parameters and the big one 214. "
            "The paper says 65 and 213, which no single vocabulary size gives: a thousand pieces more add 0.5 to the "
            "first and 1.0 to the second."
        ),
    ]
    table = Table("table3", "Table 3: variations on the Transformer", columns, rows, notes, grouped=True)
    return table.without_empty(variations.OTHERS)


def table3_row(label: str, settings: Mapping, run: Evidence | None, row: Table3Row | None = None) -> list[Any]:
    """The paper's row, our run, or both, if they have these settings. Perplexity, BLEU, and parameters in millions."""
    theirs: list[Any] = [row.perplexity, row.bleu, row.parameters] if row else [None] * 3
    ours: list[Any] = [None] * 5
    if run:
        scores = [run.measure(name, "dev", "last") for name in ("bleu-published", "bleu-13a")]
        parameters = run.at("training", "parameters")
        ours = [run.at("translations", "dev", "last", "perplexity"), *scores, parameters and parameters / 1e6, run.name]
    cells = [label, *variations.cells(settings, label == "base")]
    return [*cells, theirs[0], ours[0], theirs[1], *ours[1:3], theirs[2], *ours[3:]]


def toolkits(runs: Sequence[Evidence]) -> Table:
    """The results of other implementations. Our runs follow the last of the results with the same model and measure."""
    columns = [Column("implementation"), Column("BLEU", "score", drawn=True)]
    columns += [Column(label) for label in ("measure", "model", "test set", "source")]
    rows: list[list[Any]] = []
    for number, each in enumerate(TOOLKITS):
        about = [each.measure, each.model, each.test_set]
        rows.append([each.name, Score(each.bleu, None, None, ""), *about, each.source])
        following = TOOLKITS[number + 1] if number + 1 < len(TOOLKITS) else None
        if following and (following.like, following.metric) == (each.like, each.metric):
            continue
        of_model = [run for run in runs if run.is_model_of(each.like, each.corpus)]
        ours = [(run, score) for run in of_model if (score := run.measure(each.metric))]
        rows += [[f"ours, {run.name}", score, *about, "one seed"] for run, score in ours]
        means = [mean for same in alike(run for run, _ in ours) if (mean := over_seeds(same, each.metric))]
        rows += [["ours", Score(mean.score, None, None, ""), *about, str(mean)] for mean in means]
    note = "Two measures of the same translations differ by up to 2 BLEU: compare numbers of the same measure."
    return Table("toolkits", "Other implementations", columns, rows, [note])
