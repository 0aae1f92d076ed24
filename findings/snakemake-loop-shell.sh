#!/usr/bin/env bash
# Expected: rules that a loop makes run the command that Snakemake prints for them.
# Happens: with `shell:` built from the loop's variable, each rule runs the command of the last one, while `-p` prints the right command.
#   Here every file has the text of the last. With params, which are bound at once, each file is right.
# Versions: snakemake 9.27.1. Date: 2026-11-29.
# Source: https://github.com/snakemake/snakemake/issues/2832.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q snakemake==9.27.1

cat > Snakefile <<'SNAKEFILE'
stages = ["clean", "train", "score"]

rule all:
    input: expand("{way}-{stage}", way=["direct", "params"], stage=stages)

for stage in stages:
    rule:
        name: f"direct_{stage}"
        output: f"direct-{stage}"
        shell: f"echo {stage} > {{output}}"

    rule:
        name: f"params_{stage}"
        output: f"params-{stage}"
        params: text=stage
        shell: "echo {params.text} > {output}"
SNAKEFILE
export HOME=$folder
venv/bin/snakemake --version
venv/bin/snakemake --cores 1 -p > log 2>&1 || { tail -5 log; echo "changed: the workflow fails" >&2; exit 1; }
printed=$(grep -o "echo .* > direct-.*" log | sort | cut -d' ' -f2 | tr '\n' ' ' || true)
direct=$(cat direct-clean direct-train direct-score | tr '\n' ' ')
params=$(cat params-clean params-train params-score | tr '\n' ' ')
echo "printed for direct, sorted: $printed; clean, train, score: direct wrote $direct; params wrote $params"
if [ "$printed/$direct/$params" != "clean score train /score score score /clean train score " ]; then
    echo "changed: each rule of a loop runs its own command" >&2
    exit 1
fi
