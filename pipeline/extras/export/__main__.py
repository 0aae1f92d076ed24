"""Export a trained model for use without this project.

    python -m pipeline.extras.export RUN OUT --format marian|ctranslate2|transformer [--step N] [--push NAME]

RUN is a run of params.yaml or a model folder that the stage `average` wrote. --step takes the checkpoint of this step.

marian writes a folder for MarianMTModel and MarianTokenizer of Hugging Face. ctranslate2 writes a folder for
ctranslate2.Translator, whose input is subword pieces; the SentencePiece model vocabulary.model in the folder encodes
text as pieces. Both formats support the architecture of the paper and the variations that `require_exportable` accepts.
transformer is a model folder of this project, for Translator.from_pretrained. --push also uploads OUT to the repository
NAME of the Hugging Face Hub, with the token that `hf auth login` or HF_TOKEN gives.
The beam, alpha and extra_length are those of the run, and the paper's for a model folder. README.md is the model card:
how to load the model, data and licence, scores with signatures.
"""

import argparse
import importlib.util
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor

from pipeline.commands.status import not_done
from pipeline.extras.export.model_card import card
from pipeline.running import stage
from pipeline.running.models import NAMED, STEP, decoding_of, folder_of, run_of, weights_of
from transformer import hub
from transformer.checkpoint import SETTINGS, VOCABULARY, WEIGHTS, load_model
from transformer.config.decoding import DecodingConfig
from transformer.config.model import ModelConfig
from transformer.config.reading import UserError
from transformer.config.text import TEXT
from transformer.config.vocabulary import BOS, EOS, PAD, UNK
from transformer.files import atomic_folder, write_file, write_json
from transformer.layers import DecoderLayer, EncoderLayer, Residual, sinusoids
from transformer.model import Transformer
from transformer.translator import PAPER
from transformer.vocabulary import Vocabulary

if TYPE_CHECKING:
    from ctranslate2.specs import TransformerSpec

LONGEST = 1024  # pieces of a line; our table of sinusoids grows with the lines, that of an exported model does not
POSSIBLE = {"suppress_tokens": [PAD, BOS], "renormalize_logits": True}  # PAD and BOS have no probability
HELD = {"norm": "post", "positions": "sinusoidal", "attention": "scaled_dot_product", "neighbourhood": 0}


def require_exportable(config: ModelConfig, folder: Path) -> None:
    for key, held in HELD.items():
        if getattr(config, key) != held:
            raise UserError(f"{folder}: {key} is {getattr(config, key)!r}; the export formats support only {held!r}")
    for key in ("d_k", "d_v"):
        if config.h * getattr(config, key) != config.d_model:
            values = f"h x {key} is {config.h} x {getattr(config, key)} and d_model {config.d_model}"
            raise UserError(f"{folder}: {values}; the export formats require these to be equal")


def tensors_of(model: Transformer) -> dict[str, Tensor]:
    """The weights, under the names of MarianMTModel.

    In MarianMTModel, all sines of the position encodings precede all cosines; in our model they alternate. The axes over
    the model's dimensions (not over heads) are therefore permuted. The bias of the logits is 0, because label smoothing in
    further training takes the log-probability of every token, PAD and BOS included.
    """
    order, unbiased = halves(model.config.d_model), torch.zeros(1, len(model.embedding))
    tensors = {"model.shared.weight": model.embedding[:, order], "final_logits_bias": unbiased}
    for stack in ("encoder", "decoder"):
        for number, layer in enumerate(getattr(model, stack)):
            for name, tensor in layer_tensors(layer, order).items():
                tensors[f"model.{stack}.layers.{number}.{name}"] = tensor
    return {name: tensor.detach().contiguous() for name, tensor in tensors.items()}


def halves(d_model: int) -> Tensor:
    """The permutation that places even dimensions before odd dimensions."""
    return torch.arange(d_model).view(-1, 2).T.flatten()


