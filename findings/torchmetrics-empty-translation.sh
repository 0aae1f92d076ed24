#!/usr/bin/env bash
# Expected: TranslationEditRate, which says that it follows sacreBLEU, gives the same scores. A translation that is empty needs an insertion
#   for each word of its reference.
# Happens: torchmetrics swaps the translation and the reference. So an empty translation counts as no edit, and a corpus with empty lines
#   has a better TER than one with errors. If words repeat, it finds other shifts, too: for sentences in another order, TER is above that
#   of sacreBLEU or below.
# Versions: torchmetrics 1.9.0, torch 2.13.0 on a CPU, sacrebleu 2.6.0. Date: 2026-11-30.
# Source: https://github.com/Lightning-AI/torchmetrics/issues/3478 (the same, corrected after this release).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q torchmetrics==1.9.0 torch==2.13.0 sacrebleu==2.6.0

venv/bin/python - <<'PYTHON'
import sys
from importlib.metadata import version

from sacrebleu.metrics import TER
from torchmetrics.text import TranslationEditRate

print("torchmetrics", version("torchmetrics"), "sacrebleu", version("sacrebleu"))
references = ["we met at the old mill and at the new bridge", "the harbour was quiet"]
systems = {
    "one error": ["we met at the old mill and at the new bridge", "the harbour was loud"],
    "an empty line": ["we met at the old mill and at the new bridge", ""],
    "order 1": ["and the new bridge at we met at the old mill", "the harbour was quiet"],
    "order 2": ["we met at the new at the and bridge old mill", "the harbour was quiet"],
}
found = {}
for name, outputs in systems.items():
    theirs = 100 * TranslationEditRate()(outputs, [[each] for each in references]).item()
    found[name] = round(theirs, 1), round(TER().corpus_score(outputs, [references]).score, 1)
    print("%s: torchmetrics %.1f, sacreBLEU %.1f" % (name, *found[name]))
expected = {"one error": (6.7, 6.7), "an empty line": (0, 26.7), "order 1": (20, 13.3), "order 2": (13.3, 20)}
sys.exit(None if found == expected else "changed: torchmetrics has another TER")
PYTHON
