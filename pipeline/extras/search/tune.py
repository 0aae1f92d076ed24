"""Search for settings: Optuna's TPE chooses the settings of short trainings. A stopped search is resumed.

    python -m pipeline.extras.search.tune NAME --data data/CORPUS/binarised --vocabulary data/CORPUS/vocabulary.model \\
        --dev data/sets/CORPUS-dev --out scores/searches/NAME.json

Reads params.yaml (searches.NAME and its model), the binarised pairs and, for the metric dev_bleu, the dev set. Writes
the trials, the importance of each dimension, and the settings of the best trial in the form of an entry of `runs` to
--out. The study stays in work/searches/NAME. If `trials` is raised, only the additional trials run. In MLflow, the run of a
trial is nested in the run of the search.
"""

import argparse
import gc
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline import code, train
from pipeline.extras.search.settings import Search, search, trial_settings
from pipeline.extras.search.trials import Trial, Trials, written
from pipeline.running import followers, hardware, stage
from pipeline.running.progress import Progress, say
from pipeline.scoring.of_sets import headline_score
from pipeline.settings.machine import MachineConfig, machine
from pipeline.settings.params import load, section
from pipeline.text.binarised import describe, open_binarised
from pipeline.text.evaluation import EvaluationSet
from pipeline.training import workspace
from transformer.config.decoding import DecodingConfig
from transformer.config.reading import UserError
from transformer.files import digest, sha256, write_json
from transformer.memory import OutOfMemory
from transformer.parallel import SINGLE_PROCESS
from transformer.store import step_files
from transformer.training import Diverged, Trainer
from transformer.translator import Translator

PRUNED = {Diverged: "diverged", OutOfMemory: "out of memory"}  # no words of an error are in the results of a search


@dataclass(frozen=True)
class Searcher:
    """One search in its folder `place`. `stop()` is true after SIGTERM, SIGINT or the time limit."""

    name: str
    search: Search
    params: Mapping[str, Any]
    arguments: argparse.Namespace
    options: MachineConfig
    place: Path
    trials: Trials
    stop: train.Interruption

    def run(self) -> bool:
        """Run the trials that are left. Returns False if the search was interrupted."""
        total = self.search.trials
        for ended in self.trials.counted():
            if ended.state.is_finished():  # a kill may have left its folder
                shutil.rmtree(self.place / f"trial-{ended.number}", ignore_errors=True)
        with Progress(total=total, unit="trial") as bar:
            for trial in self.trials.remaining():
                bar.update(trial.number - bar.n)
                folder = self.place / f"trial-{trial.number}"
                done = self.attempt(trial, folder)
                gc.collect()  # reference cycles would keep the training in memory during the next trial
                if not done:
                    return False
                shutil.rmtree(folder, ignore_errors=True)
            bar.update(total - bar.n)
        return True

    def attempt(self, trial: Trial, folder: Path) -> bool:
        """Train a trial in its folder, and tell Optuna how it ended. Returns False if the trial was interrupted.

        A trial that cannot be trained is pruned: it diverges, memory runs out, or its settings do not suit the data. Raises
        UserError if its saved state is damaged.
        """
        training: Trainer | None = None
        resumed = (folder / workspace.STATE).exists()
        try:
            model, config = trial_settings(self.params, self.name, self.search, trial.settings)
            training = train.trainer(model, config, self.arguments, folder, self.options, SINGLE_PROCESS)
            return self.follow(trial, training, folder)
        except UserError as error:
            if resumed and not training:  # its settings suited the data when the state was saved
                raise
            say(f"trial {trial.number}: {error}")
            trial.prune(next((why for kind, why in PRUNED.items() if isinstance(error, kind)), "settings refused"))
            return True
        finally:
            if training:
                training.close()

    def follow(self, trial: Trial, training: Trainer, folder: Path) -> bool:
        def tick(record: dict | None) -> None:
            if record and "dev_loss" in record:
                trial.report(record["step"], record["dev_loss"])

        done = not trial.hopeless and training.run(tick, lambda: bool(self.stop()) or trial.hopeless)
        if trial.hopeless:
            trial.prune("above the median dev loss")
        elif not done:
            return False
        else:
            trial.complete(None if self.search.metric == "dev_loss" else self.bleu(training, folder))
        state = "pruned" if trial.hopeless else "complete"
        say(f"trial {trial.number}: {state} at step {training.state.step}")
        return True

    def bleu(self, training: Trainer, folder: Path) -> float:
        """The BLEU of the last weights on dev, with the decoding settings of the model."""
        settings = decoding_settings(self.params, self.search)
        training.store.save_weights(training.state)
        train.publish(training, describe(self.arguments.data), folder / "model")
        weights = step_files(folder / "model")[-1][1]
        translator = Translator.open(weights, self.arguments.vocabulary, settings, training.device)
        dev = EvaluationSet.open(self.arguments.dev)
        found = translator.n_best(dev.lines("normalised")[0], "dev", 1)
        return headline_score(translator.text([best for best, *_ in found]), dev)

    def content(self) -> dict[str, Any]:
        best = self.trials.best()
        return {
            "name": self.name,
            "search": self.params["searches"][self.name],
            "data_sum": describe(self.arguments.data)["sum"],
            "trials": self.trials.records(),
            "best": best and {"trial": best.number, "run": self.search.run(best.user_attrs["settings"])},
        }


