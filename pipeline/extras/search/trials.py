"""The trials of a search for settings: Optuna's study in an SQLite file. A killed search continues its study.

The samples of trial n depend on the seed, on n and on the earlier trials. They do not change if the search is
stopped and resumed, unless a process is killed between two samples of one trial.
Optuna calls a trial that ended by its budget or by `patience` COMPLETE. A trial is PRUNED if its best dev loss was above
the median of the completed trials at the same step, or if its training failed (UserError). Of all values, less is better:
the study has BLEU with a minus sign.
"""

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import optuna
from optuna.exceptions import StorageInternalError
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.exc import SQLAlchemyError

from pipeline.extras.search.settings import Dimension, Search
from transformer.config.reading import UserError

STARTUP = 5  # completed trials before a trial is pruned
WARMUP = 30  # percent of the budget before a trial is pruned; the warm-up of the learning rate should be over then

optuna.logging.set_verbosity(optuna.logging.WARNING)


class Trials:
    """The study of one search, in the file `path`."""

    def __init__(self, path: Path, search: Search) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.search = search
        try:
            self.study = optuna.create_study(
                storage=f"sqlite:///{path}",
                study_name="search",
                load_if_exists=True,
                pruner=optuna.pruners.MedianPruner(STARTUP, search.steps * WARMUP // 100),
            )
        except SQLAlchemyError as error:
            why = f"{path} cannot be read: {getattr(error, 'orig', error)}"
            raise UserError(f"{why}; remove {path.parent} to start the search again") from None

    def remaining(self) -> Iterator["Trial"]:
        """Yield the trials to be run. If a trial was running when the last process ended, it is the first."""
        running = [trial for trial in self.counted() if trial.state is TrialState.RUNNING]
        while running or len(self.study.trials) < self.search.trials:
            number = running[0].number if running else len(self.study.trials)
            seed = hashlib.sha256(f"{self.search.seed} {number}".encode()).digest()[:4]
            self.study.sampler = optuna.samplers.TPESampler(seed=int.from_bytes(seed))
            asked = optuna.trial.Trial(self.study, running[0]._trial_id) if running else self.study.ask()
            settings: dict[str, Any] = {}
            for dimension in self.search.dimensions:
                settings |= dimension.settings(sample(asked, dimension))
            asked.set_user_attr("settings", settings)
            yield Trial(asked, settings, self.search)
            running = []

    def counted(self) -> list[FrozenTrial]:
        """Return the first `trials` trials. The study has more if `trials` was lowered."""
        return self.study.get_trials(deepcopy=False)[: self.search.trials]

    def completed(self) -> list[FrozenTrial]:
        return [trial for trial in self.counted() if trial.state is TrialState.COMPLETE]

    def records(self) -> list[dict[str, Any]]:
        """Return the trials as the file of a search has them: the state in Optuna's words, the value only if completed."""
        found = []
        for trial in self.counted():
            curve = [[step, dev_loss] for step, dev_loss in sorted(trial.intermediate_values.items())]
            found.append(
                {
                    "trial": trial.number,
                    "state": trial.state.name.lower(),
                    "why": trial.user_attrs.get("why", ""),
                    "settings": trial.user_attrs.get("settings", {}),
                    "steps": curve[-1][0] if curve else 0,
                    "value": abs(trial.value or 0.0) if trial.state is TrialState.COMPLETE else None,
                    "dev_losses": curve,
                }
            )
        return found

    def best(self) -> FrozenTrial | None:
        return min(self.completed(), key=lambda trial: trial.value or 0.0, default=None)

    def importance(self) -> dict[str, float]:
        """Return the importance of each dimension by PED-ANOVA, or {} unless two completed trials differ in value."""
        completed = self.completed()
        if len({trial.value for trial in completed}) < 2:
            return {}
        counted = optuna.create_study()
        counted.add_trials(completed)
        evaluator = optuna.importance.PedAnovaImportanceEvaluator()
        found = optuna.importance.get_param_importances(counted, evaluator=evaluator)
        finite = {name: round(value, 6) for name, value in found.items() if math.isfinite(value)}
        # Optuna orders equal values by the hashes of their names, which differ from process to process.
        return dict(sorted(finite.items(), key=lambda entry: (-entry[1], entry[0])))


@contextmanager
def written(path: Path) -> Iterator[None]:
    """Raises OSError if Optuna cannot write the file of its study, for example on a full disk."""
    try:
        yield
    except StorageInternalError as error:
        raise OSError(f"{path} cannot be written: {getattr(error.__cause__, 'orig', error)}") from None


class Trial:
    """A running trial. `hopeless` is True if the trial is to be pruned. `dev_losses` has those reported, by step."""

    def __init__(self, trial: optuna.trial.Trial, settings: Mapping[str, Any], search: Search) -> None:
        self.trial, self.number, self.settings, self.search = trial, trial.number, settings, search
        self.dev_losses = dict(trial.study.trials[trial.number].intermediate_values)
        self.hopeless = bool(self.dev_losses) and self.is_hopeless(max(self.dev_losses))

    def is_hopeless(self, step: int) -> bool:
        """At the end of its budget, a trial is no longer pruned. A trial that `patience` ends earlier can be."""
        return step < self.search.steps and self.trial.should_prune()

    def report(self, step: int, dev_loss: float) -> None:
        """Report an evaluation to Optuna, unless the trial, which may have been resumed, already has it."""
        if step not in self.dev_losses:
            self.dev_losses[step] = dev_loss
            self.trial.report(dev_loss, step)
            self.hopeless = self.is_hopeless(step)

    def complete(self, bleu: float | None) -> None:
        """Give the trial its value: the BLEU of a search for dev_bleu, otherwise the last dev loss."""
        value = self.dev_losses[max(self.dev_losses)] if bleu is None else -bleu
        self.trial.study.tell(self.trial, value)

    def prune(self, why: str) -> None:
        self.trial.set_user_attr("why", why)
        self.trial.study.tell(self.trial, state=TrialState.PRUNED)


def sample(trial: optuna.trial.Trial, dimension: Dimension) -> Any:
    """Return the sample of a dimension. A resumed trial returns the sample of its first start."""
    bounds = dimension.range
    if bounds is None:
        return trial.suggest_categorical(dimension.name, tuple(range(len(dimension.choices))))
    suggest: Callable = trial.suggest_int if dimension.whole else trial.suggest_float
    return suggest(dimension.name, bounds.low, bounds.high, log=bounds.scale == "log")
