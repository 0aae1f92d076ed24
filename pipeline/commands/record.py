"""Write the scores of a run, a decoding, a value or a search to one small file, which every later report shows.

    python -m pipeline.commands.record NAME   (make record RUN=...)

Reads the entry in params.yaml, its score files and, for a run or a decoding, its times. All of these files must exist,
and the stages of the entry must be up to date. So must those of other entries that the facts of a decoding use.
Writes their contents to results/RUN.json or, below results/, to decodings/NAME.json, values/NAME.json or
searches/NAME.json. The loss curves of a run are written with fewer points. For a decoding, the file also holds facts such
as its length ratio and p-value, which are computed from the evaluation sets. For a run, it also holds the BLEU statistics
of each sentence of dev, which paired tests need. The file holds no text of the corpus, so it can be committed whatever the
licence of the corpus.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pipeline.commands.status import not_done
from pipeline.corpora.evaluation import EvaluationSet
from pipeline.reporting import decoder_facts, decodings, differences, evidence
from pipeline.reporting.decoder_facts import Facts
from pipeline.settings.params import load, require_named
from pipeline.workflow import stage
from pipeline.workflow.times import read_times
from pipeline.workflow.trained import changes
from transformer.config.reading import UserError
from transformer.files import write_json

POINTS = 100  # at most this many records of each of the two curves
# Blocks, and their folders in scores/ and results/.
COPIED = {"values": "values", "reverse_values": "values", "searches": "searches"}


def thinned(records: list[dict]) -> list[dict]:
    """Return at most POINTS of the records, evenly spread, including the first and the last."""
    if len(records) <= POINTS:
        return records
    places = {round(number * (len(records) - 1) / (POINTS - 1)) for number in range(POINTS)}
    return [record for place, record in enumerate(records) if place in places]


def thinned_curve(curve: list[dict]) -> list[dict]:
    """Return both loss curves with at most POINTS records each, in the order of their steps."""
    kept = [thinned([record for record in curve if key in record]) for key in ("loss", "dev_loss")]
    return sorted((record for records in kept for record in records), key=lambda record: record["step"])


def record(params: Mapping[str, Any], run: str, scores: Path, times: Path, sets: Path) -> dict[str, Any]:
    """The content of results/RUN.json."""
    require_same_run(params, run, scores)
    known = evidence.of_run(params, run, scores, times)
    files = {part: scores / run / file for part, file in evidence.PARTS.items()}
    files |= {part: times / run / file for part, (file, _) in evidence.TIMES.items()}
    missing = [path for part, path in files.items() if known.parts[part] is None]
    if not known.curve:
        missing.append(scores / run / evidence.CURVE)
    translation = scores / run / "translations" / evidence.DEV_TRANSLATION
    if not translation.exists():
        missing.append(translation)
    if missing:
        raise not_built(run, missing, times)
    dev = EvaluationSet.open(sets / f"{known.corpus}-{differences.SET}")
    counts = differences.recorded(translation, dev)
    head = {key: getattr(known, key) for key in ("run", "corpus", "model", "differences", "languages")}
    head["bpe_dropout"] = known.settings["bpe_dropout"]  # a setting of the corpus
    return {**head, **known.parts, "curve": thinned_curve(known.curve), "statistics": counts}


def not_built(name: str, missing: Sequence[Path], times: Path) -> UserError:
    without = f"{name} cannot be recorded without {', '.join(map(str, missing))}"
    if all(times in path.parents for path in missing):
        return UserError(f"{without}: DVC does not hold the times of a stage; record {name} on the machine that built it")
    return UserError(f"{without}; build {name} first")


def require_same_run(params: Mapping[str, Any], run: str, scores: Path) -> None:
    """Raise UserError if the settings or the corpus have changed since the training whose scores would be recorded."""
    training = evidence.read(scores / run / evidence.PARTS["training"])
    if training and (changed := changes(params, run, training, scores)):
        raise UserError(
            f"{run} cannot be recorded: settings or corpus have changed since its training ({', '.join(changed)}); "
            "restore them, or train it again"
        )


def decoding_record(name: str, scores: Path, times: Path, facts: Mapping[str, Facts]) -> dict[str, Any]:
    """The content of results/decodings/NAME.json: the decoding, its model, its set, its scores, its times and its facts."""
    folder = scores / "decodings" / name
    files = {part: folder / file for part, file in decodings.FILES.items()}
    parts = {part: evidence.read(path) for part, path in files.items()}
    files["timing"] = times / "decodings" / f"{name}.json"
    parts["timing"] = read_times(files["timing"], files["decoding"])
    if missing := [files[part] for part, value in parts.items() if value is None]:
        raise not_built(name, missing, times)
    head = {"name": name, "model": parts["decoding"]["model"], "set": parts["decoding"]["set"]}
    return {**head, **parts, **({"facts": asdict(facts[name])} if name in facts else {})}


def used_by(params: Mapping[str, Any], name: str, scores: Path) -> list[str]:
    """Return the other entries whose files the facts of a decoding use: decodings and reverse scores."""
    one = params["decodings"][name]
    others = [
        other
        for other, settings in params["decodings"].items()
        if other != name
        and all(settings[key] == one[key] for key in ("model", "set"))
        and (scores / "decodings" / other).exists()
    ]
    reverse = [other for other, settings in params["reverse_scores"].items() if settings["set"] == one["set"]]
    return others + [other for other in reverse if (scores / "reverse_scores" / f"{other}.json").exists()]


def copied(folder: str, name: str, scores: Path) -> dict[str, Any]:
    """The content of results/FOLDER/NAME.json: the name, and the content of scores/FOLDER/NAME.json."""
    path = scores / folder / f"{name}.json"
    content = evidence.read(path)
    if content is None:
        raise UserError(f"{name} cannot be recorded without {path}; build it first")
    return {"name": name, **content}


def main(arguments: argparse.Namespace) -> None:
    params, name = load(), arguments.run
    blocks = ("runs", "decodings", *COPIED)
    valid = [each for block in blocks for each in params[block]]
    require_named(name, valid, "a run, a decoding, a value or a search of params.yaml")
    used = used_by(params, name, arguments.scores) if name in params["decodings"] else []
    stale = not_done(name, *used)  # their scores may be those of an earlier training or of other settings
    for other in (name, *used):
        if other in stale:
            why = stale[other] if other == name else f"its facts use {other}, and {stale[other]}"
            raise UserError(f"{name} cannot be recorded: {why}; `snakemake --cores all` brings it up to date")
    if name in params["decodings"]:
        path = arguments.results / "decodings" / f"{name}.json"
        facts = decoder_facts.facts(params, arguments.scores, arguments.sets)
        content = decoding_record(name, arguments.scores, arguments.times, facts)
    elif folder := next((folder for block, folder in COPIED.items() if name in params[block]), None):
        path, content = arguments.results / folder / f"{name}.json", copied(folder, name, arguments.scores)
    else:
        path = arguments.results / f"{name}.json"
        content = record(params, name, arguments.scores, arguments.times, arguments.sets)
    write_json(path, content)
    print(f"{path} written; commit it. Every later report shows it")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="record", description=__doc__.split("\n\n")[0])
    parser.add_argument("run", help="a run, a decoding, a value or a search of params.yaml")
    parser.add_argument("--scores", type=Path, default=Path("scores"))
    parser.add_argument("--times", type=Path, default=Path("work/times"))
    parser.add_argument("--sets", type=Path, default=Path("data/sets"))
    parser.add_argument("--results", type=Path, default=Path("results"))
    stage.run(main, parser)
