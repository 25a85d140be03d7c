"""A few smallest eigenvectors of A z = λ B z: the one place that decides how to find them.

The rules, from measurements on neighbour graphs (2 cores, AVX2):

* dense A, small or with many vectors wanted: LAPACK's eigh. Other dense A: Cholesky of A + σB and block Lanczos on
  the inverse; one factorisation is several times cheaper than the tridiagonal reduction of eigh.
* sparse A: the same with a sparse Cholesky while its predicted work is small. Beyond that, a graph Laplacian goes to
  the multilevel solver, which needs no factor; every other matrix is still factored, as nothing else converges for the
  nearly singular matrices that LLE and LTSA have on manifolds of few dimensions. Only where the factor would be too
  large, because the rows fill many dimensions, polynomials of the matrix take its place: there they converge.
* sparse plus low rank (`LowRankSum`): the sparse factor and the Woodbury formula.
* matrix-free (`LinearOperator`): block Lanczos on the operator itself, for well separated eigenvalues. Where they are
  not and the operator has `toarray`, the matrix is factored after all.

Repeated eigenvalues are found with their multiplicity (see `_linalg.block_lanczos`). Everything is computed in float64
from a fixed start; signs are fixed; residuals are checked and a warning tells when they are large.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import LinearOperator

from manifast._linalg import dense as _dense
from manifast._linalg.block_lanczos import Operator, largest_pairs
from manifast._linalg.chebyshev import smallest_filtered
from manifast._linalg.memory import check_room
from manifast._linalg.multilevel import laplacian_eigenvectors
from manifast._linalg.sparse_cholesky import SparseCholesky
from manifast._progress import log
from manifast._sparse import checked_sparse
from manifast._threads import lazy, one_blas_thread
from manifast._validation import Array, as_columns, as_count, as_matrix, as_number, is_sparse, refuse_masked
from manifast._warnings import warn

__all__ = ["LowRankSum", "fix_signs", "smallest_eigenvectors"]

METHODS = ("dense", "direct", "multilevel", "filtered", "lanczos")

# Up to here LAPACK's eigh is as fast as a factorisation and Lanczos steps.
_DENSE_ROWS = 400
# A sparse factor of this much work takes about as long as the multilevel solver needs for any graph.
_DIRECT_FLOPS = 1e9
# Beyond, ordering the columns alone takes half of what the multilevel solver needs for a Laplacian.
_MULTILEVEL_ROWS = 30_000
# A factor of more work takes gigabytes and minutes; the matrices that need one are those that polynomials suit.
_FACTOR_FLOPS = 2e12
_FILTER_ROWS = 30_000
_FILTER_TOLERANCE = 1e-10  # relative to the largest eigenvalue
# Relative residual of the inverted operator at which a vector counts as found, and what is worth a warning.
_TOLERANCE = 1e-11
_WARN_RESIDUAL = 1e-7
# Smallest eigenvalue of the products of unit vectors at which these count as dependent.
_DEPENDENT = 1e-12
# Eigenvalues of the inverse below this, relative to the largest, are looked for once more without it.
_CLEAR = 1e-6


@dataclass(frozen=True)
class LowRankSum:
    """The symmetric matrix S + U diag(c) U': S sparse (n, n), U dense (n, r), c (r,) without zeros."""

    sparse: Any
    factor: Array
    weights: Array
    blocks: Any = None  # S in another form, for faster products

    @property
    def shape(self) -> tuple[int, int]:
        return self.factor.shape[0], self.factor.shape[0]

    def __matmul__(self, block: Array) -> Array:
        low_rank: Array = self.factor @ ((self.weights * (self.factor.T @ block).T).T)
        return np.asarray((self.sparse if self.blocks is None else self.blocks) @ block) + low_rank

    def toarray(self) -> Array:
        return np.asarray(self.sparse.toarray() + (self.factor * self.weights) @ self.factor.T)


