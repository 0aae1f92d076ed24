"""The properties of a model's training text that a translator needs."""

from dataclasses import dataclass

TEXT = "text.json"  # a file of a model folder; folders that earlier code wrote may lack it


@dataclass(frozen=True)
class TextConfig:
    """The languages, source first, and the normalisation of the training text (transformer/cleaning.py)."""

    languages: tuple[str, str]
    entities: bool
    nfc: bool
    punctuation: bool
