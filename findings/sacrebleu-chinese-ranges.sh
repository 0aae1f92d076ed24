#!/usr/bin/env bash
# Expected: the tokeniser `zh` separates Chinese characters, and splits other text as 13a does.
# Happens: two ranges of its table are written with five digits after \u, which takes four, so that their ends are two characters
#   each. All characters from U+2001 to U+2A6D, such as dashes, quotes, the euro sign and arrows, count as Chinese and stand alone,
#   and the characters of Extension B, such as the first one of the surname 𠮷田, do not. BLEU of the same texts differs from that of
#   the meant ranges, under the same signature.
# Versions: sacrebleu 2.6.0. Date: 2026-11-29.
# Source: https://github.com/mjpost/sacrebleu/issues/298 (open) and _UCODE_RANGES in sacrebleu/tokenizers/tokenizer_zh.py.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q sacrebleu==2.6.0

PYTHONUTF8=1 venv/bin/python - <<'PYTHON'
import sys
from importlib.metadata import version

from sacrebleu.metrics import BLEU
from sacrebleu.tokenizers import tokenizer_13a, tokenizer_zh

print("sacrebleu", version("sacrebleu"))
split, plain = tokenizer_zh.TokenizerZh(), tokenizer_13a.Tokenizer13a()
found = {}
for text in ("吉田", "𠮷田", "𠮷𠮷", "Anna’s", "20€", "x→y"):
    found[text] = split(text)
    print(f"{text}: zh {found[text]!r}, 13a {plain(text)!r}")
same = [text for text in found if " " not in found[text]] == ["𠮷𠮷"] and found["Anna’s"] == "Anna ’ s"

outputs, references = ["船票20€，含Anna’s岛的晚餐"], [["船票25€，含Anna’s岛的早餐"]]
scores = []
meant = [(start, end) for start, end in tokenizer_zh._UCODE_RANGES if len(start) == 1]
meant += [("\U00020000", "\U0002a6d6"), ("\U0002f800", "\U0002fa1d")]
for ranges in (tokenizer_zh._UCODE_RANGES, meant):
    tokenizer_zh._UCODE_RANGES = ranges
    tokenizer_zh.TokenizerZh._is_chinese_char.cache_clear()
    tokenizer_zh.TokenizerZh.__call__.cache_clear()
    metric = BLEU(tokenize="zh")
    scores.append(round(metric.corpus_score(outputs, references).score, 2))
    print(f"BLEU {scores[-1]}, {metric.get_signature()}")
if not same or scores[0] == scores[1]:
    sys.exit("changed: the tokeniser zh takes other characters for Chinese ones")
PYTHON
