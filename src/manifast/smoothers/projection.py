"""Projections: the hard constraint Y = FW on features (F = X) or kernel values (F = K), and the map that W is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from manifast._gram import Kernel, check_kernel
from manifast._rows import Rows
from manifast._validation import Array, as_number, is_sparse
from manifast.maps import KernelMap, LinearMap, Map
from manifast.smoothers.base import Smoother


@dataclass(frozen=True)
class Features:
    """F of a projection Y = FW for these rows, its ridge, and how W becomes a map."""

    rows: Rows
    kernel: Kernel | None
    ridge: float | None
    relative: bool

    @property
    def count(self) -> int:
        """Columns of F."""
        return self.rows.n if self.kernel is not None else int(self.rows.X.shape[1])

    def matrix(self) -> Any:
        """F (n, q) in float64, a copy; sparse where the rows are."""
        X = self.rows.X
        return X.astype(np.float64) if self.kernel is None else self.kernel.matrix(X)

    def products(self) -> Array:
        """The kernel matrix; on features XX'."""
        if self.kernel is not None:
            return self.kernel.matrix(self.rows.X)
        X = self.rows.X.astype(np.float64)
        products = X @ X.T
        return np.asarray(products.toarray() if is_sparse(products) else products)

    def map(self, coef: Array, intercept: Array) -> Map:
        """The map with coefficients (q, d) and intercept."""
        X = self.rows.X
        if self.kernel is None:
            return LinearMap.of(X, coef, intercept)
        rows = None if self.kernel.name == "precomputed" else X
        return KernelMap(self.kernel, rows, np.ascontiguousarray(coef), intercept)  # float64: sums of them cancel


class Projection(Smoother):
    """Y = XW: the embedding is a linear map of the rows (LPP, NPE, LLTSA, LDE, LFDA, SDA, SDE).

    Parameters
    ----------
    ridge : float or None, default None
        Where the smallest eigenvalues of X'AX against X'BX are wanted it is added to both, and None is 0. Where the
        largest of X'BX against X'AX are wanted it is added to X'AX, and None is 0.1, relative.
    relative : bool, default False
        Take the ridge in units of the mean diagonal entry of the matrix that it is added to (X'BX in the first case).

    Examples
    --------
    >>> from sklearn.datasets import make_swiss_roll
    >>> from manifast import ComposedEmbedding
    >>> from manifast.smoothers import Projection
    >>> X, _ = make_swiss_roll(150, random_state=0)
    >>> ComposedEmbedding("lle", Projection(ridge=0.1)).fit(X[::2]).transform(X[1::2]).shape
    (75, 2)
    """

    sparse = True
    interpolates = True

    def __init__(self, ridge: float | None = None, *, relative: bool = False) -> None:
        self.ridge = ridge
        self.relative = relative

    def check(self, rows: Rows) -> None:
        if self.ridge is not None:
            as_number(self.ridge, "ridge", minimum=0.0)

    def columns(self, rows: Rows) -> int | None:
        return int(rows.X.shape[1])

    def prepare(self, rows: Rows) -> Features:
        self.check(rows)
        ridge = None if self.ridge is None else float(self.ridge)
        if ridge and not self.relative:
            ridge = rows.squared(ridge)
        return Features(rows, None, ridge, self.relative)


class KernelProjection(Smoother):
    """Y = KV: the embedding is a combination of kernel functions of the training rows (KLPP, kernel LDE and LFDA).

    Parameters
    ----------
    kernel : {"rbf", "linear", "poly", "precomputed"}, default "rbf"
        For "precomputed" X is the kernel matrix, and `transform` takes the kernel of new rows with the training rows.
    sigma : float or None, default None
        Width of the kernel exp(-d²/sigma²); None is the median distance between rows.
    degree, coef0 : int and float, default 3 and 1.0
        Of the polynomial kernel (x·y + coef0)^degree.
    ridge, relative
        As in `Projection`, with K for X; for smallest eigenvalues the ridge is ridge K.

    Examples
    --------
    >>> from sklearn.datasets import make_swiss_roll
    >>> from manifast import ComposedEmbedding
    >>> X, _ = make_swiss_roll(150, random_state=0)
    >>> ComposedEmbedding("laplacian", "kernel_projection").fit(X[::2]).transform(X[1::2]).shape
    (75, 2)
    """

    interpolates = True

    def __init__(
        self,
        kernel: str = "rbf",
        *,
        sigma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        ridge: float | None = None,
        relative: bool = False,
    ) -> None:
        self.kernel = kernel
        self.sigma = sigma
        self.degree = degree
        self.coef0 = coef0
        self.ridge = ridge
        self.relative = relative

    def check(self, rows: Rows) -> None:
        if self.ridge is not None:
            as_number(self.ridge, "ridge", minimum=0.0)
        check_kernel(self.kernel, rows.X, self.degree, self.coef0, matrices=4)

    def columns(self, rows: Rows) -> int | None:
        return rows.n

    def prepare(self, rows: Rows) -> Features:
        self.check(rows)
        kernel = Kernel.of(
            self.kernel, rows.X, sigma=rows.in_units(self.sigma, 1), degree=self.degree, coef0=self.coef0
        )
        return Features(rows, kernel, None if self.ridge is None else float(self.ridge), self.relative)
