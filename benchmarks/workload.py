"""Training data for benchmarks: random pieces in sentences as long as those of WMT14 EN-DE."""

import numpy as np

from pipeline.text.binarised import BinarisedSet


def random_pairs(vocabulary: int, pairs: int) -> BinarisedSet:
    """Pairs with log-normal lengths of mean 27, as after BPE, in memory. With few pairs, batches need more padding."""
    random = np.random.default_rng(1)
    source = np.clip(random.lognormal(3.1, 0.6, pairs), 3, 200)
    target = np.clip(source * random.lognormal(0.05, 0.2, pairs), 3, 200)
    offsets = [np.append(0, np.cumsum(lengths.astype(np.int64))) for lengths in (source, target)]
    first, second = ((random.integers(4, vocabulary, each[-1], np.uint16), each) for each in offsets)
    return BinarisedSet(first, second)
