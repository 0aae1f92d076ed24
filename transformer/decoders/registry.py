"""Every decoder by its name in params.yaml."""

from collections.abc import Callable
from typing import Any

from transformer.config.decoders import Choice
from transformer.decoders.beam import Beam
from transformer.decoders.diverse import Diverse
from transformer.decoders.exact import Exact
from transformer.decoders.greedy import Greedy
from transformer.decoders.mbr import Mbr, Pool, Utility
from transformer.decoders.sampling import Sampling
from transformer.decoders.steps import Decoder

SIMPLE: dict[str, Any] = {"beam": Beam, "greedy": Greedy, "sampling": Sampling, "diverse": Diverse, "exact": Exact}


def decoder_of(choice: Choice, utility: Callable[[str], Utility]) -> Decoder:
    """The decoder that params.yaml chooses. `utility` gives the utility of MBR decoding by its name."""
    if choice.decoder == "mbr":
        pools = {key: Pool(decoder_of(part, utility), part.number) for key, part in choice.parts.items()}
        return Mbr(**pools, utility=utility(choice.own.utility))
    return SIMPLE[choice.decoder](choice.config, choice.own)
