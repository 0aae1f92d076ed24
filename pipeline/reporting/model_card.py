"""The model card of an exported model: its data, its settings, its scores and how to use it.

The scores of a model folder models/RUN/average are in results/RUN.json. They are shown only if the averaged steps and the
settings of the model are equal, and if the stages of a run of params.yaml are up to date.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from string import Template
from typing import Any

from pipeline.settings.addresses import DEMONSTRATION
from pipeline.settings.params import PARAMS, load
from pipeline.settings.score_files import content, within
from pipeline.workflow.hardware import commit
from transformer.checkpoint import read_settings
from transformer.config.decoding import DecodingConfig
from transformer.config.model import ModelConfig
from transformer.config.reading import read_saved
from transformer.config.text import TEXT, TextConfig
from transformer.files import digest, read_json

Known = Mapping[str, Any]  # the content of results/RUN.json

FROM_A_GRAMMAR = "sentences that a grammar of this project generated", "MIT"
MULTI30K = "[Multi30k](https://github.com/multi30k/dataset), image captions", "CC BY-NC-SA 4.0"
UNKNOWN = "the licence of the data is not recorded; it may limit the use of the model"
STEPS = {
    "entities": "character references (`&quot;`) are replaced by their characters",
    "nfc": "Unicode normalisation form C",
    "punctuation": "Moses' normalize-punctuation",
}

USE = {
    "transformer": """\
from transformer import Translator

print(Translator.from_pretrained(".")(["A sentence."]))""",
    "marian": """\
from transformers import MarianMTModel, MarianTokenizer

tokenizer, model = MarianTokenizer.from_pretrained("."), MarianMTModel.from_pretrained(".")
batch = tokenizer(["A sentence."], return_tensors="pt", padding=True)
longest = batch["input_ids"].shape[1] + $extra_length
print(tokenizer.batch_decode(model.generate(**batch, max_length=longest), skip_special_tokens=True))""",
    "ctranslate2": """\
import ctranslate2, sentencepiece

model = ctranslate2.Translator(".", compute_type="float32")
pieces = sentencepiece.SentencePieceProcessor(model_file="vocabulary.model")
batch = pieces.encode(["A sentence."], out_type=str)
limits = {"max_input_length": 0, "min_decoding_length": 0, "max_decoding_length": max(map(len, batch)) + $extra_length}
results = model.translate_batch(batch, beam_size=$beam, length_penalty=$alpha, **limits)
print([pieces.decode(result.hypotheses[0]) for result in results])""",
}


def known_of(folder: Path, description: Mapping[str, Any]) -> Known | None:
    """Return the results of the run that made the weights in `folder`, or None if they are not known.

    `description` is the metadata of the weights: the averaged steps.
    """
    root, run = Path(PARAMS).resolve().parent, folder.resolve().parent.name
    known = content(Path("results", f"{run}.json"))
    if known is None or folder.resolve() != root / "models" / run / "average":
        return None
    settings = within(known, "training", "settings", "model") or {}
    same_model = vars(read_saved(ModelConfig, settings, f"results/{run}.json")) == vars(read_settings(folder)[0])
    same_weights = within(known, "translations", "settings", "averaging") == description
    return known if same_model and same_weights else None


def trained_with(known: Known) -> str | None:
    """The commit of the code that trained the run, if its times are known."""
    times = content(Path("results/times", f"{known['run']}.json"))
    same = within(times, "training_sha256") == digest(known["training"])
    return within(times, "training", "commit") if same else None


def data_of(corpus: str) -> tuple[str, str | None]:
    """Return a description of the corpus, and its licence or None if this project does not know it."""
    if DEMONSTRATION in str(within(load(), "corpora", corpus, "download")):
        return FROM_A_GRAMMAR
    return MULTI30K if corpus.startswith("multi30k") else (f"the corpus `{corpus}`", None)


def card(folder: Path, description: Mapping[str, Any], kind: str, decoding: DecodingConfig, stale: bool = False) -> str:
    """Return the card of the model in `folder` as Markdown. `kind` is the format of the exported model.

    If the run of the model is `stale`, its score files may be those of other weights, and the card has no scores.
    """
    known = None if stale else known_of(folder, description)
    path = folder / TEXT
    text = read_saved(TextConfig, read_json(path), str(path)) if path.exists() else None
    parts = [
        head(text, known),
        use(kind, text, decoding, known),
        data(known),
        settings(folder, known, description),
        scores(known),
    ]
    commits = {"Trained": trained_with(known) if known else None, "Exported": commit()}
    origin = [f"{what} with the code of commit `{value}`." for what, value in commits.items() if value]
    return "\n\n".join([*parts, *origin]) + "\n"


def head(text: TextConfig | None, known: Known | None) -> str:
    name, front = known["run"] if known else "A Transformer", ["pipeline_tag: translation"]
    if known:
        licence = data_of(known["corpus"])[1]
        front += [f"license: {licence.lower().replace(' ', '-')}"] if licence else []
        front += [f"datasets: {json.dumps([known['corpus']])}", f"model-index: {json.dumps([indexed(known)])}"]
    if text:
        front.insert(0, f"language: {json.dumps(text.languages)}")
        name += f" ({text.languages[0]} to {text.languages[1]})"
    kind = "A Transformer of [Vaswani et al. 2017](https://arxiv.org/abs/1706.03762)"
    return "\n".join(["---", *front, "---", "", f"# {name}", "", f"{kind} that translates one sentence at a time."])


def indexed(known: Known) -> dict[str, Any]:
    """The scores on the test set, as the Hugging Face Hub reads them from the card's first lines."""
    found = within(known, "score", "test", "average", "metrics") or {}
    metrics = [{"type": name.partition("-")[0], "name": name, "value": cell["score"]} for name, cell in found.items()]
    of = {"task": {"type": "translation"}, "dataset": {"name": f"{known['corpus']} test", "type": known["corpus"]}}
    return {"name": known["run"], "results": [{**of, "metrics": metrics}] if metrics else []}


