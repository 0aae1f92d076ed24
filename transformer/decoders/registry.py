"""Every decoder by its name in params.yaml."""

from transformer.config.decoders import Choice
from transformer.decoders.beam import Beam
from transformer.decoders.greedy import Greedy
from transformer.decoders.steps import Decoder

SIMPLE = {"beam": Beam, "greedy": Greedy}


def decoder_of(choice: Choice) -> Decoder:
    """The decoder that params.yaml chooses."""
    return SIMPLE[choice.decoder](choice.config, choice.own)
