#!/usr/bin/env bash
# Expected: the normalizer Precompiled of tokenizers, which is there for models of SentencePiece and takes their rules, changes a text as
#   SentencePiece does.
# Happens: it applies the first rule that fits, which is the shortest, to a letter with its marks, and drops the rest. Vietnamese whose
#   marks are characters of their own (NFD) loses tones: hội becomes họi and rất becomes rât. Yoruba and Pinyin lose them, too. Letters
#   with one mark, as in French, come out right, so a test with é shows nothing. In NFC, these texts come out right. T5Tokenizer of
#   transformers 5.24.0 has this normalizer.
# Versions: tokenizers 0.23.3, sentencepiece 0.2.3 with its usual rules, nmt_nfkc. Date: 2026-11-30.
# Source: https://github.com/huggingface/tokenizers/issues/2116 and https://github.com/huggingface/tokenizers/issues/2334, where Vietnamese
#   came out right with fewer rules; https://huggingface.co/docs/tokenizers/api/normalizers (Precompiled).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q tokenizers==0.23.3 sentencepiece==0.2.3 protobuf==7.36.2

venv/bin/python - <<'PYTHON'
import io
import sys
import unicodedata
from importlib.metadata import version

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers.normalizers import Precompiled

print(*(f"{name} {version(name)}" for name in ("tokenizers", "sentencepiece")))
written = io.BytesIO()
lines = ["the tailor mends a jacket"] * 20
sentencepiece.SentencePieceTrainer.train(
    sentence_iterator=iter(lines), model_writer=written, vocab_size=20, hard_vocab_limit=False, minloglevel=2
)
model = sentencepiece.SentencePieceProcessor(model_proto=written.getvalue())
settings = sentencepiece_model_pb2.ModelProto.FromString(written.getvalue()).normalizer_spec
assert settings.name == "nmt_nfkc"
normalizer = Precompiled(settings.precompiled_charsmap)
found = {}
for text in ("Câu lạc bộ mở lớp rất sớm", "hội nghị", "ọ̀rẹ́", "lǜ chá", "élève"):
    nfd, nfc = unicodedata.normalize("NFD", text), unicodedata.normalize("NFC", text)
    theirs = model.normalize(nfd).replace("▁", " ").strip()
    assert theirs == nfc == normalizer.normalize_str(nfc)
    found[text] = unicodedata.normalize("NFC", normalizer.normalize_str(nfd))
    print(f"SentencePiece: {theirs}, tokenizers: {found[text]}, equal: {found[text] == nfc}")
if list(found.values()) != ["Câu lạc bọ mơ lơp rât sơm", "họi nghị", "ọrẹ", "lü chá", "élève"]:
    sys.exit("changed: tokenizers normalises NFD in another way")
PYTHON
