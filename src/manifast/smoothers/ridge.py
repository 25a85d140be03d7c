"""Ridge regression as a smoother.

Ridge regression in the space of a kernel or of the features themselves. With bias it leaves tr(Y' R Y) of an embedding
Y, R = H - HKH (HKH + γI)^-1 = γ H (HKH + γI)^-1 H (LGRM eqs. 13 to 18), and its solution predicts new rows (LGRM
eq. 22). Without bias H is the identity. The elastic penalties are the same: SEE's (13) is μγ R with bias and the linear
kernel, (15) is μγ R without bias, both for a ridge of 1/γ.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg as la

from manifast._gram import Kernel, check_kernel
from manifast._linalg import dense as _dense
from manifast._linalg.penalties import RidgePenalty
from manifast._linalg.pencils import as_dense
from manifast._rows import Rows
from manifast._threads import lazy
from manifast._validation import Array, as_number, as_positive, is_sparse
from manifast._warnings import warn
from manifast.maps import KernelMap, LinearMap, Map
from manifast.smoothers.base import Smoother


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
        self._factor = _factor(K if self._low is None else _dense.product(self._low.T, self._low), ridge)

    def add_penalty(self, A: Any, weight: float) -> Any:
        """A + weight · γ H (HKH + γI)^-1 H (eqs. 18 and 19), dense, or sparse plus low rank but for constants."""
        if self._low is not None:
            # γ (ZZ' + γI)^-1 = I - Z (Z'Z + γI)^-1 Z'
            return RidgePenalty(weight, self._low, np.full(self._low.shape[1], self._ridge)).added_to(A)
        penalty = self._dense_penalty(weight)
        _dense.add(penalty, A if is_sparse(A) else as_dense(A))
        return penalty

    def penalty(self, weight: float) -> Any:
        """weight · γ H (HKH + γI)^-1 H, exactly so for constants: a `RidgePenalty`, or dense."""
        if self._low is None:
            return self._dense_penalty(weight)
        factor, ridges = self._low, np.full(self._low.shape[1], self._ridge)
        return RidgePenalty(weight, *_with_bias(factor, ridges)) if self._bias else RidgePenalty(weight, factor, ridges)

    def _dense_penalty(self, weight: float) -> Array:
        penalty = _dense.inverse(_dense.copied(self._factor))
        penalty *= weight * self._ridge
        if self._bias:
            # H commutes with HKH, and rows of the inverse sum to 1/γ: this centres both sides
            penalty -= weight / len(penalty)
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
            return _dense.solve(self._factor, block)
        inside = _dense.solve(self._factor, self._low.T @ block)
        return np.asarray((block - self._low @ inside) / self._ridge)


def _factor(matrix: Array, ridge: float) -> Array:
    """Lower Cholesky factor of matrix + ridge, with the smallest jitter that makes it succeed and a warning of that."""
    triangle, jitter = _dense.factor_jittered(matrix, "the kernel matrix", ridge=ridge)
    if jitter:
        warn(
            f"the kernel matrix is singular to working precision beside a ridge of {ridge:.2g}: {jitter:.1g} was "
            "added to it. Use a larger ridge (gamma or alpha), or scale the data down.",
        )
    return triangle


def _with_bias(factor: Array, ridges: Array) -> tuple[Array, Array]:
    """The factor of a `RidgePenalty` with a constant column, which has no ridge."""
    return np.column_stack([factor, np.ones(len(factor))]), np.append(ridges, 0.0)


_RANK = 1e-14  # squared lengths of principal axes below this, relative to the largest, are rounding
_GRAM = 1e-10  # features of squared lengths further apart than this lose too much in products of all of them
_LOW_RANK_ROWS = 1000  # below, dense factorisations are as fast


def low_rank_factor(K: Array, ridge: float) -> Array | None:
    """Z (n, r) with ZZ' = K up to what is small against the ridge, None where r is not well below n.

    Whether it pays is tried on a quarter of the rows first, whose rank must fall short.
    """
    n = len(K)
    tolerance = 1e-12 * float(K.diagonal().max())
    if n < _LOW_RANK_ROWS or n * tolerance > 1e-4 * ridge:
        return None
    quarter = np.ascontiguousarray(K[::4, ::4])
    if _dense.low_rank(quarter, tolerance, int(0.9 * len(quarter))) is None:
        return None
    return _dense.low_rank(K, tolerance, int(0.3 * n))


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
        left = self._X.T if p <= n else self._X
        products: Any = left @ left.T if is_sparse(X) else _dense.product(left, left.T)
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
        return RidgePenalty(weight, scores, np.full(len(values), self._ridge)).added_to(A)

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

    @lazy
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


@dataclass(frozen=True)
class RidgeRegression:
    """weight · R of a ridge regression on these rows, and the map that the regression of an embedding is."""

    regression: LinearRidgeSmoother | KernelRidgeSmoother
    rows: Rows
    kernel: Kernel | None
    weight: float

    def with_weight(self, weight: float) -> RidgeRegression:
        """The same regression with another weight, on which its factorisation does not depend."""
        return replace(self, weight=weight)

    def added_to(self, A: Any, *, unit: float, drop_constant: bool) -> Any:
        """A + unit · weight · R; where the constant is left out anyway R need not vanish on it."""
        weight = unit * self.weight
        if weight == 0:
            return A
        if drop_constant:
            return self.regression.add_penalty(A, weight)
        penalty = self.regression.penalty(weight)
        if isinstance(penalty, RidgePenalty):
            return penalty.added_to(A)
        _dense.add(penalty, A if is_sparse(A) else as_dense(A))
        return penalty

    def penalty(self, unit: float) -> Any:
        """unit · weight · R, a `RidgePenalty` or an array."""
        return self.regression.penalty(unit * self.weight)

    def fit(self, Y: Array) -> Map:
        """The map f with f(x_i) ≈ y_i."""
        coef, intercept = self.regression.fit(Y)
        if isinstance(self.regression, LinearRidgeSmoother):
            return LinearMap(np.ascontiguousarray(coef), intercept)
        assert self.kernel is not None
        return KernelMap.of(self.kernel, self.rows.X, coef, intercept, Y)


class Ridge(Smoother):
    """Linear ridge regression with bias: the penalty R = H - X_c (X_c'X_c + ridge I)^-1 X_c' (SEE eq. 13).

    Parameters
    ----------
    weight : float, default 1e-3
        Of the penalty beside the objective: μ of LGRM, μγ of elastic embedding.
    ridge : float, default 1e-4
        γ of LGRM, 1/γ of elastic embedding, in squared units of the rows.

    Examples
    --------
    >>> from sklearn.datasets import make_swiss_roll
    >>> from manifast import ComposedEmbedding
    >>> X, _ = make_swiss_roll(150, random_state=0)
    >>> ComposedEmbedding("laplacian", "ridge").fit(X[::2]).transform(X[1::2]).shape
    (75, 2)
    """

    sparse = True

    def __init__(self, weight: float = 1e-3, *, ridge: float = 1e-4) -> None:
        self.weight = weight
        self.ridge = ridge

    def check(self, rows: Rows) -> None:
        as_number(self.weight, "weight", minimum=0.0)
        as_number(self.ridge, "ridge", minimum=0.0)

    def prepare(self, rows: Rows) -> RidgeRegression:
        self.check(rows)
        regression = LinearRidgeSmoother(rows.X.astype(np.float64), rows.squared(float(self.ridge)))
        return RidgeRegression(regression, rows, None, float(self.weight))


class KernelRidge(Smoother):
    """Kernel ridge regression: R = ridge · H (HKH + ridge I)^-1 H (LGRM eqs. 18 and 22), or without bias H = I.

    Parameters
    ----------
    weight : float, default 1e-3
        Of the penalty beside the objective: μ of LGRM, μγ of elastic embedding.
    ridge : float, default 1e-4
        γ of LGRM, 1/γ of elastic embedding.
    kernel : {"rbf", "linear", "poly", "precomputed"}, default "rbf"
        For "precomputed" X is the kernel matrix, and `transform` takes the kernel of new rows with the training rows.
    sigma : float or None, default None
        Width of the kernel exp(-d²/sigma²); None is the median distance between rows.
    degree, coef0 : int and float, default 3 and 1.0
        Of the polynomial kernel (x·y + coef0)^degree.
    bias : bool, default True

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manifast import ComposedEmbedding
    >>> from manifast.smoothers import KernelRidge
    >>> X, y = load_iris(return_X_y=True)
    >>> ComposedEmbedding("supervised", KernelRidge(0.1, sigma=2.0)).fit(X[::2], y[::2]).transform(X[1::2]).shape
    (75, 2)
    """

    def __init__(
        self,
        weight: float = 1e-3,
        *,
        ridge: float = 1e-4,
        kernel: str = "rbf",
        sigma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        bias: bool = True,
    ) -> None:
        self.weight = weight
        self.ridge = ridge
        self.kernel = kernel
        self.sigma = sigma
        self.degree = degree
        self.coef0 = coef0
        self.bias = bias

    def check(self, rows: Rows) -> None:
        as_number(self.weight, "weight", minimum=0.0)
        as_positive(self.ridge, "ridge")
        check_kernel(self.kernel, rows.X, self.degree, self.coef0, matrices=0 if self._primal(rows) else 4)

    def _primal(self, rows: Rows) -> bool:
        """Whether a linear kernel goes without its n × n matrix."""
        return self.kernel == "linear" and self.bias and bool(rows.X.shape[1] < rows.n)

    def prepare(self, rows: Rows) -> RidgeRegression:
        self.check(rows)
        kernel = Kernel.of(
            self.kernel, rows.X, sigma=rows.in_units(self.sigma, 1), degree=self.degree, coef0=self.coef0
        )
        ridge = float(self.ridge) if kernel.name != "linear" else rows.squared(float(self.ridge))
        regression: LinearRidgeSmoother | KernelRidgeSmoother
        if self._primal(rows):
            regression = LinearRidgeSmoother(rows.X.astype(np.float64), ridge)
        else:
            regression = KernelRidgeSmoother(kernel.matrix(rows.X), ridge, bias=self.bias)
        return RidgeRegression(regression, rows, kernel, float(self.weight))
