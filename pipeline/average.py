"""Average checkpoints of a run (section 6.1) and write a complete model folder.

    python -m pipeline.average RUN --checkpoints models/RUN/checkpoints --training scores/RUN/training.jsonl \\
        --dev data/sets/CORPUS-dev --vocabulary data/CORPUS/vocabulary.model --text data/CORPUS/text.json \\
        --out models/RUN/average

Averages the last checkpoints or, with `choose: dev_loss`, those of the lowest dev loss in --training. With `dev_bleu`, it
averages those of the highest BLEU on --dev, which it translates greedily on the CPU.

Writes model.safetensors, settings.json, vocabulary.model, and text.json with the languages and the normalisation of the
training text. The folder holds no decoding settings and no scores, so a change of either does not change the folder.
Removes the saved state of the training, if DVC has recorded its outputs and `machine.keep_states` is not set.
"""

import argparse
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch

from pipeline.running import stage
from pipeline.running.translating import best
from pipeline.scoring.of_sets import headline_score
from pipeline.settings.machine import machine
from pipeline.settings.params import entry, load, section
from pipeline.text.evaluation import EvaluationSet
from pipeline.training import workspace
from transformer.arithmetic import make_portable
from transformer.checkpoint import SETTINGS, WEIGHTS, average, read_settings, write_tensors
from transformer.config.reading import UserError
from transformer.config.text import TEXT
from transformer.config.training import AveragingConfig
from transformer.decoding import PAPER
from transformer.files import atomic_folder, sha256
from transformer.store import step_files
from transformer.translator import Translator


def chosen(
    checkpoints: Path, training: Path, config: AveragingConfig, bleu: Callable[[Path], float]
) -> list[tuple[int, Path]]:
    """The steps and paths of the checkpoints to average, oldest first. Of equal ones, the later one is taken.

    `bleu` gives the BLEU of a checkpoint on dev.
    """
    records, found = map(json.loads, training.read_bytes().splitlines()), step_files(checkpoints)
    losses = {record["step"]: record["dev_loss"] for record in records if "dev_loss" in record}
    if config.choose == "dev_loss":
        if without := [str(step) for step, _ in found if step not in losses]:
            raise UserError(f"{training} has no dev loss of the checkpoints at steps {', '.join(without)}; train again")
        found.sort(key=lambda each: (-losses[each[0]], each[0]))
    elif config.choose == "dev_bleu":
        scores = {step: bleu(path) for step, path in found}
        print("dev BLEU by step: " + ", ".join(f"{step}: {score:.2f}" for step, score in scores.items()))
        found.sort(key=lambda each: (scores[each[0]], each[0]))
    return sorted(found[-config.checkpoints :])


def greedy_bleu(weights: Path, vocabulary: Path, dev: Path) -> float:
    """The BLEU of a checkpoint's greedy translations of the dev set in the folder `dev`, on one thread of the CPU."""
    torch.set_num_threads(1)
    make_portable()  # as the training was, if `pipeline.settings.arithmetic` has prepared it
    settings = replace(PAPER, beam=1, precision="float32", threads=1)
    translator, chosen = Translator.open(weights, vocabulary, settings, torch.device("cpu")), EvaluationSet.open(dev)
    found = best(translator, chosen.lines("normalised")[0], weights.stem)
    return headline_score(translator.text(found.translations), chosen)


def work(arguments: argparse.Namespace, config: AveragingConfig) -> None:
    """Write the average of checkpoints in the folder --checkpoints as a model folder --out."""
    checkpoints, vocabulary = arguments.checkpoints, arguments.vocabulary
    last = chosen(checkpoints, arguments.training, config, lambda path: greedy_bleu(path, vocabulary, arguments.dev))
    if len(last) < config.checkpoints:
        raise UserError(
            f"{checkpoints} holds {len(last)} checkpoints, and averaging.checkpoints asks for {config.checkpoints}: "
            "lower it, or train again with more checkpoints (training.keep, training.checkpoint_every)"
        )
    if sha256(vocabulary) != read_settings(checkpoints).vocabulary_sha256:
        raise UserError(
            f"{vocabulary} is not the vocabulary that {checkpoints} was trained with; run binarise and train again"
        )
    steps = [step for step, _ in last]
    with atomic_folder(arguments.out) as folder:
        write_tensors(folder / WEIGHTS, average(last), {"averaged_steps": steps})
        shutil.copyfile(checkpoints / SETTINGS, folder / SETTINGS)
        shutil.copyfile(vocabulary, folder / "vocabulary.model")
        shutil.copyfile(arguments.text, folder / TEXT)
    print(f"averaged the checkpoints at steps {', '.join(map(str, steps))} into {arguments.out}")


def main(arguments: argparse.Namespace) -> None:
    params = load()
    model = entry(params, "runs", arguments.run)["model"]
    work(arguments, section(params, "models", model, "averaging", AveragingConfig))
    if machine(params).keep_states:
        for place in workspace.saved(arguments.run):
            size = sum(path.stat().st_size for path in place.rglob("*") if path.is_file()) / 1e6
            print(f"{place} keeps the last state for more steps (machine.keep_states): {size:,.0f} MB")
    else:
        workspace.remove_recorded(arguments.run)


if __name__ == "__main__":
    stage.script(main, "average", __doc__, "checkpoints training dev vocabulary text out", run="a run of params.yaml")
