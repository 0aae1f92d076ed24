"""The HTTP interface: the page, its searches, and translation in batches that combine the texts of several requests."""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import anyio
from fastapi import Depends, FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, StreamingResponse
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException as AnyHTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pipeline.extras.serving.batching import Batcher
from pipeline.extras.serving.viewing import Viewer
from transformer.config.reading import UserError
from transformer.sentences import CERTAIN, Divided
from transformer.sources import checked
from transformer.translator import Translator

STATIC = Path(__file__).parent / "static"
# The page needs only its own files. The browser may load nothing else, even if a displayed text contains HTML.
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}


@dataclass(frozen=True)
class Limits:
    body: int  # bytes of a request's body
    texts: int  # texts of a request
    pieces: int  # subword pieces of a sentence
    waiting: int  # sentences of a request and in the queue
    traces: int  # searches of POST /trace at the same time
    seconds: float  # to receive the body, and to compute an answer; the headers and the sending may take twice as long
    connections: int = 512  # beyond which requests are 503; at most half of the files that the process may open


CHARACTERS = 10  # for each piece that a sentence may have; cleaning a long text without any END could take minutes
END = re.compile(rf"(?<=[^\w\s])\s|[\n\r\v\f\x85\u2028\u2029{CERTAIN}]")  # where a sentence can end
CLOSE = {"connection": "close"}  # the rest of the body is not read
LIMITS = Limits(body=2**18, texts=64, pieces=256, waiting=256, traces=8, seconds=30.0)


class Translate(BaseModel):
    """The body of POST /translate."""

    model_config = ConfigDict(extra="forbid", strict=True)
    text: str | list[str]


class Search(BaseModel):
    """The body of POST /trace. The translation of the only sentence begins with the pieces whose ids are in `prefix`."""

    model_config = ConfigDict(extra="forbid", strict=True)
    text: str
    prefix: list[int] = []


