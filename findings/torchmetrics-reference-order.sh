#!/usr/bin/env bash
# Expected: BLEU with several references does not depend on their order; SacreBLEUScore says that it follows sacreBLEU.
# Happens: if a shorter and a longer reference are equally far from the length of the hypothesis, torchmetrics compares it with the one
#   listed first, and sacreBLEU with the shorter one. So the brevity penalty, and the score, change with the order of the references.
# Versions: torchmetrics 1.9.0, torch 2.13.0 on a CPU, sacrebleu 2.6.0. Date: 2026-11-30.
# Source: https://github.com/Lightning-AI/torchmetrics/pull/3505.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q torchmetrics==1.9.0 torch==2.13.0 sacrebleu==2.6.0

venv/bin/python - <<'PYTHON'
import sys
from importlib.metadata import version

from sacrebleu.metrics import BLEU
from torchmetrics.text import SacreBLEUScore

print("torchmetrics", version("torchmetrics"), "sacrebleu", version("sacrebleu"))
hypothesis = "the old bridge was opened in May"
references = ["the old bridge was opened", "the old bridge was opened again in late May"]
found = {}
for name, order in (("shorter first", references), ("longer first", references[::-1])):
    theirs = 100 * SacreBLEUScore()([hypothesis], [order]).item()
    found[name] = round(theirs, 2), round(BLEU().corpus_score([hypothesis], [[each] for each in order]).score, 2)
    print("%s: torchmetrics %.2f, sacreBLEU %.2f" % (name, *found[name]))
first, second = found.values()
same = first[1] == second[1] and first[0] - second[0] > 1
sys.exit(None if same else "changed: the order of the references does not matter, or matters to sacreBLEU")
PYTHON
