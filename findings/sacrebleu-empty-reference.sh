#!/usr/bin/env bash
# Expected: an empty line in a second reference file is a missing translation, as None is, and changes no metric; or it counts as one
#   in all metrics.
# Happens: each metric treats it in its own way. For BLEU the empty line is a reference of length 0, which a short translation is closest
#   to, so that the brevity penalty disappears; None is left out. For TER the average length of the references is halved, and to delete
#   every word takes few edits, so that the score rises. chrF takes the best reference and does not change.
# Versions: sacrebleu 2.6.0. Date: 2026-11-29.
# Source: https://github.com/mjpost/sacrebleu/issues/161 (what an empty reference should mean) and
#   https://github.com/mjpost/sacrebleu/pull/132 (a variable number of references).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q sacrebleu==2.6.0

venv/bin/python - <<'PYTHON'
import sys
from importlib.metadata import version

from sacrebleu.metrics import BLEU, CHRF, TER

print("sacrebleu", version("sacrebleu"))
outputs = ["the tailor mended the jacket"]
reference = ["the tailor mended the jacket and the trousers of the old captain"]
found = {}
for name, metric in (("BLEU", BLEU()), ("TER", TER()), ("chrF", CHRF())):
    found[name] = [
        round(metric.corpus_score(outputs, [reference, *second]).score, 2) for second in ([], [[None]], [[""]])
    ]
    print(f"{name}: one reference {found[name][0]}, second None {found[name][1]}, second empty {found[name][2]}")
alone, missing, empty = found["BLEU"]
same = alone == missing < 50 and empty > 99.9
alone, missing, empty = found["TER"]
same &= alone == missing and empty > 1.3 * alone
same &= len(set(found["chrF"])) == 1
if not same:
    sys.exit("changed: a metric treats an empty second reference in another way")
PYTHON
