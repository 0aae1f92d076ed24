#!/usr/bin/env bash
# Expected: a document that begins with %YAML 1.1, or is written with version (1, 1), follows YAML 1.1, where no is false, as the
#   documentation of ruamel.yaml says. The C libraries of ruamel.yaml.clib are faster, it says, and sometimes more like YAML 1.1.
# Happens: with ruamel.yaml.clib, YAML(typ="safe") is less like it: it reads such a document by the rules of 1.2, so no is a string and 010
#   is 10. It writes the string "no", the code of Norwegian, without quotation marks under %YAML 1.1; other readers, and itself without
#   clib, read false. So one file has other values on two machines with one version of ruamel.yaml.
# Versions: ruamel.yaml 0.19.1, ruamel.yaml.clib 0.2.15, PyYAML 6.0.3. Date: 2026-11-30.
# Source: https://yaml.dev/doc/ruamel.yaml/pyyaml ("Defaulting to YAML 1.2 support"), https://yaml.dev/doc/ruamel.yaml/basicuse (C libraries)
#   and https://github.com/python-jsonschema/check-jsonschema/issues/574.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q ruamel.yaml==0.19.1 PyYAML==6.0.3

cat > values.py <<'PYTHON'
import io
from importlib.metadata import version
from importlib.util import find_spec

import yaml
from ruamel.yaml import YAML

with_clib = find_spec("_ruamel_yaml") is not None
print("ruamel.yaml", version("ruamel.yaml"), f"clib {version('ruamel.yaml.clib')}:" if with_clib else "without clib:")
read = YAML(typ="safe").load("%YAML 1.1\n---\nlanguage: no\nseed: 010\n")
writer, written = YAML(typ="safe"), io.StringIO()
writer.version = (1, 1)
writer.dump({"language": "no"}, written)
print("  read:", read)
print("  written:", repr(written.getvalue()), "PyYAML reads:", yaml.safe_load(written.getvalue()))
PYTHON
venv/bin/python values.py | tee without
venv/bin/pip install -q ruamel.yaml.clib==0.2.15
venv/bin/python values.py | tee with
if ! cmp -s - without <<'TEXT'
ruamel.yaml 0.19.1 without clib:
  read: {'language': False, 'seed': 8}
  written: "%YAML 1.1\n--- {language: 'no'}\n" PyYAML reads: {'language': 'no'}
TEXT
then
    echo "changed: without clib, a document of YAML 1.1 is read or written in another way" >&2
    exit 1
fi
if ! cmp -s - with <<'TEXT'
ruamel.yaml 0.19.1 clib 0.2.15:
  read: {'language': 'no', 'seed': 10}
  written: '%YAML 1.1\n--- {language: no}\n' PyYAML reads: {'language': False}
TEXT
then
    echo "changed: with clib, a document of YAML 1.1 is read or written in another way" >&2
    exit 1
fi
