"""The BLEU matrix: one hypothesis file scored in every way that a number in the literature may have been.

What differs between two "BLEU"s is mostly the tokeniser, so each score carries its signature. The paper's own
(section 6.1) is tokenised BLEU: typographic punctuation replaced, Moses' tokeniser, for German the compounds split at
hyphens, then multi-bleu.perl. The reference of newstest2014 has typographic quotes; known results replaced them in
the reference as well, so both are given.
"""

import functools
import importlib.metadata
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from sacrebleu.metrics import BLEU, CHRF

HEADLINE = "bleu-13a"
COMPOUNDS_SPLIT = ("de",)  # the target languages whose published BLEU was taken on split compounds


@functools.cache
def moses(language: str):
    """Moses' tokeniser; a language without a list of abbreviations takes the English one, as in Moses."""
    from sacremoses import MosesTokenizer  # takes a second to import

    return MosesTokenizer(language)


@functools.cache
def normaliser():
    """Moses' punctuation normaliser, for the first of its steps."""
    from sacremoses import MosesPunctNormalizer

    return MosesPunctNormalizer()


def replace_unicode_punctuation(line: str) -> str:
    """As Moses' replace-unicode-punctuation.perl: right quotes and ellipses become ASCII; the low-9 quote „ stays."""
    return normaliser().replace_unicode_punct(line)


def tokenise(line: str, language: str) -> str:
    """As Moses' tokenizer.perl -q -l `language`: no aggressive hyphen splitting, special characters escaped."""
    tokens = moses(language).tokenize(line, return_str=True)
    # Today's script splits the last word's full stop even from an abbreviation ("at 10 p.m."); sacremoses ports the
    # one before. With this, no line of newstest2014 differs, in German, French or English.
    return re.sub(r"(?<=[^ .])\.$", " .", tokens)


def split_compounds(line: str) -> str:
    """`rich-text` becomes `rich ##AT##-##AT## text`, in one pass from the left: of `a-b-c` the first hyphen only.

    On bytes, as `perl -ple` does it: of `vis-à-vis`, whose à is two of them, both hyphens.
    """
    return re.sub(rb"(\S)-(\S)", rb"\1 ##AT##-##AT## \2", line.encode()).decode()


def paper_text(line: str, language: str, replace: bool) -> str:
    """`line` as the paper's BLEU counts it; `replace`: with replace-unicode-punctuation first."""
    line = tokenise(replace_unicode_punctuation(line) if replace else line, language)
    return split_compounds(line) if language in COMPOUNDS_SPLIT else line


def unchanged(line: str) -> str:
    return line


@dataclass(frozen=True)
class Measure:
    """A cell of the matrix: how each side's lines are prepared, what then scores them, what the signature says of it.

    `steps` are the signature's own entries, where the preparation is more than sacreBLEU knows of.
    """

    metric: BLEU | CHRF
    hypothesis: Callable[[str], str]
    reference: Callable[[str], str]
    steps: dict[str, str]

    def statistics(self, hypotheses: Sequence[str], references: Sequence[str]) -> np.ndarray:
        """The counts that add up to the corpus's score, a row for each segment."""
        prepared = [self.hypothesis(line) for line in hypotheses]
        answers = [[self.reference(line) for line in references]]
        # sacreBLEU's own significance tests are built on this method and the next; its version is pinned.
        return np.array(self.metric._extract_corpus_statistics(prepared, answers), dtype=float)

    def score(self, counts: np.ndarray) -> float:
        """The score from summed-up statistics."""
        return self.metric._compute_score_from_stats(counts.tolist()).score

    def signature(self, resamples: int, seed: int) -> str:
        """sacreBLEU's signature, with this measure's steps; only after `statistics`."""
        signature = self.metric.get_signature()
        for name, value in {**({"bs": resamples, "seed": seed} if resamples else {}), **self.steps}.items():
            signature.update(name, value)
        return str(signature)


@functools.cache
def measures(language: str) -> dict[str, Measure]:
    """The matrix's cells by name, for translations into `language`."""
    plain = {
        "bleu-13a": BLEU(tokenize="13a"),
        "bleu-13a-lc": BLEU(tokenize="13a", lowercase=True, force=True),
        "bleu-intl": BLEU(tokenize="intl", force=True),
        "bleu-intl-lc": BLEU(tokenize="intl", lowercase=True, force=True),
        "chrf": CHRF(),
    }
    cells = {name: Measure(metric, unchanged, unchanged, {}) for name, metric in plain.items()}
    # As papers score text that is tokenised and lower-cased already: words are what stands between spaces.
    cells["bleu-tokenised"] = Measure(multi_bleu(lowercase=True), unchanged, unchanged, {})
    replaced = functools.cache(functools.partial(paper_text, language=language, replace=True))
    raw = functools.cache(functools.partial(paper_text, language=language, replace=False))
    for name, reference in [("bleu-paper", raw), ("bleu-paper-normalised", replaced)]:
        steps = {
            "tok": f"moses-{language}",
            "compound": "split" if language in COMPOUNDS_SPLIT else "kept",
            "ref": "raw" if reference is raw else "normalised",
            "sacremoses": importlib.metadata.version("sacremoses"),
        }
        cells[name] = Measure(multi_bleu(lowercase=False), replaced, reference, steps)
    return cells


def multi_bleu(lowercase: bool) -> BLEU:
    """What multi-bleu.perl computes: words split at spaces, n-grams up to four, nothing smoothed."""
    return BLEU(tokenize="none", smooth_method="none", lowercase=lowercase, force=True)


def resampling(pairs: int, resamples: int, seed: int) -> np.ndarray:
    """How often each segment is drawn in each bootstrap resample: [resamples, pairs], sacreBLEU's draw for `seed`."""
    drawn = np.random.default_rng(seed).choice(pairs, size=(resamples, pairs), replace=True)
    of_resample = np.arange(resamples)[:, None] * pairs
    return np.bincount((drawn + of_resample).ravel(), minlength=resamples * pairs).reshape(resamples, pairs)


def interval(scores: Sequence[float]) -> tuple[float, float]:
    """The 95% interval: a fortieth of the sorted scores left out on either side."""
    left_out = len(scores) // 40
    ordered = sorted(scores)
    return ordered[left_out], ordered[len(scores) - left_out - 1]


def matrix(hypotheses: Sequence[str], references: Sequence[str], language: str, resamples: int, seed: int) -> dict:
    """Every measure of `hypotheses` against `references`: score, 95% interval, signature.

    The interval is by bootstrap over segments, the same resamples for all measures, null where `resamples` is 0.
    """
    assert len(hypotheses) == len(references) > 0
    weights = resampling(len(references), resamples, seed).astype(float)
    table = {}
    for name, measure in measures(language).items():
        statistics = measure.statistics(hypotheses, references)
        bounds = interval([measure.score(row) for row in weights @ statistics]) if resamples else (None, None)
        low, high = (bound if bound is None else round(bound, 4) for bound in bounds)
        table[name] = {
            "score": round(measure.score(statistics.sum(axis=0)), 4),
            "low": low,
            "high": high,
            "signature": measure.signature(resamples, seed),
        }
    return table
