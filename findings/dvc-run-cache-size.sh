#!/usr/bin/env bash
# Expected: after an edit of a parameter, `dvc repro` runs the stages that depend on it.
# Happens: the run cache leaves parameters named size and nfiles out of its key, also inside a mapping that is tracked whole, as here.
#   `dvc status` reports the edit, but `dvc repro` restores the output of the old value and records it for the new one. A parameter of
#   another name runs the stage, and so does size if it is tracked by its full name, model.size.
# Versions: DVC 3.67.1. Date: 2026-11-29.
# Source: https://github.com/treeverse/dvc/issues/10296 and https://github.com/treeverse/dvc/pull/11079.
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
    params: [model]
    outs: [written.yaml]
YAML
echo "model: {size: 10, width: 10}" > params.yaml
dvc repro -q
dvc --version
echo "model: {size: 20, width: 10}" > params.yaml
dvc status
dvc repro -q
echo "params.yaml: $(cat params.yaml); output: $(cat written.yaml)"
stale=$(cmp -s params.yaml written.yaml || echo stale)
echo "model: {size: 20, width: 20}" > params.yaml
dvc repro -q
echo "params.yaml: $(cat params.yaml); output: $(cat written.yaml)"
if [ "$stale" != stale ] || ! cmp -s params.yaml written.yaml; then
    echo "changed: an edit of size runs the stage, or one of width does not" >&2
    exit 1
fi
