#!/usr/bin/env bash
# Expected: decode(encode(text)) returns text that is in NFKC already and has single spaces.
# Happens: nmt_nfkc, the normalisation of a model unless another is chosen, makes a space of the zero-width non-joiner: a Persian or
#   Telugu word becomes two, in training and in output. The zero-width joiner is kept since 2021. With nfkc the text comes back.
# Versions: sentencepiece 0.2.3. Date: 2026-11-29.
# Source: https://github.com/google/sentencepiece/issues/896 (non-joiner) and https://github.com/google/sentencepiece/pull/630 (joiner).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q sentencepiece==0.2.3

venv/bin/python - <<'PYTHON'
import sys
import unicodedata
from importlib.metadata import version

import sentencepiece

print("sentencepiece", version("sentencepiece"))
text = "\u0645\u06cc\u200c\u0631\u0648\u0645"  # Persian "I go", one word
assert unicodedata.normalize("NFKC", text) == text
found = {}
for rule in ("nmt_nfkc", "nfkc"):
    lines = [f"{text} {text} {rest}" for rest in ("\u0628\u0627\u0632\u0627\u0631", "\u0634\u0647\u0631", "\u0628\u0627\u063a")] * 20
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_prefix=rule, vocab_size=40, hard_vocab_limit=False,
        normalization_rule_name=rule, minloglevel=2,
    )
    model = sentencepiece.SentencePieceProcessor(model_file=f"{rule}.model")
    found[rule] = model.decode(model.encode(text))
    print(rule, ascii(text), "->", ascii(found[rule]))
if found != {"nmt_nfkc": text.replace("\u200c", " "), "nfkc": text}:
    sys.exit("changed: the non-joiner is normalised in another way")
PYTHON
