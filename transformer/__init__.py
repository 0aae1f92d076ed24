"""The Transformer of Vaswani et al. 2017, with references to the paper's sections, and a translator.

>>> from transformer import Translator
>>> translate = Translator.load("models/demo-tiny/average")
>>> translate("A sentence.")
"""

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformer.translator import Translator as Translator

# GNU's OpenMP reads this when torch is first imported. By default, a waiting thread of OpenMP spins for milliseconds. If
# another process uses the same cores, spinning at least halves the speed. With 0, a thread would sleep at once and would
# have to be woken for each operation. OpenMP's threads compute the dev loss, the optimiser's step and whatever Python
# threads do not share (gradients.py, decoding.py).
os.environ.setdefault("GOMP_SPINCOUNT", "1000")


def __getattr__(name: str) -> Any:
    """Import the translator when it is first used, because every import of a module of this package runs this file."""
    if name != "Translator":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from transformer.translator import Translator

    return Translator
