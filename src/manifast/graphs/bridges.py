"""The shortest edges that join the components of a graph, a minimum spanning tree over them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import minimum_spanning_tree

from manifast._validation import Array, is_sparse
from manifast.graphs.rows import scale_of
from manifast.kernels import knn, sq_distances


def bridges_of_rows(x: Any, count: int, labels: Array, n_threads: int | None) -> tuple[Array, Array, Array]:
    """Minimum spanning tree over components (Borůvka): ends i < j and lengths, ties broken by (i, j).

    In each round every component but the largest, which the others find, takes its shortest edge to another.
    """
    x = x.toarray() if is_sparse(x) else x
    exponent = scale_of(x)
    x = np.ldexp(x, -exponent) if exponent else x
    labels = labels.astype(np.int64)
    found: list[tuple[int, int, float]] = []
    while count > 1:
        ids, partner, length = nearest_outside(x, labels, n_threads)
        low, high = np.minimum(ids, partner), np.maximum(ids, partner)
        by_component = np.lexsort((high, low, length, labels[ids]))
        _, first = np.unique(labels[ids][by_component], return_index=True)
        chosen = by_component[first]
        parent = list(range(count))
        for e in chosen[np.lexsort((high[chosen], low[chosen], length[chosen]))]:
            a, b = (_root(parent, int(labels[end])) for end in (low[e], high[e]))
            if a != b:
                parent[max(a, b)] = min(a, b)
                found.append((int(low[e]), int(high[e]), float(length[e])))
        kept, merged = np.unique([_root(parent, c) for c in range(count)], return_inverse=True)
        count, labels = len(kept), merged.reshape(-1)[labels]
    i, j, d = (np.array(column) for column in zip(*sorted(found), strict=True))
    with np.errstate(over="ignore", under="ignore"):
        return i, j, np.ldexp(d, exponent)


def _root(parent: list[int], c: int) -> int:
    while parent[c] != c:
        parent[c] = parent[parent[c]]
        c = parent[c]
    return c


_SMALL_COMPONENT = 32  # rows; bounds the neighbours asked for, and the components searched one by one to n / 32


def nearest_outside(x: Array, labels: Array, n_threads: int | None) -> tuple[Array, Array, Array]:
    """Rows that may have the shortest edge out of their component, the nearest row of another one, and how far it is.

    Among a row and as many nearest as its component has rows, one is of another component: that is a single search for
    all small components. A large one is taken for a ball: only rows outside that come as close to it as one known way
    out is long, and only its own rows that reach as far, are searched.
    """
    sizes = np.bincount(labels)
    largest = int(sizes.argmax())
    small = np.flatnonzero((sizes[labels] <= _SMALL_COMPONENT) & (labels != largest))
    parts = []
    if len(small):
        d, at = knn(x, int(sizes[labels[small]].max()) + 1, queries=x[small], n_threads=n_threads)
        first = (labels[at] != labels[small][:, None]).argmax(axis=1)
        every = np.arange(len(small))
        parts.append((small, at[every, first], d[every, first]))
    tolerance = 1e-3 if x.dtype == np.float32 else 1e-9
    members = np.split(np.argsort(labels, kind="stable"), np.cumsum(sizes)[:-1])
    for c, rows in enumerate(members):
        if c == largest or len(rows) <= _SMALL_COMPONENT:
            continue
        centre = x[rows].mean(axis=0, dtype=np.float64).astype(x.dtype)
        away = np.sqrt(sq_distances(x, centre[None], n_threads=n_threads)[:, 0]).astype(np.float64)
        own, radius = away[rows], away[rows].max()
        away[rows] = np.inf
        closest = int(away.argmin())
        way_out = float(np.sqrt(sq_distances(x[rows], x[closest : closest + 1], n_threads=n_threads).min()))
        slack = tolerance * (radius + away[closest] + way_out)
        targets = np.flatnonzero(away <= radius + way_out + slack)
        asking = rows[own >= away[closest] - way_out - slack]
        d, at = knn(x[targets], 1, queries=x[asking], n_threads=n_threads)
        parts.append((asking, targets[at[:, 0]], d[:, 0]))
    ids, partner, length = (np.concatenate(column) for column in zip(*parts, strict=True))
    return ids, partner, length.astype(np.float64)


def bridges_of_matrix(D: Array, count: int, labels: Array) -> tuple[Array, Array, Array]:
    """The same from a matrix (n, n) of distances, Euclidean or not."""
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(count))
    shortest = D[np.ix_(order, order)].astype(np.float64, copy=False)
    for axis in (0, 1):
        shortest = np.minimum.reduceat(shortest, starts, axis=axis)
    bridges = []
    # The tree is the same with 1 added everywhere, which tells lengths of 0 from no edge.
    for a, b in np.argwhere(minimum_spanning_tree(shortest + 1.0 - np.eye(count)).toarray()):
        rows, columns = np.flatnonzero(labels == a), np.flatnonzero(labels == b)
        at = np.unravel_index(np.argmin(D[np.ix_(rows, columns)]), (len(rows), len(columns)))
        bridges.append((rows[at[0]], columns[at[1]]))
    i, j = np.array(bridges, dtype=np.int64).reshape(-1, 2).T
    return i, j, D[i, j]


def stored_bridges(D: sp.csr_array, count: int, labels: Array) -> tuple[Array, Array, Array]:
    """The same from the distances that a sparse matrix holds, as far as these reach from one component to another."""
    stored = sp.coo_array(D)
    out = np.flatnonzero(labels[stored.row] != labels[stored.col])
    i, j, length = stored.row[out].astype(np.int64), stored.col[out].astype(np.int64), stored.data[out]
    parent = list(range(count))
    chosen = []
    for e in np.lexsort((j, i, length)):
        a, b = (_root(parent, int(labels[end])) for end in (i[e], j[e]))
        if a != b:
            parent[max(a, b)] = min(a, b)
            chosen.append(e)
    return np.minimum(i, j)[chosen], np.maximum(i, j)[chosen], length[chosen]
