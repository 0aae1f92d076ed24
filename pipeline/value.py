"""Train the value of a model's prefixes and measure its calibration: one line of `values` in params.yaml.

    python -m pipeline.value NAME --model models/RUN/average --text data/CORPUS/normalised --dev data/sets/CORPUS-dev \\
        --out models/values/NAME --scores scores/values/NAME.json --times work/times/values/NAME.json

The model translates training sentences by sampling. The head learns the final score of each sample from the decoder's
output at each of its prefixes. Writes a copy of the model folder with the head, value.safetensors, which decoders use as
the model `values/NAME`; and the calibration on samples of dev.
"""

import argparse
import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from pipeline.corpora.evaluation import EvaluationSet, read_lines
from pipeline.corpora.sets import require_aligned
from pipeline.scoring.calibration import calibration
from pipeline.scoring.sentences import sentence_score
from pipeline.settings.machine import machine
from pipeline.settings.params import languages, load
from pipeline.settings.values import ValueRun, value_run
from pipeline.workflow import hardware, stage
from pipeline.workflow.progress import Progress
from pipeline.workflow.times import write_times
from transformer import value
from transformer.config.reading import UserError
from transformer.config.vocabulary import BOS, EOS
from transformer.decoders.registry import decoder_of
from transformer.decoding import batches_by_length
from transformer.files import atomic_folder, write_json
from transformer.layout import Rows, pad
from transformer.translator import Translator


@dataclass(frozen=True)
class Prefixes:
    """All prefixes of some samples: the decoder's output, the number of tokens, and the final score of the sample."""

    hidden_MD: Tensor
    length_M: np.ndarray
    score_M: Tensor


def evenly(lines: Sequence[str], count: int) -> list[str]:
    """`count` of the lines, evenly spaced, or all if there are no more."""
    kept = min(count, len(lines))
    return [lines[number * len(lines) // kept] for number in range(kept)]


def training_text(folder: Path, pair: tuple[str, str], count: int) -> tuple[list[str], list[str]]:
    """At most `count` sentences of the training text with their references, evenly spaced."""
    paths = [folder / f"train.{language}" for language in pair]
    source, target = map(read_lines, paths)
    require_aligned(paths[0], len(source), paths[1], len(target))
    return evenly(source, count), evenly(target, count)


def prefixes(translator: Translator, text: tuple[list[str], list[str]], run: ValueRun, name: str) -> Prefixes:
    """Sample translations of the source lines and score them by the references."""
    lines, references = text
    with Progress(total=sum(map(bool, lines)), desc=f"samples of {name}", unit="sentence") as bar:
        found = translator.n_best(lines, name, run.samples.number, bar.update, decoder_of(run.samples))
    sources = translator.encode(lines)
    rows = [(sources[n], sample, references[n]) for n, samples in enumerate(found) if sources[n] for sample in samples]
    if not rows:
        raise UserError(f"{name} has no sentences; a value learns from at least one")
    score = sentence_score(run.settings.score)
    texts = translator.text([sample for _, sample, _ in rows])
    scores = [score(translation, reference) for translation, (*_, reference) in zip(texts, rows)]
    targets = [whole(source, sample.ids, translator.config.extra_length) for source, sample, _ in rows]
    hidden = states(translator, [source for source, *_ in rows], targets)
    lengths = [len(target) for target in targets]
    return Prefixes(
        torch.cat(hidden),
        np.concatenate([np.arange(length) for length in lengths]),
        torch.tensor(scores).repeat_interleave(torch.tensor(lengths)),
    )


def whole(source: Sequence[int], ids: Sequence[int], extra_length: int) -> list[int]:
    """The sample from BOS on. A sample that its limit cut has no EOS."""
    return [BOS, *ids, *([EOS] if len(ids) < len(source) + extra_length else [])]


@torch.inference_mode()
def states(translator: Translator, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[Tensor]:
    """The decoder's output at each position of each target, [T, D], in float32, on the CPU."""
    results: list[Tensor] = [torch.empty(0)] * len(sources)
    lengths = [max(map(len, pair)) + 1 for pair in zip(sources, targets)]
    for numbers in batches_by_length(lengths, translator.config.batch_tokens):
        source = pad([[*sources[number], EOS] for number in numbers]).to(translator.device)
        target = pad([targets[number] for number in numbers]).to(translator.device)
        hidden_BTD = translator.model.hidden(Rows(source), Rows(target)).float().cpu()
        for number, hidden_TD in zip(numbers, hidden_BTD):
            results[number] = hidden_TD[: len(targets[number])].clone()
    return results


def main(arguments: argparse.Namespace) -> None:
    params, started = load(), time.monotonic()
    run = value_run(params, arguments.name)
    device = hardware.torch_device(machine(params), run.samples.config.threads)
    translator = Translator.load(arguments.model, device, **vars(run.samples.config))
    pair = languages(params, run.corpus)
    train = prefixes(translator, training_text(arguments.text, pair, run.settings.sentences), run, "train")
    head = value.trained(train.hidden_MD, train.score_M, run.settings)
    dev_lines = EvaluationSet.open(arguments.dev).lines("normalised")
    dev = prefixes(translator, dev_lines, run, "dev")
    made = {"model": run.model, "settings": asdict(run.settings), "samples": run.samples.description()}
    with atomic_folder(arguments.out) as folder:
        for path in sorted(path for path in arguments.model.iterdir() if path.name != value.VALUE):
            shutil.copyfile(path, folder / path.name)
        value.save(head, folder / value.VALUE, made)
    measured = calibration(head(dev.hidden_MD).numpy(), dev.score_M.numpy(), dev.length_M)
    loss = F.cross_entropy(head.logits(dev.hidden_MD), head.target(dev.score_M)).item()
    write_json(arguments.scores, {**made, "prefixes": len(train.score_M), "dev": {"loss": round(loss, 6), **measured}})
    times = {"seconds": round(time.monotonic() - started, 3), **hardware.hardware(device)}
    write_times(arguments.times, arguments.scores, times)
    print(f"{arguments.scores}: correlation {measured['correlation']} with the final {run.settings.score} on dev")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="value", description=__doc__.split("\n\n")[0])
    parser.add_argument("name", help="a value of params.yaml")
    for name in ("--model", "--text", "--dev", "--out", "--scores", "--times"):
        parser.add_argument(name, type=Path, required=True)
    stage.run(main, parser)
