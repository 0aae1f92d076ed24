#!/usr/bin/env bash
# Expected: a plugin for a cluster costs nothing until a command asks for the cluster.
# Happens: Snakemake imports all installed executor plugins at each start, also for `--version`. The Slurm plugin imports pandas
#   for a report that is off by default. A dry run of one rule then takes about a quarter more CPU time.
# Versions: snakemake 9.27.1, snakemake-executor-plugin-slurm 2.8.0, pandas 3.1.1. Date: 2026-11-29.
# Source: snakemake_executor_plugin_slurm/efficiency_report.py imports pandas; found with `python -X importtime`.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export HOME=$folder
python3 -m venv venv
printf 'rule one:\n    output: "one"\n    shell: "touch {output}"\n' > Snakefile

# Whether a dry run imports pandas, and the CPU seconds of the fastest of five.
start() {
    venv/bin/python -X importtime -m snakemake -n 2> imports > log || { tail -5 imports; exit 1; }
    imported=$(grep -c '| *pandas$' imports || true)
    venv/bin/python - <<'PYTHON'
import resource, subprocess, sys

def used():
    of_children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return of_children.ru_utime + of_children.ru_stime

times = []
for _ in range(5):
    before = used()
    subprocess.run([sys.executable, "-m", "snakemake", "-n"], check=True, capture_output=True)
    times.append(used() - before)
print(f"{min(times):.2f} s of CPU")
PYTHON
}

venv/bin/pip install -q snakemake==9.27.1
venv/bin/snakemake --version
echo "without the plugin"
start
without=$imported
venv/bin/pip install -q snakemake-executor-plugin-slurm==2.8.0 pandas==3.1.1
echo "with the plugin"
start
echo "pandas is imported: without the plugin $without, with it $imported"
if [ "$without/$imported" != "0/1" ]; then
    echo "changed: a dry run does not import pandas because of the Slurm plugin" >&2
    exit 1
fi