def smallest_eigenvectors(
    A: Any,
    k: int,
    B: Any = None,
    *,
    null: Any = None,
    method: str = "auto",
    tol: float = _TOLERANCE,
    max_iter: int = 300,
    check: bool = True,
    n_threads: int | None = None,
    verbose: bool = False,
) -> tuple[Array, Array]:
    """The k smallest eigenvalues of A z = λ B z and their vectors.

    Parameters
    ----------
    A : array, sparse matrix, LowRankSum or LinearOperator of shape (n, n)
        Symmetric. Matrices that are nearly singular, as all Laplacians are, are what this is made for.
    k : int
        How many: at most n, less the columns of `null`, and at most the rank of B.
    B : None, vector, array or sparse matrix, optional
        Symmetric and positive semidefinite; a vector is a diagonal. Where B is singular only the finite eigenvalues
        count, and A must be positive definite on the null space of B.
    null : array of shape (n,) or (n, q), optional
        Eigenvectors known beforehand, such as the constant of a Laplacian, which are left out. The result is
        B-orthogonal to them.
    method : {"auto", "dense", "direct", "multilevel", "filtered", "lanczos"}
        How; "auto" follows the rules at the top of the module. "dense" is one call of LAPACK, which Ctrl-C cannot end:
        22 s at n = 4000. "auto" takes it for n up to 400, and up to 5000 where more than n / 8 vectors are wanted.
        "filtered" multiplies by polynomials of a sparse A and holds one copy of it; its residuals are relative to the
        largest eigenvalue, and 1e-10 of that is the least it aims at.
    tol : float
        Relative residual at which a vector counts as found.
    max_iter : int
        Bound on the block steps of the iterative methods.
    check : bool
        Look for NaN and asymmetry first.
    n_threads : int, optional
    verbose : bool
        Print what was chosen and how it went.

    Returns
    -------
    values : array of shape (k,)
        Ascending.
    vectors : array of shape (n, k)
        Z'BZ = I. The entry of largest magnitude of every column is positive.

    Examples
    --------
    >>> import numpy as np
    >>> from manifast.spectral import smallest_eigenvectors
    >>> values, vectors = smallest_eigenvectors(np.diag([3.0, 1.0, 2.0]), 2)
    >>> values.round(12), vectors.round(12).tolist()
    (array([1., 2.]), [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    """
    problem = _Problem.of(A, B, null, check)
    if isinstance(problem.A, LinearOperator) and method in METHODS[:-1]:
        raise ValueError(f"method must be 'auto' or 'lanczos' for a LinearOperator. Got {method!r} instead.")
    tol, max_iter = as_number(tol, "tol", minimum=0.0), as_count(max_iter, "max_iter")
    if not np.isfinite(problem.scale):
        raise ValueError("A must be finite, beside B too. Got NaN, infinity, or ratios beyond the range of numbers.")
    if not 1e-100 < problem.scale < 1e100:
        # Squares of such entries would leave the range.
        factor = float(np.ldexp(1.0, min(-int(np.frexp(problem.scale)[1]), 1000)))
        options: dict[str, Any] = {"method": method, "tol": tol, "max_iter": max_iter, "verbose": verbose}
        values, vectors = smallest_eigenvectors(
            _times(_as_operand(A, "A", False), factor), k, B, null=null, check=False, n_threads=n_threads, **options
        )
        return values / factor, vectors
    limit = problem.n - problem.null.shape[1]
    if not isinstance(k, Integral) or isinstance(k, bool) or not 1 <= k <= limit:
        raise ValueError(f"k must be an integer from 1 to {limit} for a matrix of size {problem.n}. Got {k!r} instead.")
    if method not in ("auto", *METHODS):
        raise ValueError(
            f"method must be 'auto', 'dense', 'direct', 'multilevel', 'filtered' or 'lanczos'. Got {method!r} instead."
        )
    k = int(k)
    chosen = method == "auto"
    if chosen:
        method = problem.choose(k, n_threads)
    if verbose:
        log(f"smallest_eigenvectors: n = {problem.n}, k = {k}, {method}")
    # Blocks are thin: digits, d = 10, took 53 ms on two BLAS threads and 26 on one; LGRM with 2000 rows 341 and 211.
    thin = problem.n <= _DENSE_ROWS or not isinstance(problem.A, np.ndarray | LinearOperator)
    with one_blas_thread() if thin else nullcontext():
        if method == "dense":
            values, vectors = problem.dense(k)
        elif method == "lanczos":
            values, vectors = problem.lanczos(k, tol, max_iter)
        elif method == "multilevel":
            values, vectors = problem.multilevel(k, tol, max_iter, n_threads, verbose)
        elif method == "filtered" and (found := problem.filtered(k, tol, chosen, verbose)) is not None:
            values, vectors = found
        else:
            values, vectors = problem.direct(k, tol, max_iter, n_threads)
    order = np.argsort(values, kind="stable")
    values, vectors = values[order], fix_signs(vectors[:, order])
    residual = _residual(problem, values, vectors)
    if not residual <= _WARN_RESIDUAL and method == "lanczos" and chosen and hasattr(A, "toarray"):
        options = {"tol": tol, "max_iter": max_iter, "n_threads": n_threads, "verbose": verbose}
        return smallest_eigenvectors(A.toarray(), k, B, null=null, check=False, **options)
    if verbose:
        log(f"smallest_eigenvectors: relative residual {residual:.1e}")
    _warn_of(residual)
    return values, vectors


