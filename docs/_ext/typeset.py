"""Docstrings are written for terminals, |x|, L_w, Ψ^-1, X'LX: on pages norms, indices, powers, transposes."""

from __future__ import annotations

import re
from typing import Any

LITERAL = re.compile(r"(``.+?``|`.+?`)")
INDEX = re.compile(r"(?<![a-z0-9_\\])([A-Za-zλψγΨσαμ]̃?)_(?!new)([a-z]{1,3})(?![a-z0-9_(=])")
POWER = re.compile(r"\^(-?\w+(?![\w.])|\([^()]*\))")
TRANSPOSE = re.compile(r"(?<![a-z0-9_'\"])([A-Z1](?:_[a-z])?)'(?=[A-Za-z(1ΨM])")


def typeset(text: str) -> str:
    """Formulas of one line of a docstring, for Sphinx."""
    text = text.replace("|", r"\|")  # for Sphinx the name of a substitution
    text = TRANSPOSE.sub(r"\1ᵀ", text)
    for _ in range(2):  # X_l in L_bX_l is found once b is an index
        text = INDEX.sub(r"\1\\ :sub:`\2`\\ ", text)
    return POWER.sub(lambda found: rf"\ :sup:`{found[1].strip('()').replace('-', '−')}`\ ", text)


def typeset_lines(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    literal: int | None = None  # how far the line is indented after which a block is literal
    example = False
    for number, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if line.strip() and literal is not None and indent <= literal:
            literal = None
        example = bool(line.strip()) and (example or line.lstrip().startswith(">>>"))
        if not example and literal is None and not line.lstrip().startswith(":"):
            parts = LITERAL.split(line)
            parts[::2] = [typeset(part) for part in parts[::2]]
            lines[number] = "".join(parts)
            literal = indent if line.rstrip().endswith("::") else None


def setup(app: Any) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", typeset_lines, priority=900)  # after numpydoc
    return {"parallel_read_safe": True, "parallel_write_safe": True}
