#!/usr/bin/env bash
# Expected: with `normalized` and `asian_support`, the tokeniser of TER cuts Japanese text as Tercom's does, which it implements anew:
#   each kanji is a word, and so is each run of hiragana or of katakana.
# Happens: a katakana word and the particle after it are one word, コーヒーを, where Tercom has コーヒー and を. The negated blocks
#   of Tercom's patterns, \P{InHiragana}, became ^[\u3040-\u309f], which is an anchor and not a negation, so that these patterns only
#   match whole lines. There are fewer words, a wrong particle makes the whole word wrong, and TER is higher. With `asian_support`
#   alone nothing is cut, although the signature says asian:yes.
# Versions: sacrebleu 2.6.0. Date: 2026-11-30.
# Source: https://github.com/jhclark/tercom, src/ter/core/Normalizer.java, lines 45 to 49, of which the words under "Tercom" are the
#   output, and https://github.com/mjpost/sacrebleu/issues/229 (`asian_support` alone).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q sacrebleu==2.6.0

venv/bin/python - <<'PYTHON'
import sys
from importlib.metadata import version

from sacrebleu.metrics import TER
from sacrebleu.tokenizers.tokenizer_ter import TercomTokenizer

print("sacrebleu", version("sacrebleu"))
tokenise = TercomTokenizer(normalized=True, asian_support=True)
tercom = {  # text: the words of Tercom
    "コーヒーを飲む": "コーヒー を 飲 む",
    "東京タワーへ行きました": "東 京 タワー へ 行 きました",
    "これはペンです": "これは ペン です",
}
same = 0
for text, words in tercom.items():
    print(f"{text}: {tokenise(text)}; Tercom: {words}")
    same += tokenise(text) == words
output, reference = "コーヒーが飲む", "コーヒーを飲む"
both, alone = (TER(normalized=normalized, asian_support=True) for normalized in (True, False))
high, low = both.corpus_score([output], [[reference]]).score, 100 / len(tercom[reference].split())
print(f"TER of one wrong particle: {high:.1f}; of Tercom's words: {low:.1f}")
whole = alone.corpus_score([output], [[reference]]).score
print(f"TER with asian_support alone: {whole:.1f}, {alone.get_signature()}")
if same or round(high, 1) != 33.3 or whole != 100:
    sys.exit("changed: TER cuts Japanese text in another way")
PYTHON
