"""Smoothers (R, f): a penalty that keeps an embedding predictable from X, and the map f that goes with it.

Ridge regression in the space of a kernel or of the features themselves. With bias it leaves tr(Y' R Y) of an embedding
Y, R = H - HKH (HKH + γI)^-1 = γ H (HKH + γI)^-1 H (LGRM eqs. 13 to 18), and its solution predicts new rows (LGRM
eq. 22). Without bias H is the identity. The elastic penalties are the same: SEE's (13) is μγ R with bias and the linear
kernel, (15) is μγ R without bias, both for a ridge of 1/γ. Gaussian interpolation: the penalty of NSSE.
"""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp

from manifast._davidson import shifted_product, smallest_coefficients
from manifast._threads import one_blas_thread
from manifast._validation import Array, as_count, is_sparse
from manifast.kernels import gaussian
from manifast.spectral import LowRankSum, fix_signs, matrix_norm


@dataclass(frozen=True)
class RidgePenalty:
    """weight · (I - Φ (Φ'Φ + diag(ridges))^-1 Φ'), Φ (n, r): a constant column without ridge is the bias."""

    weight: float
    factor: Array
    ridges: Array

    def __rmul__(self, factor: float) -> RidgePenalty:
        return replace(self, weight=factor * self.weight)

    def added_to(self, A: Any) -> Any:
        """A + the penalty: sparse plus low rank, or dense for a dense A."""
        if isinstance(A, LowRankSum):
            rest = self.added_to(A.sparse)
            if not isinstance(rest, LowRankSum):
                return LowRankSum(rest, A.factor, A.weights)
            return LowRankSum(rest.sparse, np.hstack([rest.factor, A.factor]), np.append(rest.weights, A.weights))
        inside = self.factor.T @ self.factor
        inside.flat[:: len(inside) + 1] += self.ridges
        scale = 1.0 / np.sqrt(inside.diagonal())
        triangle = la.cholesky(inside * scale * scale[:, None], lower=True, check_finite=False)
        whitened: Array = la.solve_triangular(triangle, (self.factor * scale).T, lower=True, check_finite=False).T
        if not is_sparse(A):
            dense: Array = A - self.weight * (whitened @ whitened.T)
            dense.flat[:: len(dense) + 1] += self.weight
            return dense
        raised = sp.csr_array(A + self.weight * sp.eye_array(A.shape[0], format="csr"))
        if not whitened.shape[1]:
            return raised
        return LowRankSum(raised, whitened, np.full(whitened.shape[1], -self.weight))


class KernelRidgeSmoother:
    """Kernel ridge regression, with bias or without, on a kernel matrix K (n, n), which is overwritten.

    A smooth kernel is numerically of low rank: then HKH = ZZ' to rounding, and a factor Z of few columns stands for it.
    """

    def __init__(self, K: Array, ridge: float, *, bias: bool = True) -> None:
        self._bias, self._ridge = bias, ridge
        if bias:
            self._means = K.mean(axis=0)
            K -= self._means
            K -= (self._means - self._means.mean())[:, None]
        self._centred = K  # HKH
        self._low = low_rank_factor(K, ridge)
        self._factor = _factor(K if self._low is None else self._low.T @ self._low, ridge)

    def add_penalty(self, A: Any, weight: float) -> Any:
        """A + weight · γ H (HKH + γI)^-1 H (eqs. 18 and 19), dense, or sparse plus low rank but for constants."""
        if self._low is not None:
            # γ (ZZ' + γI)^-1 = I - Z (Z'Z + γI)^-1 Z'
            return RidgePenalty(weight, self._low, np.full(self._low.shape[1], self._ridge)).added_to(_as_sum(A))
        penalty = self._dense_penalty(weight)
        penalty += A if isinstance(A, np.ndarray) else A.toarray()
        return penalty

    def penalty(self, weight: float) -> Any:
        """weight · γ H (HKH + γI)^-1 H, exactly so for constants: a `RidgePenalty`, or dense."""
        if self._low is None:
            return self._dense_penalty(weight)
        factor, ridges = self._low, np.full(self._low.shape[1], self._ridge)
        return RidgePenalty(weight, *_with_bias(factor, ridges)) if self._bias else RidgePenalty(weight, factor, ridges)

    def _dense_penalty(self, weight: float) -> Array:
        penalty: Array
        penalty, info = la.lapack.dpotri(self._factor[0], lower=1)
        if info:
            raise la.LinAlgError("the kernel matrix is singular: raise gamma")
        penalty *= weight * self._ridge
        if self._bias:
            # H commutes with HKH, and rows of the inverse sum to 1/γ: this centres both sides
            penalty -= weight / len(penalty)
        penalty = np.tril(penalty)
        penalty += np.tril(penalty, -1).T
        return penalty

    def fit(self, Y: Array) -> tuple[Array, Array]:
        """Dual coefficients and intercept: f(x) = Σ_i dual_i K(x, x_i) + intercept (eqs. 20 to 22)."""
        mean = Y.mean(axis=0) if self._bias else np.zeros(Y.shape[1])
        target = Y - mean
        dual = self._solve(target)
        if self._low is not None:  # what the low rank left out, and the cancellation in I - Z(...)Z'
            dual += self._solve(target - self._centred @ dual - self._ridge * dual)
        if not self._bias:
            return dual, mean
        dual -= dual.mean(axis=0)
        return dual, mean - self._means @ dual

    def hat(self, rows: Array) -> Array:
        """The map of training rows as a matrix (len(rows), n): f(X[rows]) = hat(rows) Y."""
        found: Array = self._solve(np.ascontiguousarray(self._centred[:, rows])).T
        return found + 1.0 / len(self._centred) if self._bias else found

    def _solve(self, block: Array) -> Array:
        """(HKH + γI)^-1 times a block."""
        if self._low is None:
            return np.asarray(la.cho_solve(self._factor, block, check_finite=False))
        inside = la.cho_solve(self._factor, self._low.T @ block, check_finite=False)
        return np.asarray((block - self._low @ inside) / self._ridge)


