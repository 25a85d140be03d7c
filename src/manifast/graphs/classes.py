"""Graphs of labelled rows: inside the classes and between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from manifast._kernels import csr, index_dtype
from manifast._validation import Array, as_matrix, in_other_units
from manifast.graphs.components import connect_components
from manifast.graphs.distances import heat_width
from manifast.graphs.neighbors import knn_graph
from manifast.graphs.rows import as_neighbor_count, in_reach, in_units
from manifast.graphs.weights import check_weights, complete_graph
from manifast.kernels import knn, neighbor_graph


def class_graphs(
    X: Any,
    y: Any,
    *,
    n_neighbors_within: int | None = None,
    n_neighbors_between: int | None = None,
    weights: str = "heat",
    beta: float | str = "mean",
    n_threads: int | None = None,
) -> tuple[sp.csr_array, sp.csr_array]:
    """Two graphs of labelled rows: one inside the classes, one between them.

    Parameters
    ----------
    X : array of shape (n, p)
    y : array of n labels
        At least two classes; -1 is a class like any other.
    n_neighbors_within : int, optional
        Join each row to that many nearest of its class (all of them where the class is smaller); omitted: the complete
        graph inside each class.
    n_neighbors_between : int, optional
        Join each row to that many nearest of other classes; omitted: the complete graph between classes, where all
        edges weigh 1.
    beta : "mean" or float, default "mean"
        Width of the heat weights; "mean" is the mean squared distance over all pairs of rows, whatever their classes.
    weights, n_threads
        As in `knn_graph`.

    Returns
    -------
    within, between : scipy.sparse.csr_array of shape (n, n)

    Examples
    --------
    >>> from manifast.graphs import class_graphs
    >>> within, between = class_graphs([[0.0], [1.0], [3.0]], ["a", "a", "b"], weights="distance")
    >>> within.toarray()
    array([[0., 1., 0.],
           [1., 0., 0.],
           [0., 0., 0.]])
    >>> between.toarray()
    array([[0., 0., 1.],
           [0., 0., 1.],
           [1., 1., 0.]])
    """
    check_weights(weights)
    x = as_matrix(X, "X", min_rows=2)
    n = x.shape[0]
    members = _classes(y, n)
    counts = [None if k is None else as_neighbor_count(k, name, n - 1, f"{n} rows of X") for k, name in (
        (n_neighbors_within, "n_neighbors_within"), (n_neighbors_between, "n_neighbors_between"),
    )]  # fmt: skip
    x, exponent = in_reach(x, "euclidean", weights, beta)
    width = heat_width(x, in_other_units(beta, 2, exponent)) if weights == "heat" else None
    if counts[0] is None:
        blocks = [complete_graph(x[rows], weights, width or 1.0, n_threads) for rows in members]
        within = _from_blocks(n, list(zip(members, members, blocks, strict=True)), x.dtype)
    else:
        lists = _lists(x, [(rows, rows) for rows in members], counts[0], n_threads)
        within = neighbor_graph(*lists, weights=weights, beta=width, n_threads=n_threads)
    if counts[1] is None:
        between = _from_blocks(n, [(rows, columns, None) for rows, columns in _others(members)], x.dtype)
    else:
        between = between_graph(x, members, counts[1], width, weights=weights, n_threads=n_threads)
    if weights == "distance":  # the complete graph between classes has unit weights
        return in_units(within, exponent), between if counts[1] is None else in_units(between, exponent)
    return within, between


def between_graph(
    x: Array,
    members: list[Array],
    k: int,
    beta: float | None,
    *,
    weights: str = "heat",
    n_threads: int | None = None,
) -> sp.csr_array:
    """Graph that joins each row to its k nearest of other classes, from checked rows."""
    lists = _lists_outside(x, _others(members), k, n_threads)
    return neighbor_graph(*lists, weights=weights, beta=beta, n_threads=n_threads)


def _others(members: list[Array]) -> list[tuple[Array, Array]]:
    """Rows of each class beside all rows of the others."""
    everyone = np.arange(sum(map(len, members)))
    return [(rows, np.setdiff1d(everyone, rows, assume_unique=True)) for rows in members]


def within_blocks(x: Array, members: list[Array], k: int | None, beta: float) -> list[Any]:
    """Heat graph of each class on its own: complete, or of the k nearest with its parts joined."""
    blocks: list[Any] = []
    for rows in members:
        if k is None or k >= len(rows) - 1:
            blocks.append(complete_graph(x[rows], "heat", beta, None))
        else:
            blocks.append(connect_components(knn_graph(x[rows], k, beta=beta), x[rows], beta=beta))
    return blocks


def _from_blocks(n: int, groups: Sequence[tuple[Array, Array, Array | None]], dtype: Any) -> sp.csr_array:
    """CSR matrix from groups (rows, columns, weights): every row joined to all columns but itself; None is weight 1."""
    counts = np.zeros(n, dtype=np.int64)
    for rows, columns, _ in groups:
        counts[rows] = len(columns) - int(len(columns) > 0 and rows[0] in columns)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    small = index_dtype(max(n, int(indptr[-1])))
    indices, data = np.empty(indptr[-1], dtype=small), np.ones(indptr[-1], dtype=dtype)
    for rows, columns, block in groups:
        for at, row in enumerate(rows):
            others = columns != row
            to = slice(indptr[row], indptr[row + 1])
            indices[to] = columns[others]
            if block is not None:
                data[to] = block[at, others]
    return csr((indptr.astype(small), indices, data), n)


def _lists(x: Array, groups: list[tuple[Array, Array]], k: int, n_threads: int | None) -> tuple[Array, Array]:
    """Distances and indices of the k nearest among the columns of each group of rows.

    A row that has fewer fills its list with itself, which makes no edge.
    """
    n = x.shape[0]
    distances = np.zeros((n, k), dtype=x.dtype)
    indices = np.repeat(np.arange(n)[:, None], k, axis=1)
    for rows, columns in groups:
        same = rows is columns
        count = min(k, len(columns) - same)
        if count > 0:
            queries = None if same else x[rows]
            d, found = knn(x[columns], count, queries=queries, n_threads=n_threads)
            distances[rows, :count], indices[rows, :count] = d, columns[found]
    return distances, indices


_SMALL_CLASS = 32  # rows; up to here asking for that many more neighbours is cheaper than a search of its own


def _lists_outside(x: Array, groups: list[tuple[Array, Array]], k: int, n_threads: int | None) -> tuple[Array, Array]:
    """`_lists` of classes and all rows outside them. Small classes share one search and drop their own rows from it."""
    n = x.shape[0]
    small = [(rows, columns) for rows, columns in groups if len(rows) <= _SMALL_CLASS]
    distances, indices = _lists(x, [pair for pair in groups if len(pair[0]) > _SMALL_CLASS], k, n_threads)
    if small:
        rows = np.concatenate([pair[0] for pair in small])
        codes = np.empty(n, dtype=np.int64)
        for c, (own, _) in enumerate(groups):
            codes[own] = c
        reach = min(k + max(len(own) for own, _ in small), n)
        d, found = knn(x, reach, queries=x[rows], n_threads=n_threads)
        inside = codes[found] == codes[rows][:, None]
        first = np.argsort(inside, axis=1, kind="stable")[:, :k]
        d, found, inside = (np.take_along_axis(part, first, axis=1) for part in (d, found, inside))
        distances[rows, : first.shape[1]] = np.where(inside, 0, d)
        indices[rows, : first.shape[1]] = np.where(inside, rows[:, None], found)
    return distances, indices


def _classes(y: Any, n: int) -> list[Array]:
    """Rows of each class, ascending."""
    labels = np.asarray(y)
    if labels.shape != (n,):
        raise ValueError(f"y must hold one label per row of X, {n}. Got shape {labels.shape} instead.")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("y must not hold NaN or infinity. Got a label that is not finite.")
    if labels.dtype.kind == "O":  # may mix numbers and strings, which have no order
        known: dict[Any, int] = {}
        codes = np.array([known.setdefault(label, len(known)) for label in labels.tolist()])
    else:
        codes = np.unique(labels, return_inverse=True)[1].reshape(-1)
    members = [np.flatnonzero(codes == c) for c in range(int(codes.max()) + 1)]
    if len(members) < 2:
        raise ValueError(f"y must hold at least 2 classes. Got {len(members)} instead.")
    return members
