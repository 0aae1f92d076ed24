"""The block `sets`: evaluation sets besides the dev and test sets of the corpora. A set causes no training."""

from dataclasses import dataclass

from pipeline.settings.download import Part
from transformer.config.reading import require

OWN = ("dev", "test")  # a corpus's own sets are CORPUS-dev and CORPUS-test


@dataclass(frozen=True)
class SetConfig(Part):
    """An evaluation set: parallel text, normalised with the settings of its corpus."""

    corpus: str

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.hold_out is None, "hold_out", self.hold_out, "source and target are expected, as a set has no train")
