"""Commands that are not stages. Those of an extra are `python -m pipeline.extras.NAME`."""

import sys

MOVED = {
    "export": "export",
    "page": "serving",
    "track": "tracking",
}  # earlier names, and the extras whose commands they are

if sys.argv[:1] == ["-m"] and (extra := MOVED.get(sys.orig_argv[-len(sys.argv)].rpartition(".")[2])):
    sys.exit(f"this command is now `python -m pipeline.extras.{extra}`")
