#!/usr/bin/env bash
# Expected: a PO file that goes to XLIFF by po2xliff and back by xliff2po has the same messages.
# Happens: the message context is lost on the way. Two messages with the same source text and different contexts (to record, a record)
#   come back as one: the second translation is gone, with a warning about a duplicate and exit code 0.
# Versions: translate-toolkit 3.20.4. Date: 2026-11-29.
# Source: https://github.com/translate/translate/issues/268 (po2xliff should handle msgctxt).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q translate-toolkit==3.20.4

cat > before.po <<'PO'
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"
"Language: de\n"

msgctxt "verb"
msgid "Record"
msgstr "Aufnehmen"

msgctxt "noun"
msgid "Record"
msgstr "Rekord"
PO
venv/bin/po2xliff --version
venv/bin/po2xliff --progress=none before.po middle.xlf
venv/bin/xliff2po --progress=none middle.xlf after.po
count() { grep -c "$1" "$2" || true; }
echo "Aufnehmen, Rekord, verb: before $(count Aufnehmen before.po) $(count Rekord before.po) $(count '"verb"' before.po)," \
    "in XLIFF $(count Aufnehmen middle.xlf) $(count Rekord middle.xlf) $(count verb middle.xlf)," \
    "after $(count Aufnehmen after.po) $(count Rekord after.po) $(count '"verb"' after.po)"
if [ "$(count Rekord middle.xlf) $(count verb middle.xlf) $(count Aufnehmen after.po) $(count Rekord after.po)" != "1 0 1 0" ]; then
    echo "changed: contexts survive, or other messages are lost" >&2
    exit 1
fi
