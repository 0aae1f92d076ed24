"""The real pipeline on a small corpus and model: a copy of the project in which every stage takes seconds."""

from pathlib import Path

from ruamel.yaml import YAML

from tests.projects import Project

RUN = "demo-tiny"
TRAIN = f"train@{RUN}"
SMALLER = {
    "train: 40000, dev: 500, test: 1000": "train: 1500, dev: 30, test: 40",
    "vocabulary: {size: 2000}": "vocabulary: {size: 600}",
    f"runs:\n  {RUN}: {{corpus: demo, model: tiny}}": f"runs:\n  {RUN}: {{corpus: demo, model: tiny, N: 1, d_model: 32, "
    "d_ff: 64, h: 2, d_k: 16, d_v: 16, steps: 60, batch_tokens: 300, micro_batch_tokens: 300, warmup: 10, "
    "checkpoint_every: 5, evaluate_every: 20, log_every: 10}",
    "lengths: [64, 128, 256, 512, 1024]": "lengths: [16, 32, 64]",
    "widths: [64, 128, 256, 512, 1024]": "widths: [16, 32, 64]",
}
PAGE = "index.html"
OUTPUTS = {
    "download@demo": ["data/demo/raw"],
    "normalise@demo": ["data/demo/normalised", "scores/corpora/demo/normalise.json"],
    "learn_bpe@demo": ["data/demo/vocabulary.model"],
    "binarise@demo": ["data/demo/binarised", "scores/corpora/demo/binarise.json"],
    TRAIN: [f"models/{RUN}/checkpoints", *(f"scores/{RUN}/{name}" for name in ("training.jsonl", "training.json"))],
    f"average@{RUN}": [f"models/{RUN}/average"],
    f"decode@{RUN}": [f"scores/{RUN}/translations"],
    f"score@{RUN}": [f"scores/{RUN}/score.json", f"scores/{RUN}/metrics.json"],
    f"flops@{RUN}": [f"scores/{RUN}/flops.json"],
    "layer_costs": ["scores/layer-costs.json"],
    "report": ["reports"],
}


def shortened(root: Path) -> Project:
    """The project's copy in `root`, where nothing has run."""
    project = Project.new(root)
    for old, new in SMALLER.items():
        project.edit("params.yaml", old, new)
    return project


def command(project: Project, stage: str) -> dict:
    """How to start a stage's command, as DVC ran it."""
    lock = YAML(typ="safe").load((project.root / "dvc.lock").read_text())
    commands = lock["stages"][stage]["cmd"]  # the check, then the stage's own
    return project.command(*(commands if isinstance(commands, str) else commands[-1]).split())


def content(project: Project, stage: str) -> dict[str, bytes]:
    """The bytes of all files that a stage makes, but the page of the report, which shows times."""
    places = [project.root / place for place in OUTPUTS[stage]]
    files = [file for place in places for file in [place, *place.rglob("*")] if file.is_file() and file.name != PAGE]
    return {str(file.relative_to(project.root)): file.read_bytes() for file in sorted(files)}
