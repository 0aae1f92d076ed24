#!/usr/bin/env bash
# Expected: of the alignments with the most words, METEOR takes the one whose links cross least, as its paper says. "the ferry" against
#   "the ferry to the island" is then one chunk.
# Happens: NLTK takes, from the end, the last equal word of the reference that is free, so it links "the" with that of "the island": two
#   words make two chunks, and the score is about half of what it should be. The words in the wrong order have the same score. This happens
#   where one side has a word, such as an article, more often than the other, and the earlier one was meant.
# Versions: nltk 3.10.4. Date: 2026-11-30. WordNet, which is a download of its own, is replaced by one without synonyms.
# Source: https://aclanthology.org/W07-0734, which NLTK names as its source:
#   https://www.nltk.org/api/nltk.translate.meteor_score.html.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q nltk==3.10.4

venv/bin/python - <<'PYTHON'
import sys
from importlib.metadata import version
from itertools import combinations, product

from nltk.translate.meteor_score import single_meteor_score

print("nltk", version("nltk"))


class NoSynonyms:
    def synsets(self, word):
        return []


def chunks(links):
    return 1 + sum(after != before + 1 for before, after in zip(links, links[1:]))


def meteor(translation, reference):
    """Return the score by the paper, and the chunks; each word of the translation has one in the reference."""
    equal = [[place for place, other in enumerate(reference) if other == word] for word in translation]
    alignments = [links for links in product(*equal) if len(set(links)) == len(links)]
    best = min(alignments, key=lambda links: sum(one > other for one, other in combinations(links, 2)))
    recall, alpha, beta, gamma = len(translation) / len(reference), 0.9, 3, 0.5
    return recall / (alpha + (1 - alpha) * recall) * (1 - gamma * (chunks(best) / len(translation)) ** beta), chunks(best)


reference = "the ferry to the island"
found = []
for text in ("the ferry to the island", "the ferry", "ferry the", "the ferry to island"):
    words = text.split(), reference.split()
    right, number = meteor(*words)
    theirs = single_meteor_score(words[1], words[0], wordnet=NoSynonyms())
    found.append((round(right, 2), round(theirs, 2)))
    print(f"{text}: chunks: {number}, so {right:.2f}; NLTK {theirs:.2f}")
if found != [(1.0, 1.0), (0.4, 0.21), (0.21, 0.21), (0.77, 0.64)]:
    sys.exit("changed: NLTK aligns other words")
PYTHON
