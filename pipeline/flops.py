"""Count the operations of a training (section 6.1).

    python -m pipeline.flops RUN --training scores/RUN/training.json --corpus scores/corpora/CORPUS/binarise.json \\
        --out scores/RUN/flops.json

Reads the settings and the sums of sentence lengths from training.json, and the vocabulary's size from the corpus's
report. Writes {"analytic": {"training_flops", "training_flops_causal_half", "per_step", "components"}}. The stage
`report` adds the estimates that need the training time (pipeline/scoring/costs.py).
"""

import argparse
from typing import Annotated, Any

from pipeline.running import followers, stage
from pipeline.scoring.costs import Lengths, forward_flops, training_flops
from pipeline.settings.score_files import entry, within
from transformer.config.model import ModelConfig
from transformer.config.reading import Limits, hints, read_saved
from transformer.files import read_json, write_json

Counted = Annotated[int, Limits(gt=0)]


def analytic(config: ModelConfig, vocabulary_size: int, lengths: Lengths, steps: int, passes: int = 1) -> dict[str, Any]:
    """Count the operations of a training (pipeline/scoring/costs.py). Returns the entry `analytic` of flops.json.

    `lengths` sums over the pairs of all `steps` steps. `passes` are those of `training_flops`.
    """
    components, half = (
        training_flops(forward_flops(config, vocabulary_size, lengths, causal), passes) for causal in (False, True)
    )
    total = sum(components.values())
    return {
        "training_flops": total,
        "training_flops_causal_half": sum(half.values()),
        "per_step": total / steps,
        "components": components,
    }


def main(arguments: argparse.Namespace) -> None:
    training, where = read_json(arguments.training), str(arguments.training)
    config = read_saved(ModelConfig, within(training, "settings", "model"), f"{where}: settings.model")
    lengths = Lengths(**{key: entry(training, key, Counted, where) for key in hints(Lengths)})
    vocabulary_size = entry(read_json(arguments.corpus), "vocabulary_size", Counted, str(arguments.corpus))
    passes = 2 if within(training, "settings", "training", "r_drop") else 1
    counted = analytic(config, vocabulary_size, lengths, entry(training, "steps", Counted, where), passes)
    write_json(arguments.out, {"analytic": counted})
    if arguments.training.with_name("score.json").exists():  # otherwise the stage `score` shows all files
        with followers.mirroring(arguments.training):
            pass
    print(f"{arguments.run}: {counted['training_flops']:.2e} operations counted")


if __name__ == "__main__":
    stage.script(main, "flops", __doc__, "training corpus out", run="a run of params.yaml")
