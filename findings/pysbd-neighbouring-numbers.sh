#!/usr/bin/env bash
# Expected: pysbd 0.3.4 divides German text with dates the same way whatever the day of the month is.
# Happens: if of two numbers with a full stop the second is one more than the first (3. and 4.), pysbd takes them for a numbered list and cuts
#   before each, in the middle of the sentences. With 3. and 7. it cuts correctly. sentencex 1.0.32 cuts both texts correctly.
# Versions: pysbd 0.3.4, sentencex 1.0.32. Date: 2026-11-29.
# Source: pysbd/lists_item_replacer.py of https://github.com/nipunsadvilkar/pySBD (ListItemReplacer: neighbouring numbers become list
#   marks); another fault of the same step is https://github.com/nipunsadvilkar/pySBD/issues/121.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q pysbd==0.3.4 sentencex==1.0.32

venv/bin/python - <<'PYTHON'
import sys
from importlib.metadata import version

import pysbd
import sentencex

print("pysbd", version("pysbd"), "sentencex", version("sentencex"))
found = {}
for second in (4, 7):
    text = f"Die Messe beginnt am 3. Oktober in Bonn. Sie endet am {second}. Oktober um neun."
    found[second] = [part.strip() for part in pysbd.Segmenter(language="de", clean=False).segment(text)]
    other = [part.strip() for part in sentencex.segment("de", text)]
    print(f"3. and {second}.: pysbd {len(found[second])} {found[second]}; sentencex {len(other)}")
    if len(other) != 2:
        sys.exit(f"changed: sentencex gives {len(other)} sentences")
if found[4][:2] != ["Die Messe beginnt am", "3. Oktober in Bonn."] or len(found[4]) != 4 or len(found[7]) != 2:
    sys.exit("changed: pysbd no longer cuts before neighbouring numbers only")
PYTHON
