"""Tables 1 to 3 of the paper, and results of toolkits, with our results. A run is in the row with equal settings."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import groupby, zip_longest
from pathlib import Path
from typing import Any

import pandas as pd

from pipeline.reporting.published import BASE, SETTINGS, TABLE1, TABLE2, TABLE3, TOKENISED, TOOLKITS, TRAININGS, Table3Row
from pipeline.reporting.results import LAST, TEST, TEST_FILTERED, Results
from pipeline.reporting.tables import Table, table, with_ends
from pipeline.scoring.bleu import HEADLINE, PUBLISHED
from pipeline.scoring.intervals import Score
from pipeline.settings.score_files import content, within

EN_DE, EN_FR = "wmt14-en-de", "wmt14-en-fr"
OF_BLEU = (
    "BLEU is case-sensitive, on text with ASCII quotes that Moses tokenised, with German compounds split, as the "
    "published EN-DE results are. For EN-FR no such reference is known: 308 of its lines have « and », which count as "
    "ASCII quotes here; `bleu-normalised` keeps them. A run that was recorded before this measure existed has a dash. "
    "sacreBLEU with its 13a tokenisation can be compared across papers. Intervals are 95%, by bootstrap over the sentences."
)
OF_TABLE1 = [
    "n positions, d dimensions, kernel width k, neighbourhood r; the path is the longest between any two positions.",
    "The measured layers are one head of attention without projections, which the paper does not count either, a plain "
    "recurrent layer (tanh), a convolution, and attention restricted to r positions on either side, computed in blocks. "
    "The paths are those of convolutions dilated by powers of k. Memory is what the forward pass keeps for the backward "
    "pass, without the weights. The expected memory is fitted in the same way to the count of the kept numbers, which is "
    "n^2 + n d for self-attention.",
]


def table1(layers: Path) -> Table:
    """The paper's formulae, and beside them what benchmarks/layers.py measured, if there is its file."""
    found = content(layers) or {"layers": {}}
    rows, notes = [], list(OF_TABLE1)
    measured = {"time grows as": "time", "memory expected": "expected_memory", "memory grows as": "memory"}
    for layer, (complexity, sequential, path) in TABLE1.items():
        powers = {label: within(found["layers"], layer, key) for label, key in measured.items()}
        laws = {label: of and "n^{n:.2f} d^{d:.2f}".format(**of) for label, of in powers.items()}
        head = {"layer": layer, "complexity per layer": complexity}
        rows.append({**head, **laws, "sequential operations": sequential, "path length": path})
    if found["layers"]:
        text = (
            "One layer, forward and backward, batch 1, k {k}, r {r}, on {hardware}; powers fitted by least squares on the "
            "logarithms, n and d {n_d[0]} to {n_d[1]}."
        )
        notes.append(text.format(**found["settings"], hardware=found["hardware"]))
    return table("table1", "Table 1: what a layer costs", rows, notes)


def on(corpus: str, name: str) -> bool:
    """Whether `corpus` is the paper's corpus `name`. Its copy on the Hugging Face hub has the same pairs."""
    return corpus.removesuffix("-hub") == name


def stated(run: Mapping[str, Any]) -> dict[str, Any]:
    """A run's values of the settings in BASE."""
    return {key: run[key] for key in BASE}


def reproducing(runs: pd.DataFrame, corpus: str, row: Table3Row) -> list[str]:
    """The runs with the settings of a row on EN_DE or EN_FR, where the big model has a dropout of 0.1 (6.1)."""
    settings = {**row.settings, **({"dropout": 0.1} if corpus == EN_FR and row.key == "big" else {})}
    return [str(name) for name, run in runs.iterrows() if on(run["corpus"], corpus) and stated(run) == settings]


def table2(results: Results) -> Table:
    rows, counted = [], results.runs["FLOPs, counted"]
    settings = {row.key: row for row in TABLE3}
    for row in TABLE2:
        # A run has the averaging and the decoding of its model in params.yaml, so a run of another model is in no row.
        runs = results.runs[results.runs["model"] == row.model]
        ours = [reproducing(runs, corpus, settings[row.model]) if row.model else [] for corpus in (EN_DE, EN_FR)]
        for de, fr in list(zip_longest(*ours)) or [(None, None)]:
            rows.append(
                {
                    "model": row.name,
                    "EN-DE BLEU, paper": row.bleu_en_de,
                    **with_ends("EN-DE BLEU, ours", results.score(de, PUBLISHED, *TEST)),
                    **with_ends("EN-DE sacreBLEU, ours", results.score(de, HEADLINE, *TEST)),
                    **with_ends("EN-DE BLEU, ours, of 2,737 lines", results.score(de, PUBLISHED, *TEST_FILTERED)),
                    "EN-FR BLEU, paper": row.bleu_en_fr,
                    **with_ends("EN-FR BLEU, ours", results.score(fr, PUBLISHED, *TEST)),
                    **with_ends("EN-FR sacreBLEU, ours", results.score(fr, HEADLINE, *TEST)),
                    "EN-DE FLOPs, paper": row.flops_en_de,
                    "EN-DE FLOPs, counted": counted.get(de),
                    "EN-FR FLOPs, paper": row.flops_en_fr,
                    "EN-FR FLOPs, counted": counted.get(fr),
                    "EN-DE run": de,
                    "EN-FR run": fr,
                }
            )
    of_trainings = " and ".join(
        f"{training.counted:.1e} FLOPs ({name}, {training.share_of_estimate:.0%} of its estimate)".replace("+", "")
        for name, training in TRAININGS.items()
    )
    notes = [
        "newstest2014 as test-full has it (3,003 lines), from the averaged checkpoints. The EN-DE set that was scored in "
        f"2014 has 2,737 of these lines. {OF_BLEU}",
        "EN-FR of the big model: Table 2 and the abstract say 41.8, the text of 6.1 says 41.0.",
        "The paper's FLOPs are an estimate: training time x GPUs x sustained TFLOPS. The paper states one cost for both "
        "language pairs. The counted FLOPs are those of our training. They do not depend on its time.",
        f"Counted in the same way, the paper's trainings have {of_trainings}.",
    ]
    given = ["EN-DE BLEU, paper", "EN-FR BLEU, paper"]
    title = "Table 2: BLEU on newstest2014, and the cost of training"
    return table("table2", title, rows, notes, given=given, ours=["EN-DE run", "EN-FR run"])


