"""Collect the results of decodings and of extras, such as searches, into one small file each, which git tracks.

    python -m pipeline.collect --scores scores --sets data/sets --out results

Reads the score files of the decodings and entries of extras that params.yaml selects, and the evaluation sets.

Writes decodings/NAME.json, and NAME.json in the folder of each extra, in --out; the files of other entries stay. The
file of a decoding also holds facts besides its scores, some of which depend on other decodings of the same set, such as its
search errors.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd

from pipeline.running import stage
from pipeline.scoring.bleu import HEADLINE, headline, measures, resampled
from pipeline.scoring.intervals import within
from pipeline.scoring.of_sets import aligned
from pipeline.settings.params import load
from pipeline.settings.registry import parts
from pipeline.settings.scoring import scoring
from pipeline.text.evaluation import EvaluationSet
from transformer.files import read_json, write_json

SAME = 1e-3  # log-probabilities closer than this count as equal, because rounding varies between computations
PAPERS = ("beam", "penalty", "alpha", "extra_length", "regulariser", "ends", "no_repeat_ngram", "finished")
Facts = dict[str, Any]
"""Facts about a decoding, as results/ keeps them. None means that a fact is not known.

`log_prob`          the mean log-probability of a translation by the model
`length_ratio`      tokens of the translations / tokens of the references, as sacreBLEU counts them
`empty`             empty translations
`unfinished`        sentences in which the search used up its budget
`calls`             prefixes that the model scored, per sentence
`search_errors`     of the sentences that exact search finished: the share with a more probable translation
`source_log_prob`   the mean log-probability of a source given its translation, by `reverse_scores`
`p`                 two-sided, of the difference from `base`'s beam search; None also if all translations are equal
"""


def facts_of(params: Mapping[str, Any], scores: Path, sets: Path) -> dict[str, Facts]:
    """The facts of the decodings of params.yaml, by name."""
    made = {name: read_json(scores / "decodings" / name / "decoding.json") for name in params["decodings"]}
    files = [read_json(scores / "reverse_scores" / f"{name}.json") for name in params.get("reverse_scores", ())]
    reverse = {name: fmean(values) for file in files for name, values in file["decodings"].items()}
    found = dict[str, Facts]()
    for group in dict.fromkeys((each["model"], each["set"]) for each in made.values()):
        systems = {name: each for name, each in made.items() if (each["model"], each["set"]) == group}
        found |= of_group(params, systems, scores / "decodings", EvaluationSet.open(sets / group[1]), reverse)
    return {name: found[name] for name in made}


def of_group(
    params: Mapping[str, Any], systems: Mapping[str, Any], folder: Path, chosen: EvaluationSet, reverse: Mapping[str, float]
) -> dict[str, Facts]:
    """The facts of decodings of one set by one model: `systems` has their decoding.json, `folder` their other files.

    `reverse` has the source log-probabilities that are known.
    """
    settings = {name: each["settings"]["decoding"] for name, each in systems.items()}
    exactly = [name for name in systems if settings[name].get("decoder") == "exact"]
    sentences = {name: pd.DataFrame(read_json(folder / name / "sentences.json")) for name in systems}
    reference, written = chosen.path("raw", "target"), list(map(bool, chosen.lines("raw")[0]))
    finished = [sentences[name][written].query("finished")["log_prob"] for name in exactly]
    exact = pd.concat(finished).groupby(level=0).last() if finished else pd.Series(dtype=float)  # by line number
    lines = {name: aligned(folder / name / "translation.txt", reference) for name in systems}
    metric = measures(chosen.languages[1])[headline(chosen.languages[1])]
    statistics = {name: metric.statistics(*each) for name, each in lines.items()}
    p_values = significance(params, settings, statistics)
    found = {}
    for name, each in systems.items():
        ours, theirs = statistics[name].sum(axis=0)[:2]
        log_probs, known = sentences[name]["log_prob"], name not in exactly and len(exact)
        found[name] = {
            "log_prob": rounded(log_probs.mean()),
            "length_ratio": rounded(ours / theirs) if theirs else None,
            "empty": lines[name][0].count(""),
            "unfinished": int((~sentences[name]["finished"]).sum()),
            "calls": rounded(each["calls"] / len(log_probs)),
            "search_errors": rounded((exact > log_probs[exact.index] + SAME).mean()) if known else None,
            "source_log_prob": rounded(reverse.get(name)),
            "p": p_values.get(name),
        }
    return found


def rounded(value: float | None) -> float | None:
    """Round a fact to four decimals, as the log-probabilities in sentences.json are rounded."""
    return None if value is None else round(float(value), 4)


def significance(
    params: Mapping[str, Any], systems: Mapping[str, Any], statistics: Mapping[str, np.ndarray]
) -> dict[str, float | None]:
    """The p-values of the other systems against the beam search with the paper's values, the settings of `base`.

    `systems` has the settings of each. They have one model, so the seed is the same.
    """
    paper = {"decoder": "beam", **params["base"]["decoders"]["beam"], **params["base"]["decoding"]}
    same = [name for name in systems if all(systems[name].get(key) == paper[key] for key in ("decoder", *PAPERS))]
    settings = scoring(params)
    if not same or not settings.bootstrap or len(systems) == 1:
        return {}
    scores = {name: resampled(measures("")[HEADLINE], rows, settings) for name, rows in statistics.items()}
    others = [name for name in systems if not np.array_equal(scores[name], scores[same[0]])]
    return {name: within(scores[name], scores[same[0]]).p for name in others}


def main(arguments: argparse.Namespace) -> None:
    params, scores = load(), arguments.scores
    copied = {each.FOLDER: each.BLOCKS for each in parts("pipeline.extras.*.section")}
    for folder in ("decodings", *copied):
        (arguments.out / folder).mkdir(parents=True, exist_ok=True)
    for name, facts in facts_of(params, scores, arguments.sets).items():
        made, score = (read_json(scores / f"decodings/{name}/{part}.json") for part in ("decoding", "score"))
        head = {"name": name, "model": made["model"], "set": made["set"]}
        write_json(arguments.out / f"decodings/{name}.json", {**head, "decoding": made, "score": score, "facts": facts})
    for folder, blocks in copied.items():
        for name in (name for block in blocks for name in params[block]):
            content = {"name": name, **read_json(scores / folder / f"{name}.json")}
            write_json(arguments.out / folder / f"{name}.json", content)


if __name__ == "__main__":
    stage.script(main, "collect", __doc__, "scores sets out")
