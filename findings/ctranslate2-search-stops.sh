#!/usr/bin/env bash
# Expected: with the length penalty of 1 that is standard, a search of width 4 returns the hypothesis whose score, as CTranslate2 itself
#   reports it, is the best of those that this width can reach.
# Happens: the search ends as soon as 4 hypotheses have ended, although a longer one may still get a better score. With patience 3 the
#   same width finds a better score for many sentences and never a worse one. A toolkit that searches until nothing can win any more
#   translates differently with the same model. The model here is a toy with random weights.
# Versions: ctranslate2 4.8.5, numpy 2.4.6. Date: 2026-11-29.
# Source: https://github.com/OpenNMT/CTranslate2/pull/1073 (patience) and https://github.com/OpenNMT/CTranslate2/issues/1740 (differences
#   from transformers).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q ctranslate2==4.8.5 numpy==2.4.6

venv/bin/python - <<'PYTHON'
import sys
from importlib.metadata import version
from pathlib import Path

import ctranslate2
import numpy
from ctranslate2.specs import TransformerSpec
from ctranslate2.specs.model_spec import LayerSpec

print("ctranslate2", version("ctranslate2"))
words, width, generator = ["<unk>", "<s>", "</s>", *"abcdefghijklmnopqrstuvwxyz"], 16, numpy.random.default_rng(4)


def shape(name):
    if name.endswith(("embeddings/weight", "embeddings_0/weight", "projection/weight")):
        return len(words), width
    if name.endswith("encodings"):
        return 64, width
    factors = {"ffn/linear_0": 2, "self_attention/linear_0": 3, "/attention/linear_1": 2}
    rows = width * next((factor for part, factor in factors.items() if part in name), 1)
    return (rows, 2 * width if "ffn/linear_1" in name else width) if name.endswith("weight") else (rows,)


def fill(layer, prefix=""):
    for key, value in list(vars(layer).items()):
        name = prefix + key
        if isinstance(value, LayerSpec):
            fill(value, name + "/")
        elif isinstance(value, list):
            for index, part in enumerate(value):
                fill(part, f"{name}_{index}/")
        elif value is None:
            drawn = generator.standard_normal(shape(name)).astype(numpy.float32)
            setattr(layer, key, numpy.full(width, key == "gamma", numpy.float32) if "layer_norm" in name else drawn)


model = TransformerSpec.from_config((1, 1), num_heads=2, pre_norm=False)
fill(model)
model.decoder.projection.bias = numpy.zeros(len(words), numpy.float32)
model.decoder.projection.bias[words.index("</s>")] = 5
model.register_source_vocabulary(words)
model.register_target_vocabulary(words)
model.validate()
Path("toy").mkdir()
model.save("toy")
translator = ctranslate2.Translator("toy")
sentences = [list(letters) for letters in generator.choice(words[3:], (400, 6))]
scores = {}
for patience in (1, 3):
    results = translator.translate_batch(sentences, beam_size=4, patience=patience, max_decoding_length=30, return_scores=True)
    scores[patience] = numpy.array([result.scores[0] for result in results])
gain = scores[3] - scores[1]
better, worse = int((gain > 0.01).sum()), int((gain < -0.01).sum())
print(f"of {len(sentences)} sentences, patience 3 finds a better score for {better}, by up to {gain.max():.2f}, a worse one for {worse}")
if better < 20 or worse:
    sys.exit("changed: the search no longer ends before the best score is found")
PYTHON
