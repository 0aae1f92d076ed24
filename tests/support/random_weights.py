"""A model folder with random weights, for tests of the commands that use a trained model."""

from pathlib import Path

import torch

from pipeline.learn_bpe import learn
from pipeline.settings.vocabulary import VocabularyConfig
from transformer.checkpoint import WEIGHTS, write_settings, write_tensors
from transformer.config.model import ModelConfig
from transformer.model import Transformer
from transformer.vocabulary import Vocabulary

WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
SCRIPT = "<img src=x onerror=hacked=1><script>hacked=1</script>"
PIECES = 340


def random_model(config: ModelConfig, folder: Path) -> Path:
    """Write the model into `folder`. Its vocabulary has pieces of WORDS and of SCRIPT."""
    torch.manual_seed(5)
    text = "\n".join([*WORDS * 3, SCRIPT]).encode() + b"\n"
    (folder / "vocabulary.model").write_bytes(
        learn([text], VocabularyConfig(PIECES, "byte_fallback", 1.0, 0, 0.0, 1, 1, 1))
    )
    vocabulary = Vocabulary(folder / "vocabulary.model")
    model = Transformer(config, vocabulary.size)
    with torch.no_grad():
        model.embedding *= 2.0  # so that the distributions are not flat
    write_tensors(folder / WEIGHTS, model.state_dict(), {})
    write_settings(folder, config, vocabulary.size, vocabulary.sha256)
    return folder
