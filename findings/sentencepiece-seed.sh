#!/usr/bin/env bash
# Expected: sampling repeats after set_random_generator_seed with the same seed, in one process and between processes.
# Happens: with 0.2.1 a second call in one process does not start again, but two processes agree. With 0.2.3 a second call does start
#   again, but two processes disagree. A training that samples its pieces can be repeated with the former version only.
# Versions: sentencepiece 0.2.1 and 0.2.3. Date: 2026-11-29.
# Source: https://github.com/google/sentencepiece/issues/609 (the seed can be set only once, before the first use) and
#   https://github.com/google/sentencepiece/issues/540.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q sentencepiece==0.2.1

cat > train.py <<'PYTHON'
import sentencepiece

lines = ["the tailor mends a jacket", "a jacket mends well", "the tailors mend the jackets", "menders tailor the jacket"] * 20
sentencepiece.SentencePieceTrainer.train(
    sentence_iterator=iter(lines), model_prefix="toy", vocab_size=60, hard_vocab_limit=False, minloglevel=2
)
PYTHON
cat > sample.py <<'PYTHON'
import sentencepiece

model = sentencepiece.SentencePieceProcessor(model_file="toy.model")


def draw():
    sentencepiece.set_random_generator_seed(7)
    return [model.encode("the tailor mends the jackets", out_type=str, enable_sampling=True, alpha=0.1, nbest_size=-1) for _ in range(20)]


first, second = draw(), draw()
print("same within:", first == second, first)
PYTHON
venv/bin/python train.py
results=""
for release in 0.2.1 0.2.3; do
    venv/bin/pip install -q sentencepiece==$release
    venv/bin/python sample.py > one
    venv/bin/python sample.py > two
    within=$(cut -d' ' -f3 one)
    if cmp -s one two; then between=True; else between=False; fi
    echo "sentencepiece $(venv/bin/python -c 'import sentencepiece; print(sentencepiece.__version__)'): repeats within a process: $within, between processes: $between"
    results="$results $within$between"
done
if [ "$results" != " FalseTrue TrueFalse" ]; then
    echo "changed: the seed repeats other samples" >&2
    exit 1
fi
