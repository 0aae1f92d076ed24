"""The Transformer of Vaswani et al. 2017, with references to the paper's sections, and a translator.

>>> from transformer import Translator
>>> translate = Translator.load("models/demo-tiny/average")
>>> translate("A sentence.")
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformer.translator import Translator

__all__ = ["Translator"]


def __getattr__(name: str) -> Any:
    """Import the translator when it is first used, because every import of a module of this package runs this file."""
    if name != "Translator":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from transformer.translator import Translator

    return Translator
