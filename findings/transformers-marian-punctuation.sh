#!/usr/bin/env bash
# Expected: MarianTokenizer asks for sacremoses ("Recommended: pip install sacremoses.") because it normalises punctuation with it, as the
#   training of Marian's models did. With it, “ and " give the same ids.
# Happens: calling the tokenizer never normalises. The ids are the same with and without sacremoses, and “ and " differ in both cases.
#   Only tokenizer.normalize(text), which nothing calls, uses the package. To translate as a model was trained, call it first.
# Versions: transformers 5.24.0, sacremoses 0.2.0, sentencepiece 0.2.3. Date: 2026-11-30.
# Source: https://github.com/huggingface/transformers/pull/5092 (sacremoses came with this change).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q transformers==5.24.0 sentencepiece==0.2.3

cat > ids.py <<'PYTHON'
import json
import sys
import warnings
from importlib.metadata import version
from importlib.util import find_spec

import sentencepiece
from transformers import MarianTokenizer

warnings.simplefilter("ignore")
lines = ["“Good morning”, she said.", '"Good evening", he said.', "They said good night.", "A good day, said all."] * 20
sentencepiece.SentencePieceTrainer.train(
    sentence_iterator=iter(lines), model_prefix="pieces", vocab_size=40, hard_vocab_limit=False, minloglevel=2
)
model = sentencepiece.SentencePieceProcessor(model_file="pieces.model")
pieces = {model.id_to_piece(number): number for number in range(model.get_piece_size())}
with open("vocab.json", "w") as file:
    json.dump(pieces | {"<pad>": len(pieces)}, file)
tokenizer = MarianTokenizer("pieces.model", "pieces.model", "vocab.json", source_lang="en", target_lang="de")
curly, straight = "“Good evening”, she said.", '"Good evening", she said.'
has = find_spec("sacremoses") is not None
print("transformers", version("transformers"), "with sacremoses" if has else "without sacremoses", file=sys.stderr)
print("normalize:", tokenizer.normalize(curly), file=sys.stderr)
print(tokenizer(curly).input_ids, tokenizer(straight).input_ids, tokenizer(curly).input_ids == tokenizer(straight).input_ids)
PYTHON
without=$(venv/bin/python ids.py)
venv/bin/pip install -q sacremoses==0.2.0
with=$(venv/bin/python ids.py)
echo "$without"
echo "$with"
[[ $with == "$without" && $with == *False ]] || { echo "changed: the tokenizer normalises punctuation" >&2; exit 1; }
