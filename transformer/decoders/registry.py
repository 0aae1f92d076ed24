"""Every decoder by its name in params.yaml."""

from transformer.config.decoders import Choice
from transformer.config.reading import UserError
from transformer.decoders.beam import Beam
from transformer.decoders.greedy import Greedy
from transformer.decoders.mcts import Mcts, Metric
from transformer.decoders.steps import Decoder
from transformer.decoders.value_beam import ValueBeam
from transformer.value import Values

SIMPLE = {"beam": Beam, "greedy": Greedy}


def decoder_of(choice: Choice, values: Values | None = None, metric: Metric | None = None) -> Decoder:
    """The decoder that params.yaml chooses. Raises UserError where it needs `values` or a `metric` that are not given."""
    if choice.decoder in ("value_beam", "mcts"):
        return guided(choice, values, metric)
    return SIMPLE[choice.decoder](choice.config, choice.own)


def guided(choice: Choice, values: Values | None, metric: Metric | None) -> Decoder:
    """A decoder that searches for what a value or a metric prefers."""
    if choice.own.needs_value and values is None:
        raise UserError(f"the decoder {choice.decoder} needs a value; a model folder values/NAME is expected")
    if choice.own.metric and metric is None:
        raise UserError(f"objective: {choice.own.objective!r} needs references, and there are none here")
    if choice.decoder == "mcts":
        return Mcts(choice.config, choice.own, values if choice.own.needs_value else None, metric)
    assert values
    return ValueBeam(choice.config, choice.own, values)
