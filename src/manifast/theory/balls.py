"""Balls around the rows: how many rows they hold, how many cover a class, and how far the embedding spreads them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from manifast._labels import Labels
from manifast._validation import Array, as_columns, as_positive
from manifast.kernels import sq_distances
from manifast.theory._rows import in_range, labelled_rows

__all__ = ["ball_probability", "covering_number", "within_diameter"]

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


def covering_number(X: Any, y: Any, radius: float, *, unseen: bool = True) -> Array:
    """How many open balls cover every class: an estimate of N(radius, M_m), which Theorem 2 asks for.

    Balls around rows of the class are chosen one by one, each around the row that is farthest from the earlier ones,
    until they cover all of its rows.

    Parameters
    ----------
    X : array of shape (n, p)
    y : array of n labels
    radius : float
        Radius of the balls; Theorem 2 asks for epsilon / 2.
    unseen : bool, default True
        Add an estimate of the balls that the class needs where no row was drawn yet (Chao's estimator, from the balls
        that hold one row and two). Without it the number never exceeds the number of rows, however few these are.

    Returns
    -------
    array of shape (n_classes,)
        One number per class; the classes are in ascending order.

    Notes
    -----
    With ``unseen=False`` the number is at least the covering number of the given rows, and at most that for half the
    radius.

    Examples
    --------
    >>> from manifast.theory import covering_number
    >>> X, y = [[0.0], [0.1], [5.0], [5.1], [9.0]], ["a", "a", "a", "a", "b"]
    >>> covering_number(X, y, radius=1.0, unseen=False)
    array([2., 1.])
    """
    X, labels = labelled_rows("covering_number", "X", X, y)
    return covering_numbers(X, labels, as_positive(radius, "radius"), unseen)


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


def covering_numbers(X: Array, labels: Labels, radius: float, unseen: bool = True) -> Array:
    """Balls that cover every class, as `covering_number` counts them."""
    scaled, exponent = in_range(X)
    # Never 0: every row would be that far from itself, and the balls would have no end.
    reach, counts = float(max(np.ldexp(radius, -exponent), 5e-324)), np.empty(labels.count)
    for c, members in enumerate(labels.members):
        rows = np.ascontiguousarray(scaled[members])
        apart, ball, balls, farthest = np.full(len(rows), np.inf), np.zeros(len(rows), dtype=np.int64), 0, 0
        while apart[farthest] >= reach:
            away = _distances(rows, rows[farthest : farthest + 1])[:, 0]
            ball[away < apart] = balls
            apart = np.minimum(apart, away)
            balls += 1
            farthest = int(apart.argmax())
        sizes = np.bincount(ball, minlength=balls)
        alone, twins = int((sizes == 1).sum()), int((sizes == 2).sum())
        counts[c] = balls + (alone * (alone - 1) / (2 * (twins + 1)) if unseen else 0.0)
    return counts


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
