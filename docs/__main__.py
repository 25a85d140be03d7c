"""Builds the site: ``python -m docs``. A warning or a dead link inside it ends the build with an error.

The pages are written to docs/_build/html; the examples of the gallery run on the way. Where the machine has Chromium,
the pages are looked at in it: see docs/browser.py.
"""

from __future__ import annotations

import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from docs import browser

SOURCE = Path(__file__).resolve().parent
SITE = SOURCE / "_build" / "html"


class Page(HTMLParser):
    """What a page links to, and what can be linked to inside it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = {""}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.anchors |= {str(found[name]) for name in ("id", "name") if found.get(name)}
        self.links += [str(found[name]) for name in ("href", "src") if found.get(name)]


def dead_links(site: Path) -> list[str]:
    """Links between pages of the site, and to its pictures and files, that lead nowhere."""
    paths = [path for path in site.rglob("*.html") if "_static" not in path.parts]
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in paths}
    dead = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file() or (target in pages and unquote(parts.fragment) not in pages[target].anchors):
                dead.append(f"{path.relative_to(site)}: {link}")
    return sorted(set(dead))


def main() -> int:
    build = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-d", str(SITE.parent / "doctrees")]
    if subprocess.run([*build, *sys.argv[1:], str(SOURCE), str(SITE)], check=False).returncode:
        return 1
    dead = dead_links(SITE)
    print(*(f"dead link: {link}" for link in dead), sep="\n", end="\n" if dead else "")
    program = browser.chromium()
    problems = [] if program is None else browser.look(SITE, program)
    print(*problems, sep="\n", end="\n" if problems else "")
    seen = "not looked at, as there is no Chromium" if program is None else "looked at in Chromium"
    print(f"{len(list(SITE.rglob('*.html')))} pages, {seen}: {SITE / 'index.html'}")
    return 1 if dead or problems else 0


if __name__ == "__main__":
    sys.exit(main())
