#!/usr/bin/env bash
# Expected: other quotation marks, the same on both sides, change neither chrF nor chrF++: as many characters and words are equal.
# Happens: chrF stays, chrF++ changes. For its word n-grams, "Haus" is three words and „Haus“ is one, because only the punctuation of
#   ASCII is taken off a word, as in the script of chrF++'s author. So chrF++ of text with typographic quotation marks or with
#   the full stops of Hindi or Chinese counts words with their punctuation.
# Versions: sacrebleu 2.6.0. Date: 2026-11-30.
# Source: https://github.com/mjpost/sacrebleu/issues/124 (the rule for the ends of words).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q sacrebleu==2.6.0

venv/bin/python - <<'PYTHON'
import sys

import sacrebleu
from sacrebleu.metrics import CHRF

print("sacrebleu", sacrebleu.__version__)
hypotheses = ["Sie nannte es „Haus“ und ging.", "Das Wort „Wagen“ steht im Brief."]
references = ["Sie sagte „Haus“ und ging.", "Das Wort „Auto“ steht im Brief."]


def plain(lines):
    return [line.replace("„", '"').replace("“", '"') for line in lines]


found = {}
for name, order in (("chrF", 0), ("chrF++", 2)):
    metric = CHRF(word_order=order)
    pairs = (hypotheses, references), (plain(hypotheses), plain(references))
    found[name] = [metric.corpus_score(hypothesis, [reference]).score for hypothesis, reference in pairs]
    print(name, "with „ “: %.2f, with ASCII: %.2f" % tuple(found[name]))
typographic, ascii_only = found["chrF++"]
same = found["chrF"][0] == found["chrF"][1] and ascii_only - typographic > 0.5
sys.exit(None if same else "changed: chrF++ does not depend on the kind of quotation marks")
PYTHON
