"""Linear systems of embeddings and label propagation: sparse, plus a diagonal, plus the low rank of a smoother.

The rules, for a symmetric positive definite S with many right-hand sides:

* sparse S: a sparse Cholesky factor while its predicted work is small, else a dense one while S is small. Beyond that
  conjugate gradients on a block of columns to a relative residual of 1e-10, preconditioned by the diagonal; or, for a
  Laplacian whose diagonal is hardly raised, by a multilevel hierarchy. Large Laplacians are not even tried to factor.
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

from manifast._linalg import dense as _dense
from manifast._linalg.conjugate_gradients import GroundedLaplacian, UnitDiagonal
from manifast._linalg.penalties import RidgePenalty
from manifast._linalg.sparse_cholesky import SparseCholesky
from manifast._progress import log
from manifast._sparse import checked_sparse
from manifast._validation import Array, is_sparse
from manifast._warnings import warn

__all__ = ["PenalizedSystem", "grounded_solution", "spd_solver"]

Operator = Callable[[Array], Array]

_DIRECT_FLOPS = 3e10  # a factor of this much work takes as long as the iteration on some hundred columns
_DENSE_ROWS = 4000  # below, a dense factor takes no longer than that
_COLUMNS = 8  # iterated together: blocks of 50,000 rows just stay in cache; more took longer per column
_TOLERANCE = 1e-10  # relative residual at which a column counts as solved
_MAX_ITER = 3000
_RAISED = 1e-3  # a Laplacian raised by this share of its diagonal everywhere is preconditioned well enough by that
_LAPLACIAN_ROWS = 30_000  # beyond, ordering the columns takes longer than solving for a few right-hand sides
_GROUNDED = 1e-12  # what a component's rows must add up to, relative to its diagonal, to be clear of rounding


_SYSTEM = "the system of the graph"
_A_BETTER_GRAPH = "Use a graph in which every row reaches a label, by weights that are not too far apart."
_LARGER_WEIGHTS = "Use larger mu or gamma, or a graph in which every row reaches a label."


def spd_solver(
    S: Any, *, advice: str = _A_BETTER_GRAPH, n_threads: int | None = None, verbose: bool = False
) -> Operator:
    """The function that maps right-hand sides (n, m) to S^-1 times them.

    Parameters
    ----------
    S : array or sparse matrix of shape (n, n)
        Symmetric and positive definite, as a Laplacian plus a diagonal that is positive somewhere in every component.
        Where rounding hides that, a jitter is added to it, with a warning.
    advice : str, optional
        What that warning says can be done.
    n_threads : int, optional
    verbose : bool, default False
        Print what was chosen and how it went.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from manifast._linalg.systems import spd_solver
    >>> solve = spd_solver(sp.csr_array(np.array([[2.0, -1.0], [-1.0, 1.0]])))
    >>> solve(np.array([[1.0], [0.0]]))
    array([[1.],
           [1.]])
    """
    if not is_sparse(S):
        return _dense_solver(np.asarray(S, dtype=np.float64), advice)
    S = _grounded(checked_sparse(S, "S", square=True, dtype=np.float64), advice)
    ground = _ground(S)
    if ground is not None and S.shape[0] > _LAPLACIAN_ROWS:
        return _iteration(S, ground, advice, n_threads, verbose)
    cholesky = SparseCholesky(S, max_flops=_DIRECT_FLOPS, n_threads=n_threads)
    small = S.shape[0] <= _DENSE_ROWS
    if verbose:
        method = "sparse factor" if cholesky.feasible else "dense factor" if small else "iteration"
        log(f"spd_solver: n = {S.shape[0]}, {method}")
    if cholesky.feasible:

        def factored(jitter: float) -> bool:
            try:
                cholesky.factor(S, jitter)
            except la.LinAlgError:
                return False
            return True

        _report(_dense.smallest_jitter(factored, float(S.diagonal().max(initial=0.0)), S.shape[0], _SYSTEM), advice)
        return lambda block: cholesky.solve(np.ascontiguousarray(block))
    if small:
        return _dense_solver(S.toarray(), advice)
    return _iteration(S, ground, advice, n_threads, verbose)


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
    >>> from manifast.smoothers.ridge import LinearRidgeSmoother
    >>> from manifast._linalg.systems import PenalizedSystem
    >>> smoother = LinearRidgeSmoother(np.array([[0.0], [1.0], [2.0]]), ridge=0.01)
    >>> labelled = sp.diags_array([1e6, 0.0, 1e6])  # two values known, the third predicted by the regression
    >>> PenalizedSystem(labelled, smoother.penalty(1.0)).solve(np.array([[0.0], [0.0], [1e6]])).round(3)
    array([[0. ],
           [0.5],
           [1. ]])
    """

    def __init__(self, S: Any, penalty: Any, *, n_threads: int | None = None, verbose: bool = False) -> None:
        if is_sparse(S):
            S = checked_sparse(S, "S", square=True, dtype=np.float64)
        self.n = S.shape[0]
        if not isinstance(penalty, RidgePenalty):
            self.inner = _dense_solver(_held_by(S, penalty) + (S.toarray() if is_sparse(S) else S), _LARGER_WEIGHTS)
            self._solved = np.empty((len(penalty), 0))
            return
        # With E = S + cI and R = cI - cΦ(Φ'Φ + Λ)^-1Φ' the Woodbury formula reads
        # (S + R)^-1 = E^-1 + c E^-1 Φ (Λ + Φ'E^-1 SΦ)^-1 Φ'E^-1, a sum: I - cE^-1 = E^-1 S has taken the cancellation.
        self._weight = penalty.weight
        factor = penalty.factor
        shifted = raised(S, np.full(self.n, penalty.weight))
        components, free = _free_components(S)
        options: dict[str, Any] = {"advice": _LARGER_WEIGHTS, "n_threads": n_threads, "verbose": verbose}
        if not free.any():
            self.inner = spd_solver(shifted, **options)
            self._solved = varying = self.inner(factor)
        else:
            # S does not see constants on a component that nothing holds. E is c there, which S may drown in rounding.
            solve = _varying_solver(shifted, components, free, **options)
            mean = _means(components, free)
            self.inner = lambda B: solve(B) + mean(B) / self._weight
            varying = solve(factor)
            self._solved = varying + mean(factor) / self._weight
        product = varying.T @ np.asarray(S @ factor)
        self._product = 0.5 * (product + product.T)
        self._set_ridges(penalty.ridges)

    def _set_ridges(self, ridges: Array) -> None:
        core = self._product + np.diag(ridges)
        self._scale = 1.0 / np.sqrt(np.maximum(core.diagonal(), np.finfo(float).tiny))
        self._core, jitter = _dense.factor_jittered(core * self._scale * self._scale[:, None], _SYSTEM)
        _report(jitter, _LARGER_WEIGHTS)

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
            inside = _dense.solve(self._core, inside)
            first += self._solved @ ((self._weight * self._scale)[:, None] * inside)
        return first


