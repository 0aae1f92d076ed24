"""A small trained model for tests. It translates a few English words into German. Also vocabularies and sums of lengths."""

import json
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from pipeline.scoring.costs import Lengths
from tests.support.projects import ROOT
from transformer.files import write_json
from transformer.vocabulary import Vocabulary

OLD = ROOT / "tests/data/commit-3b4f273"
KNOWN = json.loads((OLD / "translations.json").read_text(encoding="utf-8"))
LINES = KNOWN["sources"]
TRANSLATIONS = [expected["text"] for expected in KNOWN["beam"]]
TEXT = {"languages": ["en", "de"], "entities": True, "nfc": True, "punctuation": False}


def model_folder(folder: Path) -> Path:
    """Write the model to `folder` in today's format. Earlier code made the stored model, which has no text.json."""
    shutil.copytree(OLD / "model", folder)
    write_json(folder / "text.json", TEXT)
    return folder


def vocabulary_of(model: bytes) -> Vocabulary:
    """The vocabulary with the content of a model file."""
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_bytes(model)
        return Vocabulary(Path(file.name))


def lengths_of(pairs: Iterable[tuple[int, int]]) -> Lengths:
    """The sums over these pairs (n, m)."""
    return Lengths(*map(sum, zip(*[(n, m, n * n, m * m, n * m) for n, m in pairs])))
