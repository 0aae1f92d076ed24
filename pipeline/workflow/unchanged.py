"""Stops a stage whose settings in params.yaml changed while it ran.

DVC hashes the settings of a stage when it ends, so it would record changed ones for outputs of the old ones.
"""

import re
from collections.abc import Mapping
from typing import Any

from pipeline.settings.params import load
from pipeline.settings.score_files import within
from pipeline.workflow.devices import definitions
from transformer.config.reading import UserError


def settings_of(stage: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that dvc.yaml lists for a stage such as `decode@demo-tiny`, by their paths in params.yaml.

    A setting that does not exist, such as that of a run that was removed, is None.
    """
    kind, _, key = stage.partition("@")
    definition = definitions()[kind]
    block = params[definition["foreach"].strip("${}")] if key else {}
    known = {"key": key, "item": within(block, key) if isinstance(block, Mapping) else key}
    paths = [
        re.sub(r"\$\{([\w.]+)\}", lambda found: str(within(known, *found[1].split("."))), path)
        for path in definition.get("do", definition).get("params", [])
    ]
    return {path: within(params, *path.split(".")) for path in paths}


def require_unchanged(before: Mapping[str, Any], stage: str) -> None:
    """Raise UserError if the settings of a stage are no longer those that `settings_of` returned `before`."""
    now = settings_of(stage, load())
    if changed := [path for path in before if now.get(path) != before[path]]:
        raise UserError(
            f"params.yaml: {', '.join(changed)} changed while {stage} ran; its outputs are not recorded, and the same "
            "command runs it again"
        )
