"""What stages warn of: sentences made from the counts in their files in scores/.

The counts are outputs, so a stage that DVC restores warns as one that ran. The terminal prints the sentences under the
stage's line, and the report shows them first. A new count is an entry of REASONS, OF_PARTS or OF_ROWS, or a
line of `of_set`.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.settings.blocks import ADDED
from pipeline.settings.languages import not_known
from pipeline.settings.score_files import content, within

# By stage: the block of params.yaml with its names, and the file with its counts.
FILES = {
    "download": ("corpora_in_use", "corpora/{}/download.json"),
    "normalise": ("corpora_in_use", "corpora/{}/normalise.json"),
    **{stage: (name, path) for name, block in ADDED.items() for stage, path in block.counts.items()},
    "train": ("runs", "{}/training.json"),
    "fetch_set": ("sets", "corpora/{}/fetch_set.json"),
}
REASONS = {  # for which pairs are left out
    "empty": "with an empty side",
    "max_words": "beyond max_words",
    "max_ratio": "beyond max_ratio",
    "deduplicate": "that occurred before",
    "decontaminate": "with a sentence of dev or test",
    "same_source": "with the source of a pair held out for dev or test",
    "max_length": "beyond max_length",
}
OF_PARTS = {
    "swapped": "the sides of part {} look swapped, each like the language of the other",
    "segmented": "part {} is in pieces already; text that is not segmented is expected",
    "named": "the first line of part {} seems to name columns",
}
OF_ROWS = {
    "variants": "with several texts for a language; that of the code in `languages`, else of the usual script, is used",
    "below": "with a score below `least` left out",
    "incomplete": "without a text for one of the languages left out",
}
LARGE = 0.1  # a larger share of pairs left out is shown before everything else


class Warned(NamedTuple):
    stage: str
    text: str
    large: bool = False


def of_stages(params: Mapping[str, Any], scores: Path = Path("scores")) -> list[Warned]:
    """What the stages warn of whose names params.yaml selects, a large share of pairs left out first."""
    stages = [f"{kind}@{name}" for kind, (block, _) in FILES.items() for name in params.get(block, ())]
    return large_first([each for stage in stages for each in of_stage(stage, scores)])


def large(params: Mapping[str, Any]) -> list[str]:
    """The sentences about a large share of pairs left out, for the terminal."""
    return [f"{each.stage}: {each.text}" for each in of_stages(params) if each.large]


def said(stage: str) -> list[str]:
    """The sentences of a stage, for the terminal."""
    return [each.text for each in of_stage(stage)]


def of_stage(stage: str, scores: Path = Path("scores")) -> list[Warned]:
    """What a stage such as `normalise@demo` warns of, by the counts that it or another machine wrote.

    A damaged file has no sentences: a terminal is no place to fail, and DVC makes the file again.
    """
    kind, _, name = stage.partition("@")
    try:
        counts = content(scores / FILES[kind][1].format(name)) if kind in FILES else None
        sets = of_training(counts, scores) if kind == "train" else within(counts, "sets") or {}
        found = [Warned(stage, f"{of}: {text}", large) for of in sets for text, large in of_set(sets[of])]
        codes = not_known(within(counts, "languages") or ()) if kind == "download" else ""
        return large_first([*found, *([Warned(stage, codes)] if codes else [])])
    except (OSError, ValueError, TypeError, AttributeError):  # UserError is a ValueError
        return []


def large_first(found: list[Warned]) -> list[Warned]:
    return sorted(found, key=lambda each: not each.large)


def of_training(training: Any, scores: Path) -> dict[str, dict]:
    """The counts of the pairs of a training. Those of its data are in the report of the stage that made them."""
    of_data = [content(path) for path in sorted(scores.glob("corpora/*/binarise.json"))]
    data = next((each for each in of_data if within(each, "data_sum") == within(training, "data_sum")), None)
    counts = within(data, "sets", "train") or {}
    read = within(counts, "pairs") or 0
    left_out = {"max_length": within(training, "pairs_left_out") or 0}
    return {"train": {"read": read // counts.get("segmentations", 1), "dropped": left_out}}


def of_set(counts: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """Yield the sentences about a set, each with whether it is about a large share of pairs left out."""
    read, dropped = counts.get("read", 0), counts.get("dropped", {})
    if left_out := sum(dropped.values()):
        reasons = ", ".join(f"{number:,} {REASONS.get(reason, reason)}" for reason, number in dropped.items() if number)
        share = f" of {read:,} ({left_out / read:.1%})" if read else ""
        yield f"{left_out:,}{share} left out: {reasons}", bool(read) and left_out > LARGE * read
    if (kept := counts.get("in_evaluation", 0)) and "decontaminate" not in dropped:
        what = several(kept, "pair")
        yield f"{what} with a sentence of dev or test kept; `normalise: {{decontaminate: true}}` drops them", False
    for kind, text in OF_PARTS.items():
        yield from ((text.format(part), False) for part in counts.get(kind, ()))
    for kind, text in OF_ROWS.items():
        if number := counts.get(kind, 0):
            yield f"{several(number, 'row')} {text}", False
    for language, share in counts.get("unwritten", {}).items():
        yield f"{share:.0%} of the pieces ({language}) are bytes or unknown: the vocabulary has not learnt such text", True
    for language, number in counts.get("invalid", {}).items():
        if number:
            yield f"{several(number, 'line')} with damaged UTF-8 ({language}), which U+FFFD replaces", False
    for side, (language, number) in zip(("source", "reference"), counts.get("empty", {}).items()):
        if number and not dropped:  # a training pair with an empty side is left out
            yield f"{several(number, f'empty {side}')} ({language})", False


def several(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"
