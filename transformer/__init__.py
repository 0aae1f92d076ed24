"""The Transformer of Vaswani et al. 2017, with references to the paper's sections, and a translator.

>>> from transformer import ModelConfig, Transformer, Translator, base, big
>>> model = Transformer(base(), vocabulary_size=37000)
>>> translate = Translator.load("models/demo-tiny/average")
>>> translate("A sentence.")
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformer.config.model import ModelConfig as ModelConfig
    from transformer.config.model import base as base
    from transformer.config.model import big as big
    from transformer.model import Transformer as Transformer
    from transformer.translator import Translator as Translator

__version__ = "0.1.0"
MODULES = {"ModelConfig": "config.model", "base": "config.model", "big": "config.model"}
MODULES |= {"Transformer": "model", "Translator": "translator"}


def __getattr__(name: str) -> Any:
    """Import a name when it is first used, because every import of a module of this package runs this file."""
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{MODULES[name]}"), name)
