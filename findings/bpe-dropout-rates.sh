#!/usr/bin/env bash
# Expected: BPE-dropout of 0.1 gives about as many pieces in each package, with the same merges.
# Happens: only subword-nmt does what the paper's Algorithm 1 does: it leaves out each possible merge with probability p, anew at each
#   step. SentencePiece never tries a merge again that it left out, and makes far more pieces, although its source says that this is
#   "theoretically equivalent". tokenizers returns to it as soon as another merge is not left out, so with 0.1 it rarely cuts a word. A
#   rate from a paper or another toolkit does not carry over.
# Versions: sentencepiece 0.2.3, subword-nmt 0.3.8, tokenizers 0.23.3. Date: 2026-11-30.
# Source: https://doi.org/10.18653/v1/2020.acl-main.170, Algorithm 1; the loops are in google/sentencepiece, src/bpe_model.cc, and
#   huggingface/tokenizers, models/bpe/word.rs.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q sentencepiece==0.2.3 subword-nmt==0.3.8 tokenizers==0.23.3

venv/bin/python - <<'PYTHON'
import io
import random
import sys
from importlib.metadata import version
from statistics import mean

import sentencepiece
from subword_nmt.apply_bpe import BPE
from tokenizers import Tokenizer, models

print(*(f"{name} {version(name)}" for name in ("sentencepiece", "subword-nmt", "tokenizers")))
random.seed(1)
words = "tailor tailors mend mends mended jacket jackets harbour harbours captain captains sailor evening ferry ferries".split()
lines = [" ".join(random.sample(words, 6)) for _ in range(300)]
sentencepiece.SentencePieceTrainer.train(
    sentence_iterator=iter(lines), model_prefix="toy", model_type="bpe", vocab_size=100, hard_vocab_limit=False, minloglevel=2
)
model = sentencepiece.SentencePieceProcessor(model_file="toy.model")
ids = {model.id_to_piece(number): number for number in range(len(model))}
merged = [piece for piece in ids if len(piece) > 1 and not piece.startswith("<")]  # in the order in which they were learnt
rank = {piece: place for place, piece in enumerate(merged)}
merges = [(piece[:cut], piece[cut:]) for piece in merged for cut in range(1, len(piece)) if {piece[:cut], piece[cut:]} <= ids.keys()]
nmt = BPE(io.StringIO("".join(f"{left} {right}\n" for left, right in merges)))


def algorithm(word, rate):
    """Return the pieces by Algorithm 1 of the paper."""
    pieces = list(word)
    while True:
        pairs = enumerate(zip(pieces, pieces[1:]))
        possible = [(rank[left + right], place) for place, (left, right) in pairs if left + right in rank and random.random() >= rate]
        if not possible:
            return pieces
        place = min(possible)[1]
        pieces[place : place + 2] = ["".join(pieces[place : place + 2])]


def tools(rate):
    tokenizer = Tokenizer(models.BPE(ids, merges, dropout=rate))
    return {
        "Algorithm 1": lambda word: algorithm(word, rate),
        "subword-nmt": lambda word: nmt.segment_tokens([word], dropout=rate),
        "sentencepiece": lambda word: model.encode(word[1:], enable_sampling=True, alpha=rate, nbest_size=-1),
        "tokenizers": lambda word: tokenizer.encode(word).ids,
    }


starts = ["▁" + word for word in words]
assert all(len(cut(word)) == 1 for cut in tools(0.0).values() for word in starts)
for rate in (0.1, 0.3):
    found = {name: mean(len(cut(word)) for word in starts for _ in range(300)) for name, cut in tools(rate).items()}
    print(f"rate {rate}, pieces a word:", ", ".join(f"{name} {pieces:.2f}" for name, pieces in found.items()))
    paper, nmt_pieces, many, few = (pieces - 1 for pieces in found.values())
    if not (0.9 < nmt_pieces / paper < 1.1 and many > 1.3 * paper and few < 0.7 * paper):
        sys.exit("changed: the packages make about as many pieces, or subword-nmt differs from the paper")
PYTHON