def layer_tensors(layer: EncoderLayer | DecoderLayer, order: Tensor) -> dict[str, Tensor]:
    attentions = {"self_attn": layer.self_attention}
    if isinstance(layer, DecoderLayer):
        attentions["encoder_attn"] = layer.cross_attention
    tensors: dict[str, Tensor] = {}
    for name, attention in attentions.items():
        parts = (attention.projection.split(attention.sizes), attention.projection_bias.split(attention.sizes))
        for part, weight, bias in zip("qkv", *parts):
            tensors |= {f"{name}.{part}_proj.weight": weight[:, order], f"{name}.{part}_proj.bias": bias}
        tensors |= written(f"{name}.out_proj", attention.output, order)
    for name, residual in zip([*attentions, "final"], layer.residuals):
        assert isinstance(residual, Residual)  # torch does not type ModuleList by its elements
        tensors |= written(f"{name}_layer_norm", residual.norm, order)
    inner, outer = layer.feed_forward.inner, layer.feed_forward.outer
    tensors |= {"fc1.weight": inner.weight[:, order], "fc1.bias": inner.bias}
    return tensors | written("fc2", outer, order)


def written(name: str, module: torch.nn.Linear | torch.nn.LayerNorm, order: Tensor) -> dict[str, Tensor]:
    """The weight and the bias of a module with d_model outputs. `order` permutes the outputs."""
    return {f"{name}.weight": module.weight[order], f"{name}.bias": module.bias[order]}


def positions(config: ModelConfig, extra_length: int) -> int:
    """The positions for which an exported model has sinusoids: the longest line, `extra_length` pieces more, and EOS."""
    return max(config.max_positions, LONGEST) + extra_length + 1


def write_marian(model: Transformer, vocabulary: Path, folder: Path, decoding: DecodingConfig) -> None:
    pieces = Vocabulary(vocabulary)
    ids = {"pad_token_id": PAD, "bos_token_id": BOS, "eos_token_id": EOS, "decoder_start_token_id": BOS}
    write_file(folder / "model.safetensors", save(tensors_of(model), {"format": "pt"}))
    longest_translation = positions(model.config, decoding.extra_length)
    positioned = {"max_position_embeddings": longest_translation}
    write_json(folder / "config.json", marian_config(model.config, pieces.size) | positioned | ids)
    search = {"num_beams": decoding.beam, "length_penalty": decoding.alpha, "early_stopping": "never"}
    write_json(folder / "generation_config.json", ids | search | POSSIBLE | {"max_length": longest_translation})
    write_json(folder / "vocab.json", {piece: number for number, piece in enumerate(pieces.pieces(range(pieces.size)))})
    for name in ("source.spm", "target.spm"):
        shutil.copyfile(vocabulary, folder / name)
    names = dict(zip(("pad_token", "unk_token", "eos_token"), pieces.pieces([PAD, UNK, EOS])))
    tokenizer = {"tokenizer_class": "MarianTokenizer", "model_max_length": positions(model.config, 0)}
    text = {"split_special_tokens": True, "clean_up_tokenization_spaces": False}  # `</s>` in a line is text
    write_json(folder / "tokenizer_config.json", tokenizer | names | text)


def marian_config(config: ModelConfig, vocabulary_size: int) -> dict[str, Any]:
    sides: dict[str, int] = {}
    for side in ("encoder", "decoder"):
        sides |= {f"{side}_layers": config.N, f"{side}_attention_heads": config.h, f"{side}_ffn_dim": config.d_ff}
    return sides | {
        "model_type": "marian",
        "architectures": ["MarianMTModel"],
        "vocab_size": vocabulary_size,
        "decoder_vocab_size": vocabulary_size,
        "d_model": config.d_model,
        "activation_function": "relu",
        "dropout": config.dropout,
        "attention_dropout": config.attention_dropout,
        "activation_dropout": config.relu_dropout,
        "scale_embedding": True,
        "static_position_embeddings": True,
        "share_encoder_decoder_embeddings": True,
        "tie_word_embeddings": True,
        "forced_eos_token_id": None,
    }


def write_ctranslate2(model: Transformer, vocabulary: Path, folder: Path, decoding: DecodingConfig) -> None:
    if importlib.util.find_spec("ctranslate2") is None:
        raise UserError("--format ctranslate2 needs the package ctranslate2: pip install ctranslate2")
    pieces = Vocabulary(vocabulary)
    ctranslate2_spec(model, pieces.pieces(range(pieces.size)), decoding).save(str(folder))
    shutil.copyfile(vocabulary, folder / VOCABULARY)


