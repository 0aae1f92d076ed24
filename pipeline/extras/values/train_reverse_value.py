"""Train a value that predicts the probability of the source: one line of `reverse_values` in params.yaml.

    python -m pipeline.extras.values.train_reverse_value NAME --model models/RUN/average --reverse models/RUN/average \\
        --text data/CORPUS/normalised --dev data/sets/CORPUS-dev \\
        --out models/values/NAME --scores scores/values/NAME.json

The stage differs from `train_value` only in the score of a sample. A model of the reverse direction computes the
probability of each piece of the source and of EOS. The score is the geometric mean of these probabilities. It needs no
reference.
"""

from pipeline.extras.values.train_value import OPTIONS, main
from pipeline.running import stage

if __name__ == "__main__":
    name = "a line of `reverse_values` in params.yaml"
    stage.script(main, "train_reverse_value", __doc__, f"reverse {OPTIONS}", name=name)
