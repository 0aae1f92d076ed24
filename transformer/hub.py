"""The Hugging Face Hub: a model folder as a repository. Needs the package huggingface_hub."""

from pathlib import Path
from typing import Any

from transformer.config.reading import UserError


def library(what: str) -> Any:
    try:
        import huggingface_hub
    except ImportError:
        raise UserError(f"{what} needs the package huggingface_hub: pip install huggingface_hub") from None
    return huggingface_hub


def fetched(name: str, revision: str | None, files: list[str]) -> Path:
    """The folder of a cache with those of these `files` that the repository has. Raises UserError if it has none."""
    hub = library(f"{name} is not a folder, and the Hub")
    try:
        return Path(hub.snapshot_download(name, revision=revision, allow_patterns=files))
    except Exception as error:  # of the library, or of the one that it uses for HTTP
        raise UserError(f"{name} cannot be fetched from the Hub: {said(error)}") from None


def push(folder: Path, name: str) -> str:
    """Upload the folder to a repository, which is made if it is missing. Returns its address."""
    api = library("--push").HfApi()
    try:
        api.create_repo(name, exist_ok=True)
        return str(api.upload_folder(repo_id=name, folder_path=folder))
    except Exception as error:  # of the library, or of the one that it uses for HTTP
        raise UserError(f"--push {name}: {said(error)}; `hf upload {name} {folder}` tries again") from None


def said(error: Exception) -> str:
    """The first line of an error's message, or the name of its class if it has none."""
    return next(iter(str(error).splitlines()), type(error).__name__)
