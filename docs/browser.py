"""Looks at the built site in Chromium: ``python -m docs.browser [--pictures FOLDER]``.

Every page is opened at a phone's width, and the main ones at a desktop's, in light and in dark. A page that scrolls
sideways, a picture that does not show, an error of a script and a search that misses its page are problems. The browser
is driven through a pipe, by its own protocol: nothing but the standard library and Chromium is needed.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any

SITE = Path(__file__).resolve().parent / "_build" / "html"
PHONE, DESKTOP = 390, 1280
PATIENCE = 300.0  # seconds; the browser may be stopped for a while on a machine that is measured
MAIN = [
    "index.html",
    "start.html",
    "choose.html",
    "one_problem.html",
    "questions/new_points.html",
    "questions/index.html",
    "api/index.html",
    "api/manifast.NSSE.html",
    "auto_gallery/index.html",
    "auto_gallery/plot_08_compare.html",
    "performance.html",
    "papers/nsse.html",
    "numerics.html",
    "glossary.html",
]
# What somebody types who knows the thing by another name, and a page that must be among the first that are found.
SEARCHES = {
    "out-of-sample extension": "glossary.html",
    "Nyström": "api/manifast.extensions.Nystrom.html",
    "Nystrom": "api/manifast.extensions.Nystrom.html",
    "new points": "questions/new_points.html",
    "overfitted": "questions/overfitted.html",
    "spectral embedding": "glossary.html",
    "label propagation": "glossary.html",
}
FIRST = 10
# Sideways: the page is wider than the window. Blame: what sticks out and stands in nothing that scrolls by itself.
LOOK = """(async () => {
  for (const image of document.images) image.loading = "eager";
  await Promise.all([...document.images].map(image => image.decode().catch(() => null)));
  const width = document.documentElement.clientWidth;
  const scrolls = e => e && (getComputedStyle(e).overflowX !== "visible" || scrolls(e.parentElement));
  const out = [...document.querySelectorAll("article *")].filter(
    e => e.getBoundingClientRect().right > width + 1 && !scrolls(e.parentElement));
  const sideways = document.documentElement.scrollWidth > width || out.length > 0;
  return {
    sideways, width: document.documentElement.scrollWidth,
    blame: out.slice(0, 3).map(e => e.tagName + "." + e.className + " " + e.textContent.trim().slice(0, 40)),
    broken: [...document.images].filter(i => !i.naturalWidth).map(i => i.getAttribute("src")),
    height: document.documentElement.scrollHeight,
  };
})()"""
FOUND = """(() => {
  const links = [...document.querySelectorAll("#search-results ul.search > li > a")];
  const said = document.querySelector("#search-results p.search-summary");
  return {done: !!said && /found|did not match/i.test(said.textContent), links: links.map(a => a.getAttribute("href"))};
})()"""


def chromium() -> str | None:
    """The browser, where the machine has one."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)


