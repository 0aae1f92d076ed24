"""Intervals and p-values: against scipy, and by simulation of trainings whose true difference is known."""

import numpy as np
import pytest
from scipy import stats

from pipeline.scoring.intervals import Seeds, Spread, between, holm, spread, within

SEED_SD, SENTENCE_SD = 0.52, 0.36  # BLEU; somewhat above those of multi30k-claims (0.47), and the part a bootstrap sees
GROUPS, SENTENCES, RESAMPLES, TABLES = 11, 100, 100, 1000


def tables(differences: np.ndarray, seeds: int = 3, scale: float = 1.0):
    """Simulated tables of trainings, [groups, seeds, 1 + resamples] each; the first group is the base.

    The seeds of the other groups vary `scale` times as much. A score is the mean of sentences. Each seed translates all
    sentences better or worse, and each sentence in its own way.
    """
    random = np.random.default_rng(1)
    drawn = random.multinomial(SENTENCES, np.full(SENTENCES, 1 / SENTENCES), size=RESAMPLES)
    weights = np.vstack([np.ones(SENTENCES), drawn]).T / SENTENCES
    common = np.sqrt(SEED_SD**2 - SENTENCE_SD**2)
    for _ in range(TABLES):
        of_sentences = random.normal(0, SENTENCE_SD * np.sqrt(SENTENCES), (len(differences), seeds, SENTENCES))
        common_of = common * np.array([1.0, *[scale] * (len(differences) - 1)])[:, None]
        of_seeds = random.normal(35 + differences[:, None], common_of, (len(differences), seeds))
        yield of_seeds[..., None] + of_sentences @ weights


def decided(difference: float) -> tuple[float, float]:
    """The shares of the tables in which the first change, which makes this difference, is found to be different.

    By itself, and by Holm's correction over all changes.
    """
    found, differences = [], np.array([0, difference, *[0] * (GROUPS - 2)])
    for groups in tables(differences):
        pooled = spread(list(groups))
        assert pooled.freedom == 22
        values = [between(group, groups[0], pooled).p for group in groups[1:]]
        found.append([values[0] < 0.05, holm(values)[0] < 0.05])
    return tuple(np.mean(found, axis=0))


def test_seeds_alone_are_rarely_called_a_difference_and_two_bleu_are_found():
    alone, corrected = decided(0.0)
    assert 0.02 < alone <= 0.06 and corrected <= 0.01
    alone, corrected = decided(2.0)
    assert alone >= 0.95 and corrected >= 0.8


@pytest.mark.parametrize("scale", [0.2, 1.0, 5.0])
def test_welchs_test_rarely_calls_seeds_a_difference_also_where_trainings_vary_unequally(scale):
    found = [between(groups[1], groups[0]).p < 0.05 for groups in tables(np.zeros(2), scale=scale)]
    assert np.mean(found) <= 0.06


@pytest.mark.parametrize("pooled", [False, True], ids=["Welch's", "Student's"])
def test_without_sentences_it_is_the_test_of_scipy(pooled):
    ours, others = (
        np.repeat(np.array(scores)[:, None], 5, axis=1) for scores in ([34.2, 35.1, 34.9], [33.1, 30.9, 34.0, 36])
    )
    found = between(ours, others, spread([ours, others]) if pooled else None)
    expected = stats.ttest_ind(ours[:, 0], others[:, 0], equal_var=pooled)
    assert (found.p, found.low, found.high) == pytest.approx((expected.pvalue, *expected.confidence_interval()))


def test_the_variance_between_sentences_widens_an_interval_without_counting_the_seeds_twice():
    scores = np.array([[30.0, *np.linspace(28, 32, 9)]] * 3)  # the resamples move all seeds alike
    still = np.array([[29.0] * 10] * 3)
    narrow, wide = (between(one, still, Spread(0.01, 0, 9)) for one in (still + 1, scores))
    half = stats.t.ppf(0.975, 9) * np.sqrt(0.01 * 2 / 3 + np.linspace(28, 32, 9).var())
    assert (wide.low, wide.high) == pytest.approx((1 - half, 1 + half)) and narrow.high < wide.high
    half = stats.t.ppf(0.975, 9) * np.sqrt(0.01 * 2 / 3 + np.linspace(28, 32, 9).var() - 1.5 * 2 / 3)
    assert between(scores, still, Spread(0.01, 1.5, 9)).high == pytest.approx(1 + half), "a part of it is of the seeds"
    assert between(scores, still, Spread(0.01, 100, 9)).high == pytest.approx(narrow.high), "all of it is of the seeds"


def test_equal_scores_are_no_difference():
    same = np.full((3, 4), 20.0)
    with np.errstate(over="raise"):  # numpy would warn of it on stderr
        assert between(same, same, spread([same, same])).p == 1 and between(same + 9, same, spread([same, same])).p < 1e-9


def test_two_translations_of_one_model_are_compared_by_their_sentences():
    """For a mean over sentences, the bootstrap agrees with the paired t-test."""
    random = np.random.default_rng(2)
    base, other = random.normal([[0], [0.15]], 1, (2, 400))
    weights = np.vstack([np.ones(400), random.multinomial(400, np.full(400, 1 / 400), size=4000)]) / 400
    found, expected = within(weights @ other, weights @ base), stats.ttest_rel(other, base)
    assert found.p == pytest.approx(expected.pvalue, abs=0.03)
    assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval()), abs=0.03)


def test_holms_correction():
    """The example of four tests has these values in R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm")."""
    assert holm([0.01, None, 0.04, 0.03, 0.005]) == pytest.approx([0.03, None, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0] and holm([None]) == [None] and holm([]) == []


def test_two_seeds_are_too_few_for_a_verdict():
    scores = {run: np.array([score, score]) for run, score in zip("abcdef", (30.0, 31.0, 32.0, 40.0, 41.0, 42.0))}
    seeds = Seeds(scores, ["abc", "def"])
    assert seeds.difference("de", "abc").p is None and seeds.difference("def", "abc").p < 0.05
