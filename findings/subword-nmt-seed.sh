#!/usr/bin/env bash
# Expected: apply-bpe with --seed draws the same BPE-dropout at each run, which is what the option was added for.
# Happens: the installed command accepts --seed and does not use it: each run differs, and nothing warns. Only the module apply_bpe, run as
#   a script, sets it, and even there runs differ with --num-workers 2, as Python gives each forked process another seed. So a text with
#   dropout that the command made cannot be made again.
# Versions: subword-nmt 0.3.8, Python 3.11.7. Date: 2026-11-30.
# Source: https://github.com/rsennrich/subword-nmt/issues/90 and https://github.com/rsennrich/subword-nmt/pull/91 (the option), its
#   subword_nmt.py, which lacks it, and Lib/random.py of Python (os.register_at_fork).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q subword-nmt==0.3.8

for ((line = 0; line < 50; line++)); do
    echo "the gardener waters the tulips"
    echo "a garden of watered plants waits"
done > text
venv/bin/subword-nmt learn-bpe -s 40 < text > codes 2> log || { tail -5 log; echo "changed: learn-bpe fails" >&2; exit 1; }
venv/bin/python -c 'from importlib.metadata import version; print("subword-nmt", version("subword-nmt"))'
results=""
for way in "subword-nmt apply-bpe" "python -m subword_nmt.apply_bpe" "python -m subword_nmt.apply_bpe --num-workers 2"; do
    for run in 1 2; do
        venv/bin/$way -c codes --dropout 0.3 --seed 7 -i text -o run$run
        test "$(sed 's/@@ //g' run$run | cmp - text && wc -l < run$run)" = 100
    done
    if cmp -s run1 run2; then same=equal; else same=different; fi
    echo "$way: two runs are $same: $(head -1 run1) / $(head -1 run2)"
    results="$results $same"
done
if [ "$results" != " different equal different" ]; then
    echo "changed: the command or two processes obey the seed, or one process does not" >&2
    exit 1
fi