def fix_signs(vectors: Array) -> Array:
    """Columns turned so that the entry of largest magnitude is positive; of several within 1e-6 the first decides."""
    if not (type(vectors) is np.ndarray and vectors.ndim == 2 and vectors.dtype in (np.float32, np.float64)):
        vectors = as_matrix(vectors, "vectors")
    magnitude = np.abs(vectors)
    largest = magnitude.max(axis=0, initial=0.0)
    if not np.isfinite(largest).all():
        raise ValueError("vectors must be finite. Got NaN or infinity.")
    if not len(vectors):
        return vectors
    first = np.argmax(magnitude >= (1 - 1e-6) * largest, axis=0)
    signs = np.where(vectors[first, np.arange(vectors.shape[1])] < 0, -1.0, 1.0)
    return (vectors * signs).astype(vectors.dtype, copy=False)


def matrix_norm(A: Any) -> float:
    """A bound on the size of all eigenvalues, never 0."""
    if isinstance(A, LowRankSum):
        # What is subtracted from a matrix that stays semidefinite makes it no larger.
        added = np.maximum(A.weights, 0.0) * np.square(A.factor).sum(axis=0)
        return matrix_norm(A.sparse) + float(added.sum())
    if isinstance(A, np.ndarray):
        largest = max(float(np.abs(A[i : i + 256]).sum(axis=1).max()) for i in range(0, len(A), 256))
    else:
        largest = abs(A).sum(axis=1).max()
    return float(largest) or 1.0


def _operator_size(A: LinearOperator) -> float:
    """Size of the image of a random vector, which tells the scale of an operator, never 0."""
    image = np.asarray(A.matmat(np.random.default_rng(0).standard_normal((A.shape[0], 1))))
    if not np.isfinite(image).all():
        raise ValueError("A must be an operator with finite images. Got NaN or infinity.")
    return float(np.abs(image).max()) or 1.0


def _times(A: Any, factor: float) -> Any:
    return LowRankSum(A.sparse * factor, A.factor, A.weights * factor) if isinstance(A, LowRankSum) else A * factor


