"""Whether the difference of two systems' scores on one set is significant: sacreBLEU's paired bootstrap resampling."""

import os
from collections.abc import Mapping, Sequence

from pipeline.scoring.bleu import Measure
from pipeline.settings.scoring import ScoringConfig
from transformer.config.reading import UserError


def paired(
    systems: Mapping[str, list[str]], references: list[str], measure: Measure, settings: ScoringConfig
) -> tuple[str, list]:
    """sacreBLEU's signature and its result (score, mean, ci, p_value) for each system, the first being the baseline."""
    from sacrebleu.significance import PairedTest

    prepared: list[tuple[str, Sequence[str]]] = [
        (system, [measure.hypothesis(line) for line in segments]) for system, segments in systems.items()
    ]
    if prepared[0][1] == prepared[1][1]:  # sacreBLEU would report its smallest p-value: no resample differs by more
        raise UserError(f"{' and '.join(systems)} translate every line alike; there is no difference to test")
    answers = [[measure.reference(line) for line in references]]
    os.environ["SACREBLEU_SEED"] = str(settings.seed)  # the only way in that PairedTest has
    test = PairedTest(prepared, {"": measure.metric}, answers, test_type="bs", n_samples=settings.bootstrap)
    signatures, results = test()
    (metric,) = signatures
    for name, value in measure.steps.items():
        signatures[metric].update(name, value)
    return str(signatures[metric]), results[metric]
