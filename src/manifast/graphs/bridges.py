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

    In each round components take their shortest edges to others: all small ones as long as there are some, then all
    but the largest, which the others find.
    """
    x = x.toarray() if is_sparse(x) else x
    exponent = scale_of(x)
    x = np.ldexp(x, -exponent) if exponent else x
    labels = labels.astype(np.int64)
    found: list[tuple[int, int, float]] = []
    pieces: _Pieces | None = None
    while count > 1:
        edges = _out_of_small(x, labels, n_threads)
        if edges is None and (pieces is not None or count <= _PIECES):
            pieces = _Pieces(x, labels, n_threads) if pieces is None else pieces
            edges = pieces.ways_out(labels)
        ids, partner, length = nearest_outside(x, labels, n_threads) if edges is None else edges
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

    A large component is taken for a ball: only rows outside that come as close to it as one known way out is long, and
    only its own rows that reach as far, are searched.
    """
    sizes = np.bincount(labels)
    largest = int(sizes.argmax())
    small = _out_of_small(x, labels, n_threads)
    parts = [] if small is None else [small]
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


def _out_of_small(x: Array, labels: Array, n_threads: int | None) -> tuple[Array, Array, Array] | None:
    """The same for small components; None where there are none.

    Among a row and as many nearest as its component has rows, one is of another component: that is a single search for
    all of them.
    """
    sizes = np.bincount(labels)
    small = np.flatnonzero((sizes[labels] <= _SMALL_COMPONENT) & (labels != int(sizes.argmax())))
    if not len(small):
        return None
    d, at = knn(x, int(sizes[labels[small]].max()) + 1, queries=x[small], n_threads=n_threads)
    first = (labels[at] != labels[small][:, None]).argmax(axis=1)
    every = np.arange(len(small))
    return small, at[every, first], d[every, first].astype(np.float64)


_PIECES = 500  # components up to which bounds are held for all pairs
_BLOCK = 1 << 22  # distances to centres held at once


class _Pieces:
    """The components of a graph before large ones are joined, and bounds on the distances between them.

    Rows of two pieces are at least as far apart as their feet on the line through both centres, and as the distance of
    one from the centre of the other exceeds that one's radius. In many dimensions feet tell far more than distances
    do. Only pairs of pieces that may be nearer than the best way known are looked at, only their rows that may be, and
    every pair once: components that grow together keep their pieces, whose centres lie among rows.
    """

    def __init__(self, x: Array, labels: Array, n_threads: int | None) -> None:
        self._x, self._labels, self._threads = x, labels, n_threads
        self._members = np.split(np.argsort(labels, kind="stable"), np.cumsum(np.bincount(labels))[:-1])
        self._centres = np.array([x[rows].mean(axis=0, dtype=np.float64) for rows in self._members], dtype=x.dtype)
        self._least = self._bounds()
        self._edges: dict[tuple[int, int], tuple[float, int, int]] = {}

    def _bounds(self) -> Array:
        """Lower bounds on the distances between pieces."""
        count = len(self._members)
        feet, near = np.full((count, count), np.inf), np.full((count, count), np.inf)
        radii, largest = np.zeros(count), 0.0
        for d, rows in enumerate(self._members):
            for begin in range(0, len(rows), step := max(1, _BLOCK // count)):
                squares = self._squares(rows[begin : begin + step], self._centres)
                own = squares[:, d]
                radii[d] = max(radii[d], np.sqrt(own.max()))
                largest = max(largest, float(squares.max()))
                feet[:, d] = np.minimum(feet[:, d], (squares - own[:, None]).min(axis=0))
                near[:, d] = np.minimum(near[:, d], squares.min(axis=0))
        # The foot of a row t is (|t - c|² - |t - d|² + |c - d|²) / 2|c - d| along the line from centre c to centre d.
        between = sq_distances(self._centres, n_threads=self._threads).astype(np.float64)
        rounding = _ROUNDING * float(np.finfo(self._x.dtype).eps) * largest  # of squared distances
        apart = between > rounding  # elsewhere the line is lost in rounding
        lines = np.sqrt(np.where(apart, between, 1.0))
        first = (feet + between) / (2 * lines)
        gaps = np.where(apart, first + first.T - lines - rounding / lines, 0.0)
        balls = np.sqrt(near) - radii[:, None]
        return np.asarray(np.maximum(gaps, np.maximum(balls, balls.T)) - np.sqrt(rounding))

    def ways_out(self, labels: Array) -> tuple[Array, Array, Array]:
        """The shortest edge from every component but the largest to another: rows there, rows elsewhere, lengths."""
        components = labels[[rows[0] for rows in self._members]]
        largest = np.bincount(labels).argmax()
        edges = [self._way_out(components, int(c)) for c in np.unique(components) if c != largest]
        ours, theirs, lengths = zip(*edges, strict=True)
        return np.array(ours), np.array(theirs), np.array(lengths)

    def _way_out(self, components: Array, c: int) -> tuple[int, int, float]:
        """The shortest edge from a component to another; ties by the numbers of its ends."""
        inside, outside = np.flatnonzero(components == c), np.flatnonzero(components != c)
        least = self._least[np.ix_(inside, outside)]
        best, ours = (np.inf, -1, -1), True
        for at in np.argsort(least, axis=None):
            a, b = np.unravel_index(at, least.shape)
            if least[a, b] > best[0]:
                break
            edge, first = self._edge(int(inside[a]), int(outside[b]))
            if edge < best:
                best, ours = edge, first
        length, i, j = best
        return (i, j, length) if ours else (j, i, length)

    def _edge(self, c: int, d: int) -> tuple[tuple[float, int, int], bool]:
        """The shortest edge between two pieces: its length and its ends; and whether the first end is in c."""
        pair = min(c, d), max(c, d)
        if pair not in self._edges:
            ours, theirs = (self._members[piece] for piece in pair)
            self._edges[pair] = self._found(ours, theirs, self._centres[list(pair)])
        edge = self._edges[pair]
        return edge, bool(self._labels[edge[1]] == c)

    def _found(self, ours: Array, theirs: Array, centres: Array) -> tuple[float, int, int]:
        between = float(sq_distances(centres, n_threads=self._threads)[0, 1])
        squares = [self._squares(rows, centres) for rows in (ours, theirs)]
        rounding = _ROUNDING * float(np.finfo(self._x.dtype).eps) * max(float(part.max()) for part in squares)
        if between > rounding:  # a foot is so far along the line from our centre to theirs
            line = float(np.sqrt(between))
            feet = [(part[:, 0] - part[:, 1] + between) / (2 * line) for part in squares]
            start, target = ours[feet[0].argmax()], theirs[feet[1].argmin()]
            known = min(self._squares(ours, self._x[[target]]).min(), self._squares(theirs, self._x[[start]]).min())
            reach = float(np.sqrt(known) + np.sqrt(rounding) + rounding / line)
            ours, theirs = ours[feet[0] >= feet[1].min() - reach], theirs[feet[1] <= feet[0].max() + reach]
        lengths, at = knn(self._x[theirs], 1, queries=self._x[ours], n_threads=self._threads)
        ends = theirs[at[:, 0]]
        low, high = np.minimum(ours, ends), np.maximum(ours, ends)
        shortest = np.lexsort((high, low, lengths[:, 0]))[0]
        return float(lengths[shortest, 0]), int(low[shortest]), int(high[shortest])

    def _squares(self, rows: Array, points: Array) -> Array:
        return sq_distances(self._x[rows], points, n_threads=self._threads).astype(np.float64)


_ROUNDING = 64  # units in the last place that squared distances may be off by, relative to the largest


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
