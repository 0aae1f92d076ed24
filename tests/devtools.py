"""A page in headless Chromium, driven by the DevTools protocol over two pipes: keys and scripts."""

import json
import os
import shlex
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.browser import browser

KEYS = {
    "Enter": (13, "\r"),
    "Tab": (9, ""),
    "Escape": (27, ""),
    "ArrowLeft": (37, ""),
    "ArrowUp": (38, ""),
    "ArrowRight": (39, ""),
    "ArrowDown": (40, ""),
    " ": (32, " "),
}
SECONDS = 60


class Page:
    """An open page. `problems` are uncaught exceptions, messages on its console and requests to other hosts."""

    def __init__(self, folder: Path, width: int, dark: bool, height: int = 900) -> None:
        """`folder` holds the browser's profile."""
        command = [browser(), "--headless=new", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run"]
        command += [f"--user-data-dir={folder}/profile"] + ["--no-sandbox"] * (os.geteuid() == 0)
        # The browser reads messages from descriptor 3 and writes them to descriptor 4.
        self.process = subprocess.Popen(
            ["sh", "-c", f"exec {shlex.join(command)} 3<&0 4>&1 </dev/null >/dev/null"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.out, self.into = self.process.stdin, self.process.stdout
        self.number, self.session, self.problems = 0, "", list[str]()
        self.rest = b""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setScrollbarsHidden", hidden=True)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.session = ""
        self.call("Browser.close")
        self.process.wait(SECONDS)
        self.out.close()
        self.into.close()

    def call(self, method: str, **parameters: Any) -> dict:
        """The result of a method of the protocol."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        self.out.write(json.dumps(message).encode() + b"\0")
        self.out.flush()
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]
            self.note(answer)

    def receive(self) -> dict:
        while b"\0" not in self.rest:
            part = os.read(self.into.fileno(), 1 << 16)
            assert part, "the browser has ended"
            self.rest += part
        message, _, self.rest = self.rest.partition(b"\0")
        return json.loads(message)

    def note(self, event: dict) -> None:
        method, parameters = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.problems.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.problems.append(f"{parameters['entry']['text']} {parameters['entry'].get('url', '')}")
        elif method == "Runtime.consoleAPICalled":
            self.problems.append(str(parameters["args"]))
        elif method == "Network.requestWillBeSent":
            url = parameters["request"]["url"]
            if not url.startswith(("http://127.0.0.1:", "about:")):
                self.problems.append(f"a request to {url}")

    def open(self, url: str) -> None:
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'")

    def value(self, script: str) -> Any:
        """The value of a JavaScript expression."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def wait(self, script: str) -> None:
        """Wait until the expression is true."""
        ends = time.monotonic() + SECONDS
        while not self.value(script):
            assert time.monotonic() < ends, f"not within {SECONDS} seconds: {script}\n{self.problems}"
            time.sleep(0.05)

    def key(self, name: str, times: int = 1, shift: bool = False) -> None:
        """Press a key."""
        code, text = KEYS[name]
        common = {"key": name, "code": name, "windowsVirtualKeyCode": code, "modifiers": 8 * shift}
        for _ in range(times):
            self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
            self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def write(self, text: str) -> None:
        """Type text into the element that has the focus."""
        self.call("Input.insertText", text=text)
