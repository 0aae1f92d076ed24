#!/usr/bin/env bash
# Expected: if closest_match accepts language B for somebody who wants A, it accepts A for somebody who wants B; a function named
#   tag_distance is symmetric.
# Happens: it accepts Spanish for Catalan (distance 20), Malay for Indonesian (14) and German for Swiss German (8), and finds no match
#   in the other direction (80, 34, 84; the limit is 25). Which language of a corpus is passed first decides.
# Versions: langcodes 3.5.1. Date: 2026-11-29.
# Source: docstring of langcodes.tag_distance ("These distances can be asymmetrical"); the data are languageMatch with oneway="true" of
#   https://unicode.org/reports/tr35/#LanguageMatching.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q langcodes==3.5.1

venv/bin/python - <<'PYTHON'
import sys
from importlib.metadata import version

from langcodes import closest_match, tag_distance

print("langcodes", version("langcodes"))
changed = False
for wanted, offered in (("ca", "es"), ("id", "ms"), ("gsw", "de")):
    there, back = closest_match(wanted, [offered])[0], closest_match(offered, [wanted])[0]
    print(f"{wanted} -> {offered}: {there} ({tag_distance(wanted, offered)}); "
          f"{offered} -> {wanted}: {back} ({tag_distance(offered, wanted)})")
    changed |= (there, back) != (offered, "und")
if changed:
    sys.exit("changed: a match is symmetric")
PYTHON
