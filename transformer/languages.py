"""Codes of the languages about which this package has rules. pipeline/settings/languages.py knows all others."""

import re

# The two-letter code of ISO 639-1 (or the code of ISO 639-3 where there is none), and the codes that mean the same: those
# of ISO 639-2 and 639-3, and, for a macrolanguage, its principal member (the CLDR's aliases).
CODES = (
    "af afr, ar ara arb, be bel, bg bul, bn ben, bs bos, ca cat, cdo, cjy, cs ces cze, da dan, de deu ger, el ell gre, en "
    "eng, es spa, et est ekk, eu eus baq, fi fin, fo fao, fr fra fre, ga gle, gan, gu guj, hak, hi hin, hr hrv scr, hsn, "
    "hu hun, hy hye arm, id ind in, is isl ice, it ita, ja jpn, kn kan, ko kor, lb ltz, lt lit, lv lav lvs, lzh, mk mkd "
    "mac, ml mal, mr mar, ms msa may zsm, nan, nb no nob nor, ne nep npi, nl nld dut, nn nno, pa pan, pl pol, pt por, ro "
    "ron rum mo mol, ru rus, sk slk slo, sl slv, sr srp scc sh hbs cnr, sv swe, sw swa swh swc, ta tam, te tel, tr tur, "
    "uk ukr, vi vie, wuu, yue, zh zho chi cmn"
)
LANGUAGES = {code: codes.split()[0] for codes in CODES.split(", ") for code in codes.split()}


def language_of(code: str) -> str:
    """The language of a code such as de, deu, de-AT, DE_at or deu_Latn. An unknown language is its lower-cased code."""
    language = re.split("[-_.@]", code.lower())[0]
    return LANGUAGES.get(language, language)