def raised(S: Any, diagonal: Array) -> Any:
    """S + diag(diagonal), sparse or dense as S is."""
    if is_sparse(S):
        return sp.csr_array(S + sp.diags_array(diagonal, format="csr"))
    dense = np.array(S, dtype=np.float64)
    dense.flat[:: len(dense) + 1] += diagonal
    return dense


def _report(jitter: float, advice: str) -> None:
    if jitter:
        warn(f"the system is singular to working precision: {jitter:.1g} was added to its diagonal. {advice}")


def _warn_of_convergence(reached: str, advice: str) -> None:
    from sklearn.exceptions import ConvergenceWarning

    message = f"the linear system was solved to relative {reached} only. {advice}"
    warn(message, ConvergenceWarning)


def _dense_solver(matrix: Array, advice: str) -> Operator:
    factor, jitter = _dense.factor_jittered(matrix, _SYSTEM)
    _report(jitter, advice)
    return lambda block: _dense.solve(factor, block)


def _free_components(S: Any) -> tuple[Array, Array]:
    """The component of every row, and those whose rows add up to nothing but rounding: there constants are free."""
    count, components = connected_components(S if is_sparse(S) else sp.csr_array(S), directed=False)
    ground = np.bincount(components, np.asarray(S.sum(axis=1)).ravel(), count)
    return components, ground < _GROUNDED * np.bincount(components, S.diagonal(), count)


