#!/usr/bin/env bash
# Expected: Python reads a valid .xz file to its end, or raises an error, as `xz` does.
# Happens: the .xz format allows zeros between streams (stream padding, in multiples of four). lzma.open and lzma.decompress end there
#   without an error, and the rest of the text is missing. gzip.open reads on over such zeros; python-xz reads the whole .xz file.
# Versions: Python 3.11.7 and python-xz 0.5.0. Date: 2026-11-29.
# Source: https://github.com/python/cpython/issues/88300 (open) and section 2.2 of https://tukaani.org/xz/xz-file-format.txt
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q python-xz==0.5.0

venv/bin/python - <<'PYTHON'
import gzip
import lzma
import platform
import sys
from importlib.metadata import version

import xz

print("Python", platform.python_version(), "python-xz", version("python-xz"))
lines = [b"The harbour is old.\n", b"Two ships arrived.\n", b"The captain slept.\n"]
with open("text.xz", "wb") as file:
    file.write(bytes(4).join(map(lzma.compress, lines)))
with open("text.gz", "wb") as file:
    file.write(bytes(4).join(map(gzip.compress, lines)))
found = {}
for name, read in {
    "lzma.open": lambda: lzma.open("text.xz").read(),
    "lzma.decompress": lambda: lzma.decompress(open("text.xz", "rb").read()),
    "xz.open": lambda: xz.open("text.xz").read(),
    "gzip.open": lambda: gzip.open("text.gz").read(),
}.items():
    found[name] = read().count(b"\n")
    print(f"{name}: {found[name]} of {len(lines)} lines")
if found != {"lzma.open": 1, "lzma.decompress": 1, "xz.open": 3, "gzip.open": 3}:
    sys.exit("changed: zeros between streams are read in another way")
PYTHON
