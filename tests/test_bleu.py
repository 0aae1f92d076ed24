"""The BLEU matrix, compared with the Perl scripts of Moses and with sacreBLEU."""

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF

from pipeline.scoring import bleu
from pipeline.settings.scoring import ScoringConfig
from pipeline.text.evaluation import read_lines
from tests.support.projects import COMPOUND, HYPOTHESES, REFERENCES


# The output of multi-bleu.perl for the pairs of files of the Perl scripts.
@pytest.mark.parametrize(
    ("hypothesis", "reference", "name", "by_perl"),
    [
        ("hyp-published", "ref-published", "bleu-published", "73.83 91.1/80.4/71.1/62.3"),
        ("hyp", "ref", "bleu-raw-reference", "69.09 88.7/76.5/65.9/55.5"),
        ("hyp", "ref-normalised", "bleu-normalised", "70.86 89.8/78.3/67.8/57.7"),
    ],
)
def test_paper_bleu_equals_multi_bleu(hypothesis, reference, name, by_perl):
    texts = read_lines(COMPOUND / f"{hypothesis}.tok-split.de"), [read_lines(COMPOUND / f"{reference}.tok-split.de")]
    result = bleu.multi_bleu(lowercase=False).corpus_score(*texts)
    assert str(result) == f"BLEU = {by_perl} (BP = 0.979 ratio = 0.979 hyp_len = 371 ref_len = 379)"
    assert f"{bleu.matrix(HYPOTHESES, REFERENCES, 'de-AT', ScoringConfig(0, 1))[name]['score']:.2f}" == by_perl.split()[0]


def test_all_typographic_quotes_are_one():
    for quote in "„“”‟«»":
        assert bleu.paper_text(f"{quote}Ja{quote}", "de", replace=True, quotes=True) == "&quot; Ja &quot;"


@pytest.mark.parametrize(
    "line, split",
    [
        ("a-b-c", "a ##AT##-##AT## b-c"),
        ("ab-cd-ef", "ab ##AT##-##AT## cd ##AT##-##AT## ef"),
        ("vis-à-vis", "vis ##AT##-##AT## à ##AT##-##AT## vis"),  # for perl -ple, à is two bytes
        ("so - und so -", "so - und so -"),
        ("Ein- und Ausgang", "Ein- und Ausgang"),
        ("a--b", "a ##AT##-##AT## -b"),
    ],
)
def test_compound_split_is_one_pass_from_the_left(line, split):
    assert bleu.split_compounds(line) == split


@pytest.mark.parametrize(
    "name, metric",
    [
        ("bleu-13a", BLEU()),
        ("bleu-13a-lc", BLEU(lowercase=True)),
        ("bleu-intl", BLEU(tokenize="intl")),
        ("bleu-intl-lc", BLEU(tokenize="intl", lowercase=True)),
        ("bleu-tokenised", BLEU(tokenize="none", smooth_method="none", lowercase=True)),
        ("chrf", CHRF()),
    ],
)
def test_scores_intervals_and_signatures_are_sacrebleus(name, metric, monkeypatch):
    monkeypatch.setenv("SACREBLEU_SEED", "7")
    expected = metric.corpus_score(HYPOTHESES, [REFERENCES], n_bootstrap=200)
    cell = bleu.cell(bleu.measures("de")[name], ScoringConfig(200, 7), HYPOTHESES, REFERENCES)
    assert cell["score"] == round(expected.score, 4)
    assert (cell["high"] - cell["low"]) / 2 == pytest.approx(expected._ci, abs=2e-4)
    assert cell["signature"] == str(metric.get_signature())


def test_signatures_of_the_papers_bleu_name_its_steps():
    table = bleu.matrix(HYPOTHESES, REFERENCES, "de", ScoringConfig(0, 1))
    cell = table["bleu-13a"]
    assert (cell["low"], cell["high"]) == (None, None) and "bs:" not in cell["signature"], "without resamples"
    for name, kind in {"published": "published", "raw-reference": "raw", "normalised": "normalised"}.items():
        steps = set(table[f"bleu-{name}"]["signature"].split("|"))
        assert {"tok:moses-de", "compound:split", f"ref:{kind}", "case:mixed", "smooth:none"} <= steps
    french = bleu.matrix(["oui"], ["oui"], "fr", ScoringConfig(0, 1))["bleu-published"]["signature"].split("|")
    assert {"tok:moses-fr", "compound:kept"} <= set(french)


def test_an_interval_depends_on_the_seed_and_contains_the_score():
    cells = [
        bleu.cell(bleu.measures("de")["bleu-13a"], ScoringConfig(100, seed), HYPOTHESES, REFERENCES) for seed in (1, 2)
    ]
    assert cells[0]["score"] == cells[1]["score"] and cells[0]["low"] != cells[1]["low"]
    assert all(cell["low"] < cell["score"] < cell["high"] for cell in cells)


@pytest.mark.parametrize("name", ["bleu-13a", "bleu-tokenised", "chrf"])
def test_the_scores_of_many_counts_are_those_of_sacrebleu(name):
    measure = bleu.measures("de")[name]
    lines = (
        [f"Der Hund {number} sieht die {number % 3} Katzen ." for number in range(9)],
        ["Der Hund sieht die 2 Katzen ."] * 9,
    )
    counts = np.vstack([measure.statistics(*lines), np.zeros_like(measure.statistics(*lines))])  # some n-grams never match
    assert measure.scores(counts) == pytest.approx(
        [measure.metric._compute_score_from_stats(row.tolist()).score for row in counts]
    )


def test_interval_leaves_out_a_fortieth_on_either_side():
    assert bleu.interval([float(number) for number in range(1000, 0, -1)]) == (26.0, 975.0)
    assert bleu.interval([5.0]) == (5.0, 5.0)
