"""Linear systems of embeddings and label propagation: sparse, plus a diagonal, plus the low rank of a smoother.

The rules, for a symmetric positive definite S with many right-hand sides:

* sparse S: a sparse Cholesky factor while its predicted work is small, else a dense one while S is small. Beyond that
  conjugate gradients on a block of columns, preconditioned by the diagonal, to a relative residual of 1e-10.
* dense S: a dense Cholesky factor.
* S + R with the penalty R of a smoother: the solver of S + cI and the Woodbury formula, arranged so that nothing
  cancels however large or small the weight c is; a dense R is added.

Where rounding leaves S singular the smallest jitter that helps is added, with a warning.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from manifast._factor import SparseCholesky
from manifast._multilevel import _hierarchy
from manifast._threads import kernel_threads
from manifast._validation import Array, is_sparse
from manifast.smoothers import RidgePenalty

__all__ = ["PenalizedSystem", "spd_solver"]

Operator = Callable[[Array], Array]

_DIRECT_FLOPS = 3e10  # a factor of this much work takes as long as the iteration on some hundred columns
_DENSE_ROWS = 4000  # below, a dense factor takes no longer than that
_COLUMNS = 8  # iterated together: blocks of 50,000 rows just stay in cache; more took longer per column
_FOLD = 64
_TOLERANCE = 1e-10  # relative residual at which a column counts as solved
_MAX_ITER = 3000
_GROUNDED = 1e-12  # what a component's rows must add up to, relative to its diagonal, to be clear of rounding


def spd_solver(S: Any, *, n_threads: int | None = None, verbose: bool = False) -> Operator:
    """The function that maps right-hand sides (n, m) to S^-1 times them.

    Parameters
    ----------
    S : array or sparse matrix of shape (n, n)
        Symmetric and positive definite, as a Laplacian plus a diagonal that is positive somewhere in every component.
        Where rounding hides that, a jitter is added to it, with a warning.
    n_threads : int, optional
    verbose : bool, default False
        Print what was chosen and how it went.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from manifast.systems import spd_solver
    >>> solve = spd_solver(sp.csr_array(np.array([[2.0, -1.0], [-1.0, 1.0]])))
    >>> solve(np.array([[1.0], [0.0]]))
    array([[1.],
           [1.]])
    """
    if not is_sparse(S):
        return _dense_solver(np.asarray(S, dtype=np.float64))
    S = sp.csr_array(S, dtype=np.float64)
    count, labels = connected_components(S, directed=False)
    S = _grounded(S, labels)
    cholesky = SparseCholesky(S, max_flops=_DIRECT_FLOPS, n_threads=n_threads)
    small = S.shape[0] <= _DENSE_ROWS
    if verbose:
        method = "sparse factor" if cholesky.feasible else "dense factor" if small else "iteration"
        print(f"spd_solver: n = {S.shape[0]}, {method}", flush=True)
    if cholesky.feasible:
        for jitter in _jitters(float(S.diagonal().max(initial=0.0)), S.shape[0]):
            try:
                cholesky.factor(S, jitter)
            except la.LinAlgError:
                continue
            _report(jitter)
            return lambda block: cholesky.solve(np.ascontiguousarray(block))
        raise _NOT_DEFINITE
    if small:
        return _dense_solver(S.toarray())
    return _Iterated(S, count == 1, n_threads, verbose)


class PenalizedSystem:
    """(S + R) X = B with the penalty R of a smoother.

    Parameters
    ----------
    S : array or sparse matrix of shape (n, n)
        Symmetric and positive semidefinite; S + R must be positive definite.
    penalty : RidgePenalty or array of shape (n, n)
        R, as `penalty` of a smoother gives it.
    n_threads : int, optional
    verbose : bool, default False

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from manifast.smoothers import LinearRidgeSmoother
    >>> from manifast.systems import PenalizedSystem
    >>> smoother = LinearRidgeSmoother(np.array([[0.0], [1.0], [2.0]]), ridge=0.01)
    >>> labelled = sp.diags_array([1e6, 0.0, 1e6])  # two values known, the third predicted by the regression
    >>> PenalizedSystem(labelled, smoother.penalty(1.0)).solve(np.array([[0.0], [0.0], [1e6]])).round(3)
    array([[0. ],
           [0.5],
           [1. ]])
    """

    def __init__(self, S: Any, penalty: Any, *, n_threads: int | None = None, verbose: bool = False) -> None:
        self.n = S.shape[0]
        if not isinstance(penalty, RidgePenalty):
            self.inner = _dense_solver(penalty + (S.toarray() if is_sparse(S) else S))
            self._solved = np.empty((len(penalty), 0))
            return
        # With E = S + cI and R = cI - cΦ(Φ'Φ + Λ)^-1Φ' the Woodbury formula reads
        # (S + R)^-1 = E^-1 + c E^-1 Φ (Λ + Φ'E^-1 SΦ)^-1 Φ'E^-1, a sum: I - cE^-1 = E^-1 S has taken the cancellation.
        self._weight = penalty.weight
        factor = penalty.factor
        raised = S + penalty.weight * (sp.eye_array(self.n, format="csr") if is_sparse(S) else np.eye(self.n))
        self.inner = spd_solver(raised, n_threads=n_threads, verbose=verbose)
        self._solved = self.inner(factor)
        product = self._solved.T @ np.asarray(S @ factor)
        self._product = 0.5 * (product + product.T)
        self._set_ridges(penalty.ridges)

    def _set_ridges(self, ridges: Array) -> None:
        core = self._product + np.diag(ridges)
        self._scale = 1.0 / np.sqrt(np.maximum(core.diagonal(), np.finfo(float).tiny))
        self._core = factor_with_jitter(core * self._scale * self._scale[:, None])

    def with_ridges(self, ridges: Array) -> PenalizedSystem:
        """The same for a `RidgePenalty` that differs in its ridges alone: what is large does not depend on them."""
        other = copy(self)
        other._set_ridges(ridges)
        return other

    def solve(self, B: Array) -> Array:
        """The solution X (n, m) for right-hand sides B (n, m)."""
        return self.complete(self.inner(B), B)

    def complete(self, first: Array, B: Array) -> Array:
        """The solution from first = `inner`(B), which does not depend on the ridges and is overwritten."""
        if self._solved.shape[1]:
            inside = self._scale[:, None] * (self._solved.T @ B)
            inside = la.cho_solve(self._core, inside, check_finite=False)
            first += self._solved @ ((self._weight * self._scale)[:, None] * inside)
        return first


_NOT_DEFINITE = ValueError("the graph must give a positive definite system. Got one that is not, even with a jitter.")


def _jitters(size: float, n: int) -> list[float]:
    return [0.0, *(n * np.finfo(float).eps * size * 10.0**e for e in range(8))]


def _report(jitter: float) -> None:
    if jitter:
        warnings.warn(
            f"the system is singular to working precision: {jitter:.1g} was added to its diagonal. Use larger mu or "
            "gamma, or a graph in which every row reaches a label.",
            UserWarning,
            stacklevel=6,
        )


def factor_with_jitter(matrix: Array, *, warn: bool = True) -> tuple[Array, bool]:
    """Cholesky factor as `scipy.linalg.cho_factor` gives it, with the smallest jitter that makes it succeed."""
    for jitter in _jitters(float(matrix.diagonal().max(initial=0.0)), len(matrix)):
        shifted = np.array(matrix, order="F")
        shifted.flat[:: len(shifted) + 1] += jitter
        try:
            factor: tuple[Array, bool] = la.cho_factor(shifted, lower=True, overwrite_a=True, check_finite=False)
        except la.LinAlgError:
            continue
        if warn:
            _report(jitter)
        return factor
    raise _NOT_DEFINITE


def _dense_solver(matrix: Array) -> Operator:
    factor = factor_with_jitter(matrix)
    return lambda block: np.asarray(la.cho_solve(factor, block, check_finite=False))


def _grounded(S: sp.csr_array, labels: Array) -> sp.csr_array:
    """S, raised in components whose rows add up to nothing but rounding: there constants would be free."""
    diagonal = S.diagonal()
    free = np.bincount(labels, S.sum(axis=1)) < _GROUNDED * np.bincount(labels, diagonal)
    if not free.any():
        return S
    raised = np.where(free[labels], 1e2 * _GROUNDED * diagonal, 0.0)
    _report(float(raised.max()))
    return sp.csr_array(S + sp.diags_array(raised, format="csr"))


class _Iterated:
    """Columns of S^-1 B by conjugate gradients, on S scaled to a diagonal of ones: I - G.

    Where G is a connected graph without negative weights the products come from the multilevel solver's kernel, which
    orders the rows for it and takes a fifth of the time of SciPy's.
    """

    def __init__(self, S: sp.csr_array, connected: bool, n_threads: int | None, verbose: bool) -> None:
        self._verbose = verbose
        self._scale = 1.0 / np.sqrt(S.diagonal()[:, None])
        self._order: Any = slice(None)
        rows = np.repeat(np.arange(S.shape[0]), np.diff(S.indptr))
        values = np.where(rows == S.indices, 0.0, -S.data * self._scale[rows, 0] * self._scale[S.indices, 0])
        self._graph = sp.csr_array((values, S.indices, S.indptr), shape=S.shape)
        self._hierarchy, self._rest = None, np.ones((S.shape[0], 1))
        if connected and values.min() >= 0:
            self._graph.eliminate_zeros()
            with kernel_threads(n_threads) as threads:
                self._hierarchy = _hierarchy(self._graph, threads)
            self._order, factor = self._hierarchy.order(), self._hierarchy.scale**2
            self._rest = factor * (1.0 - self._graph.sum(axis=1)[self._order][:, None])
            self._scale *= np.sqrt(factor)  # the kernel's graph is G times a power of two

    def _product(self, p: Array) -> Array:
        """What `_rest` times p lacks of (I - G) p: -Gp, or from the kernel (diag(G1) - G) p."""
        return np.asarray(-(self._graph @ p) if self._hierarchy is None else self._hierarchy.product(0, p))

    def __call__(self, B: Array) -> Array:
        solution = np.empty(B.shape)
        worst = 0.0
        for begin in range(0, B.shape[1], _COLUMNS):
            part = slice(begin, min(begin + _COLUMNS, B.shape[1]))
            right = np.zeros((len(B), _COLUMNS))
            right[:, : part.stop - begin] = (self._scale * B[:, part])[self._order]
            found, n_iter, residual = self._solve(right)
            solution[self._order, part] = found[:, : part.stop - begin]
            worst = max(worst, residual)
            if self._verbose:
                print(f"spd_solver: {part.stop} of {B.shape[1]} columns, {n_iter} iterations, residual {residual:.1e}")
        solution *= self._scale
        if worst > 100 * _TOLERANCE:
            from sklearn.exceptions import ConvergenceWarning

            warnings.warn(
                f"the linear system was solved to relative residuals of {worst:.1e} only. Use larger mu or gamma, or a "
                "graph in which every row reaches a label.",
                ConvergenceWarning,
                stacklevel=6,
            )
        return solution

    def _solve(self, B: Array) -> tuple[Array, int, float]:
        """Solutions, iterations, and the largest relative residual."""
        n, tiny = len(B), np.finfo(float).tiny
        size = np.maximum(la.norm(B, axis=0), tiny)
        # Rows are folded, many side by side: loops over the few columns of one row would take longer than their work.
        x, r, p, q, rest, spare = np.zeros((6, -(-n // _FOLD), _FOLD * _COLUMNS))
        rows = [part.reshape(-1, _COLUMNS)[:n] for part in (x, r, p, q, rest)]
        rows[1][:] = rows[2][:] = B / size
        rows[4][:] = self._rest
        squares = _dots(r, r)
        for n_iter in range(_MAX_ITER + 1):
            residual = float(np.sqrt(squares.max()))
            if residual <= _TOLERANCE or n_iter == _MAX_ITER:
                break
            np.multiply(rest, p, out=q)
            rows[3] += self._product(rows[2])
            step = np.tile(squares / np.maximum(_dots(p, q), tiny), _FOLD)
            x += np.multiply(p, step, out=spare)
            r -= np.multiply(q, step, out=q)
            before, squares = squares, _dots(r, r)
            p *= np.tile(squares / np.maximum(before, tiny), _FOLD)
            p += r
        return rows[0] * size, n_iter, residual


def _dots(a: Array, b: Array) -> Array:
    """Inner products of columns, for folded rows."""
    return np.asarray(np.einsum("ij,ij->j", a, b).reshape(_FOLD, _COLUMNS).sum(axis=0))
