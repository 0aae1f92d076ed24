#!/usr/bin/env bash
# Expected: a code of three letters names the same language as the code of two letters: both libraries read deu as de, without a country.
# Happens: Babel reads de as de, but deu as de_DE, arb as ar_EG and the old code iw as he_IL: it adds the most likely country, which a
#   corpus of Austrian or Moroccan text then has in its name. langcodes adds none; for cmn it keeps the code, where Babel says
#   zh_Hans_CN. sh, which langcodes reads as sr-Latn, is an unknown locale for Babel.
# Versions: Babel 2.18.0, langcodes 3.5.1. Date: 2026-11-29.
# Source: https://babel.pocoo.org/en/latest/locale.html ("Likely Subtags").
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q Babel==2.18.0 langcodes==3.5.1

venv/bin/python - <<'PYTHON'
import sys
from importlib.metadata import version

from babel import Locale, UnknownLocaleError
from langcodes import standardize_tag

print("Babel", version("Babel"), "langcodes", version("langcodes"))


def babel(code):
    try:
        return str(Locale.parse(code))
    except UnknownLocaleError:
        return "unknown"


codes = ("de", "deu", "ger", "arb", "iw", "cmn", "sh")
found = {code: (babel(code), standardize_tag(code)) for code in codes}
for code, (left, right) in found.items():
    print(f"{code:4} Babel {left:11} langcodes {right}")
expected = {
    "de": ("de", "de"),
    "deu": ("de_DE", "de"),
    "ger": ("de_DE", "de"),
    "arb": ("ar_EG", "arb"),
    "iw": ("he_IL", "he"),
    "cmn": ("zh_Hans_CN", "cmn"),
    "sh": ("unknown", "sr-Latn"),
}
if found != expected:
    sys.exit("changed: Babel or langcodes reads a code in another way")
PYTHON
