#!/usr/bin/env bash
# Expected: standardize_tag(code, macro=True) replaces each language of a macrolanguage by the macrolanguage, as ISO 639-3 lists it.
# Happens: it replaces one language of each: cmn becomes zh, but yue, wuu and nan stay; arb becomes ar, but arz and apc stay. prs
#   becomes fa-AF. Corpora whose names use these codes are not joined.
# Versions: langcodes 3.5.1. Date: 2026-11-29.
# Source: https://github.com/rspeer/langcodes/issues/67 and https://github.com/georgkrause/langcodes/issues/32.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q langcodes==3.5.1

venv/bin/python - <<'PYTHON'
import sys
from importlib.metadata import version

from langcodes import standardize_tag

print("langcodes", version("langcodes"))
codes = ("cmn", "yue", "wuu", "nan", "arb", "arz", "apc", "prs")
found = [standardize_tag(code, macro=True) for code in codes]
print(dict(zip(codes, found)))
if found != ["zh", "yue", "wuu", "nan", "ar", "arz", "apc", "fa-AF"]:
    sys.exit("changed: macro=True replaces other codes")
PYTHON
