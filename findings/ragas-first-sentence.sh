#!/usr/bin/env bash
# Expected: ragas' BleuScore compares the whole response with the whole reference, by sacreBLEU.
# Happens: it cuts both at ". " and passes each sentence of the reference as one more reference of a corpus of one segment. sacreBLEU then
#   scores the first sentence of the response and leaves out the others, without an error, as its loop ends with the shorter list. Any
#   sentence of the reference may match. So a translation whose first sentence is right has BLEU 1, whatever follows, and so has one that
#   leaves out the first sentence. ChrfScore of the same package takes the whole.
# Versions: ragas 0.4.3, sacrebleu 2.6.0. Date: 2026-11-30. A newer langchain-community than 0.3.31 cannot be imported by ragas.
# Source: https://github.com/vibrantlabsai/ragas/issues/2888.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q ragas==0.4.3 sacrebleu==2.6.0 langchain-community==0.3.31
export RAGAS_DO_NOT_TRACK=true

cat > scores.py <<'PYTHON'
import asyncio
import sys
from importlib.metadata import version

from ragas.metrics.collections import BleuScore
from sacrebleu.metrics import BLEU

print("ragas", version("ragas"), "sacrebleu", version("sacrebleu"))
reference = "The mill burned down in March. The owner rebuilt it within a year."
responses = {
    "the same": reference,
    "another second sentence": "The mill burned down in March. Nobody knows what became of him.",
    "the second sentence first": "The owner rebuilt it within a year. Nobody knows what became of him.",
    "both in one": "The mill burned down in March, and the owner rebuilt it within a year.",
}
found = {}
for name, response in responses.items():
    theirs = asyncio.run(BleuScore().ascore(reference=reference, response=response)).value
    found[name] = round(theirs, 2), round(BLEU(effective_order=True).sentence_score(response, [reference]).score / 100, 2)
    print("%s: ragas %.2f, sacreBLEU %.2f" % (name, *found[name]))
full = [name for name, (theirs, _) in found.items() if theirs == 1]
if full != list(responses)[:3] or max(found[name][1] for name in full[1:]) > 0.6:
    sys.exit("changed: ragas scores more than the first sentence")
PYTHON
venv/bin/python -W ignore scores.py
