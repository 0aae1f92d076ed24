"""Codes of languages: whatever code a user writes, each place takes the same language."""

import os
from itertools import product
from pathlib import Path
from string import ascii_lowercase

import pytest

from pipeline.orchestrating.project import opened
from pipeline.reporting.page import page
from pipeline.scoring import bleu, moses
from pipeline.settings.languages import general, language_of, means, not_known, tag
from pipeline.text.letters import swapped
from tests.support.refusals import refused
from transformer import languages as of_package
from transformer.abbreviations import SAME as ALIKE
from transformer.abbreviations import WORDS
from transformer.cleaning import moses_punctuation
from transformer.sentences import ORDINALS, UNSPACED, VOWELLESS, YEAR_FIRST
from transformer.sentences import language_of as of_sentences

# ISO 639-1; -2/B and -2/T, -3 and the names of corpora, such as FLORES; and what they have in common by ISO 639-3
SAME = """
de deu ger DE de-AT de_CH deu_Latn GER de_DE.UTF-8 de-1996
fr fra fre fr_CA FR-fr fra_Latn
zh zho chi cmn zho_Hans zh-Hant-TW cmn_Hant ZH_cn zh-cmn zho_simp
no nb nob nor nb_NO nob_Latn
ms msa may zsm zsm_Latn
fa fas per pes pes_Arab
ar ara arb arb_Arab ar-EG
et est ekk
lv lav lvs
sw swa swh
uz uzb uzn uzn_Latn uz_UZ@cyrillic
sq sqi alb als
az aze azj
ps pus pbt
cs ces cze
nl nld dut
ro ron rum mo
el ell gre
he heb iw heb_Hebr
ja jpn jpn_Jpan JA
ko kor kor_Hang
my mya bur
th tha tha_Thai
en eng en-GB en_US
""".strip().split("\n")


@pytest.mark.parametrize("codes", SAME, ids=lambda codes: codes[:2])
def test_all_codes_of_a_language_are_one_everywhere(codes):
    first, *others = codes.split()
    for code in others:
        assert language_of(code) == first and means(code, first) and not not_known([code])
        assert bleu.headline(code) == bleu.headline(first)
        assert [*bleu.measures(code)] == [*bleu.measures(first)]
        if bleu.tokeniser(code) == "13a":
            line = "L'été à dix-huit h., No. 5 et Dr. X"
            assert bleu.paper_text(line, code, True) == bleu.paper_text(line, first, True)


def test_the_codes_of_the_package_are_those_of_the_one_function():
    for code, language in of_package.LANGUAGES.items():
        assert language_of(code) == language_of(language) and of_package.language_of(f"{code.upper()}_Latn-XX") == language


def test_the_rules_of_sentences_are_found_by_every_code_of_their_language():
    rules = "|".join(rule.pattern for rule in (ORDINALS, YEAR_FIRST, VOWELLESS, UNSPACED)).split("|")
    ruled = {*rules, *WORDS, *ALIKE, "hy"} - {""}
    meant, every = {*map(language_of, ruled)}, map("".join, product(ascii_lowercase, repeat=3))
    codes = [code for code in every if language_of(code) in meant]
    assert len(codes) > len(ruled) and [code for code in codes if of_sentences(code) not in ruled] == []
    assert [code for code in codes if language_of(of_sentences(code)) != language_of(code)] == []


def test_what_differs_stays_different_and_what_nothing_knows_is_named():
    assert len({*map(language_of, ["zh", "yue", "ja", "hr", "sr", "nn", "no", "id", "ms", "pt", "es"])}) == 11
    assert tag("pt_br") == tag("por-BR") != tag("pt") and not means("pt", "pt-BR") and not means("pt-PT", "pt-BR")
    assert general("pt", "pt-BR") and general("zh", "zh-CN") and general("deu_Latn", "de-AT")
    assert not any(general(*pair) for pair in (("pt-PT", "pt-BR"), ("zh", "zh-TW"), ("sr", "sr-Latn"), ("en", "de-AT")))
    assert means("zh-TW", "zho_Hant") and means("zh", "zho_Hans") and not means("zh-TW", "zho_Hans")
    assert not_known(["de", "x-own", "qaa", "ceb"]) == ""
    assert means("zho_trad", "zh_Hant") and means("zho_simp", "zh_Hans") and not means("zho_trad", "zho_simp")
    assert means("zho_Hant", "zh-TW") and means("zh-CHT", "zh-TW") and not means("zho_Hans", "zh-TW")
    assert means("SR-SP-LATN", "sr-Latn") and tag("zh-rTW") == tag("zh-TW") and tag("de-DE-1901") == "de-DE-1901"
    assert means("sr_RS@latin", "sr-Latn") and means("uz@cyrillic", "uz_Cyrl") and language_of("ca@valencia") == "ca"
    for code in ("jp", "xx", "und", "english", "source", "zho_Hanx", "de_Text"):
        assert repr(code) in not_known(["de", code])
    assert "'jp' and 'xx' are" in not_known(["jp", "xx"])
    text = ["ядиус " * 300, "the way of it " * 100]
    assert swapped(text, ("eng_Latn", "rus")) and not swapped(text, ("rus_Cyrl", "en-US"))


# A code, a line, and what Moses' scripts make of it (mosesdecoder 34452895, Perl 5.36): normalize-punctuation.perl, and
# replace-unicode-punctuation.perl with tokenizer.perl. The code tet is tdt there.
ROWS = (Path(__file__).parent / "data" / "moses.tsv").read_text(encoding="utf-8").split("\n")[:-1]


@pytest.mark.parametrize("code", dict.fromkeys(row.partition("\t")[0] for row in ROWS))
def test_punctuation_and_tokens_are_those_of_moses_scripts(code):
    rows = [row.split("\t")[1:] for row in ROWS if row.startswith(f"{code}\t")]
    normalise = moses_punctuation(code)
    for line, normalised, tokens in rows:
        assert normalise(f"{line}\n") == f"{normalised}\n"
        assert moses.tokenise(moses.replace_unicode_punctuation(line), code) == tokens
    assert len(rows) > 4


@pytest.mark.parametrize(
    ("code", "stated"),
    [
        ("de", 'lang="de"'),
        ("heb_Hebr", 'lang="he" dir="rtl"'),
        ("zho_Hant", 'lang="zh-Hant"'),
        ("az_IR", 'lang="az-IR" dir="rtl"'),
    ],
)
def test_a_page_states_the_language_and_direction_of_a_text_as_html_does(code, stated):
    """By BCP 47 and CLDR: Hebrew is written from right to left, and in Iran Azerbaijani."""
    assert f"<dd {stated}>a</dd>" in page("translations.html", translations={"x": [[("source", code, "a")]]}, runs=[])


def test_what_dvc_cannot_read_in_text_is_named(here):
    (here / "text/mine").mkdir(parents=True)
    os.mkfifo("text/mine/pipe")
    with refused("text/mine/pipe is a pipe"), opened():
        pass
    os.unlink("text/mine/pipe")
    Path("text/mine/.#my.en").symlink_to("user@host.1")  # Emacs' lock, which DVC ignores
    Path("text/mine/link.en").symlink_to("gone.en")
    with refused("text/mine/link.en is a link to a file that is not there"), opened():
        pass
    os.unlink("text/mine/link.en")
    Path(os.fsdecode(b"text/mine/b\xfc.en")).touch()
    with refused("b\\xfc.en", "not UTF-8"), opened():
        pass
