"""Where the project lies, and its stages."""

from pathlib import Path

from ruamel.yaml import YAML

ROOT = Path(__file__).parent.parent
STAGES = tuple(YAML(typ="safe").load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"])