class _Problem:
    """A z = λ B z with known eigenvectors to leave out. A diagonal B is divided out: A becomes B^-1/2 A B^-1/2."""

    def __init__(self, A: Any, B: Any, null: Array, roots: Array | None, given: tuple[Any, Any]) -> None:
        self.A, self.B, self.null, self._given = A, B, null, given
        self.n = int(A.shape[0])
        self._roots = roots  # of the diagonal B that was divided out
        self._factor: SparseCholesky | None = None
        self.scale = _operator_size(A) if isinstance(A, LinearOperator) else matrix_norm(A)
        self.b_scale = 1.0 if B is None else matrix_norm(B)

    @classmethod
    def of(cls, A: Any, B: Any, null: Any, check: bool = True) -> _Problem:
        A = _as_operand(A, "A", check)
        n = A.shape[0]
        B = None if B is None else _as_operand(B, "B", check, n)
        vectors = np.zeros((n, 0)) if null is None or np.shape(null) == (n, 0) else as_columns(null, "null")
        vectors = vectors[:, None] if vectors.ndim == 1 else vectors
        if vectors.ndim != 2 or len(vectors) != n or not np.isfinite(vectors).all() or not vectors.any(axis=0).all():
            raise ValueError(f"null must be finite vectors of {n} entries that are not all zero. Got {vectors.shape}.")
        given, roots = (A, B), None
        if isinstance(B, np.ndarray) and B.ndim == 1:
            if B.min(initial=1.0) > 1e-14 * B.max(initial=0.0):
                roots, B = np.sqrt(B), None
                A = _scaled(A, 1.0 / roots)
                vectors = vectors * roots[:, None]
            else:
                B = sp.diags_array(B, format="csr")
        product = vectors if B is None else np.asarray(B @ vectors)
        if vectors.shape[1]:
            gram = vectors.T @ product
            lengths = np.sqrt(np.maximum(gram.diagonal(), 0.0))
            if not lengths.all() or la.eigvalsh(gram / np.outer(lengths, lengths))[0] <= _DEPENDENT:
                raise ValueError(
                    f"null must be linearly independent vectors, also in the inner product of B. Got {len(gram)} that "
                    "are not."
                )
            triangle = la.cholesky(gram)
            vectors = la.solve_triangular(triangle, vectors.T, trans="T").T
        return cls(A, B, vectors, roots, given)

    @lazy
    def graph(self) -> sp.csr_array | None:
        return _laplacian_graph(*self._given)

    def restore(self, vectors: Array) -> Array:
        """Vectors of the original problem."""
        return vectors if self._roots is None else vectors / self._roots[:, None]

    def choose(self, k: int, n_threads: int | None) -> str:
        if isinstance(self.A, LinearOperator):
            return "lanczos"
        if self.n <= _DENSE_ROWS or (8 * k > self.n and self.n <= 5000):
            return "dense"
        if isinstance(self.A, np.ndarray) or isinstance(self.B, np.ndarray):
            return "direct"
        if self._roots is None:
            large = self.n > _FILTER_ROWS and self.B is None and not isinstance(self.A, LowRankSum)
            return "filtered" if large and not self.analysis(n_threads, _FACTOR_FLOPS).feasible else "direct"
        if self.n > _MULTILEVEL_ROWS and self._only_constant() and self.graph is not None:
            return "multilevel"
        if self.analysis(n_threads, _DIRECT_FLOPS).feasible or self.graph is None or not self._only_constant():
            return "direct"
        return "multilevel"

    def _only_constant(self) -> bool:
        """Whether nothing but the constant is to be left out, if anything."""
        if self.null.shape[1] == 0 or self._roots is None:
            return bool(self.null.shape[1] == 0)
        along = float(abs(self.null[:, 0] @ self._roots))
        return bool(self.null.shape[1] == 1) and along > (1 - 1e-10) * float(la.norm(self._roots))

    def analysis(self, n_threads: int | None, max_flops: float | None = None) -> SparseCholesky:
        """Ordering and symbolic factorisation of the sparse part, kept for the factorisation that may follow."""
        if self._factor is None or (max_flops is None and not self._factor.feasible):
            pattern = self.A.sparse if isinstance(self.A, LowRankSum) else self.A
            if self.B is not None:
                pattern = abs(pattern) + abs(sp.csr_array(self.B))
            self._factor = SparseCholesky(sp.csr_array(pattern), max_flops=max_flops, n_threads=n_threads)
        return self._factor

    def dense(self, k: int) -> tuple[Array, Array]:
        check_room(self.n, 3, "use another method")
        A, B = _as_array(self.A), None if self.B is None else _as_array(self.B)
        scale = self.scale / self.b_scale
        image = self.null if B is None else B @ self.null
        A = A + 2 * scale * (image @ image.T)  # null vectors move to the far end
        if B is None:
            values, vectors = la.eigh(A, subset_by_index=(0, k - 1))
            return values, self.restore(vectors)
        # B v = θ (A + σB) v with θ = 1 / (λ + σ): infinite eigenvalues are at θ = 0, whatever the rank of B.
        for shift in _shifts(scale):
            try:
                theta, vectors = la.eigh(B, A + shift * B, subset_by_index=(self.n - k, self.n - 1))
                break
            except la.LinAlgError:
                continue
        else:
            raise ValueError("A must be positive definite on the null space of B. Got A + σB that never is.")
        if theta[0] <= 1e-13 * theta[-1]:
            _refuse_infinite(int(np.sum(theta > 1e-13 * theta[-1])), k)
        return 1.0 / theta - shift, vectors / np.sqrt(theta)

    def direct(self, k: int, tol: float, max_iter: int, n_threads: int | None) -> tuple[Array, Array]:
        solve = self._factored(n_threads)
        inner = None if self.B is None else self._apply_b
        invert = solve if inner is None else lambda block: solve(inner(block))
        theta, vectors = np.empty(0), np.empty((self.n, 0))
        while len(theta) < k:
            # Rounding of the largest θ hides those far below it: these come next, with the others projected out.
            left_out = np.hstack([self.null, vectors])
            more, found = largest_pairs(invert, self.n, k - len(theta), inner, left_out, tol, max_iter, relative=True)
            if len(more) == 0 or more[0] <= 1e-13 * theta.max(initial=0.0):
                _refuse_infinite(len(theta), k)
            clear = more > _CLEAR * more[0]
            theta, vectors = np.append(theta, more[clear]), np.hstack([vectors, found[:, clear]])
        if inner is not None:
            vectors = solve(inner(vectors)) / theta  # out of the null space of B
        applied = self.apply(vectors)
        return np.einsum("ij,ij->j", vectors, applied), self.restore(vectors)

    def lanczos(self, k: int, tol: float, max_iter: int) -> tuple[Array, Array]:
        if self.B is not None:
            raise ValueError("B must be None or a vector for method 'lanczos'. Got a matrix instead.")
        values, vectors = largest_pairs(lambda block: -self.apply(block), self.n, k, None, self.null, tol, max_iter)
        if isinstance(self.A, LinearOperator):
            self.scale = float(np.abs(values).max()) or 1.0
        return -values, self.restore(vectors)

    def multilevel(
        self, k: int, tol: float, max_iter: int, n_threads: int | None, verbose: bool
    ) -> tuple[Array, Array]:
        if self.graph is None or not self._only_constant():
            raise ValueError(
                "A must be the Laplacian of a graph, B its degrees and null nothing but the constant for method "
                "'multilevel'."
            )
        count, labels = connected_components(self.graph, directed=False)
        volumes = np.bincount(labels, np.asarray(self._given[1]))
        # Eigenvalue 0: combinations of the components' indicators, orthogonal to the constant where that is left out.
        shares = np.sqrt(volumes)[:, None]
        mixing = np.eye(count) if self.null.shape[1] == 0 else la.qr(shares)[0][:, 1:]
        values, vectors = [np.zeros(mixing.shape[1])], [(mixing / shares)[labels]]
        if mixing.shape[1] < k:
            for component in range(count):
                members = np.flatnonzero(labels == component)
                wanted = min(k, len(members) - 1)
                if wanted < 1:
                    continue
                graph = self.graph if count == 1 else sp.csr_array(self.graph[members][:, members])
                found, inside, _, _ = laplacian_eigenvectors(
                    graph, wanted, tol=max(tol, 1e-12), max_iter=max_iter, n_threads=n_threads, verbose=verbose
                )
                spread = np.zeros((self.n, wanted))
                spread[members] = inside
                values.append(found)
                vectors.append(spread)
        order = np.argsort(np.concatenate(values), kind="stable")[:k]
        return np.concatenate(values)[order], np.hstack(vectors)[:, order]

    def filtered(self, k: int, tol: float, chosen: bool, verbose: bool) -> tuple[Array, Array] | None:
        if not is_sparse(self.A) or self.B is not None:
            raise ValueError("A must be sparse and B None or a vector for method 'filtered'. Use 'auto' or 'direct'.")
        accuracy = max(tol, _FILTER_TOLERANCE)
        found = smallest_filtered(sp.csr_array(self.A), k, self.null, self.scale, accuracy, verbose=verbose)
        if found is not None:
            return found[0], self.restore(found[1])
        if not chosen:
            raise ValueError(
                "A must have smallest eigenvalues that stand apart for method 'filtered'. Got some that would need "
                "polynomials of thousands of degrees: use method 'direct'."
            )
        return None

    def apply(self, block: Array) -> Array:
        return np.asarray(self.A.matmat(block) if isinstance(self.A, LinearOperator) else self.A @ block)

    def _apply_b(self, block: Array) -> Array:
        return np.asarray(self.B @ block)

    def _factored(self, n_threads: int | None) -> Operator:
        """The solver for A + σB, positive definite with a shift σ that is as small as rounding allows."""
        scale = self.scale / self.b_scale
        for shift in _shifts(scale):
            if shift > 1e-6 * scale and self.B is None:
                break
            try:
                return self._solver(shift, n_threads)
            except la.LinAlgError:
                continue
        if self.B is None:
            # Not semidefinite: just below the smallest eigenvalue, which is then far from the others.
            lowest = -largest_pairs(lambda block: -self.apply(block), self.n, 1, None, self.null, 1e-3, 50)[0][0]
            for factor in (1.001, 1.01, 1.1, 2.0):
                try:
                    return self._solver(abs(lowest) * factor, n_threads)
                except la.LinAlgError:
                    continue
        raise la.LinAlgError("A + σB is not positive definite for any shift σ: A must be so on the null space of B")

    def _solver(self, shift: float, n_threads: int | None) -> Operator:
        if isinstance(self.A, np.ndarray) or isinstance(self.B, np.ndarray):
            shifted = _dense.copied(_as_array(self.A))
            if self.B is None:
                shifted.flat[:: self.n + 1] += shift
            else:
                shifted += shift * _as_array(self.B)
            if not _dense.factor(shifted):
                raise la.LinAlgError("A + σB is not positive definite")
            return lambda block: _dense.solve(shifted, block)
        sparse = self.A.sparse if isinstance(self.A, LowRankSum) else self.A
        cholesky = self.analysis(n_threads)
        if self.B is None:
            cholesky.factor(sparse, shift)
        else:
            cholesky.factor(sp.csr_array(sparse + shift * self.B))
        if not isinstance(self.A, LowRankSum):
            return cholesky.solve
        # Woodbury: (S + U C U')^-1 = S^-1 - S^-1 U (C^-1 + U' S^-1 U)^-1 U' S^-1
        U = self.A.factor
        solved = cholesky.solve(np.ascontiguousarray(U))
        core = np.diag(1.0 / self.A.weights) + U.T @ solved
        core = 0.5 * (core + core.T)
        # The sum is positive definite where this has the signs of C (Sylvester); of one sign, Cholesky tells.
        sign = float(np.sign(self.A.weights[0]))
        if (np.sign(self.A.weights) == sign).all():
            core *= sign
            if not _dense.factor(core):
                raise la.LinAlgError("the sum is not positive definite")

            def middle(inside: Array) -> Array:
                return sign * _dense.solve(core, inside)
        else:
            values, vectors = la.eigh(core)
            if np.sum(values < 0) != np.sum(self.A.weights < 0) or not np.abs(values).min() > 0:
                raise la.LinAlgError("the sum is not positive definite")

            def middle(inside: Array) -> Array:
                return np.asarray(vectors @ ((vectors.T @ inside) / values[:, None]))

        def solve(block: Array) -> Array:
            first = cholesky.solve(np.ascontiguousarray(block))
            return np.asarray(first - solved @ middle(U.T @ first))

        return solve