def _factor(matrix: Array, ridge: float) -> tuple[Array, bool]:
    """Cholesky factor of matrix + ridge, with the smallest jitter that makes it succeed and a warning of that."""
    size = float(matrix.diagonal().max(initial=0.0))
    for jitter in (0.0, *(len(matrix) * np.finfo(float).eps * size * 10.0**e for e in range(8))):
        shifted = np.array(matrix, order="F")
        shifted.flat[:: len(shifted) + 1] += ridge + jitter
        try:
            factor: tuple[Array, bool] = la.cho_factor(shifted, lower=True, overwrite_a=True, check_finite=False)
        except la.LinAlgError:
            continue
        if jitter:
            warnings.warn(
                f"the kernel matrix is singular to working precision beside a ridge of {ridge:.2g}: {jitter:.1g} was "
                "added to it. Use a larger ridge (gamma or alpha), or scale the data down.",
                UserWarning,
                stacklevel=6,
            )
        return factor
    raise ValueError("the kernel matrix must be positive semidefinite. Got one that is not.")


def _as_sum(A: Any) -> Any:
    return A if isinstance(A, LowRankSum) else sp.csr_array(A)


def _with_bias(factor: Array, ridges: Array) -> tuple[Array, Array]:
    """The factor of a `RidgePenalty` with a constant column, which has no ridge."""
    return np.column_stack([factor, np.ones(len(factor))]), np.append(ridges, 0.0)


_RANK = 1e-14  # squared lengths of principal axes below this, relative to the largest, are rounding
_GRAM = 1e-10  # features of squared lengths further apart than this lose too much in products of all of them
_LOW_RANK_ROWS = 1000  # below, dense factorisations are as fast


def low_rank_factor(K: Array, ridge: float) -> Array | None:
    """Z (n, r) with ZZ' = K up to what is small against the ridge, None where r is not well below n.

    Pivoted Cholesky. Whether it pays is tried on a quarter of the rows first, whose rank must fall short.
    """
    n = len(K)
    tolerance = 1e-12 * float(K.diagonal().max())
    if n < _LOW_RANK_ROWS or n * tolerance > 1e-4 * ridge:
        return None
    for step, limit in ((4, 0.9), (1, 0.3)):
        part = K[::step, ::step]
        with one_blas_thread():  # columns are eliminated one by one
            triangle, order, rank, _ = la.lapack.dpstrf(np.array(part, order="F"), tol=tolerance, lower=1)
        if rank > limit * len(part):
            return None
    factor = np.zeros((n, rank))
    factor[order - 1] = np.tril(triangle[:, :rank])
    return factor


