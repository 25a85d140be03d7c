"""The C kernels for users: validation, dtype and threads, then one call into the core.

Nothing here imports scikit-learn. All kernels take float32 and float64 (float32 stays float32), any memory layout,
and `n_threads=None` for what the process may use. Results are bit-identical for any number of threads, and a row's
result does not depend on the other rows of its batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from manifast._clusters import all_neighbors
from manifast._core import affine as _affine
from manifast._core import distances as _distances
from manifast._core import graph as _graph
from manifast._core import kdtree as _kdtree
from manifast._core import knn as _knn
from manifast._core import l1 as _l1
from manifast._core import rbf as _rbf
from manifast._sparse import checked_sparse
from manifast._threads import kernel_threads
from manifast._validation import (
    Array,
    as_matrix,
    as_number,
    as_pair,
    as_positive,
    contiguous,
    largest_magnitude,
    refuse_masked,
)
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
    return _distances_between(x, y, sigma, kernel, out, n_threads)


def _distances_between(
    x: Array, y: Array | None, sigma: float, kernel: bool, out: Array | None = None, n_threads: int | None = None
) -> Array:
    """The same for rows that were checked before, both of one dtype."""
    shape = (x.shape[0], x.shape[0] if y is None else y.shape[0])
    inv_sigma2 = 0.0
    if kernel:
        if x.dtype == np.float32 and not _FLOAT32_SIGMA[0] < sigma < _FLOAT32_SIGMA[1]:
            wide = None if y is None else y.astype(np.float64)
            return _distances_between(x.astype(np.float64), wide, sigma, True, None, n_threads).astype(np.float32)
        (x, y), inv_sigma2 = _unit_sigma((x, y), sigma)
    if out is None:
        out = np.empty(shape, dtype=x.dtype)
    elif not isinstance(out, np.ndarray) or out.shape != shape or out.dtype != x.dtype:
        raise ValueError(f"out must be an array of shape {shape} and dtype {x.dtype}. Got {_describe(out)} instead.")
    elif not out.flags.carray:
        raise ValueError("out must be C-contiguous, aligned and writable. Got an array that is not.")
    elif np.may_share_memory(out, x) or (y is not None and np.may_share_memory(out, y)):
        raise ValueError("out must not share memory with X or Y. Got overlapping arrays.")
    with kernel_threads(n_threads) as threads:
        _distances.sq_distances(x, y, inv_sigma2, out, threads)
    return out


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
    out = _rbf_product(x, c, w, as_positive(sigma, "sigma"), n_threads)
    return out[:, 0] if vector else out


def _rbf_product(x: Array, c: Array, w: Array, sigma: float, n_threads: int | None = None) -> Array:
    """`rbf_apply` for arrays that were checked before: what a map that is fitted ends in."""
    x, c, w = _of_one_dtype(x, c, w)
    if x.dtype == np.float32 and not _FLOAT32_SIGMA[0] < sigma < _FLOAT32_SIGMA[1]:
        x, c, w = (a.astype(np.float64) for a in (x, c, w))
        return _rbf_product(x, c, w, sigma, n_threads).astype(np.float32)
    (x, c), inv_sigma2 = _unit_sigma((x, c), sigma)
    out = np.empty((x.shape[0], w.shape[1]), dtype=x.dtype)
    if c.shape[0] == 0:
        out[:] = 0
    else:
        with kernel_threads(n_threads) as threads:
            _rbf.rbf_apply(x, c, w, inv_sigma2, out, threads)
    return out


def _of_one_dtype(*arrays: Array) -> Sequence[Array]:
    """float32 and float64 arrays in the wider of their dtypes."""
    if all(a.dtype == arrays[0].dtype for a in arrays):
        return arrays
    return [a.astype(np.float64, copy=False) for a in arrays]


def _heat_mean(distances: Array, neighbors: Array | None, Y: Array, beta: float, *, others: bool) -> Array:
    """Means of the rows `neighbors` of Y (None: of all its rows), weighted by exp(-distance² / beta), in float64.

    Weights are relative to the nearest, so that not all underflow; an infinite beta weighs all alike. With `others`,
    rows at distance 0 have no part in it, unless there is nothing else.
    """
    out = np.empty((distances.shape[0], Y.shape[1]))
    with kernel_threads(None) as threads:
        _rbf.heat_mean(distances.astype(np.float64, copy=False), neighbors, Y, beta, others, out, threads)
    return out


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
    return _search(x, q, int(k), _search_exponent(x), algorithm, n_threads)


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
    exponent = _search_exponent(x)
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


def _search(
    x: Array, q: Array | None, k: int, exponent: int, algorithm: str = "auto", n_threads: int | None = None
) -> tuple[Array, Array]:
    """`knn` for rows of one dtype that were checked before, with the exponent of x."""
    few = q is not None and q.shape[0] <= _FEW_QUERIES
    tree = algorithm == "tree" or (algorithm == "auto" and not few and _tree_pays(x))
    return _scaled_search(_kdtree.kdtree_knn if tree else _knn.knn, x, q, k, exponent, n_threads)


def _team(n_threads: int | None, work: int) -> int | None:
    """One thread where there is little to do: waking others takes longer, on a busy machine a hundred times."""
    return 1 if n_threads is None and work < _LITTLE_WORK else n_threads


_LITTLE_WORK = 2_000_000  # multiplications, about a millisecond
_FEW_QUERIES = 8  # are found by a scan before a tree is made


def _tree_pays(x: Array) -> bool:
    """Whether a kd-tree beats brute force: in up to 6 dimensions, and in up to 16 where the data fill few of them.

    Measured with k = 10 at 200 to 20,000 points: normal data in 5 dimensions are 1.6 to 3.3 times faster by tree, in 8
    about even, in 10 slower; a Swiss roll turned into 15 dimensions is still 1.6 to 8 times faster. How many dimensions
    data fill is the participation ratio of their variances, tr(C)² / tr(C²).
    """
    n, p = x.shape
    if p <= 6 or p > 16 or n < 2:
        return bool(p <= 6)
    sample = x[:: max(1, n // 1000)]
    covariance = np.cov(sample / max(float(np.abs(sample).max()), np.finfo(x.dtype).tiny), rowvar=False)
    return bool(np.trace(covariance) ** 2 <= 5 * np.sum(covariance**2))


def _scaled_search(
    search: Any, x: Array, q: Array | None, k: int, exponent: int, n_threads: int | None
) -> tuple[Array, Array]:
    """The search, on doubles brought to a range where squares neither overflow nor vanish."""
    rows = x.shape[0] if q is None else q.shape[0]
    distances, indices = np.empty((rows, k), dtype=x.dtype), np.empty((rows, k), dtype=np.int64)
    with np.errstate(over="ignore", under="ignore"), kernel_threads(_team(n_threads, rows * x.size)) as threads:
        points, at = (np.ldexp(x, -exponent), q if q is None else np.ldexp(q, -exponent)) if exponent else (x, q)
        if at is None or x.dtype == np.float32 or largest_magnitude(at) < _LARGE:
            search(points, at, distances, indices, threads)
            far = np.zeros(0, dtype=bool)
        else:
            far = np.any(np.abs(at) >= _LARGE, axis=1)
            near_found = distances[~far], indices[~far]
            search(points, np.ascontiguousarray(at[~far]), *near_found, threads)
            distances[~far], indices[~far] = near_found
        if exponent:
            distances = np.ldexp(distances, exponent)
        for i in np.flatnonzero(far):  # far beyond the data: each such row at a scale of its own
            row = q[i : i + 1]  # type: ignore[index]
            own = int(np.frexp(np.abs(row).max())[1])
            search(np.ldexp(x, -own), np.ldexp(row, -own), distances[i : i + 1], indices[i : i + 1], threads)
            distances[i] = np.ldexp(distances[i], own)
    if x.dtype == np.float64:
        _settle_vanished(search, x, q, k, exponent, n_threads, distances, indices)
    return distances, indices


def _settle_vanished(
    search: Any,
    x: Array,
    q: Array | None,
    k: int,
    exponent: int,
    n_threads: int | None,
    distances: Array,
    indices: Array,
) -> None:
    """Once more, at a scale of their own, the rows so close to neighbours that squares of the differences vanished.

    Numbers that differ by so little are themselves small or equal: doubles have 53 bits. So such rows agree in their
    large entries, and among the rows that do, only the small ones count.
    """
    unit = float(np.ldexp(1.0, min(exponent, 1023)))
    close = distances < 2.0**-480 * unit
    if not close.any():
        return
    queries = x if q is None else q
    rows, places = np.nonzero(close)
    step, apart = max(1, 2**20 // x.shape[1]), np.empty(len(rows), dtype=bool)
    for begin in range(0, len(rows), step):
        some = slice(begin, begin + step)
        apart[some] = np.any(queries[rows[some]] != x[indices[rows[some], places[some]]], axis=1)
    suspects = np.unique(rows[apart])
    if not len(suspects):
        return  # equal rows, at distance 0 as they should be
    small = 2.0**-390 * unit
    large = np.where(np.abs(x) < small, 0.0, x)
    large_queries = np.where(np.abs(queries) < small, 0.0, queries)
    while len(suspects):
        first = large_queries[suspects[0]]
        members = np.flatnonzero(np.all(large == first, axis=1))
        alike = np.all(large_queries[suspects] == first, axis=1)
        group, suspects = suspects[alike], suspects[~alike]
        part = x[members] - large[members]
        asked = None if q is None else queries[group] - large_queries[group]
        count = min(k, len(members) - (q is None))
        own = int(np.frexp(max(largest_magnitude(part), 0.0 if asked is None else largest_magnitude(asked)))[1])
        near, found = _scaled_search(search, part, asked, count, own, n_threads)
        if q is None:
            places = np.searchsorted(members, group)
            near, found = near[places], found[places]
        for row, ways, points in zip(group, near, members[found], strict=True):
            others = ~np.isin(indices[row], members)
            ways, points = np.append(ways, distances[row, others]), np.append(points, indices[row, others])
            order = np.argsort(ways, kind="stable")[:k]
            distances[row], indices[row] = ways[order], points[order]


_SMALL, _LARGE = 1e-140, 1e150


def _search_exponent(x: Array) -> int:
    """The power of two that a search divides all rows by, once for x."""
    return 0 if x.dtype == np.float32 else _outlying(x)


def _outlying(x: Array) -> int:
    """0 where squares of the entries keep to the range of doubles, else the power of two to divide them by."""
    largest = largest_magnitude(x)
    return 0 if largest == 0 or _SMALL < largest < _LARGE else int(np.frexp(largest)[1])


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
    return _l1_codes(x, d, errors=errors, lam=penalty, skip=skip, tolerance=tolerance, n_threads=n_threads)


def _l1_codes(
    x: Array,
    d: Array,
    *,
    errors: bool,
    lam: float,
    skip: Array | None = None,
    tolerance: float = 1e-9,
    n_threads: int | None = None,
) -> tuple[sp.csr_array, Array | None]:
    """`l1_code` for arrays of one dtype that were checked before: what a map that is fitted ends in."""
    x, d = contiguous(x), contiguous(d)
    n, atoms = x.shape[0], d.shape[0]
    e = np.empty(x.shape, dtype=x.dtype) if errors else None
    with kernel_threads(n_threads) as threads:
        indptr, indices, values, status = _l1.l1_code(x, d, lam, tolerance, skip, e, threads)
    if max(len(values), atoms) < 2**31:
        indptr, indices = indptr.astype(np.int32), indices.astype(np.int32)
    with np.errstate(over="ignore"):
        values = values.astype(x.dtype, copy=False)
    if not np.isfinite(values).all():
        raise ValueError(
            f"dictionary must not be so small against X that codes leave the range of {x.dtype}. Got codes beyond it."
        )
    codes = sp.csr_array((values, indices, indptr), shape=(n, atoms))
    if x.dtype == np.float32:
        codes.eliminate_zeros()
    out_of_reach, uncertified = int((status == 1).sum()), int((status == 2).sum())
    if out_of_reach:
        warn(
            f"{out_of_reach} of {n} samples cannot be represented by the dictionary; their codes are least-squares "
            "solutions. Use errors=True, lam > 0 or more atoms.",
            RuntimeWarning,
        )
    if uncertified:
        warn(
            f"the codes of {uncertified} of {n} samples could not be certified to tol={tolerance:g}. Use a larger tol "
            "or lam > 0, or remove nearly dependent atoms.",
            RuntimeWarning,
        )
    return codes, e


def _as_exclude(exclude: Any, n: int, atoms: int) -> Array:
    array = np.asarray(exclude)
    if array.shape != (n,) or array.dtype.kind not in "iu":
        raise ValueError(f"exclude must hold {n} integers, one per row of X. Got {_describe(array)} instead.")
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
    wide = n >= _INT32_MAX or 2 * n * k >= _INT32_MAX
    with kernel_threads(_team(n_threads, 100 * n * k)) as threads:
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
    return _csr(made, n)


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
    graph = _as_graph(W, "W")
    n = graph.shape[0]
    dtype = graph.dtype
    if n == 0 or graph.nnz == 0:
        zeros = np.zeros(n, dtype=dtype)
        return _csr((np.arange(n + 1, dtype=np.int32), np.arange(n, dtype=np.int32), zeros), n), zeros.copy()
    small = np.int32 if n + graph.nnz < _INT32_MAX else np.int64
    indptr, columns = (contiguous(a, small) for a in (graph.indptr, graph.indices))
    values = contiguous(graph.data)
    kind = (None, "sym", "rw").index(normalization)
    with kernel_threads(n_threads) as threads:
        made = _graph.laplacian(indptr, columns, values, kind, 0, threads)
        if isinstance(made, int):
            _explain_flaws(graph, made)
            made = _graph.laplacian(indptr, columns, values, kind, _NOT_SYMMETRIC, threads)
    assert not isinstance(made, int)
    return _csr(made[:3], n), made[3].astype(dtype, copy=False)


_INT32_MAX = 2**31 - 1
_BAD_STRUCTURE, _BAD_WEIGHT, _NOT_SYMMETRIC = 1, 2, 4  # mf_flaw


def _as_graph(value: Any, name: str) -> sp.csr_array:
    """A square CSR matrix in canonical form, float32 or float64; a copy only where the input is not one already."""
    if sp.issparse(value):
        return checked_sparse(value, name, square=True)
    refuse_masked(value, name)
    given = np.asarray(value)
    if given.ndim != 2 or given.shape[0] != given.shape[1]:
        raise ValueError(f"{name} must be a square matrix. Got shape {given.shape} instead.")
    if given.dtype.kind not in "fiub":
        raise ValueError(f"{name} must hold real numbers. Got dtype {given.dtype} instead.")
    dtype = np.float32 if given.dtype.kind == "f" and given.dtype.itemsize <= 4 else np.float64
    return sp.csr_array(given.astype(dtype, copy=False))


def _explain_flaws(graph: sp.csr_array, flaws: int, name: str = "W") -> None:
    """Raise for what the core found wrong with a graph, but for an asymmetry within rounding."""
    if flaws & _BAD_STRUCTURE:
        raise ValueError(f"{name} must be a valid CSR matrix. Got row pointers or column indices out of range.")
    if flaws & _BAD_WEIGHT:
        wrong = "NaN, infinity or a negative weight"
        raise ValueError(f"{name} must have finite weights that are not negative. Got {wrong}.")
    tolerance = (1e-5 if graph.dtype == np.float32 else 1e-10) * float(graph.data.max())
    difference = abs(graph - graph.T)
    largest = float(difference.data.max()) if difference.nnz else 0.0
    if largest > tolerance:
        raise ValueError(f"{name} must be symmetric. Got entries (i, j) and (j, i) that differ by up to {largest:.3g}.")


def _csr(parts: tuple[Array, Array, Array], n: int) -> sp.csr_array:
    """A CSR matrix from (indptr, columns, values) that are known to be in order."""
    indptr, columns, values = parts
    graph = sp.csr_array((values, columns, indptr), shape=(n, n))
    graph.has_sorted_indices = True
    graph.has_canonical_format = True
    return graph


def _unit_beta(d: Array, beta: float) -> tuple[Array, float]:
    """Beta for the core; where its size is out of the ordinary the distances are divided by its root instead."""
    tiny, huge = (1e-30, 1e30) if d.dtype == np.float32 else (1e-280, 1e280)
    if tiny < beta < huge:
        return d, beta
    with np.errstate(over="ignore", under="ignore"):
        return np.minimum(d / np.sqrt(beta), np.finfo(d.dtype).max).astype(d.dtype, copy=False), 1.0


_FLOAT32_SIGMA = 1e-15, 1e15  # beyond, squares leave the range of float32 and double takes over


def _unit_sigma(arrays: Any, sigma: float) -> tuple[Any, float]:
    """1/sigma² for the core; where that leaves the range, data and sigma are divided by a power of two first."""
    if 1e-280 < sigma * sigma < 1e280:
        return arrays, 1.0 / (sigma * sigma)
    largest = max((float(np.abs(a).max()) for a in arrays if a is not None and a.size), default=0.0)
    exponent = int(np.frexp(largest)[1])
    scaled = [None if a is None else np.ldexp(a, -exponent) for a in arrays]
    # Data are now at most 1, so a ratio clipped here gives kernel values of 0 or 1, as the true one does.
    fraction, own = np.frexp(sigma)
    with np.errstate(over="ignore", under="ignore"):
        ratio = min(max(float(np.ldexp(1 / fraction, exponent - own)), 1e-140), 1e150)
    return scaled, ratio * ratio


def _affine_product(X: Array, W: Array, b: Array | None = None, *, n_threads: int | None = None) -> Array:
    """X @ W + b with a fixed summation order per row: what linear transforms end in. Arrays of one dtype."""
    out = np.empty((X.shape[0], W.shape[1]), dtype=X.dtype)
    with kernel_threads(n_threads) as threads:
        _affine.affine(contiguous(X), contiguous(W), b, out, threads)
    return out


def _describe(value: Any) -> str:
    return f"{value.dtype} array of shape {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__
