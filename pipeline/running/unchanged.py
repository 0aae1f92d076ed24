"""Stops a stage whose code is not the recorded code, and a stage whose code, settings or data change while it runs.

DVC hashes all dependencies when a stage ends, so it would record changed ones for outputs of the old ones. `stage.run`
therefore notes the inputs of every stage before it reads any of them, and compares them at the end.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline import code
from pipeline.running.devices import definitions
from pipeline.settings.addresses import TEXT, left_beside, shards
from pipeline.settings.params import load
from pipeline.settings.score_files import within
from transformer.config.reading import UserError
from transformer.files import write_file

CODE = "its code"
AGAIN = "its outputs are not recorded, and the same command runs it again"


def require_recorded(script: str, described: str) -> None:
    """Raise UserError if the code of a stage is not that of work/code/SCRIPT, which DVC will record for its outputs."""
    path = code.FOLDER / script
    recorded = path.read_text(encoding="utf-8") if path.is_file() else ""
    if recorded != described:
        changed = code.changed(recorded, script) or [CODE]
        raise UserError(
            f"{shortened(changed)} changed after the stage `code` had run; run `dvc repro code` first, as `snakemake` and "
            "`dvc repro` without --single-item do"
        )


def shortened(paths: list[str]) -> str:
    return ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")


def inputs() -> dict[str, Any]:
    """Return what may change while DVC runs a stage: its code, its settings, and the files that it reads.

    Of text/, these are the files that the settings name.
    """
    stage = os.environ["DVC_STAGE"]
    described, params = code.described(stage.partition("@")[0]), load()
    settings = {f"params.yaml: {path}": within(params, *path.split(".")) for path in listed(stage, params, "params")}
    named, files = {str(Path(file)) for address in texts(settings) for file in shards(address)}, {}
    for place in map(Path, listed(stage, params, "deps")):
        for path in (place, *place.rglob("*")) if place.parent != code.FOLDER else ():  # of a file, rglob finds nothing
            if path.is_file() and not ignored(path) and (path.parts[0] != TEXT or str(path) in named):
                files[str(path)] = path.stat().st_mtime_ns, path.stat().st_size
    return {CODE: described, **settings, **files}


def texts(value: Any) -> list[str]:
    """Return every text in settings, at any depth."""
    if isinstance(value, str):
        return [value]
    parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return [text for part in parts for text in texts(part)]


def ignored(path: Path) -> bool:
    """Return whether DVC ignores a file of a dependency (.dvcignore): times, and what programs leave beside the data."""
    return path.is_relative_to("results/times") or left_beside(path)


def listed(stage: str, params: Mapping[str, Any], key: str) -> list[str]:
    """Return what dvc.yaml lists under `key` for a stage such as `decode@demo-tiny`, with the names of its entry.

    A value that does not exist, such as that of a run that was removed, is `None`.
    """
    kind, _, name = stage.partition("@")
    definition = definitions()[kind]
    block = params.get(definition["foreach"].strip("${}")) if name else None
    known = {"key": name, "item": within(block, name) if isinstance(block, Mapping) else name}
    return [
        re.sub(r"\$\{([\w.]+)\}", lambda found: str(within(known, *found[1].split("."))), path)
        for path in definition.get("do", definition).get(key, [])
    ]


def require_unchanged(before: Mapping[str, Any], remedy: str = AGAIN) -> None:
    """Raise UserError if an input of the stage is no longer what `inputs` returned `before`."""
    if not before:
        return
    now = inputs()
    if changed := [name for name in {**before, **now} if now.get(name) != before.get(name)]:
        raise UserError(f"{shortened(changed)} changed while {os.environ['DVC_STAGE']} ran; {remedy}")
    # DVC hashes this file next. `make status` may have written an edit to it that was undone since.
    write_file(code.FOLDER / os.environ["DVC_STAGE"].partition("@")[0], before[CODE])
