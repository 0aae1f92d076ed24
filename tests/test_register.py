"""A registered model: MLflow's own server answers with the translations of the Translator."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests import in_process
from tests.random_weights import random_model
from transformer import Translator

pytestmark = pytest.mark.slow


def answer(url: str, body: dict, process: subprocess.Popen) -> dict:
    """The answer of a server, which may still be starting."""
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    ends = time.monotonic() + 180
    while True:
        try:
            with urllib.request.urlopen(request, timeout=60) as opened:
                return json.load(opened)
        except urllib.error.URLError:
            assert process.poll() is None and time.monotonic() < ends, "the server has not started"
            time.sleep(0.5)


@pytest.mark.more
def test_mlflow_serves_a_registered_model(params, tmp_path: Path, monkeypatch) -> None:
    folder = random_model(params, tmp_path)
    store = f"sqlite:///{tmp_path}/mlflow.db"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store)
    for version in (1, 2):
        with in_process.inside(tmp_path):
            status, printed, said = in_process.started(["pipeline.commands.register", str(folder), "--name", "numbers"])
        assert status == 0 and f"is registered as models:/numbers/{version} in {store}" in printed, said

    from mlflow import MlflowClient, pyfunc  # takes a second, which `make quick` does not need

    stored = Path(MlflowClient(store).get_model_version_download_uri("numbers", "2").removeprefix("file://"))
    if str(stored).startswith("models:"):
        (stored,) = [path.parent for path in (tmp_path / "mlruns").rglob("MLmodel")][-1:]
    packages = {line.partition("==")[0] for line in (stored / "requirements.txt").read_text().split()}
    assert packages == {"mlflow", "torch", "numpy", "pandas", "sentencepiece", "safetensors", "sacremoses"}
    assert [path.name for path in (stored / "code").iterdir()] == ["transformer"]
    example = json.loads((stored / "serving_input_example.json").read_text())
    loaded = pyfunc.load_model(str(stored))
    assert len(loaded.predict(loaded.input_example)) == 1

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    command = [sys.executable, "-m", "mlflow", "models", "serve", "-m", "models:/numbers/2", "--env-manager", "local"]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    with subprocess.Popen(
        [*command, "--port", str(port)],
        cwd=tmp_path,
        env={**os.environ, "PATH": path, "PYTHONPATH": ""},
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            texts = ["one two", "three seven nine"]
            url = f"http://127.0.0.1:{port}/invocations"
            body = {"dataframe_split": {"columns": ["text"], "data": [[text] for text in texts]}}
            rows = answer(url, body, process)["predictions"]
            assert [row["translation"] for row in rows] == Translator.load(folder)(texts)
            assert len(answer(url, example, process)["predictions"]) == 1
        finally:
            os.killpg(process.pid, signal.SIGTERM)


def test_no_store_is_one_line(params: dict, tmp_path: Path) -> None:
    folder = random_model(params, tmp_path)
    with in_process.inside(tmp_path):
        status, _, said = in_process.started(["pipeline.commands.register", str(folder)])
    assert status == 1 and said.startswith("register: MLFLOW_TRACKING_URI is off;") and said.count("\n") == 1
