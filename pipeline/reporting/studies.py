"""Studies: groups of runs that are compared. The studies of selected runs come first, then those of recorded runs."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.reporting.evidence import Evidence, alike
from pipeline.reporting.published import BASE

# What the literature says about the settings that a study varies. The first entry that contains all of them is used.
CLAIMS = (
    ({"norm", "schedule"}, "Xiong et al. 2020: post-norm, the paper's, needs the warm-up; pre-norm trains without it."),
    (
        {"attention", "h", "d_k", "d_v"},
        "Section 3.2.1: for large d_k the unscaled dot product falls behind additive attention; scaling mends it.",
    ),
)

# Settings with which the literature expects a training to fail. The summary, Tables 2 and 3 and the costs omit such a run.
CONTROLS = ({"norm": "post", "schedule": "no_warmup"},)
COMPARED = (
    *BASE,
    "batching",
    "seed",
)  # the settings that `Study.varied` compares; other settings have no column in the table of a study


@dataclass(frozen=True)
class Study:
    """Runs on one corpus. A `recorded` study has the runs of results/, and selected runs in place of missing records."""

    name: str
    corpus: str
    runs: tuple[Evidence, ...]
    recorded: bool = False

    @property
    def base(self) -> Evidence:
        """The run with the fewest settings of its own, besides the seed. The others are compared with it."""
        return min(self.runs, key=lambda run: len(run.differences.keys() - {"seed"}))

    @property
    def bases(self) -> list[Evidence]:
        """The base, and the runs that differ from it in the seed only."""
        return next((same for same in alike(self.runs) if self.base in same), [self.base])

    def varied(self) -> list[str]:
        """The settings in which its runs differ."""
        known = [run.settings for run in self.runs if run.settings]
        return [key for key in COMPARED if len({settings.get(key) for settings in known}) > 1]

    def claim(self) -> str:
        """What the literature says about the varied settings, or an empty text."""
        varied = set(self.varied()) - {"seed"}
        return next((text for settings, text in CLAIMS if varied and varied <= settings), "")

    def caveat(self) -> str:
        """A warning if the runs were trained on different data, or an empty text."""
        sums = {run.at("training", "data_sum") for run in self.runs} - {None}
        return "Not all runs were trained on the same data, which also moves their scores." if len(sums) > 1 else ""

    def best_first(self) -> list[Evidence]:
        """The runs by falling sacreBLEU on the test set; runs without a score come last."""
        scores = {run.name: score.score for run in self.runs if (score := run.measure("bleu-13a"))}
        return sorted(self.runs, key=lambda run: -scores.get(run.name, -1))


def is_control(run: Evidence) -> bool:
    return any(control.items() <= run.settings.items() for control in CONTROLS)


def studies(params: Mapping[str, Any], known: Sequence[Evidence]) -> list[Study]:
    """The studies of the selected runs, then those of the recorded ones."""
    own, recorded = ([run for run in known if run.recorded == kept] for kept in (False, True))
    found = [Study(*study) for study in grouped(params, own)]
    taken = {study.name for study in found}
    for name, corpus, runs in grouped(params, recorded):
        others = catalogue(params).get(name, ())
        names = {run.run for run in runs}
        lent = [
            run for run in own if run.run in others and run.run not in names and run.corpus == corpus and run.scores
        ]
        found.append(Study(f"{name}-recorded" if name in taken else name, corpus, (*lent, *runs), recorded=True))
    return found


def catalogue(params: Mapping[str, Any]) -> dict[str, list[str]]:
    """The runs of each study of params.yaml."""
    return {name: list(entries.get("runs", ())) for name, entries in params.get("studies", {}).items()}


def grouped(params: Mapping[str, Any], runs: Sequence[Evidence]) -> list[tuple[str, str, tuple[Evidence, ...]]]:
    """Return (name, corpus, runs) of each study. A run is only in the study that has most of the runs left on its corpus.

    If a run is in no study of params.yaml, all runs on its corpus form the study `selection`. A study on several corpora
    is divided into `STUDY-CORPUS`. A study only on a corpus other than that of its first run is named after the corpus.
    """
    known = catalogue(params)
    others = {run.corpus for run in runs if not any(run.run in members for members in known.values())}
    chosen: list[tuple[str, str, list[Evidence]]] = []
    for corpus in dict.fromkeys(run.corpus for run in runs):
        left = [run for run in runs if run.corpus == corpus]
        if corpus in others:
            chosen.append(("selection", corpus, left))
            continue
        while left:
            name = max(known, key=lambda name: (sum(run.run in known[name] for run in left), -len(known[name])))
            chosen.append((name, corpus, [run for run in left if run.run in known[name]]))
            left = [run for run in left if run.run not in known[name]]
    of_name = Counter(name for name, *_ in chosen)

    def shown(name: str, corpus: str) -> str:
        if of_name[name] > 1:
            return f"{name}-{corpus}"
        main = next(iter(params["studies"][name]["runs"].values()))["corpus"] if name in known else corpus
        return name if corpus == main else corpus

    found = [(shown(name, corpus), corpus, tuple(members)) for name, corpus, members in chosen]
    order = [run.run for run in runs]
    return sorted(found, key=lambda study: order.index(study[2][0].run))
