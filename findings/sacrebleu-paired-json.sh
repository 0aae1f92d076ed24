#!/usr/bin/env bash
# Expected: `sacrebleu --paired-bs` prints its table as JSON, its default format, for each of its measures.
# Happens: with BLEU it does. With chrF or TER the comparison is computed to its end, and then a TypeError says that float32 is not JSON
#   serializable, because the scores of a resampled system come as NumPy's float32. So one of them beside BLEU leaves nothing of all.
#   `-f text` prints the table, and --paired-ar, the approximate randomisation, has JSON for all three.
# Versions: sacrebleu 2.6.0, numpy 2.4.6. Date: 2026-11-30.
# Source: https://github.com/mjpost/sacrebleu/blob/v2.6.0/sacrebleu/significance.py, and https://github.com/mjpost/sacrebleu#paired-significance-tests-for-multi-system-evaluation.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q sacrebleu==2.6.0 numpy==2.4.6
venv/bin/pip list 2> /dev/null | grep -E '^(sacrebleu|numpy) '

printf 'The ferry leaves at noon.\nNobody answered the letter.\n' > reference
printf 'The ferry leaves at twelve.\nNobody answered the letter.\n' > one
printf 'The boat leaves at noon.\nNo one replied to the letter.\n' > two

compared() {
  venv/bin/sacrebleu reference -i one two "$@" > table 2> error
}

for measure in chrf ter "bleu chrf"; do
  if compared -m $measure --paired-bs --paired-bs-n 50 || ! grep "TypeError: Object of type float32 is not JSON serializable" error; then
    echo "changed: sacrebleu -m $measure --paired-bs writes JSON"
    exit 1
  fi
done
compared -m bleu --paired-bs --paired-bs-n 50
venv/bin/python -m json.tool table > /dev/null && echo "bleu --paired-bs: JSON"
compared -m bleu chrf ter --paired-ar --paired-ar-n 50
venv/bin/python -m json.tool table > /dev/null && echo "bleu chrf ter --paired-ar: JSON"
compared -m chrf --paired-bs --paired-bs-n 50 -f text
grep "chrF2" table
