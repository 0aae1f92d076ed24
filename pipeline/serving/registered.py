"""The code of a registered model. MLflow stores this file and transformer/ with the model.

MLflow runs this file to load the model. The file imports nothing of pipeline, which is not stored with the model.
"""

from typing import Any

import pandas as pd
from mlflow.models import set_model
from mlflow.pyfunc import PythonModel, PythonModelContext

from transformer import Translator


class TranslationModel(PythonModel):
    """Translates the column `text` to the columns `translation` and `score`."""

    def load_context(self, context: PythonModelContext) -> None:
        self.translator = Translator.load(context.artifacts["model"], **(context.model_config or {}))

    def predict(self, context: PythonModelContext, model_input: pd.DataFrame, params: Any = None) -> pd.DataFrame:
        found = self.translator(list(model_input["text"]), scores=True)
        return pd.DataFrame({"translation": [each.text for each in found], "score": [each.score for each in found]})


set_model(TranslationModel())
