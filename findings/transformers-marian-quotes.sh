#!/usr/bin/env bash
# Expected: MarianTokenizer cuts a sentence into the pieces of its SentencePiece model. Codes such as >>fra<<, which select the target
#   language of a multilingual model, are those of the vocabulary (supported_language_codes).
# Happens: whatever is between >> at the start of a sentence and the first << is taken for a code, with no look at the vocabulary. It
#   becomes one token, <unk>, and all that is quoted is lost without a warning. German and Danish books quote in this way (»Kom ind«), and
#   files without those characters have >>Kom ind<<. A space before >> or a code before the quotation avoids it. SentencePiece alone keeps
#   each word.
# Versions: transformers 5.24.0, sentencepiece 0.2.3. Date: 2026-11-30.
# Source: remove_language_code in src/transformers/models/marian/tokenization_marian.py of https://github.com/huggingface/transformers, and
#   https://github.com/huggingface/transformers/pull/8463 (a << later in the sentence, with the earlier rule).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q transformers==5.24.0 sentencepiece==0.2.3

venv/bin/python - <<'PYTHON'
import json
import sys
import warnings
from importlib.metadata import version

import sentencepiece
from transformers import MarianTokenizer

warnings.simplefilter("ignore")  # sacremoses is not used here
print("transformers", version("transformers"), "sentencepiece", version("sentencepiece"))
quoted = ">>Kom ind, det er koldt derude<<, sagde hun."
lines = [quoted, f"Hun sagde: {quoted}", f" {quoted}", f">>dan<< {quoted}"]
sentencepiece.SentencePieceTrainer.train(
    sentence_iterator=iter(lines * 10), model_prefix="pieces", vocab_size=50, hard_vocab_limit=False, minloglevel=2
)
model = sentencepiece.SentencePieceProcessor(model_file="pieces.model")
vocabulary = [model.id_to_piece(number) for number in range(model.get_piece_size())] + ["<pad>", ">>dan<<"]
with open("vocab.json", "w") as file:
    json.dump({piece: number for number, piece in enumerate(vocabulary)}, file)
tokenizer = MarianTokenizer("pieces.model", "pieces.model", "vocab.json")
print("codes:", tokenizer.supported_language_codes)
found = []
for line in lines:
    ids = tokenizer(line, add_special_tokens=False).input_ids
    found.append(tokenizer.decode(ids))
    print(f"{line!r}: {len(ids)} ids, {found[-1]!r}; SentencePiece {model.decode(model.encode(line))!r}")
if found != ["<unk> , sagde hun.", lines[1], quoted, lines[3]] or model.decode(model.encode(quoted)) != quoted:
    sys.exit("changed: a quotation at the start of a sentence is kept")
PYTHON
