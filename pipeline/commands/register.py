"""Register a trained model in the MLflow store, as a pyfunc that translates.

    python -m pipeline.commands.register RUN [--name NAME]
    MLFLOW_TRACKING_URI=sqlite:///mlflow.db mlflow models serve --model-uri models:/RUN/1 --env-manager local

RUN is a run of params.yaml or a model folder. The registered model has the input column `text` and the output columns
`translation` and `score`. The code and the settings are stored with the model. Registering again adds a version.
MLFLOW_TRACKING_URI names the store; without it, the store is mlflow.db.
"""

import argparse
from pathlib import Path

from pipeline.serving.registering import register
from pipeline.serving.viewing import examples
from pipeline.tracking.follower import reason
from pipeline.tracking.store import require_store, shown_uri
from pipeline.workflow import stage
from pipeline.workflow.models import NAMED, folder_of, settings_of
from transformer.config.reading import UserError

EXAMPLE = "A sentence."


def main(arguments: argparse.Namespace) -> None:
    require_store()
    folder = folder_of(arguments.run)
    name = arguments.name or Path(arguments.run).name
    example = next(iter(examples(arguments.run)), EXAMPLE)
    # The model may be loaded on another machine, so its device is chosen when it is loaded.
    settings = {key: value for key, value in settings_of(arguments.run).items() if key != "device"}
    try:
        address = register(name, folder, settings, example)
    except Exception as error:  # stores and their drivers raise errors of many libraries
        raise UserError(f"MLflow, {shown_uri()}: {reason(error)}") from None
    print(f"{folder} is registered as {address} in {shown_uri()}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="register", description=__doc__.split("\n\n")[0])
    parser.add_argument("run", help=NAMED)
    parser.add_argument("--name", help="the name of the registered model (default: that of the run or the folder)")
    stage.run(main, parser, checked=False)