def use(kind: str, text: TextConfig | None, decoding: DecodingConfig, known: Known | None) -> str:
    steps = [STEPS[key] for key in STEPS if text and getattr(text, key)]
    normalised = "; ".join([*steps, "control and invisible characters are removed, every other space becomes one space"])
    state = f"has to be normalised as the training text was: {normalised}" if text else "was normalised in training"
    if kind == "transformer" and text:
        state = f"is normalised as the training text was: {normalised}"
    code = Template(USE[kind]).substitute(vars(decoding))
    lines = ["## Use", "", "```python", code, "```", "", f"The input {state}."]
    if decoding.penalty != "power" and kind != "transformer":
        ours = "The scores below are those of the penalty under Settings" if known else "That of this project differs"
        lines += ["", f"The length penalty of this library is L^alpha. {ours}, so some translations can differ."]
    return "\n".join(lines)


def data(known: Known | None) -> str:
    what, licence = data_of(known["corpus"]) if known else ("unknown", None)
    return f"## Data\n\nTraining data: {what}. {f'Licence: {licence}.' if licence else f'Licence: {UNKNOWN}.'}"


def settings(folder: Path, known: Known | None, description: Mapping[str, Any]) -> str:
    model, vocabulary_size, _ = read_settings(folder)
    of = known["training"]["settings"] if known else {"model": vars(model), "training": {}}
    own = {**of["model"], **of["training"], **({"bpe_dropout": known["bpe_dropout"]} if known else {})}
    values = {"vocabulary_size": vocabulary_size, **own, **description}
    decoding = within(known, "translations", "settings", "decoding")
    values |= {f"decoding.{key}": value for key, value in (decoding or {}).items()}
    return "\n".join(["## Settings", "", "| setting | value |", "|---|---|", *table(values)])


def table(values: Mapping[str, Any]) -> Iterator[str]:
    for key, value in values.items():
        shown = ", ".join(map(str, value)) if isinstance(value, list) else value
        yield f"| `{key}` | {shown} |"


def scores(known: Known | None) -> str:
    found = within(known, "score", "test", "average")
    if known is None or found is None:
        return "## Scores\n\nNo score of these weights is recorded."
    source = f"from results/{known['run']}.json"
    lines = ["## Scores", "", f"Test set, {found['pairs']:,} pairs, {source}; intervals are 95% by bootstrap.", ""]
    lines += ["| measure | score | interval | signature |", "|---|---:|---|---|"]
    for name, cell in found["metrics"].items():
        interval = "" if cell["low"] is None else f"{cell['low']:.2f} to {cell['high']:.2f}"
        signature = cell["signature"].replace("|", r"\|")
        lines.append(f"| {name} | {cell['score']:.2f} | {interval} | `{signature}` |")
    perplexity = within(known, "translations", "dev", "average", "perplexity")
    return "\n".join(lines) + (f"\n\nDev perplexity per piece: {perplexity:.2f}." if perplexity else "")
