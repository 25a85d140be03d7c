"""Local geometry: barycentric weights, their map for new points, and matrices that sum over neighbourhoods.

The matrices are those of LLE and modified LLE, of LTSA and local regression, and of Hessian eigenmaps.

As in `manifast.kernels`: any memory layout, bits that do not depend on threads or batch, no scikit-learn. All is
computed in double precision. Neighbours come as lists of row numbers, as `manifast.kernels.knn` returns them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from manifast._core import local as _local
from manifast._kernels import csr, of_one_dtype
from manifast._threads import kernel_threads
from manifast._validation import Array, as_count, as_matrix, as_number, as_pair, as_positive, contiguous

__all__ = [
    "alignment_matrix",
    "barycenter_weights",
    "hessian_matrix",
    "lle_matrix",
    "modified_lle_matrix",
    "reconstruct",
]


def barycenter_weights(
    X: Any, neighbors: Any, *, queries: Any = None, reg: float = 1e-3, n_threads: int | None = None
) -> Array:
    """Weights that best reconstruct each row from its neighbours.

    With the Gram matrix G of the differences to the neighbours, the weights solve ``(G + reg tr(G) I) w = 1`` and are
    brought to the sum 1.

    Parameters
    ----------
    X : array of shape (n, p)
    neighbors : integer array of shape (m, k)
        Rows of X, for each query.
    queries : array of shape (m, p), optional
        X itself where omitted.
    reg : float, default 1e-3
        Share of the trace added to the diagonal. Below 1e-14, which is rounding, it acts as 1e-14.
    n_threads : int, optional

    Returns
    -------
    array of shape (m, k)
        In the dtype of the data. Equal weights where all neighbours coincide with the row.

    Examples
    --------
    >>> from manifast._local import barycenter_weights
    >>> barycenter_weights([[0.0], [1.0], [3.0]], [[1, 2]], queries=[[1.5]], reg=1e-9).round(6)
    array([[0.75, 0.25]])
    """
    if queries is None:
        x, q = as_matrix(X, "X", min_rows=1), None
    else:
        x, q = as_pair(X, queries, ("X", "queries"))
    lists = _as_lists(neighbors, "neighbors", x.shape[0], rows=x.shape[0] if q is None else q.shape[0])
    ridge = as_positive(reg, "reg")
    out = np.empty(lists.shape, dtype=x.dtype)
    with kernel_threads(n_threads) as threads:
        _local.barycenter_weights(x, q, lists, ridge, out, threads)
    return out


def reconstruct(
    X: Any, Y: Any, queries: Any, neighbors: Any, *, reg: float = 1e-3, n_threads: int | None = None
) -> Array:
    """Map new points by their neighbours: the rows of Y in the barycentric weights of the queries in X.

    Parameters
    ----------
    X : array of shape (n, p)
    Y : array of shape (n, d)
        What the rows of X are mapped to.
    queries : array of shape (m, p)
    neighbors : integer array of shape (m, k)
        Rows of X, for each query.
    reg : float, default 1e-3
        As in `barycenter_weights`.
    n_threads : int, optional

    Returns
    -------
    array of shape (m, d)
        float32 where X, Y and queries are. A row does not depend on the other rows, down to its bits.

    Examples
    --------
    >>> from manifast._local import reconstruct
    >>> reconstruct([[0.0], [1.0], [3.0]], [[0.0], [10.0], [30.0]], [[1.5]], [[1, 2]], reg=1e-9).round(6)
    array([[15.]])
    """
    x, q = as_pair(X, queries, ("X", "queries"))
    y = as_matrix(Y, "Y")
    if y.shape[0] != x.shape[0]:
        raise ValueError(f"Y must have one row per row of X, {x.shape[0]}. Got shape {y.shape} instead.")
    lists = _as_lists(neighbors, "neighbors", x.shape[0], rows=q.shape[0])
    return _reconstruct(x, y, q, lists, as_positive(reg, "reg"), n_threads)


def _reconstruct(x: Array, y: Array, q: Array, lists: Array, reg: float, n_threads: int | None = None) -> Array:
    """The same for arrays that were checked before."""
    x, y, q = of_one_dtype(x, y, q)
    out = np.empty((q.shape[0], y.shape[1]), dtype=x.dtype)
    with kernel_threads(n_threads) as threads:
        _local.reconstruct(x, y, q, lists, reg, out, threads)
    return out


def lle_matrix(X: Any, neighbors: Any, *, reg: float = 1e-3, n_threads: int | None = None) -> sp.csr_array:
    """The matrix of locally linear embedding, ``(I - W)ᵀ(I - W)`` with barycentric weights W.

    Parameters
    ----------
    X : array of shape (n, p)
    neighbors : integer array of shape (n, k)
        No row may name itself, or a neighbour twice.
    reg : float, default 1e-3
        As in `barycenter_weights`.
    n_threads : int, optional

    Returns
    -------
    scipy.sparse.csr_array of shape (n, n)
        float64, columns sorted, exactly symmetric.

    Examples
    --------
    >>> from manifast._local import lle_matrix
    >>> lle_matrix([[0.0], [1.0], [2.0]], [[1], [0], [1]]).toarray()
    array([[ 2., -2.,  0.],
           [-2.,  3., -1.],
           [ 0., -1.,  1.]])
    """
    x = as_matrix(X, "X", min_rows=1)
    lists = _as_lists(neighbors, "neighbors", x.shape[0], rows=x.shape[0])
    ridge = as_positive(reg, "reg")
    with kernel_threads(n_threads) as threads:
        made = _local.lle_matrix(x, lists, ridge, threads)
    return _matrix_of_neighbors(made, lists, x.shape[0])


def modified_lle_matrix(
    X: Any,
    neighbors: Any,
    *,
    dim: int,
    reg: float = 1e-3,
    tol: float = 1e-12,
    centers: Any = None,
    n_threads: int | None = None,
) -> sp.csr_array:
    """The matrix of modified LLE (Zhang and Wang 2006): rows rebuilt from their neighbours in several ways at once.

    Let V hold the left singular vectors of the differences to the k neighbours that belong to the s smallest singular
    values, w the barycentric weights and ``a = |Vᵀ1| / √s``. The s columns of ``V H + (1 - a) w 1ᵀ`` are weights that
    sum to 1, where H is the Householder reflection with ``H Vᵀ1 = a 1``. The matrix is the sum of ``r rᵀ`` over
    these columns and all rows, where r is 1 at the row itself and minus the weights at its neighbours.

    Parameters
    ----------
    X : array of shape (n, p)
    neighbors : integer array of shape (n, k)
        No row may name itself, or a neighbour twice.
    dim : int
        From 1 to min(k, p). Decides s: with the squared singular values split after the first `dim`, eta is the median
        over rows of the later sum over the former; s is then the largest number of smallest values for which this ratio
        is below eta.
    reg : float, default 1e-3
        As in `barycenter_weights`.
    tol : float, default 1e-12
        Where the length of Vᵀ1 is at most `tol`, it counts as zero, and any reflection will do.
    centers : integer array of shape (c,), optional
        The rows that the lists belong to, for another number c of lists than n. Row i for list i where omitted.
    n_threads : int, optional

    Returns
    -------
    scipy.sparse.csr_array of shape (n, n)
        float64, columns sorted, exactly symmetric.

    Notes
    -----
    The same as in ``sklearn.manifold.locally_linear_embedding(method="modified")``, which always takes reg = 1e-3, but
    where neighbourhoods are degenerate: a singular value below 3e-7 of the largest counts as zero and belongs to the
    smallest whatever eta is. A list with s = 0, as for k = dim, adds nothing.

    Examples
    --------
    >>> from manifast._local import modified_lle_matrix
    >>> X = [[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [4.0, 0.0]]
    >>> M = modified_lle_matrix(X, [[1, 2], [0, 2], [1, 3], [1, 2]], dim=1, reg=1e-9)
    >>> bool(abs(M @ X).max() < 1e-6)
    True
    """
    x = as_matrix(X, "X", min_rows=1)
    n = x.shape[0]
    if centers is None:
        lists, seen_from = _as_lists(neighbors, "neighbors", n, rows=n), np.arange(n)
    else:
        seen_from = np.asarray(centers)
        if seen_from.ndim != 1:
            raise ValueError(f"centers must be a vector of row numbers. Got shape {seen_from.shape} instead.")
        seen_from = _as_lists(seen_from[:, None], "centers", n)[:, 0]
        lists = _as_lists(neighbors, "neighbors", n, rows=seen_from.shape[0])
    k, p = lists.shape[1], x.shape[1]
    as_count(dim, "dim", maximum=min(k, p), why=f", min(k, p) for lists of k = {k} neighbours with p = {p} features")
    ridge, least = as_positive(reg, "reg"), as_number(tol, "tol", minimum=0.0)
    if lists.shape[0] == 0:
        return sp.csr_array((n, n), dtype=np.float64)
    with kernel_threads(n_threads) as threads:
        made = _local.modified_lle_matrix(x, lists, seen_from, int(dim), ridge, least, threads)
    return _matrix_of_neighbors(made, lists, n)


def alignment_matrix(
    X: Any, cliques: Any, *, dim: int, gamma: float = 0.0, n_threads: int | None = None
) -> sp.csr_array:
    """Sum over cliques of how far functions are from linear in the clique's `dim` leading directions.

    Clique i adds ``A = H - U diag(s² / (s² + gamma)) Uᵀ`` to the rows and columns of its k points, where H centres and
    U, s are the `dim` leading left singular vectors and values of the clique, centred.

    Parameters
    ----------
    X : array of shape (n, p)
    cliques : integer array of shape (c, k)
        Rows of X; no clique may name a point twice.
    dim : int
        From 1 to min(k - 1, p).
    gamma : float, default 0.0
        Ridge, in squared units of the data. 0 is LTSA (with cliques of neighbours without the point itself); with the
        point and its k - 1 nearest, gamma > 0 is the local regression of LGRM, eq. 10 to 12.
    n_threads : int, optional

    Returns
    -------
    scipy.sparse.csr_array of shape (n, n)
        float64, columns sorted, exactly symmetric; a point in no clique has no entries.

    Notes
    -----
    A direction whose singular value is below 3e-7 of the clique's largest counts as null and is left out of U: singular
    values come from a Gram matrix, which does not resolve smaller ones. So cliques of rank below `dim`, down to
    copies of one point, add the projection on what they do span.

    Examples
    --------
    >>> from manifast._local import alignment_matrix
    >>> (6 * alignment_matrix([[0.0], [1.0], [2.0]], [[0, 1, 2]], dim=1)).toarray().round(6)
    array([[ 1., -2.,  1.],
           [-2.,  4., -2.],
           [ 1., -2.,  1.]])
    """
    x = as_matrix(X, "X", min_rows=1)
    lists = _as_lists(cliques, "cliques", x.shape[0])
    k, p = lists.shape[1], x.shape[1]
    most = min(k - 1, p)
    as_count(dim, "dim", maximum=most, why=f", min(k - 1, p) for cliques of k = {k} points with p = {p} features")
    ridge = as_number(gamma, "gamma", minimum=0.0)
    if lists.shape[0] == 0:
        return sp.csr_array((x.shape[0], x.shape[0]), dtype=np.float64)
    with kernel_threads(n_threads) as threads:
        made = _local.alignment_matrix(x, lists, int(dim), ridge, threads)
    return _matrix_of_cliques(made, lists, "cliques", x.shape[0])


def hessian_matrix(X: Any, neighbors: Any, *, dim: int, n_threads: int | None = None) -> sp.csr_array:
    """The quadratic form of Hessian eigenmaps (Donoho and Grimes 2003): the second order of functions, summed.

    For each list, U holds the `dim` leading left singular vectors of its points, centred. The columns 1, U_i and
    U_i U_j, i ≤ j, are made orthonormal in this order, and ``Q Qᵀ`` is added to the rows and columns of the points,
    where Q holds the last dim (dim + 1) / 2 columns.

    Parameters
    ----------
    X : array of shape (n, p)
    neighbors : integer array of shape (c, k)
        Rows of X, as a rule the neighbours of each row without the row itself; no list may name a point twice. k must
        be greater than dim + dim (dim + 1) / 2.
    dim : int
        From 1 to p.
    n_threads : int, optional

    Returns
    -------
    scipy.sparse.csr_array of shape (n, n)
        float64, columns sorted, exactly symmetric; a point in no list has no entries.

    Notes
    -----
    ``sklearn.manifold.locally_linear_embedding(method="hessian")`` takes all columns of a full QR after the first
    1 + dim instead of the last dim (dim + 1) / 2 of the paper. What it adds is then ``I - [1 U][1 U]ᵀ`` with an
    orthonormal ``[1 U]``: its matrix is that of LTSA, here `alignment_matrix`. Its ``hessian_tol`` for sums of columns
    has no effect, there or here, as the sums are zero: all columns are orthogonal to the first, the constant.

    Null directions count as in `alignment_matrix`. A product that depends on the columns before it is left out.

    Examples
    --------
    >>> from manifast._local import hessian_matrix
    >>> (6 * hessian_matrix([[0.0], [1.0], [2.0]], [[0, 1, 2]], dim=1)).toarray().round(6)
    array([[ 1., -2.,  1.],
           [-2.,  4., -2.],
           [ 1., -2.,  1.]])
    """
    x = as_matrix(X, "X", min_rows=1)
    lists = _as_lists(neighbors, "neighbors", x.shape[0])
    k, p = lists.shape[1], x.shape[1]
    as_count(dim, "dim", maximum=p, why=", the number of features")
    columns = int(dim) * (int(dim) + 3) // 2
    if k <= columns:
        raise ValueError(
            f"neighbors must have more than dim + dim (dim + 1) / 2 = {columns} columns for dim = {dim}; give more "
            f"neighbours or a smaller dim. Got {k}."
        )
    if lists.shape[0] == 0:
        return sp.csr_array((x.shape[0], x.shape[0]), dtype=np.float64)
    with kernel_threads(n_threads) as threads:
        made = _local.hessian_matrix(x, lists, int(dim), threads)
    return _matrix_of_cliques(made, lists, "neighbors", x.shape[0])


def _matrix_of_neighbors(made: Any, lists: Array, n: int) -> sp.csr_array:
    """The matrix, or an error where the kernel returned the number of a list that it refuses."""
    if isinstance(made, int):
        raise ValueError(
            f"neighbors must not name a row itself, or one neighbour twice. Got {lists[made]} in row {made}."
        )
    return csr(made, n)


def _matrix_of_cliques(made: Any, lists: Array, name: str, n: int) -> sp.csr_array:
    """The same for lists that may name any point, once."""
    if isinstance(made, int):
        raise ValueError(f"{name} must not name a point twice. Got {lists[made]} in row {made}.")
    return csr(made, n)


def _as_lists(value: Any, name: str, n: int, *, rows: int | None = None) -> Array:
    """A C-contiguous int64 matrix of row numbers below n, with at least 1 column."""
    lists = np.asarray(value)
    if lists.ndim != 2 or lists.shape[1] == 0:
        raise ValueError(f"{name} must be a matrix with at least 1 column. Got shape {lists.shape} instead.")
    if lists.dtype.kind not in "iu":
        raise ValueError(f"{name} must hold integers. Got dtype {lists.dtype} instead.")
    if rows is not None and lists.shape[0] != rows:
        raise ValueError(f"{name} must have {rows} rows to match. Got shape {lists.shape} instead.")
    if lists.size and not (lists.min() >= 0 and lists.max() < n):
        raise ValueError(f"{name} must be between 0 and n - 1 = {n - 1}. Got {lists.min()} to {lists.max()} instead.")
    return contiguous(lists, np.int64)
