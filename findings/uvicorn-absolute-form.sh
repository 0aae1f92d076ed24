#!/usr/bin/env bash
# Expected: a server accepts a request whose target is a whole address, `GET http://host/translate HTTP/1.1`, as HTTP/1.1 demands, and
#   the application sees the path /translate, whichever parser the server uses.
# Happens: with h11, which uvicorn takes if httptools is not installed, the path is http://host/translate, so each route is 404. With
#   httptools the path is right, but an address without a path, which means /, is 400. So `uvicorn` and `uvicorn[standard]` differ.
# Versions: uvicorn 0.54.0, h11 0.16.0, httptools 0.9.0. Date: 2026-11-30.
# Source: RFC 9112, 3.2.2 ("a server MUST accept the absolute-form in requests"), RFC 9110, 4.2.3 (an empty path is equivalent to /)
#   and https://github.com/Kludex/uvicorn/pull/3097.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q uvicorn==0.54.0 h11==0.16.0 httptools==0.9.0

venv/bin/python - <<'PYTHON'
import http.client
import socket
import sys
import threading
import time
from importlib.metadata import version

import uvicorn

print(*(f"{name} {version(name)}" for name in ("uvicorn", "h11", "httptools")))


async def application(scope, receive, send):
    await send({"type": "http.response.start", "status": 200})
    await send({"type": "http.response.body", "body": scope["path"].encode()})


def answers(parser):
    listener = socket.create_server(("127.0.0.1", 0))
    host = "127.0.0.1:{}".format(listener.getsockname()[1])
    server = uvicorn.Server(uvicorn.Config(application, http=parser, lifespan="off", log_level="critical"))
    thread = threading.Thread(target=server.run, args=[[listener]])
    thread.start()
    while not server.started:
        time.sleep(0.05)
    found = []
    for target in ("/translate", f"http://{host}/translate", f"http://{host}"):
        connection = http.client.HTTPConnection(host)
        connection.request("GET", target, headers={"Connection": "close"})
        response = connection.getresponse()
        body = response.read().decode().replace(host, "host")
        found.append(body if response.status == 200 else response.status)
        connection.close()
        print(f"{parser}: the target {target.replace(host, 'host')} is", found[-1])
    server.should_exit = True
    thread.join()
    return found


h11, httptools = answers("h11"), answers("httptools")
if h11 != ["/translate", "http://host/translate", "http://host"] or httptools != ["/translate", "/translate", 400]:
    sys.exit("changed: uvicorn reads a target in absolute form in another way")
PYTHON
