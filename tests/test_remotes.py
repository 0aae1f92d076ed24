"""A clone pulls data and models from an S3 remote. moto is the server, as in DVC's own tests."""

from collections.abc import Iterator

import pytest
import requests

from tests.stubs import StubProject

pytest.importorskip("dvc_s3", reason="needs dvc-s3: pip install --editable '.[s3]'")
moto = pytest.importorskip("moto.server", reason="needs moto: pip install --editable '.[s3]'")

FILES = ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE")  # of this machine's user, which the test must not read
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_DEFAULT_REGION": "us-east-1",
}


@pytest.fixture
def endpoint() -> Iterator[str]:
    """The address of an S3 server with the bucket `models`."""
    server = moto.ThreadedMotoServer("127.0.0.1", 0)
    server.start()
    address = "http://{}:{}".format(*server.get_host_and_port())
    requests.post(f"{address}/moto-api/reset", timeout=30).raise_for_status()
    requests.put(f"{address}/models", timeout=30).raise_for_status()
    yield address
    server.stop()


@pytest.mark.more
def test_a_pull_from_s3_into_a_clone_leaves_nothing_to_do(project, tmp_path, endpoint):
    (tmp_path / "empty").touch()
    credentials = CREDENTIALS | dict.fromkeys(FILES, str(tmp_path / "empty"))
    project.run("dvc", "remote", "add", "--default", "shared", "s3://models/transformer")
    project.run("dvc", "remote", "modify", "shared", "endpointurl", endpoint)
    project.commit("a remote")
    project.run("dvc", "push", **credentials)
    clone = StubProject(tmp_path / "clone")
    project.run("git", "clone", "--quiet", str(project.root), str(clone.root))
    clone.keep_to_itself()
    clone.run("dvc", "pull", **credentials)
    assert clone.stale() == set()
    assert clone.planned() == [] and clone.snakemake() == []
    model = "models/demo-tiny/average"
    assert {path.name: path.read_bytes() for path in (clone.root / model).iterdir()} == {
        path.name: path.read_bytes() for path in (project.root / model).iterdir()
    }
