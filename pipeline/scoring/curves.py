"""The curves of a training, which `dvc plots show` and the report draw."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from transformer.config.reading import UserError
from transformer.files import write_json

CURVES = ("loss", "dev_loss")
POINTS = 100  # at most this many records of each curve


def read_curve(path: Path) -> list[dict]:
    """Return both curves of a training.jsonl, each with at most POINTS evenly spread records, ordered by step."""
    try:
        curve = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except ValueError as error:
        raise UserError(f"{path} is damaged: {error}; train again or remove it") from None
    kept = []
    for key in CURVES:
        records = [record for record in curve if key in record]
        places = np.linspace(0, len(records) - 1, min(POINTS, len(records))).round()
        kept += [records[int(place)] for place in places]
    return sorted(kept, key=lambda record: record["step"])


def write_plots(folder: Path, curve: list[dict], table: Mapping[str, Any]) -> dict[str, float]:
    """Write a file for each curve, and one with the scores of score.json, `table`. Returns the last losses."""
    curves = {key: [record for record in curve if key in record] for key in CURVES}
    for key, records in curves.items():
        write_json(folder / f"{key}.json", [{"step": record["step"], key: record[key]} for record in records])
    bleu = [
        {"set": f"{name}, {weights}", "bleu": next(iter(cell["metrics"].values()))["score"]}
        for name, of in table.items()
        for weights, cell in of.items()
    ]
    write_json(folder / "bleu.json", bleu)
    return {key: records[-1][key] for key, records in curves.items() if records}