def ctranslate2_spec(model: Transformer, pieces: list[str], decoding: DecodingConfig = PAPER) -> "TransformerSpec":
    from ctranslate2.specs import TransformerSpec

    spec, weights = TransformerSpec.from_config(model.config.N, model.config.h, pre_norm=False), tensors_of(model)
    for stack in ("encoder", "decoder"):
        for number, layer in enumerate(getattr(spec, stack).layer):
            fill(layer, weights, f"model.{stack}.layers.{number}")
    embedding, projection = weights["model.shared.weight"].numpy(), spec.decoder.projection
    spec.encoder.embeddings[0].weight = spec.decoder.embeddings.weight = projection.weight = embedding
    projection.bias = np.zeros(len(embedding), np.float32)
    projection.bias[[PAD, BOS]] = -np.inf  # never predicted
    order = halves(model.config.d_model)
    table = sinusoids(positions(model.config, decoding.extra_length), model.config.d_model)[:, order].numpy()
    spec.encoder.position_encodings.encodings = spec.decoder.position_encodings.encodings = table
    spec.register_source_vocabulary(pieces)
    spec.register_target_vocabulary(pieces)
    spec.config.add_source_eos = True
    spec.validate()
    spec.optimize()
    return spec


def fill(spec: Any, weights: dict[str, Tensor], layer: str) -> None:
    """Copy the weights of a layer, whose names in MarianMTModel begin with `layer`, to its specification in CTranslate2."""
    # What each module is made of. Products of the same vectors are one product.
    modules = {spec.ffn.linear_0: ["fc1"], spec.ffn.linear_1: ["fc2"], spec.ffn.layer_norm: ["final_layer_norm"]}
    attentions = {"self_attn": (spec.self_attention, ["qkv"])}
    if hasattr(spec, "attention"):
        attentions["encoder_attn"] = (spec.attention, ["q", "kv"])
    for name, (to, products) in attentions.items():
        made = [[f"{name}.{part}_proj" for part in product] for product in products]
        modules |= zip(to.linear, [*made, [f"{name}.out_proj"]])
        modules[to.layer_norm] = [f"{name}_layer_norm"]
    for to, names in modules.items():
        keys = ("gamma", "beta") if hasattr(to, "gamma") else ("weight", "bias")
        for key, kind in zip(keys, ("weight", "bias")):
            setattr(to, key, torch.cat([weights[f"{layer}.{name}.{kind}"] for name in names]).numpy())


def write_own(model: Transformer, vocabulary: Path, folder: Path, decoding: DecodingConfig) -> None:
    for name in (WEIGHTS, SETTINGS, VOCABULARY, TEXT):
        if (vocabulary.parent / name).exists():  # earlier code wrote no text.json
            shutil.copyfile(vocabulary.parent / name, folder / name)


FORMATS = {"marian": write_marian, "ctranslate2": write_ctranslate2, "transformer": write_own}


def main(arguments: argparse.Namespace) -> None:
    source, decoding = folder_of(arguments.run), decoding_of(arguments.run)
    weights = weights_of(source, arguments.step)
    model, description = load_model(weights, torch.device("cpu"))
    if arguments.format != "transformer":
        require_exportable(model.config, source)
    if arguments.out.exists():
        raise UserError(f"{arguments.out} exists already; name a folder that does not exist")
    run = run_of(source)
    if stale := not_done(run).get(run) if run else None:
        print(f"export: {stale}, so the model card has neither scores nor data", file=sys.stderr)
    with atomic_folder(arguments.out) as folder:
        FORMATS[arguments.format](model, source / VOCABULARY, folder, decoding)
        if arguments.step and arguments.format == "transformer":
            shutil.copyfile(weights, folder / WEIGHTS)
        text = card(source, description, arguments.format, decoding, bool(stale))
        (folder / "README.md").write_text(text, encoding="utf-8")
    print(f"{source} exported as {arguments.format} to {arguments.out}")
    if arguments.push:
        print(f"uploaded to {hub.push(arguments.out, arguments.push)}")


if __name__ == "__main__":
    parser = stage.parser("export", __doc__)
    parser.add_argument("run", help=NAMED)
    parser.add_argument("out", type=Path, help="a folder that does not exist yet")
    parser.add_argument("--step", **STEP)
    parser.add_argument("--format", choices=FORMATS, required=True, help="the library that reads the folder")
    parser.add_argument("--push", metavar="NAME", help="a repository of the Hugging Face Hub, such as me/demo-tiny")
    stage.run(main, parser, checked=False)