def _grounded(S: sp.csr_array, advice: str) -> sp.csr_array:
    """S, raised where constants would be free."""
    components, free = _free_components(S)
    return _lifted(S, S.diagonal(), free[components], advice) if free.any() else S


def _held_by(S: Any, penalty: Array) -> Array:
    """A dense penalty, raised where it does not hold the constants that are free in S, either."""
    components, free = _free_components(S)
    if free.any():
        each = np.arange(len(components))
        total = sp.csr_array((np.ones(len(each)), (components, each)))
        sums = np.bincount(components, (total @ penalty)[components, each])
        free &= sums < _GROUNDED * np.bincount(components, S.diagonal())
    return _lifted(penalty, S.diagonal(), free[components], _LARGER_WEIGHTS) if free.any() else penalty


def _lifted(matrix: Any, diagonal: Array, where: Array, advice: str) -> Any:
    jitter = np.where(where, 1e2 * _GROUNDED * diagonal, 0.0)
    _report(float(jitter.max()), advice)
    return raised(matrix, jitter)


def _means(components: Array, chosen: Array) -> Operator:
    """The function that puts the mean over its component into every row, and 0 where that is not chosen."""
    n = len(components)
    total = sp.csr_array((np.ones(n), (components, np.arange(n))))
    weights = chosen / np.bincount(components)
    return lambda block: np.asarray((weights[:, None] * (total @ block))[components])


def _varying_solver(S: Any, components: Array, free: Array, **options: Any) -> Operator:
    """S^-1 except for constants on the components where S leaves them free, or so nearly that rounding decides.

    There right-hand sides are taken less their means, and solutions add up to 0. So one row may be held.
    """
    mean, diagonal = _means(components, free), S.diagonal()
    order = np.lexsort((-diagonal, components))
    largest = order[np.unique(components[order], return_index=True)[1]][free]
    held = np.zeros(len(diagonal))
    held[largest] = np.where(diagonal[largest] > 0, diagonal[largest], 1.0)
    solve = spd_solver(raised(S, held), **options)
    level = solve(held[:, None])  # 1 in a free component, but for what else holds its rows
    level /= np.where(free[components][:, None], mean(level), 1.0)

    def varying(B: Array) -> Array:
        X = solve(B - mean(B))
        return np.asarray(X - level * mean(X))

    return varying


def _ground(S: sp.csr_array) -> Array | None:
    """What raises the diagonal of a Laplacian: the sums of its rows. None where S is no such matrix."""
    diagonal = S.diagonal()
    off = S - sp.diags_array(diagonal, format="csr")
    ground = np.asarray(S.sum(axis=1)).ravel()
    if off.data.max(initial=0.0) > 0 or (ground < -1e-14 * diagonal).any():
        return None
    return np.where(ground > 1e-14 * diagonal, ground, 0.0)


