#!/usr/bin/env bash
# Expected: MosesDetokenizer undoes MosesTokenizer for a sentence with ordinary punctuation in a language that both are told.
# Happens: marks that the tokenizer separates are not put back: the Arabic question mark, the danda, the full-width exclamation mark.
#   Finnish and Swedish case endings after a colon (EU:n) and the Catalan l'home stay broken, too. French, with guillemets, comes back.
#   A translation that is detokenised this way loses BLEU against its untouched reference.
# Versions: sacremoses 0.2.0. Date: 2026-11-29.
# Source: sacremoses/tokenize.py of https://github.com/hplt-project/sacremoses, MosesDetokenizer.tokenize (which punctuation is attached to
#   the left or right); for CJK: https://github.com/hplt-project/sacremoses/issues/71.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q sacremoses==0.2.0

venv/bin/python - <<'PYTHON'
import sys
from importlib.metadata import version

from sacremoses import MosesDetokenizer, MosesTokenizer

print("sacremoses", version("sacremoses"))
lines = {
    "ar": "هل وصل القطار؟ نعم.",
    "hi": "गाड़ी आ गई।",
    "zh": "火车来了！",
    "fi": "EU:n juna saapui.",
    "sv": "EU:s tåg kom.",
    "ca": "El tren de l'home ha arribat.",
    "fr": "Il dit : « Le train de l'après-midi arrive ! »",
}
restored = []
for language, line in lines.items():
    tokens = MosesTokenizer(lang=language).tokenize(line)
    back = MosesDetokenizer(lang=language).detokenize(tokens)
    restored += [language] if back == line else []
    print(language, line, "->", back)
if restored != ["fr"]:
    sys.exit(f"changed: restored are {restored}, and were ['fr']")
PYTHON
