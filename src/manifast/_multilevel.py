"""The smallest eigenpairs of a graph Laplacian by a preconditioned block iteration over a multilevel hierarchy.

LOBPCG (Knyazev 2001) with the basis kept orthonormal in the way of Hetmaniuk and Lehoucq (2006) and Duersch et al.
(2018). It starts from the eigenvectors of a coarse level, carried up and improved on each level, and is preconditioned
by one V-cycle; graphs that do not coarsen get a Chebyshev polynomial in its place.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from manifast._core import multilevel as _core
from manifast._threads import kernel_threads
from manifast._validation import Array, as_positive
from manifast.kernels import _as_graph, _explain_flaws, laplacian

_DENSE = 500  # up to here, and where most vectors are wanted, the dense solver is faster
_FLOOR = 2e-15  # residuals of normalised vectors do not get below rounding
_DEPENDENT = 1e-9  # squared sine of the angle below which a new direction brings only rounding errors


def laplacian_eigenvectors(
    W: Any,
    k: int,
    *,
    tol: float = 1e-10,
    max_iter: int = 200,
    n_threads: int | None = None,
    verbose: bool = False,
) -> tuple[Array, Array, Array, int]:
    """TBD."""
    graph = _as_graph(W, "W")
    n = graph.shape[0]
    if not isinstance(k, Integral) or isinstance(k, bool) or not 1 <= k <= n - 1:
        raise ValueError(f"k must be an integer from 1 to {n - 1} for {n} nodes. Got {k!r} instead.")
    accuracy = as_positive(tol, "tol")
    k = int(k)
    indptr = graph.indptr.astype(np.int64)
    columns = graph.indices.astype(np.int32, copy=False)
    weights = graph.data.astype(np.float64, copy=False)
    with kernel_threads(n_threads) as threads:
        hierarchy = _core.Multilevel(indptr, columns, weights, threads)
        if hierarchy.reached < n:
            raise ValueError("W must be connected.")
        width = _block_width(k)
        x = _start(hierarchy, k, width)
        values, x, norms, n_iter = _iterate(hierarchy, 0, x, k, accuracy, max_iter, verbose)
        vectors = np.empty((n, k))
        vectors[hierarchy.order()] = x[:, :k]
    vectors *= np.sqrt(hierarchy.masses[0].sum() / weights.sum())
    return values, vectors, norms / 2, n_iter


def _block_width(k: int) -> int:
    """Wanted vectors and a few more, which make the wanted ones converge; a multiple of 4."""
    return -(-(k + max(2, k // 10)) // 4) * 4


def _start(hierarchy: Any, k: int, width: int) -> Array:
    sizes = hierarchy.sizes
    level = max((l for l, size in enumerate(sizes) if size >= 4 * width), default=0)
    if sizes[level] <= 1200 and level > 0:
        x = _dense_start(hierarchy, level, width)
    else:
        x = np.random.default_rng(0).standard_normal((sizes[level], width))
        mass = hierarchy.masses[level]
        x = hierarchy.precondition(level, x * mass[:, None], np.ones(width))
    while level > 0:
        if level < len(sizes):
            _, x, _, _ = _iterate(hierarchy, level, x, k, 1e-2, 3, False)
        level -= 1
        x = hierarchy.prolong(level, x)
    return x


def _dense_start(hierarchy: Any, level: int, width: int) -> Array:
    size = hierarchy.sizes[level]
    root = np.sqrt(hierarchy.masses[level])
    identity = np.zeros((size, -(-size // 4) * 4))
    np.fill_diagonal(identity, 1.0)
    dense = hierarchy.product(level, identity)[:, :size] / root[:, None] / root
    _, u = scipy.linalg.eigh((dense + dense.T) / 2, subset_by_index=[1, width], driver="evr")
    return np.ascontiguousarray(u / root[:, None])


def _targets(values: Array, k: int, tol: float) -> Array:
    """The residual each wanted vector has to reach; see the notes of `laplacian_eigenvectors`."""
    gaps = np.diff(values, prepend=-np.inf, append=np.inf)
    gap = np.minimum(gaps[:-1], gaps[1:])[:k]
    return np.maximum(0.1 * np.sqrt(tol) * np.maximum(gap, 1e-2 * values[:k]), _FLOOR)


def _orthonormal(x: Array, ax: Array, mass: Array, threads: int) -> Array:
    """Rayleigh-Ritz on the span of x alone, both blocks turned in place; returns the values."""
    width = x.shape[1]
    for _ in range(2):
        both = _core.gram((x,), x, ax, mass, threads)
        g, h = both[:, :width], both[:, width:]
        g, h = (g + g.T) / 2, (h + h.T) / 2
        scale = 1 / np.sqrt(np.diagonal(g))
        e, u = np.linalg.eigh(g * scale * scale[:, None])
        v = scale[:, None] * u / np.sqrt(np.maximum(e, 1e-14))
        values, y = np.linalg.eigh(v.T @ h @ v)
        coef = np.ascontiguousarray(v @ y)
        _core.update((x,), coef, (x,), threads)
        _core.update((ax,), coef, (ax,), threads)
    return values


def _iterate(
    hierarchy: Any, level: int, x: Array, k: int, tol: float, max_iter: int, verbose: bool
) -> tuple[Array, Array, Array, int]:
    threads = hierarchy.n_threads
    mass = hierarchy.masses[level]
    width = x.shape[1]
    _core.center(x, mass, threads)
    ax = hierarchy.product(level, x)
    values = _orthonormal(x, ax, mass, threads)
    p, ap = np.empty_like(x), np.empty_like(x)
    p_count, h_pp = 0, np.empty((0, 0))
    exact = True
    it = 0
    while True:
        r, norms = _core.residual(x, ax, mass, values, threads)
        targets = _targets(values, k, tol)
        if verbose:
            print(level, it, exact, values[:k][:3], norms[:k].max(), (norms[:k] / targets).max(), norms[k:].max(initial=0))
        done = bool((norms[:k] <= targets).all())
        if (done or it >= max_iter) and (exact or level > 0):
            return values[:k] if level == 0 else values, x, norms[:k], it
        if done:
            _core.center(x, mass, threads)
            ax = hierarchy.product(level, x)
            values = _orthonormal(x, ax, mass, threads)
            p_count, exact = 0, True
            continue
        if it >= max_iter:
            done = True
            _core.center(x, mass, threads)
            ax = hierarchy.product(level, x)
            values = _orthonormal(x, ax, mass, threads)
            exact = True
            continue
        it += 1
        wanted = np.concatenate([norms[:k] > targets, np.ones(width - k, dtype=bool)])
        active = int(-(-wanted.sum() // 4) * 4)
        if active < width:
            chosen = np.sort(np.argsort(~wanted, kind="stable")[:active])
            r, norms = np.ascontiguousarray(r[:, chosen]), norms[chosen]
        w = hierarchy.precondition(level, r, 1 / np.maximum(norms, 1e-300))
        aw = hierarchy.product(level, w)
        a = w.shape[1]
        parts, aparts = ((x, p, w), (ax, ap, aw)) if p_count else ((x, w), (ax, aw))
        both = _core.gram(parts, w, aw, mass, threads)
        old = width + p_count
        rows = np.r_[0:old, both.shape[0] - a : both.shape[0]]
        b, c = both[:old, :a], both[-a:, :a]
        hs, hw = both[:old, a:], both[-a:, a:]
        scale = 1 / np.sqrt(np.maximum(np.diagonal(c), 1e-300))
        b, hs = b * scale, hs * scale
        c, hw = c * scale * scale[:, None], hw * scale * scale[:, None]
        hd = np.zeros((old, old))
        hd[np.arange(width), np.arange(width)] = values
        hd[width:, width:] = h_pp
        schur = c - b.T @ b
        e, u = np.linalg.eigh((schur + schur.T) / 2)
        keep = e > _DEPENDENT
        v = u[:, keep] / np.sqrt(e[keep])
        new = v.shape[1]
        hdb = hd @ b
        cross = (hs - hdb) @ v
        hww = v.T @ (hw - b.T @ hs - hs.T @ b + b.T @ hdb) @ v
        h = np.empty((old + new, old + new))
        h[:old, :old], h[:old, old:], h[old:, :old], h[old:, old:] = hd, cross, cross.T, (hww + hww.T) / 2
        theta, y = np.linalg.eigh(h)
        y = y[:, :width]
        values = theta[:width]
        step = y.copy()
        step[:width] = 0
        q = np.linalg.qr(np.concatenate([y, step], axis=1))[0][:, width:]
        p_next = q.shape[1]
        h_pp = q.T @ h @ q
        coef = np.concatenate([y, q], axis=1)
        full = np.zeros((both.shape[0], 2 * width))
        back = v @ coef[old:]
        full[rows[:old], : width + p_next] = coef[:old] - b @ back
        full[-a:, : width + p_next] = scale[:, None] * back
        _core.update(parts, full, (x, p), threads)
        _core.update(aparts, full, (ax, ap), threads)
        p_count = p_next
        exact = False