def _iteration(S: sp.csr_array, ground: Array | None, advice: str, n_threads: int | None, verbose: bool) -> Operator:
    """S^-1 by conjugate gradients, for some columns at a time, each to its own relative residual."""
    diagonal = S.diagonal()
    graph = sp.csr_array(sp.diags_array(diagonal, format="csr") - S)
    system: GroundedLaplacian | UnitDiagonal
    if ground is None:
        system = UnitDiagonal(S)
    else:
        cycles = bool((ground < _RAISED * diagonal).any())
        system = GroundedLaplacian(graph, ground, cycles=cycles, n_threads=n_threads)

    def solve(B: Array) -> Array:
        solution, worst = np.empty(B.shape), 0.0
        for begin in range(0, B.shape[1], _COLUMNS):
            part = slice(begin, begin + _COLUMNS)
            # A first step by the diagonal leaves a residual in which rows of a huge diagonal do not hide the others.
            first = B[:, part] / diagonal[:, None]
            rest = np.asarray(graph @ first)
            size = np.maximum(np.abs(rest).max(axis=0), np.finfo(float).tiny)  # whose squares may be out of range
            found, n_iter, residual = system.solve(rest / size, tol=_TOLERANCE, max_iter=_MAX_ITER)
            solution[:, part] = first + found * size
            worst = float(np.maximum(worst, residual))  # which keeps what is not a number
            if verbose:
                done = min(part.stop, B.shape[1])
                log(f"spd_solver: {done} of {B.shape[1]} columns, {n_iter} iterations, residual {residual:.1e}")
        if not worst <= 100 * _TOLERANCE:
            _warn_of_convergence(f"residuals of {worst:.1e}", advice)
        return solution

    return solve


_WEAK = 1e-11  # edges and grounds below this share of a diagonal are close to drowning in its rounding
_CLOSE = 1e-6  # where no group hangs by less than this, rounding of the diagonal does no harm
_REFINEMENTS = 100
_REFINED = 1e-6  # relative change in the last refinement that is not worth a warning
_TINY = float(np.finfo(float).tiny)


def grounded_solution(W: Any, ground: Array, B: Array, *, verbose: bool = False) -> tuple[Array, Array]:
    """X of (D - W + diag(ground)) X = B for a graph W, right however far its weights are apart.

    A group of nodes that hangs on the rest and on the ground by nothing but weights far below those inside is nearly
    singular: constants on it are as good as free. Such groups come last, each as one node of a smaller graph of the
    same kind, which stands on the nodes that are solved already.

    Parameters
    ----------
    W : array or sparse matrix of shape (n, n)
        Symmetric, with weights that are not negative and nothing on the diagonal.
    ground : array of shape (n,)
        Not negative.
    B : array of shape (n, m)
    verbose : bool, default False

    Returns
    -------
    X : array of shape (n, m)
        0 where no path leads to the ground.
    reached : array of bool of shape (n,)
        Where one does.

    Examples
    --------
    >>> import numpy as np
    >>> from manifast._linalg.systems import grounded_solution
    >>> W = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    >>> grounded_solution(W, np.array([1e-30, 0.0, 0.0]), np.array([[1e-30], [0.0], [0.0]]))
    (array([[1.],
           [1.],
           [0.]]), array([ True,  True, False]))
    """
    if is_sparse(W):
        W = checked_sparse(W, "W", square=True, dtype=np.float64)
    solve, reached = _grounded_solver(W, ground, verbose)
    return solve(B), reached


