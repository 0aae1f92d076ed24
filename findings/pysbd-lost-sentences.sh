#!/usr/bin/env bash
# Expected: the sentences of pysbd 0.3.4 with clean=False contain the whole text; Segmenter.segment calls this result nondestructive.
# Happens: a sentence with a beamed note (U+266C), as subtitles have, is missing from the result without an error. pysbd uses this and
#   other characters (U+266D, U+2668, U+222F) as placeholders for punctuation marks, puts the marks back at the end and then does not
#   find the sentence in the text. The sentence with an eighth note (U+266A), which is no placeholder, stays.
# Versions: pysbd 0.3.4. Date: 2026-11-29.
# Source: https://github.com/nipunsadvilkar/pySBD/issues/126 (a text gives an empty list; it has U+261D, another placeholder).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q pysbd==0.3.4

venv/bin/python - <<'PYTHON'
import sys
from importlib.metadata import version

import pysbd

print("pysbd", version("pysbd"))
segmenter = pysbd.Segmenter(language="en", clean=False)
lost = {}
for mark in "\u266a\u266c\u266d\u2668\u222f":
    text = f"The lights go out. {mark} We walk along the river. The choir stops."
    parts = segmenter.segment(text)
    lost[mark] = "river" not in "".join(parts)
    print(f"U+{ord(mark):04X}", parts)
if list(lost.values()) != [False, True, True, True, True]:
    sys.exit("changed: pysbd keeps sentences with its placeholders, or loses others")
PYTHON
