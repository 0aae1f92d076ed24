"""The block `warm_starts` of params.yaml, whose entries are corpora for runs that begin with the weights of a model."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pipeline.settings.models import require_languages
from pipeline.settings.params import languages
from pipeline.settings.registry import CORPUS, Block
from pipeline.settings.selection import require_same, run_settings
from transformer.config.reading import Pattern, UserError, shown

FOLDER = "[A-Za-z0-9][A-Za-z0-9_.-]*"
Model = Annotated[str, Pattern(f"{FOLDER}(/{FOLDER})*", "RUN/average, or the name of a folder in models/")]


@dataclass(frozen=True)
class WarmStart:
    """An entry of `warm_starts`: a corpus, and a model folder below models/ with the vocabulary and the first weights."""

    corpus: str
    model: Model


def check_warm_start(params: Mapping, name: str, where: str) -> None:
    """Check a warm start. Its model must have the languages of its corpus and the settings of the runs that use it."""
    line = params["warm_starts"][name]
    run, _, kind = line["model"].rpartition("/")
    if run in params["runs"] and kind == "average":
        require_languages(params, line["model"], languages(params, line["corpus"]), f"{where}.model")
        for other, its in params["runs"].items():
            if its["corpus"] == name:
                require_same(
                    run_settings(params, run)[1],
                    run_settings(params, other)[1],
                    line["model"],
                    f"params.yaml: runs.{other}",
                )
    elif not Path("models", line["model"], "settings.json").is_file():
        raise UserError(
            f"{where}.model: {shown(line['model'])} is no model: RUN/average with a RUN of `runs` is expected, or a model "
            "folder of this project in models/"
        )


COUNTS = {"warm_start": "corpora/{}/binarise.json"}
BLOCKS = {"warm_starts": Block(WarmStart, {"corpus": CORPUS}, beside="corpora", counts=COUNTS, check=check_warm_start)}
