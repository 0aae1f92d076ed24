"""The text that a model was trained on: what a translator has to know of it."""

from dataclasses import dataclass
from typing import Any, ClassVar

TEXT = "text.json"  # the file of a model folder; folders that average wrote before it existed do not have it


@dataclass(frozen=True)
class TextConfig:
    """The languages, source first, and the normalisation of the training text (transformer/cleaning.py)."""

    ABSENT: ClassVar[dict[str, Any]] = {}  # as in ModelConfig

    languages: tuple[str, str]
    entities: bool
    nfc: bool
    punctuation: bool