def table3(results: Results) -> Table:
    """The paper's rows, each with our runs of the same settings."""
    rows = []
    for row in TABLE3:
        hidden, of = {} if row.group == "base" else BASE, row.settings
        settings = {label: "" if of[key] == hidden.get(key) else str(of[key]) for label, key in SETTINGS.items()}
        ours: list[str | None] = [*reproducing(results.runs, EN_DE, row)]
        for run in ours or [None]:
            found = results.runs.loc[run] if run else {}
            rows.append(
                {
                    "row": row.group,
                    **settings,
                    "PPL, paper": row.perplexity,
                    "PPL, ours": found.get("dev PPL, last"),
                    "BLEU, paper": row.bleu,
                    **with_ends("BLEU, ours", results.score(run, PUBLISHED, *LAST)),
                    **with_ends("sacreBLEU, ours", results.score(run, HEADLINE, *LAST)),
                    "params, paper (1e6)": row.parameters,
                    "params, ours (1e6)": found["parameters"] / 1e6 if run and found["parameters"] else None,
                    "run": run,
                }
            )
    notes = [
        "newstest2013, from the last checkpoint, without averaging; perplexity per word-piece. An empty setting is the "
        f"base model's. {OF_BLEU}",
        "Perplexity per piece depends on the vocabulary. The paper's vocabulary is not published, so its perplexities "
        "cannot be compared exactly with ours.",
        "With one shared matrix of 37,000 pieces the base model has 63.1 million parameters and the big one 214. The paper "
        "says 65 and 213, which no single vocabulary size gives: a thousand pieces more add 0.5 to the first and 1.0 to "
        "the second.",
    ]
    given, places = ["BLEU, paper", "params, paper (1e6)", *SETTINGS], {"params, ours (1e6)": 1}
    title = "Table 3: variations on the Transformer"
    return table("table3", title, rows, notes, places=places, given=given, ours=["run"], grouped=True)


def merged(table: Table) -> Table:
    """Table 3 with the settings in its first column, so that a narrow screen shows them beside the first result."""
    frame = table.frame.drop(columns=list(SETTINGS))
    for place, row in enumerate(table.rows()):
        if row["row"] != "base":
            frame.iloc[place, 0] = f"{row['row']}: {', '.join(f'{label} {row[label]}' for label in SETTINGS if row[label])}"
    return replace(table, frame=frame, grouped=False)


def toolkits(results: Results) -> Table:
    """The results of other implementations. Our runs follow the last of the results with the same model and measure."""
    rows = []
    for (model, metric), group in groupby(TOOLKITS, key=lambda each: (each.like, each.metric)):
        published = list(group)
        last = published[-1]
        ours = [run for run in as_published(results, model, last.corpus) if run in results.at(metric, *TEST).index]
        means = [mean for same in results.alike(ours) if (mean := results.over_seeds(same, metric, *TEST))]
        found = [
            *((each.name, Score(each.bleu), each.source, each) for each in published),
            *((f"ours, {run}", results.score(run, metric, *TEST), "one seed", last) for run in ours),
            *(("ours", Score(mean.score), mean.text, last) for mean in means),
        ]
        for name, score, source, of in found:
            cells = with_ends("BLEU", None if metric == TOKENISED else score)
            cells |= with_ends("BLEU of lower-cased text", score if metric == TOKENISED else None)
            about = {"measure": of.measure, "model": of.model or of.like, "test set": of.test_set, "source": source}
            rows.append({"implementation": name, **cells, **about})
    note = "Two measures of the same translations differ by up to 2 BLEU: compare numbers of the same measure."
    return table("toolkits", "Other implementations", rows, [note])


def as_published(results: Results, model: str, corpus: str) -> list[str]:
    """The runs of the model on the corpus without settings of their own, except the seed and the precision."""
    runs = results.runs[(results.runs["model"] == model) & (results.runs["corpus"] == corpus)]
    return list(runs.index[[of.keys() <= {"seed", "precision", "arithmetic"} for of in runs["differences"]]])
