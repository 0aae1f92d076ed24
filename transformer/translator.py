"""Translating lines of text: a model, its vocabulary and the settings of the search."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from transformer.checkpoint import WEIGHTS, load_model, read_settings
from transformer.config.decoding import DecodingConfig
from transformer.config.reading import UserError
from transformer.decoders.beam import Beam
from transformer.decoders.steps import Decoder, Translation
from transformer.decoding import Job, batches_by_length, model_in, search_batches, settings_on
from transformer.memory import enough_memory
from transformer.model import Transformer
from transformer.vocabulary import Vocabulary


@dataclass
class Translator:
    """A trained model that translates lines."""

    model: Transformer  # in float32
    vocabulary: Vocabulary
    config: DecodingConfig  # with the values for the model's device
    description: dict[str, Any]  # what the file of the weights says of them, for example the averaged steps
    others: Sequence[Transformer] = ()  # the other models of an ensemble, in float32
    decoders: list[Transformer] = field(init=False)  # the models that translate: these, or their copies in bfloat16
    calls: int = field(init=False, default=0)  # the prefixes that the latest translation scored

    def __post_init__(self) -> None:
        self.config = settings_on(self.device, self.config)
        self.decoders = [model_in(self.config.precision, model) for model in (self.model, *self.others)]

    @classmethod
    def open(cls, weights: Path, vocabulary: Path, config: DecodingConfig, device: torch.device) -> "Translator":
        """The model in the file `weights`, with settings.json beside it.

        Raises UserError for damaged files and for a vocabulary that the model was not trained with.
        """
        model, description = load_model(weights, device)
        pieces = Vocabulary(vocabulary)
        if pieces.sha256 != read_settings(weights.parent)[2]:
            raise UserError(f"{vocabulary} is not the vocabulary that {weights} was trained with")
        return cls(model, pieces, config, description)

    @classmethod
    def of_folder(cls, folder: Path, config: DecodingConfig, device: torch.device) -> "Translator":
        """The model of a model folder, as average writes it: weights, settings and vocabulary."""
        return cls.open(folder / WEIGHTS, folder / "vocabulary.model", config, device)

    @property
    def device(self) -> torch.device:
        return self.model.embedding.device

    def encode(self, lines: list[str]) -> list[list[int]]:
        return self.vocabulary.encode(lines, self.config.threads)

    def translate(
        self, lines: list[str], name: str, tick: Callable[[int], object] = lambda _: None
    ) -> list[Translation]:
        """The best translation of each line; `n_best` describes the arguments and the errors."""
        return [translations[0] for translations in self.n_best(lines, name, 1, tick)]

    def n_best(
        self,
        lines: list[str],
        name: str,
        count: int,
        tick: Callable[[int], object] = lambda _: None,
        decoder: Decoder | None = None,
    ) -> list[list[Translation]]:
        """At most `count` translations of each line, best first. An empty line is translated as an empty line.

        `name` is what errors call the lines. `tick` is called with the number of sentences of each finished batch.
        Without a `decoder`, the paper's beam search translates. `calls` is then the number of prefixes that were scored.
        Raises UserError for a line longer than a batch, and if memory runs out.
        """
        decoder, self.calls = decoder or Beam(self.config), 0
        sources = self.encode(lines)
        results = [[Translation([], 0.0)]] * len(lines)
        asked = [number for number, source in enumerate(sources) if source]
        width = decoder.width(count)
        tokens = max(1, self.config.batch_tokens // width)
        for number in asked:
            if len(sources[number]) > tokens:  # it would take hours, and memory by the square of its length
                raise UserError(
                    f"{name}: line {number + 1} is {len(sources[number]):,} pieces long, and decoding.batch_tokens "
                    f"{self.config.batch_tokens} leaves {tokens:,} to each of beam {width}; split the line"
                )
        by_length = batches_by_length([len(sources[number]) for number in asked], tokens)
        batches = [[asked[place] for place in places] for places in by_length]
        jobs = [Job([sources[number] for number in numbers], numbers) for numbers in batches]
        with enough_memory("in decoding", "lower decoding.batch_tokens"):
            for job, searched in zip(jobs, search_batches(self.decoders, jobs, decoder, self.config, count)):
                for number, translations in zip(job.numbers, searched.translations):
                    results[number] = translations
                self.calls += searched.calls
                tick(len(job.numbers))
        return results

    def text(self, translations: Sequence[Translation]) -> list[str]:
        """Detokenised lines. A line break, which can come of byte pieces, becomes a space."""
        texts = self.vocabulary.decode([translation.ids for translation in translations])
        return [" ".join(text.split("\n")).replace("\r", " ") for text in texts]