def _shifts(scale: float) -> Array:
    """Shifts to try: hardly above rounding for what is positive semidefinite, up to a bound for what is not."""
    return np.append(scale * np.array([1e-11, 1e-9, 1e-7, 1e-5, 1e-3, 1e-1]), 1.01 * scale)


def _refuse_infinite(finite: int, k: int) -> None:
    raise ValueError(
        f"k must be at most the number of finite eigenvalues, which is the rank of B: {finite}. Got {k} instead."
    )


def _residual(problem: _Problem, values: Array, vectors: Array) -> float:
    """The largest residual, relative to the sizes of A and B."""
    inside = vectors if problem._roots is None else vectors * problem._roots[:, None]
    right = inside if problem.B is None else problem._apply_b(inside)
    difference = problem.apply(inside) - right * values
    image = problem.null if problem.B is None else problem._apply_b(problem.null)
    residual = np.linalg.norm(difference - image @ (problem.null.T @ difference), axis=0)
    allowed = problem.scale * np.linalg.norm(inside, axis=0) + np.abs(values) * np.linalg.norm(right, axis=0)
    return float((residual / allowed).max())


def _warn_of(worst: float) -> None:
    if not worst <= _WARN_RESIDUAL:
        from sklearn.exceptions import ConvergenceWarning

        warn(
            f"smallest_eigenvectors did not converge: relative residuals up to {worst:.1e}. Raise max_iter, ask for "
            "fewer vectors or use method='direct'.",
            ConvergenceWarning,
        )


