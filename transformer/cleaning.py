"""Cleans text: unifies characters that look alike and removes invisible ones.

Each step works on the result of the step before. Steps 1 and 4 and Moses' script in step 5 are optional:

1. character references (`&quot;`, `&#233;`) become their characters, in one pass: `&amp;quot;` becomes `&quot;`;
2. control characters, the soft hyphen, the zero-width space and the byte order mark are removed;
3. tabs, carriage returns, the Unicode line separators and all Unicode spaces but no-break spaces become plain spaces;
4. Unicode normalisation form C;
5. Moses' normalize-punctuation, which needs the no-break spaces; these then become plain spaces;
6. runs of spaces become one space, and spaces at both ends of a line are removed.

Joiners, direction marks and other characters that change the rendering of a script are kept. Only "\\n" ends a line.
"""

import html
import html.entities
import re
import unicodedata
from collections.abc import Callable

from transformer.config.reading import UserError
from transformer.languages import language_of

LINE_ENDS = "\t\v\f\r\x85\u2028\u2029"
NO_BREAK = "\u00a0\u202f"
SPACES = "\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u205f\u3000"
CONTROLS = "".join(map(chr, [*range(0x20), *range(0x7F, 0xA0)]))
INVISIBLE = "\u00ad\u200b\ufeff"
REMOVED = "".join(c for c in CONTROLS + INVISIBLE if c not in LINE_ENDS and c != "\n")

REFERENCE = re.compile("&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")

OWN_RULES = ("en", "cs", "de", "es", "fr")  # languages with rules of their own in normalize-punctuation.perl

Step = Callable[[str], str]


def cleaner(*, entities: bool, nfc: bool, punctuation: bool, language: str) -> Step:
    """Return a function from text to clean text with the same number of lines. Each line ends with "\\n"."""
    steps: list[Step] = [resolve_references] if entities else []
    # A separate search for each of these rare characters takes a tenth of the time of one regular expression.
    steps.append(replacing({**dict.fromkeys(REMOVED, ""), **dict.fromkeys(LINE_ENDS + SPACES, " ")}))
    if nfc:
        steps.append(lambda text: unicodedata.normalize("NFC", text))
    if punctuation:
        steps.append(moses_punctuation(language))
    steps.append(replacing(dict.fromkeys(NO_BREAK, " ")))
    steps.append(squeeze)

    def clean(text: str) -> str:
        for step in steps:
            text = step(text)
        return text

    return clean


def resolve_references(text: str) -> str:
    return REFERENCE.sub(character, text) if "&" in text else text


def character(reference: re.Match) -> str:
    """Return the character of a well-formed reference, or a space for a line feed. An unknown name is kept."""
    text = reference[0]
    if text[1] != "#" and text[1:] not in html.entities.html5:
        return text
    return html.unescape(text).replace("\n", " ")


def replacing(characters: dict[str, str]) -> Step:
    def replace(text: str) -> str:
        for old, new in characters.items():
            if old in text:  # `in` uses memchr; replace() counts first, which is twenty times slower
                text = text.replace(old, new)
        return text

    return replace


def moses_punctuation(language: str) -> Step:
    """Return a function that applies Moses' normalize-punctuation.perl to each line, as some rules match across line feeds.

    `language` is any code. Raises UserError without the package sacremoses, which only this step needs.
    """
    try:
        from sacremoses import MosesPunctNormalizer  # the import takes a second
    except ImportError:
        raise UserError("normalise.punctuation needs the package sacremoses: pip install sacremoses") from None

    known = found if (found := language_of(language)) in OWN_RULES else ""
    script = MosesPunctNormalizer(known, perl_parity=True)
    # In the script, the rules of German for quotes are those of all other languages. sacremoses lacks this.
    quotes = [] if known else script.DE_ES_FR_QUOTATION_FOLLOWED_BY_COMMA
    # In the script, \d and \s are ASCII.
    rules = [(re.compile(old, re.ASCII).sub, new) for old, new in [*script.substitutions, *quotes]]

    def normalise(line: str) -> str:
        for replace, new in rules:
            line = replace(new, line)
        return line

    # As in perl, a line includes its line feed, which a rule on quotes uses. `squeeze` strips spaces at line ends.
    return lambda text: "".join(normalise(line + "\n") for line in text[:-1].split("\n"))


def squeeze(text: str) -> str:
    while "  " in text:
        text = text.replace("  ", " ")
    return text.replace(" \n", "\n").replace("\n ", "\n").removeprefix(" ")
