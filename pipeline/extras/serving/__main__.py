"""Serve a page and an HTTP interface that translate with a trained model.

    python -m pipeline.extras.serving RUN [--host ADDRESS] [--port PORT] [--name HOST]   (make page RUN=...)

RUN is a run of params.yaml, whose model is models/RUN/average, or a model folder. Prints the address and serves until
Ctrl-C. docs/how-to/use.md lists the addresses and limits of the interface.
"""

import argparse
import asyncio
import contextlib
import resource
import signal
import socket
import sys
from functools import partial
from typing import Annotated, Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from pipeline.extras.serving.application import LIMITS, Limits, application
from pipeline.extras.serving.viewing import Viewer, examples
from pipeline.running import stage
from pipeline.running.models import NAMED, label_of, translator_of
from transformer.config.reading import Pattern, UserError, convert

HOST = Pattern(
    r"(\*\.)?[\w.-]+|\[[0-9A-Fa-f:]+\]", "a host without scheme and port, such as mt.example.org, *.example.org or [::1]"
)


def listening(host: str, port: int) -> socket.socket:
    """Return a listening socket. Port 0 selects any free port. Raises UserError if the address cannot be used."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"{host}, port {port}: {reason}; choose another address with --host or --port") from None


def names(listener: socket.socket, *others: str) -> list[str]:
    """Return the hosts by which clients may address the server: this machine's own, and `others`.

    A page of another site, whose name that site points at this machine, is then refused (DNS rebinding).
    """
    own = {"localhost", "127.0.0.1", "[::1]", listener.getsockname()[0]}
    if listener.getsockname()[0] not in ("127.0.0.1", "::1"):  # it listens to other machines as well
        own |= {socket.gethostname(), socket.getfqdn()}
        with contextlib.suppress(OSError):  # the name of the machine has no address
            own |= {str(found[4][0]) for found in socket.getaddrinfo(socket.gethostname(), None)}
    return sorted({f"[{name}]" if ":" in name and name[0] != "[" else name for name in {*own, *others}})


def address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


class TimedConnection(H11Protocol):
    """Closes a connection whose client takes longer than `seconds` to send the headers of a request or to read an answer.

    uvicorn limits neither, so clients that do nothing could hold all files that the process may open. A connection is
    closed if it waits for its client at two looks in a row, which are `seconds` apart.
    """

    def __init__(self, seconds: float, **options: Any) -> None:
        super().__init__(**options)
        self.seconds = seconds

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.look(None)

    def look(self, before: Any) -> None:
        """Look whether the connection waits for its client. If so, the state is kept to be compared at the next look."""
        waits = not self.cycle or self.cycle.response_complete or self.flow.write_paused
        if waits and before == (self.cycle,):
            self.transport.abort()
        elif not self.transport.is_closing():
            self.loop.call_later(self.seconds, self.look, (self.cycle,) if waits else None)


def configured(app: FastAPI, limits: Limits, log_level: str) -> uvicorn.Config:
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    timed: Any = partial(TimedConnection, limits.seconds)
    return uvicorn.Config(
        app,
        http=timed,
        limit_concurrency=min(limits.connections, files // 2) + 1,  # the connection that asks counts, too
        log_level=log_level,
        access_log=False,
        timeout_graceful_shutdown=round(limits.seconds),
        backlog=64,  # asyncio accepts so many connections before it handles one
    )


def serve(app: FastAPI, listener: socket.socket, limits: Limits) -> None:
    """Serve `app` until a signal. Requests that have begun get `limits.seconds` to end. Exits with status 0."""

    def end(*_: Any) -> None:
        sys.exit(0)

    # uvicorn handles both signals while it serves. Afterwards it raises the received signal again, which calls `end`.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    asyncio.run(uvicorn.Server(configured(app, limits, "warning")).serve([listener]))


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
