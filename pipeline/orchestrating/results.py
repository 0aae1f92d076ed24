"""The results that a workflow prints at its end: scores, training times, and the changes of the scores.

The changes are relative to the last workflow that printed results.

    python -m pipeline.orchestrating.results     exits with 1 if reports/index.html is missing or older than a table
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pipeline.running.times import duration, training_times
from pipeline.settings.params import load
from pipeline.settings.score_files import content, rounded, within
from transformer.files import write_json

KEPT = Path("work/results.json")  # the results that were shown last
PAGE = Path("reports/index.html")
SHOWN = 10  # runs and decodings in the table; the page shows all


@dataclass(frozen=True)
class Result:
    """The results of a run or a decoding. A value that is not known is None."""

    name: str
    bleu: float | None  # on the test set of the run's corpus, or on the set of the decoding
    low: float | None  # the ends of the 95% interval of `bleu`
    high: float | None
    perplexity: float | None  # on dev, of the averaged weights
    seconds: float | None  # of training

    def columns(self) -> list[str]:
        interval = "" if self.low is None else f" ({rounded(self.low)} to {rounded(self.high)})"
        return [
            self.name,
            f"{rounded(self.bleu)}{interval}",
            rounded(self.perplexity),
            "-" if self.seconds is None else duration(self.seconds),
        ]

    def change(self, before: Mapping[str, Any] | None) -> str:
        if before is None:
            return "new"
        changes = []
        for key, name in (("bleu", "BLEU"), ("perplexity", "perplexity")):
            old, new = within(before, key), getattr(self, key)
            if None not in (old, new) and (change := float(rounded(new)) - float(rounded(old))):
                changes.append(f"{name} {change:+.2f}")
        return ", ".join(changes) or "the same"


def results(params: Mapping[str, Any]) -> Iterator[Result]:
    for run in params["runs"]:
        scores = Path("scores", run)
        perplexity = within(content(scores / "translations/translations.json"), "dev", "average", "perplexity")
        seconds = training_times(run).get("seconds")
        yield Result(run, *headline(scores / "score.json", "test", "average"), perplexity, seconds)
    for name in params["decodings"]:
        yield Result(name, *headline(Path("scores/decodings", name, "score.json"), "set"), None, None)


def headline(path: Path, *place: str) -> tuple[float | None, float | None, float | None]:
    """Return the first measure in a score.json, which depends on the language, and the ends of its interval."""
    metrics = within(content(path), *place, "metrics")
    measure = next(iter(metrics.values()), None) if isinstance(metrics, Mapping) else None
    return within(measure, "score"), within(measure, "low"), within(measure, "high")


def table(found: list[Result], before: Mapping[str, Any] | None = None) -> list[str]:
    """Return the lines of a table with at most SHOWN results.

    `before` maps names to previous results. If it is given, a column shows how the scores have changed.
    """
    rows = [["run", "sacreBLEU (95%)", "dev perplexity", "training"]]
    rows += [result.columns() for result in found[:SHOWN]]
    if before is not None:
        rows[0].append("since the last time")
        for row, result in zip(rows[1:], found):
            row.append(result.change(within(before, result.name)))
    return in_columns(rows) + ([f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else [])


def in_columns(rows: Sequence[Sequence[str]], numbers: bool = False) -> list[str]:
    """Return the rows as lines of aligned columns. If `numbers`, all columns except the first align to the right."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    rest = str.rjust if numbers else str.ljust
    return ["  ".join([row[0].ljust(widths[0]), *map(rest, row[1:], widths[1:])]).rstrip() for row in rows]


def show(first: Callable[[Mapping[str, Any]], Iterable[str]] = lambda params: ()) -> None:
    """Print what `first` returns, the results and the path of the page. Keep the results for the next comparison."""
    params = load()
    found = list(results(params))
    print("", *first(params), *table(found, content(KEPT) or {}), sep="\n")
    if page_is_current():
        print(f"\nThe report: open {PAGE} in a browser.")
    elif PAGE.is_file():
        print(f"\n{PAGE} is older than the tables beside it; `make report` writes it again.")
    write_json(KEPT, {result.name: asdict(result) for result in found})


def page_is_current() -> bool:
    """Return whether the page is at least as new as the tables beside it.

    Git and DVC ignore the page, so after a change of branch the tables may be those of the other branch.
    """
    tables = [path.stat().st_mtime for path in PAGE.parent.glob("*.csv")]
    return PAGE.is_file() and PAGE.stat().st_mtime >= max(tables, default=0.0)


if __name__ == "__main__":
    raise SystemExit(not page_is_current())
