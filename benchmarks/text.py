"""Text: normalise + learn_bpe's sampling + binarise, beside SentencePiece's own batch encoding of the same text.

    python -m benchmarks.text SOURCE TARGET [--pairs 100000 800000] [--threads 2]

SOURCE and TARGET are a parallel corpus, plain or .gz or .xz. For each number of pairs a corpus of so many is made of
it; beyond its end it is repeated, with new words in every tenth pair. Then the stages run on it one after the other, as
the commands that the workflow runs, and SentencePiece between them, each in a process of its own; the processor is
never shared among them. Prints a table of seconds, ratios and peak memory for Markdown, how time grows with size, and
the same for the whole of learn_bpe beside SentencePiece's own training on the same lines.

SentencePiece's time is that of its batch calls alone, on text that is in memory already, into lists (its default) and
into arrays (its fastest); ours includes starting Python, reading and writing.
"""

import argparse
import gzip
import lzma
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np
from ruamel.yaml import YAML

from pipeline.params import PARAMS, load

ROOT = Path(__file__).parent.parent
OPENERS = {".gz": gzip.open, ".xz": lzma.open}
LANGUAGES = ("xx", "yy")
Result = dict[str, tuple[float, float]]  # seconds and peak MB of each process
ENCODE = """
import sys, time
from transformer.vocabulary import Vocabulary
encode, seconds = Vocabulary("vocabulary.model").processor.Encode, 0.0
for path in ("normalised/train.xx", "normalised/train.yy"):
    with open(path, encoding="utf-8", newline="\\n") as file:
        while lines := file.readlines(1 << 22):
            lines, start = [line[:-1] for line in lines], time.perf_counter()
            encode(lines, num_threads=int(sys.argv[1]), return_type={"lists": int, "arrays": "numpy"}[sys.argv[2]])
            seconds += time.perf_counter() - start
print(seconds)
"""
SAMPLE = """
from pathlib import Path
from tqdm import tqdm
from pipeline.learn_bpe import sample
for path in ("normalised/train.xx", "normalised/train.yy"):
    for block in sample(Path(path), int(__import__("sys").argv[1]), tqdm(disable=True)):
        pass
"""
TRAIN = """
import io, itertools, sys
import sentencepiece
lines = itertools.chain(*(open(f"normalised/train.{side}", "rb") for side in ("xx", "yy")))
sentencepiece.SentencePieceTrainer.Train(
    sentence_iterator=lines, model_writer=io.BytesIO(), model_type="bpe", vocab_size=int(sys.argv[1]), minloglevel=2,
    byte_fallback=True, character_coverage=0.9999, normalization_rule_name="identity", num_threads=int(sys.argv[2]))
"""
STAGES = {
    "normalise": ["--raw", "raw", "--out", "normalised", "--report", "normalise.json"],
    "learn_bpe": ["--text", "normalised", "--out", "vocabulary.model"],
    "binarise": ["--text", "normalised", "--vocabulary", "vocabulary.model", "--out", "data", "--report", "data.json"],
}


def pairs_of(paths: list[Path]) -> Iterator[tuple[bytes, ...]]:
    """The corpus again and again; from the second time on, every tenth pair ends in a word of its own."""
    for turn in count():
        files = [OPENERS.get(path.suffix, open)(path, "rb") for path in paths]
        for number, pair in enumerate(zip(*files)):
            new = b" %d\n" % (turn * 10**9 + number) if turn and number % 10 == 0 else b"\n"
            yield tuple(line.rstrip(b"\n") + new for line in pair)
        for file in files:
            file.close()


def write_corpus(paths: list[Path], pairs: int, folder: Path) -> None:
    """`pairs` training pairs; dev and test are needed, but nothing is to be measured on them."""
    folder.mkdir(parents=True)
    for name, size in (("train", pairs), ("dev", 10), ("test", 10)):
        with open(folder / f"{name}.xx", "wb") as source, open(folder / f"{name}.yy", "wb") as target:
            for source_line, target_line in islice(pairs_of(paths), size):
                source.write(source_line)
                target.write(target_line)


