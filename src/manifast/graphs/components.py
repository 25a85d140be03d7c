"""Connected components of a graph: how many there are, and the edges that join them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from manifast._validation import Array, in_other_units
from manifast.graphs.distances import Distances, distances_of
from manifast.graphs.rows import as_rows, in_reach, in_units
from manifast.graphs.weights import as_symmetric, check_weights, weigh, with_edges


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
    check_weights(weights)
    return int(components_of(as_symmetric(W), weights)[0])


def connect_components(
    W: Any,
    X: Any,
    *,
    weights: str = "heat",
    beta: float | str = "local",
    metric: str = "euclidean",
    n_threads: int | None = None,
) -> sp.csr_array:
    """The graph with its components joined by the shortest edges that do it.

    The bridges are the minimum spanning tree over components of the shortest distances between their rows.

    Parameters
    ----------
    W : sparse or dense matrix of shape (n, n)
        Symmetric.
    X : array or sparse matrix of shape (n, p)
        The rows that the nodes of W stand for; sparse ones become dense where there is something to join. For
        "precomputed" the matrix of distances (n, n); a sparse one must hold distances between the components.
    weights : {"heat", "binary", "distance", "l1"}
        The rule by which W was made, and by which bridges are weighed. All but distances weigh no less than the
        smallest positive weight of W, and exactly that in an L1 graph, whose weights do not follow from distances.
    beta, metric, n_threads
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
        check_weights(weights)
    graph = as_symmetric(W)
    x = as_rows(X)
    n = graph.shape[0]
    if x.shape[0] != n:
        raise ValueError(f"X must have one row per node of W, {n}. Got shape {x.shape} instead.")
    x, exponent = in_reach(x, metric, weights, beta)
    distances, beta = distances_of(x, metric), in_other_units(beta, 2, exponent)
    width = distances.heat_width(beta, ()) if weights == "heat" else 1.0
    return joined(graph, distances, weights, width, n_threads, exponent)


def joined(
    graph: sp.csr_array,
    distances: Distances,
    weights: str,
    width: Any,
    n_threads: int | None = None,
    exponent: int = 0,
) -> sp.csr_array:
    """`connect_components` of a checked graph; distances are in units of 2^exponent."""
    count, labels = components_of(graph, weights)
    if count == 1:
        return graph
    i, j, length = distances.bridges(count, labels, n_threads)
    if len(i) < count - 1:
        raise ValueError(
            f"X must hold distances that join the components of the graph. Got a sparse matrix that leaves "
            f"{count - len(i)} connected components: give it more neighbours, or all distances as a dense matrix."
        )
    values = np.zeros(len(length)) if weights == "l1" else weigh(length, weights, width, i, j)
    if weights == "distance":
        values = in_units(values, exponent, graph.dtype)
    else:
        positive = graph.data[graph.data > 0]
        values = np.maximum(values, positive.min() if len(positive) else np.finfo(graph.dtype).tiny)
    return with_edges(graph, i, j, values)


def n_components_of(graph: Any, weights: str = "heat") -> int:
    """`n_components` of a graph that needs no check."""
    return components_of(sp.csr_array(graph), weights)[0]


def bridges_between(graph: sp.csr_array, distances: Distances) -> Array:
    """Pairs of rows (m, 2) that `connect_components` would join."""
    count, labels = components_of(graph, "binary")
    i, j, _ = distances.bridges(count, labels)
    return np.column_stack([i, j]).astype(np.int64)


def components_of(graph: sp.csr_array, weights: str) -> tuple[int, Array]:
    if weights != "distance" and len(graph.data) and not graph.data.all():
        graph = graph.copy()
        graph.eliminate_zeros()
    joined = sp.csr_array((np.ones(graph.nnz), graph.indices, graph.indptr), shape=graph.shape)
    count, labels = connected_components(joined, directed=False)
    return int(count), labels
