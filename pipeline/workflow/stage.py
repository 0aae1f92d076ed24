"""What every stage's command line shares: an error or an interrupt is one line and an exit status, no traceback."""

import argparse
import signal
import sys
from collections.abc import Callable

from pipeline.settings.check import check
from pipeline.settings.params import load
from transformer.config.reading import UserError

INTERRUPTED = 75  # stopped on purpose (a signal, the time limit) with a checkpoint; run again to go on


def run(
    main: Callable[[argparse.Namespace], int | None], parser: argparse.ArgumentParser, checked: bool = True
) -> None:
    """Parse the arguments, call `main` with them and exit with what it returns.

    `checked` refuses to start where anything in params.yaml is wrong, whether this stage uses it or not.
    """
    arguments = parser.parse_args()
    try:
        if checked:
            check(load())
        status = main(arguments)
    except (UserError, OSError) as error:
        print(f"{parser.prog}: {' '.join(str(error).split())}", file=sys.stderr)
        status = 1
    except KeyboardInterrupt:  # all but a training, which saves its state, begins anew
        print(
            f"{parser.prog}: interrupted; it published nothing, and the same command begins it again", file=sys.stderr
        )
        status = 128 + signal.SIGINT
    sys.exit(status)
