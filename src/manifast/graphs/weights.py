"""What edges weigh, and symmetric graphs from edges or from a matrix that somebody gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from manifast._kernels import BAD_WEIGHT, NOT_SYMMETRIC, as_graph, explain_flaws
from manifast._validation import Array, is_sparse
from manifast._widths import relative_lengths
from manifast.graphs.rows import scale_of
from manifast.kernels import gaussian, sq_distances


def check_weights(weights: str) -> None:
    if weights not in ("heat", "binary", "distance"):
        raise ValueError(f"weights must be 'heat', 'binary' or 'distance'. Got {weights!r} instead.")


def weigh(length: Array, weights: str, beta: Any, i: Any = None, j: Any = None) -> Array:
    """Weights of edges between rows i and j; an array `beta` holds the root of each row's width."""
    if weights == "distance":
        return length
    if weights == "binary":
        return np.ones_like(length)
    if isinstance(beta, np.ndarray):
        length, beta = relative_lengths(length, beta[i], beta[j]), 1.0
    with np.errstate(over="ignore", under="ignore"):
        ratio = length / np.sqrt(beta)
        heat: Array = np.exp(-ratio * ratio)
    return heat


def complete_graph(x: Array, weights: str, beta: float, n_threads: int | None) -> Array:
    """Weights of all pairs of rows, zero on the diagonal."""
    n = x.shape[0]
    out: Array
    if weights == "heat":
        out = gaussian(x, sigma=float(np.sqrt(beta)), n_threads=n_threads)
    elif weights == "binary":
        out = np.ones((n, n), dtype=x.dtype)
    else:
        exponent = scale_of(x)
        out = sq_distances(np.ldexp(x, -exponent), n_threads=n_threads)
        np.sqrt(out, out=out)
        if exponent:
            with np.errstate(over="ignore", under="ignore"):
                out = np.ldexp(out, exponent)
    np.fill_diagonal(out, 0)
    return out


def from_edges(n: int, i: Array, j: Array, values: Array) -> sp.csr_array:
    """Symmetric CSR from edges, each given once; zeros stay stored."""
    data = np.concatenate([values, values])
    pairs = np.concatenate([i, j]), np.concatenate([j, i])
    graph = sp.csr_array(sp.coo_array((data, pairs), shape=(n, n)))
    graph.sort_indices()
    return graph


def with_edges(graph: sp.csr_array, i: Array, j: Array, values: Array) -> sp.csr_array:
    """A symmetric graph with new edges."""
    own = graph.tocoo()
    rows, columns = (np.concatenate(parts) for parts in ((own.row, i, j), (own.col, j, i)))
    data = np.concatenate([own.data, values, values]).astype(graph.dtype)
    joined = sp.csr_array(sp.coo_array((data, (rows, columns)), shape=graph.shape))  # keeps stored zeros
    joined.sort_indices()
    return joined


def given_graph(W: Any, n: int, name: str = "graph") -> Any:
    """A user's own graph of n rows, checked: symmetric with weights that are not negative; dense stays dense."""
    graph = as_symmetric(W, name)
    if graph.shape[0] != n:
        raise ValueError(f"{name} must be a matrix of shape ({n}, {n}) for {n} rows of X. Got {graph.shape} instead.")
    return graph if is_sparse(W) else graph.toarray()


def as_symmetric(W: Any, name: str = "W") -> sp.csr_array:
    graph = as_graph(W, name)
    if not isinstance(graph, sp.csr_array):
        graph = sp.csr_array(graph)
    if graph.shape[0] == 0:
        raise ValueError(f"{name} must have at least 1 row. Got shape (0, 0) instead.")
    if not np.isfinite(graph.data).all() or (graph.data < 0).any():
        explain_flaws(graph, BAD_WEIGHT, name)
    turned = sp.csr_array(graph.T.tocsr())
    if graph.nnz and not all(
        np.array_equal(getattr(graph, name), getattr(turned, name)) for name in ("indptr", "indices", "data")
    ):
        explain_flaws(graph, NOT_SYMMETRIC, name)
    return graph
