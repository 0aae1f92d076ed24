"""The real pipeline on a small corpus and model: a copy of the project in which every stage takes seconds."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from dvc.repo import Repo
from ruamel.yaml import YAML

from tests.support.projects import ROOT, Project

RUN = "demo-tiny"
TRAIN = f"train@{RUN}"
# One decoding for each kind of model
DECODINGS = {
    "demo-mbr": "decoder: mbr, references: {decoder: sampling, number: 8}, candidates: {decoder: beam, number: 3, beam: 3}",
    "demo-both": "decoder: greedy",
    "demo-mcts": "decoder: mcts, simulations: 4, extra_length: 10",
}
ENSEMBLE, VALUE, WARM = "twice", "demo-chrf", "demo-warm"
MODELS = {"demo-both": f"ensembles/{ENSEMBLE}", "demo-mcts": f"values/{VALUE}"}
SIZES = (
    "model: tiny, N: 1, d_model: 32, d_ff: 64, h: 2, d_k: 16, d_v: 16, steps: 60, batch_tokens: 300, "
    "micro_batch_tokens: 300, warmup: 10, checkpoint_every: 5, evaluate_every: 20, log_every: 10"
)
SMALLER = {
    "target: text/demo/train.de.xz}": "target: text/demo/train.de.xz, first: 1500}",
    "target: text/demo/dev.de.xz}": "target: text/demo/dev.de.xz, first: 20}",
    "target: text/demo/test.de.xz}": "target: text/demo/test.de.xz, first: 16}",
    "vocabulary: {pieces: 2000}\n  demo-reverse:": "vocabulary: {pieces: 600}\n  demo-reverse:",
    f"runs:\n  {RUN}: {{corpus: demo, model: quick}}": f"runs:\n  {RUN}: {{corpus: demo, {SIZES}}}",
    "\nensembles: {}\n": f"\nensembles:\n  {ENSEMBLE}: {{first: {RUN}/average, second: {RUN}/average}}\n",
    "\nwarm_starts: {}\n": f"\nwarm_starts:\n  {WARM}: {{corpus: demo, model: {RUN}/average}}\n",
    "\nvalues: {}\n": f"\nvalues:\n  {VALUE}: {{model: {RUN}/average, corpus: demo, sentences: 40, steps: 50}}\n",
    "\ndecodings: {}\n": "\ndecodings:\n"
    + "".join(
        f"  {name}: {{model: {MODELS.get(name, f'{RUN}/average')}, set: demo-test, {own}}}\n"
        for name, own in DECODINGS.items()
    ),
    "    threads: 2              # CPU threads": "    threads: 1              # CPU threads",
    "    extra_length: 50 ": "    extra_length: 10 ",
    "    threads: 2\n    attention_sentences: 3 ": "    threads: 1\n    attention_sentences: 1 ",
    "save_every_minutes: 10 ": "save_every_minutes: 0.001 ",
}
PAGE = "index.html"  # of the report; it shows times, so it differs between equal runs


def outputs(root: Path = ROOT) -> dict[str, list[str]]:
    """The outputs of each stage that params.yaml selects, as dvc.yaml declares them."""
    with Repo(str(root)) as repo:
        return {stage.name: [out.def_path for out in stage.outs] for stage in repo.index.stages if stage.name != "code"}


# The params.yaml of the project itself selects no decoding, ensemble or value.
OUTPUTS = outputs() | {f"decode_set@{name}": [f"scores/decodings/{name}"] for name in DECODINGS}
OUTPUTS |= {f"ensemble@{ENSEMBLE}": [f"models/ensembles/{ENSEMBLE}"]}
OUTPUTS |= {f"warm_start@{WARM}": [f"data/{WARM}", f"data/sets/{WARM}-dev", f"data/sets/{WARM}-test"]}
OUTPUTS |= {f"train_value@{VALUE}": [f"models/values/{VALUE}", f"scores/values/{VALUE}.json"]}
KILLED = [name for name in OUTPUTS if not name.startswith("decode_set@")] + ["decode_set@demo-mbr"]


def shortened(root: Path) -> Project:
    """A shortened copy of the project in `root`, in which nothing has run."""
    project = Project.new(root)
    for old, new in SMALLER.items():
        project.edit("params.yaml", old, new)
    return project


def command(project: Project, stage: str) -> dict:
    """Arguments for subprocess that start a stage's command as DVC ran it."""
    lock = YAML(typ="safe").load((project.root / "dvc.lock").read_text())
    return project.command(*shlex.split(lock["stages"][stage]["cmd"]))


def content(project: Project, stage: str, of: Mapping[str, Sequence[str]] = OUTPUTS) -> dict[str, bytes]:
    """The bytes of all files that a stage writes, by its outputs in `of`, without pages of the report, which show times."""
    places = [project.root / place for place in of[stage]]
    files = [file for place in places for file in [place, *place.rglob("*")] if file.is_file() and file.suffix != ".html"]
    return {str(file.relative_to(project.root)): file.read_bytes() for file in sorted(files)}
