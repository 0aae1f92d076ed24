"""How well predicted values agree with the final scores.

Shapes: M prefixes.
"""

from typing import Any

import numpy as np

INTERVALS = 10  # of the value, in the reliability curve
FEWEST = 30  # prefixes of one length or of one interval; fewer are left out


def calibration(value_M: np.ndarray, score_M: np.ndarray, length_M: np.ndarray) -> dict[str, Any]:
    """The content of a score file: correlations, the reliability curve and its mean distance from the diagonal.

    `length_M` is the number of tokens of each prefix. `correlation_of_length` is what the length alone predicts.
    """
    return {
        "prefixes": len(value_M),
        "mean_value": rounded(value_M.mean()),
        "mean_score": rounded(score_M.mean()),
        "correlation": correlation(value_M, score_M),
        "correlation_of_length": correlation(length_M, score_M),
        "calibration_error": calibration_error(value_M, score_M),
        "by_length": by_length(value_M, score_M, length_M),
        "reliability": [point for point in reliability(value_M, score_M) if point["prefixes"] >= FEWEST],
    }


def correlation(one_M: np.ndarray, other_M: np.ndarray) -> float | None:
    """Pearson's correlation; None where one of both is constant."""
    if len(one_M) < 2 or np.ptp(one_M) == 0 or np.ptp(other_M) == 0:
        return None
    return rounded(np.corrcoef(one_M, other_M)[0, 1])


def by_length(value_M: np.ndarray, score_M: np.ndarray, length_M: np.ndarray) -> list[dict[str, Any]]:
    """The correlation among the prefixes of each length, while there are enough of them."""
    points = []
    for length in range(int(length_M.max()) + 1):
        chosen_M = length_M == length
        if chosen_M.sum() < FEWEST:
            break
        found = correlation(value_M[chosen_M], score_M[chosen_M])
        points.append({"length": length, "prefixes": int(chosen_M.sum()), "correlation": found})
    return points


def reliability(value_M: np.ndarray, score_M: np.ndarray) -> list[dict[str, Any]]:
    """The mean value and the mean score of the prefixes whose value is in each interval, without empty intervals."""
    interval_M = np.minimum((value_M * INTERVALS).astype(int), INTERVALS - 1)
    return [
        {
            "value": rounded(value_M[interval_M == number].mean()),
            "score": rounded(score_M[interval_M == number].mean()),
            "prefixes": int((interval_M == number).sum()),
        }
        for number in np.unique(interval_M)
    ]


def calibration_error(value_M: np.ndarray, score_M: np.ndarray) -> float:
    """The mean distance between value and score over the intervals, weighted by their prefixes."""
    points = reliability(value_M, score_M)
    return rounded(sum(abs(point["value"] - point["score"]) * point["prefixes"] for point in points) / len(value_M))


def rounded(number: float) -> float:
    return round(float(number), 6)
