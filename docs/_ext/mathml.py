"""Formulas as MathML, which browsers draw by themselves: no script, and nothing from other servers."""

from __future__ import annotations

from typing import Any

from docutils.nodes import SkipNode
from docutils.utils.math.latex2mathml import tex2mathml


def _inline(self: Any, node: Any) -> None:
    self.body.append(f'<span class="math">{tex2mathml(node.astext())}</span>')
    raise SkipNode


def _display(self: Any, node: Any) -> None:
    self.body.append(f'<div class="math-block">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise SkipNode


def setup(app: Any) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", inline_renderers=(_inline, None), block_renderers=(_display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
