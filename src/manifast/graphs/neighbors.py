"""Graphs of rows without labels: nearest neighbours, radius, complete, and the graph of sparse codes."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from manifast._linalg.memory import check_room
from manifast._validation import Array, as_matrix, as_positive, in_other_units
from manifast._widths import is_local, relative_lengths
from manifast.graphs.distances import distances_of
from manifast.graphs.rows import as_neighbor_count, as_rows, chunks, in_reach, in_units, unit_rows
from manifast.graphs.weights import check_weights, from_edges, weigh
from manifast.kernels import l1_code, neighbor_graph


def knn_graph(
    X: Any,
    n_neighbors: int = 10,
    *,
    weights: str = "heat",
    beta: float | str = "local",
    mode: str = "union",
    neighbors: tuple[Any, Any] | None = None,
    metric: str = "euclidean",
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
    beta : "local", "mean" or float, default "local"
        Width of the heat weights. "local" is one width per row, exp(-d² / √(β_i β_j)) with β_i a quarter of the mean
        squared distance from row i to its 5 nearest (copies of it do not count; fewer where `neighbors` or a sparse
        matrix of distances hold fewer), which follows the density of the rows; "mean" is the mean squared distance over
        all pairs of rows, or over those that a sparse matrix of distances holds.
    mode : {"union", "mutual"}
        Join two rows where either is among the other's nearest, or only where both are.
    neighbors : (distances, indices), optional
        Lists of shape (n, k), as `manifast.kernels.knn` or any approximate search gives them. A row that lists itself
        gets no self-loop from it.
    metric : {"euclidean", "cosine", "precomputed"}, default "euclidean"
        What d is: the distance between rows, 1 - cos of the angle between them, or an entry of X, which then is the
        matrix of distances (n, n), dense, or sparse with those of the neighbours.
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
    check_weights(weights)
    x, exponent = as_rows(X, min_rows=1 if neighbors is not None else 2), 0
    if neighbors is None:
        x, exponent = in_reach(x, metric, weights, beta)
        beta = in_other_units(beta, 2, exponent)
    among = distances_of(x, metric)
    n = among.n
    if neighbors is not None:
        if not isinstance(neighbors, (tuple, list)) or len(neighbors) != 2:
            raise ValueError(f"neighbors must be a pair (distances, indices). Got {type(neighbors).__name__} instead.")
        distances, indices = as_matrix(neighbors[0], "distances"), neighbors[1]
        if distances.shape[0] != n:
            raise ValueError(f"neighbors must have one row per row of X, {n}. Got {distances.shape[0]} instead.")
        distances = distances.astype(among.dtype, copy=False)
    else:
        k = as_neighbor_count(n_neighbors, "n_neighbors", n - 1, f"{n} rows of X")
        local = weights == "heat" and is_local(beta)
        distances, indices = among.nearest(among.searched_for(k) if local else k, n_threads)
        width = among.heat_width(beta, distances if among.all_known else ()) if weights == "heat" else None
        made = graph_of_lists(distances[:, :k], indices[:, :k], weights, width, mode, n_threads)
        return in_units(made, exponent) if weights == "distance" else made
    width = among.heat_width(beta, distances) if weights == "heat" else None
    return graph_of_lists(distances, indices, weights, width, mode, n_threads)


def graph_of_lists(
    distances: Array, indices: Any, weights: str, width: Any, mode: str = "union", n_threads: int | None = None
) -> sp.csr_array:
    """`neighbor_graph` with one width for all rows, or an array with the root of each row's width."""
    if isinstance(width, np.ndarray):
        found = np.asarray(indices)
        if found.dtype.kind in "iu" and found.shape == distances.shape:
            inside = np.clip(found, 0, len(width) - 1)  # what is outside is refused below
            distances = relative_lengths(distances, width[:, None], width[inside]).astype(distances.dtype)
        width = 1.0
    return neighbor_graph(distances, indices, weights=weights, beta=width, mode=mode, n_threads=n_threads)


def radius_graph(
    X: Any,
    radius: float,
    *,
    weights: str = "heat",
    beta: float | str = "local",
    metric: str = "euclidean",
    n_threads: int | None = None,
) -> sp.csr_array:
    """Graph that joins all rows no further apart than a radius.

    Parameters
    ----------
    X : array of shape (n, p)
        For "precomputed" the matrix of distances (n, n), dense or sparse.
    radius : float
        Largest distance between joined rows, itself included; infinity joins all rows.
    weights, beta, metric, n_threads
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
    check_weights(weights)
    x = as_rows(X) if metric == "precomputed" else as_matrix(X, "X", min_rows=1)
    reach = as_radius(radius)
    x, exponent = in_reach(x, metric, weights, beta)
    among, beta = distances_of(x, metric), in_other_units(beta, 2, exponent)
    width = among.heat_width(beta, ()) if weights == "heat" else 1.0
    i, j, length = among.pairs_within(in_other_units(reach, 1, exponent), n_threads)
    made = from_edges(among.n, i, j, weigh(length, weights, width, i, j).astype(among.dtype))
    return in_units(made, exponent) if weights == "distance" else made


def as_radius(value: Any) -> float:
    """A positive number, which may be infinite."""
    return float("inf") if isinstance(value, float) and value == float("inf") else as_positive(value, "radius")


def full_graph(
    X: Any,
    *,
    weights: str = "heat",
    beta: float | str = "mean",
    metric: str = "euclidean",
    n_threads: int | None = None,
) -> Array:
    """Complete graph, as a dense matrix.

    Parameters
    ----------
    X : array of shape (n, p)
        For "precomputed" the matrix of distances (n, n).
    beta : "mean" or float, default "mean"
        Width of the heat weights; "mean" is the mean squared distance over all pairs of rows.
    weights, metric, n_threads
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
    check_weights(weights)
    x = as_matrix(X, "X", min_rows=1)
    check_room(x.shape[0], 1, "use knn_graph", lapack=False)
    x, exponent = in_reach(x, metric, weights, beta)
    among, beta = distances_of(x, metric), in_other_units(beta, 2, exponent)
    made = among.complete(weights, among.heat_width(beta) if weights == "heat" else 1.0, n_threads)
    return np.asarray(in_units(made, exponent)) if weights == "distance" else made


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