def application(viewer: Viewer, limits: Limits, hosts: Sequence[str]) -> FastAPI:
    """The server, for requests to one of `hosts`."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.batcher = Batcher(viewer.translator, limits.waiting)
        task = asyncio.create_task(app.state.batcher.run())
        yield
        task.cancel()

    # A redirect names the scheme and the path of this server, which are not those of a proxy.
    app = FastAPI(openapi_url=None, redirect_slashes=False, lifespan=lifespan)
    app.add_middleware(bounded_body, most=limits.body, seconds=limits.seconds)
    app.add_middleware(known_hosts, hosts=hosts)
    for kind in (RequestValidationError, UserError, AnyHTTPException):
        app.add_exception_handler(kind, refused)
    add_translation(app, viewer, limits)
    add_search(app, viewer, limits)
    app.router.default = Page(directory=STATIC)  # mounted, it would take wrong methods of the paths above
    return app


class Page(StaticFiles):
    async def get_response(self, path: str, scope: Scope) -> Response:
        """A path without a file is 404 by any method. Ranges are ignored, as Starlette refuses unknown units."""
        scope["headers"] = [each for each in scope["headers"] if each[0] != b"range"]
        path = "index.html" if path == "." else path  # otherwise /. would be a redirect
        await super().get_response(path, {**scope, "method": "GET"})
        return await super().get_response(path, scope)

    def file_response(self, *arguments: Any, **options: Any) -> Response:
        response = super().file_response(*arguments, **options)
        response.headers.update(HEADERS)
        return response


def known_hosts(app: ASGIApp, hosts: Sequence[str]) -> ASGIApp:
    """Middleware that answers 400 to a request for another host, in JSON. Starlette's own answer is plain text.

    A name may end with the point of the DNS's root. HTTP/1.0 has no obligatory Host: health checks of proxies leave it out,
    and browsers, against which this check stands, never do.
    """
    rooted = [*hosts, *(f"{host}." for host in hosts)]

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        async def refuse(message: Message) -> None:
            if message["type"] == "http.response.start":
                host = Request(scope).headers.get("host", "")[:80]
                error = f"Host is {host!r}, which is no name of this server; its option --name HOST adds one"
                await JSONResponse({"error": error}, 400)(scope, receive, send)

        if scope.get("http_version") == "1.0" and "host" not in Request(scope).headers:
            return await app(scope, receive, send)
        checks = TrustedHostMiddleware(lambda *_: app(scope, receive, send), rooted, www_redirect=False)
        await checks(scope, receive, refuse)

    return checked


def bounded_body(app: ASGIApp, most: int, seconds: float) -> ASGIApp:
    """Middleware that answers 413 to a body of more than `most` bytes and 408 to one that takes more than `seconds`."""

    async def bounded(scope: Scope, receive: Receive, send: Send) -> None:
        size, more, ends = 0, scope["type"] == "http", asyncio.get_running_loop().time() + seconds

        async def received() -> Message:
            nonlocal size, more
            try:
                async with asyncio.timeout_at(ends if more else None):
                    message = await receive()
            except TimeoutError:
                raise HTTPException(408, f"the body took more than {seconds:g} seconds", CLOSE) from None
            size, more = size + len(message.get("body", b"")), message.get("more_body", False)
            if size > most:
                raise HTTPException(413, f"the body is longer than {most:,} bytes", CLOSE)
            return message

        await app(scope, received, send)

    return bounded


async def refused(request: Request, error: Any) -> Response:
    if isinstance(error, UserError):  # a text that is empty or not valid Unicode, or an impossible prefix
        error = HTTPException(422, str(error))
    elif isinstance(error, RequestValidationError):
        error = invalid(request, error)
    elif error.status_code == 400:  # FastAPI's, which names no reason
        error = HTTPException(400, "the body cannot be read; JSON in UTF-8, without a Content-Encoding, is expected")
    return JSONResponse({"error": error.detail}, error.status_code, error.headers)


def invalid(request: Request, error: RequestValidationError) -> HTTPException:
    """The answer to an invalid body. It repeats no part of the body except the beginning of an unknown key."""
    kind = request.headers.get("content-type", "")
    # FastAPI refuses other types. A page of another site cannot send JSON without asking first, which the server refuses.
    if not re.fullmatch(r"application/(.+\+)?json", kind.partition(";")[0].strip().lower()):
        return HTTPException(415, f"Content-Type is {kind[:80]!r}; application/json is expected")
    found = error.errors()
    # Without pydantic's names of types. The longest is text.1 of a list, and not that it is no string.
    places = [".".join(str(part) for part in each["loc"] if part != "str" and "[" not in str(part)) for each in found]
    place = max(places, key=len)
    said = " or ".join(dict.fromkeys(each["msg"] for each, own in zip(found, places) if own == place))
    if found[places.index(place)]["type"] == "extra_forbidden":
        said += f"; the keys are {', '.join((Search if request.url.path.endswith('/trace') else Translate).model_fields)}"
    return HTTPException(422, f"{place[:80]}: {said}")


def add_translation(app: FastAPI, viewer: Viewer, limits: Limits) -> None:
    translator = viewer.translator

    @app.api_route("/health", methods=["GET", "HEAD"])
    async def health() -> dict[str, Any]:
        return {"status": "ok", "waiting": len(app.state.batcher.waiting())}

    @app.post("/translate")
    async def translate(body: Translate, request: Request) -> dict[str, Any]:
        texts = [body.text] if isinstance(body.text, str) else body.text
        if len(texts) > limits.texts:
            raise HTTPException(413, f"text: {len(texts)} texts; at most {limits.texts} are possible")
        parts, lengths = await measured(translator, texts, limits)
        try:
            futures = app.state.batcher.submit([sentence for part in parts for sentence in part.sentences], lengths)
        except asyncio.QueueFull:
            raise HTTPException(503, "the queue is full; try again later", {"retry-after": "1"}) from None
        found, answers = iter(await within(limits.seconds, asyncio.gather(*futures), request)), []
        for part in parts:
            own = list(islice(found, len(part.sentences)))
            text = part.joined((each.text for each in own), translator.languages[1])
            answers.append({"text": text, "score": sum(each.score for each in own)})
            if doubt := translator.doubt(part, together=False):
                answers[-1]["warning"] = f"the text has {doubt}"
        return {"translations": answers}


async def measured(translator: Translator, texts: list[str], limits: Limits) -> tuple[list[Divided], list[int]]:
    """Return the sentences of each text, and the number of pieces of each sentence.

    Raises HTTPException for too many sentences and for a sentence that is too long.
    """
    most = min(limits.pieces, translator.longest)
    require_short([max(map(len, END.split(text))) for text in texts], most * CHARACTERS, "a sentence", "characters")

    def divide() -> tuple[list[Divided], list[list[int]]]:
        parts = [translator.divided(text) for text in checked(texts)]
        return parts, [[len(ids) for ids in translator.encode(part.sentences)] for part in parts]

    parts, lengths = await anyio.to_thread.run_sync(divide)
    require_short([max(own, default=0) for own in lengths], most, "a sentence", "pieces")
    if (count := sum(map(len, lengths))) > limits.waiting:
        raise HTTPException(413, f"text: {count:,} sentences; at most {limits.waiting} are possible")
    return parts, [length for own in lengths for length in own]


def require_short(lengths: list[int], most: int, what: str, unit: str) -> None:
    for number, length in enumerate(lengths, 1):
        if length > most:
            raise HTTPException(413, f"text {number} has {what} of {length:,} {unit}; at most {most:,} are possible")


async def within(seconds: float, results: "asyncio.Future[list]", request: Request) -> list:
    """Return the results. Raises HTTPException after `seconds`, and once the client has closed its connection.

    Texts that still wait are then not translated.
    """
    watch = asyncio.ensure_future(left(request))
    watch.add_done_callback(lambda _: results.cancel())
    try:
        return await asyncio.wait_for(results, seconds)
    except TimeoutError:
        raise HTTPException(504, f"no translation within {seconds:g} seconds") from None
    except asyncio.CancelledError:
        raise HTTPException(503, "the server is stopping, or the client has left") from None
    except Exception:
        raise HTTPException(500, "the translation failed; the server's log says why") from None
    finally:
        watch.cancel()


async def left(request: Request) -> None:
    """Wait until the client has closed its connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def add_search(app: FastAPI, viewer: Viewer, limits: Limits) -> None:
    searches = asyncio.Semaphore(limits.traces)
    threads = anyio.CapacityLimiter(2)  # for searches; a search occupies a thread only during a step

    async def counted() -> AsyncIterator[None]:
        """Count a search until its answer is sent or its client has left."""
        if searches.locked():
            raise HTTPException(503, f"{limits.traces} searches are running, which is the limit; try again later")
        async with searches:
            yield

    async def lines(events: Iterator[dict[str, Any]]) -> AsyncIterator[str]:
        ends = time.monotonic() + limits.seconds
        try:
            while (event := await anyio.to_thread.run_sync(next, events, None, limiter=threads)) is not None:
                yield json.dumps(event) + "\n"
                if time.monotonic() > ends:
                    yield json.dumps({"error": f"no translation within {limits.seconds:g} seconds"}) + "\n"
                    return
        except Exception:
            yield json.dumps({"error": "the translation failed"}) + "\n"
            raise

    @app.api_route("/model", methods=["GET", "HEAD"])
    async def model() -> dict[str, Any]:
        return viewer.about()

    @app.post("/trace", dependencies=[Depends(counted)])
    async def trace(body: Search) -> Response:
        (text,), _ = await measured(viewer.translator, [body.text], limits)
        events = viewer.events(text, body.prefix)
        return StreamingResponse(lines(events), media_type="application/x-ndjson", headers=HEADERS)
