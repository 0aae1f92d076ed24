#!/usr/bin/env bash
# Expected: Moses' normalize-punctuation keeps what a number means. A no-break space separates thousands in German, French, Czech, Russian
#   and others: 10 000.
# Happens: it becomes a comma in German, Spanish, French and Czech, where 10,000 is ten, and a full stop in all other languages: 10.000 is
#   ten in English. So one number gets two forms in an English and a German line, and of a year and the number after it one number is
#   made: "in 2019,12 Schiffe". A narrow no-break space (U+202F) and a plain space stay. sacremoses does the same.
# Versions: mosestokenizer 1.2.1 (which has the Perl script), sacremoses 0.2.0, perl 5. Date: 2026-11-30.
# Source: moses-smt/mosesdecoder, scripts/tokenizer/normalize-punctuation.perl (its last rules), and
#   https://github.com/hplt-project/sacremoses/pull/56 (no-break spaces as in the script).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q mosestokenizer==1.2.1 sacremoses==0.2.0

venv/bin/python - <<'PYTHON'
import subprocess
import sys
from importlib.metadata import files, version

from sacremoses import MosesPunctNormalizer

print("mosestokenizer", version("mosestokenizer"), "sacremoses", version("sacremoses"))
script = next(file.locate() for file in files("mosestokenizer") if file.name == "normalize-punctuation.perl")
lines = ["10\u00a0000 Euro", "3\u00a0500\u00a0000 Euro", "in 2019\u00a012 Schiffe", "10\u202f000 Euro", "10 000 Euro"]
found = {}
for language in ("de", "es", "fr", "cs", "en", "ru", "sv"):
    made = subprocess.run(["perl", script, "-b", "-l", language], input="\n".join(lines), capture_output=True, text=True, check=True)
    found[language] = made.stdout.splitlines()
    normalise = MosesPunctNormalizer(language).normalize
    same = [normalise(line) for line in lines] == found[language]
    print(f"{language}: {found[language][:3]}, sacremoses {'the same' if same else 'differs'}")
    mark = "," if language in ("de", "es", "fr", "cs") else "."
    expected = [line.replace("\u00a0", mark) for line in lines]
    if not same or found[language] != expected:
        sys.exit("changed: a no-break space between digits becomes something else")
PYTHON
