#!/usr/bin/env bash
# Expected: cutting text into pieces and joining them gives text that says the same.
# Happens: with the default normalisation, nmt_nfkc, numbers change: 10² m becomes 102 m, 2½ hours 21⁄2 hours (the half is now 1, U+2044
#   and 2, joined to the 2 before it), and the marks ①② the number 12. A translator trained on such text learns them so. The rule
#   `identity` keeps all three. NFKC replaces a character by others that look like it in smaller or raised print.
# Versions: sentencepiece 0.2.3. Date: 2026-11-30.
# Source: https://github.com/google/sentencepiece/blob/master/doc/normalization.md (nmt_nfkc is the default) and
#   https://unicode.org/reports/tr15/ (compatibility equivalence).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q sentencepiece==0.2.3

venv/bin/python - <<'PYTHON'
import io
import sys
from importlib.metadata import version

import sentencepiece

print("sentencepiece", version("sentencepiece"))
lines = ["The field has 10² m.", "The walk took 2½ hours.", "See the points ①② above."]
found = {}
for rule in ("nmt_nfkc", "identity"):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines * 20),
        model_writer=model,
        vocab_size=60,
        hard_vocab_limit=False,
        normalization_rule_name=rule,
        minloglevel=2,
    )
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    found[rule] = [pieces.decode(pieces.encode(line)) for line in lines]
    print(rule, *found[rule], sep="\n  ")
changed = ["The field has 102 m.", "The walk took 21⁄2 hours.", "See the points 12 above."]
sys.exit(None if found == {"nmt_nfkc": changed, "identity": lines} else "changed: the normalisation treats the numbers in another way")
PYTHON