class LinearRidgeSmoother:
    """Ridge regression with bias on the features X (n, p): the linear kernel without its n × n matrix where p < n.

    By the eigenvectors of X'X or XX', or by singular vectors of a dense X whose features are of very different scales.
    """

    def __init__(self, X: Any, ridge: float) -> None:
        n, p = X.shape
        self._mean = np.asarray(X.mean(axis=0), dtype=np.float64).ravel()
        self._X, self._ridge = X, ridge
        if not is_sparse(X):
            self._X = X - self._mean  # first, so that an offset costs no accuracy
            sizes = np.einsum("ij,ij->j", self._X, self._X)
            if sizes.min(where=sizes > 0, initial=np.inf) < _GRAM * sizes.max(initial=0.0):
                _, lengths, axes = la.svd(self._X, full_matrices=False, check_finite=False)
                kept = lengths > max(n, p) * np.finfo(float).eps * lengths.max()
                self._values, self._axes = lengths[kept] ** 2, axes[kept].T
                return
        products = self._X.T @ self._X if p <= n else self._X @ self._X.T
        if is_sparse(X):
            products = products.toarray()
            if p <= n:
                products -= n * np.outer(self._mean, self._mean)
            else:
                products -= products.mean(axis=0)
                products -= products.mean(axis=1)[:, None]
        values, axes = la.eigh(0.5 * (products + products.T))
        kept = values > _RANK * max(0.0, values.max())
        self._values, self._axes = values[kept], axes[:, kept]
        if p > n:  # the axes of the features from those of the rows
            self._axes = np.asarray(self._X.T @ (self._axes / np.sqrt(self._values)))

    def add_penalty(self, A: Any, weight: float) -> Any:
        """A + weight · (I - X_c (X_c'X_c + γI)^-1 X_c'), sparse plus low rank; like H, I but for constants."""
        scores, values = self._scores
        return RidgePenalty(weight, scores, np.full(len(values), self._ridge)).added_to(_as_sum(A))

    def penalty(self, weight: float) -> RidgePenalty:
        """weight · (H - X_c (X_c'X_c + γI)^-1 X_c')."""
        scores, values = self._scores
        return RidgePenalty(weight, *_with_bias(scores, np.full(len(values), self._ridge)))

    def with_ridge(self, ridge: float) -> LinearRidgeSmoother:
        """The same regression with another ridge, on which its factorisation does not depend."""
        other = copy(self)
        other._ridge = ridge
        return other

    def hat(self, rows: Array) -> Array:
        """The map of training rows as a matrix (len(rows), n): f(X[rows]) = hat(rows) Y."""
        scores, values = self._scores
        found: Array = (scores[rows] / (values + self._ridge)) @ scores.T
        return found + 1.0 / len(scores)

    @cached_property
    def _scores(self) -> tuple[Array, Array]:
        """The centred rows on their principal axes, and the squared lengths of these columns."""
        scores = np.asarray(self._X @ self._axes) - (self._mean @ self._axes if is_sparse(self._X) else 0.0)
        return scores, self._values

    def fit(self, Y: Array) -> tuple[Array, Array]:
        """Coefficients (p, d) and intercept: f(x) = x·coef + intercept."""
        mean = Y.mean(axis=0)
        # Y - mean sums to zero, which centres X as well.
        moments = self._axes.T @ np.asarray(self._X.T @ (Y - mean), dtype=np.float64)
        coef = self._axes @ (moments / (self._values + self._ridge)[:, None])
        return coef, mean - self._mean @ coef


class GaussianSmoother:
    """Gaussian interpolation of rows X with width sigma: the penalty Ψ^-2 of NSSE (6), and the map C = Ψ^-1 Y.

    Ψ^-2 is never formed: `smallest` solves for coefficients.

    Examples
    --------
    Laplacian eigenmaps whose embedding is easy to interpolate:

    >>> from sklearn.datasets import load_digits
    >>> from manifast.graphs import knn_graph
    >>> from manifast.kernels import rbf_apply
    >>> from manifast.objectives import laplacian_eigenmaps
    >>> from manifast.smoothers import GaussianSmoother
    >>> X = load_digits().data
    >>> objective, smoother = laplacian_eigenmaps(knn_graph(X[:300])), GaussianSmoother(X[:300], sigma=40.0)
    >>> values, Y, coef = smoother.smallest(objective, 2, weight=1e-3)
    >>> rbf_apply(X[300:], X[:300], coef, sigma=40.0).shape
    (1497, 2)
    """

    def __init__(self, X: Array, sigma: float) -> None:
        self._psi = gaussian(np.asarray(X, dtype=np.float64), sigma=sigma)

    def smallest(self, objective: Any, k: int, weight: float) -> tuple[Array, Array, Array]:
        """The k smallest eigenvalues of A + weight Ψ^-2, Y with Y'Y = I (B counts nowhere), and C with ΨC = Y.

        Where the objective leaves the constant out, Y is orthogonal to it up to a millionth.
        """
        k = as_count(k, "k", maximum=len(self._psi), why=", the number of rows")
        A, n = objective.A, len(self._psi)
        size = matrix_norm(A)
        far = _FAR * size / n if objective.drop_constant else 0.0

        def apply(block: Array) -> Array:
            image: Array = np.asarray(A @ block) + far * block.sum(axis=0)
            return image

        product = shifted_product(apply, self._psi, -size)
        values, coef, Y = smallest_coefficients(apply, self._psi, weight, k, product=product)
        turned = fix_signs(Y)
        return values, turned, coef * np.where(np.einsum("ij,ij->j", Y, turned) < 0, -1.0, 1.0)


_FAR = 1e6  # where the constant is moved to, relative to the objective
