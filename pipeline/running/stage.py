"""The command line of stages and commands.

An error of the user's, of the operating system or of memory, and an interrupt, print one line each and exit with a nonzero
status.
"""

import argparse
import io
import os
import re
import select
import shutil
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pipeline.orchestrating import slurm
from pipeline.running import durations
from pipeline.running.devices import claim_for
from pipeline.running.merges import require_all_whole
from pipeline.running.unchanged import AGAIN, CODE, inputs, require_recorded, require_unchanged
from pipeline.settings.check import check
from pipeline.settings.params import load
from transformer.config.reading import UserError

OUTPUTS = ("data", "models", "scores", "results", "reports")  # the folders with the outputs of all stages but `code`
REPLACED = ("data", "models", "scores", "work")  # in these, stages replace whole folders
INTERRUPTED = 75  # stopped by a signal or the time limit, with the state saved; the same command resumes


def run(
    main: Callable[[argparse.Namespace], int | None],
    parser: argparse.ArgumentParser,
    checked: bool = True,
    remedy: str = AGAIN,
    require: Callable[[argparse.Namespace], None] = lambda arguments: None,
) -> None:
    """Parse the arguments, call `require` and then `main` with them, and exit with the status that `main` returns.

    If `checked`, the stage starts only if all settings in params.yaml are valid, including those that it does not use.
    It also claims the GPUs that dvc.yaml states for it. If DVC runs it, it starts only with the recorded code, and fails
    with `remedy` if its code, settings or data changed since they were noted here, before any of them was read. `main`
    finds the noted code as `arguments.code`, which is "" if DVC does not run the stage.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # pipeline/__init__.py
        signal.signal(signal.SIGINT, signal.default_int_handler)
    open_missing()
    # Started in a subfolder, DVC puts the path of dvc.yaml before the name.
    os.environ["DVC_STAGE"] = os.environ.get("DVC_STAGE", "").rpartition(":")[2]
    try:
        first = checked and bool(os.environ["DVC_STAGE"])  # before a name that is wrong is read as an option
        before = begun(parser.prog) if first else {}
        try:
            arguments = parser.parse_args()
        finally:
            sys.stdout.flush()  # what --help has printed
        if checked and not first:
            begun(parser.prog)
        arguments.code = before.get(CODE, "")
        require(arguments)
        with durations.measured(os.environ["DVC_STAGE"], arguments.code) as ended:
            status = main(arguments)
            if not status and os.environ.get("RANK", "0") == "0":  # of several workers, the first one reports a change
                require_unchanged(before, remedy)
            ended.append(status)
        print(end="", flush=True)
    except (UserError, OSError, RuntimeError, MemoryError, KeyboardInterrupt) as error:
        status = failed(parser.prog, error)
    if status == INTERRUPTED and (said := slurm.requeue(os.environ)):
        print(f"{parser.prog}: {said}", file=sys.stderr)
    drop_unwritten()
    sys.exit(status)


def failed(prog: str, error: BaseException) -> int:
    """Say on stderr why a command ends, and return its exit status. Raise the error again if it is none of a user's."""
    if isinstance(error, (UserError, OSError)):
        if isinstance(error, BrokenPipeError) and unread():
            return 128 + signal.SIGPIPE
        lines = error.args if isinstance(error, UserError) else [error]
        if isinstance(error, shutil.Error) and isinstance(error.args[0], list):  # of copytree, about all files of a folder
            lines = [error.args[0][0][-1]]
        for line in lines:
            print(f"{prog}: {' '.join(str(line).split())}", file=sys.stderr)
        return 1
    if isinstance(error, KeyboardInterrupt):  # a training handles the signal itself and saves its state
        print(f"{prog}: interrupted; no output was left incomplete; run the same command again", file=sys.stderr)
        return 128 + signal.SIGINT
    from transformer.memory import out_of_memory  # imports torch, which most commands do not need

    if not out_of_memory(error):
        raise error
    remedy = "run fewer stages at a time (`make reproduce CORES=1`), or use a larger machine"
    print(f"{prog}: out of memory; {remedy}", file=sys.stderr)
    return 1


