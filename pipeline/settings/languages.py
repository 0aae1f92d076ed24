"""Codes of languages: ISO 639-1, -2/B, -2/T and -3, with or without a script and a region, in any case, with - or _.

langcodes reads them by the registry of IANA and by CLDR, which also say which language stands for a macrolanguage: cmn is
zh, arb is ar, zsm is ms. JOINED has what ISO 639-3 joins and they do not.
"""

import functools
import re
from collections.abc import Iterable

from langcodes import Language

RIGHT_TO_LEFT = {"Arab", "Aran", "Hebr", "Syrc", "Thaa", "Nkoo", "Adlm", "Rohg"}  # scripts
# The macrolanguages nor and pus, the scripts of zho_simp and zho_trad in FLORES-101, and those of locales, as in sr@latin
JOINED: dict[str | None, str] = {"nb": "no", "pbt": "ps", "Simp": "Hans", "Trad": "Hant"}
JOINED |= {"latin": "Latn", "latn": "Latn", "cyrillic": "Cyrl", "devanagari": "Deva"}
# Names of .NET and Android: sr-SP-Latn, zh-CHT, pt-rBR
OLD = {r"(\w+)[-_](\w\w)[-_]([a-z]{4})": r"\1-\3-\2", "zh-chs": "zh-Hans", "zh-cht": "zh-Hant", r"(\w+)-r(\w\w)": r"\1-\2"}


@functools.cache
def parsed(code: str) -> Language:
    """Return what a code consists of. de_DE.UTF-8, of a locale, is de-DE. What is no code is a language."""
    try:
        stated, _, modifier = code.strip().partition("@")
        stated = stated.partition(".")[0]
        for old, new in OLD.items():
            stated = re.sub(f"^{old}$", new, stated, flags=re.IGNORECASE)
        found = Language.get(stated).prefer_macrolanguage()
        language, script = found.language, JOINED.get(found.script or modifier.lower(), found.script)
        if Language.make(script=script).is_valid():
            return found.update_dict({"language": JOINED.get(language, language), "script": script})
    except ValueError:
        pass
    return Language.make(language=code.strip().lower())


def language_of(code: str) -> str:
    """Return the language of a code: de for deu, ger, de_AT and DE; zh for zho, chi, cmn_Hant and zh-TW."""
    return parsed(code).language or ""


def script_of(code: str) -> str:
    """Return the script that a code states, or in which its language is written: Hans for zh, Latn for zh-Latn."""
    return parsed(code).maximize().script or ""


def right_to_left(code: str) -> bool:
    """Whether text in the language of a code runs from right to left."""
    return script_of(code) in RIGHT_TO_LEFT


def tag(code: str) -> str:
    """Return a code in the form in which codes are compared: pt_br and por-BR are pt-BR, deu_Latn is de."""
    return parsed(code).simplify_script().to_tag()


def means(code: str, wanted: str) -> bool:
    """Whether a code has the language of `wanted`, and the script and region that this states: zh-TW for zho_Hant.

    A script without a region stands for a region with this script: zho_Hant for zh-TW.
    """
    found, other = parsed(code), parsed(wanted)
    same_script = other.script in (None, script_of(code))
    regions = None, found.territory if found.territory or found.script != script_of(wanted) else other.territory
    return found.language == other.language and same_script and other.territory in regions


def general(code: str, wanted: str) -> bool:
    """Whether a code states less than `wanted` and has its script: de for de-AT, zh for zh-CN, and not zh for zh-TW.

    It stands for `wanted` where nothing else does.
    """
    return means(wanted, code) and script_of(code) == script_of(wanted)


def fitting(codes: Iterable[str], wanted: str) -> list[str]:
    """Return those of the `codes` that mean `wanted`, or, if none does, those that are more general."""
    known = [*codes]
    return [code for code in known if means(code, wanted)] or [code for code in known if general(code, wanted)]


def same(codes: Iterable[str], others: Iterable[str]) -> bool:
    """Whether two sequences of codes name the same languages: en and de are eng and de_AT."""
    return [*map(language_of, codes)] == [*map(language_of, others)]


def not_known(codes: Iterable[str]) -> str:
    """Return what to say of those `codes` of which langcodes knows no language, or ""."""
    found = [*map(repr, unknown(codes))]
    said = "no rules of a language are used for it; codes are those of ISO 639, such as de, deu or zho_Hans"
    what = "is not a known code of a language" if len(found) == 1 else "are not known codes of languages"
    return f"languages: {' and '.join(found)} {what}: {said}" if found else ""


def unknown(codes: Iterable[str]) -> list[str]:
    """Return those `codes` of which langcodes knows no language."""
    return [code for code in codes if not (language_of(code) and Language.make(language=language_of(code)).is_valid())]
