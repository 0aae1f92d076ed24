#!/usr/bin/env bash
# Expected: the documentation says "If an output of a stage has cache: false, the run cache will be deactivated for that stage", for
#   metrics as well, which are outputs.
# Happens: `cache: false` on one entry of outs makes DVC run the stage again when old inputs return, hours of training for a text file. On an
#   entry of metrics it does not: the stage is restored, the metric as well, although it is not cached.
# Versions: DVC 3.67.1. Date: 2026-11-29.
# Source: https://dvc.org/doc/user-guide/pipelines/run-cache and https://github.com/treeverse/dvc/pull/8738.
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
  output:
    cmd: cp text model-a && echo '{"loss":' $(wc -c < text)'}' > a.json && echo ran >> runs-a
    deps: [text]
    outs: [model-a, {a.json: {cache: false}}]
  metric:
    cmd: cp text model-b && echo '{"loss":' $(wc -c < text)'}' > b.json && echo ran >> runs-b
    deps: [text]
    outs: [model-b]
    metrics: [{b.json: {cache: false}}]
YAML
dvc --version
for text in one three one; do
    echo $text > text
    dvc repro -q
done
echo "runs for three inputs, the third equal to the first: outs $(wc -l < runs-a), metrics $(wc -l < runs-b); b.json: $(cat b.json)"
if [ "$(wc -l < runs-a) $(wc -l < runs-b) $(cat b.json)" != '3 2 {"loss": 4}' ]; then
    echo "changed: the run cache treats uncached outputs in another way" >&2
    exit 1
fi
