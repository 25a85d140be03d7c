"""Smoothers (R, f): a penalty that keeps an embedding predictable from X, and the map f that goes with it.

Ridge regression with bias, in the space of a kernel or of the features themselves. For an embedding Y it leaves
tr(Y' R Y) with R = H - HKH (HKH + γI)^-1 = γ H (HKH + γI)^-1 H (LGRM eqs. 13 to 18), and its solution predicts new rows
(LGRM eq. 22).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp

from manifast._validation import Array, is_sparse
from manifast.spectral import LowRankSum


class KernelRidgeSmoother:
    """Kernel ridge regression with bias on a kernel matrix K (n, n)."""

    def __init__(self, K: Array, ridge: float) -> None:
        self._means = K.mean(axis=0)
        self._ridge = ridge
        centred = K - self._means - self._means[:, None] + self._means.mean()  # HKH
        centred.flat[:: len(K) + 1] += ridge
        self._factor = la.cho_factor(centred, lower=True, overwrite_a=True, check_finite=False)

    def add_penalty(self, A: Any, weight: float) -> Array:
        """A + weight · γ H (HKH + γI)^-1 H, dense (eqs. 18 and 19)."""
        inverse, info = la.lapack.dpotri(self._factor[0], lower=1)
        if info:
            raise la.LinAlgError("the kernel matrix is singular: raise gamma")
        inverse = np.tril(inverse)
        inverse += np.tril(inverse, -1).T
        # H commutes with HKH, so one centring of the inverse is that of both sides: rows of it sum to 1/γ.
        penalty = weight * self._ridge * inverse
        penalty -= weight / len(inverse)
        return np.asarray(penalty + (A.toarray() if is_sparse(A) else A))

    def fit(self, Y: Array) -> tuple[Array, Array]:
        """Dual coefficients and intercept: f(x) = Σ_i dual_i K(x, x_i) + intercept (eqs. 20 to 22)."""
        dual = la.cho_solve(self._factor, Y - Y.mean(axis=0), check_finite=False)
        dual -= dual.mean(axis=0)
        return dual, Y.mean(axis=0) - self._means @ dual


class LinearRidgeSmoother:
    """Ridge regression with bias on the features X (n, p): the linear kernel without its n × n matrix."""

    def __init__(self, X: Any, ridge: float) -> None:
        self._mean = np.asarray(X.mean(axis=0), dtype=np.float64).ravel()
        self._X, self._ridge = X, ridge
        scatter = X.T @ X
        scatter = np.asarray(scatter.toarray() if is_sparse(scatter) else scatter, dtype=np.float64)
        scatter -= X.shape[0] * np.outer(self._mean, self._mean)
        self._values, self._axes = la.eigh(0.5 * (scatter + scatter.T))
        self._values = np.maximum(self._values, 0.0)

    def add_penalty(self, A: Any, weight: float) -> LowRankSum:
        """A + weight · (I - X_c (X_c'X_c + γI)^-1 X_c'), sparse plus low rank; like H, I but for constants."""
        n = self._X.shape[0]
        kept = self._values > 1e-14 * self._values.max(initial=0.0)
        axes = self._axes[:, kept]
        scores = np.asarray(self._X @ axes) - self._mean @ axes
        weights = -weight / (self._values[kept] + self._ridge)
        return LowRankSum(sp.csr_array(A) + weight * sp.eye_array(n, format="csr"), scores, weights)

    def fit(self, Y: Array) -> tuple[Array, Array]:
        """Coefficients (p, d) and intercept: f(x) = x·coef + intercept."""
        mean = Y.mean(axis=0)
        moments = self._axes.T @ (np.asarray(self._X.T @ Y, dtype=np.float64) - np.outer(self._mean, Y.sum(axis=0)))
        total = self._values + self._ridge
        floor = 1e-14 * max(float(total.max(initial=0.0)), np.finfo(float).tiny)
        coef = self._axes @ (np.where(total > floor, 1.0 / np.maximum(total, floor), 0.0)[:, None] * moments)
        return coef, mean - self._mean @ coef
