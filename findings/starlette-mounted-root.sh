#!/usr/bin/env bash
# Expected: a path that takes POST answers a GET by 405 with `Allow: POST`, whatever else the application serves.
# Happens: with files mounted at "/", GET /translate is 404, and PUT /translate is 405 with `Allow: GET, HEAD`, the methods of the
#   files. A mount at "/" matches each path in full and wins over a route whose method differs. `app.router.default = files` serves
#   the same files and leaves the answers of the routes as they are.
# Versions: starlette 1.10.0, FastAPI 0.165.0. Date: 2026-11-29.
# Source: RFC 9110, 15.5.6 (405 lists the methods of the target); starlette.routing.Router.app takes the first full match.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q starlette==1.10.0 fastapi==0.165.0 httpx2==2.16.2
mkdir files && echo page > files/index.html

venv/bin/python - <<'PYTHON'
import sys
from importlib.metadata import version

from fastapi import FastAPI
from fastapi.testclient import TestClient
from starlette.staticfiles import StaticFiles

print("starlette", version("starlette"), "fastapi", version("fastapi"))


def answers(mounted):
    app, files = FastAPI(), StaticFiles(directory="files", html=True)
    app.post("/translate")(lambda: "")
    if mounted:
        app.mount("/", files)
    else:
        app.router.default = files
    client = TestClient(app)
    assert client.get("/").text == "page\n"
    found = [client.request(method, "/translate") for method in ("GET", "PUT")]
    return [(each.status_code, each.headers.get("allow")) for each in found]


for mounted, name in ((False, "as the default"), (True, "mounted at /")):
    print(f"files {name}: GET and PUT /translate are", answers(mounted))
if answers(True) != [(404, None), (405, "GET, HEAD")] or answers(False) != [(405, "POST")] * 2:
    sys.exit("changed: a mount at / leaves the answers of the routes as they are")
PYTHON
