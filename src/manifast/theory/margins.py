"""Margins between the classes of an embedding: empty slabs, smallest distances, and means of several rows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np

from manifast._labels import Labels
from manifast._linalg.nearest_point import widest_slab
from manifast._validation import Array, as_count
from manifast.graphs import nearest_outside
from manifast.kernels import sq_distances
from manifast.theory._rows import in_range, labelled_rows

__all__ = ["q_mean_margin", "separation_margin"]


def separation_margin(Y: Any, y: Any, kind: str = "linear") -> float:
    """Margin between the classes of an embedding.

    Parameters
    ----------
    Y : array of shape (n, d)
    y : array of n labels
    kind : {"linear", "origin", "distance"}
        "linear" is the largest γ of THEORY eq. (1): every two classes have a widest empty slab between them, and γ is
        the full width of the narrowest of these slabs. "origin" is γ_c of eq. (32), where the middle of every slab has
        to go through the origin; it is never larger. "distance" is the smallest distance between rows of different
        classes, γ of Theorems 6 and 9, which is never smaller.

    Returns
    -------
    float
        The margin is 0 where no hyperplane separates two classes, or where they share a point: Definition 1 has no
        negative margins.

    Notes
    -----
    The widest slab between two classes is as wide as their convex hulls are apart, and Wolfe's algorithm (1976) finds
    the nearest points of the hulls. The result is the width of a slab that is certainly empty. It differs from the
    distance between the hulls by at most 1e-10 of the extent of the data; margins below 1e-12 of it count as 0.

    Examples
    --------
    >>> from manifast.theory import separation_margin
    >>> Y, y = [[0.0, 0.0], [0.0, 2.0], [3.0, 1.0]], ["a", "a", "b"]
    >>> separation_margin(Y, y)
    3.0
    >>> round(separation_margin(Y, y, kind="distance"), 6)
    3.162278
    >>> separation_margin([[-1.0], [4.0]], [0, 1], kind="origin")
    2.0
    """
    if kind not in ("linear", "origin", "distance"):
        raise ValueError(f"kind must be 'linear', 'origin' or 'distance'. Got {kind!r} instead.")
    Y, labels = labelled_rows("separation_margin", "Y", Y, y)
    if kind == "distance":
        rows, exponent = in_range(Y)
        return float(np.ldexp(nearest_outside(rows, labels.codes, None)[2].min(), exponent))
    if kind == "origin":
        return origin_margin([Y[at] for at in labels.members])
    rows, _, exponent = centred(Y)
    narrowest = np.inf
    for A, B in (pair for _, pair in pairs_of_classes(rows, labels)):
        narrowest = min(narrowest, widest_slab(A, B, enough=narrowest)[0])
        if narrowest == 0:
            break
    return float(np.ldexp(narrowest, exponent))


def origin_margin(groups: list[Array]) -> float:
    """γ_c of eq. (32): twice the distance that hyperplanes through the origin keep from every two groups of rows.

    ω separates A from B in this way where it points from the origin to all rows of A and of -B. A single group has to
    lie on one side of a hyperplane.
    """
    exponent = int(np.frexp(max(float(np.abs(group).max()) for group in groups))[1])
    scaled = [np.ldexp(np.asarray(group, dtype=np.float64), -exponent) for group in groups]
    sides = [np.vstack([A, -B]) for A, B in combinations(scaled, 2)] or scaled
    origin = np.zeros((1, scaled[0].shape[1]))
    return float(np.ldexp(2 * min(widest_slab(side, origin)[0] for side in sides), exponent))


def q_mean_margin(Y: Any, y: Any, q: int) -> float:
    """Margin between the means of any q rows of each class, measured from the hyperplanes of largest margin.

    This is THEORY's Definition 4.

    Parameters
    ----------
    Y : array of shape (n, d)
    y : array of n labels
    q : int
        At most the size of the smallest class. 1 gives `separation_margin`; larger values never give less.

    Returns
    -------
    float
        The margin is 0 where no hyperplane separates two classes.

    Examples
    --------
    >>> from manifast.theory import q_mean_margin
    >>> Y, y = [[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]
    >>> q_mean_margin(Y, y, 1), q_mean_margin(Y, y, 2)
    (2.0, 3.0)
    """
    Y, labels = labelled_rows("q_mean_margin", "Y", Y, y)
    smallest = int(labels.sizes.min())
    q = as_count(q, "q", maximum=smallest, why=f", the size of the smallest class, {smallest}")
    return float(q_mean_margins(Y, labels, [q])[0])


def q_mean_margins(Y: Array, labels: Labels, qs: list[int]) -> Array:
    """Definition 4 for several Q at once.

    Of all means of Q rows, that of the Q rows nearest to the hyperplane is nearest to it.
    """
    rows, _, exponent = centred(Y)
    margins, last = np.full(len(qs), np.inf), np.array(qs) - 1
    for A, B in (pair for _, pair in pairs_of_classes(rows, labels)):
        _, normal = widest_slab(A, B)
        if normal is None:
            return np.zeros(len(qs))
        above, below = np.sort(A @ normal), np.sort(-(B @ normal))
        middle = (above[0] - below[0]) / 2
        means = [np.cumsum(side)[last] / (last + 1) for side in (above - middle, below + middle)]
        margins = np.minimum(margins, 2 * np.minimum(*means))
    return np.asarray(np.ldexp(margins, exponent))


def centred(Y: Array) -> tuple[Array, Array, int]:
    """Rows of which the largest entry is about 1, 2^-e (Y - mean); the mean, and e."""
    wide = np.asarray(Y, dtype=np.float64)
    first = int(np.frexp(np.abs(wide).max())[1])
    wide = np.ldexp(wide, -first)
    mean = wide.mean(axis=0)
    wide = wide - mean
    second = int(np.frexp(np.abs(wide).max())[1])
    return np.ldexp(wide, -second), np.ldexp(mean, first), first + second


def pairs_of_classes(Y: Array, labels: Labels) -> Iterator[tuple[tuple[int, int], tuple[Array, Array]]]:
    """Numbers and rows of every two classes; pairs whose means are close come first."""
    groups = [Y[rows] for rows in labels.members]
    means = np.array([group.mean(axis=0) for group in groups])
    apart = sq_distances(means)
    for k, m in sorted(combinations(range(labels.count), 2), key=lambda pair: float(apart[pair])):
        yield (k, m), (groups[k], groups[m])
