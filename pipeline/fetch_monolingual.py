"""Fetch the monolingual text of a back-translation and normalise it.

    python -m pipeline.fetch_monolingual NAME --out data/NAME/monolingual --report scores/corpora/NAME/monolingual.json

Reads params.yaml (back_translations.NAME.monolingual; languages and normalise of its corpus) and the file or URL named
there. Writes train.LANGUAGE, in the target language of the corpus, with one clean sentence per line. Lines are
dropped for the same reasons as training pairs. The report counts read, kept, dropped, changed, empty and invalid lines.
"""

import argparse
from pathlib import Path

from pipeline.corpora.fetching import Fetcher
from pipeline.corpora.lines import progress
from pipeline.corpora.monolingual import normalise, write_raw
from pipeline.corpora.transfer import PATIENT
from pipeline.settings.back_translations import back_translation
from pipeline.settings.machine import machine
from pipeline.settings.normalise import NormaliseConfig
from pipeline.settings.params import languages, load, section
from pipeline.workflow import stage
from transformer.files import atomic_folder, write_json


def main(arguments: argparse.Namespace) -> None:
    params = load()
    chosen = back_translation(params, arguments.name)
    language = languages(params, chosen.corpus)[1]
    config = section(params, "corpora", chosen.corpus, "normalise", NormaliseConfig)
    fetcher = Fetcher(Path("work/downloads"), Path("checksums.json"), machine(params).mirror, PATIENT)
    with atomic_folder(arguments.out) as folder:
        raw = folder / f"raw.{language}"
        write_raw(chosen.monolingual, fetcher, raw)
        with progress([raw]) as bar:
            counts = normalise(raw, folder / f"train.{language}", language, config, bar)
        raw.unlink()
    write_json(arguments.report, {"language": language, **counts})
    print(f"{arguments.out}: {counts['kept']:,} of {counts['read']:,} lines")


if __name__ == "__main__":
    stage.script(main, "fetch_monolingual", __doc__, "out report", name="a back-translation of params.yaml")
