"""BLEU of languages whose words no spaces separate, against sacreBLEU."""

import pytest
import sacrebleu

from pipeline.scoring import bleu
from pipeline.scoring.bleu import headline, matrix, tokeniser
from pipeline.scoring.of_sets import of_test_set
from pipeline.scoring.utilities import sentence_score, utility
from pipeline.settings.scoring import ScoringConfig

REFERENCES = [f"红的船在第{n}号桥附近。" for n in range(30)]
HYPOTHESES = [text.replace("船", "灯") for text in REFERENCES]  # one word changed


@pytest.mark.parametrize("language", ["zh", "zh-TW", "th", "my", "ja", "ko"])  # test_languages.py has other codes of these
def test_the_headline_is_sacrebleu_s_with_a_tokeniser_of_the_language(language):
    name = tokeniser(language)
    family = {"zh": "zh", "ja": name, "ko": name}.get(language[:2], "char")
    assert name == family != "13a"
    table = matrix(HYPOTHESES, REFERENCES, language, ScoringConfig(0, 1))
    expected = sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES], tokenize=name).score
    assert next(iter(table)) == headline(language) == f"bleu-{name}" and 50 < expected < 100
    assert table[headline(language)]["score"] == pytest.approx(expected, abs=1e-4)
    assert f"tok:{name}" in table[headline(language)]["signature"]
    assert min(cell["score"] for cell in table.values()) > 50, "no cell of a tokeniser for words with spaces"
    assert of_test_set({"metrics": table})["test_sacrebleu"] == table[headline(language)]["score"]


@pytest.mark.parametrize(
    "code", ["khm", "lao", "mya_Mymr", "bod", "dzo_Tibt", "yue_Hant", "wuu", "lzh", "shn", "vi-Hani", "ii", "tdd", "blt"]
)
def test_the_script_decides_whether_words_are_separated(code):
    assert headline(code) == "bleu-char"
    assert headline(f"{code[:3].rstrip('-')}-Latn") == headline("vie") == headline("xx") == headline("") == "bleu-13a"


def test_without_its_packages_a_language_is_split_into_characters_and_that_is_said(monkeypatch, capsys):
    for found, name in ((object(), "ja-mecab"), (None, "char")):
        monkeypatch.setattr(bleu.importlib.util, "find_spec", lambda package, found=found: found)
        assert not capsys.readouterr().err
        assert tokeniser.__wrapped__("ja") == name and tokeniser.__wrapped__("de") == "13a"
    assert "words of ja, as ja-mecab is not installed: pip install 'sacrebleu[ja,ko]'" in capsys.readouterr().err


def test_sentence_bleu_of_mbr_and_oracles_has_the_same_tokeniser():
    expected = sacrebleu.sentence_bleu(HYPOTHESES[0], [REFERENCES[0]], tokenize="zh").score
    assert sentence_score("bleu", "zh")(HYPOTHESES[0], REFERENCES[0]) == pytest.approx(expected / 100)
    chrf = sacrebleu.sentence_chrf(HYPOTHESES[0], [REFERENCES[0]]).score
    assert sentence_score("chrf")(HYPOTHESES[0], REFERENCES[0]) == pytest.approx(chrf / 100)
    texts = [HYPOTHESES[0], REFERENCES[0]]
    (mean,) = utility("bleu", lambda many: [texts[ids[0]] for ids in many], "zh")([[0]], [[1]])
    assert mean == pytest.approx(expected)
