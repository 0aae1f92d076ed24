"""Part `check`, three minutes: the correctness checks, then both values of each setting that is still to be chosen."""

import time

from benchmarks.gpu.bench import Bench, Outcome
from benchmarks.gpu.checks import CHECKS
from benchmarks.gpu.choices import compare_batches, compare_losses


def run(bench: Bench, outcome: Outcome) -> None:
    rows = outcome.table("check", "result", "figures", "seconds")
    for name, check in CHECKS.items():
        began = time.perf_counter()
        try:
            result, said = "holds", check(bench)
        except Exception as error:  # the other checks go on
            result, said = "fails", failed(outcome, name, error)
        rows.append([name, result, said, f"{time.perf_counter() - began:.0f}"])
    for compare in (compare_losses, compare_batches):
        try:
            compare(bench, outcome)
        except Exception as error:
            failed(outcome, compare.__name__, error)


def failed(outcome: Outcome, name: str, error: Exception) -> str:
    """Add a failure to the outcome. Returns the first line of the error."""
    said = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    outcome.failures.append(f"{name}: {said}")
    return said
