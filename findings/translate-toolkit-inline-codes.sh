#!/usr/bin/env bash
# Expected: one library gives the text of a unit with inline codes by one rule, whichever format it reads.
# Happens: in TMX and XLIFF the content of bpt and ept, which is code and not text, stands in `source` as if the author had written it:
#   "Press <b>OK</b>". An x element, a placeholder, leaves nothing, so that "at {time} today" becomes "at today". Training pairs taken
#   from such files have mark-up on one line and holes on the next.
# Versions: translate-toolkit 3.20.4. Date: 2026-11-29.
# Source: https://docs.oasis-open.org/xliff/v1.2/os/xliff-core.html#Struct_InLine (inline elements), and
#   https://github.com/translate/translate/issues/871 (inline elements in the toolkit).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q translate-toolkit==3.20.4

venv/bin/python - <<'PYTHON'
import sys
from importlib.metadata import version

from translate.storage import tmx, xliff

print("translate-toolkit", version("translate-toolkit"))
coded = '<bpt id="1" i="1">&lt;b&gt;</bpt>OK<ept id="1" i="1">&lt;/b&gt;</ept>'
memory = f"""<?xml version="1.0" encoding="UTF-8"?>
<tmx version="1.4"><header creationtool="hand" creationtoolversion="1" segtype="sentence" o-tmf="none" adminlang="en" srclang="en"
datatype="plaintext"/><body><tu><tuv xml:lang="en"><seg>Press {coded.replace('id="1" ', '')}</seg></tuv>
<tuv xml:lang="de"><seg>OK</seg></tuv></tu></body></tmx>"""
document = f"""<?xml version="1.0" encoding="UTF-8"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file original="hand" source-language="en" target-language="de"
datatype="plaintext"><body><trans-unit id="1"><source>Press {coded.replace(' i="1"', '')}</source></trans-unit>
<trans-unit id="2"><source>It opens at <x id="1"/> today</source></trans-unit></body></file></xliff>"""
found = [str(unit.source) for unit in tmx.tmxfile.parsestring(memory.encode()).units]
found += [str(unit.source) for unit in xliff.xlifffile.parsestring(document.encode()).units]
print(found)
if [" ".join(text.split()) for text in found] != ["Press <b>OK</b>", "Press <b>OK</b>", "It opens at today"]:
    sys.exit("changed: inline codes are read in another way")
PYTHON
