"""Time of normalise, learn_bpe's sampling and binarise, compared with SentencePiece's batch encoding of the same text.

    python -m benchmarks.text SOURCE TARGET [--pairs 100000 800000] [--alone 8000000] [--deduplicate] [--threads 2]

SOURCE and TARGET are a parallel corpus, as plain text, .gz or .xz. For each size, a corpus of that many pairs is made from
it. If it has fewer pairs, variations of its pairs are added (benchmarks/corpus.py). The stages, run with the commands of
the workflow, and SentencePiece run one after the other, each in its own process. At the sizes of --alone SentencePiece does
not run.

Prints tables of times and ratios, of memory and disk space, and of the whole of learn_bpe compared with SentencePiece's
training on all lines (learn_bpe takes at most `sample_pairs`). With three sizes or more, fits a straight line to the
CPU time by size, and prints it with its extrapolation to WMT14. SentencePiece's time of encoding includes only its batch
calls on text in memory, with lists (the default) and arrays (the fastest) as results. All other times include the start of
Python and reading; those of the stages also include writing. 8 million pairs need 7 GB under TMPDIR.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from ruamel.yaml import YAML

from benchmarks.corpus import write_corpus
from pipeline.settings.params import PARAMS, load
from pipeline.workflow import stage as command_line
from transformer.config.reading import UserError

ROOT = Path(__file__).parent.parent
LANGUAGES = ("xx", "yy")
WMT14 = {"EN-DE": 4_500_000, "EN-FR": 40_800_000}  # pairs


class Cost(NamedTuple):
    """The resources that a process used."""

    seconds: float
    processor: float  # seconds of CPU time, over all threads
    peak: float  # MB of memory


Result = dict[str, Cost]
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
import sys
from pathlib import Path
from tqdm import tqdm
from pipeline.learn_bpe import sample
for path in ("normalised/train.xx", "normalised/train.yy"):
    for block in sample(Path(path), int(sys.argv[1]), tqdm(disable=True)):
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
    "normalise": "--raw raw --test raw --text text.json --sets sets --out normalised --report normalise.json",
    "learn_bpe": "--text normalised --out vocabulary.model",
    "binarise": "--text normalised --vocabulary vocabulary.model --out data --report data.json",
}


def write_params(path: Path, threads: int, deduplicate: bool) -> dict[str, Any]:
    """Write params.yaml with a corpus `bench`. Returns the settings of its vocabulary."""
    params = load(ROOT / PARAMS)
    download = next(iter(params["corpora"].values()))["download"]
    vocabulary = {"pieces": 32000, "threads": threads}
    params["corpora"]["bench"] = {"languages": list(LANGUAGES), "download": download}
    params["corpora"]["bench"] |= {"normalise": {"deduplicate": deduplicate}, "vocabulary": vocabulary}
    with open(path, "w", encoding="utf-8") as file:
        YAML(typ="safe").dump(params, file)
    return params["base"]["vocabulary"] | vocabulary


def measured(command: list[str], folder: Path) -> tuple[Cost, str]:
    """The cost and the output of a command run in `folder`."""
    start = time.perf_counter()
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True) as child,
    ):
        assert child.stdout is not None  # a pipe
        output = child.stdout.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - start
        if child.returncode:
            errors.seek(0)
            raise UserError(f"{' '.join(command)[:80]}: {errors.read()[-2000:]}")
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6
    return Cost(seconds, usage.ru_utime + usage.ru_stime, peak), output


def measure(paths: list[Path], pairs: int, arguments: argparse.Namespace, peer: bool) -> tuple[Result, float]:
    """The cost of each stage at this size, that of SentencePiece if `peer`, and the disk space in GB."""
    with tempfile.TemporaryDirectory() as name:
        folder, result, threads = Path(name), {}, str(arguments.threads)
        write_corpus(paths, pairs, folder / "raw")
        vocabulary = write_params(folder / PARAMS, arguments.threads, arguments.deduplicate)
        python, size, sample = [sys.executable, "-c"], str(vocabulary["pieces"]), str(vocabulary["sample_pairs"])
        for stage, options in STAGES.items():
            result[stage], _ = measured([sys.executable, "-m", f"pipeline.{stage}", "bench", *options.split()], folder)
            if stage == "learn_bpe":
                result["sampling"], _ = measured([*python, SAMPLE, sample], folder)
            if stage == "learn_bpe" and peer:
                result["training"], _ = measured([*python, TRAIN, size, threads], folder)
                for kind in ("lists", "arrays"):
                    cost, seconds = measured([*python, ENCODE, threads, kind], folder)
                    result[kind] = cost._replace(seconds=float(seconds))
        return result, sum(path.stat().st_size for path in folder.rglob("*")) / 1e9


OURS = ("normalise", "sampling", "binarise")
ENCODING = ["pairs", *OURS, "together", "SentencePiece, lists", "arrays", "ratio to lists", "to arrays"]
MEMORY = ["pairs (peak MB of:)", "normalise", "sampling", "binarise", "learn_bpe", "SentencePiece, lists", "arrays", "disk"]
LEARNING = ["pairs", "learn_bpe", "SentencePiece's training", "ratio", "peak MB, learn_bpe", "SentencePiece"]


def encoding_row(pairs: int, result: Result) -> list[str]:
    """A row of the table with the header ENCODING."""
    times = [result[key].seconds for key in OURS]
    peers = [result[key].seconds for key in ("lists", "arrays") if key in result]
    ratios = [f"{sum(times) / seconds:.2f}" for seconds in peers]
    return [f"{pairs:,}", *map("{:.1f} s".format, [*times, sum(times), *peers]), *ratios]


def memory_row(pairs: int, result: Result, disk: float) -> list[str]:
    """A row of the table with the header MEMORY."""
    peaks = [f"{result[key].peak:.0f}" if key in result else "–" for key in (*OURS, "learn_bpe", "lists", "arrays")]
    return [f"{pairs:,}", *peaks, f"{disk:.1f} GB"]


def learning_row(pairs: int, result: Result) -> list[str]:
    """A row of the table with the header LEARNING."""
    ours, theirs = result["learn_bpe"], result.get("training")
    cells = [f"{pairs:,}", f"{ours.seconds:.1f} s"]
    if theirs is None:
        return [*cells, "–", "–", f"{ours.peak:.0f}"]
    ratio = f"{ours.seconds / theirs.seconds:.2f}"
    return [*cells, f"{theirs.seconds:.1f} s", ratio, f"{ours.peak:.0f}", f"{theirs.peak:.0f}"]


def growth(results: dict[int, Result]) -> str:
    """A line fitted to the CPU time of normalise, sampling and binarise. The fit minimises relative errors."""
    pairs = np.array(list(results), dtype=float)
    seconds = np.array([sum(result[key].processor for key in OURS) for result in results.values()])
    slope, start = np.polyfit(pairs, seconds, 1, w=1 / seconds)
    line = start + slope * pairs
    fit = 1 - ((seconds - line) ** 2).sum() / ((seconds - seconds.mean()) ** 2).sum()
    exponent, _ = np.polyfit(np.log(pairs), np.log(seconds - start), 1)
    plan = ", ".join(f"{name} {(start + slope * size) / 60:.1f} minutes" for name, size in WMT14.items())
    return (
        f"CPU time of normalise, sampling and binarise: {', '.join(f'{s:.1f}' for s in seconds)} s; {start:.2f} s and "
        f"{slope * 1e6:.1f} microseconds a pair (R^2 {fit:.5f}, no point more than {abs(seconds / line - 1).max():.1%} "
        f"off); without the constant part, it grows as pairs^{exponent:.3f}. WMT14 by this line: {plan}."
    )


def table(header: list[str], rows: list[list[str]]) -> str:
    full = [header, ["---"] * len(header), *(row + ["–"] * (len(header) - len(row)) for row in rows)]
    return "\n".join("| " + " | ".join(row) + " |" for row in full)


def main(arguments: argparse.Namespace) -> None:
    results, disks = {}, {}
    if missing := [str(path) for path in (arguments.source, arguments.target) if not path.is_file()]:
        raise UserError(f"{' and '.join(missing)}: no such file")
    for pairs in sorted({*arguments.pairs, *arguments.alone}):
        print(f"measuring {pairs:,} pairs", file=sys.stderr, flush=True)
        paths, peer = [arguments.source, arguments.target], pairs in arguments.pairs
        results[pairs], disks[pairs] = measure(paths, pairs, arguments, peer)
        print(results[pairs], file=sys.stderr, flush=True)
    print(table(ENCODING, [encoding_row(*item) for item in results.items()]), end="\n\n")
    print(table(MEMORY, [memory_row(*item, disks[item[0]]) for item in results.items()]), end="\n\n")
    if len(results) > 2:
        print(growth(results), end="\n\n")
    print(table(LEARNING, [learning_row(*item) for item in results.items()]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="benchmarks.text", description=__doc__.split("\n")[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--pairs", type=int, nargs="*", default=[100_000, 200_000, 400_000, 800_000])
    parser.add_argument("--alone", type=int, nargs="*", default=[], help="sizes at which SentencePiece does not run")
    parser.add_argument("--deduplicate", action="store_true", help="drop repeated pairs")
    parser.add_argument("--threads", type=int, default=2)
    command_line.run(main, parser, checked=False)
