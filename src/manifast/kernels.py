"""The C kernels for users: validation, dtype and threads, then one call into the core.

Nothing here imports scikit-learn. All kernels take float32 and float64 (float32 stays float32), any memory layout,
and `n_threads=None` for what the process may use. Results are bit-identical for any number of threads, and a row's
result does not depend on the other rows of its batch.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from manifast._clusters import all_neighbors, few_rows
from manifast._core import graph as _graph
from manifast._kernels import (
    NOT_SYMMETRIC,
    as_graph,
    csr,
    csr_parts,
    describe,
    distances_between,
    explain_flaws,
    index_dtype,
    l1_codes,
    rbf_product,
    search,
    search_exponent,
    team,
)
from manifast._threads import kernel_threads
from manifast._validation import Array, as_matrix, as_number, as_pair, as_positive, contiguous, refuse_masked
from manifast._warnings import warn

__all__ = [
    "approximate_knn",
    "gaussian",
    "knn",
    "l1_code",
    "laplacian",
    "neighbor_graph",
    "rbf_apply",
    "sq_distances",
]


def sq_distances(X: Any, Y: Any = None, *, out: Array | None = None, n_threads: int | None = None) -> Array:
    """Squared Euclidean distances between the rows of X and the rows of Y.

    Parameters
    ----------
    X : array of shape (n, p)
    Y : array of shape (m, p), optional
        X itself where omitted; then the result is exactly symmetric, and for more than a few features only half of it
        is computed.
    out : array of shape (n, m), optional
        C-contiguous and writable, of the result's dtype; it is filled and returned.
    n_threads : int, optional

    Returns
    -------
    array of shape (n, m)
        Never negative, exactly 0 for identical rows, exact for integer-valued data of moderate size. An offset common
        to all rows costs no accuracy, and pairs much closer than the data's extent are computed from differences.

    Examples
    --------
    >>> import numpy as np
    >>> from manifast.kernels import sq_distances
    >>> sq_distances(np.array([[0.0, 0.0], [3.0, 4.0]]))
    array([[ 0., 25.],
           [25.,  0.]])
    """
    return _distance_matrix(X, Y, 1.0, False, out, n_threads)


def gaussian(X: Any, Y: Any = None, *, sigma: float, n_threads: int | None = None) -> Array:
    """Gaussian kernel matrix exp(-|x - y|² / sigma²).

    Parameters
    ----------
    X : array of shape (n, p)
    Y : array of shape (m, p), optional
        X itself where omitted.
    sigma : float
        Width, in the units of the data.
    n_threads : int, optional

    Returns
    -------
    array of shape (n, m)

    Examples
    --------
    >>> from manifast.kernels import gaussian
    >>> gaussian([[0.0], [2.0]], sigma=2.0).round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    """
    return _distance_matrix(X, Y, as_positive(sigma, "sigma"), True, None, n_threads)


def _distance_matrix(X: Any, Y: Any, sigma: float, kernel: bool, out: Array | None, n_threads: int | None) -> Array:
    x, y = (as_matrix(X, "X"), None) if Y is None else as_pair(X, Y, ("X", "Y"))
    shape = (x.shape[0], x.shape[0] if y is None else y.shape[0])
    if out is None:
        pass
    elif not isinstance(out, np.ndarray) or out.shape != shape or out.dtype != x.dtype:
        raise ValueError(f"out must be an array of shape {shape} and dtype {x.dtype}. Got {describe(out)} instead.")
    elif not out.flags.carray:
        raise ValueError("out must be C-contiguous, aligned and writable. Got an array that is not.")
    elif np.may_share_memory(out, x) or (y is not None and np.may_share_memory(out, y)):
        raise ValueError("out must not share memory with X or Y. Got overlapping arrays.")
    return distances_between(x, y, sigma, kernel, out, n_threads)


def rbf_apply(X: Any, centers: Any, coef: Any, *, sigma: float, n_threads: int | None = None) -> Array:
    """Gaussian kernel times coefficients: ``gaussian(X, centers, sigma=sigma) @ coef`` without the kernel matrix.

    Parameters
    ----------
    X : array of shape (n, p)
    centers : array of shape (m, p)
    coef : array of shape (m, d) or (m,)
    sigma : float
    n_threads : int, optional

    Returns
    -------
    array of shape (n, d) or (n,)

    Examples
    --------
    >>> from manifast.kernels import rbf_apply
    >>> rbf_apply([[0.0]], [[0.0], [1.0]], [[2.0], [1.0]], sigma=1.0).round(4)
    array([[2.3679]])
    """
    x, c = as_pair(X, centers, ("X", "centers"))
    vector = np.ndim(coef) == 1
    refuse_masked(coef, "coef")
    w = as_matrix(np.asarray(coef)[:, None] if vector else coef, "coef")
    if w.shape[0] != c.shape[0]:
        raise ValueError(f"coef must have one row per center, {c.shape[0]}. Got shape {np.shape(coef)} instead.")
    out = rbf_product(x, c, w, as_positive(sigma, "sigma"), n_threads)
    return out[:, 0] if vector else out


def knn(
    X: Any,
    k: int,
    *,
    queries: Any = None,
    algorithm: str = "auto",
    recall: float = 0.95,
    random_state: int = 0,
    n_threads: int | None = None,
) -> tuple[Array, Array]:
    """The k nearest neighbours by Euclidean distance: exact, or by clusters where that is asked for.

    Parameters
    ----------
    X : array of shape (n, p)
        The points among which neighbours are sought.
    k : int
        Neighbours per row: at most n - 1, or n with queries.
    queries : array of shape (m, p), optional
        Rows to find neighbours for; X itself where omitted, and then a point is not its own neighbour.
    algorithm : {"auto", "brute", "tree", "clusters"}
        Brute force, or a kd-tree, which wins for few features. Both give the same answer, to the last bit; "auto" is
        one of the two. "clusters" is approximate, for many rows of X among themselves: see `approximate_knn`.
    recall, random_state
        Of "clusters" only, as in `approximate_knn`.
    n_threads : int, optional

    Returns
    -------
    distances : array of shape (m, k)
        Ascending.
    indices : int64 array of shape (m, k)
        Equal distances come in the order of their indices. Ranks follow distances taken in double precision, also
        for float32 data.

    Examples
    --------
    >>> from manifast.kernels import knn
    >>> distances, indices = knn([[0.0], [1.0], [3.0]], 1)
    >>> distances.ravel(), indices.ravel()
    (array([1., 1., 2.]), array([1, 0, 1]))
    """
    if algorithm not in ("auto", "brute", "tree", "clusters"):
        raise ValueError(f"algorithm must be 'auto', 'brute', 'tree' or 'clusters'. Got {algorithm!r} instead.")
    if algorithm == "clusters":
        if queries is not None:
            raise ValueError("queries must be None for algorithm='clusters', which finds neighbours among X. Got rows.")
        return approximate_knn(X, k, recall=recall, random_state=random_state, n_threads=n_threads)[:2]
    if queries is None:
        x, q = as_matrix(X, "X", min_rows=2), None
        most = x.shape[0] - 1
    else:
        x, q = as_pair(X, queries, ("X", "queries"))
        most = x.shape[0]
    _check_neighbor_count(x, k, most)
    return search(x, q, int(k), algorithm, n_threads)


def approximate_knn(
    X: Any, k: int, *, recall: float = 0.95, random_state: int = 0, n_threads: int | None = None
) -> tuple[Array, Array, float]:
    """Most of the k nearest others of every row, by overlapping clusters, and how many of them were found.

    Rows are parted into clusters, and those of a cluster are compared with each other. The recall, the share of the
    true neighbours that are listed, is estimated on 500 rows against the exact search; where it is less than wanted the
    lists are improved by neighbours of neighbours and by further partitions. For data on or near a manifold, or in
    groups, that is ten times faster than the exact search of 100,000 rows and more; data without structure
    end with a warning.

    Parameters
    ----------
    X : array of shape (n, p)
    k : int
        Neighbours per row, at most n - 1.
    recall : float, default 0.95
        Wanted share of the true neighbours, above 0 and at most 1.
    random_state : int, default 0
        Seed of the partition and of the rows that recall is estimated on. The result depends on it and on X alone.
    n_threads : int, optional

    Returns
    -------
    distances : array of shape (n, k)
        Ascending, exact for the pairs that are listed.
    indices : int64 array of shape (n, k)
        Equal distances come in the order of their indices.
    recall : float
        The estimate; 1.0 for up to some thousand rows, which are searched exactly.

    Warns
    -----
    UserWarning
        Where the wanted recall was not reached.

    Examples
    --------
    >>> from manifast.kernels import approximate_knn
    >>> distances, indices, recall = approximate_knn([[0.0], [1.0], [3.0]], 1)
    >>> distances.ravel(), indices.ravel(), recall
    (array([1., 1., 2.]), array([1, 0, 1]), 1.0)
    """
    x = as_matrix(X, "X", min_rows=2)
    _check_neighbor_count(x, k, x.shape[0] - 1)
    wanted = as_positive(recall, "recall")
    if wanted > 1:
        raise ValueError(f"recall must be a number above 0 and at most 1. Got {recall!r} instead.")
    if not isinstance(random_state, Integral) or isinstance(random_state, bool) or random_state < 0:
        raise ValueError(f"random_state must be an integer of at least 0. Got {random_state!r} instead.")
    if few_rows(x.shape[0], int(k)):
        return *search(x, None, int(k), "auto", n_threads), 1.0
    exponent = search_exponent(x)
    scaled = np.ldexp(x, -exponent) if exponent else x
    with np.errstate(over="ignore", under="ignore"), kernel_threads(n_threads) as threads:
        distances, indices, reached = all_neighbors(scaled, int(k), wanted, int(random_state), threads)
        if exponent:
            distances = np.ldexp(distances, exponent)
    if reached < wanted:
        warn(
            f"the search by clusters found about {100 * reached:.0f} % of the {k} nearest neighbours, less than the "
            f"{100 * wanted:.0f} % that were wanted: the rows fall into no groups. Use the exact search, or fewer "
            "features."
        )
    return distances, indices, reached


def _check_neighbor_count(x: Array, k: Any, most: int) -> None:
    if not isinstance(k, Integral) or isinstance(k, bool) or not 1 <= int(k) <= most:
        raise ValueError(f"k must be an integer from 1 to {most} for {x.shape[0]} rows of X. Got {k!r} instead.")
    if x.shape[0] >= 2**31:
        raise ValueError(f"X must have fewer than 2**31 rows. Got {x.shape[0]} instead.")


def l1_code(
    X: Any,
    dictionary: Any,
    *,
    errors: bool = True,
    lam: float = 0.0,
    exclude: Any = None,
    tol: float = 1e-9,
    n_threads: int | None = None,
) -> tuple[sp.csr_array, Array | None]:
    """Sparse codes of the rows of X in the rows of a dictionary, by an exact homotopy.

    Minimises ``½|x - a D - e|² + lam (|a|₁ + |e|₁)`` for every row x.

    Parameters
    ----------
    X : array of shape (n, p)
    dictionary : array of shape (atoms, p)
        Rows are atoms. Unit rows, here and in X, make the penalty treat all atoms and errors alike.
    errors : bool, default True
        Whether the sparse error e is part of the model. Without it: ``½|x - a D|² + lam |a|₁``.
    lam : float, default 0.0
        Penalty, absolute. 0 is its limit from above, basis pursuit: the smallest ``|a|₁ + |e|₁`` with
        ``a D + e = x``; without errors, a row that the dictionary cannot represent gets the smallest ``|a|₁`` among
        its least-squares solutions, and a warning.
    exclude : array of n integers, optional
        The atom that row i may not use, -1 for none.
    tol : float, default 1e-9
        Largest relative duality gap and residual (relative to ``|x|``) a code may have without a warning. Codes are
        normally accurate to about 1e-14.
    n_threads : int, optional

    Returns
    -------
    codes : CSR array of shape (n, atoms)
    e : array of shape (n, p), or None without errors

    Examples
    --------
    >>> import numpy as np
    >>> from manifast.kernels import l1_code
    >>> codes, e = l1_code([[1.0, 1.0, 9.0, 1.0]], [[1.0, 1.0, 1.0, 1.0], [1.0, -1.0, 0.0, 0.0]])
    >>> codes.toarray(), e
    (array([[1., 0.]]), array([[0., 0., 8., 0.]]))
    """
    x, d = as_pair(X, dictionary, ("X", "dictionary"))
    if d.shape[0] == 0:
        raise ValueError(f"dictionary must have at least 1 row. Got shape {d.shape} instead.")
    penalty = as_number(lam, "lam", minimum=0.0)
    tolerance = as_positive(tol, "tol")
    skip = None if exclude is None else _as_exclude(exclude, x.shape[0], d.shape[0])
    return l1_codes(x, d, errors=errors, lam=penalty, skip=skip, tolerance=tolerance, n_threads=n_threads)


def _as_exclude(exclude: Any, n: int, atoms: int) -> Array:
    array = np.asarray(exclude)
    if array.shape != (n,) or array.dtype.kind not in "iu":
        raise ValueError(f"exclude must hold {n} integers, one per row of X. Got {describe(array)} instead.")
    if n and not (array.min() >= -1 and array.max() < atoms):
        raise ValueError(
            f"exclude must hold atom numbers from 0 to {atoms - 1}, or -1. Got {array.min()} to {array.max()} instead."
        )
    return contiguous(array, np.int64)


def neighbor_graph(
    distances: Any,
    indices: Any,
    *,
    weights: str = "heat",
    beta: float | None = None,
    mode: str = "union",
    n_threads: int | None = None,
) -> sp.csr_array:
    """Symmetric weighted graph from lists of neighbours.

    Parameters
    ----------
    distances : array of shape (n, k)
        Distances to the neighbours, as `knn` returns them. Not negative.
    indices : integer array of shape (n, k)
        The neighbours, numbers from 0 to n - 1. A row that lists itself gets no self-loop from it.
    weights : {"heat", "binary", "distance"}
        What an edge of length d weighs: exp(-d² / beta), 1, or d itself.
    beta : float
        Width of the heat weights, in squared units of the distances; required for them and only for them.
    mode : {"union", "mutual"}
        Join i and j where either lists the other, or only where both do.
    n_threads : int, optional

    Returns
    -------
    scipy.sparse.csr_array of shape (n, n)
        Exactly symmetric, columns sorted, nothing on the diagonal. Where a pair is listed with several distances the
        smallest counts. Edges stay stored where their weight is 0 (a distance of 0, or exp that has faded to 0).

    Examples
    --------
    >>> from manifast.kernels import neighbor_graph
    >>> neighbor_graph([[1.0], [1.0], [2.0]], [[1], [0], [1]], weights="distance").toarray()
    array([[0., 1., 0.],
           [1., 0., 2.],
           [0., 2., 0.]])
    """
    d = as_matrix(distances, "distances")
    refuse_masked(indices, "indices")
    neighbors = np.asarray(indices)
    if neighbors.dtype.kind not in "iu":
        raise ValueError(f"indices must be integers. Got dtype {neighbors.dtype} instead.")
    if neighbors.shape != d.shape:
        raise ValueError(f"indices must have the shape of distances, {d.shape}. Got {neighbors.shape} instead.")
    if weights not in ("heat", "binary", "distance"):
        raise ValueError(f"weights must be 'heat', 'binary' or 'distance'. Got {weights!r} instead.")
    if mode not in ("union", "mutual"):
        raise ValueError(f"mode must be 'union' or 'mutual'. Got {mode!r} instead.")
    if weights == "heat":
        d, width = _unit_beta(d, as_positive(beta, "beta"))
    elif beta is not None:
        raise ValueError(f"beta must be None for {weights} weights. Got {beta!r} instead.")
    else:
        width = 1.0
    n, k = d.shape
    wide = index_dtype(max(n, 2 * n * k)) is np.int64
    with kernel_threads(team(n_threads, 100 * n * k)) as threads:
        made = _graph.neighbor_graph(
            d,
            contiguous(neighbors, np.int64),
            mode == "mutual",
            ("heat", "binary", "distance").index(weights),
            width,
            wide,
            threads,
        )
    if isinstance(made, int):
        if (d[made] < 0).any():
            raise ValueError(f"distances must not be negative. Got {d[made].min()} in row {made}.")
        raise ValueError(f"indices must be between 0 and n - 1 = {n - 1}. Got {neighbors[made]} in row {made}.")
    return csr(made, n)


def laplacian(W: Any, *, normalization: str | None = None, n_threads: int | None = None) -> tuple[sp.csr_array, Array]:
    """Laplacian of a symmetric weighted graph, and its degrees.

    Parameters
    ----------
    W : sparse or dense matrix of shape (n, n)
        Symmetric, with finite weights that are not negative. Asymmetry of the size of rounding, 1e-10 of the largest
        weight (1e-5 in float32), is let through.
    normalization : {None, "sym", "rw"}
        D - W, I - D^(-1/2) W D^(-1/2), or I - D^(-1) W, with the degrees D.
    n_threads : int, optional

    Returns
    -------
    laplacian : scipy.sparse.csr_array of shape (n, n)
        float32 for a float32 graph, else float64. Columns are sorted and the diagonal is always stored.
    degrees : array of shape (n,)
        Row sums of W without its diagonal.

    Notes
    -----
    As in `scipy.sparse.csgraph.laplacian`, self-loops (the diagonal of W) count nowhere, and the row of a node
    without edges is zero, its diagonal entry included, whatever the normalization. Degrees are those of the graph for
    all three normalizations.

    Examples
    --------
    >>> from manifast.kernels import laplacian
    >>> L, degrees = laplacian([[0.0, 2.0, 0.0], [2.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    >>> L.toarray()
    array([[ 2., -2.,  0.],
           [-2.,  3., -1.],
           [ 0., -1.,  1.]])
    >>> degrees
    array([2., 3., 1.])
    """
    if normalization not in (None, "sym", "rw"):
        raise ValueError(f"normalization must be None, 'sym' or 'rw'. Got {normalization!r} instead.")
    kind = (None, "sym", "rw").index(normalization)
    with kernel_threads(n_threads) as threads:
        parts = csr_parts(W)
        made = None if parts is None else _graph.laplacian(*parts, kind, 0, threads)
        if made is None or isinstance(made, int):  # not in order, or flawed: as_graph mends the one and names the other
            graph = as_graph(W, "W")
            n = graph.shape[0]
            if n == 0 or graph.nnz == 0:
                zeros = np.zeros(n, dtype=graph.dtype)
                return csr((np.arange(n + 1, dtype=np.int32), np.arange(n, dtype=np.int32), zeros), n), zeros.copy()
            index = index_dtype(n + graph.nnz)
            indptr, columns = (contiguous(a, index) for a in (graph.indptr, graph.indices))
            values = contiguous(graph.data)
            made = _graph.laplacian(indptr, columns, values, kind, 0, threads)
            if isinstance(made, int):
                explain_flaws(graph, made)
                made = _graph.laplacian(indptr, columns, values, kind, NOT_SYMMETRIC, threads)
    assert not isinstance(made, int)
    return csr(made[:3], len(made[3])), made[3].astype(made[2].dtype, copy=False)


def _unit_beta(d: Array, beta: float) -> tuple[Array, float]:
    """Beta for the core; where its size is out of the ordinary the distances are divided by its root instead."""
    tiny, huge = (1e-30, 1e30) if d.dtype == np.float32 else (1e-280, 1e280)
    if tiny < beta < huge:
        return d, beta
    with np.errstate(over="ignore", under="ignore"):
        return np.minimum(d / np.sqrt(beta), np.finfo(d.dtype).max).astype(d.dtype, copy=False), 1.0