def _grounded_solver(W: Any, ground: Array, verbose: bool) -> tuple[Operator, Array]:
    diagonal = np.asarray(W.sum(axis=1)).ravel() + ground
    groups, held = _groups(W, ground, diagonal, _WEAK)
    reached = held[groups]
    if not held.any() and not W.sum():
        return np.zeros_like, reached
    if reached.all():
        solve = spd_solver(raised(-W, diagonal), verbose=verbose)
        close = _groups(W, ground, diagonal, _CLOSE)[1].all()
        if close:
            return solve, reached
        full = sp.csr_array(W)
        return _refined(lambda B, X: solve(B - _flow(full, ground, X)), reached), reached
    inside, outside = np.flatnonzero(reached), np.flatnonzero(~reached)
    W = sp.csr_array(W)
    within, links, rows = W[inside][:, inside], W[outside][:, inside], W[outside][:, outside]
    numbers = np.unique(groups[outside], return_inverse=True)[1].reshape(-1)
    merge = sp.csr_array((np.ones(len(outside)), (numbers, np.arange(len(outside)))))
    among = merge @ rows @ merge.T
    among = sp.csr_array(among - sp.diags_array(among.diagonal()))
    standing = merge @ (ground[outside] + links.sum(axis=1))
    if len(inside):
        solve_inside = spd_solver(raised(-within, ground[inside] + within.sum(axis=1)), verbose=verbose)
    solve_merged, found = _grounded_solver(among, standing, verbose)
    reached[outside] = found[numbers]
    group = np.full(len(ground), -1)
    group[outside] = numbers
    edges: Any = sp.coo_array(W)
    same = (group[edges.row] == group[edges.col]) & (group[edges.row] >= 0)
    apart, between = (
        sp.csr_array((edges.data[kind], (edges.row[kind], edges.col[kind])), shape=W.shape) for kind in (same, ~same)
    )
    solve_apart = _varying_solver(
        raised(-apart[outside][:, outside], diagonal[outside]), numbers, np.ones(merge.shape[0], bool)
    )

    def step(B: Array, X: Array) -> Array:
        rest, change = B - _flow(W, ground, X), np.zeros(B.shape)
        # Edges inside a group add nothing to its sum, in which their rounding would not be small.
        sums = merge @ (B - _flow(between, ground, X))[outside]
        if len(inside):
            # What flows into the groups leaves through the nodes inside, which feel the weak edges in no other way.
            change[inside] = solve_inside(rest[inside] + links.T @ solve_merged(sums)[numbers])
        change[outside] = solve_merged(sums + merge @ (links @ change[inside]))[numbers]
        change[outside] += reached[outside, None] * solve_apart((rest - _flow(W, ground, change))[outside])
        return change

    return _refined(step, reached), reached


def _flow(W: sp.csr_array, ground: Array, X: Array) -> Array:
    """(D - W + diag(ground)) X, edge by edge: a diagonal is rounded, which is not small beside weak edges."""
    rows, product = np.repeat(np.arange(len(X)), np.diff(W.indptr)), ground[:, None] * X
    for column, x in zip(product.T, X.T, strict=True):
        column += np.bincount(rows, W.data * (x[rows] - x[W.indices]), len(x))
    return product


def _refined(step: Callable[[Array, Array], Array], reached: Array) -> Operator:
    """The function that starts from 0 and adds step(B, X) to X until that changes nothing."""
    from sklearn.exceptions import ConvergenceWarning

    def refined(B: Array) -> Array:
        B = np.where(reached[:, None], B, 0.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # what it says of a step does not hold of the result
            X, share = step(B, np.zeros(B.shape)), 1.0
            for _ in range(_REFINEMENTS):
                change = step(B, X)
                sizes = np.abs(change).max(axis=0, initial=0.0), np.abs(X).max(axis=0, initial=0.0)
                before, share = share, float((sizes[0] / np.maximum(sizes[1], _TINY)).max(initial=0.0))
                if not share < before:
                    break
                X += change
                if share < _TOLERANCE:
                    break
        if not share < _REFINED:
            _warn_of_convergence(f"changes of {share:.1e}", _A_BETTER_GRAPH)
        return X

    return refined


def _groups(W: Any, ground: Array, diagonal: Array, weak: float) -> tuple[Array, Array]:
    """The group of every node, joined by edges that are not weak, and which groups stand firmly on the ground."""
    if is_sparse(W):
        ends = np.repeat(diagonal, np.diff(W.indptr)), diagonal[W.indices]
        strong = W.data > weak * np.maximum(*ends)
        joined = sp.csr_array((strong, W.indices, W.indptr), shape=W.shape)
        if not strong.all():
            joined = joined.copy()
            joined.eliminate_zeros()
    else:
        least = weak * np.maximum.outer(diagonal, diagonal)
        joined = sp.csr_array(np.greater(W, least))
    count, groups = connected_components(joined, directed=False)
    firm = np.bincount(groups, ground, count) > weak * np.bincount(groups, diagonal, count)
    return groups, firm
