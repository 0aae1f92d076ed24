"""Keep a run's scores in git: results/RUN.json, which the report shows whatever is selected.

    python -m pipeline.commands.record RUN --scores scores --results results      (make record RUN=...)

Reads the run's entry in params.yaml and its score files, all of which must be there; writes their contents into one
small file, with the losses thinned out. No text of the corpus goes into it, so that a corpus's licence does not matter.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.reporting import evidence
from pipeline.settings.params import load
from pipeline.workflow import stage
from transformer.config.reading import UserError
from transformer.files import write_json

POINTS = 100  # of each of the two curves, at most


def thinned(records: list[dict], points: int) -> list[dict]:
    """At most `points` of the records, evenly spread, the first and the last among them."""
    if len(records) <= points:
        return records
    places = {round(number * (len(records) - 1) / (points - 1)) for number in range(points)}
    return [record for place, record in enumerate(records) if place in places]


def thinned_curve(curve: list[dict]) -> list[dict]:
    """Both curves thinned out, in the order of their steps."""
    kept = [thinned([record for record in curve if key in record], POINTS) for key in ("loss", "dev_loss")]
    return sorted((record for records in kept for record in records), key=lambda record: record["step"])


def record(params: Mapping[str, Any], run: str, scores: Path) -> dict[str, Any]:
    """What results/RUN.json holds."""
    known = evidence.of_run(params, run, scores)
    missing = [scores / run / file for part, file in evidence.PARTS.items() if known.parts[part] is None]
    if not known.curve:
        missing.append(scores / run / evidence.CURVE)
    if missing:
        raise UserError(f"{run} cannot be recorded without {', '.join(map(str, missing))}; build the run first")
    head = {key: getattr(known, key) for key in ("run", "corpus", "model", "differences", "languages")}
    return {**head, **known.parts, "curve": thinned_curve(known.curve)}


def main(arguments: argparse.Namespace) -> None:
    path = arguments.results / f"{arguments.run}.json"
    write_json(path, record(load(), arguments.run, arguments.scores))
    print(f"{path} written; commit it, and the report shows it from now on")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="record", description=__doc__.split("\n\n")[0])
    parser.add_argument("run", help="a run of params.yaml")
    parser.add_argument("--scores", type=Path, default=Path("scores"))
    parser.add_argument("--results", type=Path, default=Path("results"))
    stage.run(main, parser)
