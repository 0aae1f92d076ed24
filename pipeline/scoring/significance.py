"""Tests whether the scores of systems on one set differ significantly, by sacreBLEU's paired bootstrap resampling."""

import os
from collections.abc import Mapping, Sequence

from pipeline.scoring.bleu import Measure
from pipeline.settings.scoring import ScoringConfig
from transformer.config.reading import UserError


def paired(
    systems: Mapping[str, list[str]], references: list[str], measure: Measure, settings: ScoringConfig
) -> tuple[str, list]:
    """Return sacreBLEU's signature, and the result (score, mean, ci, p_value) of each system.

    The first system is the baseline of the test. Raises UserError if the first two have equal translations.
    """
    from sacrebleu.significance import PairedTest

    prepared: list[tuple[str, Sequence[str]]] = [
        (system, [measure.hypothesis(line) for line in segments]) for system, segments in systems.items()
    ]
    # For equal translations sacreBLEU would report its smallest p-value, because no resample has a difference above 0.
    if prepared[0][1] == prepared[1][1]:
        raise UserError(f"{' and '.join(systems)} translate every line alike; there is no difference to test")
    answers = [[measure.reference(line) for line in references]]
    os.environ["SACREBLEU_SEED"] = str(settings.seed)  # PairedTest has no argument for the seed
    test = PairedTest(prepared, {"": measure.metric}, answers, test_type="bs", n_samples=settings.bootstrap)
    signatures, results = test()
    (metric,) = signatures
    for name, value in measure.steps.items():
        signatures[metric].update(name, value)
    return str(signatures[metric]), results[metric]
