"""What the core knows of the extras in pipeline/extras/: modules of agreed names, and their blocks of params.yaml.

    parts("pipeline.extras.*.blocks")

The core imports no extra. A pattern stands for all extras that have such a module, and the digest of a stage counts it as
an import of these. An extra whose folder is deleted is absent.
"""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[2]
AVERAGE, CORPUS, MODEL = "the average of a run", "in corpora", "in models"  # what a key names (check.py)


def parts(pattern: str) -> list[ModuleType]:
    """Import and return the modules that a dotted pattern matches, sorted by name."""
    found = sorted(ROOT.glob(f"{pattern.replace('.', '/')}.py"))
    return [importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts)) for path in found]


@dataclass(frozen=True)
class Block:
    """A block of params.yaml that a study can select."""

    entry: type  # the class of its entries
    names: Mapping[str, str] = field(default_factory=dict)  # for the keys that name another entry: which one (check.py)
    beside: str = ""  # `runs` or `corpora`: no entry has a name that is in this block or in another block beside it
    folder: str = ""  # of models/ and scores/, which a run therefore cannot have as its name
    models: bool = False  # each entry is a model, in models/FOLDER/NAME
    value: bool = False  # each entry is a model with a value, which some decoders need
    counts: Mapping[str, str] = field(default_factory=dict)  # of stages that warn of data: the file in scores/ (warned.py)
    check: Callable[[Mapping, str, str], Any] | None = None  # of params.yaml, a name and its place: compares settings
    trains: str = ""  # the stage of an entry, if it trains
    trainings: Callable | None = None  # of params.yaml and a name: how many, their corpus, and the settings of one