def decoding_settings(params: Mapping[str, Any], chosen: Search) -> DecodingConfig:
    return section(params, "models", chosen.model, "decoding", DecodingConfig)


def key_of(params: Mapping[str, Any], name: str, chosen: Search, data_sum: str, code: str, dev: Path) -> str:
    """Return the digest that names the folder of a search.

    The digest covers the data, the training code, the training settings, the search without `trials` and, for the metric
    dev_bleu, the decoding settings and the references of the set in the folder `dev`.
    """
    config = {key: value for key, value in vars(chosen).items() if key != "trials"}
    first = next(chosen.samples())
    fixed = [
        {key: value for key, value in vars(settings).items() if key not in first}
        for settings in trial_settings(params, name, chosen, first)
    ]
    more: list[Any] = []
    if chosen.metric == "dev_bleu":
        references = EvaluationSet.open(dev).path("raw", "target")
        more = [vars(decoding_settings(params, chosen)), sha256(references)]
    return digest([config, fixed, data_sum, code, *more])


def main(arguments: argparse.Namespace) -> int:
    params, name = load(), arguments.name
    chosen, options = search(params, name), machine(params)
    made_by = digest(arguments.code or code.described("tune"))
    key = key_of(params, name, chosen, describe(arguments.data)["sum"], made_by, arguments.dev)
    with workspace.lock(f"searches/{name}"):
        place = workspace.folder(f"searches/{name}", key)
        # A missing GPU and damaged data are refused before the first trial. Later, an error prunes a trial.
        hardware.torch_device(options, 1)
        vocabulary = sha256(arguments.vocabulary)
        for part in ("train", "dev"):
            open_binarised(arguments.data, part, vocabulary_sha256=vocabulary)
        if chosen.metric == "dev_bleu":
            for form in ("normalised", "raw"):
                EvaluationSet.open(arguments.dev).lines(form)
        trials = Trials(place / "trials.db", chosen)
        stop = train.Interruption(options.time_limit_minutes)
        searcher = Searcher(name, chosen, params, arguments, options, place, trials, stop)
        with written(place / "trials.db"):
            if not searcher.run():
                say(f"stopped by {stop.reason}; the same command resumes the search")
                return stage.INTERRUPTED
        if trials.best() is None:
            why = trials.records()[-1]["why"]
            raise UserError(f"searches.{name}: none of {chosen.trials} trials completed; the last one: {why}")
        with followers.mirroring(arguments.out):
            write_json(arguments.out, searcher.content() | {"importance": trials.importance()})
    return 0


if __name__ == "__main__":
    remedy = f"its trials are kept: {workspace.UNDO}"
    stage.script(main, "tune", __doc__, "data vocabulary dev out", remedy, name="a search of params.yaml")
