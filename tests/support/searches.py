"""A search of params.yaml, and the file of its result."""

from typing import Any

SPACE: dict[str, Any] = {
    "width": [{"d_model": 16, "d_ff": 32}, {"d_model": 32, "d_ff": 64}],
    "lr_scale": {"low": 0.1, "high": 2.0, "scale": "log"},
    "dropout": {"low": 0.0, "high": 0.3, "scale": "linear"},
    "warmup": {"low": 4, "high": 12, "scale": "linear"},
    "norm": ["post", "pre"],
    "evaluate_every": [5],
}
SEARCH = {"corpus": "demo", "model": "tiny", "trials": 3, "steps": 20, "metric": "dev_loss", "seed": 1, "space": SPACE}


def result(**changes: Any) -> dict[str, Any]:
    """The result of a search of four trials, of which one was pruned."""
    trials = []
    for number, (value, dropout) in enumerate([(3.0, 0.1), (2.5, 0.2), (None, 0.3), (2.75, 0.4)]):
        settings = {"lr_scale": 0.1 * 4**number, "dropout": dropout, "norm": "pre" if number % 2 else "post", "N": 2}
        losses = [[5, 4.0], [20, value]] if value else [[5, 5.0]]
        state, why = ("complete", "") if value else ("pruned", "above the median dev loss")
        trial = {"trial": number, "state": state, "why": why, "settings": settings, "steps": losses[-1][0]}
        trials.append({**trial, "value": value, "dev_losses": losses})
    run = {"corpus": "demo", "model": "tiny", **trials[1]["settings"]}
    found = {"name": "small", "search": {**SEARCH, "trials": 4}, "data_sum": "0a1b", "trials": trials}
    return {**found, "importance": {"dropout": 0.75, "lr_scale": 0.25}, "best": {"trial": 1, "run": run}, **changes}
