"""A local HTTP server that imitates the faults of real servers."""

import contextlib
import gzip
import hashlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Fault:
    """A fault of one response."""

    status: int | None = None  # sent instead of the file
    headers: dict = field(default_factory=dict)
    after: int | None = None  # close the connection after this many bytes of the body
    stall: bool = False  # before closing, send nothing for longer than any test waits
    pause: float = 0.0  # seconds between pieces of the body
    tells_length: bool = True


class Site:
    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.faults: dict[str, list[Fault]] = {}  # one fault per response; later responses have none
        self.ranges = True
        self.packs = False  # whether a client that accepts gzip gets it
        self.requests: list[tuple[str, str | None]] = []  # path and Range header
        self.closing = threading.Event()
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.answer(self)

            def log_message(self, *_) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True

    def url(self, path: str = "") -> str:
        return f"http://127.0.0.1:{self.server.server_port}{path}"

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        path, wanted = request.path, request.headers.get("Range")
        self.requests.append((path, wanted))
        faults = self.faults.get(path)
        fault = faults.pop(0) if faults else Fault()
        body = self.files.get(path)
        if fault.status or body is None:
            self.send(request, fault.status or 404, b"", fault, {})
            return
        if self.packs and "gzip" in request.headers.get("Accept-Encoding", ""):
            self.send(request, 200, gzip.compress(body), fault, {"Content-Encoding": "gzip"})
            return
        tag = '"' + hashlib.md5(body).hexdigest() + '"'
        # A weak tag does not say that the bytes are equal, but a server may take it.
        if wanted and self.ranges and request.headers.get("If-Range", tag) in (tag, 'W/"1"'):
            start = int(wanted.removeprefix("bytes=").rstrip("-"))
            if start >= len(body):
                self.send(request, 416, b"", fault, {})
            else:
                place = {"Content-Range": f"bytes {start}-{len(body) - 1}/{len(body)}", "ETag": tag}
                self.send(request, 206, body[start:], fault, place)
        else:
            self.send(request, 200, body, fault, {"ETag": tag})

    def send(self, request: BaseHTTPRequestHandler, status: int, body: bytes, fault: Fault, headers: dict) -> None:
        request.send_response(status)
        if fault.tells_length:
            request.send_header("Content-Length", str(len(body)))
        for key, value in (headers | fault.headers).items():
            request.send_header(key, value)
        request.end_headers()
        sent = body[: fault.after]
        pieces = [sent[i : i + max(1, len(sent) // 8)] for i in range(0, len(sent), max(1, len(sent) // 8))]
        with contextlib.suppress(ConnectionError):
            for piece in pieces if fault.pause else [sent]:
                request.wfile.write(piece)
                request.wfile.flush()
                self.closing.wait(fault.pause)
        if fault.stall:
            self.closing.wait(30)


@contextlib.contextmanager
def serving() -> Iterator[Site]:
    site = Site()
    thread = threading.Thread(target=site.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield site
    finally:
        site.closing.set()
        site.server.shutdown()
        thread.join()
        site.server.server_close()
