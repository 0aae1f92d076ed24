"""Go on with an unfinished training after an edit of the code, or throw it away.

python -m pipeline.commands.adopt RUN adopt     go on from the old state with the new code; timing.json says so
python -m pipeline.commands.adopt RUN anew      throw the old state away
"""

import argparse

from pipeline.training.workspace import WORK, history_of, lock, release
from pipeline.workflow import stage
from transformer.config.reading import UserError
from transformer.files import write_json


def main(arguments: argparse.Namespace) -> None:
    states = sorted((WORK / arguments.run).glob("*/state.safetensors"))
    if not states:
        raise UserError(f"{WORK / arguments.run} holds no unfinished training")
    with lock(arguments.run):
        if arguments.action == "anew":
            return release(arguments.run)
        for state in states:
            write_json(state.parent / "code.json", [*history_of(state.parent), "adopt"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="workspace", description=__doc__.split("\n\n")[0])
    parser.add_argument("run")
    parser.add_argument("action", choices=["adopt", "anew"])
    stage.run(main, parser)
