"""Train the value of a model's prefixes and measure its calibration: one line of `values` in params.yaml.

    python -m pipeline.extras.values.train_value NAME --model models/RUN/average --text data/CORPUS/normalised \\
        --dev data/sets/CORPUS-dev --out models/values/NAME --scores scores/values/NAME.json

The model translates training sentences with the decoder `samples`. Each translation (a sample) is scored against its
reference. A head learns to predict this score from the model's hidden state at each prefix of the sample. Writes a copy
of the model folder with the head (value.safetensors): the model `values/NAME`. Writes the calibration on samples of dev.
"""

from pipeline.extras.values import labels as values
from pipeline.running import stage

if __name__ == "__main__":
    stage.script(values.main, "train_value", __doc__, values.OPTIONS, name="a line of `values` in params.yaml")
