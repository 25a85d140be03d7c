"""The page that ``manifast compare`` writes: the table, its picture, and the rows as the best method sees them."""

from __future__ import annotations

import base64
import io
import warnings
from html import escape
from typing import Any

import numpy as np

from manifast import embeddings
from manifast._labels import labelled_part
from manifast._validation import Array

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; background: #fff; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; font-size: 14px } caption { text-align: left; margin-bottom: .5rem }
th, td { padding: .25rem .75rem; border-bottom: 1px solid #ddd; text-align: right }
th:first-child, td:first-child { text-align: left }
img { max-width: 100%; height: auto }
"""


def comparison_page(comparison: Any, X: Array, y: Any, source: str) -> str:
    """One HTML page that needs no other file."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        pictures = "<p>No pictures: matplotlib is not installed.</p>"
    else:
        pictures = _pictures(comparison, X, y)
    return (
        "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>Methods on {escape(source)}</title><style>{_STYLE}</style></head><body>\n"
        f"<h1>Methods on {escape(source)}</h1>\n<p>{len(X)} rows of {X.shape[1]} columns. Every method was fitted to "
        "the training rows of each fold and judged on rows it had not seen.</p>\n"
        f"{comparison._repr_html_()}\n{pictures}\n</body></html>\n"
    )


def _pictures(comparison: Any, X: Array, y: Any) -> str:
    from manifast.plotting import plot_comparison, plot_embedding

    within = "<p>Dark bars are within one standard error of the best: the data do not decide between those.</p>"
    parts = ["<h2>Errors</h2>", within, _image(plot_comparison(comparison), "errors of the methods")]
    name, embedded, shown = _embedded(comparison, X, y)
    title = f"{name}, {len(embedded)} rows"
    parts += ["<h2>The rows in two dimensions</h2>", _image(plot_embedding(embedded, shown, title=title), title)]
    if shown is not None:
        parts.append("<p>The method may have seen the labels of these rows: only the errors above judge it.</p>")
    return "\n".join(parts)


def _embedded(comparison: Any, X: Array, y: Any) -> tuple[str, Array, Any]:
    """The embedding of the best method where it has two dimensions, or else one that suits the labels."""
    best = comparison.best_estimator_
    model = best.named_steps.get("embed") if hasattr(best, "named_steps") else best
    found = getattr(model, "embedding_", None)
    shown = None if y is None else np.array([str(label) for label in y])
    if found is not None and found.shape[1] >= 2:
        return comparison.best_name_, np.asarray(found), shown
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if shown is not None and len(labelled_part(y)[0]) == len(X) and len(np.unique(shown)) > 2:
            return "LFDA", embeddings.LFDA(2).fit_transform(X, y), shown
        return "LaplacianEigenmaps", embeddings.LaplacianEigenmaps(2).fit_transform(X), shown


def _image(ax: Any, words: str) -> str:
    stream = io.BytesIO()
    ax.figure.savefig(stream, format="png", dpi=110)
    data = base64.b64encode(stream.getvalue()).decode()
    return f"<img alt='{escape(words)}' src='data:image/png;base64,{data}'>"
