"""The block `studies`: runs with their sets, decodings and other entries, which `make study` selects together."""

from collections.abc import Mapping

from pipeline.settings.params import entry, require_known, text_corpus
from pipeline.settings.selection import run_settings
from transformer.config.reading import UserError, shown

# The keys of a study. All but `runs` are optional.
STUDY = (
    "runs",
    "sets",
    "ensembles",
    "values",
    "reverse_values",
    "decodings",
    "reverse_scores",
    "back_translations",
    "searches",
)


def study(params: Mapping, name: str) -> dict:
    """Return the blocks that the study `name` selects: each block of STUDY (empty if not given) and `corpora_in_use`."""
    where, chosen = f"params.yaml: studies.{name}", entry(params, "studies", name)
    require_known(chosen, list(STUDY), params, where)
    blocks = {key: chosen.get(key, {}) for key in STUDY}
    for key, block in blocks.items():
        if not isinstance(block, Mapping):
            raise UserError(f"{where}.{key}: {shown(block)} is not a mapping")
    return {**blocks, "corpora_in_use": list(corpora_needed({**params, **blocks}))}


def corpora_needed(params: Mapping) -> dict[str, str]:
    """Return the entries of `corpora` that are needed, each with the first run or back-translation that needs it."""
    found: dict[str, str] = {}
    for run in params["runs"]:
        found.setdefault(text_corpus(params, run_settings(params, run)[0]), f"runs.{run}")
    for name in params["back_translations"]:
        found.setdefault(text_corpus(params, name), f"back_translations.{name}")
    return found
