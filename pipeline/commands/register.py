"""Register a trained model in the MLflow store, as a pyfunc that translates.

    python -m pipeline.commands.register RUN [--name NAME]
    MLFLOW_TRACKING_URI=sqlite:///mlflow.db mlflow models serve --model-uri models:/RUN/1 --env-manager local

RUN is a run of params.yaml or a model folder. The registered model has the input column `text` and the output columns
`translation` and `score`. The code and the settings are stored with the model. Registering again adds a version.
MLFLOW_TRACKING_URI names the store; without it, the store is mlflow.db.
"""

import argparse
import logging
import os
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pipeline.serving.viewing import examples
from pipeline.tracking.client import ROOT
from pipeline.tracking.store import opened, shown_uri
from pipeline.workflow import stage
from pipeline.workflow.models import NAMED, folder_of, label_of, settings_of

EXAMPLE = "A sentence."
# The packages that MLflow needs to load the model or that transformer/ imports; sacremoses is for
# `normalise.punctuation`. Without this list, MLflow would load the model to find them.
REQUIREMENTS = ("mlflow", "torch", "numpy", "pandas", "sentencepiece", "safetensors", "sacremoses")


def register(name: str, folder: Path, settings: dict[str, Any], example: str) -> str:
    """Log the model in `folder` and register it as `name`. Returns its MLflow address, models:/NAME/VERSION.

    `settings` are those of `Translator.load`, `example` is a source sentence.
    """
    os.environ["MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR"] = "false"
    import mlflow
    import pandas as pd
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, Schema

    logging.getLogger("mlflow").setLevel(logging.ERROR)
    outputs = Schema([ColSpec("string", "translation"), ColSpec("double", "score")])
    with opened():
        info = mlflow.pyfunc.log_model(
            name=name,
            python_model=str(ROOT / "pipeline/serving/registered.py"),
            artifacts={"model": str(folder)},
            model_config=settings,
            code_paths=[str(ROOT / "transformer")],
            signature=ModelSignature(inputs=Schema([ColSpec("string", "text")]), outputs=outputs),
            input_example=pd.DataFrame({"text": [example]}),
            # without a build suffix such as +cpu, which package indexes do not list
            pip_requirements=[f"{each}=={version(each).partition('+')[0]}" for each in REQUIREMENTS],
            registered_model_name=name,
            await_registration_for=0,
        )
    return f"models:/{name}/{info.registered_model_version}"


def main(arguments: argparse.Namespace) -> None:
    folder = folder_of(arguments.run)
    label = label_of(arguments.run)
    name, example = arguments.name or label, next(iter(examples(label)), EXAMPLE)
    # The model may be loaded on another machine, so its device is chosen when it is loaded.
    settings = {key: value for key, value in settings_of(arguments.run).items() if key != "device"}
    address = register(name, folder, settings, example)
    print(f"{folder} is registered as {address} in {shown_uri()}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="register", description=__doc__.split("\n\n")[0])
    parser.add_argument("run", help=NAMED)
    parser.add_argument("--name", help="the name of the registered model (default: that of the run or the folder)")
    stage.run(main, parser, checked=False)
