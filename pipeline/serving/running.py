"""Runs the server until SIGINT or SIGTERM; requests that have begun are answered first."""

import asyncio
import signal
import socket
import sys
from typing import Any

import uvicorn
from fastapi import FastAPI

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


def serve(app: FastAPI, listener: socket.socket, seconds: float) -> None:
    """Serve `app` until a signal. Requests that have begun get `seconds` to end. Exits with status 0."""
    config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=round(seconds))

    def end(*_: Any) -> None:
        sys.exit(0)

    # uvicorn handles both signals while it serves. Afterwards it raises the received signal again, which calls `end`.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    asyncio.run(uvicorn.Server(config).serve([listener]))
