#!/usr/bin/env bash
# Expected: DVC sees an edit of a parameter that changes what a program reads.
# Happens: 1, 1.0 and true are one value to it, as 0 and false are: it compares them as Python does. After an edit from 1 to true, which a
#   program may read as "on" instead of "once", `dvc status` reports nothing and `dvc repro` runs nothing. 2 is seen.
# Versions: DVC 3.67.1. Date: 2026-11-29.
# Source: https://dvc.org/doc/command-reference/params (parameters as dependencies of stages), which states no such exception.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q dvc==3.67.1

export PATH="$folder/venv/bin:$PATH" DVC_NO_ANALYTICS=1
mkdir project && cd project
git init -q && dvc init -q
cat > dvc.yaml <<'YAML'
stages:
  write:
    cmd: cp params.yaml written.yaml
    params: [averaging]
    outs: [written.yaml]
YAML
echo "averaging: 1" > params.yaml
dvc repro -q
dvc --version
ran=""
for value in 1.0 true 2; do
    echo "averaging: $value" > params.yaml
    dvc repro -q
    echo "params.yaml: $(cat params.yaml); output: $(cat written.yaml)"
    ran="$ran $(cmp -s params.yaml written.yaml && echo yes || echo no)"
done
if [ "$ran" != " no no yes" ]; then
    echo "changed: 1, 1.0 and true are different values" >&2
    exit 1
fi
