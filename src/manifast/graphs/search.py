"""Exact nearest rows, dense or sparse, and the mean of all squared distances."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from manifast._validation import Array, is_sparse
from manifast.graphs.rows import CHUNK
from manifast.kernels import knn


def nearest(X: Any, k: int, *, queries: Any = None, n_threads: int | None = None) -> tuple[Array, Array]:
    """`manifast.kernels.knn` for dense rows or sparse ones: distances and indices, in the same order."""
    if sp.issparse(X) or sp.issparse(queries):
        return _sparse_knn(sp.csr_array(X), k, None if queries is None else sp.csr_array(queries))
    return knn(X, k, queries=queries, n_threads=n_threads)


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
    step = max(1, CHUNK // n)
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
        pairs = max(1, CHUNK // (2 * longest + 1))
        for first in range(0, len(i), pairs):
            part = slice(first, first + pairs)
            difference = ask[rows[i[part]]] - wide[j[part]]
            exact[part] = np.asarray(difference.multiply(difference).sum(axis=1)).reshape(-1)
        order = np.lexsort((j, exact, i))
        starts = np.searchsorted(i, np.arange(len(rows)))
        taken = order[starts[:, None] + np.arange(k)]
        distances[rows], indices[rows] = np.sqrt(exact[taken]), j[taken]
    return np.ldexp(distances, exponent).astype(asking.dtype), indices


def mean_square(x: Any) -> float:
    """Mean squared distance over all pairs of different rows: from distances to the centroid, in one pass more."""
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
        step = max(1, CHUNK // x.shape[1])
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


def mean_square_on_sphere(x: Any) -> float:
    """Mean of ¼ d⁴ over all pairs of different unit vectors: their squared cosine distances.

    With w = x - mean and a = |w|², the sum of (a_i + a_j - 2 w_i·w_j)² over all pairs is 2n Σa² + 2(Σa)² + 4‖W'W‖².
    """
    n = x.shape[0]
    if n < 2:
        return 0.0
    if is_sparse(x):
        total, turned = 0.0, x.T.tocsr()
        for begin in range(0, n, step := max(1, CHUNK // n)):
            lengths = 1.0 - (x[begin : begin + step] @ turned).toarray().astype(np.float64)
            lengths[np.arange(len(lengths)), np.arange(begin, begin + len(lengths))] = 0.0
            total += float(np.einsum("ij,ij->", lengths, lengths))
        return float(total / (n * (n - 1.0)))
    w = x.astype(np.float64)
    w -= w.mean(axis=0)
    a = np.einsum("ij,ij->i", w, w)
    w = w if w.shape[1] <= n else w.T
    step = max(1, CHUNK // w.shape[1])
    gram = sum(float(np.sum(np.square(w[:, at : at + step].T @ w))) for at in range(0, w.shape[1], step))
    total = 2.0 * n * float(a @ a) + 2.0 * float(a.sum()) ** 2 + 4.0 * gram
    return float(0.25 * total / (n * (n - 1.0)))
