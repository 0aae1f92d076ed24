"""The Hugging Face Hub: a model folder as a repository. Needs the package huggingface_hub."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from transformer.config.reading import UserError


@contextmanager
def library(what: str, failed: str, remedy: str = "") -> Iterator[Any]:
    """The package, which `what` needs. Its errors, and those of the one that it uses for HTTP, are UserErrors here."""
    try:
        import huggingface_hub
    except ImportError:
        raise UserError(f"{what} needs the package huggingface_hub: pip install huggingface_hub") from None
    try:
        yield huggingface_hub
    except Exception as error:
        said = next(iter(str(error).splitlines()), type(error).__name__)
        raise UserError(f"{failed}: {said}{remedy}") from None


def fetched(name: str, revision: str | None, files: list[str]) -> Path:
    """The folder of a cache with those of these `files` that the repository has. Raises UserError if it has none."""
    with library(f"{name} is not a folder, and the Hub", f"{name} cannot be fetched from the Hub") as hub:
        return Path(hub.snapshot_download(name, revision=revision, allow_patterns=files))


def push(folder: Path, name: str) -> str:
    """Upload the folder to a repository, which is made if it is missing. Returns its address."""
    with library("--push", f"--push {name}", f"; `hf upload {name} {folder}` tries again") as hub:
        api = hub.HfApi()
        api.create_repo(name, exist_ok=True)
        return str(api.upload_folder(repo_id=name, folder_path=folder))
