"""The server and its page, tested with HTTP requests and in a browser."""

import asyncio
import dataclasses
import functools
import itertools
import json
import queue
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPResponse

import numpy as np
import pytest
import requests
import uvicorn
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse

from pipeline.extras.serving.__main__ import address, configured, listening, names
from pipeline.extras.serving.application import Limits, application, bounded_body, measured
from pipeline.extras.serving.viewing import Viewer, examples
from tests.support import in_process
from tests.support.browser import BROWSERS, browser, command, messages
from tests.support.projects import ROOT
from tests.support.random_weights import PIECES, SCRIPT, WORDS, random_model
from transformer.config.text import TextConfig
from transformer.config.vocabulary import EOS
from transformer.sentences import Divided
from transformer.translator import Hypothesis, Translator

SETTINGS = {"precision": "float32", "extra_length": 8, "threads": 1}
ROOMY = Limits(body=2**16, texts=40, pieces=50, waiting=200, traces=4, seconds=60)


@pytest.fixture(scope="module")
def folder(settings, tmp_path_factory):
    return random_model(settings(), tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def translator(folder):
    return Translator.load(folder, "cpu", **SETTINGS)


class Slow:
    """A translator that waits for `go`. A text has one piece per word, and its translation is the text itself."""

    longest, languages = 12, ("", "")

    def __init__(self):
        self.go, self.batches = threading.Event(), []
        self.translator = self  # it is its own viewer

    def divided(self, text):
        return Divided([[text]], [""])

    def doubt(self, text, together):
        return None

    def encode(self, texts):
        return [text.split() for text in texts]

    def hypotheses(self, texts, name):
        self.batches.append(texts)
        assert self.go.wait(60)
        return [[Hypothesis(text, -1.0, [], [])] for text in texts]


class Served:
    """A client of the server at `url`."""

    def __init__(self, url):
        self.url = url
        self.get = functools.partial(self.ask, "GET")

    def ask(self, method, path="", **options):
        return requests.request(method, self.url + path, timeout=60, **options)

    def post(self, path, body):
        """The status and the JSON object of the answer. `body` is an object or the bytes of a request."""
        sent = {"data": body} if isinstance(body, bytes) else {"json": body}
        answer = self.ask("POST", path, headers={"Content-Type": "application/json"}, **sent)
        self.headers = answer.headers
        return answer.status_code, answer.json()

    def search(self, **body):
        """The answer of a search, which is not read yet."""
        return self.ask("POST", "trace", json={"text": "one"} | body, stream=True)

    def frees_a_search(self):
        """Whether a further search is accepted. Its answer is not read to its end."""
        with self.search() as answer:
            next(answer.iter_lines())
            return answer.status_code == 200


def limits(**changes):
    return dataclasses.replace(ROOMY, **changes)


@contextmanager
def served(viewer, limits=ROOMY, visit="", seen=None):
    """Serve the application, and at /visit the page `visit`, which posts an object to /seen for the queue `seen`."""
    listener = listening("127.0.0.1", 0)
    own = application(viewer, limits, names(listener))

    async def app(scope, receive, send):
        if scope.get("path") == "/seen":
            seen.put(await Request(scope, receive).json())
        await (HTMLResponse(visit) if scope.get("path") in ("/visit", "/seen") else own)(scope, receive, send)

    server = uvicorn.Server(configured(app if visit else own, limits, "critical"))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        yield Served(address(listener))
    finally:
        server.should_exit = True
        thread.join(60)
        listener.close()


@pytest.fixture(scope="module")
def server(translator):
    with served(Viewer(translator, SCRIPT, ["one two", SCRIPT])) as running:
        yield running


@pytest.fixture
def viewer(translator):
    return Viewer(translator, "any", [])


@pytest.fixture
def slow():
    engine = Slow()
    yield engine
    engine.go.set()


def lines(seed, number):
    random = np.random.default_rng(seed)
    return [" ".join(random.choice(WORDS, length)) for length in random.integers(1, 9, number)]


def wait_for(condition):
    ends = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.01)


