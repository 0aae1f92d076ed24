"""The searches of params.yaml: the space, the budget and the metric of a search for settings."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from pipeline.settings.params import Name, read_entry
from pipeline.settings.selection import run_settings
from transformer.config.model import ModelConfig
from transformer.config.reading import Count, Seed, UserError, describe, hints, read, require
from transformer.config.training import TrainingConfig

NOT_SEARCHED = ("steps", "seed", "corpus", "model", "checkpoint_every", "keep", "arithmetic")  # the same in all trials
DIGITS = 4  # significant digits of a sampled number, so that the line in params.yaml states the number exactly


@dataclass(frozen=True)
class Range:
    """The numbers from `low` to `high`. Values are sampled uniformly on a linear or on a logarithmic scale."""

    low: float
    high: float
    scale: Literal["linear", "log"]

    def __post_init__(self) -> None:
        require(self.low < self.high, "low", self.low, f"a number below high ({self.high:g}) is expected")
        require(self.scale == "linear" or self.low > 0, "low", self.low, "a number above 0 is expected for scale log")


@dataclass(frozen=True)
class Dimension:
    """A dimension of the space: a range of a setting, or choices, each of which gives one or several settings."""

    name: str
    choices: tuple[Mapping[str, Any], ...] = ()
    range: Range | None = None
    whole: bool = False  # the setting of the range is a whole number

    def settings(self, value: Any) -> dict[str, Any]:
        """Return the settings for a sampled value, which is the index of a choice or a number in the range."""
        if self.range is None:
            return dict(self.choices[value])
        rounded = min(max(float(f"{value:.{DIGITS}g}"), self.range.low), self.range.high)
        return {self.name: int(value) if self.whole else rounded}

    def samples(self) -> list[dict[str, Any]]:
        """Return the settings of each choice, or of both ends of the range."""
        values = range(len(self.choices)) if self.range is None else (self.range.low, self.range.high)
        return [self.settings(value) for value in values]


def dimension(name: str, value: Any) -> Dimension:
    """Read an entry of a space: `setting: [value, ...]`, `setting: {low, high, scale}`, or `any name: [{...}, ...]`."""
    where = f"space.{name}"
    if isinstance(value, Mapping):
        whole = describe((hints(ModelConfig) | hints(TrainingConfig)).get(name, str)).startswith(describe(int))
        bounds = read(Range, value, where)
        require(not whole or (bounds.low % 1 == bounds.high % 1 == 0), where, value, "whole numbers are expected")
        return Dimension(name, range=bounds, whole=whole)
    expected = "a list of values, or low, high and scale, is expected"
    require(isinstance(value, list) and bool(value), where, value, expected)
    several = [isinstance(choice, Mapping) and bool(choice) for choice in value]
    if any(several) and (not all(several) or len({tuple(sorted(map(str, choice))) for choice in value}) > 1):
        raise UserError(f"{where}: either values, or mappings of the same settings, are expected")
    return Dimension(name, tuple(choice if all(several) else {name: choice} for choice in value))


@dataclass(frozen=True)
class Search:
    """A line of `searches`. `steps` is the budget of a trial."""

    corpus: str
    model: str
    trials: Count
    steps: Count
    metric: Literal["dev_loss", "dev_bleu"]
    seed: Seed
    space: dict[Name, Any]

    def __post_init__(self) -> None:
        require(bool(self.space), "space", self.space, "at least one setting with its values is expected")
        owners: dict[str, str] = {}
        for one in self.dimensions:
            for key in one.samples()[0]:
                if key in NOT_SEARCHED:
                    raise UserError(f"space.{one.name}: {key} is not possible in a space: it is the same in all trials")
                if owners.setdefault(key, one.name) != one.name:
                    raise UserError(f"space: {key} is in both {owners[key]} and {one.name}")

    @property
    def dimensions(self) -> list[Dimension]:
        return [dimension(key, value) for key, value in self.space.items()]

    def samples(self) -> Iterator[dict[str, Any]]:
        """Yield settings that together contain all samples of each dimension, with the first sample of all others.

        A trial whose settings do not suit one another in another combination, or between the ends of a range, is pruned.
        """
        first = {key: value for one in self.dimensions for key, value in one.samples()[0].items()}
        for one in self.dimensions:
            yield from ({**first, **settings} for settings in one.samples())

    def run(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        return {"corpus": self.corpus, "model": self.model, **settings}


def search(params: Mapping[str, Any], name: str) -> Search:
    """Return the search `name` of params.yaml.

    Raises UserError if the search or one of its samples is invalid.
    """
    found = read_entry(Search, params, "searches", name)
    for settings in found.samples():
        trial_settings(params, name, found, settings)
    return found


def trial_settings(
    params: Mapping[str, Any], name: str, search: Search, settings: Mapping[str, Any]
) -> tuple[ModelConfig, TrainingConfig]:
    """Return the settings of a trial: those of its run, `steps` of the search and one checkpoint, at the end."""
    try:
        _, model, training = run_settings({**params, "runs": {name: search.run(settings)}}, name)
    except UserError as error:
        raise UserError(*(said.replace(f"runs.{name}", f"searches.{name}.space") for said in error.args)) from None
    return model, replace(training, steps=search.steps, checkpoint_every=search.steps, keep=1)
