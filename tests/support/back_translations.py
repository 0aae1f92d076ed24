"""params.yaml with two runs of opposite directions, and a run that is trained on a back-translation."""

import copy
from typing import Any

from pipeline.text.binarised import SIDES

TINY = {"N": 1, "d_model": 16, "d_ff": 32, "h": 2, "d_k": 8, "d_v": 8, "steps": 10, "batch_tokens": 300}
TINY |= {"micro_batch_tokens": 300, "checkpoint_every": 2, "evaluate_every": 5, "log_every": 5}
VALUE = {"model": "forward/average", "corpus": "own", "reverse": "reverse/average", "sentences": 20, "steps": 20}


def corpus(languages: list[str]) -> dict[str, Any]:
    """An entry of `corpora` whose files are in text/."""
    files = {name: [f"text/{name}.{language}" for language in languages] for name in ("train", "dev", "test")}
    download = {name: [dict(zip(SIDES, sides))] for name, sides in files.items()}
    return {"languages": languages, "download": download, "normalise": {}, "vocabulary": {"pieces": 500}}


def entry(**changed: Any) -> dict[str, Any]:
    """An entry of `back_translations`."""
    values = {"corpus": "own", "run": "reverse", "monolingual": {"text": "text/more.de"}, "decoding": {"beam": 1}}
    return {**values, "tagged": True, "ratio": 1.0, **changed}


def with_runs(params: dict, back_translation: dict, decodings: dict) -> dict[str, Any]:
    params = copy.deepcopy(params)
    params["corpora"] |= {"own": corpus(["en", "de"]), "turned": corpus(["de", "en"])}
    of = {"forward": "own", "reverse": "turned", "augmented": "own-bt"}
    params["runs"] = {run: {"corpus": name, "model": "tiny", **TINY} for run, name in of.items()}
    params["back_translations"] = {"own-bt": back_translation}
    of_decoding = {"model": "forward/average", "set": "own-test"}
    params["decodings"] = {name: {**of_decoding, **own} for name, own in decodings.items()}
    params["reverse_scores"] = {"own": {"model": "reverse/average", "set": "own-test"}}
    params["reverse_values"] = {"source": VALUE}
    params["corpora_in_use"] = ["own", "turned"]
    params["base"]["decoding"] |= {"extra_length": 5, "attention_sentences": 1, "threads": 1}
    params["base"]["training"]["threads"] = 1
    return params
