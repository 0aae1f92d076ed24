"""Train the value of a model's prefixes and measure its calibration: one line of `values` in params.yaml.

    python -m pipeline.extras.values.train_value NAME --model models/RUN/average --text data/CORPUS/normalised \\
        --dev data/sets/CORPUS-dev --out models/values/NAME --scores scores/values/NAME.json

The model translates training sentences with the decoder `samples`. Each translation (a sample) is scored against its
reference. A head learns to predict this score from the model's hidden state at each prefix of the sample. Writes a copy
of the model folder with the head (value.safetensors): the model `values/NAME`. Writes the calibration on samples of dev.
"""

import argparse
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from pipeline.extras.reverse_scores.reverse import source_probability
from pipeline.extras.values.settings import ValueRun, value_run
from pipeline.running import hardware, stage
from pipeline.running.progress import Progress
from pipeline.scoring.calibration import calibration
from pipeline.scoring.utilities import sentence_score
from pipeline.settings.machine import machine
from pipeline.settings.params import languages, load
from pipeline.text.evaluation import EvaluationSet, read_aligned
from transformer import value
from transformer.config.reading import UserError
from transformer.config.value import ValueConfig
from transformer.config.vocabulary import BOS, EOS
from transformer.decoders.registry import decoder_of
from transformer.decoding import batches_by_length
from transformer.files import atomic_folder, write_json
from transformer.layout import pad
from transformer.translator import Translator

Scores = Callable[[list[str], list[str], list[str]], list[float]]
"""Takes translations, their source lines and their references. Returns the score of each translation, from 0 to 1."""


@dataclass(frozen=True)
class Prefixes:
    """All prefixes of some samples: the decoder's output, the number of tokens, and the final score of the sample."""

    hidden_MD: Tensor
    length_M: np.ndarray
    score_M: Tensor


def evenly(lines: Sequence[str], count: int) -> list[str]:
    """`count` of the lines, evenly spaced, or all lines if there are fewer."""
    kept = min(count, len(lines))
    return [lines[number * len(lines) // kept] for number in range(kept)]


def prefixes(translator: Translator, text: Sequence[list[str]], run: ValueRun, scored: Scores, name: str) -> Prefixes:
    """Sample translations of the source lines, score them and return their prefixes."""
    lines, references = text
    with Progress(total=sum(map(bool, lines)), desc=f"samples of {name}", unit="sentence") as bar:
        found = translator.n_best(lines, name, run.samples.number, bar.update, decoder_of(run.samples))
    rows = [
        (sample, line, reference, ids)
        for samples, line, reference, ids in zip(found, lines, references, translator.encode(lines))
        if ids
        for sample in samples
    ]
    if not rows:
        raise UserError(f"{name} has no sentences; at least one is expected")
    samples, given, answers, sources = map(list, zip(*rows))
    scores = scored(translator.text(samples), given, answers)
    targets = [whole(ids, sample.ids, translator.config.extra_length) for ids, sample in zip(sources, samples)]
    hidden, lengths = states(translator, sources, targets), [len(target) for target in targets]
    return Prefixes(
        torch.cat(hidden),
        np.concatenate([np.arange(length) for length in lengths]),
        torch.tensor(scores).repeat_interleave(torch.tensor(lengths)),
    )


def whole(source: Sequence[int], ids: Sequence[int], extra_length: int) -> list[int]:
    """The ids of a sample with BOS and EOS. A sample that reached the length limit has no EOS."""
    return [BOS, *ids, *([EOS] if len(ids) < len(source) + extra_length else [])]


@torch.inference_mode()
def states(translator: Translator, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[Tensor]:
    """The decoder's output at each position of each target, [T, D], in float32, on the CPU."""
    results: list[Tensor] = [torch.empty(0)] * len(sources)
    lengths = [max(map(len, pair)) + 1 for pair in zip(sources, targets)]
    for numbers in batches_by_length(lengths, translator.config.batch_tokens):
        source = pad([[*sources[number], EOS] for number in numbers]).to(translator.device)
        target = pad([targets[number] for number in numbers]).to(translator.device)
        hidden_BTD = translator.model.hidden(source, target).float().cpu()
        for number, hidden_TD in zip(numbers, hidden_BTD):
            results[number] = hidden_TD[: len(targets[number])].clone()
    return results


def trained(hidden_MD: Tensor, score_M: Tensor, config: ValueConfig) -> value.ValueHead:
    """A head trained by Adam on prefixes and the final scores of their translations. The seed fixes its weights."""
    generator = torch.Generator().manual_seed(config.seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        head = value.ValueHead(hidden_MD.shape[1], config)
    optimiser = torch.optim.Adam(head.parameters(), config.learning_rate, fused=True)
    for step in range(config.steps):
        for group in optimiser.param_groups:
            group["lr"] = config.learning_rate * (1 - step / config.steps)
        chosen = torch.randint(len(score_M), (config.batch,), generator=generator)
        loss = F.cross_entropy(head.logits(hidden_MD[chosen]), head.target(score_M[chosen]))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return head.eval().requires_grad_(False)


def scores_of(run: ValueRun, arguments: argparse.Namespace, language: str, device: torch.device) -> Scores:
    """The score of samples: sentence BLEU or chrF in the target language, or the probability of the source by --reverse."""
    if run.reverse:
        reverse = Translator.load(arguments.reverse, device, **vars(run.samples.config) | {"precision": "float32"})
        return lambda texts, lines, _: source_probability(reverse, texts, lines)
    score = sentence_score(run.settings.score, language)
    return lambda texts, _, references: list(map(score, texts, references))


def main(arguments: argparse.Namespace) -> None:
    """The stages `train_value` and `train_reverse_value`."""
    params = load()
    run = value_run(params, arguments.name)
    config, pair = run.samples.config, languages(params, run.corpus)
    device = hardware.torch_device(machine(params), config.threads, config.arithmetic)
    scored = scores_of(run, arguments, pair[1], device)
    translator = Translator.load(arguments.model, device, **vars(config))
    train = read_aligned(*(arguments.text / f"train.{language}" for language in pair))
    text = [evenly(lines, run.settings.sentences) for lines in train]
    samples = prefixes(translator, text, run, scored, "train")
    head = trained(samples.hidden_MD, samples.score_M, run.settings)
    dev_lines = EvaluationSet.open(arguments.dev).lines("normalised")
    dev = prefixes(translator, dev_lines, run, scored, "dev")
    chosen = {"number": run.samples.number, **run.samples.description(translator.config)}
    made = {"model": run.model, "settings": asdict(run.settings), "samples": chosen}
    if run.reverse:
        made["reverse"] = run.reverse
    with atomic_folder(arguments.out) as folder:
        shutil.copytree(arguments.model, folder, copy_function=shutil.copyfile, dirs_exist_ok=True)
        value.save(head, folder / value.VALUE, made)
    measured = calibration(head(dev.hidden_MD).numpy(), dev.score_M.numpy(), dev.length_M)
    loss = F.cross_entropy(head.logits(dev.hidden_MD), head.target(dev.score_M)).item()
    write_json(arguments.scores, {**made, "prefixes": len(samples.score_M), "dev": {"loss": round(loss, 6), **measured}})
    print(f"{arguments.scores}: correlation {measured['correlation']} with the final {run.settings.score} on dev")


OPTIONS = "model text dev out scores"  # of both stages

if __name__ == "__main__":
    stage.script(main, "train_value", __doc__, OPTIONS, name="a line of `values` in params.yaml")
