#!/usr/bin/env bash
# Expected: two scores with equal signatures were computed in the same way, since a signature is there to say how.
# Happens: the signature of BLEU does not have max_ngram_order. BLEU up to bigrams and up to 4-grams have one signature and other scores.
#   The signature of chrF has both of its orders.
# Versions: sacrebleu 2.6.0. Date: 2026-11-30.
# Source: https://github.com/mjpost/sacrebleu/issues/251.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q sacrebleu==2.6.0

venv/bin/python - <<'PYTHON'
import sys

import sacrebleu
from sacrebleu.metrics import BLEU, CHRF

print("sacrebleu", sacrebleu.__version__)
hypotheses, references = ["The bridge over the river was opened in May."], [["The bridge over this river was opened last May."]]
bleu, chrf = {}, {}
for order in (2, 4):
    metric = BLEU(max_ngram_order=order)
    bleu[order] = metric.corpus_score(hypotheses, references).score, str(metric.get_signature())
    print("BLEU", order, *bleu[order])
for order in (4, 6):
    metric = CHRF(char_order=order)
    chrf[order] = metric.corpus_score(hypotheses, references).score, str(metric.get_signature())
    print("chrF", order, *chrf[order])
same = bleu[2][1] == bleu[4][1] and chrf[4][1] != chrf[6][1]
sys.exit(None if same and bleu[2][0] - bleu[4][0] > 10 else "changed: the signature of BLEU has the order")
PYTHON
