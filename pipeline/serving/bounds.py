"""Middleware that reads the body of a request and limits its size and the time for receiving it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from fastapi.responses import JSONResponse

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class BoundedBody:
    """Answers 413 to a body of more than `most` bytes and 408 to one that takes more than `seconds`."""

    def __init__(self, app: Callable, most: int, seconds: float) -> None:
        self.app, self.most, self.seconds = app, most, seconds

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        body, more = bytearray(), True
        try:
            async with asyncio.timeout(self.seconds):
                while more and len(body) <= self.most:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return
                    body += message.get("body", b"")
                    more = message.get("more_body", False)
        except TimeoutError:
            await refusal(408, f"the body took more than {self.seconds:g} seconds")(scope, receive, send)
            return
        if len(body) > self.most:
            await refusal(413, f"the body is longer than {self.most:,} bytes")(scope, receive, send)
            return
        waiting = [{"type": "http.request", "body": bytes(body), "more_body": False}]

        async def whole() -> Message:
            return waiting.pop() if waiting else await receive()

        await self.app(scope, whole, send)


def refusal(status: int, message: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """The answer to a request that is refused: one line that says why."""
    closing = {"connection": "close"} if status in (408, 413) else {}
    return JSONResponse({"error": message}, status, {**closing, **(headers or {})})
