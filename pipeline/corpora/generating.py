"""Write the demonstration corpus to files, one per set and language."""

from contextlib import ExitStack
from pathlib import Path
from typing import IO

from pipeline.corpora.demonstration.grammar import generate
from pipeline.settings.download import GeneratorConfig
from transformer.config.reading import UserError


def make(config: GeneratorConfig, languages: tuple[str, str], folder: Path) -> dict[str, int]:
    """Generate the corpus from the project's grammar. Returns the number of pairs in each set."""
    if languages != ("en", "de"):
        raise UserError(f"generate makes English and German; languages is {list(languages)}, but [en, de] is expected")
    pairs: dict[str, int] = {}
    with ExitStack() as stack:
        files: dict[str, list[IO[str]]] = {}
        for name, *sides in generate(config):
            if name not in files:
                paths = [folder / f"{name}.{language}" for language in languages]
                files[name] = [stack.enter_context(open(p, "w", encoding="utf-8", newline="\n")) for p in paths]
            for file, side in zip(files[name], sides, strict=True):
                file.write(side + "\n")
            pairs[name] = pairs.get(name, 0) + 1
    return pairs
