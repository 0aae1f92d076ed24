"""Published results as data: the paper's Tables 1 to 3, and results of toolkits on the same test sets.

None is a blank cell. The paper's BLEU is `bleu-published` of pipeline/scoring/bleu.py.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from pipeline.scoring.bleu import HEADLINE
from pipeline.scoring.costs import estimate
from transformer.config.model import base

# Table 1 (4), by layer: complexity, sequential operations and path length
TABLE1 = {
    "self-attention": ("O(n^2 d)", "O(1)", "O(1)"),
    "recurrent": ("O(n d^2)", "O(n)", "O(n)"),
    "convolutional": ("O(k n d^2)", "O(1)", "O(log_k n)"),
    "self-attention (restricted)": ("O(r n d)", "O(1)", "O(n / r)"),
}


class Table2Row(NamedTuple):
    """A row of Table 2 (6.1): BLEU on newstest2014 and what the training cost, in operations.

    For the two rows that are reproduced, `model` is the name of the model in params.yaml. The paper states one cost of
    these models for both language pairs; it is in `flops_en_de`.
    """

    name: str
    bleu_en_de: float | None
    bleu_en_fr: float | None
    flops_en_de: float | None
    flops_en_fr: float | None
    model: str | None = None


TABLE2 = (
    Table2Row("ByteNet", 23.75, None, None, None),
    Table2Row("Deep-Att + PosUnk", None, 39.2, None, 1.0e20),
    Table2Row("GNMT + RL", 24.6, 39.92, 2.3e19, 1.4e20),
    Table2Row("ConvS2S", 25.16, 40.46, 9.6e18, 1.5e20),
    Table2Row("MoE", 26.03, 40.56, 2.0e19, 1.2e20),
    Table2Row("Deep-Att + PosUnk ensemble", None, 40.4, None, 8.0e20),
    Table2Row("GNMT + RL ensemble", 26.30, 41.16, 1.8e20, 1.1e21),
    Table2Row("ConvS2S ensemble", 26.36, 41.29, 7.7e19, 1.2e21),
    Table2Row("Transformer (base)", 27.3, 38.1, 3.3e18, None, model="base"),
    Table2Row("Transformer (big)", 28.4, 41.8, 2.3e19, None, model="big"),
)


# Sustained single-precision TFLOPS (footnote 5).
SUSTAINED_TFLOPS = {"K80": 2.8, "K40": 3.7, "M40": 6.0, "P100": 9.5}


class Training(NamedTuple):
    """How a model was trained (5.2).

    `counted` are the operations of its matrix products, as pipeline/scoring/costs.py counts them: 25,000 source and 25,000
    target tokens a step (5.1), here in sentences of 26 pieces, and 37,000 pieces in the vocabulary.
    """

    seconds: float
    steps: int
    gpus: int
    hardware: str
    counted: float

    @property
    def share_of_estimate(self) -> float:
        """The share of the paper's estimate of operations, time x GPUs x sustained rate, that the matrix products need."""
        return self.counted / estimate(self.seconds, self.gpus, SUSTAINED_TFLOPS[self.hardware])


TRAININGS = {
    "base": Training(12 * 3600, 100_000, 8, "P100", counted=9.52e17),
    "big": Training(3.5 * 24 * 3600, 300_000, 8, "P100", counted=9.68e18),
}


# The base model (3, 5). Each row of Table 3 has these settings except for its differences.
BASE: Mapping[str, Any] = {key: value for key, value in vars(base()).items() if key != "max_positions"} | {
    "steps": 100_000,
    "batch_tokens": 25_000,
    "batching": "by_length",
    "label_smoothing": 0.1,
    "r_drop": 0.0,
    "weight_decay": 0.0,
    "bpe_dropout": 0.0,
    "schedule": "warmup",
    "warmup": 4000,
    "lr_scale": 1.0,
    "beta1": 0.9,
    "beta2": 0.98,
    "epsilon": 1e-9,
}


# The columns of settings in Table 3, by label. `positions`, which has no column in the paper, identifies row E.
SETTINGS = {"N": "N", "d_model": "d_model", "d_ff": "d_ff", "h": "h", "d_k": "d_k", "d_v": "d_v"}
SETTINGS |= {"P_drop": "dropout", "eps_ls": "label_smoothing", "positions": "positions", "steps": "steps"}


def differing(settings: Mapping[str, Any], base: Mapping[str, Any]) -> list[str]:
    """The settings that differ: first those of Table 3's columns, in their order, then the others."""
    return [key for key in dict.fromkeys([*SETTINGS.values(), *settings]) if settings[key] != base[key]]


def described(settings: Mapping[str, Any], base: Mapping[str, Any], first: bool = True) -> str:
    """The settings that differ, or the `first` of them, for example `h 8 → 1`."""
    labels = {key: label for label, key in SETTINGS.items()}
    keys = differing(settings, base)[: 1 if first else None]
    changes = ", ".join(f"{labels.get(key, key)} {base[key]} → {settings[key]}" for key in keys)
    return changes.replace("sinusoidal → ", "")


