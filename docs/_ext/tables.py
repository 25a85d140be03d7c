"""Tables that are made from measurements: ``<!-- table: peers -->`` in a page becomes docs/_tables/peers.md.

``<!-- results: nsse-table1, nsse-fig3 -->`` becomes those of docs/papers/results, as sections of the page.
``<!-- lost: peers -->`` becomes those of its rows in which the other side is faster, and
``<!-- pages: study, papers/* -->`` in a table of contents those of the pages that exist.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

MARK = re.compile(r"^<!-- table: ([a-z_]+) -->$", re.MULTILINE)
RESULTS = re.compile(r"^<!-- results: ([a-z0-9, -]+) -->$", re.MULTILINE)
LOST = re.compile(r"^<!-- lost: ([a-z_]+) -->$", re.MULTILINE)
PAGES = re.compile(r"^<!-- pages: (.+) -->$", re.MULTILINE)


def fill(app: Any, docname: str, source: list[str]) -> None:
    folder = Path(app.srcdir) / "_tables"

    def table(found: re.Match[str]) -> str:
        path = folder / f"{found[1]}.md"
        app.env.note_dependency(str(path))
        return path.read_text(encoding="utf-8") if path.exists() else "*Not measured for this version.*"

    def results(found: re.Match[str]) -> str:
        return "\n\n".join(map(result, found[1].split(", ")))

    def result(name: str) -> str:
        path = Path(app.srcdir) / "papers" / "results" / f"{name}.md"
        app.env.note_dependency(str(path))
        if not path.exists():
            return f"### {name}\n\n*Not measured for this version.*"
        text = path.read_text(encoding="utf-8").replace("# ", "### ", 1)
        return text.replace(f"]({name}.png)", f"](results/{name}.png)")

    def lost(found: re.Match[str]) -> str:
        path = folder / f"{found[1]}.md"
        app.env.note_dependency(str(path))
        return lost_rows(path.read_text(encoding="utf-8")) if path.exists() else "*Not measured for this version.*"

    def pages(found: re.Match[str]) -> str:
        root = Path(app.srcdir)
        paths = [path for name in found[1].split(", ") for path in sorted(root.glob(f"{name}.md"))]
        return "\n".join(path.relative_to(root).with_suffix("").as_posix() for path in paths)

    source[0] = PAGES.sub(pages, source[0])
    source[0] = LOST.sub(lost, source[0])
    source[0] = MARK.sub(table, source[0])
    source[0] = RESULTS.sub(results, source[0])


def lost_rows(text: str) -> str:
    """The rows of all tables of a page whose first ratio is below 1, as one table."""
    lines = text.splitlines()
    head = next((number for number, line in enumerate(lines) if line.startswith("| ---")), 0)
    ratios = [re.search(r"([\d.]+)×", line) for line in lines]
    rows = [line for line, ratio in zip(lines, ratios, strict=True) if ratio and float(ratio[1]) < 1]
    return "\n".join([*lines[head - 1 : head + 1], *rows]) if rows else "None."


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
