"""Stops a stage whose code is not the recorded code, and a stage whose code, settings or text change while it runs.

DVC hashes all dependencies when a stage ends, so it would record changed ones for outputs of the old ones.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline import code
from pipeline.settings.addresses import TEXT
from pipeline.settings.params import load
from pipeline.settings.score_files import within
from pipeline.settings.studies import STUDIES
from pipeline.workflow.devices import definitions
from transformer.config.reading import UserError
from transformer.files import atomic

AGAIN = "its outputs are not recorded, and the same command runs it again"


def require_recorded(script: str) -> None:
    """Raise UserError if the code of a stage is not that of work/code/SCRIPT, which DVC will record for its outputs."""
    path = code.FOLDER / script
    if changed := code.changed(path.read_text(encoding="utf-8") if path.is_file() else "", script):
        raise UserError(
            f"{shortened(changed)} changed after the stage `code` had run; run `dvc repro code` first, as `snakemake` and "
            "`dvc repro` without --single-item do"
        )


def shortened(paths: list[str]) -> str:
    return ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")


def inputs() -> dict[str, Any]:
    """Return what the user may edit while DVC runs a stage: its code, its settings and the files that these name in text/.

    Returns {} if DVC is running none.
    """
    if not (stage := os.environ.get("DVC_STAGE", "")):
        return {}
    settings = settings_of(stage, load())
    said = repr(settings)
    named = [STUDIES] if stage == "report" else [path for path in Path(TEXT).rglob("*") if str(path) in said]
    times = {str(path): path.stat().st_mtime_ns for path in named if path.is_file()}
    return {"its code": code.described(stage.partition("@")[0]), **settings, **times}


def settings_of(stage: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that dvc.yaml lists for a stage such as `decode@demo-tiny`, by their paths in params.yaml.

    A setting that does not exist, such as that of a run that was removed, is None.
    """
    kind, _, key = stage.partition("@")
    definition = definitions()[kind]
    block = params.get(definition["foreach"].strip("${}")) if key else None
    known = {"key": key, "item": within(block, key) if isinstance(block, Mapping) else key}
    paths = [
        re.sub(r"\$\{([\w.]+)\}", lambda found: str(within(known, *found[1].split("."))), path)
        for path in definition.get("do", definition).get("params", [])
    ]
    return {f"params.yaml: {path}": within(params, *path.split(".")) for path in paths}


def require_unchanged(before: Mapping[str, Any], remedy: str = AGAIN) -> None:
    """Raise UserError if the code or a setting of the stage is no longer what `inputs` returned `before`."""
    now = inputs()
    if changed := [name for name in before if now.get(name) != before[name]]:
        raise UserError(f"{', '.join(changed)} changed while {os.environ['DVC_STAGE']} ran; {remedy}")
    if before:  # DVC hashes this file next. `make status` may have written an edit to it that was undone since.
        with atomic(code.FOLDER / os.environ["DVC_STAGE"].partition("@")[0], "w") as file:
            file.write(before["its code"])
