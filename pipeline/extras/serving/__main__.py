"""Serve a page and an HTTP interface that translate with a trained model.

    python -m pipeline.extras.serving RUN [--host ADDRESS] [--port PORT] [--name HOST]   (make page RUN=...)

RUN is a run of params.yaml, whose model is models/RUN/average, or a model folder. Prints the address and serves until
Ctrl-C. docs/how-to/use.md lists the addresses and limits of the interface.
"""

import argparse
from typing import Annotated

from pipeline.extras.serving.application import LIMITS, application
from pipeline.extras.serving.running import address, listening, names, serve
from pipeline.extras.serving.viewing import Viewer, examples
from pipeline.running import stage
from pipeline.running.models import NAMED, label_of, translator_of
from transformer.config.reading import Pattern, convert

HOST = Pattern(
    r"(\*\.)?[\w.-]+|\[[0-9A-Fa-f:]+\]", "a host without scheme and port, such as mt.example.org, *.example.org or [::1]"
)


def main(arguments: argparse.Namespace) -> None:
    convert(tuple[Annotated[str, HOST], ...], arguments.name, "--name")
    translator = translator_of(arguments.run)
    listener = listening(arguments.host, arguments.port)
    name = label_of(arguments.run)
    viewer = Viewer(translator, name, examples(name))
    app = application(viewer, LIMITS, names(listener, arguments.host, *arguments.name))
    print(f"{arguments.run}: {address(listener)} (Ctrl-C ends)", flush=True)
    serve(app, listener, LIMITS)


if __name__ == "__main__":
    parser = stage.parser("page", __doc__)
    parser.add_argument("run", help=NAMED)
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen at (default: this machine only)")
    parser.add_argument("--name", action="append", default=[], help="a further host name of the server, such as a proxy's")
    parser.add_argument("--port", type=int, default=8000, help="0: any free port (default: 8000)")
    stage.run(main, parser, checked=False)
