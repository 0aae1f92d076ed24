#!/usr/bin/env bash
# Expected: saving the same tensors with the same metadata gives the same bytes, as it does without metadata.
# Happens: with several metadata entries their order is drawn anew at each call, so that a file's digest changes between saves, also in
#   one process. One entry, for example with a JSON text, is stable.
# Versions: safetensors 0.8.0, numpy 2.4.6. Date: 2026-11-29.
# Source: https://github.com/safetensors/safetensors/issues/584.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q safetensors==0.8.0 numpy==2.4.6

venv/bin/python - <<'PYTHON'
import sys
from importlib.metadata import version

import numpy
from safetensors.numpy import save

print("safetensors", version("safetensors"), "numpy", version("numpy"))
tensors = {"bias": numpy.zeros(3, numpy.float32), "weight": numpy.ones((2, 3), numpy.float32)}
count = {}
for entries in (0, 1, 4):
    metadata = {f"entry{index}": "value" for index in range(entries)} or None
    count[entries] = len({save(tensors, metadata=metadata) for _ in range(50)})
    print(f"{entries} metadata entries: {count[entries]} different files in 50 calls")
if count[0] != 1 or count[1] != 1 or count[4] == 1:
    sys.exit("changed: the order of metadata entries is stable, or more than it is not")
PYTHON
