"""Train the value of a model's prefixes and measure its calibration: one line of `values` in params.yaml.

    python -m pipeline.train_value NAME --model models/RUN/average --text data/CORPUS/normalised \\
        --dev data/sets/CORPUS-dev --out models/values/NAME --scores scores/values/NAME.json \\
        --times work/times/values/NAME.json

The model translates training sentences with the decoder `samples`. Each translation (a sample) is scored against its
reference. A head learns to predict this score from the model's hidden state at each prefix of the sample. Writes a copy
of the model folder with the head (value.safetensors): the model `values/NAME`. Writes the calibration on samples of dev.
"""

import argparse

from pipeline.scoring import values
from pipeline.scoring.utilities import sentence_score
from pipeline.settings.machine import machine
from pipeline.settings.params import languages, load
from pipeline.settings.values import value_run
from pipeline.workflow import hardware, stage


def main(arguments: argparse.Namespace) -> None:
    params = load()
    run = value_run(params, arguments.name)
    device = hardware.torch_device(machine(params), run.samples.config.threads)
    score = sentence_score(run.settings.score, languages(params, run.corpus)[1])
    values.train(arguments, params, run, lambda texts, _, references: list(map(score, texts, references)), device)


if __name__ == "__main__":
    stage.script(main, "train_value", __doc__, values.OPTIONS, name="a line of `values` in params.yaml")
