"""Prints digests of a training and of its translations in portable arithmetic, which are equal on all CPUs with AVX2.

    python -m tests.portable

Trains a small model for twenty steps on random pairs, with two threads, and translates fifty sentences by beam search.
"""

import os

from transformer.config.arithmetic import VARIABLES

os.environ.update(VARIABLES)

import hashlib
import json
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from pipeline.settings.params import load, section
from tests.support.pairs import Pairs
from tests.support.trainers import build, run
from transformer.arithmetic import make_portable
from transformer.config.model import ModelConfig
from transformer.config.training import TrainingConfig
from transformer.decoding import PAPER, translate

SHORT = {"steps": 20, "batch_tokens": 600, "micro_batch_tokens": 600, "warmup": 10, "checkpoint_every": 20, "log_every": 10}


def digest(*parts: bytes) -> str:
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


def main() -> None:
    params = load()
    model_config = section(params, "models", "tiny", "model", ModelConfig)
    config = replace(section(params, "models", "tiny", "training", TrainingConfig), threads=2, **SHORT)
    torch.set_num_threads(config.threads)
    reason = make_portable()
    with tempfile.TemporaryDirectory() as folder:
        training = build(Path(folder), config, model_config, Pairs(400, 25))
        run(training)
        records = [json.loads(line) for line in training.store.records()]
        weights = [parameter.detach().numpy().tobytes() for parameter in training.state.model.parameters()]
        training.close()
    sources = [ids.tolist() for ids in Pairs(50, 25, seed=3).sides[0]]
    found = translate(training.state.model.eval(), sources, replace(PAPER, precision="float32", threads=2, extra_length=5))
    scores = np.array([translation.score for translation in found], np.float64)
    said = {"reason": reason, "weights": digest(*weights), "records": records}
    said["translations"] = digest(json.dumps([translation.ids for translation in found]).encode(), scores.tobytes())
    print(json.dumps(said))


if __name__ == "__main__":
    main()
