"""Supervised projections: directions in which classes lie apart and rows of a class, near ones above all, together."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from manifast._gram import Kernel, kernel_features
from manifast._labels import Labels
from manifast._validation import Array, as_count, as_number
from manifast.embeddings._base import SupervisedEmbedding, check_components, check_neighbors
from manifast.embeddings.linear import Projected, in_span, most_separating
from manifast.graphs import class_graphs, heat_width
from manifast.kernels import knn, laplacian, sq_distances
from manifast.spectral import fix_signs

__all__ = ["LDE", "LFDA"]

_NOTHING = 1e-12  # scatter within classes below this, relative to that between them, is rounding
_CHUNK = 1 << 22  # affinities held at once


class _Discriminant(Projected, SupervisedEmbedding):
    """Largest scatter between classes, F'L_bF, against the one within, F'L_wF + ridge, for F = X or K.

    Scatters are sums over differences of rows, Σ_ij w_ij (f_i - f_j)(f_i - f_j)' / 2: a common offset changes nothing.
    """

    _affinities: tuple[str, ...]

    def __init__(
        self,
        n_components: int | None = None,
        *,
        n_neighbors: int = 5,
        kernel: str | None = None,
        ridge: float = 0.1,
        affinity: str = "heat",
        beta: Any = "mean",
        sigma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.kernel = kernel
        self.ridge = ridge
        self.affinity = affinity
        self.beta = beta
        self.sigma = sigma
        self.degree = degree
        self.coef0 = coef0

    def _embed(self, X: Any, y: Labels) -> None:
        n = X.shape[0]
        ridge = as_number(self.ridge, "ridge", minimum=0.0)
        if self.affinity not in self._affinities:
            known = " or ".join(map(repr, self._affinities))
            raise ValueError(f"affinity must be {known}. Got {self.affinity!r} instead.")
        kernel = None
        if self.kernel is not None:
            kernel = Kernel.of(
                self.kernel, X, sigma=self._in_units(self.sigma, 1), degree=self.degree, coef0=self.coef0
            )
        features = n if kernel is not None else X.shape[1]
        if self.n_components is not None:
            check_components(self.n_components, min(features, n - 1), "what differences of the rows can span")
        rows = kernel_features(X) if self.kernel == "precomputed" else X
        F = X.astype(np.float64) if kernel is None else kernel.matrix(X)
        F -= F.mean(axis=0)  # so that an offset costs no accuracy
        F, basis = in_span(F)
        within, between = self._scatters(F, rows, y)
        size, apart = float(np.trace(within)), float(np.trace(between))
        if size <= _NOTHING * apart:  # no class has two different rows: nothing within to be relative to
            size = apart or 1.0
        coef, values = self._solve(within, between, ridge * size / features, size / features, y.count - 1)
        self.eigenvalues_ = values
        self._keep_map(X, kernel, coef if basis is None else fix_signs(basis @ coef), np.zeros(len(values)))

    def _solve(self, within: Array, between: Array, ridge: float, size: float, default: int) -> tuple[Array, Array]:
        """Coefficients and eigenvalues: as many as asked for, or, by default, of `default` those that exist."""
        p = len(within)
        asked = default if self.n_components is None else int(self.n_components)
        coef, values = most_separating(between, within + ridge * np.eye(p), min(asked, p), size)
        exist = max(1, int(np.count_nonzero(values > 100 * p * np.finfo(float).eps * values[0])))
        if self.n_components is not None and asked > exist:
            raise ValueError(
                f"n_components must be at most {exist}, the directions in which classes differ. Got {asked} instead."
            )
        return coef[:, :exist], values[:exist]

    @abstractmethod
    def _scatters(self, F: Array, rows: Array, labels: Labels) -> tuple[Array, Array]:
        """F'L_wF and F'L_bF of centred F (n, p), for graphs of the rows."""


class LDE(_Discriminant):
    """Local discriminant embedding (Chen et al. 2005), linear or with a kernel.

    The linear map y = W'x, or kernel map y = V'k(x), that keeps rows apart from their nearest of other classes while
    their nearest of the same class stay close: largest generalised eigenvectors of X'L_bX against X'L_wX + ridge, or of
    KL_bK against KL_wK + ridge.

    Parameters
    ----------
    n_components : int or None, default None
        None is one less than the classes, or as many as there are directions in which classes differ.
    n_neighbors : int, default 5
        Of both graphs: nearest of the same class, cut to its size, and nearest of other classes.
    kernel : {None, "linear", "rbf", "poly", "precomputed"}, default None
        None projects the features themselves. For "precomputed" X is the kernel matrix, and `transform` takes the
        kernel of new rows with the training rows.
    ridge : float, default 0.1
        Added to the diagonal of the scatter within classes, in units of its mean diagonal entry. With a kernel, whose
        matrix has a few large directions, 1e-3 is the safer choice.
    affinity : {"heat", "binary"}, default "heat"
        Weights of both graphs.
    beta : "mean" or float, default "mean"
        Width of the heat weights exp(-d²/beta); "mean" is the mean squared distance over all pairs of rows.
    sigma : float or None, default None
        Width of the kernel exp(-d²/sigma²); None is the median distance between rows.
    degree, coef0 : int and float, default 3 and 1.0
        Of the polynomial kernel (x·y + coef0)^degree.

    Attributes
    ----------
    embedding_ : array of shape (n, n_components)
        What the map makes of the training rows.
    eigenvalues_ : array of shape (n_components,)
        Scatter between over scatter within, descending. Columns of the map have unit scatter within, ridge included.
    components_ : array of shape (n_components, p), for kernel=None
    dual_coef_ : array of shape (n, n_components), for a kernel
    intercept_ : zeros
    classes_ : array
        The labels in order.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from manifast import LDE
    >>> X, y = load_digits(return_X_y=True)
    >>> LDE().fit(X[:1000], y[:1000]).transform(X[1000:]).shape
    (797, 9)
    """

    _affinities = ("heat", "binary")

    def _scatters(self, F: Array, rows: Array, labels: Labels) -> tuple[Array, Array]:
        k = check_neighbors(self.n_neighbors, rows)
        within, between = class_graphs(
            rows,
            labels.codes,
            n_neighbors_within=k,
            n_neighbors_between=k,
            weights=self.affinity,
            beta=heat_width(rows, self._in_units(self.beta, 2)),
        )
        return scatter(F, within), scatter(F, between)


class LFDA(_Discriminant):
    """Local Fisher discriminant analysis (Sugiyama 2007), linear or with a kernel.

    Fisher's discriminant analysis in which far rows of one class need not come together: with affinities a_ij inside
    each class c the scatter within has weights a_ij/n_c, the scatter between a_ij(1/n - 1/n_c) inside classes and 1/n
    across; largest generalised eigenvectors of the second against the first plus a ridge.

    Parameters
    ----------
    n_components : int or None, default None
        None is one less than the classes, or as many as there are directions in which classes differ.
    n_neighbors : int, default 7
        The neighbour, inside the class and cut to its size, whose distance is the local scale of a row.
    kernel : {None, "linear", "rbf", "poly", "precomputed"}, default None
        None projects the features themselves. For "precomputed" X is the kernel matrix, and `transform` takes the
        kernel of new rows with the training rows.
    ridge : float, default 0.1
        Added to the diagonal of the scatter within classes, in units of its mean diagonal entry. With a kernel, whose
        matrix has a few large directions, 1e-3 is the safer choice.
    affinity : {"local", "heat"}, default "local"
        exp(-d_ij²/(s_i s_j)) with the local scales s of both rows, as in the paper, or the heat weights exp(-d²/beta).
    beta : "mean" or float, default "mean"
        Width of the heat weights; "mean" is the mean squared distance over all pairs of rows.
    sigma : float or None, default None
        Width of the kernel exp(-d²/sigma²); None is the median distance between rows.
    degree, coef0 : int and float, default 3 and 1.0
        Of the polynomial kernel (x·y + coef0)^degree.

    Attributes
    ----------
    embedding_ : array of shape (n, n_components)
        What the map makes of the training rows.
    eigenvalues_ : array of shape (n_components,)
        Scatter between over scatter within, descending. Columns of the map have unit scatter within, ridge included.
    components_ : array of shape (n_components, p), for kernel=None
    dual_coef_ : array of shape (n, n_components), for a kernel
    intercept_ : zeros
    classes_ : array
        The labels in order.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from manifast import LFDA
    >>> X, y = load_digits(return_X_y=True)
    >>> LFDA().fit(X[:1000], y[:1000]).transform(X[1000:]).shape
    (797, 9)
    """

    _affinities = ("local", "heat")

    def __init__(
        self,
        n_components: int | None = None,
        *,
        n_neighbors: int = 7,
        kernel: str | None = None,
        ridge: float = 0.1,
        affinity: str = "local",
        beta: Any = "mean",
        sigma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
    ) -> None:
        super().__init__(
            n_components,
            n_neighbors=n_neighbors,
            kernel=kernel,
            ridge=ridge,
            affinity=affinity,
            beta=beta,
            sigma=sigma,
            degree=degree,
            coef0=coef0,
        )

    def _scatters(self, F: Array, rows: Array, labels: Labels) -> tuple[Array, Array]:
        n, sizes = len(F), labels.sizes[labels.codes][:, None]
        k = as_count(self.n_neighbors, "n_neighbors")
        width = heat_width(rows, self._in_units(self.beta, 2))
        local, sums = np.empty_like(F), np.empty_like(F)
        for members in labels.members:
            f, x = F[members], rows[members]
            scales = np.full(len(x), np.sqrt(width)) if self.affinity == "heat" else local_scales(x, k)
            local[members], sums[members] = affinity_differences(x, scales, f), f.sum(axis=0)
        # Across classes all pairs weigh 1/n: by the Laplacian diag(n - n_c) + ZZ' - 11', and F sums to zero.
        across = F * (1 - sizes / n) + sums / n
        return F.T @ (local / sizes), F.T @ (local * (1 / n - 1 / sizes) + across)


def scatter(F: Array, W: Any) -> Array:
    """F'(D - W)F of a graph."""
    return np.asarray(F.T @ (laplacian(W.astype(np.float64))[0] @ F))


def local_scales(X: Array, k: int) -> Array:
    """Distance of every row to its k-th nearest, or to the furthest where there are fewer (Zelnik-Manor and Perona)."""
    k = min(k, len(X) - 1)
    return knn(X, k)[0][:, -1].astype(np.float64) if k else np.zeros(len(X))


def affinity_differences(X: Array, scales: Array, F: Array) -> Array:
    """Σ_j a_ij (f_i - f_j) with a_ij = exp(-|x_i - x_j|²/(s_i s_j)), 0 where a scale is 0: (D - A)F in blocks of A."""
    out = np.empty_like(F)
    step = max(1, _CHUNK // len(X))
    for begin in range(0, len(X), step):
        part = slice(begin, begin + step)
        products = np.outer(scales[part], scales)
        squares = sq_distances(X[part], X).astype(np.float64, copy=False)
        affinities = np.exp(-np.divide(squares, products, out=np.full_like(squares, np.inf), where=products > 0))
        out[part] = affinities.sum(axis=1)[:, None] * F[part] - affinities @ F
    return out
