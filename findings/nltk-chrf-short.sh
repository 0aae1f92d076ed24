#!/usr/bin/env bash
# Expected: a translation that equals its reference has chrF 100.
# Happens: NLTK gives "No." 50 and "Yes." 67, and chrF++.py, by the author of the metric, does so too: n-grams that are longer than the
#   sentence have a score of 0 and count in the mean over the orders 1 to 6. sacrebleu and fastchrf leave these orders out, and give
#   100; sacrebleu's `eps_smoothing` counts them. A corpus of perfect translations is below 100 for NLTK only, which takes the mean of
#   the sentences; sacrebleu adds up n-grams.
# Versions: nltk 3.10.4, sacrebleu 2.6.0, fastchrf 0.2.1. Date: 2026-11-30.
# Source: https://github.com/mjpost/sacrebleu/issues/121 (effective order or smoothing) and https://github.com/m-popovic/chrF;
#   the paper of chrF, https://doi.org/10.18653/v1/W15-3049, does not say which orders count in short sentences.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q nltk==3.10.4 sacrebleu==2.6.0 fastchrf==0.2.1

venv/bin/python - <<'PYTHON'
import sys
from importlib.metadata import version

from fastchrf import pairwise_chrf
from nltk.translate.chrf_score import corpus_chrf, sentence_chrf
from sacrebleu.metrics import CHRF

print(*(f"{name} {version(name)}" for name in ("nltk", "sacrebleu", "fastchrf")))
sentences = ["No.", "Yes.", "The ferry leaves in the evening."]
found = []
for text in sentences:
    scores = {
        "NLTK": 100 * sentence_chrf(text, text, beta=2),
        "sacrebleu": CHRF().sentence_score(text, [text]).score,
        "fastchrf": pairwise_chrf([[text]], [[text]])[0][0][0],
        "sacrebleu with eps_smoothing": CHRF(eps_smoothing=True).sentence_score(text, [text]).score,
    }
    found.append([round(score, 1) for score in scores.values()])
    print(f"{text} against itself:", ", ".join(f"{name} {score:.1f}" for name, score in scores.items()))
ours = 100 * corpus_chrf(sentences, sentences, beta=2)
theirs = CHRF().corpus_score(sentences, [sentences]).score
print(f"all three against themselves: NLTK {ours:.1f}, sacrebleu {theirs:.1f}")
if found != [[50, 100, 100, 50], [66.7, 100, 100, 66.7], [100, 100, 100, 100]] or (round(ours, 1), round(theirs)) != (72.2, 100):
    sys.exit("changed: short sentences that equal their references get other scores")
PYTHON
