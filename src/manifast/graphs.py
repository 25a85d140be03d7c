"""Weighted graphs of samples: neighbours, radius, complete, L1 and class-aware, and bridges between components.

All graphs are exactly symmetric with nothing on the diagonal, and float32 data give float32 weights. An edge of length
d weighs exp(-d² / beta) ("heat"), 1 ("binary") or d ("distance"). Nothing here imports scikit-learn.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from manifast._linalg.memory import check_room
from manifast._progress import Progress
from manifast._sparse import checked_sparse
from manifast._validation import Array, as_matrix, as_positive, is_sparse
from manifast.kernels import (
    _BAD_WEIGHT,
    _NOT_SYMMETRIC,
    _as_graph,
    _csr,
    _explain_flaws,
    _of_one_dtype,
    _outlying,
    _search,
    _search_exponent,
    gaussian,
    knn,
    l1_code,
    neighbor_graph,
    sq_distances,
)

__all__ = [
    "class_graphs",
    "connect_components",
    "full_graph",
    "knn_graph",
    "l1_graph",
    "mean_sq_distance",
    "n_components",
    "radius_graph",
]

_CHUNK = 1 << 22  # entries of the largest dense block


def mean_sq_distance(X: Any) -> float:
    """Mean squared Euclidean distance over all pairs of different rows.

    Twice n / (n - 1) times the mean squared distance to the centroid: no distance between two rows is computed.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, p)

    Returns
    -------
    float
        0 where all rows are equal, and for a single row.

    Examples
    --------
    >>> from manifast.graphs import mean_sq_distance
    >>> round(mean_sq_distance([[0.0], [1.0], [3.0]]), 12)  # (1 + 4 + 9) / 3
    4.666666666667
    """
    x = as_rows(X)
    sparse = sp.issparse(x)
    n = x.shape[0]
    if n < 2:
        return 0.0
    largest = float(max(x.data.max(initial=0.0), -x.data.min(initial=0.0)) if sparse else max(x.max(), -x.min()))
    exponent = int(np.frexp(largest)[1])
    exponent = exponent if abs(exponent) > 200 else 0  # scaled only where squares would leave the range
    total = 0.0
    if sparse:
        values = np.ldexp(x.data.astype(np.float64), -exponent)
        mean = np.bincount(x.indices, values, x.shape[1]) / n
        stored = np.bincount(x.indices, minlength=x.shape[1])
        total = float(np.sum((values - mean[x.indices]) ** 2) + np.sum((n - stored) * mean**2))
    else:
        step = max(1, _CHUNK // x.shape[1])
        # From the first row on, so that an offset common to all rows costs nothing and equal rows give exactly 0.
        first = np.ldexp(x[0].astype(np.float64), -exponent)

        def shifted(begin: int) -> Array:
            block = x[begin : begin + step].astype(np.float64, copy=False)
            return np.asarray((np.ldexp(block, -exponent) if exponent else block) - first)

        blocks = [shifted(0)] if n <= step else (shifted(begin) for begin in range(0, n, step))
        mean = np.sum([block.sum(axis=0) for block in blocks], axis=0) / n
        for block in blocks if n <= step else (shifted(begin) for begin in range(0, n, step)):
            block -= mean
            total += float(np.einsum("ij,ij->", block, block))
    if total == 0:
        return 0.0
    with np.errstate(over="ignore", under="ignore"):
        result = float(np.ldexp(2 * total / (n - 1), 2 * exponent))
    return min(max(result, float(np.nextafter(0, 1))), float(np.finfo(np.float64).max))


def knn_graph(
    X: Any,
    n_neighbors: int = 10,
    *,
    weights: str = "heat",
    beta: float | str = "mean",
    mode: str = "union",
    neighbors: tuple[Any, Any] | None = None,
    n_threads: int | None = None,
) -> sp.csr_array:
    """Graph that joins each row to its nearest others.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, p)
    n_neighbors : int, default 10
        Nearest others per row, at most n - 1; not used with `neighbors`.
    weights : {"heat", "binary", "distance"}
        What an edge of length d weighs: exp(-d² / beta), 1, or d.
    beta : float or "mean"
        Width of the heat weights; "mean" is the mean squared distance over all pairs of rows.
    mode : {"union", "mutual"}
        Join two rows where either is among the other's nearest, or only where both are.
    neighbors : (distances, indices), optional
        Lists of shape (n, k), as `manifast.kernels.knn` or any approximate search gives them. A row that lists itself
        gets no self-loop from it.
    n_threads : int, optional

    Returns
    -------
    scipy.sparse.csr_array of shape (n, n)

    Examples
    --------
    >>> from manifast.graphs import knn_graph
    >>> knn_graph([[0.0], [1.0], [3.0]], 1, weights="distance").toarray()
    array([[0., 1., 0.],
           [1., 0., 2.],
           [0., 2., 0.]])
    """
    _check_weights(weights)
    x = as_rows(X, min_rows=1 if neighbors is not None else 2)
    n = x.shape[0]
    if neighbors is not None:
        if not isinstance(neighbors, (tuple, list)) or len(neighbors) != 2:
            raise ValueError(f"neighbors must be a pair (distances, indices). Got {type(neighbors).__name__} instead.")
        distances, indices = as_matrix(neighbors[0], "distances"), neighbors[1]
        if distances.shape[0] != n:
            raise ValueError(f"neighbors must have one row per row of X, {n}. Got {distances.shape[0]} instead.")
        distances = distances.astype(x.dtype, copy=False)
    else:
        k = _as_count(n_neighbors, "n_neighbors", n - 1, f"{n} rows of X")
        distances, indices = nearest(x, k, n_threads=n_threads)
    width = heat_width(x, beta) if weights == "heat" else None
    return neighbor_graph(distances, indices, weights=weights, beta=width, mode=mode, n_threads=n_threads)


def radius_graph(
    X: Any, radius: float, *, weights: str = "heat", beta: float | str = "mean", n_threads: int | None = None
) -> sp.csr_array:
    """Graph that joins all rows no further apart than a radius.

    Parameters
    ----------
    X : array of shape (n, p)
    radius : float
        Largest Euclidean distance between joined rows, itself included.
    weights, beta, n_threads
        As in `knn_graph`.

    Returns
    -------
    scipy.sparse.csr_array of shape (n, n)
        Rows without others in reach have no edge.

    Examples
    --------
    >>> from manifast.graphs import radius_graph
    >>> radius_graph([[0.0], [1.0], [3.0]], 1.0, weights="binary").toarray()
    array([[0., 1., 0.],
           [1., 0., 0.],
           [0., 0., 0.]])
    """
    _check_weights(weights)
    x = as_matrix(X, "X", min_rows=1)
    reach = as_positive(radius, "radius")
    width = heat_width(x, beta) if weights == "heat" else 1.0
    n = x.shape[0]
    exponent = _scale(x)
    scaled = np.ldexp(x.astype(np.float64), -exponent) if exponent else x
    with np.errstate(over="ignore", under="ignore"):
        limit = min(float(np.ldexp(reach, -exponent)), 1e150)
    found = []
    step = max(1, _CHUNK // n)
    for begin in range(0, n, step):
        near = sq_distances(scaled[begin : begin + step], scaled[begin:], n_threads=n_threads)
        # Screened with slack, then decided on the distance in double, which is the same from either end.
        i, j = np.nonzero(near <= max(limit * limit * 1.01, float(np.finfo(near.dtype).tiny)))
        i, j = i[i < j] + begin, j[i < j] + begin
        length = _pair_distances(scaled, i, j)
        inside = length <= limit
        found.append((i[inside], j[inside], length[inside]))
    i, j, length = (np.concatenate(parts) for parts in zip(*found, strict=True))
    with np.errstate(over="ignore", under="ignore"):
        values = _weigh(np.ldexp(length, exponent), weights, width).astype(x.dtype)
    return _from_edges(n, i, j, values)


def full_graph(X: Any, *, weights: str = "heat", beta: float | str = "mean", n_threads: int | None = None) -> Array:
    """Complete graph, as a dense matrix.

    Parameters
    ----------
    X : array of shape (n, p)
    weights, beta, n_threads
        As in `knn_graph`.

    Returns
    -------
    array of shape (n, n)
        Exactly symmetric, zero on the diagonal.

    Examples
    --------
    >>> from manifast.graphs import full_graph
    >>> full_graph([[0.0], [1.0], [3.0]], weights="distance")
    array([[0., 1., 3.],
           [1., 0., 2.],
           [3., 2., 0.]])
    """
    _check_weights(weights)
    x = as_matrix(X, "X", min_rows=1)
    check_room(x.shape[0], 1, "use knn_graph", lapack=False)
    return _complete(x, weights, heat_width(x, beta) if weights == "heat" else 1.0, n_threads)


def l1_graph(
    X: Any,
    *,
    lam: float = 0.0,
    errors: bool = True,
    normalize: bool = True,
    verbose: bool = False,
    n_threads: int | None = None,
) -> sp.csr_array:
    """L1 graph: each row's sparse code in all other rows says whom it is joined to, and how strongly.

    Parameters
    ----------
    X : array of shape (n, p)
    lam, errors
        Penalty and sparse errors of the codes, as in `manifast.kernels.l1_code`.
    normalize : bool, default True
        Scale rows to unit norm first; zero rows stay zero.
    verbose : bool, default False
        Show progress: a bar where tqdm is installed, else a line every few seconds.
    n_threads : int, optional

    Returns
    -------
    scipy.sparse.csr_array of shape (n, n)
        W = (\\|A\\| + \\|A\\|ᵀ) / 2 for codes A, row i of which may use all rows but row i.

    References
    ----------
    Raducanu and Dornaika, "Embedding new observations via sparse-coding for non-linear manifold learning", 2013.

    Examples
    --------
    >>> from manifast.graphs import l1_graph
    >>> l1_graph([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, -3.0]]).toarray()
    array([[0., 1., 0., 0.],
           [1., 0., 0., 0.],
           [0., 0., 0., 1.],
           [0., 0., 1., 0.]])
    """
    x = as_matrix(X, "X", min_rows=2)
    if normalize:
        x = unit_rows(x)
    n = x.shape[0]
    parts = []
    for rows in chunks(n, verbose, "L1 graph"):
        codes, _ = l1_code(x[rows], x, errors=errors, lam=lam, exclude=np.arange(n)[rows], n_threads=n_threads)
        parts.append(codes)
    size = abs(sp.csr_array(sp.vstack(parts, format="csr")))
    graph = sp.csr_array((size + size.T) * x.dtype.type(0.5))
    graph.sort_indices()
    return graph


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
    weights, beta, n_threads
        As in `knn_graph`; "mean" is over all pairs of rows, whatever their classes.

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
    _check_weights(weights)
    x = as_matrix(X, "X", min_rows=2)
    n = x.shape[0]
    members = _classes(y, n)
    counts = [None if k is None else _as_count(k, name, n - 1, f"{n} rows of X") for k, name in (
        (n_neighbors_within, "n_neighbors_within"), (n_neighbors_between, "n_neighbors_between"),
    )]  # fmt: skip
    width = heat_width(x, beta) if weights == "heat" else None
    if counts[0] is None:
        blocks = [_complete(x[rows], weights, width or 1.0, n_threads) for rows in members]
        within = _from_blocks(n, list(zip(members, members, blocks, strict=True)), x.dtype)
    else:
        lists = _lists(x, [(rows, rows) for rows in members], counts[0], n_threads)
        within = neighbor_graph(*lists, weights=weights, beta=width, n_threads=n_threads)
    if counts[1] is None:
        between = _from_blocks(n, [(rows, columns, None) for rows, columns in _others(members)], x.dtype)
    else:
        between = between_graph(x, members, counts[1], width, weights=weights, n_threads=n_threads)
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
            blocks.append(_complete(x[rows], "heat", beta, None))
        else:
            blocks.append(connect_components(knn_graph(x[rows], k, beta=beta), x[rows], beta=beta))
    return blocks


def n_components(W: Any, *, weights: str = "heat") -> int:
    """Number of connected components of a graph.

    Parameters
    ----------
    W : sparse or dense matrix of shape (n, n)
        Symmetric.
    weights : {"heat", "binary", "distance"}
        What the entries of W are: a stored 0 joins two nodes only where it is a distance.

    Returns
    -------
    int

    Examples
    --------
    >>> from manifast.graphs import n_components
    >>> n_components([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    2
    """
    _check_weights(weights)
    return int(_components(_as_symmetric(W), weights)[0])


def connect_components(
    W: Any, X: Any, *, weights: str = "heat", beta: float | str = "mean", n_threads: int | None = None
) -> sp.csr_array:
    """The graph with its components joined by the shortest edges that do it.

    The bridges are the minimum spanning tree over components of the shortest Euclidean distances between their rows.

    Parameters
    ----------
    W : sparse or dense matrix of shape (n, n)
        Symmetric.
    X : array or sparse matrix of shape (n, p)
        The rows that the nodes of W stand for; sparse ones become dense where there is something to join.
    weights : {"heat", "binary", "distance", "l1"}
        The rule by which W was made, and by which bridges are weighed. All but distances weigh no less than the
        smallest positive weight of W, and exactly that in an L1 graph, whose weights do not follow from distances.
    beta, n_threads
        As in `knn_graph`.

    Returns
    -------
    scipy.sparse.csr_array of shape (n, n)
        W itself where it is connected.

    Examples
    --------
    >>> from manifast.graphs import connect_components, radius_graph
    >>> X = [[0.0], [1.0], [3.0]]
    >>> W = radius_graph(X, 1.0, weights="distance")
    >>> connect_components(W, X, weights="distance").toarray()
    array([[0., 1., 0.],
           [1., 0., 2.],
           [0., 2., 0.]])
    """
    if weights != "l1":
        _check_weights(weights)
    graph = _as_symmetric(W)
    x = as_rows(X)
    n = graph.shape[0]
    if x.shape[0] != n:
        raise ValueError(f"X must have one row per node of W, {n}. Got shape {x.shape} instead.")
    width = heat_width(x, beta) if weights == "heat" else 1.0
    count, labels = _components(graph, weights)
    if count == 1:
        return graph
    i, j, length = _bridges(x, count, labels, n_threads)
    values = np.zeros(len(length)) if weights == "l1" else _weigh(length, weights, width)
    if weights != "distance":
        positive = graph.data[graph.data > 0]
        values = np.maximum(values, positive.min() if len(positive) else np.finfo(graph.dtype).tiny)
    return _with_edges(graph, i, j, values)


def connect_by(graph: sp.csr_array, distances: Array) -> sp.csr_array:
    """`connect_components` of a graph of distances for a matrix (n, n) of them, Euclidean or not."""
    count, labels = _components(graph, "distance")
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(count))
    shortest = distances[np.ix_(order, order)]
    for axis in (0, 1):
        shortest = np.minimum.reduceat(shortest, starts, axis=axis)
    bridges = []
    # The tree is the same with 1 added everywhere, which tells lengths of 0 from no edge.
    for a, b in np.argwhere(minimum_spanning_tree(shortest + 1.0 - np.eye(count)).toarray()):
        rows, columns = np.flatnonzero(labels == a), np.flatnonzero(labels == b)
        at = np.unravel_index(np.argmin(distances[np.ix_(rows, columns)]), (len(rows), len(columns)))
        bridges.append((rows[at[0]], columns[at[1]]))
    i, j = np.array(bridges, dtype=np.int64).reshape(-1, 2).T
    return _with_edges(graph, i, j, distances[i, j])


def _with_edges(graph: sp.csr_array, i: Array, j: Array, values: Array) -> sp.csr_array:
    """A symmetric graph with new edges."""
    own = graph.tocoo()
    rows, columns = (np.concatenate(parts) for parts in ((own.row, i, j), (own.col, j, i)))
    data = np.concatenate([own.data, values, values]).astype(graph.dtype)
    joined = sp.csr_array(sp.coo_array((data, (rows, columns)), shape=graph.shape))  # keeps stored zeros
    joined.sort_indices()
    return joined


def n_components_of(graph: Any, weights: str = "heat") -> int:
    """`n_components` of a graph that needs no check."""
    return _components(sp.csr_array(graph), weights)[0]


def bridges_between(graph: sp.csr_array, X: Any) -> Array:
    """Pairs of rows (m, 2) that `connect_components` would join."""
    count, labels = _components(graph, "binary")
    i, j, _ = _bridges(as_rows(X), count, labels, None)
    return np.column_stack([i, j]).astype(np.int64)


def _bridges(x: Any, count: int, labels: Array, n_threads: int | None) -> tuple[Array, Array, Array]:
    """Minimum spanning tree over components (Borůvka): ends i < j and lengths, ties broken by (i, j).

    In each round every component but the largest, which the others find, takes its shortest edge to another.
    """
    x = x.toarray() if is_sparse(x) else x
    exponent = _scale(x)
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


def _components(graph: sp.csr_array, weights: str) -> tuple[int, Array]:
    if weights != "distance" and len(graph.data) and not graph.data.all():
        graph = graph.copy()
        graph.eliminate_zeros()
    joined = sp.csr_array((np.ones(graph.nnz), graph.indices, graph.indptr), shape=graph.shape)
    count, labels = connected_components(joined, directed=False)
    return int(count), labels


def given_graph(W: Any, n: int, name: str = "graph") -> Any:
    """A user's own graph of n rows, checked: symmetric with weights that are not negative; dense stays dense."""
    graph = _as_symmetric(W, name)
    if graph.shape[0] != n:
        raise ValueError(f"{name} must be a matrix of shape ({n}, {n}) for {n} rows of X. Got {graph.shape} instead.")
    return graph if is_sparse(W) else graph.toarray()


def _as_symmetric(W: Any, name: str = "W") -> sp.csr_array:
    graph = _as_graph(W, name)
    if not isinstance(graph, sp.csr_array):
        graph = sp.csr_array(graph)
    if graph.shape[0] == 0:
        raise ValueError(f"{name} must have at least 1 row. Got shape (0, 0) instead.")
    if not np.isfinite(graph.data).all() or (graph.data < 0).any():
        _explain_flaws(graph, _BAD_WEIGHT, name)
    turned = sp.csr_array(graph.T.tocsr())
    if graph.nnz and not all(
        np.array_equal(getattr(graph, name), getattr(turned, name)) for name in ("indptr", "indices", "data")
    ):
        _explain_flaws(graph, _NOT_SYMMETRIC, name)
    return graph


def _check_weights(weights: str) -> None:
    if weights not in ("heat", "binary", "distance"):
        raise ValueError(f"weights must be 'heat', 'binary' or 'distance'. Got {weights!r} instead.")


def as_rows(X: Any, name: str = "X", *, min_rows: int = 1, columns: int | None = None) -> Any:
    """A dense matrix, or a canonical CSR array with finite entries."""
    if not is_sparse(X):
        return as_matrix(X, name, min_rows=min_rows, columns=columns)
    if len(X.shape) != 2 or X.shape[0] < min_rows or X.shape[1] == 0:
        raise ValueError(f"{name} must have at least {min_rows} row(s) and 1 column. Got shape {X.shape} instead.")
    if columns is not None and X.shape[1] != columns:
        raise ValueError(f"{name} must have {columns} columns to match. Got shape {X.shape} instead.")
    return checked_sparse(X, name, finite=True)


def nearest(X: Any, k: int, *, queries: Any = None, n_threads: int | None = None) -> tuple[Array, Array]:
    """`manifast.kernels.knn` for dense rows or sparse ones: distances and indices, in the same order."""
    if sp.issparse(X) or sp.issparse(queries):
        return _sparse_knn(sp.csr_array(X), k, None if queries is None else sp.csr_array(queries))
    return knn(X, k, queries=queries, n_threads=n_threads)


class NearestRows:
    """`nearest` among rows that were checked and stay the same: what depends on them alone is found once."""

    def __init__(self, X: Any) -> None:
        self._X = X
        self._exponent = None if is_sparse(X) else _search_exponent(X)

    def __call__(self, k: int, queries: Any) -> tuple[Array, Array]:
        """Distances and indices of the k nearest of checked rows."""
        if self._exponent is None or is_sparse(queries):
            return nearest(self._X, k, queries=queries)
        x, q = _of_one_dtype(self._X, queries)
        return _search(x, q, k, self._exponent)


def _as_count(value: Any, name: str, most: int, of: str) -> int:
    if not isinstance(value, Integral) or isinstance(value, bool) or not 1 <= int(value) <= most:
        raise ValueError(f"{name} must be an integer from 1 to {most} for {of}. Got {value!r} instead.")
    return int(value)


def heat_width(X: Any, beta: Any) -> float:
    """Width of the heat weights; 1 where it is to be the mean squared distance and all rows are equal."""
    if isinstance(beta, str):
        if beta != "mean":
            raise ValueError(f"beta must be 'mean' or a positive number. Got {beta!r} instead.")
        return mean_sq_distance(X) or 1.0
    return as_positive(beta, "beta")


def _scale(x: Array) -> int:
    """The power of two to divide data by where squares of their entries would leave the range of their dtype."""
    if x.dtype == np.float64:
        return _outlying(x)
    largest = float(np.abs(x).max())
    return 0 if largest == 0 or 1e-12 < largest < 1e15 else int(np.frexp(largest)[1])


def _weigh(length: Array, weights: str, beta: float) -> Array:
    if weights == "distance":
        return length
    if weights == "binary":
        return np.ones_like(length)
    with np.errstate(over="ignore", under="ignore"):
        ratio = length / np.sqrt(beta)
        heat: Array = np.exp(-ratio * ratio)
    return heat


def _complete(x: Array, weights: str, beta: float, n_threads: int | None) -> Array:
    """Weights of all pairs of rows, zero on the diagonal."""
    n = x.shape[0]
    out: Array
    if weights == "heat":
        out = gaussian(x, sigma=float(np.sqrt(beta)), n_threads=n_threads)
    elif weights == "binary":
        out = np.ones((n, n), dtype=x.dtype)
    else:
        exponent = _scale(x)
        out = sq_distances(np.ldexp(x, -exponent), n_threads=n_threads)
        np.sqrt(out, out=out)
        if exponent:
            with np.errstate(over="ignore", under="ignore"):
                out = np.ldexp(out, exponent)
    np.fill_diagonal(out, 0)
    return out


def _pair_distances(x: Array, i: Array, j: Array) -> Array:
    """Euclidean distances, in double, of pairs of rows."""
    out = np.empty(len(i))
    step = max(1, _CHUNK // x.shape[1])
    for begin in range(0, len(i), step):
        part = slice(begin, begin + step)
        difference = x[i[part]].astype(np.float64) - x[j[part]]
        out[part] = np.sqrt(np.einsum("ij,ij->i", difference, difference))
    return out


def _from_edges(n: int, i: Array, j: Array, values: Array) -> sp.csr_array:
    """Symmetric CSR from edges, each given once; zeros stay stored."""
    data = np.concatenate([values, values])
    pairs = np.concatenate([i, j]), np.concatenate([j, i])
    graph = sp.csr_array(sp.coo_array((data, pairs), shape=(n, n)))
    graph.sort_indices()
    return graph


def _from_blocks(n: int, groups: Sequence[tuple[Array, Array, Array | None]], dtype: Any) -> sp.csr_array:
    """CSR whose rows come in groups, each joined to the same columns but to no row itself; 1 where no weights are."""
    counts = np.zeros(n, dtype=np.int64)
    for rows, columns, _ in groups:
        counts[rows] = len(columns) - int(len(columns) > 0 and rows[0] in columns)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    small = np.int32 if max(n, int(indptr[-1])) < 2**31 else np.int64
    indices, data = np.empty(indptr[-1], dtype=small), np.ones(indptr[-1], dtype=dtype)
    for rows, columns, block in groups:
        for at, row in enumerate(rows):
            others = columns != row
            to = slice(indptr[row], indptr[row + 1])
            indices[to] = columns[others]
            if block is not None:
                data[to] = block[at, others]
    return _csr((indptr.astype(small), indices, data), n)


def _lists(x: Array, groups: list[tuple[Array, Array]], k: int, n_threads: int | None) -> tuple[Array, Array]:
    """Distances and indices of the k nearest among the columns of each group of rows.

    Who finds fewer lists itself, which makes no edge.
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
    """`_lists` of classes and all rows outside them: one search for all small classes, that own rows are taken from."""
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


def unit_rows(x: Array) -> Array:
    largest = np.abs(x).max(axis=1, keepdims=True)
    scaled = x / np.where(largest > 0, largest, 1)
    norms = np.sqrt(np.sum(scaled.astype(np.float64) ** 2, axis=1, keepdims=True))
    unit: Array = (scaled / np.where(norms > 0, norms, 1)).astype(x.dtype)
    return unit


def chunks(n: int, verbose: bool, label: str) -> Iterator[slice]:
    """All rows at once, or, where progress is to be shown, about a hundred slices of them."""
    if not verbose:
        yield slice(0, n)
        return
    step = max(1, -(-n // 100))
    slices = [slice(begin, min(begin + step, n)) for begin in range(0, n, step)]
    try:
        bar = importlib.import_module("tqdm").tqdm
    except ImportError:
        report = Progress(label, n, "rows")
        for rows in slices:
            yield rows
            report(rows.stop)
    else:
        yield from bar(slices, desc=label)


def _sparse_knn(x: sp.csr_array, k: int, queries: sp.csr_array | None = None) -> tuple[Array, Array]:
    """Exact nearest rows of sparse ones: screened by inner products, decided on distances from differences."""
    asking = x if queries is None else queries
    n, m = x.shape[0], asking.shape[0]
    largest = max(float(np.abs(part.data).max(initial=0.0)) for part in (x, asking))
    exponent = int(np.frexp(largest)[1])
    wide, ask = (
        sp.csr_array((np.ldexp(part.data.astype(np.float64), -exponent), part.indices, part.indptr), shape=part.shape)
        for part in (x, asking)
    )
    norms, ask_norms = (np.asarray(part.multiply(part).sum(axis=1)).reshape(-1) for part in (wide, ask))
    turned = wide.T.tocsr()
    longest = int(max(np.diff(part.indptr).max(initial=0) for part in (x, asking)))
    slack = 4 * (longest + 8) * np.finfo(np.float64).eps * (ask_norms + norms.max(initial=0.0))
    distances, indices = np.empty((m, k)), np.empty((m, k), dtype=np.int64)
    step = max(1, _CHUNK // n)
    for begin in range(0, m, step):
        rows = np.arange(begin, min(begin + step, m))
        near = (ask[rows] @ turned).toarray()
        near *= -2
        near += ask_norms[rows, None] + norms
        if queries is None:
            near[np.arange(len(rows)), rows] = np.inf
        bound = np.partition(near, k - 1, axis=1)[:, k - 1] + slack[rows]
        i, j = np.nonzero(near <= bound[:, None])
        exact = np.empty(len(i))
        pairs = max(1, _CHUNK // (2 * longest + 1))
        for first in range(0, len(i), pairs):
            part = slice(first, first + pairs)
            difference = ask[rows[i[part]]] - wide[j[part]]
            exact[part] = np.asarray(difference.multiply(difference).sum(axis=1)).reshape(-1)
        order = np.lexsort((j, exact, i))
        starts = np.searchsorted(i, np.arange(len(rows)))
        taken = order[starts[:, None] + np.arange(k)]
        distances[rows], indices[rows] = np.sqrt(exact[taken]), j[taken]
    return np.ldexp(distances, exponent).astype(asking.dtype), indices