def _as_operand(value: Any, name: str, check: bool, n: int | None = None) -> Any:
    """A float64 array, CSR matrix, LowRankSum or LinearOperator that is square, of size n where that is given."""
    if isinstance(value, LowRankSum):
        if not is_sparse(value.sparse):
            raise ValueError(f"{name}.sparse must be a sparse matrix. Got {type(value.sparse).__name__} instead.")
        sparse = checked_sparse(value.sparse, f"{name}.sparse", square=True, finite=True, dtype=np.float64)
        none = np.shape(value.factor)[1:] == (0,)
        factor = value.factor if none else as_matrix(value.factor, f"{name}.factor", dtype=np.float64)
        weights = value.weights if none else as_matrix([value.weights], f"{name}.weights", dtype=np.float64)[0]
        if factor.shape != (sparse.shape[0], len(weights)) or not weights.all():
            raise ValueError(
                f"{name}.factor must have {sparse.shape[0]} rows and a column for each weight, none of which is 0. Got "
                f"shape {factor.shape} for {len(weights)} weights."
            )
        value = LowRankSum(sparse, factor, weights)
    elif is_sparse(value):
        value = checked_sparse(value, name, dtype=np.float64)
    elif not isinstance(value, LinearOperator):
        refuse_masked(value, name)
        value = np.asarray(value, dtype=np.float64)
        if value.ndim == 1 and value.shape == (n,):
            if not (np.isfinite(value).all() and value.min(initial=0.0) >= 0):
                raise ValueError(f"{name} must hold finite numbers that are not negative.")
            return value
    if len(value.shape) != 2 or value.shape[0] != value.shape[1] or (n is not None and value.shape[0] != n):
        size = "square" if n is None else f"of shape ({n}, {n})"
        raise ValueError(f"{name} must be a matrix that is {size}. Got shape {value.shape} instead.")
    if value.shape[0] == 0:
        raise ValueError(f"{name} must have at least 1 row. Got shape {value.shape} instead.")
    if not check:
        return value
    entries = value if isinstance(value, np.ndarray) else getattr(value, "data", None)
    if isinstance(entries, np.ndarray) and not np.isfinite(entries).all():
        raise ValueError(f"{name} must be finite. Got NaN or infinity.")
    if not isinstance(value, LinearOperator | LowRankSum):
        difference = abs(value - value.T)
        if difference.max() > 1e-8 * abs(value).max():
            raise ValueError(f"{name} must be symmetric. Got entries that differ by up to {difference.max():.3g}.")
    return value


