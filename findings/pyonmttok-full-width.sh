#!/usr/bin/env bash
# Expected: with joiners, OpenNMT's tokeniser is reversible: detokenised text equals the text, or at least its words and punctuation.
# Happens: the full-width ： ％ and ＃ of Chinese and Japanese, which the tokeniser uses to escape characters, become ASCII : % and #, in
#   every mode, also in one that does not tokenise. Other full-width punctuation stays, such as ， and ！. So a model never sees or writes
#   ：, the usual colon of Chinese. `no_substitution`, which is documented for joiners and spacers, keeps these three as they are.
# Versions: pyonmttok 1.38.1. Date: 2026-11-30.
# Source: OpenNMT/Tokenizer, docs/options.md ("Marking joint tokens", no_substitution), and
#   https://github.com/OpenNMT/Tokenizer/pull/11 (the option).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q pyonmttok==1.38.1

venv/bin/python - <<'PYTHON'
import sys
from importlib.metadata import version

import pyonmttok

print("pyonmttok", version("pyonmttok"))
lines = ["她问：几点了？", "折扣是３０％，真的！", "＃东京"]
expected = ["她问:几点了？", "折扣是３０%，真的！", "#东京"]
found = {}
for mode in ("conservative", "aggressive", "char", "space", "none"):
    for kept in (False, True):
        tokenise = pyonmttok.Tokenizer(mode, joiner_annotate=True, no_substitution=kept)
        found[mode, kept] = [tokenise.detokenize(tokenise(line)) for line in lines]
        print(f"{mode}, no_substitution={kept}:", *found[mode, kept])
if any(found[mode, kept] != (lines if kept else expected) for mode, kept in found):
    sys.exit("changed: full-width punctuation comes back in another form")
PYTHON
