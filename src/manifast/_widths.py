"""Widths of heat weights that follow the density of the rows: one width per row, from its own nearest neighbours.

The weight of an edge of length d is exp(-d² / √(β_i β_j)) with β_i a quarter of the mean squared distance from row i to
its five nearest. Both numbers come from benchmarks/study_graphs.py: one width for all rows, however small, loses where
the density varies; an eighth classifies a little better, but no longer unrolls a Swiss roll.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from manifast._validation import Array

NEAREST = 5  # neighbours whose distances make the width of a row
SHARE = 0.25  # of their mean square
_FAINTEST = 30.0  # largest d² / √(β_i β_j) of an edge: weights stay above 1e-13, so that no edge fades away


def is_local(beta: Any) -> bool:
    """Whether every row is to have its own width."""
    return isinstance(beta, str) and beta == "local"


def root_widths(distances: Array) -> Array:
    """√β of rows from ascending distances to their nearest (n, k): the first five that are no copies, at distance 0.

    0 for a row that has nothing but copies near it.
    """
    near = np.asarray(distances, dtype=np.float64)
    largest = near.max(axis=1, initial=0.0)
    unit = np.where(largest > 0, largest, 1.0)  # squares stay in range
    ratios = near / unit[:, None]
    if ratios.shape[1] and (ratios[:, 0] > 0).all():  # no copies, as new rows have it: the same sums, all at once
        first = np.square(ratios[:, :NEAREST])
        sums = np.add.accumulate(first, axis=1)[:, -1]
        return np.asarray(unit * np.sqrt(SHARE * sums / first.shape[1]))
    count, total = np.zeros(len(near)), np.zeros(len(near))
    for column in ratios.T:  # one by one, so that a row's bits do not depend on the others
        counts = (column > 0) & (count < NEAREST)
        count += counts
        total += np.where(counts, np.square(column), 0.0)
    return np.asarray(unit * np.sqrt(SHARE * total / np.maximum(count, 1.0)))


def local_widths(distances: Array) -> Array:
    """√β of all rows of a graph from the distances to the nearest others of each; where one is 0, the smallest."""
    roots = root_widths(distances[:, :NEAREST])
    positive = roots[roots > 0]
    roots[roots == 0] = positive.min() if len(positive) else 1.0
    return roots


def relative_lengths(lengths: Array, ends: Array, others: Array) -> Array:
    """d / (β_i β_j)^¼ for edges between rows whose √β are `ends` and `others`, so that heat weights have width 1."""
    with np.errstate(over="ignore", under="ignore"):
        relative = lengths / (np.sqrt(ends) * np.sqrt(others))
    return np.asarray(np.minimum(relative, np.sqrt(_FAINTEST)))


def public_width(width: Any) -> Any:
    """What users see of a width: a number, or the width of each row."""
    return np.square(width) if isinstance(width, np.ndarray) else width
