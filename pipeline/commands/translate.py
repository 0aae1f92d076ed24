"""Translate standard input to standard output, line by line, with a trained model.

    python -m pipeline.commands.translate RUN [--n-best N] [--scores] [--alignment] [--split] < TEXT > TRANSLATION
    make translate RUN=demo-tiny TEXT="A sentence."

RUN is a run of params.yaml or a model folder. A run has the decoding settings of its model, a folder those of the paper.
Without --n-best, each line of input gives one line of output. An empty line has an empty translation. Tabs separate the
columns: the number of the input line (--n-best), the score (--scores), the translation, and the alignment (--alignment) in
Pharaoh's format: i-j aligns source word i with target word j, counted from 0.

The model is trained on sentences, and may translate only a part of a line with several. A warning names the first such
line, or the first sentence that is longer than those of the training. --split translates each sentence by itself.

Lines are read in blocks and translated in batches of similar length, so memory does not grow with the input. The first
line that is not UTF-8, or too long for a batch, ends the translation; the lines before it are translated.
"""

import argparse
import os
import select
import signal
import sys
from collections.abc import Iterator
from functools import partial

from pipeline.running import stage
from pipeline.running.models import NAMED, STEP, translator_of
from pipeline.text.plain import notice_form, unmarked
from transformer.config.reading import UserError
from transformer.files import naming
from transformer.sentences import Divided
from transformer.translator import Hypothesis, Translator

BLOCK = 1024  # lines on a CPU; on a GPU, whose batches are larger, 16 times as many
CHUNK = 1 << 16  # bytes of one read
LONGEST = 1 << 20  # bytes of a line; without a limit, a file without line breaks would fill the memory
PAUSE = 0.1  # seconds without input that end a block; shorter pauses do not split a test set that fits into a block
INTERRUPTED = 128 + signal.SIGINT


def blocks(descriptor: int, most: int) -> Iterator[list[bytes]]:
    """Yield lists of at most `most` lines, without their line feeds. A list is shorter if the input pauses.

    Raises UserError, after the preceding lines, if a read leaves more than LONGEST bytes without a line feed.
    """
    lines: list[bytes] = []
    rest, before = b"", 0
    while data := os.read(descriptor, CHUNK):
        *whole, rest = (rest + data).split(b"\n")
        lines += whole
        while lines and (len(lines) >= most or len(rest) > LONGEST or not select.select([descriptor], [], [], PAUSE)[0]):
            yield lines[:most]
            before += len(lines[:most])
            lines = lines[most:]
        if len(rest) > LONGEST:
            raise UserError(f"line {before + 1} has no line break in {LONGEST:,} bytes; break it into sentences")
    if rest:
        lines.append(rest)
    if lines:
        yield lines


def decoded(block: list[bytes], before: int) -> Iterator[str]:
    """Yield the lines of a block. Raises UserError for the first one that is not UTF-8. A carriage return is a space."""
    for number, line in enumerate(block, before + 1):
        try:
            yield line.decode().removesuffix("\r").replace("\r", " ")
        except UnicodeDecodeError as error:
            what = f"line {number}, byte {error.start + 1} (0x{line[error.start]:02x}) is not UTF-8"
            raise UserError(f"{what}; convert the text, for example by `iconv -t utf-8`") from None


def translated(translator: Translator, block: list[bytes], before: int, arguments: argparse.Namespace) -> Iterator[str]:
    """Yield the output for each line of a block before the first invalid line, then raise UserError for this line.

    `before` is the number of lines before the block.
    """
    lines, parts, refused = list[str](), list[Divided](), None
    try:
        for number, line in enumerate(decoded(block, before), before):
            parts += translator.prepared([line], arguments.split, number, "--split")
            lines.append(line)
    except UserError as error:
        refused = error
    if arguments.split:
        yield from translator.joined(parts)
    else:
        number = 1 if arguments.n_best is None else arguments.n_best
        normalised = [part.sentences[0] for part in parts]
        found = translator.hypotheses(normalised, "the text", number, alignment=arguments.alignment, given=lines)
        for place, hypotheses in enumerate(found, before + 1):
            yield "\n".join(row(place, hypothesis, arguments) for hypothesis in hypotheses)
    if refused:
        raise refused


def row(number: int, hypothesis: Hypothesis, arguments: argparse.Namespace) -> str:
    """The line of output for a hypothesis: its columns, separated by tabs."""
    columns = [str(number)] if arguments.n_best else []
    columns += [f"{hypothesis.score:.4f}"] if arguments.scores else []
    links = [f"{source}-{target}" for source, target in hypothesis.alignment or []]
    more = [" ".join(links)] if arguments.alignment else []
    text = hypothesis.text.replace("\t", " ") if columns or more else hypothesis.text
    return "\t".join([*columns, text, *more])


def prompt() -> None:
    if sys.stdin.isatty():
        print("> ", end="", file=sys.stderr, flush=True)


def work(translator: Translator, arguments: argparse.Namespace) -> None:
    done, most = 0, BLOCK * (16 if translator.device.type == "cuda" else 1)
    prompt()
    for block in blocks(sys.stdin.fileno(), most):
        if not done:
            block[0] = unmarked(block[0], "standard input")
            notice_form(b"\n".join(block), "standard input")
        for text in translated(translator, block, done, arguments):
            sys.stdout.buffer.write(f"{text}\n".encode())
            sys.stdout.buffer.flush()
        done += len(block)
        prompt()


def main(arguments: argparse.Namespace) -> int | None:
    if arguments.split and (arguments.n_best is not None or arguments.scores or arguments.alignment):
        raise UserError("--split joins translations; it is not possible with --n-best, --scores or --alignment")
    translator = translator_of(arguments.run, arguments.step)
    translator.say = partial(print, "translate:", file=sys.stderr)
    if translator.text_config is None:
        print("translate: the model folder has no text.json, so the input is not normalised", file=sys.stderr)
    try:
        with naming("standard output"):
            work(translator, arguments)
    except KeyboardInterrupt:
        return INTERRUPTED
    return None


def parser() -> argparse.ArgumentParser:
    parser = stage.parser("translate", __doc__)
    parser.add_argument("run", help=NAMED)
    parser.add_argument("--step", **STEP)
    best = "the N best hypotheses of each line, best first; the first column is the number of the line"
    score = "a column before the translation: log-probability divided by the length penalty"
    links = "a column after the translation: i-j aligns source word i with target word j, from 0"
    parser.add_argument("--n-best", type=int, metavar="N", help=best)
    parser.add_argument("--scores", action="store_true", help=score)
    parser.add_argument("--alignment", action="store_true", help=links)
    parser.add_argument("--split", action="store_true", help="translate each sentence of a line by itself")
    return parser


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends this process, as it ends any filter
    stage.run(main, parser(), checked=False)
