"""What the library calls below the kernels for users: the same without their checks.

Arrays come checked, C-contiguous and, where two meet, with matching columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from manifast._core import affine as _affine
from manifast._core import dispatch
from manifast._core import distances as _distances
from manifast._core import knn as _knn
from manifast._core import rbf as _rbf
from manifast._core.kdtree import Tree
from manifast._core.l1 import Dictionary
from manifast._sparse import checked_sparse
from manifast._threads import kernel_threads
from manifast._validation import Array, contiguous, is_sparse, largest_magnitude, refuse_masked
from manifast._warnings import warn


def distances_between(
    x: Array, y: Array | None, sigma: float, kernel: bool, out: Array | None = None, n_threads: int | None = None
) -> Array:
    """`sq_distances`, or `gaussian` with `kernel`, for rows of one dtype."""
    inv_sigma2 = 0.0
    if kernel:
        if x.dtype == np.float32 and not in_range(sigma, x.dtype):
            wide = None if y is None else y.astype(np.float64)
            return distances_between(x.astype(np.float64), wide, sigma, True, None, n_threads).astype(np.float32)
        (x, y), inv_sigma2 = _unit_sigma((x, y), sigma)
    if out is None:
        out = np.empty((x.shape[0], x.shape[0] if y is None else y.shape[0]), dtype=x.dtype)
    with kernel_threads(n_threads) as threads:
        _distances.sq_distances(x, y, inv_sigma2, out, threads)
    return out


def rbf_product(x: Array, c: Array, w: Array, sigma: float, n_threads: int | None = None) -> Array:
    """`rbf_apply`, in the widest dtype of the three."""
    x, c, w = of_one_dtype(x, c, w)
    if x.dtype == np.float32 and not in_range(sigma, x.dtype):
        x, c, w = (a.astype(np.float64) for a in (x, c, w))
        return rbf_product(x, c, w, sigma, n_threads).astype(np.float32)
    (x, c), inv_sigma2 = _unit_sigma((x, c), sigma)
    out = np.empty((x.shape[0], w.shape[1]), dtype=x.dtype)
    if c.shape[0] == 0:
        out[:] = 0
    else:
        with kernel_threads(n_threads) as threads:
            _rbf.rbf_apply(x, c, w, inv_sigma2, out, threads)
    return out


def of_one_dtype(*arrays: Array) -> Sequence[Array]:
    """float32 and float64 arrays in the wider of their dtypes."""
    if all(a.dtype == arrays[0].dtype for a in arrays):
        return arrays
    return [a.astype(np.float64, copy=False) for a in arrays]


def heat_mean(distances: Array, neighbors: Array | None, Y: Array, beta: float, *, others: bool) -> Array:
    """Means of the rows `neighbors` of Y (None: of all its rows), weighted by exp(-distance² / beta), in float64.

    Weights are relative to the nearest, so that not all underflow; an infinite beta weighs all alike. With `others`,
    rows at distance 0 have no part in it, unless there is nothing else.
    """
    out = np.empty((distances.shape[0], Y.shape[1]))
    with kernel_threads(team(None, 4 * distances.size * Y.shape[1])) as threads:
        _rbf.heat_mean(distances.astype(np.float64, copy=False), neighbors, Y, beta, others, out, threads)
    return out


def search(
    x: Array, q: Array | None, k: int, algorithm: str = "auto", n_threads: int | None = None
) -> tuple[Array, Array]:
    """`knn` for rows of one dtype."""
    few = q is not None and q.shape[0] <= _FEW_QUERIES
    tree = algorithm == "tree" or (algorithm == "auto" and not few and tree_pays(x))
    return scaled_search(by_tree if tree else by_brute_force, x, q, k, search_exponent(x), n_threads)


def by_brute_force(x: Array, q: Array | None, distances: Array, indices: Array, n_threads: int) -> None:
    """Fills distances and indices with the nearest rows of x."""
    _knn.knn(x, q, distances, indices, n_threads)


def by_tree(x: Array, q: Array | None, distances: Array, indices: Array, n_threads: int) -> None:
    """The same by a tree that is made for it."""
    if len(distances) and distances.shape[1]:
        Tree(x, n_threads).knn(q, distances, indices, n_threads)


def team(n_threads: int | None, work: int) -> int | None:
    """One thread where there is little to do: waking others takes longer, on a busy machine a hundred times."""
    return 1 if n_threads is None and work < LITTLE_WORK else n_threads


LITTLE_WORK = 2_000_000  # multiplications, about a millisecond
_FEW_QUERIES = 8  # are found by a scan before a tree is made


def tree_pays(x: Array) -> bool:
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


def scaled_search(
    find: Any, x: Array, q: Array | None, k: int, exponent: int, n_threads: int | None
) -> tuple[Array, Array]:
    """A search, on doubles brought to a range where squares neither overflow nor vanish."""
    rows = x.shape[0] if q is None else q.shape[0]
    distances, indices = np.empty((rows, k), dtype=x.dtype), np.empty((rows, k), dtype=np.int64)
    double = x.dtype == np.float64
    with kernel_threads(team(n_threads, rows * x.size)) as threads:
        if not exponent and (q is None or not double or largest_magnitude(q) < _LARGE):
            find(x, q, distances, indices, threads)
        else:
            distances = _search_out_of_range(find, x, q, exponent, distances, indices, threads)
    if double and rows and k:
        _settle_vanished(find, x, q, k, exponent, n_threads, distances, indices)
    return distances, indices


def _search_out_of_range(
    find: Any, x: Array, q: Array | None, exponent: int, distances: Array, indices: Array, threads: int
) -> Array:
    """The search where rows or queries are far from 1, each at a scale that suits it; distances come new."""
    with np.errstate(over="ignore", under="ignore"):
        points, at = (np.ldexp(x, -exponent), q if q is None else np.ldexp(q, -exponent)) if exponent else (x, q)
        if at is None or largest_magnitude(at) < _LARGE:
            find(points, at, distances, indices, threads)
            far = np.zeros(0, dtype=bool)
        else:
            far = np.any(np.abs(at) >= _LARGE, axis=1)
            near_found = distances[~far], indices[~far]
            find(points, np.ascontiguousarray(at[~far]), *near_found, threads)
            distances[~far], indices[~far] = near_found
        if exponent:
            distances = np.ldexp(distances, exponent)
        for i in np.flatnonzero(far):  # far beyond the data: each such row at a scale of its own
            row = q[i : i + 1]  # type: ignore[index]
            own = int(np.frexp(np.abs(row).max())[1])
            find(np.ldexp(x, -own), np.ldexp(row, -own), distances[i : i + 1], indices[i : i + 1], threads)
            distances[i] = np.ldexp(distances[i], own)
    return distances


def _settle_vanished(
    find: Any,
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
    tiny = 2.0**-480 * unit
    if not (distances.item(0) if len(distances) == 1 else distances[:, 0].min()) < tiny:  # distances ascend
        return
    close = distances < tiny
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
        near, found = scaled_search(find, part, asked, count, own, n_threads)
        if q is None:
            places = np.searchsorted(members, group)
            near, found = near[places], found[places]
        for row, ways, points in zip(group, near, members[found], strict=True):
            others = ~np.isin(indices[row], members)
            ways, points = np.append(ways, distances[row, others]), np.append(points, indices[row, others])
            order = np.argsort(ways, kind="stable")[:k]
            distances[row], indices[row] = ways[order], points[order]


_SMALL, _LARGE = 1e-140, 1e150


def search_exponent(x: Array) -> int:
    """The power of two that a search divides all rows by, once for x."""
    return 0 if x.dtype == np.float32 else outlying(x)


def outlying(x: Array) -> int:
    """0 where squares of the entries keep to the range of doubles, else the power of two to divide them by."""
    largest = largest_magnitude(x)
    return 0 if largest == 0 or _SMALL < largest < _LARGE else int(np.frexp(largest)[1])


def l1_codes(
    x: Array,
    d: Array,
    *,
    errors: bool,
    lam: float,
    skip: Array | None = None,
    tolerance: float = 1e-9,
    n_threads: int | None = None,
    dictionary: Dictionary | None = None,
) -> tuple[sp.csr_array, Array | None]:
    """`l1_code` for arrays of one dtype; `dictionary` is d prepared."""
    x = contiguous(x)
    n, atoms = x.shape[0], d.shape[0]
    e = np.empty(x.shape, dtype=x.dtype) if errors else None
    with kernel_threads(n_threads if n > 1 else 1) as threads:
        if dictionary is None:
            dictionary = Dictionary(contiguous(d), n, threads)
        indptr, indices, values, status = dictionary.code(x, lam, tolerance, skip, e, threads)
    index = index_dtype(max(len(values), atoms))
    indptr, indices = indptr.astype(index, copy=False), indices.astype(index, copy=False)
    with np.errstate(over="ignore"):
        values = values.astype(x.dtype, copy=False)
    if not np.isfinite(values).all():
        raise ValueError(
            f"dictionary must not be so small against X that codes leave the range of {x.dtype}. Got codes beyond it."
        )
    if e is not None and not np.isfinite(e).all():
        raise ValueError(f"X and dictionary must have squares in the range of numbers. Got residuals beyond {e.dtype}.")
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


BAD_STRUCTURE, BAD_WEIGHT, NOT_SYMMETRIC = 1, 2, 4  # mf_flaw


def index_dtype(count: int) -> type[np.int32] | type[np.int64]:
    """What the indices of a sparse matrix take: int32 wherever so many fit."""
    return np.int32 if count < dispatch.int32_max() else np.int64


def as_graph(value: Any, name: str) -> sp.csr_array:
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


def csr_parts(value: Any) -> tuple[Array, Array, Array] | None:
    """(indptr, columns, values) of a square CSR matrix for cores that check what they hold; None for anything else."""
    if not is_sparse(value) or value.format != "csr" or value.shape[0] != value.shape[1]:
        return None
    parts = value.indptr, value.indices, value.data
    for part in parts:
        if type(part) is not np.ndarray or part.ndim != 1 or not (part.flags.c_contiguous and part.flags.aligned):
            return None
    indptr, columns, values = parts
    if indptr.dtype != np.int32 or columns.dtype != np.int32 or values.dtype not in (np.float32, np.float64):
        return None
    n, entries = len(indptr) - 1, len(values)
    fits = n == value.shape[0] and len(columns) == entries and index_dtype(n + entries) is np.int32
    return (indptr, columns, values) if fits and n and entries else None


def explain_flaws(graph: sp.csr_array, flaws: int, name: str = "W") -> None:
    """Raise for what the core found wrong with a graph, but for an asymmetry within rounding."""
    if flaws & BAD_STRUCTURE:
        raise ValueError(f"{name} must be a valid CSR matrix. Got row pointers or column indices out of range.")
    if flaws & BAD_WEIGHT:
        wrong = "NaN, infinity or a negative weight"
        raise ValueError(f"{name} must have finite weights that are not negative. Got {wrong}.")
    tolerance = (1e-5 if graph.dtype == np.float32 else 1e-10) * float(graph.data.max())
    difference = abs(graph - graph.T)
    largest = float(difference.data.max()) if difference.nnz else 0.0
    if largest > tolerance:
        raise ValueError(f"{name} must be symmetric. Got entries (i, j) and (j, i) that differ by up to {largest:.3g}.")


def csr(parts: tuple[Array, Array, Array], n: int) -> sp.csr_array:
    """A CSR matrix from (indptr, columns, values) that are known to be in order."""
    indptr, columns, values = parts
    graph = sp.csr_array((values, columns, indptr), shape=(n, n))
    graph.has_sorted_indices = True
    graph.has_canonical_format = True
    return graph


def in_range(sigma: float, dtype: Any) -> bool:
    """Whether 1/sigma² stays in the range of a dtype; else float64 is used, and beyond its range scaled data."""
    return 1e-15 < sigma < 1e15 if dtype == np.float32 else 1e-280 < sigma * sigma < 1e280


def _unit_sigma(arrays: Any, sigma: float) -> tuple[Any, float]:
    """1/sigma² for the core; where that leaves the range, data are divided by the power of two in sigma first.

    The power is that of sigma alone, so that a row's result does not depend on the others. Entries that then leave the
    range are further from all others than any sigma reaches: it is enough to tell them apart.
    """
    if in_range(sigma, np.float64):
        return arrays, 1.0 / (sigma * sigma)
    fraction, own = np.frexp(sigma)
    with np.errstate(over="ignore", under="ignore"):
        scaled = [None if a is None else np.ldexp(a, -own) for a in arrays]
    far = [None if a is None else np.abs(a) > 2.0**1000 for a in scaled]
    if any(where is not None and where.any() for where in far):
        held = np.unique(np.concatenate([a[where] for a, where in zip(arrays, far, strict=True) if where is not None]))
        for a, made, where in zip(arrays, scaled, far, strict=True):
            if made is not None:
                made[where] = np.ldexp(2.0**30 + np.searchsorted(held, a[where]), 971)
    return scaled, float(1 / (fraction * fraction))


def affine_product(X: Array, W: Array, b: Array | None = None, *, n_threads: int | None = None) -> Array:
    """X @ W + b with a fixed summation order per row: what linear transforms end in. Arrays of one dtype."""
    out = np.empty((X.shape[0], W.shape[1]), dtype=X.dtype)
    with kernel_threads(n_threads) as threads:
        _affine.affine(contiguous(X), contiguous(W), b, out, threads)
    return out


def describe(value: Any) -> str:
    return f"{value.dtype} array of shape {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__