class Table3Row(NamedTuple):
    """A row of Table 3 (6.2): its differences from BASE; the last checkpoint's perplexity per word-piece and BLEU on
    newstest2013; its parameters in millions. studies.yaml names rows by their `key`."""

    key: str
    group: str
    differs: Mapping[str, Any]
    perplexity: float
    bleu: float
    parameters: int | None

    @property
    def settings(self) -> dict[str, Any]:
        return {**BASE, **self.differs}

    @property
    def change(self) -> str:
        return described(self.settings, BASE)

    @property
    def effect(self) -> tuple[float, float]:
        """The difference from the base model: in BLEU, and in per cent of the perplexity."""
        return self.bleu - TABLE3[0].bleu, 100 * (self.perplexity / TABLE3[0].perplexity - 1)


TABLE3 = (
    Table3Row("base", "base", {}, 4.92, 25.8, 65),
    Table3Row("h1", "A", {"h": 1, "d_k": 512, "d_v": 512}, 5.29, 24.9, None),
    Table3Row("h4", "A", {"h": 4, "d_k": 128, "d_v": 128}, 5.00, 25.5, None),
    Table3Row("h16", "A", {"h": 16, "d_k": 32, "d_v": 32}, 4.91, 25.8, None),
    Table3Row("h32", "A", {"h": 32, "d_k": 16, "d_v": 16}, 5.01, 25.4, None),
    Table3Row("dk16", "B", {"d_k": 16}, 5.16, 25.1, 58),
    Table3Row("dk32", "B", {"d_k": 32}, 5.01, 25.4, 60),
    Table3Row("N2", "C", {"N": 2}, 6.11, 23.7, 36),
    Table3Row("N4", "C", {"N": 4}, 5.19, 25.3, 50),
    Table3Row("N8", "C", {"N": 8}, 4.88, 25.5, 80),
    Table3Row("d256", "C", {"d_model": 256, "d_k": 32, "d_v": 32}, 5.75, 24.5, 28),
    Table3Row("d1024", "C", {"d_model": 1024, "d_k": 128, "d_v": 128}, 4.66, 26.0, 168),
    Table3Row("dff1024", "C", {"d_ff": 1024}, 5.12, 25.4, 53),
    Table3Row("dff4096", "C", {"d_ff": 4096}, 4.75, 26.2, 90),
    Table3Row("dropout0", "D", {"dropout": 0.0}, 5.77, 24.6, None),
    Table3Row("dropout2", "D", {"dropout": 0.2}, 4.95, 25.5, None),
    Table3Row("smoothing0", "D", {"label_smoothing": 0.0}, 4.67, 25.3, None),
    Table3Row("smoothing2", "D", {"label_smoothing": 0.2}, 5.47, 25.7, None),
    Table3Row("learned", "E", {"positions": "learned"}, 4.92, 25.7, None),
    Table3Row("big", "big", {"d_model": 1024, "d_ff": 4096, "h": 16, "dropout": 0.3, "steps": 300_000}, 4.33, 26.4, 213),
)


class Toolkit(NamedTuple):
    """A result that another implementation reports, and the keys of our results for comparison.

    `like` and `corpus` are the names of the model and the corpus in params.yaml with the same settings. `metric` is the
    name of the measure in the frame of scores.
    """

    name: str
    bleu: float
    source: str
    like: str
    metric: str = HEADLINE
    corpus: str = "wmt14-en-de"
    test_set: str = "newstest2014 en-de"
    model: str = ""  # as the table names it, if not as `like`

    @property
    def measure(self) -> str:
        names = {HEADLINE: "sacreBLEU", RAW: "tokenised, compounds split, the reference's quotes kept"}
        return names.get(self.metric, "lower-cased, tokenised")


RAW = "bleu-raw-reference"
LOWER_CASED = "multi30k-lc-tok"  # the corpus of which only lower-cased, tokenised text is scored
LOWER = "lower-cased "  # before the names of the measures of such text, so that no table mixes them with others
TOKENISED = f"{LOWER}bleu-tokenised"  # the headline of runs on such text
FILTERED = "newstest2014 en-de, 2,737 lines"  # sacreBLEU's wmt14
OTT = "Ott et al. 2018, Scaling Neural Machine Translation; trained on WMT16"
WU = "Z. Wu et al. 2021, Good for Misconceived Reasons, ACL; README of LividWo/Revisit-MMT; one seed"
TOOLKITS = (
    Toolkit("fairseq", 29.29, OTT, "big", RAW),  # its script splits hyphens and converts no quotes
    Toolkit("fairseq", 28.6, OTT, "big"),
    Toolkit("OpenNMT-py", 26.77, "measured by CTranslate2; trained on WMT16", "base", test_set=FILTERED),
    Toolkit("OpenNMT-tf", 26.93, "measured by CTranslate2; trained on WMT16", "base", test_set=FILTERED),
    Toolkit("JoeyNMT", 24.38, "its benchmarks", "base"),
    Toolkit(
        "fairseq", 41.02, WU, "multi30k-published", TOKENISED, LOWER_CASED, "multi30k test 2016 en-de", "4 layers of 128"
    ),
)
