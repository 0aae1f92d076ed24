"""Evaluation sets: the text that models translate and are scored on, one folder a set.

data/sets/NAME holds, line by line, raw.LANGUAGE (as the source has it: the references), normalised.LANGUAGE (what is
translated) and set.json. A corpus's own sets are CORPUS-dev and CORPUS-test, written by normalise; the sets under
`sets` in params.yaml are written by fetch_set. A test set of WMT14 also holds filtered.LANGUAGE, a part of its raw
lines.
"""

from dataclasses import dataclass
from pathlib import Path

from pipeline.corpora.sets import require_aligned
from pipeline.settings.score_files import entry
from transformer.config.reading import UserError
from transformer.files import read_json

DESCRIPTION = "set.json"


@dataclass(frozen=True)
class EvaluationSet:
    """A set in its folder. Sides are "source" and "target"."""

    folder: Path
    corpus: str
    languages: tuple[str, str]

    @classmethod
    def open(cls, folder: Path) -> "EvaluationSet":
        """Raises UserError if the folder holds no set."""
        path = folder / DESCRIPTION
        try:
            description = read_json(path)
        except FileNotFoundError:
            raise UserError(f"{path} is missing; it is made by normalise or fetch_set") from None
        languages = entry(description, "languages", tuple[str, str], str(path))
        return cls(folder, entry(description, "corpus", str, str(path)), languages)

    def path(self, form: str, side: str) -> Path:
        """The file of a side; `form` is "raw", "normalised" or "filtered"."""
        return self.folder / f"{form}.{self.languages[side == 'target']}"

    def lines(self, form: str) -> tuple[list[str], list[str]]:
        """Both sides' lines. Raises UserError unless they match line by line."""
        paths = [self.path(form, side) for side in ("source", "target")]
        source, target = map(read_lines, paths)
        require_aligned(paths[0], len(source), paths[1], len(target))
        return source, target

    @property
    def is_filtered(self) -> bool:
        return self.path("filtered", "source").exists()


def read_lines(path: Path) -> list[str]:
    """The lines of a text file, which end at "\\n" only: any other line separator is part of a line."""
    try:
        lines = path.read_bytes().decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: byte {error.start} is not UTF-8; the file is to be UTF-8 text") from None
    return lines if lines[-1] else lines[:-1]
