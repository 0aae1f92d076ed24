"""The real pipeline made short: a copy of the project with a small corpus and model, every stage in seconds."""

import json
from pathlib import Path

from ruamel.yaml import YAML

from tests.projects import Project

RUN = "demo-tiny"
TRAIN = f"train@{RUN}"
DECODING = "demo-beam1"
SMALLER = {
    "train: 40000, dev: 500, test: 1000": "train: 1500, dev: 30, test: 40",
    "vocabulary: {size: 2000}": "vocabulary: {size: 600}",
    f"runs:\n  {RUN}: {{corpus: demo, model: tiny}}": f"runs:\n  {RUN}: {{corpus: demo, model: tiny, N: 1, d_model: 32, "
    "d_ff: 64, h: 2, d_k: 16, d_v: 16, steps: 60, batch_tokens: 300, micro_batch_tokens: 300, warmup: 10, "
    "checkpoint_every: 5, evaluate_every: 20, log_every: 10}",
    "\ndecodings: {}\n": f"\ndecodings:\n  {DECODING}: {{model: {RUN}/average, set: demo-test, beam: 1}}\n",
    "save_every_minutes: 10 ": "save_every_minutes: 0.001 ",
    "lengths: [64, 128, 256, 512, 1024]": "lengths: [16, 32, 64]",
    "widths: [64, 128, 256, 512, 1024]": "widths: [16, 32, 64]",
}
OUTPUTS = {
    "download@demo": ["data/demo/raw", "data/demo/test"],
    "normalise@demo": [
        "data/demo/normalised",
        "data/sets/demo-dev",
        "data/sets/demo-test",
        "scores/corpora/demo/normalise.json",
    ],
    "learn_bpe@demo": ["data/demo/vocabulary.model"],
    "binarise@demo": ["data/demo/binarised", "scores/corpora/demo/binarise.json"],
    TRAIN: [f"models/{RUN}/checkpoints", *(f"scores/{RUN}/{name}" for name in ("training.jsonl", "training.json"))],
    f"average@{RUN}": [f"models/{RUN}/average"],
    f"decode@{RUN}": [f"scores/{RUN}/translations"],
    f"decoding@{DECODING}": [f"scores/decodings/{DECODING}"],
    f"score@{RUN}": [f"scores/{RUN}/score.json"],
    f"flops@{RUN}": [f"scores/{RUN}/flops.json"],
    "layer_costs": ["scores/layer-costs.json"],
    "report": ["reports"],
}
# What was timed stands in these, and what is made of it in the outputs of the stages behind.
TIMINGS = {TRAIN: f"scores/{RUN}/timing.json", f"decode@{RUN}": f"scores/{RUN}/decoding-timing.json"}
FROM_TIMES = {f"flops@{RUN}", "report"}


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
    """The bytes of all files that a stage makes, but those with times; of layer_costs, all but its times."""
    if stage == "layer_costs" and (project.root / OUTPUTS[stage][0]).exists():
        layers = json.loads((project.root / OUTPUTS[stage][0]).read_text())["layers"]
        return {kind: repr((cost["bytes"], cost["path_length"])).encode() for kind, cost in layers.items()}
    places = [project.root / place for place in OUTPUTS[stage]]
    files = [file for place in places for file in [place, *place.rglob("*")] if file.is_file()]
    return {str(file.relative_to(project.root)): file.read_bytes() for file in sorted(files)}
