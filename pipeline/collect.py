"""Collect the results of decodings and of extras, such as searches, into one small file each, which git tracks.

    python -m pipeline.collect --scores scores --sets data/sets --out results

Reads the score files of the decodings and entries of extras that params.yaml selects, and the evaluation sets.

Writes decodings/NAME.json, and NAME.json in the folder of each extra, in --out; the files of other entries stay. The
file of a decoding also holds facts that depend on other decodings of the same set, such as its search errors.
"""

import argparse

from pipeline.reporting import decoder_facts
from pipeline.running import stage
from pipeline.settings.params import load
from pipeline.settings.registry import parts
from transformer.files import read_json, write_json


def main(arguments: argparse.Namespace) -> None:
    params, scores = load(), arguments.scores
    copied = {each.FOLDER: each.BLOCKS for each in parts("pipeline.extras.*.section")}
    for folder in ("decodings", *copied):
        (arguments.out / folder).mkdir(parents=True, exist_ok=True)
    for name, facts in decoder_facts.facts(params, scores, arguments.sets).items():
        made, score = (read_json(scores / f"decodings/{name}/{part}.json") for part in ("decoding", "score"))
        head = {"name": name, "model": made["model"], "set": made["set"]}
        write_json(arguments.out / f"decodings/{name}.json", {**head, "decoding": made, "score": score, "facts": facts})
    for folder, blocks in copied.items():
        for name in (name for block in blocks for name in params[block]):
            content = {"name": name, **read_json(scores / folder / f"{name}.json")}
            write_json(arguments.out / folder / f"{name}.json", content)


if __name__ == "__main__":
    stage.script(main, "collect", __doc__, "scores sets out")
