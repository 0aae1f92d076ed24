"""Put two models into one folder, which decoding reads as an ensemble.

    python -m pipeline.extras.ensembles.ensemble NAME --first models/RUN/average --second models/RUN/average \\
        --out models/ensembles/NAME

Copies the two model folders to the subfolders 1 and 2 of --out. Their vocabularies must be equal.
"""

import argparse
import shutil

from pipeline.running import stage
from transformer.checkpoint import read_settings
from transformer.config.reading import UserError
from transformer.files import atomic_folder


def main(arguments: argparse.Namespace) -> None:
    first, second = arguments.first, arguments.second
    if read_settings(first).vocabulary_sha256 != read_settings(second).vocabulary_sha256:
        raise UserError(f"{first} and {second} have different vocabularies; two runs with the same corpus are expected")
    with atomic_folder(arguments.out) as folder:
        for number, source in enumerate((first, second), 1):
            shutil.copytree(source, folder / str(number))
    print(f"{arguments.out}: {first} and {second}")


if __name__ == "__main__":
    stage.script(main, "ensemble", __doc__, "first second out", name="an ensemble of params.yaml")
