"""Registration of a trained model in the MLflow store, as a pyfunc."""

import logging
import os
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pipeline.tracking.client import ROOT
from pipeline.tracking.store import opened, uri

# The packages that MLflow needs to load the model or that transformer/ imports; sacremoses is for
# `normalise.punctuation`. Without this list, MLflow would load the model to find them.
REQUIREMENTS = ("mlflow", "torch", "numpy", "pandas", "sentencepiece", "safetensors", "sacremoses")


def requirements() -> list[str]:
    """REQUIREMENTS with the installed versions, without a build suffix such as +cpu, which package indexes do not list."""
    return [f"{name}=={version(name).partition('+')[0]}" for name in REQUIREMENTS]


def register(name: str, folder: Path, settings: dict[str, Any], example: str) -> str:
    """Log the model in `folder` and register it as `name`. Returns its MLflow address, models:/NAME/VERSION.

    `settings` are those of `Translator.load`, `example` is a source sentence. Raises any error of MLflow.
    """
    os.environ["MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR"] = "false"
    import mlflow
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, Schema

    logging.getLogger("mlflow").setLevel(logging.ERROR)
    outputs = Schema([ColSpec("string", "translation"), ColSpec("double", "score")])
    with opened() as store:
        mlflow.set_tracking_uri(uri())
        mlflow.set_experiment(experiment_id=store.experiment)
        info = mlflow.pyfunc.log_model(
            name=name,
            python_model=str(Path(__file__).with_name("registered.py")),
            artifacts={"model": str(folder)},
            model_config=settings,
            code_paths=[str(ROOT / "transformer")],
            signature=ModelSignature(inputs=Schema([ColSpec("string", "text")]), outputs=outputs),
            input_example={"text": [example]},
            pip_requirements=requirements(),
            registered_model_name=name,
            await_registration_for=0,
        )
    return f"models:/{name}/{info.registered_model_version}"
