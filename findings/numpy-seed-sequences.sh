#!/usr/bin/env bash
# Expected: different sequences of numbers are different seeds: default_rng([7]), default_rng([7, 0]) and default_rng([7, 0, 0]) draw
#   different numbers, such as for a seed, its epoch 0 and the worker 0 of that epoch.
# Happens: all three draw the same numbers. SeedSequence fills a sequence of less than four words of 32 bits with zeros. It also joins
#   the words of large numbers, so that 7 + 3 * 2**32 is the same seed as [7, 3]. Sequences as the manual recommends, which have the
#   seed last, do not meet.
# Versions: numpy 2.4.6. Date: 2026-11-30.
# Source: https://github.com/numpy/numpy/pull/16551 (the zeros once met the keys of spawned seeds) and
#   https://numpy.org/doc/stable/reference/random/parallel.html ("Sequence of integer seeds").
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q numpy==2.4.6

venv/bin/python - <<'PYTHON'
import sys
from importlib.metadata import version

import numpy

print("numpy", version("numpy"))


def draw(seed):
    numbers = numpy.random.default_rng(seed).permutation(10).tolist()
    print(f"default_rng({seed}): {numbers}")
    return numbers


alone = draw(7)
zeros = [draw(seed) for seed in ([7, 0], [7, 0, 0], [7, 0, 0, 0])]
pair, joined = draw([7, 3]), draw(7 + 3 * 2**32)
last = [draw([epoch, 7]) for epoch in range(3)]
if any(each != alone for each in zeros) or pair != joined:
    sys.exit("changed: zeros at the end of a seed, or its division into words, now count")
if any(last.count(each) > 1 for each in last) or alone in last:
    sys.exit("changed: seeds that end in the same number draw the same numbers")
PYTHON
