#!/usr/bin/env bash
# Expected: the text preparation of IndicTrans2 keeps the letters and numbers of a Hindi sentence, and at most changes their form.
# Happens: in IndicTransToolkit, a capital letter or digit before a colon is lost, and the two characters \1 stand in its place: "WHO:"
#   is "WH\1ः", and the hour of 8:30, the 3 of 3:4 and the number of "step 1:" are gone, before the model sees the text. Numbers of four
#   digits, as in 10:30, are set aside before. It is so for nine scripts of India. The rule came from indic-nlp-library, which makes a
#   visarga, a sign that is read as h, of the colon after a Hindi letter or digit ("he said:", 3:4). In the fork that the toolkit installs,
#   the backslashes of this rule are doubled: it finds other characters, and writes \1 for what it found.
# Versions: IndicTransToolkit 1.1.1, indic-nlp-library-itt 0.1.1, indic-nlp-library 0.92, transformers 4.57.6. Date: 2026-11-30.
# Source: visarga_pattern in indicnlp/normalize/indic_normalize.py of https://github.com/VarunGumma/indic_nlp_library, and
#   https://github.com/anoopkunchukuttan/indic_nlp_library/issues/73 (the rule of the original).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv original
original/bin/pip install -q indic-nlp-library==0.92
python3 -m venv toolkit
toolkit/bin/pip install -q IndicTransToolkit==1.1.1 indic-nlp-library-itt==0.1.1 transformers==4.57.6 sacremoses==0.2.0

cat > lines.py <<'PYTHON'
lines = ["WHO: सब ठीक है।", "चरण 1: पानी डालें।", "बस 8:30 पर आई।", "अनुपात ३:४ है।", "उसने कहा: ठीक है।"]
PYTHON
cat > original.py <<'PYTHON'
import sys
from importlib.metadata import version

from indicnlp.normalize.indic_normalize import IndicNormalizerFactory
from lines import lines

print("indic-nlp-library", version("indic-nlp-library"))
found = [IndicNormalizerFactory().get_normalizer("hi").normalize(line) for line in lines]
print(*(f"{line} -> {text}" for line, text in zip(lines, found)), sep="\n")
sys.exit(found != [*lines[:3], "अनुपात ३ः४ है।", "उसने कहाः ठीक है।"])
PYTHON
cat > toolkit.py <<'PYTHON'
import sys
from importlib.metadata import version

from IndicTransToolkit.processor import IndicProcessor
from lines import lines

print(*(f"{name} {version(name)}" for name in ("IndicTransToolkit", "indic-nlp-library-itt")))
prepared = IndicProcessor(inference=True).preprocess_batch(lines, src_lang="hin_Deva", tgt_lang="eng_Latn")
found = [text.removeprefix("hin_Deva eng_Latn ") for text in prepared]
print(*(f"{line} -> {text}" for line, text in zip(lines, found)), sep="\n")
lost = [r"WH\1ः सब ठीक है ।", r"चरण \1ः पानी डालें ।", r"बस \1ः30 पर आई ।", r"अनुपात \1ः4 है ।", "उसने कहा : ठीक है ।"]
sys.exit(found != lost)
PYTHON
original/bin/python original.py || { echo "changed: the original treats colons in another way" >&2; exit 1; }
toolkit/bin/python toolkit.py 2> log || { tail -3 log; echo "changed: the toolkit keeps what is before a colon" >&2; exit 1; }
