"""Divides text into lines and sentences, and joins the translations of the sentences again.

A mark such as "." ends a sentence if white space and a word follow that can begin a sentence, and if the word before it is
no abbreviation, initial, ordinal or number of a list. Marks with no other use end a sentence in any case. Quotes
and footnotes after a mark belong to its sentence. The parts of a line, joined, are the line.

transformer/abbreviations.py has facts of languages. The others have the rules for all: initials, letters with points
(`i.e.`), and words without a vowel (`Dr.`).
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from unicodedata import category

from transformer.abbreviations import CLOSING, EVERYWHERE, SAME, WORDS
from transformer.languages import language_of

# Between two lines, at the beginning and at the end: line breaks, white space, and marks of lists, titles and quotes
LINE = r"(?<!\s)((?:^|\s*[\n\r\v\f\x85\u2028\u2029])\s*(?:(?:[-–—*+•‣◦▪>]|\[[ xX]\]|#{1,6}|\d{1,3}%s)\s+)*|\s+$)"
BREAK, OF_CARDINALS = re.compile(LINE % r"\)"), re.compile(LINE % "[.)]")  # with ordinals, 3. can begin a sentence
WIDE = "。！？｡।॥။។།"  # no white space has to follow these
CERTAIN = WIDE + "؟۔։።፧፨᱾᱿᠃꯫⸮"
STOP = "．"  # of wide characters; after a digit or a capital letter it is a decimal point, or ends a number or an initial
NOTE = r"\[\d{1,3}(?:\s?[-–,]\s?\d{1,3})*\]"  # a footnote: .[3], or . [3, 4]
CLOSERS = rf"[\"'”’»›)\]}}*_」』）］】》〉]|(?<![。！？｡”’])[“‘«‹]|{NOTE}|[⁰¹²³⁴-⁹]"
COLON = "(?:(?<=[Ա-և])|(?<=[Ա-և][)»])):"  # typed for ։ in Armenian
MARK = rf"[.!?…‼⁇⁈⁉‽;\u037e{CERTAIN}]+(?:\s+།)*|(?<![\dA-ZＡ-Ｚ]){STOP}|፡፡|{COLON}"
END = re.compile(rf"({MARK})((?:{CLOSERS})*(?:\s(?:[»”)]|''|{NOTE})(?!\S))*)(\s*)")
SPACED = re.compile(r'(["“])(?:\s+|$)')  # closes a quote if one is open
BEFORE = r"[^\w,;:.!?…%)\]}／、，。]|,,|[(\[](?:\.{2,3}|…)[)\]]"  # the first word of a sentence; also (...) and ,, for „
START = re.compile(rf"(?:{BEFORE})*(\w(?:\w+|\.)?)")  # a letter with a point is an initial
SMALL = re.compile(r"\(?\w{1,3}\)\s|['’‘]\w\s+[A-Z]")  # what begins a sentence in small letters: (a), or 's before Avonds
LISTED = re.compile(r"\s*[(\[]?(?:\d{1,3}(?:\.\d{1,3})*|[^\W\d_]|[ivx]{1,5}|[IVX]{1,5})")
NUMBER = re.compile(r"(?<!\d)\d{1,3}$|(?:\S+ ){4}\S*\d$")  # before a unit: 5 m, and in long sentences 1999 г
ROMAN = re.compile(r"[IVXLC]{2,}")
INITIAL = r"(?:(?=[\u0900-\u0dff])[^\W\d][^\w\s.-]*){1,2}"  # a name of a letter: one or two, with their signs
INDIAN_INITIALS = re.compile(rf"{INITIAL}(?:\.{INITIAL})+")  # जे.पी, and not two words with a hyphen
PAIRS = [*zip("「『（“‘《", "」』）”’》")]  # around sentences of Chinese and Japanese that stay together
PARTICLES = "かがさっでとてなにねのはへもやよをん"  # with which a Japanese sentence goes on after ! or ?
NEAR = 64  # characters before and after a mark that are looked at
# Languages with ordinals such as `3.`, with words without a vowel, and with no space between sentences
ORDINALS = re.compile("de|lb|da|nb|nn|is|fo|fi|et|lv|cs|sk|sl|hr|sr|bs|hu|tr|eu|ko")
ARTICLES = {"čl", "st", "чл", "ст"}  # have ordinals in Croatian and Serbian: čl. 3. Zakona
YEAR_FIRST = re.compile("hu|ko")  # dates such as 2020. 05. 03.
VOWELLESS = re.compile("cs|sk|sl|hr|sr|bs|mk|bg")
UNSPACED = re.compile("zh|yue|wuu|lzh|nan|hak|gan|hsn|cjy|cdo|ja")


@cache
def words_of(code: str) -> tuple[frozenset[str], ...]:
    """The words of a language, as in `Words`."""
    return tuple(frozenset(" ".join(words).split()) for words in zip(WORDS.get(code, WORDS[""]), EVERYWHERE))


def sentences(line: str, language: str = "") -> list[str]:
    """The sentences of a line with the white space after each. `language` is a code such as de or de-AT."""
    code, parts = language_of(language), list[str]()
    begin = scanned = straight = low = 0
    worded, cased = False, any(map(str.isupper, line))
    for found in END.finditer(line):
        part, scanned = line[scanned : found.end()], found.end()
        worded = worded or any(map(str.isalnum, part))
        straight, low = straight + part.count('"'), low + part.count("„") - part.count("“")
        spaced = SPACED.match(line, found.end())
        end = spaced.end() if spaced and (straight % 2 if spaced[1] == '"' else low > 0) else found.end()
        if worded and end < len(line) and ends(line, begin, found, end, code, cased):
            parts.append(line[begin:end])
            begin, worded = end, False
    return [*parts, line[begin:]]


def ends(line: str, begin: int, found: re.Match, end: int, code: str, cased: bool) -> bool:
    """Whether a sentence from `begin` to `end` ends with the marks of `found`. `cased`: the line has capital letters."""
    mark, closers, gap = found.groups()
    if not gap:
        after = line[end]
        quoted = closers and "\u3041" <= after <= "\u309f"  # 「...」と goes on
        starts = not quoted and (after.isalnum() or after == "※" or category(after) in ("Ps", "Pi", "Sc"))
        wide = "ぁ" <= line[found.start() - 1] <= "鿿" and "ぁ" <= after <= "鿿" and after not in PARTICLES
        mark_ends = mark[-1] in WIDE + STOP or (mark[-1] in "!?" and wide)
        return mark_ends and starts and not within(line, begin, end)
    if (mark.strip(";\u037e") == "" and code != "el") or (mark == "." and code == "hy"):
        return False
    if not (start := START.match(line, end, end + NEAR)):
        return False
    word = start[1]
    if mark[-1] in CERTAIN or mark == "፡፡":
        return True
    lower = cased and word[0].islower() and word == word.lower() and not SMALL.match(line, end)
    if lower or line[found.start() - 1] in "([":
        return False
    if mark != ".":
        return not (mark[0] in ".…" and (word[0].isdigit() or line.endswith(" و", begin, found.start())))
    return not LISTED.fullmatch(line, begin, found.start()) and point_ends(
        line[max(begin, found.start() - NEAR) : found.start()], word, code
    )


def within(line: str, begin: int, place: int) -> bool:
    """Whether a quote or a bracket of wide characters is open at a place of a sentence, and is closed soon after."""
    before, after = line[max(begin, place - 4 * NEAR) : place], line[place : place + NEAR]
    return any(before.count(first) > before.count(last) and last in after for first, last in PAIRS)


def point_ends(before: str, word: str, code: str) -> bool:
    """Whether a sentence ends with a point between the text `before` and a sentence that would begin with `word`."""
    never, others, numbered, starting = words_of(SAME.get(code, code))
    *earlier, last = before.split(" ")
    if last.islower() and re.fullmatch(r"[(\[][^\W\d_]+", last):
        return False  # (lat. Roma)
    last = last.lstrip("\"'“”„‚‘’«»‹›([{¿¡")
    number, starts = word[0].isdigit(), word[0].upper() + word[1:] in starting
    names = [last]
    while earlier and len(part := earlier.pop()) <= 4 and part.endswith("."):
        names.insert(0, part + names[0])  # z. B. is z.B
    names.append(re.split("['’-]", last)[-1])  # l'art
    names += [name.replace(name[0], name[0].lower(), 1) for name in names if len(name) > 1 and name[0].isupper()]
    listed = (name for name in names if name in never or name in others or name in numbered)
    known = next(listed, last)  # the longest one
    counts = last.endswith("str") or known in numbered  # Hauptstr. 5
    if known in never or (counts and (number or ROMAN.fullmatch(word))):
        return False
    if last.islower() and word[0].isupper() and word[-1] != "." and word not in ("Chr", "Hr", "Kr"):  # 44 e. Kr.
        closing = known in CLOSING.split() if known in others else len(last) == 1 and "." not in names[0]  # a. k. a.
        if closing or (len(last) < 3 and NUMBER.search(before.rpartition(" ")[0])):
            return True
    if last.isdigit() or ROMAN.fullmatch(last):
        of_date = number and YEAR_FIRST.fullmatch(code)
        *_, previous, _ = "", "", *before.split()
        cardinal = previous.rstrip(".") in numbered - ARTICLES  # S. 5
        ordinal = ORDINALS.fullmatch(code) and (len(last) < 3 or not last.isdigit() or of_date) and not cardinal
        return starts or not ordinal
    return starts or not (known in others or abbreviated(last, code))


def abbreviated(word: str, code: str) -> bool:
    """Whether a word looks like an abbreviation: initials, or letters of an alphabet without a vowel."""
    parts = [part for part in re.split("[.-]", word) if part]
    if parts and all(len(part) == 1 and part.isalpha() and part < "\u1100" for part in parts):
        return True
    if INDIAN_INITIALS.fullmatch(word):
        return True
    latin = word.isalpha() and word.isascii() and not word.isupper() and not re.fullmatch("(?i:[hm]+|tv)", word)
    return latin and not VOWELLESS.fullmatch(code) and not set(word.lower()) & set("aeiouy")


@dataclass(frozen=True)
class Divided:
    """A text: the sentences of each line, none empty, and what stands after each line, which is not translated."""

    lines: list[list[str]]
    breaks: list[str]

    @property
    def sentences(self) -> list[str]:
        return [sentence for line in self.lines for sentence in line]

    def joined(self, translations: Iterable[str], language: str) -> str:
        """The translations of the sentences, in order, in a text with the same lines. `language` is theirs."""
        given, space = iter(translations), space_of(language)
        lines = [space.join(filter(None, islice(given, len(line)))) for line in self.lines]
        return "".join(line + end for line, end in zip(lines, self.breaks))

    def placed(self, language: str) -> Iterator[tuple[str, str]]:
        """Yield each sentence, after what stands before its translation into `language`."""
        before, space = "", space_of(language)
        for line, end in zip(self.lines, self.breaks):
            for sentence in line:
                yield before, sentence
                before = space
            before = end if line else before + end


def space_of(language: str) -> str:
    """What stands between two sentences."""
    return "" if UNSPACED.fullmatch(language_of(language)) and "latn" not in language.lower() else " "


def divided(text: str, clean: Callable[[str], str], language: str) -> Divided:
    """The lines of `text`, each cleaned and then divided into its sentences. A line without a letter or digit stays."""
    parts = (BREAK if ORDINALS.fullmatch(language_of(language)) else OF_CARDINALS).split(text)
    whole = Divided([], [])
    for line, end in zip(parts[::2], [*parts[1::2], ""]):
        worded = any(map(str.isalnum, line))
        found = sentences(clean(line), language) if worded else []
        whole.lines.append([part.strip() for part in found if part.strip()])
        whole.breaks.append(end if worded else line + end)
    return whole
