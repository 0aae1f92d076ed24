"""Open a page in headless Chromium or Chrome, at the widths of a telephone and of a desktop, and find visible faults.

They are missing images, messages on the console, links without a target, sideways scrolling, text that is too small or
cut off by its picture, and tables whose first score is not on the screen.
"""

import base64
import json
import os
import re
import shutil
import subprocess
import tempfile
from html import unescape
from pathlib import Path

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
WIDTHS = (400, 1400)
SMALLEST = 11  # the least size of text, in pixels
LOOK = """<script>addEventListener("load", async () => {
  document.querySelectorAll("details").forEach(part => part.open = true);
  const images = [...document.images], broken = [];
  for (const image of images) await image.decode().catch(() => broken.push(image.alt));
  const sizes = [...document.querySelectorAll("main *")].filter(part => part.innerText && !part.closest("sup, sub"))
    .map(part => parseFloat(getComputedStyle(part).fontSize));
  const hidden = [...document.querySelectorAll("table")].map(table => table.querySelector("td[data-score]"))
    .filter(cell => cell && cell.getBoundingClientRect().right > innerWidth)
    .map(cell => `${cell.closest("[role=region]").ariaLabel}: ${cell.innerText}`);
  const drawn = document.body.appendChild(document.createElement("div")), outside = [];
  for (const image of images) {
    drawn.innerHTML = new TextDecoder().decode(Uint8Array.from(atob(image.src.split(",")[1]), c => c.charCodeAt(0)));
    const frame = drawn.querySelector("svg").getBoundingClientRect();
    for (const text of drawn.querySelectorAll("text")) {
      const box = text.getBoundingClientRect();
      if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1)
        outside.push(`${text.textContent} of ${image.alt}`);
    }
  }
  drawn.remove();
  const seen = {hidden, outside, width: innerWidth, dark: matchMedia("(prefers-color-scheme: dark)").matches, wide: document.documentElement.scrollWidth, images: images.length, broken,
    smallest: Math.min(...sizes), anchors: [...document.querySelectorAll("a[href^='#']")]
      .filter(link => !document.getElementById(decodeURIComponent(link.hash.slice(1)))).map(link => link.hash)};
  parent.postMessage(JSON.stringify(seen), "*");
});</script>"""
# A window is at least 500 pixels wide, but a frame can be narrower.
FRAME = """<!DOCTYPE html><body style="margin:0"><iframe src="index.html" style="width:{width}px;height:900px;border:0">
</iframe><script>addEventListener("message", told => document.body.setAttribute("data-seen", told.data));</script>"""


def pictures(page: str) -> dict[str, str]:
    """The SVG pictures that are embedded in the text of a page, by name."""
    found = re.findall(r'<img data-name="([^"]+)" src="data:image/svg\+xml;base64,([^"]+)"', page)
    return {name: base64.b64decode(text).decode() for name, text in found}


def browser() -> str | None:
    """The first installed browser of BROWSERS."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def command(folder: Path, dark: bool) -> list[str]:
    """The command that opens a page, whose address has to follow. `folder` holds the browser's profile."""
    line = [browser() or "chromium", "--headless=new", "--disable-gpu", "--enable-logging=stderr", "--no-first-run"]
    line += [f"--user-data-dir={folder}/profile", "--window-size=1600,1000"]
    return line + ["--force-dark-mode"] * dark + ["--no-sandbox"] * (os.geteuid() == 0)


def messages(log: str) -> list[str]:
    """The messages of the console in what the browser prints to standard error."""
    return re.findall(r"CONSOLE.*", log)


def look(page: Path, width: int, dark: bool) -> tuple[dict, list[str]]:
    """Run LOOK at the end of the page in a frame of this width. Returns its results and the messages of the console."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "index.html")
        copy.write_text(page.read_text(encoding="utf-8").replace("</body>", f"{LOOK}</body>"), encoding="utf-8")
        Path(folder, "frame.html").write_text(FRAME.format(width=width), encoding="utf-8")
        line = [*command(Path(folder), dark), "--dump-dom", "--virtual-time-budget=20000", f"file://{folder}/frame.html"]
        done = subprocess.run(line, check=False, capture_output=True, text=True, timeout=120)
    found = re.search(r'data-seen="([^"]*)"', done.stdout)
    assert found, f"{page} did not load: {done.stderr[-500:]}"
    return json.loads(unescape(found[1])), messages(done.stderr)


def faults(page: Path, width: int, dark: bool) -> list[str]:
    seen, printed = look(page, width, dark)
    found = [f"a message on the console: {message}" for message in printed]
    found += [f"a missing image: {alt}" for alt in seen["broken"]]
    found += [f"the first score of a table is not on the screen: {cell}" for cell in seen["hidden"]]
    found += [f"text that its picture cuts off: {text}" for text in seen["outside"]]
    found += [f"a link to nowhere: {anchor}" for anchor in seen["anchors"]]
    assert (seen["width"], seen["dark"]) == (width, dark)
    if seen["wide"] > seen["width"]:
        found.append(f"the page is {seen['wide']} pixels wide and scrolls sideways")
    if seen["smallest"] < SMALLEST:
        found.append(f"text of {seen['smallest']} pixels, {SMALLEST} is the least")
    if not seen["images"]:
        found.append("no image at all")
    return found