def begun(prog: str) -> dict[str, Any]:
    """Return the inputs of a stage that DVC runs, noted before any of them is read, else {}. Check what `run` states."""
    before, name = dict[str, Any](), os.environ["DVC_STAGE"]
    if name.partition("@")[0] == prog:
        before = inputs()
        require_recorded(prog, before[CODE])
    params = load()
    require_sound(params)
    # The launcher of a worker has asked.
    if before and "RANK" not in os.environ and durations.seconds_of(name) > durations.LONG:
        from pipeline.orchestrating.costly import confirm_started  # imports DVC, which takes a second

        confirm_started(name, before[CODE])
    claim_for(prog, params)
    return before


def open_missing() -> None:
    """Replace standard streams that are closed, as by `>&-`, by /dev/null. Let no character be one that they refuse."""
    for name, mode in {"stdin": "r", "stdout": "w", "stderr": "w"}.items():
        if getattr(sys, name) is None:  # the file takes the lowest free number, which is that of the closed stream
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # in a locale other than UTF-8


def unread() -> bool:
    """Return whether the reader of standard output is gone, as in `... | head`."""
    poll = select.poll()
    poll.register(1)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def drop_unwritten() -> None:
    """Drop what standard output does not take, as on a full disk. Otherwise Python tries again at its end, and fails."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def require_sound(params: Mapping[str, Any]) -> None:
    """Raise UserError for a damaged file in git, settings that are not valid, and a folder where DVC cannot record."""
    require_all_whole()
    check(params)
    require_within()


def require_within() -> None:
    """Raise UserError for a place where DVC cannot record the outputs of a stage: behind a link, or a path with a brace."""
    if re.search("[{}]", str(Path.cwd())):
        raise UserError(f"{Path.cwd()}: DVC cannot record outputs in a folder with a brace in its path; rename the folder")
    folders = [path for top in map(Path, OUTPUTS) for path in (top, *top.glob("*/"), *top.glob("*/*/"))]
    for folder in (*folders, Path("work"), Path("work/code")):
        if not (place := folder.resolve()).is_relative_to(Path.cwd()):
            raise UserError(
                f"{folder} is a link to {place}, and DVC records outputs only within the project: move the folder back. To "
                "use another disk, move .dvc/cache to a PATH there, and run `dvc config --local cache.dir PATH`; "
                "work/downloads and the folders of trainings in work/ can be links"
            )


def parser(prog: str, doc: str | None) -> argparse.ArgumentParser:
    """The parser of a command. Its help begins with the first paragraph of `doc`, which is None under `python -OO`."""
    return argparse.ArgumentParser(prog=prog, description=(doc or "").split("\n\n")[0])


def script(
    main: Callable[[argparse.Namespace], int | None],
    prog: str,
    doc: str,
    options: str,
    remedy: str = AGAIN,
    **name: str,
) -> None:
    """Run a stage. All `options` are paths and required. `name` is the positional argument with its help, if any."""
    parser = argparse.ArgumentParser(prog=prog, description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    for argument, text in name.items():
        parser.add_argument(argument, help=text)
    for option in options.split():
        parser.add_argument(f"--{option}", type=Path, required=True)

    def require(arguments: argparse.Namespace) -> None:
        if prog not in ("collect", "report"):  # which replace no folder
            for folder in [arguments.out, *([arguments.test] if prog == "download" else [])]:
                require_replaceable(folder)

    run(main, parser, remedy=remedy, require=require)


def require_replaceable(folder: Path) -> None:
    """Raise UserError if a stage would replace a folder with content that is not a stage's. A stage replaces it whole."""
    top, *below = Path(os.path.relpath(folder)).parts or ("",)
    if folder.is_dir() and any(folder.iterdir()) and not (below and top in REPLACED):
        within = ", ".join(f"{name}/" for name in REPLACED)
        raise UserError(
            f"{folder} holds files, and the stage would replace it; a new folder or one in {within} is expected"
        )
