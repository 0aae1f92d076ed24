#!/usr/bin/env bash
# Expected: two packages of the index that are installed together without a warning can both be used.
# Happens: iso639-lang and python-iso639 both install the module iso639, with different functions. The later one replaces files of the
#   earlier one, `pip check` finds nothing, and removing the later one leaves the earlier one listed but empty.
# Versions: iso639-lang 2.6.3, python-iso639 2026.7.23. Date: 2026-11-29.
# Source: the readmes of https://github.com/LBeaudoux/iso639 (iso639-lang) and https://github.com/jacksonllee/iso639 (python-iso639):
#   both import iso639.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q iso639-lang==2.6.3

look() {
    venv/bin/python -c 'import iso639; print(*(name for name in ("Lang", "Language") if hasattr(iso639, name)))'
}
first=$(look)
venv/bin/pip install -q python-iso639==2026.7.23
both=$(look)
venv/bin/pip list 2>/dev/null | grep iso639
venv/bin/pip check
venv/bin/pip uninstall -q -y python-iso639
last=$(look)
echo "iso639-lang: '$first'; with python-iso639: '$both'; after its removal: '$last'"
venv/bin/pip list 2>/dev/null | grep iso639
if [ "$first/$both/$last" != "Lang/Language/" ]; then
    echo "changed: the two packages no longer overwrite each other" >&2
    exit 1
fi
