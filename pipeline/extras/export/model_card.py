"""The model card of an exported model: how to use it, its data and their licence, and its scores.

The scores of a model folder models/RUN/average are in results/RUN.json. They are shown only if the averaged steps, the
settings of the model and those of the search are equal, and if the stages of a run of params.yaml are up to date.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from pipeline.running.models import run_of
from pipeline.settings.addresses import DEMONSTRATION
from pipeline.settings.languages import language_of, unknown
from pipeline.settings.params import load, text_corpus
from pipeline.settings.score_files import content, rounded, within
from transformer.checkpoint import read_settings
from transformer.config.decoding import DecodingConfig
from transformer.config.model import ModelConfig
from transformer.config.reading import read_saved
from transformer.config.text import TEXT, TextConfig
from transformer.decoding import PAPER
from transformer.files import read_json

UNKNOWN = "not recorded; it may limit the use of the model"
ON_THE_HUB = (  # those of text and of code; any other licence is `other` there
    "mit apache-2.0 gpl-2.0 gpl-3.0 lgpl-2.1 lgpl-3.0 agpl-3.0 gfdl bsd-2-clause bsd-3-clause mpl-2.0 cc0-1.0 pddl "
    "odbl odc-by etalab-2.0 cdla-permissive-1.0 cdla-permissive-2.0 cdla-sharing-1.0 unlicense cc-by-2.0 cc-by-2.5 "
    "cc-by-3.0 cc-by-4.0 cc-by-sa-3.0 cc-by-sa-4.0 cc-by-nc-2.0 cc-by-nc-3.0 cc-by-nc-4.0 cc-by-nd-4.0 cc-by-nc-nd-3.0 "
    "cc-by-nc-nd-4.0 cc-by-nc-sa-2.0 cc-by-nc-sa-3.0 cc-by-nc-sa-4.0"
)
TRIED = {"marian": "transformers 4.44.2 and 5.24.0", "ctranslate2": "CTranslate2 4.8.5"}
STEPS = {
    "entities": "character references (`&quot;`) are replaced by their characters",
    "nfc": "Unicode normalisation form C",
    "punctuation": "Moses' normalize-punctuation",
}

HIGH = 1.2  # an alpha up to this left no difference in 400 lines
SEARCH = ("beam", "penalty", "alpha", "extra_length")  # the settings that the card shows
CARD = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    trim_blocks=True,
    keep_trailing_newline=True,
    undefined=StrictUndefined,
)
CARD.filters["rounded"] = rounded


def known_of(folder: Path, description: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the content of results/RUN.json of the run that made the weights in `folder`, or None if they are not known.

    `description` is the metadata of the weights: the averaged steps.
    """
    run = run_of(folder)
    if not run or (known := content(Path("results", f"{run}.json"))) is None:
        return None
    settings = within(known, "training", "settings", "model") or {}
    same_model = read_saved(ModelConfig, settings, f"results/{run}.json") == read_settings(folder).model
    same_weights = within(known, "translations", "settings", "averaging") == description
    return known if same_model and same_weights else None


def data_of(corpus: str) -> tuple[str, str | None]:
    """Return a description of the corpus, and the licence that params.yaml states, or None.

    The monolingual text of a back-translation has a licence of its own, which is not recorded. With a warm start, the data
    of its model need to have the same licence.
    """
    params = load()
    of = within(params, "corpora", text_corpus(params, corpus))
    grammar = DEMONSTRATION in str(within(of, "download", "train"))
    what = f"the corpus `{corpus}`" + ", sentences that a grammar of this project generated" * grammar
    if corpus in (params.get("back_translations") or ()):
        return f"{what}, and translations of monolingual text", None
    licence, model = within(of, "licence"), within(params, "warm_starts", corpus, "model")
    if model:
        before = within(params, "runs", model.removesuffix("/average"), "corpus")
        what = f"{what}; the training began with the weights of {model}"
        licence = licence if before and data_of(before)[1] == licence else None
    return what, licence


