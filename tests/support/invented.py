"""Invented score files, and the result files that the stages make of them."""

import argparse
import copy
import json
from pathlib import Path

import numpy as np
import pytest

from pipeline import report, result
from pipeline.report import files_of
from pipeline.reporting import changes, run_tables
from pipeline.reporting import studies as studies_of
from pipeline.reporting.results import Results, load_results
from pipeline.running.times import write_times
from pipeline.settings.params import languages
from pipeline.settings.scoring import ScoringConfig
from pipeline.settings.selection import bpe_dropout, run_settings
from tests.support.packed import write_evaluation_set
from transformer.files import digest, write_json, write_lines

COMMIT = "abc123" * 6 + "abcd-dirty"
SENTENCE = ("A well-known <b>star</b> & co.", "Ein <script>alert(1)</script> Stern")
REFERENCES = [f"Der Mann sieht {number} alte Hunde im Garten." for number in range(60)]
MEASURES = tuple(run_tables.MEASURES)


def worsened(every: int, seed: int = 1) -> list[str]:
    """The references with another word in each sentence whose number is a multiple of `every`; seeds differ a little."""
    lines = [line.replace("Hunde", "Katzen") if number % every == 0 else line for number, line in enumerate(REFERENCES)]
    for number in range(7, 7 + 8 * (seed - 1), 8):
        lines[number] = lines[number].replace("Garten", "Haus")
    return lines


def metrics(bleu: float) -> dict:
    cells = {
        name: {"score": bleu + place, "low": bleu + place - 1, "high": bleu + place + 1.5, "signature": f"tok:{name}|v:9"}
        for place, name in enumerate(MEASURES)
    }
    return {"pairs": 10, "metrics": cells}


class Invented:
    """A folder with invented score files, and the result files that the stages make of them."""

    def __init__(self, params: dict, folder: Path) -> None:
        self.params, self.folder = copy.deepcopy(params), folder
        self.params |= {"runs": {}, "studies": {}}
        self.scores, self.sets, self.results = (folder / name for name in ("scores", "sets", "results"))

    def study(self, name: str, runs: dict, **more: dict) -> None:
        self.params["studies"][name] = {"runs": runs, **more}

    def write(self, runs: dict, bleu: float = 30.0, every: int = 5, loss: float = 2.0) -> None:
        """Write the score files of runs and collect their results. Dev is 2 BLEU below test for the last checkpoint."""
        for run, entry in runs.items():
            params = {**self.params, "runs": {run: entry}}
            corpus, model, training = run_settings(params, run)
            folder, settings = self.scores / run, {"model": vars(model), "training": vars(training)}
            sums = {"settings": settings, "settings_sha256": digest(settings), "data_sum": "d0" * 32}
            write_json(folder / "training.json", {"steps": training.steps, "parameters": 63_081_472, **sums})
            counts = {"training_flops": 3e15, "training_flops_causal_half": 2e15, "components": {"cross_attention": 1e15}}
            write_json(folder / "flops.json", {"analytic": counts})
            of_dev = {"last": metrics(bleu - 2), "average": metrics(bleu - 1)}
            scores = {"dev": of_dev, "test": {"average": metrics(bleu)}}
            scores |= {"test_filtered": {"average": metrics(bleu + 0.25)}} if corpus.startswith("wmt14") else {}
            write_json(folder / "score.json", scores)
            curve = [{"step": step, "loss": 9 - step / 300, "learning_rate": 1e-4} for step in range(1, 701)]
            curve += [{"step": step, "dev_loss": 8 - step / 300} for step in range(100, 701, 100)]
            write_lines(folder / "training.jsonl", map(json.dumps, curve))
            self.write_translations(folder / "translations", loss)
            write_lines(folder / "translations/dev.last.txt", worsened(every, training.seed))
            write_lines(folder / "translations/test.average.txt", worsened(every, training.seed))
            self.write_times(run, 5025.2, COMMIT)
            made = {"languages": languages(params, corpus), "bpe_dropout": bpe_dropout(params, corpus)}
            write_json(self.scores / f"corpora/{corpus}/binarise.json", made)
            for name in ("dev", "test"):
                sources = [*SENTENCE, *(f"source {number}" for number in range(2, len(REFERENCES)))]
                write_evaluation_set(self.sets / f"{corpus}-{name}", corpus, raw=(sources, REFERENCES))
            self.collect(run, entry)

    def write_translations(self, folder: Path, loss: float) -> None:
        last = {"perplexity": loss, "accuracy": 1 / loss, "calibration_error": 0.01}
        description = {"dev": {"last": last, "average": {"perplexity": loss - 0.25}}, "settings": {"averaging": {}}}
        bins = [{"probability": 0.25, "accuracy": 0.2, "tokens": 9}, {"probability": 0.75, "accuracy": 0.8, "tokens": 3}]
        write_json(folder / "translations.json", description | {"reliability": {"dev.last": bins}})

    def write_attention(self, run: str, layers: int, heads: int) -> None:
        """Write the attention weights of a run. Their three pictures take longer than all others."""
        folder = self.scores / run / "translations"
        sentence = {"line": 1, "source": ["▁A", "▁<s", "&", "$x", "</s>"], "target": ["<s>", "▁Ein", "\"'"]}
        write_json(folder / "attention.json", {"sentences": [sentence]})
        shapes = {"encoder": (5, 5), "decoder": (3, 3), "cross": (3, 5)}
        arrays = {f"0.{kind}": np.full((layers, heads, *shape), 0.25, np.float16) for kind, shape in shapes.items()}
        np.savez_compressed(folder / "attention.npz", **arrays)

    def write_times(self, run: str, seconds: float, commit: str) -> None:
        made_on = {"hardware": "Tesla P100-SXM2-16GB", "gpus": 8, "precision": "float32", "commit": commit}
        training = {"seconds": seconds, "tokens_per_second": 1234.5, **made_on}
        write_times(self.folder / f"times/{run}/training.json", self.scores / run / "training.json", training)

    def collect(self, run: str, entry: dict) -> None:
        corpus = entry["corpus"]
        arguments = argparse.Namespace(run=run, scores=self.scores / run)
        arguments.corpus, arguments.dev = self.scores / f"corpora/{corpus}/binarise.json", self.sets / f"{corpus}-dev"
        arguments.test, arguments.out = self.sets / f"{corpus}-test", self.results / f"{run}.json"
        arguments.translation = self.results / f"translations/{run}.txt.bz2"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(result, "load", lambda: {**self.params, "runs": {run: entry}})
            result.main(arguments)
        report.keep_times([run], self.scores, self.folder / "times", self.results)

    def load(self) -> Results:
        return load_results(self.params, self.results)

    def files(self) -> dict[str, str]:
        return files_of(self.params, self.load(), self.scores, self.results, self.sets)

    def compared(self) -> changes.Comparison:
        results = self.load()
        return changes.comparison(studies_of.studies(self.params, results), results, ScoringConfig(bootstrap=200, seed=7))
