"""Runs the server until SIGINT or SIGTERM; requests that have begun are answered first."""

import asyncio
import resource
import signal
import socket
import sys
from functools import partial
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from pipeline.serving.application import Limits
from transformer.config.reading import UserError


def listening(host: str, port: int) -> socket.socket:
    """Return a listening socket. Port 0 selects any free port. Raises UserError if the address cannot be used."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"{host}, port {port}: {reason}; choose another address with --host or --port") from None


def address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


class BoundedConnection(H11Protocol):
    """Closes a connection if the headers of a request do not arrive, or an answer cannot be sent, within `seconds`.

    A new connection is closed at once if there are `most` others. Otherwise clients could hold all files that the process
    may open.
    """

    def __init__(self, most: int, seconds: float, **options: Any) -> None:
        super().__init__(**options)
        self.most, self.seconds = most, seconds
        self.due: dict[str, asyncio.TimerHandle] = {}

    def expect(self, what: str) -> None:
        """Close the connection after `seconds`, unless `arrived(what)` is called before."""
        if what not in self.due:
            self.due[what] = self.loop.call_later(self.seconds, self.transport.abort)

    def arrived(self, what: str) -> None:
        if timer := self.due.pop(what, None):
            timer.cancel()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.limit_headers()
        if len(self.connections) > self.most:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self.limit_headers()

    def on_response_complete(self) -> None:
        super().on_response_complete()  # may begin a request that has already arrived
        self.limit_headers()

    def limit_headers(self) -> None:
        if self.cycle and not self.cycle.response_complete:
            self.arrived("headers")
        else:
            self.expect("headers")

    def pause_writing(self) -> None:
        super().pause_writing()
        self.expect("room")  # for the rest of the answer

    def resume_writing(self) -> None:
        super().resume_writing()
        self.arrived("room")

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        for what in list(self.due):
            self.arrived(what)


def configured(app: FastAPI, limits: Limits, log_level: str) -> uvicorn.Config:
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    bounded: Any = partial(BoundedConnection, min(limits.connections, files // 2), limits.seconds)
    return uvicorn.Config(
        app,
        http=bounded,
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