def difference_of(kind: str, decoding: DecodingConfig) -> str:
    """Why the code on the card gives some translations other than the scored ones, as a sentence; "" if it does not.

    Without a length penalty, the searches of all libraries find the same best hypothesis.
    """
    if kind == "transformer":
        return ""
    if decoding.alpha and decoding.penalty != "power":
        why = f"The length penalty of this library is L^alpha, and this project used {decoding.penalty}"
    elif decoding.alpha and decoding.beam == 1:
        why = "With a beam of 1, this library stops at the first end, and this project when no other can win"
    elif kind == "ctranslate2" and decoding.alpha > HIGH:
        why = f"With alpha above {HIGH}, a longer translation can win that this library no longer searches for"
    elif decoding.extra_length < PAPER.extra_length:
        why = f"With extra_length {decoding.extra_length}, translations can end at the limit, here one for a whole batch"
    elif decoding.precision == "bfloat16":
        why = "This code computes in float32, and this project used bfloat16"
    else:
        return ""
    return f"{why}, so some translations can differ from those that were scored."


def card(folder: Path, description: Mapping[str, Any], kind: str, decoding: DecodingConfig, stale: bool = False) -> str:
    """Return the card of the model in `folder` as Markdown. `kind` is the format of the exported model.

    If the run of the model is `stale`, its score files may be those of other weights, and the card has no scores.
    """
    known, path = None if stale else known_of(folder, description), folder / TEXT
    text = read_saved(TextConfig, read_json(path), str(path)) if path.exists() else None
    what, licence = data_of(known["corpus"]) if known else ("unknown", None)
    scores, used = within(known, "score", "test", "average"), within(known, "translations", "settings", "decoding") or {}
    if any(used.get(key) != getattr(decoding, key) for key in SEARCH):
        scores = None
    if scores:  # of translations in one precision, whatever `auto` means on the machine that reads the card
        decoding = replace(decoding, precision=used["precision"], arithmetic="native")
    return CARD.get_template("card.md").render(
        name=known["run"] if known else "A Transformer",
        languages=text.languages if text else None,
        codes=[*dict.fromkeys(language_of(code) for code in text.languages if not unknown([code]))] if text else None,
        index=indexed(known, licence, scores) if known else {},
        decoding=decoding,
        kind=kind,
        state=normalised(text, kind),
        difference=difference_of(kind, decoding),
        tried=TRIED.get(kind),
        what=what,
        licence=licence or UNKNOWN,
        scores=scores,
    )


def normalised(text: TextConfig | None, kind: str) -> str:
    """How the input of the model is normalised. Only this project's own format does it by itself."""
    if not text:
        return "was normalised in training"
    steps = [*(STEPS[key] for key in STEPS if getattr(text, key)), "control and invisible characters are removed"]
    steps.append("every run of white space becomes one space, and none stays at the ends")
    does = "is" if kind == "transformer" else "has to be"
    return f"{does} normalised as the training text was: {'; '.join(steps)}"


def indexed(known: Mapping[str, Any], licence: str | None, scores: Mapping[str, Any] | None) -> dict[str, Any]:
    """The licence, the data and the scores as the Hugging Face Hub reads them from the card's first lines."""
    found = scores["metrics"] if scores else {}
    metrics = [{"type": name.partition("-")[0], "name": name, "value": cell["score"]} for name, cell in found.items()]
    of = {"task": {"type": "translation"}, "dataset": {"name": f"{known['corpus']} test", "type": known["corpus"]}}
    model = {"name": known["run"], "results": [{**of, "metrics": metrics}] if metrics else []}
    slug = (licence or "").lower().replace(" ", "-")
    listed = slug in ON_THE_HUB.split()
    front = {"license": slug if listed else "other"} | ({} if listed else {"license_name": json.dumps(licence)})
    return (front if licence else {}) | {"datasets": json.dumps([known["corpus"]]), "model-index": json.dumps([model])}
