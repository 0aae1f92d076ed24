"""Studies: groups of runs that are compared. The studies of selected runs come first, then those of recorded runs.

The runs of a study have the same dev and test sets. They may have different training text.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from pipeline.reporting.evidence import Evidence, alike, text_entry
from pipeline.reporting.published import BASE

# What the literature says about the settings that a study varies. The first entry that contains all of them is used.
CLAIMS = (  # a setting that a study must vary, those that it may also vary, and the claim about them
    ("norm", {"schedule"}, "Xiong et al. 2020: post-norm, the paper's, needs the warm-up; pre-norm trains without it."),
    (
        "attention",
        {"h", "d_k", "d_v"},
        "Section 3.2.1: for large d_k the unscaled dot product is worse than additive attention; scaling corrects this.",
    ),
)

# Settings with which a training is expected to fail. Summary, means over seeds, Tables 2 and 3 and costs omit such runs.
EXPECTED_TO_FAIL = {"norm": "post", "schedule": "no_warmup"}
# The settings that `Study.varied` compares. Other settings have no column in the table of a study.
COMPARED = (*BASE, "seed")


@dataclass(frozen=True)
class Study:
    """Runs with the same dev and test sets. `corpus` is one of their corpora.

    A `recorded` study has the runs of results/, and selected runs in place of missing records.
    """

    name: str
    corpus: str
    runs: tuple[Evidence, ...]
    recorded: bool = False

    @property
    def base(self) -> Evidence:
        """The run with the fewest settings of its own, besides the seed. The others are compared with it.

        Of several, it is the first one on the corpus of most runs.
        """
        runs_on = Counter(run.corpus for run in self.runs)
        return min(self.runs, key=lambda run: (len(run.differences.keys() - {"seed"}), -runs_on[run.corpus]))

    @property
    def bases(self) -> list[Evidence]:
        """The base, and the runs that differ from it in the seed only."""
        return next((same for same in alike(self.runs) if self.base in same), [self.base])

    @property
    def corpora(self) -> list[str]:
        return list(dict.fromkeys(run.corpus for run in self.runs))

    def varied(self) -> list[str]:
        """The settings in which its runs differ."""
        known = [run.settings for run in self.runs if run.settings]
        return [key for key in COMPARED if len({settings.get(key) for settings in known}) > 1]

    def claim(self) -> str:
        """What the literature says about the varied settings, or an empty text."""
        varied = set(self.varied()) - {"seed"}
        return next((text for main, others, text in CLAIMS if main in varied <= {main, *others}), "")

    def caveat(self) -> str:
        """A warning if the runs were trained on different data, or an empty text."""
        if len(self.corpora) > 1:
            return "Perplexities can be compared only between models with equal vocabularies."
        sums = {run.at("training", "data_sum") for run in self.runs} - {None}
        return "Not all runs were trained on the same data, which also affects their scores." if len(sums) > 1 else ""

    def best_first(self) -> list[Evidence]:
        """The runs by falling sacreBLEU on the test set; runs without a score come last."""
        scores = {run.name: score.score for run in self.runs if (score := run.measure("bleu-13a"))}
        return sorted(self.runs, key=lambda run: -scores.get(run.name, -1))


def expected_to_fail(run: Evidence) -> bool:
    return EXPECTED_TO_FAIL.items() <= run.settings.items()


def studies(params: Mapping[str, Any], known: Sequence[Evidence]) -> list[Study]:
    """The studies of the selected runs, then those of the recorded ones."""
    own, recorded = ([run for run in known if run.recorded == kept] for kept in (False, True))
    found = [Study(*study) for study in grouped(params, own, together=True)]
    taken = {study.name for study in found}
    for name, corpus, runs in grouped(params, recorded, together=False):
        others = catalogue(params).get(name, ())
        names = {run.run for run in runs}
        text = evaluated_on(params, corpus)
        missing = [run for run in own if run.run in others and run.run not in names and run.scores]
        lent = [run for run in missing if evaluated_on(params, run.corpus) == text]
        found.append(Study(f"{name}-recorded" if name in taken else name, corpus, (*lent, *runs), recorded=True))
    return found


def catalogue(params: Mapping[str, Any]) -> dict[str, list[str]]:
    """The runs of each study of params.yaml."""
    return {name: list(entries.get("runs", ())) for name, entries in params.get("studies", {}).items()}


def evaluated_on(params: Mapping[str, Any], corpus: str) -> str:
    """Return what identifies the dev and test sets of a corpus or back-translation. Corpora with the same sets share it."""
    entry = text_entry(params, corpus)
    if entry is None:
        return corpus
    download = entry.get("download", {})
    sets = [listed(download.get(name, {"corpus": corpus})) for name in ("dev", "test")]
    if any("hold_out" in part for part in chain(*sets)):  # the sets are pairs of the training text
        sets.append(listed(download.get("train", [])))
    archives = [download.get("archives", {}).get(part["archive"]) for part in chain(*sets) if "archive" in part]
    return repr((entry["languages"], sets, archives))


def listed(value: Any) -> list:
    return value if isinstance(value, list) else [value]


def grouped(
    params: Mapping[str, Any], runs: Sequence[Evidence], together: bool
) -> list[tuple[str, str, tuple[Evidence, ...]]]:
    """Return (name, corpus, runs) of each study. A run of several studies is in the one with the most runs.

    Runs that are in no study of params.yaml form the study `selection`, one for each pair of dev and test sets. With
    `together`, it also has the other runs with these sets. A study with several dev and test sets is divided: the part of
    its first run keeps the name, the others are `STUDY-CORPUS`. If a study has only one part, without its first run, the
    part is named after its corpus, unless a study has this name.
    """
    known = catalogue(params)
    texts: dict[Any, list[Evidence]] = {}
    for run in runs:
        texts.setdefault(evaluated_on(params, run.corpus), []).append(run)
    chosen: list[tuple[str, str, list[Evidence]]] = []
    for same in texts.values():
        own = [run for run in same if not any(run.run in members for members in known.values())]
        if own:
            own = same if together else own
            chosen.append(("selection", own[0].corpus, own))
        left = [run for run in same if run not in own]
        while left:
            name = max(known, key=lambda name: (sum(run.run in known[name] for run in left), -len(known[name])))
            members = [run for run in same if run.run in known[name]]
            chosen.append((name, members[0].corpus, members))
            left = [run for run in left if run.run not in known[name]]
    of_name = Counter(name for name, *_ in chosen)

    def shown(name: str, corpus: str) -> str:
        main = next(iter(params["studies"][name]["runs"].values()))["corpus"] if name in known else None
        if main and evaluated_on(params, corpus) == evaluated_on(params, main):
            return name
        if of_name[name] > 1 or (main and corpus in known):
            return f"{name}-{corpus}"
        return corpus if main else name

    found = [(shown(name, corpus), corpus, tuple(members)) for name, corpus, members in chosen]
    order = [run.run for run in runs]
    return sorted(found, key=lambda study: order.index(study[2][0].run))
