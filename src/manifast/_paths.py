"""Distances along a graph: shortest paths between its nodes, and what new points make of them.

All functions are bit-identical for any number of threads, and a row's result does not depend on the other rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from manifast._core import paths as _core
from manifast._kernels import as_graph, describe
from manifast._threads import kernel_threads
from manifast._validation import Array, as_matrix, contiguous

_LINE = 64  # bytes


def shortest_paths(W: Any, sources: Any = None, *, out: Array | None = None, n_threads: int | None = None) -> Array:
    """Lengths of the shortest paths from some nodes of a graph to all of them.

    Parameters
    ----------
    W : sparse or dense matrix of shape (n, n)
        Symmetric, with the lengths of the edges: finite and not negative. In a sparse matrix a stored 0 is an edge of
        length 0; what is not stored, and a 0 in a dense matrix, is no edge. The diagonal counts nowhere.
    sources : array of m integers, optional
        Nodes from which paths start, in any order, also repeated; all nodes where omitted.
    out : float64 array of shape (m, n), optional
        C-contiguous and writable; it is filled and returned.
    n_threads : int, optional

    Returns
    -------
    float64 array of shape (m, n)
        Infinity where there is no path. Exactly the values of Dijkstra's algorithm in double precision: the smallest
        sum of lengths, added in order from the source on.

    Notes
    -----
    The way back adds the same lengths from the other end, so the matrix of all pairs is symmetric but for rounding,
    at most (edges of the path) · 2⁻⁵² relative.

    Examples
    --------
    >>> from manifast._paths import shortest_paths
    >>> shortest_paths([[0.0, 1.0, 5.0], [1.0, 0.0, 2.0], [5.0, 2.0, 0.0]])
    array([[0., 1., 3.],
           [1., 0., 2.],
           [3., 2., 0.]])
    """
    graph = _as_lengths(W)
    n = graph.shape[0]
    if sources is None:
        nodes = np.arange(n, dtype=np.int64)
    else:
        given = np.asarray(sources)
        if given.ndim != 1 or (given.dtype.kind not in "iu" and given.size):
            raise ValueError(f"sources must be a list of integers. Got {describe(given)} instead.")
        if given.size and not (given.min() >= 0 and given.max() < n):
            raise ValueError(
                f"sources must be between 0 and n - 1 = {n - 1}. Got {given.min()} to {given.max()} instead."
            )
        nodes = contiguous(given, np.int64)
    shape = (len(nodes), n)
    if out is None:
        out = on_cache_lines(shape)
    elif not isinstance(out, np.ndarray) or out.shape != shape or out.dtype != np.float64:
        raise ValueError(f"out must be an array of shape {shape} and dtype float64. Got {describe(out)} instead.")
    elif not (out.flags.carray and out.dtype.isnative):
        raise ValueError("out must be C-contiguous, aligned and writable. Got an array that is not.")
    elif any(np.may_share_memory(out, a) for a in (graph.data, graph.indices, graph.indptr, nodes)):
        raise ValueError("out must not share memory with W or sources. Got overlapping arrays.")
    with kernel_threads(n_threads) as threads:
        _core.shortest_paths(
            contiguous(graph.indptr, np.int64),
            contiguous(graph.indices, np.int32),
            contiguous(graph.data, np.float64),
            nodes,
            out,
            threads,
        )
    return out


def on_cache_lines(shape: tuple[int, int]) -> Array:
    """Room for a matrix that begins on a cache line: maps that read it again and again are a tenth faster."""
    size = 8 * shape[0] * shape[1]
    room = np.empty(size + _LINE, np.uint8)
    begin = -room.ctypes.data % _LINE
    return room[begin : begin + size].view(np.float64).reshape(shape)


def geodesic_rows(distances: Any, neighbors: Any, geodesics: Any, *, n_threads: int | None = None) -> Array:
    """Geodesic distances from new points: over the neighbour that makes the way the shortest.

    ``out[i, :] = min_j (distances[i, j] + geodesics[neighbors[i, j], :])``

    Parameters
    ----------
    distances : array of shape (m, k)
        From each new point to its k neighbours.
    neighbors : integer array of shape (m, k)
        Rows of geodesics.
    geodesics : array of shape (n, L)
        From each known point to L others. May hold infinity.
    n_threads : int, optional

    Returns
    -------
    array of shape (m, L)
        In the dtype of distances, computed in double.

    Examples
    --------
    >>> from manifast._paths import geodesic_rows
    >>> geodesic_rows([[1.0, 2.0]], [[0, 1]], [[0.0, 5.0], [5.0, 0.0]])
    array([[1., 2.]])
    """
    d, indices, g, dtype = _as_ways(distances, neighbors, geodesics)
    out = np.empty((d.shape[0], g.shape[1]), dtype=dtype)
    with kernel_threads(n_threads) as threads:
        _core.geodesic_rows(d, indices, g, out, threads)
    return out


def landmark_map(
    distances: Any,
    neighbors: Any,
    geodesics: Any,
    mean_sq: Any,
    projection: Any,
    offset: Any,
    *,
    n_threads: int | None = None,
) -> Array:
    """Places new points by their geodesic distances to landmarks.

    ``-0.5 * (delta**2 - mean_sq) @ projection + offset`` with the rows delta of `geodesic_rows`, never stored whole.

    Parameters
    ----------
    distances, neighbors, geodesics
        As in `geodesic_rows`; the L columns of geodesics are the landmarks.
    mean_sq : array of shape (L,)
        What is taken off the squared distances: their means over the known points.
    projection : array of shape (L, d)
    offset : array of shape (d,)
    n_threads : int, optional

    Returns
    -------
    array of shape (m, d)
        In the dtype of distances, computed in double.

    Examples
    --------
    >>> from manifast._paths import landmark_map
    >>> landmark_map([[1.0, 2.0]], [[0, 1]], [[0.0, 5.0], [5.0, 0.0]], [1.0, 1.0], [[1.0], [2.0]], [10.0])
    array([[7.]])
    """
    d, indices, g, dtype = _as_ways(distances, neighbors, geodesics)
    means = as_matrix(np.reshape(mean_sq, (1, -1)), "mean_sq", dtype=np.float64, columns=g.shape[1])[0]
    p = as_matrix(projection, "projection", dtype=np.float64)
    if p.shape[0] != g.shape[1]:
        raise ValueError(
            f"projection must have one row per column of geodesics, {g.shape[1]}. Got shape {p.shape} instead."
        )
    b = as_matrix(np.reshape(offset, (1, -1)), "offset", dtype=np.float64, columns=p.shape[1])[0]
    out = np.empty((d.shape[0], p.shape[1]))
    with kernel_threads(n_threads) as threads:
        _core.landmark_map(d, indices, g, means, p, b, out, threads)
    return out.astype(dtype, copy=False)


def _as_lengths(W: Any) -> sp.csr_array:
    """A symmetric graph of edge lengths in canonical form; of two lengths that differ by rounding the smaller."""
    graph = as_graph(W, "W")
    n = graph.shape[0]
    if n >= 2**31:
        raise ValueError(f"W must have fewer than 2**31 rows. Got {n} instead.")
    indptr, indices, data = graph.indptr, graph.indices, graph.data
    if len(data) and not (data.min() >= 0 and np.isfinite(data.max())):
        raise ValueError("W must have finite lengths that are not negative. Got NaN, infinity or a negative length.")
    turned = graph.T.tocsr()  # by counting: its columns come sorted
    if not (np.array_equal(indptr, turned.indptr) and np.array_equal(indices, turned.indices)):
        raise ValueError("W must be symmetric. Got an edge (i, j) without an edge (j, i).")
    if np.array_equal(data, turned.data):
        return graph
    largest = float(np.abs(data - turned.data).max())
    if largest > (1e-5 if data.dtype == np.float32 else 1e-10) * float(data.max()):
        raise ValueError(f"W must be symmetric. Got entries (i, j) and (j, i) that differ by up to {largest:.3g}.")
    return sp.csr_array((np.minimum(data, turned.data), indices, indptr), shape=(n, n))


def _as_ways(distances: Any, neighbors: Any, geodesics: Any) -> tuple[Array, Array, Array, Any]:
    """Distances in double, valid int64 neighbours, geodesics in a dtype of the core, and the dtype to return."""
    d = as_matrix(distances, "distances")
    indices = np.asarray(neighbors)
    if indices.dtype.kind not in "iu":
        raise ValueError(f"neighbors must be integers. Got dtype {indices.dtype} instead.")
    if indices.shape != d.shape:
        raise ValueError(f"neighbors must have the shape of distances, {d.shape}. Got {indices.shape} instead.")
    g = np.asarray(geodesics)
    if g.ndim != 2 or g.dtype.kind not in "fiub":
        raise ValueError(f"geodesics must be a matrix of real numbers. Got {describe(g)} instead.")
    narrow = g.dtype.kind == "f" and g.dtype.itemsize <= 4
    g = contiguous(g, np.float32 if narrow else np.float64)
    if indices.size and not (indices.min() >= 0 and indices.max() < g.shape[0]):
        raise ValueError(
            f"neighbors must be rows of geodesics, 0 to {g.shape[0] - 1}. "
            f"Got {indices.min()} to {indices.max()} instead."
        )
    return d.astype(np.float64, copy=False), contiguous(indices, np.int64), g, d.dtype