def write_params(path: Path, threads: int) -> dict[str, Any]:
    """The project's settings with a corpus `bench` that differs from `base` in nothing but the threads."""
    params = load(ROOT / PARAMS)
    download = next(iter(params["corpora"].values()))["download"]
    vocabulary = {"size": 32000, "threads": threads}
    params["corpora"]["bench"] = {"languages": list(LANGUAGES), "download": download}
    params["corpora"]["bench"] |= {"normalise": {}, "vocabulary": vocabulary}
    with open(path, "w", encoding="utf-8") as file:
        YAML(typ="safe").dump(params, file)
    return params["base"]["vocabulary"] | vocabulary


def measured(command: list[str], folder: Path) -> tuple[float, float, str]:
    """Seconds, peak memory in MB and output of a command run in `folder`."""
    start = time.perf_counter()
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as child,
    ):
        output = child.stdout.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - start
        if child.returncode:
            errors.seek(0)
            sys.exit(f"{' '.join(command)[:80]}: {errors.read()[-2000:]}")
    return seconds, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6, output


def measure(paths: list[Path], pairs: int, threads: int) -> Result:
    """(seconds, MB) of each stage and of SentencePiece at this size."""
    with tempfile.TemporaryDirectory() as name:
        folder, result = Path(name), {}
        write_corpus(paths, pairs, folder / "raw")
        vocabulary = write_params(folder / PARAMS, threads)
        python, size, sample = [sys.executable, "-c"], str(vocabulary["size"]), str(vocabulary["sample_pairs"])
        for stage, arguments in STAGES.items():
            command = [sys.executable, "-m", f"pipeline.{stage}", "bench", *arguments]
            result[stage] = measured(command, folder)[:2]
            if stage == "learn_bpe":
                result["sampling"] = measured([*python, SAMPLE, sample], folder)[:2]
                result["training"] = measured([*python, TRAIN, size, str(threads)], folder)[:2]
                for kind in ("lists", "arrays"):
                    _, memory, seconds = measured([*python, ENCODE, str(threads), kind], folder)
                    result[kind] = float(seconds), memory
        return result


OURS = ("normalise", "sampling", "binarise")
ENCODING = ["pairs", *OURS, "together", "SentencePiece, lists", "arrays", "ratio", "ratio", "peak MB", "SentencePiece"]
LEARNING = ["pairs", "learn_bpe", "SentencePiece's training", "ratio", "peak MB", "SentencePiece"]


def encoding_row(pairs: int, result: Result) -> list[str]:
    """The cells of one size, under ENCODING."""
    times = [result[key][0] for key in OURS]
    times += [sum(times), result["lists"][0], result["arrays"][0]]
    ratios = [times[3] / times[4], times[3] / times[5]]
    peaks = [max(result[key][1] for key in OURS), min(result["lists"][1], result["arrays"][1])]
    return [f"{pairs:,}", *map("{:.1f} s".format, times), *map("{:.2f}".format, ratios), *map("{:.0f}".format, peaks)]


def learning_row(pairs: int, result: Result) -> list[str]:
    """The cells of one size, under LEARNING."""
    (ours, our_peak), (theirs, their_peak) = result["learn_bpe"], result["training"]
    return [
        f"{pairs:,}",
        f"{ours:.1f} s",
        f"{theirs:.1f} s",
        f"{ours / theirs:.2f}",
        f"{our_peak:.0f}",
        f"{their_peak:.0f}",
    ]


def show(cells: list[str]) -> None:
    print("| " + " | ".join(cells) + " |", flush=True)


def main(arguments: argparse.Namespace) -> None:
    results = {}
    show(ENCODING)
    show(["---"] * len(ENCODING))
    for pairs in arguments.pairs:
        results[pairs] = measure([arguments.source, arguments.target], pairs, arguments.threads)
        show(encoding_row(pairs, results[pairs]))
    if len(results) > 1:
        times = [sum(result[key][0] for key in OURS) for result in results.values()]
        exponent, _ = np.polyfit(np.log(list(results)), np.log(times), 1)
        print(f"\nThe three together grow as pairs^{exponent:.2f}.")
    print()
    show(LEARNING)
    show(["---"] * len(LEARNING))
    for pairs, result in results.items():
        show(learning_row(pairs, result))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="benchmarks.text", description=__doc__.split("\n")[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--pairs", type=int, nargs="+", default=[100_000, 200_000, 400_000, 800_000])
    parser.add_argument("--threads", type=int, default=2)
    main(parser.parse_args())
