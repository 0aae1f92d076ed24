"""Clean a corpus, filter its training pairs, and make its dev and test sets.

    python -m pipeline.normalise CORPUS --raw data/CORPUS/raw --test data/CORPUS/test --out data/CORPUS/normalised \\
        --text data/CORPUS/text.json --sets data/sets --report scores/corpora/CORPUS/normalise.json

Reads train and dev from the folder `raw` and the corpus's own test set from the folder `test`. Each line is one
segment. Only "\\n" ends a line. Writes train and dev, cleaned by transformer/cleaning.py, to `out`. Writes the
evaluation sets CORPUS-dev and CORPUS-test (pipeline/text/evaluation.py) to the folder `sets`. Writes the languages
and the normalisation of the text, which a translator needs, to `text` (transformer/config/text.py).

A training pair is dropped if a side is empty, if a limit is exceeded, or if de-duplication is on and the pair occurred
before (params.yaml: base.normalise, changed by the corpus). Training pairs of which a side stands in dev or test are
counted, and dropped on request. Pairs of other sets are never dropped, so line numbers agree with the references. The
report counts pairs (read, kept, dropped by reason) and lines (changed, empty, invalid).
"""

import argparse
import itertools
import shutil
from contextlib import ExitStack

from pipeline.running import stage
from pipeline.settings import params
from pipeline.settings.normalise import NormaliseConfig
from pipeline.text.normalising import Filter, normalise_set, sentences, write_set
from pipeline.text.sets import files_of, progress
from transformer.config.text import TextConfig
from transformer.files import atomic_folder, write_json


def main(arguments: argparse.Namespace) -> None:
    settings, corpus = params.load(), arguments.corpus
    languages = params.languages(settings, corpus)
    config = params.section(settings, "corpora", corpus, "normalise", NormaliseConfig)
    train = files_of(arguments.raw, "train", languages)
    evaluated = {"dev": files_of(arguments.raw, "dev", languages), "test": files_of(arguments.test, "test", languages)}
    filtered = [path for path in files_of(arguments.test, "test_filtered", languages) if path.exists()]
    report: dict[str, dict] = {"train": {}, "dev": {}, "test": {}}
    with progress(itertools.chain(train, *evaluated.values())) as bar, ExitStack() as stack:
        folders = {}
        for name, paths in evaluated.items():
            folders[name] = stack.enter_context(atomic_folder(arguments.sets / f"{corpus}-{name}"))
            of_test = filtered if name == "test" else []
            report[name] = write_set(folders[name], corpus, languages, paths, config, bar, of_test)
        select = Filter(config, sentences(folders.values()))
        out = stack.enter_context(atomic_folder(arguments.out))
        report["train"] = normalise_set(train, files_of(out, "train", languages), languages, config, bar, select)
        for language in languages:
            shutil.copyfile(folders["dev"] / f"normalised.{language}", out / f"dev.{language}")
    select.tell(corpus)
    text = TextConfig(languages, config.entities, config.nfc, config.punctuation)
    write_json(arguments.text, vars(text))
    write_json(arguments.report, {"languages": languages, "sets": report})
    counts = ", ".join(f"{name} {counted['kept']:,} of {counted['read']:,} pairs" for name, counted in report.items())
    print(f"{arguments.out}: {counts}")


if __name__ == "__main__":
    stage.script(
        main, "normalise", __doc__, "raw test out text sets report", corpus="a name under `corpora` in params.yaml"
    )