def test_a_text_is_translated_and_a_list_in_its_order(server, translator):
    texts = [*lines(1, 12), "", "two"]
    expected = {"text": translator("one two"), "score": pytest.approx(translator("one two", scores=True).score)}
    assert server.post("translate", {"text": "one two"}) == (200, {"translations": [expected]})
    status, answer = server.post("translate", {"text": texts})
    assert status == 200 and [each["text"] for each in answer["translations"]] == translator(texts)


def test_a_text_is_translated_sentence_by_sentence_and_keeps_its_lines(server, translator):
    text = "\nOne two. Three!\n\n  Four five."
    one, two, three = (translator(part, scores=True) for part in ("One two.", "Three!", "Four five."))
    _, answer = server.post("translate", {"text": [text, "one"]})
    expected = {"text": f"\n{one.text} {two.text}\n\n  {three.text}"}
    assert answer["translations"][0] == expected | {"score": pytest.approx(one.score + two.score + three.score, abs=1e-4)}
    said = "text: 201 sentences; at most 200 are possible"
    for sentence in ("One.\n\n", "One. ", "一二。"):  # on one line, they are longer than a sentence may be
        assert server.post("translate", {"text": sentence * 201}) == (413, {"error": said})
    events = [json.loads(line) for line in server.search(text=text).iter_lines()]
    assert [event["text"] for event in events if "text" in event] == [one.text, two.text, three.text]
    assert [event["before"] for event in events if "before" in event] == ["\n", " ", "\n\n  "]
    assert [event["sentence"] for event in events if "sentence" in event] == ["One two.", "Three!", "Four five."]


def test_a_sentence_longer_than_those_of_the_training_is_named(translator):
    limited = dataclasses.replace(translator, max_length=5)
    with served(Viewer(limited, "any", [])) as server:
        _, answer = server.post("translate", {"text": ["one", "one two three four five six seven"]})
        assert [("warning" in each) for each in answer["translations"]] == [False, True]
        assert "on at most 4" in answer["translations"][1]["warning"]
        source = json.loads(next(server.search(text="one two three four five six seven").iter_lines()))
        assert "on at most 4" in source["warning"]


@pytest.mark.slow
def test_concurrent_clients_get_what_they_would_get_alone(server, translator):
    texts = lines(2, 32)
    alone = [translator(text) for text in texts]
    with ThreadPoolExecutor(16) as clients:
        answers = list(clients.map(lambda text: server.post("translate", {"text": text}), texts))
    assert [answer["translations"][0]["text"] for _, answer in answers] == alone


@contextmanager
def busy(slow, **changes):
    """A server whose worker translates a text until `slow.go`, and a function that sends more, of which `waiting` wait."""
    with served(slow, limits(**changes)) as server, ThreadPoolExecutor(8) as clients:

        def send(text, waiting):
            sent = clients.submit(server.post, "translate", {"text": text})
            wait_for(lambda: server.get("health").json()["waiting"] == waiting)
            return sent

        first = send("a", 0)
        wait_for(lambda: slow.batches)
        yield server, send
        slow.go.set()
        assert first.result()[0] == 200


def test_texts_of_several_requests_are_one_batch_within_its_size(slow):
    texts = ["a b c", "d e", "f g h", "i j k", "l m"]  # a batch has room for 12 pieces, padding included
    with busy(slow) as (_, send):
        others = [send(text, number) for number, text in enumerate(texts, 1)]
        slow.go.set()
        assert [other.result()[1]["translations"][0]["text"] for other in others] == texts
    assert slow.batches == [["a"], texts[:4], texts[4:]]


def test_a_full_queue_is_503_and_takes_texts_again_later(slow):
    with busy(slow, waiting=3) as (server, send):
        waiting = send(["b", "c"], 2)
        assert server.post("translate", {"text": ["d", "e"]}) == (503, {"error": "the queue is full; try again later"})
        assert server.headers["retry-after"] == "1"
        slow.go.set()
        assert waiting.result()[0] == 200
        assert server.post("translate", {"text": "d"})[0] == 200
    assert sorted(text for batch in slow.batches for text in batch) == ["a", "b", "c", "d"]


