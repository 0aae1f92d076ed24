"""The block `searches` of params.yaml."""

from collections.abc import Mapping

from pipeline.extras.search.settings import Search, search
from pipeline.settings.registry import MODEL, Block


def check_search(params: Mapping, name: str, _: str) -> None:
    search(params, name)


NAMES = {"corpus": "the corpus of a run", "model": MODEL}  # the user compares the best trial with this run
BLOCKS = {"searches": Block(Search, NAMES, beside="runs", folder="searches", check=check_search)}
