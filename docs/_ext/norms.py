"""Docstrings write norms as |x|; for Sphinx that would be the name of a substitution."""

from __future__ import annotations

import re
from typing import Any

LITERAL = re.compile(r"(``.+?``|`.+?`)")


def escape_norms(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    example = False
    for number, line in enumerate(lines):
        example = bool(line.strip()) and (example or line.lstrip().startswith(">>>"))
        if not example:
            parts = LITERAL.split(line)
            parts[::2] = [part.replace("|", r"\|") for part in parts[::2]]
            lines[number] = "".join(parts)


def setup(app: Any) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", escape_norms, priority=900)  # after numpydoc
    return {"parallel_read_safe": True, "parallel_write_safe": True}
