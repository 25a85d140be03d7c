"""The smallest eigenpairs of a graph Laplacian by a preconditioned block iteration over a multilevel hierarchy.

The iteration is LOBPCG (Knyazev 2001) on a basis that stays orthonormal (as in Hetmaniuk and Lehoucq 2006, and Duersch
et al. 2018). It starts from eigenvectors of a coarse level, carried up and improved on every level on the way, and is
preconditioned by one V-cycle of smoothed aggregation.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from manifast._core import multilevel as _core
from manifast._kernels import NOT_SYMMETRIC, as_graph, explain_flaws, index_dtype
from manifast._progress import log
from manifast._threads import kernel_threads
from manifast._validation import Array, as_count, as_positive, contiguous

__all__ = ["laplacian_eigenvectors"]

_DENSE = 500  # nodes up to which the dense solver is faster
_DENSE_START = 600  # nodes of a coarse level up to which its eigenvectors come from the dense solver
_FLOOR = 2e-15  # residuals of normalised vectors do not get below this: rounding
_CLUSTER = 1e-2  # eigenvalues closer than this, relatively, count as one cluster
_DEPENDENT = 1e-9  # squared sine of the angle below which a new direction holds only rounding errors
_FLOAT32 = 1e-7  # eigenvalues below this need a preconditioner in double precision
_TINY = 1e-300


def laplacian_eigenvectors(
    W: sp.sparray | sp.spmatrix | Array,
    k: int,
    *,
    tol: float = 1e-10,
    max_iter: int = 200,
    n_threads: int | None = None,
    verbose: bool = False,
) -> tuple[Array, Array, Array, int]:
    """The k smallest nontrivial eigenpairs of L z = λ D z, with L = D - W and the degrees D of a connected graph.

    Parameters
    ----------
    W : sparse or dense matrix of shape (n, n)
        Symmetric, with finite weights that are not negative. Self-loops count nowhere.
    k : int
        From 1 to n - 1. The constant vector, of eigenvalue 0, is not among them.
    tol : float, default 1e-10
        Accuracy asked for: eigenvalues right to tol / 10 of themselves, and angles between computed and true
        eigenvectors of at most sqrt(tol) / 10, where the gaps between eigenvalues allow it. See the notes.
    max_iter : int, default 200
        Iterations on the whole graph. What has been reached by then is returned: the residuals tell.
    n_threads : int, optional
    verbose : bool, default False
        Print a line per iteration.

    Returns
    -------
    values : array of shape (k,)
        Ascending, all above 0.
    vectors : array of shape (n, k)
        Zᵀ D Z = I, and 1ᵀ D Z = 0.
    residuals : array of shape (k,)
        Norms of L z - λ D z by D⁻¹, that is, residuals of the normalised Laplacian I - D^(-1/2) W D^(-1/2), relative
        to 2, the bound of its norm. Recomputed from the vectors returned.
    n_iter : int

    Raises
    ------
    ValueError
        For a graph that is not connected, among others.

    Notes
    -----
    An eigenvalue can be as small as 1e-6, so a residual says little by itself. With r the norm of L z - λ D z and g
    the distance of λ to the other eigenvalues, the angle to the true vector is at most about r / g and the eigenvalue
    is off by at most r² / g. A vector is accepted when r / g is at most sqrt(tol) / 10 and r² / g at most λ tol / 10.
    g is seen among the current approximations, which include a few eigenvalues beyond the wanted ones, and is taken as
    λ / 100 where it is less: eigenvalues closer than 1 % count as a cluster, whose common space is determined while
    its single vectors may not be. No residual is asked to be below 2e-15, where rounding ends all progress.

    Results have the same bits for any n_threads.

    Examples
    --------
    >>> import numpy as np
    >>> from manifast._linalg.multilevel import laplacian_eigenvectors
    >>> ring = np.roll(np.eye(8), 1, axis=0) + np.roll(np.eye(8), -1, axis=0)
    >>> laplacian_eigenvectors(ring, 2)[0].round(6)  # 1 - cos(2π / 8), twice
    array([0.292893, 0.292893])
    """
    graph = as_graph(W, "W")
    n = graph.shape[0]
    k = as_count(k, "k", maximum=n - 1, why=f" for {n} nodes")
    max_iter = as_count(max_iter, "max_iter", minimum=0)
    accuracy = as_positive(tol, "tol")
    wanted = int(k)
    with kernel_threads(n_threads) as threads:
        hierarchy = hierarchy_of(graph, threads)
        width = _block_width(wanted)
        if n <= _DENSE or n < 4 * width:
            x, n_iter = np.pad(_dense_vectors(hierarchy, 0, wanted), ((0, 0), (0, -wanted % 4))), 0
        else:
            x = _start(hierarchy, wanted, width)
            x, n_iter = _iterate(hierarchy, 0, x, wanted, accuracy, int(max_iter), verbose)
        ax = hierarchy.product(0, x)
        mass = hierarchy.masses[0]
        values = np.ascontiguousarray(np.einsum("ij,ij->j", x, ax))
        _, norms = _core.residual(x, ax, mass, values, threads)
    vectors = np.empty((n, wanted))
    vectors[hierarchy.order()] = x[:, :wanted] * hierarchy.scale
    return values[:wanted], vectors, norms[:wanted] / 2, n_iter


def hierarchy_of(graph: sp.csr_array, threads: int) -> _core.Multilevel:
    """The hierarchy of a graph that is fit for one."""
    n = graph.shape[0]
    index = index_dtype(n + graph.nnz)
    indptr, columns = (np.ascontiguousarray(a, dtype=index) for a in (graph.indptr, graph.indices))
    weights = contiguous(graph.data, np.float64)
    if weights.size:
        flaws = _core.flaws(indptr, columns, weights, threads)
        if flaws:
            explain_flaws(graph, flaws)
            assert flaws == NOT_SYMMETRIC  # within rounding, and not at all for what is indexed by it
            graph = sp.csr_array((graph + graph.T) * graph.dtype.type(0.5))
            graph.sort_indices()
            return hierarchy_of(graph, threads)
        hierarchy = _core.Multilevel(indptr.astype(np.int64), columns.astype(np.int32, copy=False), weights, threads)
    if not weights.size or hierarchy.reached < n:
        reached = hierarchy.reached if weights.size else 1
        raise ValueError(
            f"W must be a connected graph. Got one of {n} nodes where only {reached} can be reached from node 0: take "
            "its components one by one, or join them."
        )
    return hierarchy


def _block_width(k: int) -> int:
    """Wanted vectors and some more, which make the wanted ones converge; a multiple of 4."""
    return -(-(k + max(2, k // 10)) // 4) * 4


def _dense_vectors(hierarchy: _core.Multilevel, level: int, count: int) -> Array:
    """The smallest nontrivial eigenvectors of one level, by LAPACK."""
    size = hierarchy.sizes[level]
    root = np.sqrt(hierarchy.masses[level])
    identity = np.eye(size, -(-size // 4) * 4)
    dense = hierarchy.product(level, identity)[:, :size] / root[:, None] / root
    # The constant vector goes to the far end of the spectrum.
    trivial = root / np.linalg.norm(root)
    dense = (dense + dense.T) / 2 + 4 * trivial[:, None] * trivial
    u = scipy.linalg.eigh(dense, subset_by_index=[0, count - 1], check_finite=False)[1]
    return np.ascontiguousarray(u / root[:, None])


def _start(hierarchy: _core.Multilevel, k: int, width: int) -> Array:
    """Vectors to start from on level 0: those of the coarsest level that can hold them, improved on the way up."""
    level = max((at for at, size in enumerate(hierarchy.sizes) if size >= 4 * width), default=0)
    size = hierarchy.sizes[level]
    if level > 0 and size <= _DENSE_START:
        x = _dense_vectors(hierarchy, level, width)
    else:
        x = np.random.default_rng(0).standard_normal((size, width))
    for finer in range(level - 1, -1, -1):
        x = hierarchy.prolong(finer, x)
        if finer:
            x, _ = _iterate(hierarchy, finer, x, k, 1e-2, 3, False)
    return x


def _iterate(
    hierarchy: _core.Multilevel, level: int, x: Array, k: int, tol: float, max_iter: int, verbose: bool
) -> tuple[Array, int]:
    """LOBPCG from x, which it overwrites; all vectors, in the order of their values, and the number of iterations."""
    threads, mass = hierarchy.n_threads, hierarchy.masses[level]
    p, ap = np.empty_like(x), np.empty_like(x)
    ax, values = _orthonormal(hierarchy, level, x)
    h_pp = np.empty((0, 0))
    n_iter, fresh = 0, True
    best, waited, repaired = np.inf, 0, 0
    while True:
        r, norms = _core.residual(x, ax, mass, values, threads)
        targets = _targets(values, k, tol)
        excess = float(np.max(norms[:k] / targets))
        if verbose:
            log(
                f"iteration {n_iter}: smallest value {values[0]:.6g}, residuals up to {norms[:k].max():.2e}, "
                f"{excess:.2g} times the target"
            )
        best, waited = (excess, 0) if excess < 0.5 * best else (best, waited + 1)
        stuck = waited >= 20 and norms[:k].max() < 1e-12  # close to rounding
        if excess <= 1 or n_iter >= max_iter or stuck:
            if level > 0 or fresh:
                return x, n_iter
            # What was carried along by recurrence is computed anew: that has the last word.
            ax, values = _orthonormal(hierarchy, level, x)
            h_pp, fresh = np.empty((0, 0)), True
            continue
        if waited >= 2 and h_pp.size and n_iter >= repaired + 4:
            # Errors of the recurrence grow from step to step, in the end faster than the residuals shrink.
            ax, ap, values, h_pp = _repair(hierarchy, level, x, p)
            repaired = n_iter
            continue
        n_iter += 1
        fresh = False
        r, norms = _still_open(r, norms, targets)
        w = hierarchy.precondition(level, r, 1 / np.maximum(norms, _TINY), bool(values[0] < _FLOAT32))
        blocks = (x, p, w) if h_pp.size else (x, w)
        aw = hierarchy.product(level, w)
        both = _core.gram(blocks, w, aw, mass, threads)
        if _nearly_inside(both, w.shape[1], x.shape[1] + h_pp.shape[0]):
            _take_out(both, blocks, threads)
            aw = hierarchy.product(level, w)
            both = _core.gram(blocks, w, aw, mass, threads)
        if not np.isfinite(both).all():
            n_iter = max_iter
            continue
        values, h_pp, coef = _ritz(both, values, h_pp, x.shape[1], w.shape[1])
        _core.update(blocks, coef, (x, p), threads)
        _core.update((ax, ap, aw) if len(blocks) == 3 else (ax, aw), coef, (ax, ap), threads)


def _nearly_inside(both: Array, new: int, old: int) -> bool:
    """Whether a column of w has little outside the span of [x, p], so that rounding would spoil that little."""
    inside = np.sum(both[:old, :new] ** 2, axis=0)
    return bool(np.any(inside > 0.99 * np.diagonal(both[-new:, :new])))


def _take_out(both: Array, blocks: tuple[Array, ...], threads: int) -> None:
    """w less its part in the other blocks, its columns then brought to norm 1, both roughly; in place."""
    w = blocks[-1]
    new = w.shape[1]
    inside = both[:-new, :new]
    outside = np.diagonal(both[-new:, :new]) - np.sum(inside**2, axis=0)
    scale = 1 / np.sqrt(np.maximum(outside, 1e-12 * np.diagonal(both[-new:, :new]) + _TINY))
    coef = np.vstack([-inside * scale, np.diag(scale)])
    _core.update(blocks, coef, (w,), threads)


def _targets(values: Array, k: int, tol: float) -> Array:
    """The residual each wanted vector has to reach; see the notes of `laplacian_eigenvectors`."""
    gaps = np.diff(values, prepend=-np.inf, append=np.inf)
    wanted = np.maximum(values[:k], 0)
    gap = np.maximum(np.minimum(gaps[:-1], gaps[1:])[:k], _CLUSTER * wanted)
    targets: Array = np.minimum(0.1 * np.sqrt(tol) * gap, np.sqrt(0.1 * tol * gap * wanted))
    return np.maximum(targets, _FLOOR)


def _still_open(r: Array, norms: Array, targets: Array) -> tuple[Array, Array]:
    """Residuals without those of vectors that are done, where that makes the block narrower."""
    width, k = norms.size, targets.size
    needed = np.ones(width, dtype=bool)
    needed[:k] = norms[:k] > targets
    count = -(-int(needed.sum()) // 4) * 4
    if count == width:
        return r, norms
    chosen = np.sort(np.argsort(~needed, kind="stable")[:count])
    return np.ascontiguousarray(r[:, chosen]), norms[chosen]


def _orthonormal(hierarchy: _core.Multilevel, level: int, x: Array) -> tuple[Array, Array]:
    """Rayleigh-Ritz on the span of x, which is turned in place; L x and the values. Twice where x was far from it."""
    threads, mass = hierarchy.n_threads, hierarchy.masses[level]
    width = x.shape[1]
    for _ in range(2):
        _core.center(x, mass, threads)
        ax = hierarchy.product(level, x)
        both = _core.gram((x,), x, ax, mass, threads)
        g, h = (both[:, :width] + both[:, :width].T) / 2, (both[:, width:] + both[:, width:].T) / 2
        scale = 1 / np.sqrt(np.maximum(np.diagonal(g), _TINY))
        e, u = np.linalg.eigh(g * scale * scale[:, None])
        v = scale[:, None] * u / np.sqrt(np.maximum(e, 1e-14))
        values, y = np.linalg.eigh(v.T @ h @ v)
        coef = np.ascontiguousarray(v @ y)
        _core.update((x,), coef, (x,), threads)
        _core.update((ax,), coef, (ax,), threads)
        if e[0] > 0.1:
            break
    return ax, values


def _repair(hierarchy: _core.Multilevel, level: int, x: Array, p: Array) -> tuple[Array, Array, Array, Array]:
    """Rayleigh-Ritz on the span of [x, p], which are turned in place; L x, L p, the values of x, and pᵀ L p."""
    threads, mass = hierarchy.n_threads, hierarchy.masses[level]
    width = x.shape[1]
    ax, ap = hierarchy.product(level, x), hierarchy.product(level, p)
    both = np.stack([_core.gram((x, p), y, ay, mass, threads).reshape(-1, 2, width) for y, ay in ((x, ax), (p, ap))], 1)
    g, h = (np.ascontiguousarray(both[:, :, at]).reshape(2 * width, -1) for at in (0, 1))
    scale = 1 / np.sqrt(np.maximum(np.diagonal(g), _TINY))
    e, u = np.linalg.eigh((g + g.T) / 2 * scale * scale[:, None])
    kept = np.maximum(e, 1e-14)[-width:] if np.sum(e > _DEPENDENT) < width else e[e > _DEPENDENT]
    v = scale[:, None] * u[:, -kept.size :] / np.sqrt(kept)
    theta, y = np.linalg.eigh(v.T @ ((h + h.T) / 2) @ v)
    coef = np.zeros((2 * width, 2 * width))
    coef[:, : kept.size] = v @ y
    _core.update((x, p), coef, (x, p), threads)
    _core.update((ax, ap), coef, (ax, ap), threads)
    return ax, ap, theta[:width], np.diag(theta[width:])


def _ritz(both: Array, values: Array, h_pp: Array, width: int, new: int) -> tuple[Array, Array, Array]:
    """Rayleigh-Ritz on [x, p, w]: the values, pᵀLp of the next p, and the coefficients of the next x and p.

    [x, p] is orthonormal, xᵀLx = diag(values) and xᵀLp = 0; `both` holds [x, p, w]ᵀ[Dw, Lw]. w is made orthonormal to
    [x, p] by coefficients, directions that [x, p] holds already are dropped. The next p is the part of the next x that
    is not in x, made orthonormal to the next x.
    """
    old = width + h_pp.shape[0]
    b, c, h_ow, h_ww = both[:old, :new], both[-new:, :new], both[:old, new:], both[-new:, new:]
    scale = 1 / np.sqrt(np.maximum(np.diagonal(c), _TINY))
    b, h_ow = b * scale, h_ow * scale
    c, h_ww = c * scale * scale[:, None], h_ww * scale * scale[:, None]
    h_oo = scipy.linalg.block_diag(np.diag(values), h_pp)
    e, u = np.linalg.eigh(c - b.T @ b)
    kept = e > _DEPENDENT
    v = u[:, kept] / np.sqrt(e[kept])
    hb = h_oo @ b
    cross = (h_ow - hb) @ v
    corner = v.T @ (h_ww - b.T @ h_ow - h_ow.T @ b + b.T @ hb) @ v
    h = np.block([[h_oo, cross], [cross.T, (corner + corner.T) / 2]])
    theta, y = np.linalg.eigh(h)
    y = y[:, :width]
    step = y.copy()
    step[:width] = 0
    q: Array = np.linalg.qr(np.hstack([y, step]))[0][:, width:]
    turned = np.hstack([y, q])
    back = v @ turned[old:]
    coef = np.zeros((both.shape[0], 2 * width))
    coef[:old, : turned.shape[1]] = turned[:old] - b @ back
    coef[-new:, : turned.shape[1]] = scale[:, None] * back
    return theta[:width], q.T @ h @ q, coef
