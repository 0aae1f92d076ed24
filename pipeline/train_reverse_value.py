"""Train a value that predicts the probability of the source: one line of `reverse_values` in params.yaml.

    python -m pipeline.train_reverse_value NAME --model models/RUN/average --reverse models/RUN/average \\
        --text data/CORPUS/normalised --dev data/sets/CORPUS-dev \\
        --out models/values/NAME --scores scores/values/NAME.json --times work/times/values/NAME.json

The stage differs from `train_value` only in the score of a sample. A model of the reverse direction computes the
probability of each piece of the source and of EOS. The score is the geometric mean of these probabilities. It needs no
reference.
"""

import argparse

from pipeline.scoring import values
from pipeline.scoring.reverse import source_probability
from pipeline.settings.machine import machine
from pipeline.settings.params import load
from pipeline.settings.values import value_run
from pipeline.workflow import hardware, stage
from transformer.translator import Translator


def main(arguments: argparse.Namespace) -> None:
    params = load()
    run = value_run(params, arguments.name)
    device = hardware.torch_device(machine(params), run.samples.config.threads)
    reverse = Translator.load(arguments.reverse, device, **vars(run.samples.config) | {"precision": "float32"})
    values.train(arguments, params, run, lambda texts, lines, _: source_probability(reverse, texts, lines), device)


if __name__ == "__main__":
    stage.script(
        main, "train_reverse_value", __doc__, f"reverse {values.OPTIONS}", name="a line of `reverse_values` in params.yaml"
    )
