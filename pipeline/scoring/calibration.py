"""Measures how well predicted values agree with the final scores, and token probabilities with the references.

Shapes: M prefixes, N target tokens, D d_model.
"""

from math import fsum
from typing import Any

import numpy as np
import torch

from transformer.batch import Pairs
from transformer.data import in_order
from transformer.fast import fused
from transformer.fast.loss import cross_entropy
from transformer.model import Transformer
from transformer.perplexity import evaluating

INTERVALS = 10  # intervals of the value in the reliability curve
ROWS = 512  # target tokens whose probabilities are in memory at once
FEWEST = 30  # an interval with fewer prefixes is left out


def calibration(value_M: np.ndarray, score_M: np.ndarray, length_M: np.ndarray) -> dict[str, Any]:
    """The measurements for a score file: means, correlations, the calibration error and the reliability curve.

    `length_M` is the number of tokens of each prefix. `correlation_of_length` is between length and score.
    """
    return {
        "prefixes": len(value_M),
        "mean_value": rounded(value_M.mean()),
        "mean_score": rounded(score_M.mean()),
        "correlation": correlation(value_M, score_M),
        "correlation_of_length": correlation(length_M, score_M),
        "calibration_error": calibration_error(value_M, score_M),
        "reliability": [point for point in reliability(value_M, score_M) if point["prefixes"] >= FEWEST],
    }


def correlation(one_M: np.ndarray, other_M: np.ndarray) -> float | None:
    """Pearson's correlation, or None if there are fewer than two values or one of the arrays is constant."""
    if len(one_M) < 2 or np.ptp(one_M) == 0 or np.ptp(other_M) == 0:
        return None
    return rounded(np.corrcoef(one_M, other_M)[0, 1])


def reliability(value_M: np.ndarray, score_M: np.ndarray) -> list[dict[str, Any]]:
    """The mean value, the mean score and the number of prefixes in each interval. Empty intervals are left out."""
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
    """The mean distance between mean value and mean score of an interval, weighted by its number of prefixes."""
    points = reliability(value_M, score_M)
    return rounded(fsum(abs(point["value"] - point["score"]) * point["prefixes"] for point in points) / len(value_M))


def rounded(number: float) -> float:
    return round(float(number), 6)


def confidences(
    model: Transformer, pairs: Pairs, batch_tokens: int, device: torch.device
) -> tuple[float, np.ndarray, np.ndarray]:
    """The mean unsmoothed loss of a target token (EOS included), in nats, of which exp is the perplexity.

    Then, for each target token: the probability of the model's most probable token, and whether it is right. The model
    sees the reference's tokens before this one.
    """
    parts, loss = [], 0.0
    with evaluating(model, pairs, in_order(pairs, batch_tokens), device) as given:
        for batch in given:
            hidden_ND = fused.hidden(model, batch).flatten(0, 1).index_select(0, batch.real_N)
            loss += cross_entropy(hidden_ND, model.embedding, batch.labels_N).item()
            for hidden, labels in zip(hidden_ND.split(ROWS), batch.labels_N.split(ROWS)):
                most_N, token_N = (hidden @ model.embedding.T).softmax(-1).max(-1)
                parts.append(torch.stack([most_N, (token_N == labels).to(most_N.dtype)]).cpu())
    confidence_N, right_N = torch.cat(parts, 1).numpy()
    return loss / len(right_N), confidence_N, right_N
