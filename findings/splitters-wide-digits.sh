#!/usr/bin/env bash
# Expected: splitters that know Japanese and Dutch keep a number in wide digits whole, cut after every ideographic full stop, and
#   leave an apostrophe with its word.
# Happens: sentencex and pysbd cut ３．１４, as Japanese papers write 3.14, into two sentences. sentencex does not cut between 。 and a
#   digit, so that sentences which begin with a year stay joined, and pysbd does. In Dutch, sentencex leaves the apostrophe of 's in
#   the sentence before; the parts, joined, are still the text. uniseg, which applies the rules of Unicode (UAX 29), finds the expected
#   sentences of Japanese and Chinese.
# Versions: sentencex 1.0.32, pysbd 0.3.4, uniseg 0.10.1. Date: 2026-11-29.
# Source: https://github.com/wikimedia/sentencex, https://github.com/nipunsadvilkar/pySBD and https://unicode.org/reports/tr29/
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q sentencex==1.0.32 pysbd==0.3.4 uniseg==0.10.1

PYTHONUTF8=1 venv/bin/python - <<'PYTHON'
import sys
from importlib.metadata import version

import pysbd
import sentencex
from uniseg.sentencebreak import sentences as by_unicode

print("sentencex", version("sentencex"), "pysbd", version("pysbd"), "uniseg", version("uniseg"))
CASES = {  # a language, its sentences, and how many sentencex and pysbd find
    ("ja", "長さは３．１４である．", "幅も測った．"): (3, 3),
    ("ja", "港は1998年にできた。", "2004年に船が来た。"): (1, 2),
    ("zh", "港口建于1998年。", "2004年来了一艘船。"): (1, 2),
}
same = True
for (language, *sentences), expected in CASES.items():
    text = "".join(sentences)
    found = list(sentencex.segment(language, text)), pysbd.Segmenter(language=language, clean=False).segment(text)
    print(f"{language}: sentencex {found[0]}, pysbd {found[1]}")
    same &= list(by_unicode(text)) == sentences
    same &= tuple(map(len, found)) == expected and all("".join(parts) == text for parts in found)
dutch = list(sentencex.segment("nl", "De kapitein sliep. 's Ochtends voer hij uit."))
print("nl: sentencex", dutch)
if not same or not dutch[0].endswith("'"):
    sys.exit("changed: the sentences of a splitter are others")
PYTHON
