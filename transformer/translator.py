"""Translating text: a model, its vocabulary, the normalisation of its training text and the settings of the search.

>>> from transformer import Translator
>>> translate = Translator.load("models/demo-tiny/average")
>>> translate("A sentence.")
>>> translate(["A sentence.", "Another."], beam=8, alignment=True)[0].alignment
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from inspect import signature
from pathlib import Path
from typing import Any, Literal, TypeAlias, overload

import torch
from torch import Tensor

from transformer import hub
from transformer.alignment import WeightsOf, attention_weights_of, links, words_of_given, words_of_target
from transformer.checkpoint import SETTINGS, VOCABULARY, WEIGHTS, load_model, read_settings
from transformer.cleaning import cleaner
from transformer.config.decoding import DecodingConfig
from transformer.config.reading import UserError, read, read_saved, require, shown, unknown
from transformer.config.text import TEXT, TextConfig
from transformer.config.vocabulary import BOS, EOS, UNK
from transformer.decoders.beam import Beam
from transformer.decoders.steps import Decoder, Translation
from transformer.decoding import PAPER, Hypothesis, batches_by_length, model_in, search_batches, settings_on
from transformer.device import AT_ONCE, at_once, device_of
from transformer.files import read_json
from transformer.layout import pad
from transformer.memory import enough_memory
from transformer.model import Transformer
from transformer.sentences import Divided
from transformer.sources import Sources, is_text, one_line, warn
from transformer.vocabulary import Vocabulary

MOST = 10_000  # hypotheses of a line
NO_TEXTS = Mapping | bytes | bytearray | memoryview  # which yield names and numbers
No: TypeAlias = Literal[False]
Many: TypeAlias = list[str] | tuple[str, ...]


@dataclass(eq=False)  # equal to itself only, so that it can be a key
class Translator(Sources):
    """A trained model that translates text."""

    model: Transformer  # in float32
    vocabulary: Vocabulary
    config: DecodingConfig  # with the values for the model's device
    description: dict[str, Any]  # from the file of the weights, for example the averaged steps
    others: Sequence[Transformer] = ()  # the other models of an ensemble, in float32
    text_config: TextConfig | None = None
    max_length: int | None = None  # pieces of the longest line of the training, EOS included; None if it is not known
    say: Callable[[str], object] = warn  # names the first line of which a part may be missing
    said: list[str] = field(default_factory=list)  # what was said; copies of the translator share it
    decoders: list[Transformer] = field(init=False)  # `model` and `others`, or their copies in bfloat16
    calls: int = field(init=False, default=0)  # the prefixes that the latest call of `n_best` scored

    def __post_init__(self) -> None:
        self.config = settings_on(self.device, self.config, self.model.config.d_model)
        self.clean = self.clean_prefix = lambda text: text
        self.languages = self.text_config.languages if self.text_config else ("", "")
        if text := self.text_config:
            switches = {"entities": text.entities, "nfc": text.nfc, "punctuation": text.punctuation}
            self.clean, self.clean_prefix = (cleaner(**switches, language=code) for code in self.languages)
        self.decoders = [model_in(self.config.precision, model) for model in (self.model, *self.others)]

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if key not in ("clean", "clean_prefix", "decoders")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.__post_init__()

    @classmethod
    def load(
        cls, folder: str | Path, device: str | torch.device = "auto", precision: str = PAPER.precision, **settings: Any
    ) -> "Translator":
        """The model of a folder that average wrote: weights, settings, vocabulary, languages and normalisation.

        `device` is auto (a GPU where there is one), cpu or cuda. `precision` is auto, float32 or bfloat16. `settings`
        are those of `DecodingConfig` that differ from PAPER; `threads` are those of torch in this process, at most AT_ONCE.
        Without text.json, input is not normalised. Raises UserError for a damaged file and for an invalid setting.
        """
        if not (folder := Path(folder)).is_dir():
            raise UserError(f"{folder} is not a folder; a model folder, such as models/RUN/average, is expected")
        threads = min(AT_ONCE, torch.get_num_threads())
        config = changed(PAPER, {"precision": precision, "threads": threads, **settings})
        text = read_saved(TextConfig, read_json(folder / TEXT), str(folder / TEXT)) if (folder / TEXT).exists() else None
        return cls.open(folder / WEIGHTS, folder / VOCABULARY, config, device_of(device), text)

    @classmethod
    def from_pretrained(cls, name: str | Path, revision: str | None = None, **options: Any) -> "Translator":
        """`load` of a folder, or of a repository of the Hugging Face Hub that `export --format transformer --push` made.

        `revision` is a branch, a tag or a commit of the repository. `options` are those of `load`. Raises UserError as
        `load` does, and if the repository cannot be fetched.
        """
        own = Path(name).is_dir()
        return cls.load(name if own else hub.fetched(str(name), revision, [WEIGHTS, SETTINGS, VOCABULARY, TEXT]), **options)

    @classmethod
    def open(
        cls,
        weights: Path,
        vocabulary: Path,
        config: DecodingConfig,
        device: torch.device,
        text_config: TextConfig | None = None,
    ) -> "Translator":
        """The model in the file `weights`, with settings.json beside it. Without `text_config`, input is not normalised.

        Raises UserError for damaged files and for a vocabulary that the model was not trained with.
        """
        with enough_memory("in loading the model", f"its {SETTINGS} may be damaged; otherwise use a larger machine"):
            model, description = load_model(weights, device)
        pieces = Vocabulary(vocabulary)
        settings = read_settings(weights.parent)
        if pieces.sha256 != settings.vocabulary_sha256:
            raise UserError(f"{vocabulary} is not the vocabulary that {weights} was trained with")
        return cls(model, pieces, config, description, text_config=text_config, max_length=settings.max_length)

    def using(self, **settings: Any) -> "Translator":
        """The same model with other decoder settings; bfloat16 needs one copy. Raises UserError for an invalid setting."""
        return dataclasses.replace(self, config=changed(self.config, settings)) if settings else self

    @overload
    def __call__(
        self, text: str, *, n_best: None = ..., scores: No = ..., attention: No = ..., alignment: No = ..., **more: Any
    ) -> str: ...
    @overload
    def __call__(
        self, text: Many, *, n_best: None = ..., scores: No = ..., attention: No = ..., alignment: No = ..., **more: Any
    ) -> list[str]: ...
    @overload
    def __call__(self, text: str | Iterable[str], **more: Any) -> Any: ...
    def __call__(
        self,
        text: str | Iterable[str],
        *,
        n_best: int | None = None,
        scores: bool = False,
        attention: bool = False,
        alignment: bool = False,
        split: bool = False,
        prefix: str | Sequence[str] = "",
        min_length: int = 0,
        **settings: Any,
    ) -> Any:
        """The translation of a line, or of each line of a list, in order.

        A translation is a str. With `scores`, `attention` or `alignment` it is a Hypothesis. With `n_best` it is a list
        of at most `n_best` Hypothesis objects, best first. Those ranked below the beam are poor. With `split`, each
        sentence is translated by itself, and the line breaks stay. Without, a line is one sentence, and line feeds become
        spaces; the first line of which the model may translate a part only is warned about, once. A translation begins
        with `prefix`, one for all lines or one each, and has at least `min_length` pieces. `settings` are those of
        `DecodingConfig` that differ in this call. Raises UserError as `prepared`, `hypotheses` and `using` do, and for a
        `text` that is neither a str nor a list.
        """
        if not isinstance(text, Iterable) or isinstance(text, NO_TEXTS) or hasattr(text, "columns"):
            raise UserError(f"{shown(text)} is not possible; a text or a list of texts is expected")
        if wrong := [key for key in settings if key not in vars(self.config)]:
            options = [name for name, each in signature(self.__call__).parameters.items() if each.kind is each.KEYWORD_ONLY]
            known = [*options, *vars(self.config)]
            raise UserError("\n".join(unknown(key, known, "the settings of decoding") for key in wrong))
        translator, lines = self.using(**settings), [text] if isinstance(text, str) else list(text)
        if split and (prefix or min_length):
            raise UserError("prefix and min_length apply to one sentence; they are not possible with split")
        if split and (n_best is not None or scores or attention or alignment):
            raise UserError("split joins translations; it is not possible with n_best, scores, attention or alignment")
        parts, number = list(translator.prepared(lines, split)), 1 if n_best is None else n_best
        if split:
            joined = translator.joined(parts)
            return joined[0] if isinstance(text, str) else joined
        normalised = [part.sentences[0] for part in parts]
        decoder = translator.beginning(prefix, min_length, len(lines))
        results: list[Any] = translator.hypotheses(normalised, "the text", number, attention, alignment, lines, decoder)
        if n_best is None:
            results = [first if scores or attention or alignment else first.text for first, *_ in results]
        return results[0] if isinstance(text, str) else results

    def beginning(self, prefix: str | Sequence[str], min_length: int, count: int) -> Beam:
        """The search of which `count` translations begin with the `prefix` and have `min_length` pieces."""
        prefixes = [prefix] * count if isinstance(prefix, str) else prefix
        valid = isinstance(prefixes, (list, tuple)) and len(prefixes) == count and all(map(is_text, prefixes))
        require(valid, "prefix", prefix, "a text, or a list with a text for each line, is expected")
        clean = [" ".join(one_line(one_line(each, self.clean_prefix)).split()) for each in prefixes]
        ids = self.encode(clean) if any(prefixes) else ()
        known, most = not any(UNK in each for each in ids), self.longest
        require(known, "prefix", prefix, "characters that the vocabulary has are expected")
        require(max(map(len, ids), default=0) <= most, "prefix", prefix, f"at most {most:,} pieces are expected")
        valid = type(min_length) is int and 0 <= min_length <= most
        require(valid, "min_length", min_length, f"a whole number from 0 to {most:,} is expected")
        return Beam(self.config, prefixes=ids, shortest=min_length)

    @property
    def device(self) -> torch.device:
        return self.model.embedding.device

    def encode(self, lines: list[str]) -> list[list[int]]:
        return self.vocabulary.encode(lines, self.config.threads)

    def joined(self, texts: Sequence[Divided]) -> list[str]:
        """The translation of each text, whose sentences are translated one by one."""
        found = self.hypotheses([sentence for text in texts for sentence in text.sentences], "the text")
        translations = (first.text for first, *_ in found)
        return [text.joined(translations, self.languages[1]) for text in texts]

    def n_best(
        self,
        lines: list[str],
        name: str,
        count: int,
        tick: Callable[[int], object] = lambda _: None,
        decoder: Decoder | None = None,
    ) -> list[list[Translation]]:
        """At most `count` translations of each normalised line, best first. An empty line has one empty translation.

        Without a `decoder`, beam search (6.1) translates. `tick` is called with the number of sentences of each finished
        batch. Sets `calls` to the number of scored prefixes. In errors, `name` names the lines. Raises UserError for a
        line of more than batch_tokens / width pieces, and if memory runs out.
        """
        decoder = decoder or Beam(self.config)
        width, sources = decoder.width(count), self.encode(lines)
        longest = max(1, self.config.batch_tokens // width)
        for number, source in enumerate(sources):
            if len(source) > longest:  # a longer line would take hours, and memory grows with the square of the length
                raise UserError(
                    f"{name}: line {number + 1} is {len(source):,} pieces long; with batch_tokens "
                    f"{self.config.batch_tokens} and {width} hypotheses in memory, at most {longest:,} are possible; "
                    "split the line"
                )
        self.calls, results = 0, [[Translation([], 0.0)]] * len(lines)
        batches = batches_by_length([*map(len, sources)], longest, at_once(self.device, self.config.threads))
        found = search_batches(self.decoders, sources, batches, decoder, self.config, count)
        with enough_memory("in decoding", "lower decoding.batch_tokens"), closing(found):
            for numbers, (of_batch, calls) in zip(batches, found):
                for number, translations in zip(numbers, of_batch):
                    results[number] = translations
                self.calls += calls
                tick(len(numbers))
        return results

    def hypotheses(
        self,
        lines: list[str],
        name: str,
        n_best: int = 1,
        attention: bool = False,
        alignment: bool = False,
        given: Sequence[str] | None = None,
        decoder: Decoder | None = None,
    ) -> list[list[Hypothesis]]:
        """At most `n_best` hypotheses of each normalised line. Alignments count the words of the lines that were `given`.

        Raises UserError as `n_best` does, and if `n_best` is not a whole number from 1 to MOST.
        """
        valid = type(n_best) is int and 0 < n_best <= MOST
        require(valid, "n_best", n_best, f"a whole number from 1 to {MOST:,} is expected")
        weights_of = attention_weights_of(self.model) if attention or alignment else None
        results, translations = list[list[Hypothesis]](), self.n_best(lines, name, n_best, decoder=decoder)
        for line, text, source, found in zip(lines, given or lines, self.encode(lines), translations):
            pieces = self.vocabulary.pieces(source)
            words = words_of_given(pieces, line, text, self.normalised) if alignment else None
            results.append([self.hypothesis(source, each, weights_of, attention, words) for each in found])
        return results

    def hypothesis(
        self, source: list[int], one: Translation, weights_of: WeightsOf | None, attention: bool, words: list[int] | None
    ) -> Hypothesis:
        """The hypothesis of a translation. With the `words` of the source's pieces, it has an alignment."""
        if not source:
            return Hypothesis("", one.score, [], [], alignment=None if words is None else [])
        pieces, (text,) = self.vocabulary.pieces, self.text([one])
        cross = self.attention(source, one.ids, weights_of)["cross"] if weights_of else None
        aligned = None
        if cross is not None and words is not None:
            aligned = links(cross, words, words_of_target(self.vocabulary, one.ids))
        sides = [*pieces(source), "</s>"], [*pieces(one.ids), "</s>"]
        return Hypothesis(text, one.score, *sides, cross if attention else None, aligned)

    @torch.no_grad()  # a caller may write into the result, unlike into a tensor of inference mode
    def attention(self, source: list[int], target: list[int], weights_of: WeightsOf | None = None) -> dict[str, Tensor]:
        """The attention weights for `source` and `target`, in float32, on the CPU: [layers, heads, queries, keys].

        The keys of the result are those of `attention_weights_of`. Source positions are the pieces of `source` and EOS.
        Target positions are BOS and the pieces of `target`; position t predicts piece t, and the last position EOS.
        `weights_of` is that of the model, for a caller that asks more than once. Raises UserError if memory runs out.
        """
        ids = (pad([[*source, EOS]]).to(self.device), pad([[BOS, *target]]).to(self.device))
        with enough_memory("for the attention weights", "split the line"):
            weights = (weights_of or attention_weights_of(self.model))(*ids)
            return {kind: torch.cat(layers).cpu() for kind, layers in weights.items()}

    def text(self, translations: Sequence[Translation]) -> list[str]:
        """Detokenised lines. A line break, which byte pieces can give, becomes a space."""
        texts = self.vocabulary.decode([each.ids for each in translations])
        return [text.replace("\n", " ").replace("\r", " ") for text in texts]


def changed(config: DecodingConfig, settings: dict[str, Any]) -> DecodingConfig:
    """`config` with other `settings`. Raises UserError for an unknown or invalid setting."""
    return read(DecodingConfig, {**vars(config), **settings}, "the settings of decoding")
