#!/usr/bin/env bash
# Expected: safetensors.numpy stores the values of an array, as numpy.save does, or refuses an array that is not contiguous, as
#   safetensors.torch does.
# Happens: 0.8.0 stores a transposed or sliced array in the order of its memory and loads other values, without an error. 0.7.0 was right.
# Versions: safetensors 0.7.0 and 0.8.0, numpy 2.4.6. Date: 2026-11-29.
# Source: https://github.com/safetensors/safetensors/issues/825.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q safetensors==0.8.0 numpy==2.4.6

cat > store.py <<'PYTHON'
from importlib.metadata import version

import numpy
from safetensors.numpy import load, save

table = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)
right = [bool((load(save({"a": array}))["a"] == array).all()) for array in (table, table.T, table[:, :2])]
print("safetensors", version("safetensors"), "numpy", version("numpy"), "whole, transposed, sliced are right:", *right)
PYTHON
venv/bin/python store.py | tee new
venv/bin/pip install -q safetensors==0.7.0
venv/bin/python store.py | tee old
if ! grep -q "True False False" new || ! grep -q "True True True" old; then
    echo "changed: other arrays are stored in the order of their memory" >&2
    exit 1
fi
