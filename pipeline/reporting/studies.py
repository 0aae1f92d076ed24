"""Runs that are compared: the studies of params.yaml, as far as their runs have been trained."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.reporting.evidence import Evidence

# The literature on the settings that a study varies. The first entry that names all of them counts.
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
    """Two or more runs on one corpus."""

    name: str
    corpus: str
    runs: tuple[Evidence, ...]

    def varied(self) -> set[str]:
        """The settings in which its runs differ."""
        first = self.runs[0].settings
        return {key for run in self.runs for key in first | run.settings if run.settings.get(key) != first.get(key)}

    def claim(self) -> str:
        """What the literature says about the settings varied, or an empty text."""
        varied = self.varied() - {"seed"}
        return next((text for settings, text in CLAIMS if varied and varied <= settings), "")


def studies(params: Mapping[str, Any], known: Sequence[Evidence]) -> list[Study]:
    """The catalogue's studies and the selection, one study per corpus; no two of them have the same runs.

    A run that is both selected and recorded counts once: as selected if it has been trained.
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
