"""Keep a run's scores in git: results/RUN.json, which the report shows whatever is selected.

    python -m pipeline.commands.record RUN --scores scores --times work/times --results results   (make record RUN=...)

Reads the run's entry in params.yaml, its score files and its times, all of which must exist. Writes their contents into
one small file, with fewer points of the loss curves. It holds no text of the corpus, so that a corpus's licence does not
matter.
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

POINTS = 100  # at most, of each of the two curves


def thinned(records: list[dict], points: int) -> list[dict]:
    """At most `points` of the records, evenly spread, including the first and the last."""
    if len(records) <= points:
        return records
    places = {round(number * (len(records) - 1) / (points - 1)) for number in range(points)}
    return [record for place, record in enumerate(records) if place in places]


def thinned_curve(curve: list[dict]) -> list[dict]:
    """Both curves thinned out, in the order of their steps."""
    kept = [thinned([record for record in curve if key in record], POINTS) for key in ("loss", "dev_loss")]
    return sorted((record for records in kept for record in records), key=lambda record: record["step"])


def record(params: Mapping[str, Any], run: str, scores: Path, times: Path) -> dict[str, Any]:
    """The content of results/RUN.json."""
    known = evidence.of_run(params, run, scores, times)
    files = {part: scores / run / file for part, file in evidence.PARTS.items()}
    files |= {part: times / run / file for part, (file, _) in evidence.TIMES.items()}
    missing = [path for part, path in files.items() if known.parts[part] is None]
    if not known.curve:
        missing.append(scores / run / evidence.CURVE)
    if missing:
        raise UserError(f"{run} cannot be recorded without {', '.join(map(str, missing))}; build the run first")
    head = {key: getattr(known, key) for key in ("run", "corpus", "model", "differences", "languages")}
    return {**head, **known.parts, "curve": thinned_curve(known.curve)}


def main(arguments: argparse.Namespace) -> None:
    path = arguments.results / f"{arguments.run}.json"
    write_json(path, record(load(), arguments.run, arguments.scores, arguments.times))
    print(f"{path} written; commit it, and the report shows it from now on")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="record", description=__doc__.split("\n\n")[0])
    parser.add_argument("run", help="a run of params.yaml")
    parser.add_argument("--scores", type=Path, default=Path("scores"))
    parser.add_argument("--times", type=Path, default=Path("work/times"))
    parser.add_argument("--results", type=Path, default=Path("results"))
    stage.run(main, parser)
