"""Fetch an evaluation set of the block `sets` in params.yaml and normalise it.

    python -m pipeline.fetch_set NAME --out data/sets/NAME --report scores/corpora/NAME/fetch_set.json

Reads params.yaml (sets.NAME; languages, archives and normalise of its corpus) and the files or archives named
there. Writes an evaluation set (pipeline/text/evaluation.py). A new or changed set requires no training.
The report has the counts of the set.
"""

import argparse

from pipeline.running import stage
from pipeline.settings.download import SetConfig, download_config
from pipeline.settings.machine import machine
from pipeline.settings.normalise import NormaliseConfig
from pipeline.settings.params import languages, load, read_entry, section
from pipeline.text.collecting import collect
from pipeline.text.fetching import Fetcher
from pipeline.text.normalising import write_set
from pipeline.text.sets import progress
from transformer.files import atomic_folder, write_json


def main(arguments: argparse.Namespace) -> None:
    params, name = load(), arguments.name
    chosen = read_entry(SetConfig, params, "sets", name)
    codes = languages(params, chosen.corpus)
    config = section(params, "corpora", chosen.corpus, "normalise", NormaliseConfig)
    archives = download_config(params, chosen.corpus).archives or {}
    fetcher = Fetcher(machine(params).mirror)
    with atomic_folder(arguments.out) as folder:
        found = collect({"raw": (chosen,)}, archives, codes, fetcher, folder)
        raw = [folder / f"raw.{code}" for code in codes]
        with progress(raw) as bar:
            counts = write_set(folder, chosen.corpus, codes, raw, config, bar)
    report = {"languages": codes, "sets": {name: found["raw"] | counts}}
    write_json(arguments.report, report)
    print(f"{arguments.out}: {counts['kept']:,} pairs")


if __name__ == "__main__":
    stage.script(main, "fetch_set", __doc__, "out report", name="a set of params.yaml")
