"""Tests whether the scores of systems on one set differ significantly, by sacreBLEU's paired bootstrap resampling.

Its p-value is one-sided, as that of the Moses script that it replicates: with a difference d and the differences d_i of
the resamples, it is the share of |d_i| - mean |d_i| above |d|. For systems that are equally good, p is below 0.05 in a
tenth of the tests.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.scoring.bleu import Measure
from pipeline.settings.scoring import ScoringConfig


def paired(
    systems: Mapping[str, list[str]], references: list[str], measure: Measure, settings: ScoringConfig
) -> tuple[str, list]:
    """Return sacreBLEU's signature, and the result (score, mean, ci, p_value) of each system.

    The first system is the baseline of the test. A system has no p-value if its score equals that of the baseline. The
    texts may then differ, for example in case or in spaces.
    """
    from sacrebleu.significance import PairedTest

    prepared: list[tuple[str, Sequence[str]]] = [
        (system, [measure.hypothesis(line) for line in segments]) for system, segments in systems.items()
    ]
    answers = [[measure.reference(line) for line in references]]
    os.environ["SACREBLEU_SEED"] = str(settings.seed)  # PairedTest has no argument for the seed
    test = PairedTest(prepared, {"": measure.metric}, answers, test_type="bs", n_samples=settings.bootstrap)
    signatures, results = test()
    (metric,) = signatures
    for name, value in measure.steps.items():
        signatures[metric].update(name, value)
    found: list[Any] = results[metric]
    for result in found[1:]:
        if result.score == found[0].score:
            result.p_value = None  # sacreBLEU reports its smallest p-value if no resample has a difference above 0
    return str(signatures[metric]), found
