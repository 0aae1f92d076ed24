"""Collect a corpus as plain text from files, URLs and archives.

    python -m pipeline.download CORPUS --out data/CORPUS/raw --test data/CORPUS/test \\
        --report scores/corpora/CORPUS/download.json

Reads params.yaml (corpora.CORPUS.languages and .download, machine.mirror), the files and archives named there, and
earlier downloads (work/downloads). Writes train.LANGUAGE and dev.LANGUAGE into the folder --out. Writes test.LANGUAGE
and, if the corpus has a filtered test set, test_filtered.LANGUAGE into the folder --test. The folders are separate, so
that a change of the test set causes no training. The text is UTF-8, not yet normalised, with one segment per line. Line
n of one language is the translation of line n of the other. If no checksum of a file was published, the checksum of its
first download is recorded in checksums.json. The report has the counts of each set.
"""

import argparse
from pathlib import Path

from pipeline.running import stage
from pipeline.running.progress import say
from pipeline.settings.download import SETS, DownloadConfig, download_config
from pipeline.settings.languages import not_known
from pipeline.settings.machine import machine
from pipeline.settings.params import languages, load
from pipeline.text.collecting import collect
from pipeline.text.fetching import Fetcher
from transformer.config.reading import UserError
from transformer.files import atomic_folder, write_json


def work(config: DownloadConfig, codes: tuple[str, str], fetcher: Fetcher, out: Path, test: Path) -> dict[str, dict]:
    """Write train and dev to the folder `out` and the corpus's own test set to `test`, each folder atomically.

    Returns the counts of `collect`.
    """
    with atomic_folder(test) as test_folder, atomic_folder(out) as folder:
        sets = {name: getattr(config, name) for name in SETS if getattr(config, name)}
        found = collect(sets, config.archives or {}, codes, fetcher, folder)
        for name, counts in found.items():
            if counts["kept"] == 0:
                raise UserError(f"{name} holds no pair; at least one is expected")
        for path in folder.glob("test*"):
            path.rename(test_folder / path.name)
    for name, counts in found.items():
        folder = test if name.startswith("test") else out
        say(f"{folder / name}.{{{','.join(codes)}}}: {counts['kept']:,} pairs")
    return found


def main(arguments: argparse.Namespace) -> None:
    params = load()
    config = download_config(params, arguments.corpus)
    codes = languages(params, arguments.corpus)
    if said := not_known(codes):
        say(f"{arguments.corpus}: {said}")
    found = work(config, codes, Fetcher(machine(params).mirror), arguments.out, arguments.test)
    write_json(arguments.report, {"languages": codes, "sets": found})


if __name__ == "__main__":
    stage.script(main, "download", __doc__, "out test report", corpus="a corpus of params.yaml")
