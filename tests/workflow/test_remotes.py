"""A clone pulls data, models and scores from an S3 remote. moto is the server, as in DVC's own tests."""

from collections.abc import Iterator

import pytest
import requests

FILES = ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE")  # of this machine's user, which the test must not read
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_DEFAULT_REGION": "us-east-1"}


@pytest.fixture
def endpoint() -> Iterator[str]:
    """The address of an S3 server with the bucket `models`."""
    from moto.server import ThreadedMotoServer  # of the extra `dev`

    server = ThreadedMotoServer("127.0.0.1", 0)
    server.start()
    address = "http://{}:{}".format(*server.get_host_and_port())
    requests.put(f"{address}/models", timeout=30).raise_for_status()
    yield address
    server.stop()


@pytest.mark.more
def test_a_pull_from_s3_into_a_clone_leaves_nothing_to_do(project, tmp_path, endpoint):
    """The commands are those of docs/how-to/cluster.md."""
    (tmp_path / "empty").touch()
    credentials = CREDENTIALS | dict.fromkeys(FILES, str(tmp_path / "empty"))
    project.run("dvc", "remote", "add", "--default", "shared", "s3://models/transformer")
    project.run("dvc", "remote", "modify", "shared", "endpointurl", endpoint)
    project.commit("a remote")
    project.run("dvc", "push", **credentials)
    clone = project.clone(tmp_path / "clone")
    clone.run("dvc", "pull", **credentials)
    assert clone.stale() == set() and clone.planned() == [] and clone.snakemake() == []
    made = {of: sorted(path for path in of.root.glob("[dms]*/**/*") if path.is_file()) for of in (project, clone)}
    assert len({tuple((str(path.relative_to(of.root)), path.read_bytes()) for path in made[of]) for of in made}) == 1
    assert len(made[clone]) > 5
