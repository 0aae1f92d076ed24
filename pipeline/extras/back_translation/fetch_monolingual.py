"""Fetch the monolingual text of a back-translation and normalise it.

    python -m pipeline.extras.back_translation.fetch_monolingual NAME --out data/NAME/monolingual \\
        --report scores/corpora/NAME/monolingual.json

Reads params.yaml (back_translations.NAME.monolingual; languages and normalise of its corpus) and the file or URL named
there. Writes train.LANGUAGE, in the target language of the corpus, with one clean sentence per line. Lines are
dropped for the same reasons as training pairs, except `decontaminate`, which back_translate applies to the pairs. The
report counts read, kept, dropped, changed, empty and invalid lines.
"""

import argparse
from pathlib import Path

from pipeline.extras.back_translation.settings import Monolingual, back_translation
from pipeline.running import stage
from pipeline.running.progress import say
from pipeline.settings.download import pinned
from pipeline.settings.machine import machine
from pipeline.settings.normalise import NormaliseConfig
from pipeline.settings.params import languages, load, section
from pipeline.text.archives import CHUNK, unpacked
from pipeline.text.collecting import append_lines
from pipeline.text.fetching import Fetcher
from pipeline.text.forms import text
from pipeline.text.normalising import Filter, normalise_set
from pipeline.text.plain import notice, notice_names
from pipeline.text.sets import progress
from transformer.config.reading import UserError
from transformer.files import atomic_folder, write_json


def write_raw(chosen: Monolingual, fetcher: Fetcher, out: Path) -> dict[str, list[int]]:
    """Write the chosen lines of the text, unchanged. Returns what was noted of it, as `collect` counts parts.

    Raises UserError if the text has too few lines.
    """
    path, skip = fetcher.fetch(chosen.text, pinned("sha256", chosen.sha256, unpacked=True)), chosen.skip or 0
    say(f"reading {path}")
    with unpacked(path) as stream, open(out, "wb") as file:
        lines = append_lines(text(stream, chosen.encoding), file, chosen.text, skip, chosen.first)
    with open(out, "rb") as file:
        beginning = file.read(CHUNK)
    segmented, named = notice(beginning, chosen.text), notice_names([beginning], chosen.text, [out.suffix[1:]])
    if lines < (chosen.first or 1):
        raise UserError(
            f"{chosen.text}: {lines:,} lines are left after skip: {skip}; at least {chosen.first or 1:,} are expected"
        )
    return ({"segmented": [1]} if segmented else {}) | ({"named": [1]} if named else {})


def main(arguments: argparse.Namespace) -> None:
    params = load()
    corpus, monolingual = back_translation(params, arguments.name, "corpus", "monolingual")
    language = languages(params, corpus)[1]
    config = section(params, "corpora", corpus, "normalise", NormaliseConfig)
    fetcher = Fetcher(machine(params).mirror)
    with atomic_folder(arguments.out) as folder:
        raw = folder / f"raw.{language}"
        noted = write_raw(monolingual, fetcher, raw)
        with progress([raw]) as bar:
            counts = normalise_set([raw], [folder / f"train.{language}"], [language], config, bar, Filter(config))
        raw.unlink()
    write_json(arguments.report, {"languages": [language], "sets": {"monolingual": counts | noted}})
    print(f"{arguments.out}: {counts['kept']:,} of {counts['read']:,} lines")


if __name__ == "__main__":
    stage.script(main, "fetch_monolingual", __doc__, "out report", name="a back-translation of params.yaml")
