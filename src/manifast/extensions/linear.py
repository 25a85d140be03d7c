"""Ridge regression on the features, or on a kernel."""

from __future__ import annotations

import numpy as np
import scipy.linalg as la

from manifast._gram import Kernel
from manifast._linalg.memory import LANDMARKS, check_room
from manifast._lipschitz import linear_lipschitz
from manifast._validation import Array, as_number, as_positive
from manifast.extensions.base import Extension
from manifast.maps import KernelMap, LinearMap
from manifast.smoothers.ridge import KernelRidgeSmoother


class Linear(Extension):
    """Ridge regression on the features: y = x·coef + intercept.

    With bias and a small ridge: the linear map of SPARSE (sec. 4), and of `ElasticEmbedding` without a kernel.

    Parameters
    ----------
    alpha : float or None, default None
        The ridge; None is a thousandth of the mean eigenvalue of the scatter matrix: it changes little, and nothing
        explodes where there are about as many rows as features. 0 is least squares, of smallest norm where that is not
        unique.
    fit_intercept : bool, default True
        With `alpha=0, fit_intercept=False` this is the linearisation of the SPARSE paper.

    Attributes
    ----------
    coef_ : array of shape (p, d)
    intercept_ : array of shape (d,)
    lipschitz_ : float
        |coef|₂, its largest singular value: |f(u) - f(v)| is at most that times |u - v|, and no smaller number will do.

    Notes
    -----
    Cost: `fit` takes O(np²) and O(p³), or O(n²p) where there are fewer rows than features. A new row takes O(pd).

    Examples
    --------
    >>> import numpy as np
    >>> from manifast.extensions import Linear
    >>> X = np.arange(6.0)[:, None]
    >>> Linear(alpha=0).fit(X, 2 * X + 1).predict([[2.5]]).round(9)
    array([[6.]])
    """

    map_: LinearMap

    def __init__(self, alpha: float | None = None, fit_intercept: bool = True) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept

    def _fit(self, X: Array, Y: Array) -> LinearMap:
        rows, X, Y = X, X.astype(np.float64), Y.astype(np.float64)
        mean, target = (X.mean(axis=0), Y.mean(axis=0)) if self.fit_intercept else (np.zeros(X.shape[1]), 0.0)
        left, values, right = la.svd(X - mean, full_matrices=False)
        if self.alpha is None:
            alpha = 1e-3 * float(np.square(values).sum()) / X.shape[1]
        else:
            alpha = as_number(self.alpha, "alpha", minimum=0.0)
        kept = values > max(X.shape) * np.finfo(float).eps * values.max(initial=0.0)
        shrunk = values[kept] / (np.square(values[kept]) + alpha)
        coef = right[kept].T @ (shrunk[:, None] * (left[:, kept].T @ (Y - target)))
        self.lipschitz_ = linear_lipschitz(coef)
        intercept = np.zeros(Y.shape[1]) + target - mean @ coef
        return LinearMap.of(rows, coef, intercept)

    @property
    def coef_(self) -> Array:
        return self.map_.coef

    @property
    def intercept_(self) -> Array:
        return self.map_.intercept


class KernelRidge(Extension):
    """Kernel ridge regression: y = Σ_i dual_i K(x, x_i) + intercept.

    With bias it is the map of LGRM (eq. 22), without it that of the kernel form of elastic embedding.

    Parameters
    ----------
    kernel : {"rbf", "linear", "poly", "precomputed"}, default "rbf"
        For "precomputed" X is the kernel matrix, and `predict` takes the kernel of new rows with the training rows.
    alpha : float, default 1e-3
        The ridge, more than 0.
    sigma : float or None, default None
        Width of the kernel exp(-d²/sigma²); None is the median distance between rows.
    fit_intercept : bool, default True
    degree, coef0 : int and float, default 3 and 1.0
        Of the polynomial kernel (x·y + coef0)^degree.

    Attributes
    ----------
    dual_coef_ : array of shape (n, d)
    intercept_ : array of shape (d,)

    Notes
    -----
    Cost: `fit` takes O(n²p + n³) and an n × n matrix. A new row takes O(n(p + d)).

    Examples
    --------
    >>> import numpy as np
    >>> from manifast.extensions import KernelRidge
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> KernelRidge(sigma=1.0, alpha=1e-9).fit(X, np.sin(X)).predict([[1.5]]).round(4)
    array([[0.9975]])
    """

    map_: KernelMap

    def __init__(
        self,
        kernel: str = "rbf",
        alpha: float = 1e-3,
        sigma: float | None = None,
        fit_intercept: bool = True,
        degree: int = 3,
        coef0: float = 1.0,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.sigma = sigma
        self.fit_intercept = fit_intercept
        self.degree = degree
        self.coef0 = coef0

    def _check_rows(self, n: int) -> None:
        check_room(n, 2, LANDMARKS)

    def _fit(self, X: Array, Y: Array) -> KernelMap:
        alpha = as_positive(self.alpha, "alpha")
        kernel = Kernel.of(self.kernel, X, sigma=self.sigma, degree=self.degree, coef0=self.coef0, matrices=2)
        smoother = KernelRidgeSmoother(kernel.matrix(X), alpha, bias=self.fit_intercept)
        return KernelMap.of(kernel, X, *smoother.fit(Y.astype(np.float64)), Y)

    @property
    def _kernel(self) -> Kernel:
        return self.map_.kernel

    @property
    def dual_coef_(self) -> Array:
        return self.map_.dual

    @property
    def intercept_(self) -> Array:
        return self.map_.intercept
