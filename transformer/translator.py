"""Translating lines of text: a model, its vocabulary and the settings of the search."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from transformer.checkpoint import WEIGHTS, load_model, read_settings
from transformer.config.decoding import DecodingConfig
from transformer.config.reading import UserError
from transformer.decoding import Translation, batches_by_length, model_in, settings_on, translate_batches
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
    decoder: Transformer = field(init=False)  # the model that translates: `model`, or its copy in bfloat16

    def __post_init__(self) -> None:
        self.config = settings_on(self.device, self.config)
        self.decoder = model_in(self.config.precision, self.model)

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
        """The translations in the lines' order. An empty line is translated as an empty line.

        `name` is what errors call the lines. `tick` is called with the number of sentences of each finished batch.
        Raises UserError for a line longer than a batch, and if memory runs out.
        """
        sources = self.encode(lines)
        results = [Translation([], 0.0)] * len(lines)
        asked = [number for number, source in enumerate(sources) if source]
        tokens = max(1, self.config.batch_tokens // self.config.beam)
        for number in asked:
            if len(sources[number]) > tokens:  # it would take hours, and memory by the square of its length
                raise UserError(
                    f"{name}: line {number + 1} is {len(sources[number]):,} pieces long, and decoding.batch_tokens "
                    f"{self.config.batch_tokens} leaves {tokens:,} to each of beam {self.config.beam}; split the line"
                )
        by_length = batches_by_length([len(sources[number]) for number in asked], tokens)
        batches = [[asked[place] for place in places] for places in by_length]
        texts = [[sources[number] for number in numbers] for numbers in batches]
        with enough_memory("in decoding", "lower decoding.batch_tokens"):
            for numbers, translations in zip(batches, translate_batches(self.decoder, texts, self.config)):
                for number, translation in zip(numbers, translations):
                    results[number] = translation
                tick(len(numbers))
        return results

    def text(self, translations: Sequence[Translation]) -> list[str]:
        """Detokenised lines. A line break, which can come of byte pieces, becomes a space."""
        texts = self.vocabulary.decode([translation.ids for translation in translations])
        return [" ".join(text.split("\n")).replace("\r", " ") for text in texts]