def test_the_texts_of_a_client_that_has_left_are_not_translated_and_leave_the_queue(slow):
    with busy(slow, waiting=3) as (server, send):
        with connect(server, posted("translate", b'{"text": ["b", "c"]}')):
            wait_for(lambda: server.get("health").json()["waiting"] == 2)
        wait_for(lambda: server.get("health").json()["waiting"] == 0)
        later = send(["d", "e"], 2)
        slow.go.set()
        assert later.result()[0] == 200
    assert sorted(text for batch in slow.batches for text in batch) == ["a", "d", "e"]


def test_a_request_that_waits_too_long_is_504_and_is_not_translated(slow):
    with served(slow, limits(seconds=0.3)) as server:
        assert server.post("translate", {"text": "a"}) == (504, {"error": "no translation within 0.3 seconds"})
        assert server.post("translate", {"text": "b"})[0] == 504  # it waited behind the first
        slow.go.set()
        assert server.post("translate", {"text": "c"})[0] == 200
    assert slow.batches == [["a"], ["c"]]


@pytest.mark.parametrize(
    "path, body, status, named",
    [
        ("translate", {"text": "one " * 60}, 413, "text 1 has a sentence of .* pieces; at most 50"),
        ("translate", {"text": ["one", "…" * 501]}, 413, "text 2 has a sentence of 501 characters; at most 500"),
        ("translate", {"text": ["one"] * 41}, 413, "41 texts; at most 40"),
        ("translate", {"text": "x" * 70_000}, 413, "longer than 65,536 bytes"),
        ("translate", {"text": 5}, 422, "body.text: Input should be a valid string or Input should be a valid list"),
        ("translate", {"text": ["one", 5]}, 422, "body.text.1: "),
        ("translate", {}, 422, "text: Field required"),
        ("translate", {"text": "one", "beam": 9}, 422, "beam: Extra inputs are not permitted; the keys are text"),
        ("translate", b"{", 422, "JSON"),
        ("translate", b"\xff\xfe", 422, ""),
        ("translate", b'{"text": "\\ud800"}', 422, "surrogate"),
        ("trace", {"text": " \n "}, 422, "empty"),
        ("trace", {"text": "one " * 60}, 413, "a sentence of .* pieces"),
        ("trace", {"text": "One! Two!", "prefix": [5]}, 422, "2 sentences; one is"),
        ("trace", {"text": "one", "prefix": [PIECES]}, 422, f"{PIECES} is not"),
        ("trace", {"text": "one", "prefix": [2]}, 422, "2 is not"),  # BOS
        ("trace", {"text": "one", "prefix": [EOS, 5]}, 422, f"{EOS} is not"),
        ("trace", {"text": "one", "prefix": [5] * 40}, 422, "a prefix of 40 pieces"),
        ("translate", '{"text": "ü"}'.encode("latin-1"), 400, "JSON in UTF-8"),
        ("..%2f..%2fparams.yaml", {}, 404, "Not Found"),
        ("translate/", {"text": "one"}, 404, "Not Found"),  # no redirect to an address that a proxy may not have
    ],
    ids=str,
)
def test_a_wrong_request_is_one_line(server, path, body, status, named):
    found, answer = server.post(path, body)
    assert found == status and set(answer) == {"error"}
    assert re.search(named, answer["error"]) and "\n" not in answer["error"] and len(answer["error"]) < 200


def test_the_bytes_of_a_body_are_counted_over_its_parts():
    async def reading(scope, receive, send):
        while (await receive())["more_body"]:
            pass

    async def received():
        return {"type": "http.request", "body": next(parts), "more_body": True}

    parts = iter([b"x" * 6] * 2)
    with pytest.raises(HTTPException) as refused:
        asyncio.run(bounded_body(reading, 10, 60.0)({"type": "http"}, received, None))
    assert (refused.value.status_code, refused.value.detail) == (413, "the body is longer than 10 bytes")


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "text/json"])
def test_a_body_that_is_not_declared_as_json_is_415(server, kind):
    answer = server.ask("POST", "translate", data=b'{"text": "one"}', headers={"Content-Type": kind})
    assert answer.status_code == 415 and kind in answer.json()["error"]


