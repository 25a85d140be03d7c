"""Balls around the rows: how many rows of the class they hold, and how far the embedding spreads them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from manifast._labels import Labels
from manifast._validation import Array, as_columns, as_positive
from manifast.kernels import sq_distances
from manifast.theory._rows import in_range, labelled_rows

__all__ = ["ball_probability", "within_diameter"]

_CHUNK = 1 << 21  # distances held at once


def ball_probability(X: Any, y: Any, delta: float) -> Array:
    """η of THEORY for every class: the least probability of a ball around one of its points.

    The estimate is the share of the other rows of the class that are closer than `delta` to a row, for the row where
    that share is smallest. It looks at the given rows only and bounds nothing for other points of the class.

    Parameters
    ----------
    X : array of shape (n, p)
    y : array of n labels
        At least 2 rows per class.
    delta : float
        Radius of the balls.

    Returns
    -------
    array of shape (n_classes,)
        One probability per class; the classes are in ascending order.

    Examples
    --------
    >>> from manifast.theory import ball_probability
    >>> ball_probability([[0.0], [1.0], [2.0], [7.0], [8.0]], ["a", "a", "a", "b", "b"], delta=1.5)
    array([0.5, 1. ])
    """
    X, labels = labelled_rows("ball_probability", "X", X, y, least_members=2)
    return np.asarray(ball_probabilities(X, labels, [as_positive(delta, "delta")])[0])


def within_diameter(X: Any, Y: Any, y: Any, delta: float) -> float:
    """D_δ of Theorems 6 and 9: the largest distance in the embedding between close rows of one class.

    Parameters
    ----------
    X : array of shape (n, p)
    Y : array of shape (n, d)
        Their embedding.
    y : array of n labels
    delta : float
        Rows are close where their distance in X is at most delta.

    Returns
    -------
    float

    Examples
    --------
    >>> from manifast.theory import within_diameter
    >>> X, Y = [[0.0], [1.0], [5.0], [6.0]], [[0.0], [0.5], [9.0], [9.25]]
    >>> within_diameter(X, Y, [0, 0, 1, 1], delta=1.0)
    0.5
    """
    X, labels = labelled_rows("within_diameter", "X", X, y)
    Y = as_columns(Y, "Y")
    if len(Y) != len(X):
        raise ValueError(f"Y must have one row per row of X, {len(X)}. Got {len(Y)} instead.")
    return float(within_diameters(X, Y, labels, [as_positive(delta, "delta")])[0])


def ball_probabilities(X: Array, labels: Labels, deltas: Any) -> Array:
    """η of every class, one row per radius."""
    eta = np.ones((len(deltas), labels.count))
    for c, (distances,) in _class_blocks(labels, X):
        for k, delta in enumerate(deltas):
            others = (distances < delta).sum(axis=1) - 1
            eta[k, c] = min(eta[k, c], others.min() / (distances.shape[1] - 1))
    return eta


def within_diameters(X: Array, Y: Array, labels: Labels, deltas: Any) -> Array:
    """D_δ for every radius."""
    largest = np.zeros(len(deltas))
    for _, (distances, apart) in _class_blocks(labels, X, Y):
        for k, delta in enumerate(deltas):
            largest[k] = max(largest[k], apart[distances <= delta].max(initial=0.0))
    return largest


def _class_blocks(labels: Labels, *matrices: Array) -> Iterator[tuple[int, list[Array]]]:
    """Blocks of the distances inside every class: its number, and one block per matrix for the same rows."""
    scaled = [in_range(x) for x in matrices]
    for c, members in enumerate(labels.members):
        step = max(1, _CHUNK // len(members))
        for begin in range(0, len(members), step):
            rows = members[begin : begin + step]
            yield c, [np.ldexp(_distances(x[rows], x[members]), e) for x, e in scaled]


def _distances(A: Array, B: Array) -> Array:
    return np.sqrt(sq_distances(A.astype(np.float64), B.astype(np.float64)))
