#!/usr/bin/env bash
# Expected: grow_diag_final_and of NLTK joins the alignments of both directions as Moses does: it starts with the points that both have,
#   adds points beside them if one of their words is not aligned yet, and at last points both of whose words are not.
# Happens: it returns the union of both alignments, always. It asks whether a word is in a dictionary whose keys are "e" and "f", so no
#   word is ever taken for aligned. The union has all links that are wrong in one direction: recall rises and precision falls.
# Versions: nltk 3.10.4. Date: 2026-11-30.
# Source: https://www.nltk.org/_modules/nltk/translate/gdfa.html, whose comments have the conditions; the algorithm is described in
#   https://aclanthology.org/2005.iwslt-1.8, http://www.statmt.org/moses/?n=FactoredTraining.AlignWords and moses-smt/mosesdecoder,
#   symal/symal.cpp.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q nltk==3.10.4

venv/bin/python - <<'PYTHON'
import random
import sys
from importlib.metadata import version

from nltk.translate.gdfa import grow_diag_final_and

print("nltk", version("nltk"))


def algorithm(forward, backward):
    """Return the points by the algorithm of Moses."""
    points, union = forward & backward, forward | backward

    def free(point):
        return [point[side] not in {each[side] for each in points} for side in (0, 1)]

    grown = True
    while grown:
        beside = {(e + down, f + right) for e, f in points for down in (-1, 0, 1) for right in (-1, 0, 1)} & union - points
        grown = next((point for point in sorted(beside) if any(free(point))), None)
        points = points | {grown} if grown else points
    for direction in (forward, backward):
        for point in sorted(direction):
            points = points | {point} if all(free(point)) else points
    return points


def theirs(source, target, forward, backward):
    texts = [" ".join(f"{e}-{f}" for e, f in sorted(each)) for each in (forward, backward)]
    return set(grow_diag_final_and(source, target, *texts))


source, target = "das Haus am Fluss ist alt".split(), "the house by the river is old".split()
forward = {(0, 0), (1, 1), (2, 2), (3, 4), (4, 5), (5, 6)}
backward = forward | {(0, 3)}  # "the" of "the river" is aligned with "das", which is far away
added = [f"{source[e]}-{target[f]} ({e}-{f})" for e, f in theirs(len(source), len(target), forward, backward) - forward]
right = algorithm(forward, backward) == forward
print("both directions have", len(forward), "links; the algorithm adds none:", right, "and NLTK adds:", *added)

random.seed(1)
unions, smaller = 0, 0
for _ in range(1000):
    length, other = random.randint(3, 12), random.randint(3, 12)
    forward = {(word, random.randrange(other)) for word in range(length)}
    backward = {(random.randrange(length), word) for word in range(other)}
    unions += theirs(length, other, forward, backward) == forward | backward
    smaller += algorithm(forward, backward) < forward | backward
print(f"of 1000 random pairs, NLTK returns the union for {unions}; the algorithm returns less for {smaller}")
if not right or added != ["das-the (0-3)"] or unions != 1000 or smaller < 900:
    sys.exit("changed: grow-diag-final-and is no longer the union")
PYTHON