def test_a_failed_batch_is_500_and_the_worker_goes_on(caplog):
    class Failing(Slow):
        def hypotheses(self, texts, name):
            if texts == ["bad"]:
                raise RuntimeError("a secret")
            return super().hypotheses(texts, name)

    engine = Failing()
    engine.go.set()
    with served(engine) as server:
        status, answer = server.post("translate", {"text": "bad"})
        assert status == 500 and "secret" not in answer["error"]
        assert server.post("translate", {"text": "good"})[0] == 200
        assert server.post("translate", {"text": "a " * engine.longest})[0] == 200
        assert server.post("translate", {"text": "a " * (engine.longest + 1)})[0] == 413, "a batch has no room for it"
    assert "a secret" in caplog.text


def test_the_length_of_a_text_is_that_of_the_normalised_text_which_is_translated(translator):
    normalising = dataclasses.replace(
        translator, text_config=TextConfig(("en", "de"), entities=True, nfc=True, punctuation=False)
    )
    text = "one &quot;   \u200b   two"
    *pieces, end = normalising(text, scores=True).source
    _, lengths = asyncio.run(measured(normalising, [text], ROOMY))
    assert lengths == [len(pieces)] != asyncio.run(measured(translator, [text], ROOMY))[1]
    assert end == "</s>"


def connect(server, first=b""):
    """A connection that has sent `first`. A read or write of it must not take longer than a minute."""
    connection = socket.create_connection(server.url[7:-1].split(":"), timeout=60)
    connection.sendall(first)
    return connection


def was_closed(connection):
    with connection:
        try:
            return connection.recv(1) == b""
        except ConnectionResetError:
            return True