def _laplacian_graph(A: Any, B: Any) -> sp.csr_array | None:
    """The graph of which A is the Laplacian and B the degrees, None where they are not."""
    if not (isinstance(A, sp.csr_array) and isinstance(B, np.ndarray) and B.ndim == 1):
        return None
    degrees = A.diagonal()
    if not (degrees.min(initial=1.0) > 0 and np.allclose(degrees, B, rtol=1e-10, atol=0)):
        return None
    if np.abs(A.sum(axis=1)).max() > 1e-10 * degrees.max():
        return None
    graph = -A
    graph.setdiag(0.0)
    graph.eliminate_zeros()
    return graph if graph.data.min(initial=0.0) >= 0 else None


def _scaled(A: Any, factors: Array) -> Any:
    """diag(factors) A diag(factors)"""
    if isinstance(A, np.ndarray):
        return A * factors[:, None] * factors
    if isinstance(A, LowRankSum):
        return LowRankSum(_scaled(A.sparse, factors), A.factor * factors[:, None], A.weights)
    if isinstance(A, LinearOperator):

        def product(block: Array) -> Array:
            return np.asarray(factors[:, None] * A.matmat(factors[:, None] * block))

        return LinearOperator(A.shape, matvec=lambda v: product(v.reshape(-1, 1)).ravel(), matmat=product)
    rows = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    return sp.csr_array((A.data * factors[rows] * factors[A.indices], A.indices, A.indptr), shape=A.shape)


def _as_array(A: Any) -> Array:
    return A if isinstance(A, np.ndarray) else np.asarray(A.toarray())
