"""The data of a search for the page, as JSON objects: source, steps, and the result with alternatives and attention."""

import base64
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from torch import Tensor

from pipeline.extras.serving.tracing import Trace
from pipeline.settings.languages import tag
from transformer.config.reading import UserError
from transformer.config.vocabulary import BOS, EOS, PAD
from transformer.files import read_json
from transformer.sentences import Divided
from transformer.translator import Translator

EXAMPLES = 3


def examples(run: str) -> list[str]:
    """A few short sentences of the test set of a run, or [] if the set has not been translated."""
    path = Path("scores") / run / "translations/samples.json"
    return sorted(filter(None, (each["source"] for each in read_json(path))), key=len)[:EXAMPLES] if path.exists() else []


class Viewer:
    def __init__(self, translator: Translator, name: str, examples: list[str]) -> None:
        """The page shows `name`, and offers the sentences in `examples`."""
        self.translator, self.name, self.examples = translator, name, examples

    def about(self) -> dict[str, Any]:
        model, text = self.translator.model, self.translator.text_config
        return {
            "name": self.name,
            "languages": [*map(tag, text.languages)] if text else None,  # as in HTML
            "parameters": sum(weight.numel() for weight in model.parameters()),
            "layers": model.config.N,
            "heads": model.config.h,
            "beam": self.translator.config.beam,
            "examples": self.examples,
        }

    def events(self, text: Divided, prefix: list[int]) -> Iterator[dict[str, Any]]:
        """The events of the searches for the sentences of a text, one after the other. Each step is computed on request.

        The translation begins with `prefix`, which only one sentence can have. Raises UserError, before the first event,
        for a text without a sentence and for a prefix that is not possible.
        """
        translator = self.translator
        sentences = list(text.placed(translator.languages[1]))
        if not sentences:
            raise UserError("text: empty; a sentence is expected")
        if prefix and len(sentences) > 1:
            raise UserError(f"prefix: the text has {len(sentences)} sentences; one is expected")
        for place, token in enumerate(prefix):
            last = place == len(prefix) - 1
            if not 0 < token < translator.vocabulary.size or token in (PAD, BOS) or (token == EOS and not last):
                raise UserError(f"prefix: {token} is not the id of a piece that can stand at place {place + 1}")
        sources = translator.encode([sentence for _, sentence in sentences])
        first = Trace(translator.decoders[0], sources[0], translator.config, prefix)
        traces = chain([first], (Trace(translator.decoders[0], ids, translator.config) for ids in sources[1:]))
        each = zip(sentences, sources, traces)
        return chain.from_iterable(self.described(*placed, ids, trace) for placed, ids, trace in each)

    def described(self, before: str, sentence: str, source: list[int], trace: Trace) -> Iterator[dict[str, Any]]:
        """The events of one search. `before` stands between the translations of the sentence before and of this one."""
        vocabulary = self.translator.vocabulary
        doubt = self.translator.doubt(Divided([[sentence]], [""]), together=False)
        warning = {"warning": f"The text has {doubt}."} if doubt else {}
        yield {"source": [*vocabulary.pieces(source), "</s>"], "sentence": sentence, "before": before, **warning}
        for step in trace.steps():
            pieces = vocabulary.pieces([each.token for each in step.candidates])
            yield {
                "leader": vocabulary.decode(step.leader),  # without EOS and PAD
                "candidates": [{**vars(each), "piece": piece} for each, piece in zip(step.candidates, pieces)],
            }
        assert step.translation is not None  # the last step has it
        ids = step.translation.ids
        (text,) = self.translator.text([step.translation])
        weights = self.translator.attention(source, ids)
        yield {
            "text": text,
            "score": step.translation.score,
            "ids": ids,
            "pieces": [*vocabulary.pieces(ids), "</s>"],
            "forced": len(trace.prefix),
            "alternatives": [
                [
                    {"token": token, "probability": share, "piece": vocabulary.pieces([token])[0]}
                    for token, share in position
                ]
                for position in trace.alternatives(ids)
            ],
            "attention": {kind: written(tensor) for kind, tensor in weights.items()},
        }


def written(weights_LHQK: Tensor) -> dict[str, Any]:
    """Attention weights as bytes in base64: 255 is a weight of 1."""
    levels = (weights_LHQK * 255).round().byte().contiguous()
    return {"shape": list(levels.shape), "weights": base64.b64encode(levels.numpy().tobytes()).decode()}