def test_requests_that_do_not_come_end_and_those_beyond_the_limit_are_503():
    begun = b"POST /translate HTTP/1.1\r\nHost: localhost\r\n"
    with served(Slow(), limits(seconds=0.3)) as server:
        with connect(server, posted("translate")[:-5]) as connection:
            assert connection.recv(20).startswith(b"HTTP/1.1 408")
        assert was_closed(connect(server, begun))
    with served(Slow(), limits(connections=5)) as server:
        first = [connect(server, begun) for _ in range(5)]
        assert server.get("health").status_code == 503
        for connection in first:
            connection.close()
        wait_for(lambda: server.get("health").status_code == 200)


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "", "localhost.evil.example", "127.0.0.1.evil.example"]
)
def test_a_name_that_another_site_controls_is_refused(server, host):
    """DNS rebinding: the site points its own name at this machine, and its page asks this server."""
    for method, path in (("GET", ""), ("POST", "translate"), ("GET", "model")):
        refused = server.ask(method, path, headers={"Host": host})
        assert refused.status_code == 400 and repr(host) in refused.json()["error"] and "--name" in refused.json()["error"]
    with connect(server, f"HEAD / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()) as connection:
        head = connection.makefile("rb").read()
    assert head.startswith(b"HTTP/1.1 400") and head.endswith(b"\r\n\r\n"), "no body"


def test_names_with_the_point_of_the_root_and_clients_of_http_1_0_are_answered(server):
    """RFC 1034, 3.1: localhost. is localhost. RFC 1945: HTTP/1.0 has no Host, as in the health checks of HAProxy."""
    for host in ("localhost.", "localhost.:8000", "LOCALHOST."):
        assert server.get("health", headers={"Host": host}).status_code == 200
    for head, status in ((b"GET /health HTTP/1.0", b"200"), (b"GET /health HTTP/1.0\r\nHost: evil.example", b"400")):
        with connect(server, head + b"\r\n\r\n") as connection:
            assert connection.recv(12).split()[1] == status


def test_head_is_answered_as_get_without_a_body(server):
    for path in ("", "health", "model", "page.js"):
        get, head = (server.ask(method, path, headers={"Accept-Encoding": ""}) for method in ("GET", "HEAD"))
        assert (get.status_code, head.status_code, head.content) == (200, 200, b"")
        assert [get.headers[key] == head.headers[key] for key in ("content-type", "content-length")] == [True, True]
        part = server.ask("GET", path, headers={"Range": "lines=1"})
        assert (part.status_code, part.content) == (200, get.content), "RFC 9110, 14.2"


def test_a_wrong_method_is_405_with_the_methods_of_its_path(server):
    """RFC 9110, 15.5.6."""
    for path, allowed in {"translate": {"POST"}, "trace": {"POST"}, "model": {"GET", "HEAD"}, "": {"GET", "HEAD"}}.items():
        refused = server.ask("GET" if allowed == {"POST"} else "POST", path)
        assert (refused.status_code, {*refused.headers["allow"].split(", ")}) == (405, allowed)


def test_the_hosts_of_a_server_for_other_machines_are_its_own_names_and_those_that_are_stated():
    with listening("0.0.0.0", 0) as listener:
        found = names(listener, "mt.example")
    assert {"localhost", "127.0.0.1", "[::1]", socket.gethostname(), "mt.example"} <= {*found} and "*" not in found


LONG = "x" * 2**26  # more than the buffers of the system hold


@pytest.mark.slow
def test_a_connection_whose_client_does_not_read_is_closed():
    class Long(Slow):
        def hypotheses(self, texts, name):
            return [[Hypothesis(LONG, -1.0, [], [])] for _ in texts]

    def healthy():
        try:
            return server.get("health").status_code == 200
        except OSError:
            return False

    with (
        served(Long(), limits(seconds=1.0, connections=1)) as server,
        connect(server, posted("translate")) as connection,
    ):
        assert connection.recv(15) == b"HTTP/1.1 200 OK" and not healthy()
        wait_for(healthy)


@pytest.mark.slow
def test_a_client_keeps_its_connection_while_its_answer_is_computed_and_between_requests(slow):
    with served(slow, limits(seconds=1.0)) as server, ThreadPoolExecutor(2) as clients:
        with connect(server) as connection:
            for _ in range(5):
                connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
                answer = HTTPResponse(connection)
                answer.begin()
                assert json.load(answer)["status"] == "ok"
                time.sleep(0.3)
        running = clients.submit(server.post, "translate", {"text": "a"})
        wait_for(lambda: slow.batches)
        time.sleep(0.3)
        slow.go.set()
        assert running.result()[0] == 200


def posted(path, body=b'{"text": "one"}'):
    """A request, as it is sent."""
    lines = [f"POST /{path} HTTP/1.1", "Host: localhost", "Content-Type: application/json"]
    return "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body


def test_the_search_is_streamed_and_ends_with_the_translation(server, translator):
    text = "three one two"
    source, *steps, end = (json.loads(line) for line in server.search(text=text).iter_lines())
    assert source == {"source": translator(text, scores=True).source, "sentence": text, "before": ""}
    assert len(steps) > 2 and all(step["candidates"] for step in steps)
    assert end["text"] == translator(text)
    places = len(end["pieces"])
    shapes = {kind: weights["shape"] for kind, weights in end["attention"].items()}
    sources = len(source["source"])
    assert shapes == {
        "encoder": [2, 4, sources, sources],
        "decoder": [2, 4, places, places],
        "cross": [2, 4, places, sources],
    }
    chosen = end["alternatives"][1][2]["token"]
    *_, last = server.search(text=text, prefix=[end["ids"][0], chosen]).iter_lines()
    again = json.loads(last)
    assert again["ids"][:2] == [end["ids"][0], chosen] and again["forced"] == 2
    *_, last = server.search(text=text, prefix=[chosen, EOS]).iter_lines()
    assert json.loads(last)["ids"] == [chosen], "a chosen end is the end"


def test_a_search_is_sent_as_it_is_done_too_many_are_503_and_a_long_one_ends(viewer):
    events, go = viewer.events, threading.Event()

    def endless(source, prefix):
        yield {"source": []}
        assert go.wait(60)
        yield from itertools.repeat({"candidates": []})

    viewer.events = endless
    with served(viewer, limits(traces=1, seconds=1.0)) as server:
        with server.search() as answer:
            received = answer.iter_lines(chunk_size=1)
            assert json.loads(next(received)) == {"source": []}
            assert server.post("trace", {"text": "two"})[0] == 503
            go.set()
            *_, last = received
            assert json.loads(last) == {"error": "no translation within 1 seconds"}
        viewer.events = events
        wait_for(lambda: server.search().status_code == 200)


def test_a_search_that_fails_says_nothing_of_its_error_and_one_without_a_client_ends(viewer):
    def failing(source, prefix):
        yield {"source": []}
        raise RuntimeError("a secret")

    viewer.events = failing
    with served(viewer, limits(traces=1, seconds=50.0)) as server:
        received = server.search().iter_lines(chunk_size=1)  # which ends early
        assert [json.loads(next(received)) for _ in range(2)] == [{"source": []}, {"error": "the translation failed"}]
        viewer.events = lambda source, prefix: iter(lambda: {"candidates": []}, None)  # without end
        for _ in range(2):
            wait_for(server.frees_a_search)


def test_the_head_of_the_page_has_the_sizes_of_the_model_and_short_examples_of_its_run(translator, here):
    own = dataclasses.replace(
        translator, text_config=TextConfig(("eng_Latn", "de_AT"), entities=True, nfc=True, punctuation=False)
    )
    own.config = dataclasses.replace(own.config, beam=3)
    assert examples("run") == []
    path = here / "scores/run/translations/samples.json"
    path.parent.mkdir(parents=True)
    sources = ["three words here", "", "one", "two words", "longer than the other ones"]
    path.write_text(json.dumps([{"source": source, "reference": f"not {source}"} for source in sources]))
    weights = sum(np.prod(tensor.shape) for tensor in translator.model.state_dict().values())
    expected = {"name": "run", "languages": ["en", "de-AT"], "parameters": weights, "layers": 2, "heads": 4, "beam": 3}
    expected["examples"] = ["one", "two words", "three words here"]
    assert Viewer(own, "run", examples("run")).about() == expected


def test_files_are_served_with_a_policy_that_allows_nothing_else(server):
    for path, kind in (("", "text/html"), ("page.js", "text/javascript"), ("style.css", "text/css")):
        answer = server.get(path)
        assert answer.headers["content-type"].startswith(kind)
        assert "default-src 'none'; script-src 'self'" in answer.headers["content-security-policy"]
        assert not re.search(rb"https?://(?!www\.w3\.org)", answer.content)
    headers = server.search().headers
    assert (headers["x-content-type-options"], headers["cache-control"]) == ("nosniff", "no-cache")
    assert "default-src 'none'" in headers["content-security-policy"]


COMMAND = ["pipeline.extras.serving.__main__"]


@pytest.mark.slow
def test_the_command_prints_its_address_and_ends_cleanly(folder):
    line, pipe = [sys.executable, "-m", *COMMAND, str(folder), "--port", "0"], subprocess.PIPE
    process = subprocess.Popen(line, cwd=ROOT, stdout=pipe, stderr=pipe, text=True)
    url = re.search(r"http://127\.0\.0\.1:\d+/", process.stdout.readline())[0]
    status, answer = Served(url).post("translate", {"text": "one two"})
    assert status == 200 and len(answer["translations"]) == 1
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0 and errors == ""


@pytest.mark.slow
def test_sigterm_ends_the_command_as_well(folder, monkeypatch):
    startup = uvicorn.Server.startup

    async def terminated(server, **how):
        await startup(server, **how)
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(uvicorn.Server, "startup", terminated)
    with in_process.inside(ROOT):
        signal.signal(signal.SIGTERM, lambda *_: sys.exit("not handled"))  # by default, it would end the tests
        status, output, errors = in_process.started([*COMMAND, str(folder), "--port", "0"])
    assert (status, errors) == (0, "") and output.endswith("(Ctrl-C ends)\n")


@pytest.mark.slow
def test_a_port_in_use_is_one_line(folder):
    with socket.create_server(("127.0.0.1", 0)) as other, in_process.inside(ROOT):
        port = str(other.getsockname()[1])
        status, output, errors = in_process.started([*COMMAND, str(folder), "--port", port])
    assert (status, output) == (1, "") and errors.count("\n") == 1 and f"port {port}: Address already in use" in errors


# Uses the page, in a frame, by its keys and its buttons.
VISIT = """<!DOCTYPE html><iframe src="/" style="width:400px;height:900px;border:0"></iframe><script>
const frame = document.querySelector("iframe"), seen = {};
const until = async (done) => { while (!done()) await new Promise((next) => setTimeout(next, 20)); };
frame.onload = async () => {
  const page = frame.contentDocument, at = (id) => page.getElementById(id);
  const all = (path) => [...page.querySelectorAll(path)];
  const key = (name) => new frame.contentWindow.KeyboardEvent("keydown", {key: name, bubbles: true, cancelable: true});
  const press = (...names) => names.forEach((name) => page.activeElement.dispatchEvent(key(name)));
  const found = () => until(() => !page.body.classList.contains("busy") && at("facts").textContent);
  const translate = (text) => { at("text").value = text; at("text").focus(); press("Enter"); };
  await until(() => all("#examples button").length === 2);
  translate("three one two");
  await found();
  seen.translation = at("translation").textContent;
  page.querySelector("#source .piece").focus();
  press("ArrowRight");
  seen.source = at("says").textContent;
  press("ArrowDown", "ArrowRight");
  seen.target = at("says").textContent;
  page.querySelector("input[value=decoder]").focus();
  page.activeElement.click();
  page.querySelector("#target [tabindex='0']").focus();
  seen.decoder = at("says").textContent;
  page.activeElement.click();
  seen.choices = all("#choices button").length;
  press("ArrowDown", "ArrowDown");
  seen.chosen = page.activeElement.querySelector(".name").textContent;
  page.activeElement.click();
  await found();
  seen.forced = [all("#target .forced").length, page.activeElement.firstChild.textContent];
  page.querySelector("#tree [tabindex='0']").focus();
  press("ArrowRight", "ArrowRight");
  press(at("detail").textContent.includes("2, 1 of") ? "ArrowDown" : "ArrowUp");
  seen.dropped = at("detail").textContent;
  page.activeElement.click();
  await found();
  seen.again = all("#target .forced").length;
  seen.nodes = ["kept", "dropped", "best"].map((kind) => all(`#tree .${kind}`).length);
  translate(all("#examples button")[1].textContent);
  await found();
  seen.markup = [all("img, main script").length, all("#source .piece > span").map((part) => part.textContent).join("")];
  at("text").value = "שלום.";
  seen.direction = frame.contentWindow.getComputedStyle(at("text")).direction;
  seen.hacked = frame.contentWindow.hacked ?? null;
  seen.wide = page.documentElement.scrollWidth;
  await fetch("/seen", {method: "POST", body: JSON.stringify(seen)});
};</script>"""


def visited(viewer, visit, folder):
    """What the page `visit`, opened in a browser, posts to /seen, and the messages of its console."""
    answers = queue.Queue()
    with (
        served(viewer, visit=visit, seen=answers) as server,
        subprocess.Popen([*command(folder, False), f"{server.url}visit"], stderr=subprocess.PIPE, text=True) as process,
    ):
        try:
            seen = answers.get(timeout=120)
        finally:
            process.terminate()
        return seen, messages(process.stderr.read())


@pytest.mark.more
@pytest.mark.skipif(not browser(), reason=f"none of {', '.join(BROWSERS)} is installed")
def test_the_page_translates_shows_attention_and_the_search_and_leaves_markup_as_text(translator, tmp_path):
    seen, printed = visited(Viewer(translator, SCRIPT, ["one two", SCRIPT]), VISIT, tmp_path)
    assert seen["translation"] == translator("three one two")
    assert " is attended to by " in seen["source"]
    assert " attends to " in seen["target"] and " attends to " in seen["decoder"]
    assert seen["choices"] == 8 and seen["forced"] == [2, seen["chosen"].removeprefix("▁")]
    assert re.match("Step 2, . of [89], dropped: ", seen["dropped"]) and seen["again"] == 2 and all(seen["nodes"])
    assert seen["markup"][0] == 0 and seen["markup"][1].startswith("<imgsrc=xonerror=") and seen["hacked"] is None
    assert seen["direction"] == "rtl"
    assert seen["wide"] <= 400 and not printed  # less with a vertical scroll bar


# Where the signs of a text stand, from left to right, and what is left of a text if a click comes during its search.
SIGNS = """<!DOCTYPE html><iframe src="/" style="width:900px;height:900px;border:0"></iframe><script>
const frame = document.querySelector("iframe"), seen = {};
const until = async (done) => { while (!done()) await new Promise((next) => setTimeout(next, 20)); };
frame.onload = async () => {
  const page = frame.contentDocument, at = (id) => page.getElementById(id);
  const signs = (box) => {
    const walk = page.createTreeWalker(box, 4), found = [], range = page.createRange();
    for (let node; (node = walk.nextNode()); )
      for (let at = 0; at < node.length; at++) {
        range.setStart(node, at), range.setEnd(node, at + 1);
        if (range.getBoundingClientRect().width) found.push([range.getBoundingClientRect().left, node.data[at]]);
      }
    return found.sort((one, other) => one[0] - other[0]).map((each) => each[1]).join("").replace(/ /g, "");
  };
  await until(() => at("name").textContent === "any");
  at("text").value = "one";
  at("submit").click();
  await until(() => page.querySelectorAll("#tree .node").length === 3);
  page.querySelector("#tree .node").click();
  await fetch("/translate", {method: "POST", headers: {"Content-Type": "application/json"}, body: '{"text": "go"}'});
  await until(() => !page.body.classList.contains("busy"));
  seen.sentences = page.querySelectorAll("#translation .sentence").length;
  seen.source = signs(at("source"));
  seen.target = signs(at("target"));
  page.querySelector("#target .piece[data-place='0']").focus();
  seen.says = signs(at("says"));
  await fetch("/seen", {method: "POST", body: JSON.stringify(seen)});
};</script>"""


@pytest.mark.more
@pytest.mark.skipif(not browser(), reason=f"none of {', '.join(BROWSERS)} is installed")
def test_text_from_right_to_left_has_its_order_and_a_click_does_not_end_the_search_of_a_text(slow, tmp_path):
    pieces = ["▁אב", "<0xD7>", "▁גד"]

    def events(text, prefix):
        for number in range(2):
            yield {"source": [*pieces, "</s>"], "sentence": "one", "before": " " * number}
            node = {"parent": 0, "probability": 0.5, "log_prob": -0.7, "fate": "kept"}
            yield {"leader": "", "candidates": [{**node, "token": token, "piece": "▁אב"} for token in (9, 8)]}
            assert slow.go.wait(60)
            shape = {"shape": [1, 1, 4, 4], "weights": "gIBAQICAQECAgEBAgIBAQA=="}  # 50% of two keys, 25% of two
            found = {"text": "אב גד", "score": -1.0, "ids": [9, 8, 7], "pieces": [*pieces, "</s>"], "forced": 0}
            yield {**found, "alternatives": [], "attention": dict.fromkeys(("encoder", "decoder", "cross"), shape)}

    about = {"name": "any", "languages": None, "parameters": 1, "layers": 1, "heads": 1, "beam": 1, "examples": []}
    slow.about, slow.events = lambda: about, events
    slow.hypotheses = lambda texts, name: slow.go.set() or [[Hypothesis(text, -1.0, [], [])] for text in texts]
    seen, printed = visited(slow, SIGNS, tmp_path)
    assert seen["sentences"] == 2 and not printed
    assert seen["source"] == "</s>דג<0xD7>בא" and seen["target"] == "</s>דג<0xD7>בא<s>"
    assert seen["says"] == "“בא”attendsto“בא”50%,“<0xD7>”50%,“דג”25%,</s>25%."
