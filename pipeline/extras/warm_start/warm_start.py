"""Encode a corpus with the vocabulary of a trained model, for runs that begin with the weights of this model.

    python -m pipeline.extras.warm_start.warm_start NAME --model models/RUN/average --text data/CORPUS/normalised \\
        --description data/CORPUS/text.json --dev data/sets/CORPUS-dev --test data/sets/CORPUS-test --out data/NAME \\
        --sets data/sets --report scores/corpora/NAME/binarise.json

Writes what `binarise` and `learn_bpe` write for a corpus, with the first weights beside the arrays (`binarised`), and both
sets under the name of the warm start. The model must translate between the languages of the corpus. The report says if the
vocabulary cannot write much of dev.
"""

import argparse
from pathlib import Path

from pipeline.binarise import binarised, complete
from pipeline.running import stage
from pipeline.settings.languages import same
from pipeline.settings.params import entry, languages, load, section
from pipeline.settings.vocabulary import VocabularyConfig
from pipeline.text.evaluation import read_lines
from pipeline.text.sets import files_of
from transformer.checkpoint import VOCABULARY, WEIGHTS, read_settings
from transformer.config.reading import UserError, read_saved
from transformer.config.text import TEXT, TextConfig
from transformer.files import read_json, write_json
from transformer.vocabulary import Vocabulary

MUCH = 0.1  # of the pieces of dev: text in another script than that of the model's text


def count_unwritten(vocabulary: Vocabulary, text: Path, codes: tuple[str, str], report: Path) -> None:
    """Add to the report, for each side of dev, the share of pieces that are bytes or unknown characters, if it is large."""
    known, of = read_json(report), vocabulary.processor
    for path, code in zip(files_of(text, "dev", codes), codes):
        ids = [each for line in vocabulary.encode(read_lines(path)) for each in line]
        share = sum(of.IsByte(each) or of.IsUnknown(each) for each in ids) / max(1, len(ids))
        if share > MUCH:
            known["sets"]["dev"].setdefault("unwritten", {})[code] = share
    write_json(report, known)


def main(arguments: argparse.Namespace) -> None:
    params, name, model = load(), arguments.name, arguments.model
    codes = languages(params, name)
    config = section(params, "corpora", entry(params, "warm_starts", name)["corpus"], "vocabulary", VocabularyConfig)
    saved, vocabulary = read_settings(model), Vocabulary(model / VOCABULARY)
    if saved.vocabulary_sha256 != vocabulary.sha256:
        raise UserError(f"{model / VOCABULARY} is not the vocabulary of {model / WEIGHTS}; copy the whole folder again")
    found = read_saved(TextConfig, read_json(model / TEXT), str(model / TEXT)).languages
    if not same(found, codes):
        raise UserError(f"{model} translates {' to '.join(found)}, and the corpus is {' to '.join(codes)}")
    named = str(model.relative_to(Path("models")))
    initial = {"model": named, "settings": vars(saved.model), "weights": model / WEIGHTS}
    binarised(arguments.text, vocabulary, codes, config, arguments.out / "binarised", arguments.report, initial)
    count_unwritten(vocabulary, arguments.text, codes, arguments.report)
    complete(name, model / VOCABULARY, arguments.description, arguments)


if __name__ == "__main__":
    options = "model text description dev test out sets report"
    stage.script(main, "warm_start", __doc__, options, name="a warm start of params.yaml")
