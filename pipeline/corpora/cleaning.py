"""What normalise does to text, whatever the corpus: it makes one character of those that look alike or cannot be seen.

In this order, so that a step finds what the one before has made:

1. character references (`&quot;`, `&#233;`) become the characters they stand for, once: `&amp;quot;` becomes `&quot;`;
2. control characters, the soft hyphen, the zero-width space and the byte order mark are removed;
3. tabs, carriage returns, the Unicode line separators and every other Unicode space become a plain space;
4. Unicode normalisation form C;
5. Moses' normalize-punctuation, which needs the no-break spaces: they become plain after it;
6. runs of spaces become one, and none is left at either end of a line.

Joiners, direction marks and what else changes how a script is drawn stay. Lines end at "\\n" and nowhere else.
"""

import html
import html.entities
import re
import unicodedata
from collections.abc import Callable

LINE_ENDS = "\t\v\f\r\x85\u2028\u2029"
NO_BREAK = "\u00a0\u202f"
SPACES = "\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u205f\u3000"
CONTROLS = "".join(map(chr, [*range(0x20), *range(0x7F, 0xA0)]))
INVISIBLE = "\u00ad\u200b\ufeff"
REMOVED = "".join(c for c in CONTROLS + INVISIBLE if c not in LINE_ENDS and c != "\n")

REFERENCE = re.compile("&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")

Step = Callable[[str], str]


def cleaner(*, entities: bool, nfc: bool, punctuation: bool, language: str) -> Step:
    """A function from text to clean text; both are whole lines, each with its "\\n", and as many after as before."""
    steps: list[Step] = [resolve_references] if entities else []
    # A hundred searches for what is hardly ever there take a tenth of the time of one regular expression.
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
    """What a well-formed character reference stands for; an unknown name stays as it is."""
    text = reference[0]
    if text[1] != "#" and text[1:] not in html.entities.html5:
        return text
    return html.unescape(text).replace("\n", " ")


def replacing(characters: dict[str, str]) -> Step:
    def replace(text: str) -> str:
        for old, new in characters.items():
            if old in text:  # memchr; replace() would count first, twenty times slower
                text = text.replace(old, new)
        return text

    return replace


def moses_punctuation(language: str) -> Step:
    """Moses' normalize-punctuation.perl, line by line: some of its rules would reach across a line's end."""
    from sacremoses import MosesPunctNormalizer  # takes a second to import

    normalise = MosesPunctNormalizer(language, perl_parity=True).normalize
    # As in perl a line comes with its end, which a rule on quotes looks at; it goes with the spaces around the line.
    return lambda text: "".join(normalise(line + "\n") + "\n" for line in text[:-1].split("\n"))


def squeeze(text: str) -> str:
    while "  " in text:
        text = text.replace("  ", " ")
    return text.replace(" \n", "\n").replace("\n ", "\n").removeprefix(" ")
