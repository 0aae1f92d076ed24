"""Every decoder by its name in params.yaml."""

import dataclasses
from collections.abc import Callable
from typing import Any

from transformer.config.decoders import Choice
from transformer.decoders.beam import Beam
from transformer.decoders.diverse import Diverse
from transformer.decoders.exact import Exact
from transformer.decoders.mbr import Mbr, Pool, Utility
from transformer.decoders.mcts import Mcts, Metric
from transformer.decoders.sampling import Sampling
from transformer.decoders.steps import Decoder
from transformer.decoders.value_beam import ValueBeam
from transformer.value import Values

SIMPLE: dict[str, Any] = {"beam": Beam, "sampling": Sampling, "diverse": Diverse, "exact": Exact}


def decoder_of(
    choice: Choice,
    utility: Callable[[str], Utility] | None = None,
    values: Values | None = None,
    metrics: Callable[[str], Metric] | None = None,
) -> Decoder:
    """The decoder that params.yaml chooses. The caller has what it needs, as the check of params.yaml makes sure.

    `utility` gives the utility of MBR decoding by its name, and `metrics` the metric of an oracle.
    """
    own = choice.own
    if choice.decoder == "mbr":
        assert utility
        pools = {key: Pool(decoder_of(part, utility, values, metrics), part.number) for key, part in choice.parts.items()}
        return Mbr(**pools, utility=utility(own.utility))
    if choice.decoder == "greedy":
        return Beam(dataclasses.replace(choice.config, beam=1, alpha=0.0))
    if choice.decoder in SIMPLE:
        return SIMPLE[choice.decoder](choice.config, own)
    if choice.decoder == "value_beam":
        assert values
        return ValueBeam(choice.config, own, values)
    metric = metrics(own.metric) if own.metric and metrics else None
    return Mcts(choice.config, own, values if own.needs_value else None, metric)