class Browser:
    """Chromium with one page, spoken to through a pipe: one JSON message after another, each ended by a zero byte."""

    def __init__(self, program: str) -> None:
        self.profile = tempfile.mkdtemp(prefix="manifast-site-")
        theirs_in, self.out = os.pipe()
        self.into, theirs_out = os.pipe()
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]
        flags += ["--no-first-run", f"--user-data-dir={self.profile}", "--remote-debugging-pipe", "about:blank"]

        def pipes() -> None:  # the browser reads from 3 and writes to 4
            kept_in, kept_out = os.dup(theirs_in), os.dup(theirs_out)
            os.dup2(kept_in, 3)
            os.dup2(kept_out, 4)

        self.process = subprocess.Popen(
            [program, *flags], preexec_fn=pipes, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self.numbers, self.rest, self.errors = count(1), b"", list[str]()
        self.session: str | None = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, kind: type | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        self.process.terminate()
        self.process.wait()
        os.close(self.out)
        os.close(self.into)
        shutil.rmtree(self.profile, ignore_errors=True)

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self.rest:
            more = os.read(self.into, 1 << 20)
            if not more:
                raise RuntimeError("Chromium ended.")
            self.rest += more
        text, _, self.rest = self.rest.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        details = message.get("params", {})
        if message.get("method") == "Runtime.exceptionThrown":
            thrown = details["exceptionDetails"]
            self.errors.append(thrown.get("exception", {}).get("description", thrown["text"]).splitlines()[0])
        elif message.get("method") == "Log.entryAdded" and details["entry"]["level"] == "error":
            self.errors.append(f"{details['entry']['text']} {details['entry'].get('url', '')}")
        return message

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self.numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while (answer := self._message()).get("id") != number:
            pass
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        result: dict[str, Any] = answer["result"]
        return result

    def evaluate(self, script: str) -> Any:
        found = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"]["exception"]["description"])
        return found["result"].get("value")

    def window(self, width: int, height: int, dark: bool = False) -> None:
        shape = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **shape)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, address: str) -> list[str]:
        """Load a page; returns what its scripts complained about."""
        self.errors.clear()
        self.call("Page.navigate", url=address)
        end = time.monotonic() + PATIENCE
        while self.evaluate("[document.readyState, location.href].join(' ')") != f"complete {address}":
            if time.monotonic() > end:
                raise RuntimeError(f"{address} does not load.")
            time.sleep(0.02)
        return self.errors

    def picture(self, file: Path, height: int) -> None:
        width = self.evaluate("innerWidth")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        shown = self.call("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(shown["data"]))


class Handler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


def look(site: Path, program: str, pictures: Path | None = None, pages: list[str] | None = None) -> list[str]:
    """What is wrong with the site, one line each."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    root = f"http://127.0.0.1:{server.server_address[1]}/"
    every = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html") if "_static" not in path.parts)
    wanted = [page for page in every if pages is None or page in pages]
    problems = [f"{page}: is not there" for page in (MAIN if pages is None else pages) if page not in every]
    with Browser(program) as browser:
        for width, dark in ((PHONE, False), (DESKTOP, False), (PHONE, True), (DESKTOP, True)):
            browser.window(width, 844 if width == PHONE else 900, dark)
            for page in wanted if (width, dark) == (PHONE, False) else [page for page in wanted if page in MAIN]:
                where = f"{page} at {width} px{' in dark' if dark else ''}"
                problems += [f"{where}: {error}" for error in browser.open(root + page)]
                found = browser.evaluate(LOOK)
                if found["sideways"]:
                    problems.append(f"{where} scrolls sideways, {found['width']} px: {'; '.join(found['blame'])}")
                problems += [f"{where}: no picture {source}" for source in found["broken"]]
                if pictures is not None and page in MAIN:
                    name = page.removesuffix(".html").replace("/", "-")
                    file = pictures / f"{name}-{width}-{'dark' if dark else 'light'}.png"
                    browser.picture(file, min(found["height"], 2600))
        for words, page in SEARCHES.items() if pages is None else ():
            hits = search(browser, root, words)
            if page not in [hit.split("#")[0] for hit in hits[:FIRST]]:
                problems.append(f"search for {words!r} misses {page}: {', '.join(hits[:FIRST]) or 'nothing'}")
    server.shutdown()
    return problems


def search(browser: Browser, root: str, words: str) -> list[str]:
    """The addresses that the site's own search finds, best first."""
    browser.window(DESKTOP, 900)
    browser.call("Page.navigate", url="about:blank")
    browser.evaluate("0")
    browser.call("Page.navigate", url=f"{root}search.html?q={'+'.join(words.split())}")
    end = time.monotonic() + PATIENCE
    while True:
        found = browser.evaluate(FOUND)
        if found["done"]:
            return [str(link).removeprefix(root) for link in found["links"]]
        if time.monotonic() > end:
            raise RuntimeError(f"the search for {words!r} does not end.")
        time.sleep(0.05)


def main() -> int:
    parser = argparse.ArgumentParser(description="Looks at the built site in Chromium.")
    parser.add_argument("--pictures", type=Path, help="a folder for pictures of the main pages")
    parser.add_argument("--pages", nargs="*", help="only these, such as start.html")
    options = parser.parse_args()
    program = chromium()
    if program is None:
        print("no Chromium on this machine: the pages were not looked at", file=sys.stderr)
        return 2
    if options.pictures:
        options.pictures.mkdir(parents=True, exist_ok=True)
    problems = look(SITE, program, options.pictures, options.pages)
    print(*problems, sep="\n", end="\n" if problems else "")
    print(f"{len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
