"""Runs that are read side by side: the studies of params.yaml, as far as their runs have been trained."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.reporting.evidence import Evidence

# What the literature says of the settings that a study varies; the first entry fits whose settings are among them.
CLAIMS = (
    (
        {"norm", "schedule"},
        "Xiong et al. 2020: post-norm, the paper's, needs the warm-up; pre-norm trains without it.",
    ),
    (
        {"attention", "h", "d_k", "d_v"},
        "Section 3.2.1: for large d_k the unscaled dot product falls behind additive attention; scaling mends it.",
    ),
)


@dataclass(frozen=True)
class Study:
    """Two runs or more on one corpus."""

    name: str
    corpus: str
    runs: tuple[Evidence, ...]

    def varied(self) -> set[str]:
        """The settings in which its runs differ."""
        first = self.runs[0].settings
        return {key for run in self.runs for key in first | run.settings if run.settings.get(key) != first.get(key)}

    def claim(self) -> str:
        """What the literature leads one to expect, where something is said of the settings varied."""
        varied = self.varied() - {"seed"}
        return next((text for settings, text in CLAIMS if varied and varied <= settings), "")


def studies(params: Mapping[str, Any], known: Sequence[Evidence]) -> list[Study]:
    """The selection and the catalogue's studies, corpus by corpus, none of the same runs twice.

    A run that is selected and recorded counts once, as selected where it has been trained.
    """
    trained = {run.run: run for run in sorted(known, key=lambda run: not run.recorded) if run.curve}
    found: dict[frozenset[str], Study] = {}
    chosen = {name: entries.get("runs", {}) for name, entries in params.get("studies", {}).items()}
    for name, runs_of in [*chosen.items(), ("selection", params["runs"])]:
        members = [trained[run] for run in runs_of if run in trained]
        corpora = list(dict.fromkeys(run.corpus for run in members))
        for corpus in corpora:
            runs = tuple(run for run in members if run.corpus == corpus)
            if len(runs) > 1:
                title = name if len(corpora) == 1 else f"{name}-{corpus}"
                found.setdefault(frozenset(run.run for run in runs), Study(title, corpus, runs))
    return list(found.values())
