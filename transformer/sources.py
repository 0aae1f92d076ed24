"""The text that a translator is given, before the search: it is normalised, divided, and refused or doubted."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence

from transformer.cleaning import cleaner
from transformer.config.decoding import DecodingConfig
from transformer.config.reading import UserError, shown
from transformer.sentences import Divided, divided

LEAST = cleaner(entities=False, nfc=False, punctuation=False, language="")  # what is cleaned in the text of every model


def warn(text: str) -> None:
    warnings.warn(text, stacklevel=4)  # at the call of the translator, which runs `prepared` itself


class Sources:
    """The part of a translator that prepares text. The translator has the attributes."""

    clean: Callable[[str], str]  # normalises a line that ends with a line feed
    languages: tuple[str, str]  # "" where they are not known
    encode: Callable[[list[str]], list[list[int]]]  # the ids of normalised lines
    config: DecodingConfig
    max_length: int | None  # pieces of the longest line of the training, EOS included; None if it is not known
    say: Callable[[str], object]
    said: list[str]  # what was said of the first line of which a part may be missing

    @property
    def longest(self) -> int:
        """The maximum number of pieces of a line: batch_tokens divided by the beam."""
        return max(1, self.config.batch_tokens // self.config.beam)

    def normalise(self, lines: Sequence[str]) -> list[str]:
        """The lines, normalised like the training text. Line feeds become spaces in any case.

        Raises UserError as `checked`.
        """
        return [self.normalised(line) for line in checked(lines)]

    def normalised(self, line: str) -> str:
        return one_line(line, self.clean)

    def divided(self, text: str) -> Divided:
        """The lines of a text and their normalised sentences."""
        return divided(text, self.normalised, self.languages[0])

    def prepared(
        self, texts: Iterable[str], split: bool = False, before: int = 0, option: str = "split=True"
    ) -> Iterator[Divided]:
        """Yield each text as what is translated: its sentences if `split`, otherwise itself as one sentence.

        `before` is the number of texts before these. Says, once, that the model may not translate all of a text, and that
        the `option` splits texts. Raises UserError as `normalise`, and for a sentence that is too long for a batch.
        """
        for number, text in enumerate(checked(texts, before), before + 1):
            parts = self.divided(text) if split else Divided([[self.normalised(text)]], [""])
            longest = max(map(len, self.encode(parts.sentences)), default=0)
            doubtful = longest > self.longest or not self.said  # else no division is needed
            found = self.divided(text) if doubtful and not split else parts
            several = not split and len(found.sentences) > 1
            if longest > self.longest:
                what = f"line {number} has {'a sentence of ' if split else ''}{longest:,} pieces"
                remedy = f"{option} splits it at sentence ends" if several else "divide this sentence"
                raise UserError(f"{what}, and a batch takes {self.longest:,}; {remedy}, or raise batch_tokens")
            if not self.said and (doubt := self.doubt(found, together=not split)):
                self.said.append(f"line {number} has {doubt}" + f"; {option} translates each" * several)
                self.say(self.said[0])
            yield parts

    def doubt(self, text: Divided, together: bool) -> str | None:
        """What of a text may keep the model from translating all of it. `together`: its sentences are translated as one."""
        if together and len(text.sentences) > 1:
            return f"{len(text.sentences):,} sentences, and translated as one, some may be missing"
        longest = max(map(len, self.encode(text.sentences)), default=0)
        if self.max_length and longest >= self.max_length:
            return f"a sentence of {longest:,} pieces, and the model was trained on at most {self.max_length - 1:,}"
        return None


def one_line(text: str, clean: Callable[[str], str] = LEAST) -> str:
    """The text as one line, cleaned. Line feeds become spaces."""
    return clean(text.replace("\n", " ") + "\n")[:-1]


def is_text(line: object) -> bool:
    """Whether an object is a str without half of a surrogate pair, which is no character."""
    return isinstance(line, str) and line == line.encode(errors="replace").decode()


def checked(lines: Iterable[str], before: int = 0) -> Iterator[str]:
    """Yield the lines, of which the first has the number `before` + 1. Raises UserError for one that is not text."""
    for number, line in enumerate(lines, before + 1):
        if not isinstance(line, str):
            raise UserError(f"line {number} is {shown(line)}; text is expected")
        if not is_text(line):
            raise UserError(f"line {number} has half of a surrogate pair; valid Unicode is expected")
        yield line
