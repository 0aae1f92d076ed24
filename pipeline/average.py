"""Average the last checkpoints of a run (section 6.1) and write a complete model folder.

    python -m pipeline.average RUN --checkpoints models/RUN/checkpoints --vocabulary data/CORPUS/vocabulary.model \\
        --text data/CORPUS/text.json --out models/RUN/average

Writes model.safetensors, settings.json, vocabulary.model, and text.json with the languages and the normalisation of the
training text. The folder holds no decoding settings and no scores, so a change of either does not change the folder.
Removes the saved state of the training, if DVC has recorded its outputs.
"""

import argparse
import shutil
from pathlib import Path

from pipeline.running import stage
from pipeline.settings.params import entry, load, section
from pipeline.training import workspace
from transformer.checkpoint import SETTINGS, WEIGHTS, average, read_settings, write_tensors
from transformer.config.reading import UserError
from transformer.config.text import TEXT
from transformer.config.training import AveragingConfig
from transformer.files import atomic_folder, sha256
from transformer.store import step_files


def work(checkpoints: Path, vocabulary: Path, text: Path, out: Path, count: int) -> None:
    """Write the average of the last `count` checkpoints in the folder `checkpoints` as a model folder `out`."""
    last = step_files(checkpoints)[-count:]
    if len(last) < count:
        raise UserError(
            f"{checkpoints} holds {len(last)} checkpoints, and averaging.checkpoints asks for {count}: "
            "lower it, or train again with more checkpoints (training.keep, training.checkpoint_every)"
        )
    if sha256(vocabulary) != read_settings(checkpoints).vocabulary_sha256:
        raise UserError(
            f"{vocabulary} is not the vocabulary that {checkpoints} was trained with; run binarise and train again"
        )
    steps = [step for step, _ in last]
    with atomic_folder(out) as folder:
        write_tensors(folder / WEIGHTS, average(last), {"averaged_steps": steps})
        shutil.copyfile(checkpoints / SETTINGS, folder / SETTINGS)
        shutil.copyfile(vocabulary, folder / "vocabulary.model")
        shutil.copyfile(text, folder / TEXT)
    print(f"averaged the checkpoints at steps {', '.join(map(str, steps))} into {out}")


def main(arguments: argparse.Namespace) -> None:
    params = load()
    model = entry(params, "runs", arguments.run)["model"]
    config = section(params, "models", model, "averaging", AveragingConfig)
    work(arguments.checkpoints, arguments.vocabulary, arguments.text, arguments.out, config.checkpoints)
    workspace.remove_recorded(arguments.run)


if __name__ == "__main__":
    stage.script(main, "average", __doc__, "checkpoints vocabulary text out", run="a run of params.yaml")
