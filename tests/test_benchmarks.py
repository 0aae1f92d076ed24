"""What the benchmarks make and compute; their measurements are for a person to start."""

import gzip
from itertools import islice

from benchmarks.corpus import extended
from benchmarks.text import OURS, Cost, growth

LINES = [[f"{side} {number} walks along {number * 7}th street" for number in range(200)] for side in ("man", "Mann")]


def test_a_corpus_is_retold_in_other_pairs_with_few_new_words(tmp_path):
    paths = [tmp_path / "text.en.gz", tmp_path / "text.de"]
    paths[0].write_bytes(gzip.compress("\n".join(LINES[0]).encode()))
    paths[1].write_text("\n".join([*LINES[1], ""]), encoding="utf-8")
    pairs = list(islice(extended(paths), 1000))
    assert pairs[:200] == list(zip(*LINES))
    assert pairs == list(islice(extended(paths), 1000))
    assert len(set(pairs)) == 1000
    words = [{word for pair in some for line in pair for word in line.split(" ")} for some in (pairs[:200], pairs)]
    assert words[0] < words[1] and len(words[1]) < len(words[0]) + 2 * 0.15 * 800


def test_growth_finds_the_line_that_the_times_lie_on():
    each = {pairs: Cost(0, 1 + 10e-6 * pairs / len(OURS), 0) for pairs in (100_000, 800_000, 8_000_000)}
    said = growth({pairs: dict.fromkeys(OURS, cost) for pairs, cost in each.items()})
    assert "3.00 s and 10.0 microseconds a pair (R^2 1.00000, no point more than 0.0% off)" in said
    assert "as pairs^1.000" in said and "EN-DE 0.8 minutes" in said
