"""Time of normalise and binarise, compared with SentencePiece's batch encoding of the same text.

    python -m benchmarks.text CORPUS [--threads 2]

CORPUS is a corpus of params.yaml whose data the workflow has made. The stages run with the commands of the workflow, into a
temporary folder, so their times include the start of Python, reading and writing. SentencePiece's time includes only its
calls, with lists of ids or arrays as results.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.provenance import shown
from pipeline.corpora.evaluation import read_lines
from pipeline.settings.params import load, require_named
from pipeline.workflow import stage
from transformer.config.reading import UserError
from transformer.vocabulary import Vocabulary

LINES = 20_000  # that SentencePiece encodes at a time


def stages(corpus: str, data: Path) -> dict[str, list[str]]:
    """The arguments of each stage. `{out}` stands for the temporary folder."""
    normalise = f"--raw {data}/raw --test {data}/test --out {{out}}/n --text {{out}}/t.json --sets {{out}}/s"
    normalise += " --report {out}/n.json"
    binarise = f"--text {data}/normalised --vocabulary {data}/vocabulary.model --out {{out}}/b --report {{out}}/b.json"
    return {"normalise": [corpus, *normalise.split()], "binarise": [corpus, *binarise.split()]}


def seconds_of_stage(name: str, arguments: list[str]) -> float:
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", f"pipeline.{name}", *(word.format(out=out) for word in arguments)]
        started = time.perf_counter()
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise UserError(done.stderr.strip().splitlines()[-1])
        return time.perf_counter() - started


def seconds_of_peer(vocabulary: Vocabulary, sides: list[list[str]], kind: Any, threads: int) -> float:
    started = time.perf_counter()
    for lines in sides:
        for start in range(0, len(lines), LINES):
            vocabulary.processor.Encode(lines[start : start + LINES], num_threads=threads, return_type=kind)
    return time.perf_counter() - started


def main(arguments: argparse.Namespace) -> None:
    params = load()
    require_named(arguments.corpus, list(params["corpora"]), "a corpus of params.yaml")
    data = Path("data", arguments.corpus)
    paths = [data / f"normalised/train.{code}" for code in params["corpora"][arguments.corpus]["languages"]]
    if not all(path.is_file() for path in paths):
        raise UserError(f"{paths[0].parent} is missing; `snakemake binarise@{arguments.corpus}` makes the data")
    vocabulary, sides = Vocabulary(data / "vocabulary.model"), [read_lines(path) for path in paths]
    times = {name: seconds_of_stage(name, words) for name, words in stages(arguments.corpus, data).items()}
    for label, kind in (("SentencePiece, lists", int), ("SentencePiece, arrays", "numpy")):
        times[label] = seconds_of_peer(vocabulary, sides, kind, arguments.threads)
    rows = [[name, f"{len(sides[0]):,}", f"{s:.2f}", f"{times['binarise'] / s:.2f}"] for name, s in times.items()]
    print(shown({"columns": ["what", "pairs", "seconds", "binarise / this"], "rows": rows}))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="benchmarks.text", description=__doc__.split("\n")[0])
    parser.add_argument("corpus")
    parser.add_argument("--threads", type=int, default=2)
    stage.run(main, parser, checked=False)
