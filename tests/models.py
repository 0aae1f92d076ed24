"""A small trained model for tests. It translates a few English words into German."""

import json
import shutil
from pathlib import Path

from tests.imports import ROOT
from transformer.files import write_json

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
