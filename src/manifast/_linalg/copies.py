"""Rows that repeat."""

from __future__ import annotations

import numpy as np

from manifast._validation import Array


def unique_rows(X: Array) -> tuple[Array, Array, Array]:
    """First rows of every kind in order, the kind of each row, and how many there are of it."""
    rows = np.ascontiguousarray(X) + 0.0  # without -0.0
    # As bytes: NumPy's comparison of rows makes a TypeError of Ctrl-C.
    kinds = rows.view(np.dtype((np.void, rows.shape[1] * rows.itemsize))).reshape(-1)
    _, first, inverse, counts = np.unique(kinds, return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[inverse.reshape(-1)], counts[order]
