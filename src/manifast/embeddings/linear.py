"""Linear and kernel projections: the map comes first, and the embedding is what it makes of the training rows."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp

from manifast import objectives
from manifast._gram import Kernel, kernel_features, linear_map
from manifast._validation import Array, as_number, as_positive, is_sparse
from manifast.embeddings._base import Embedding, check_components, check_neighbors, join, neighbor_lists, solve
from manifast.graphs import heat_width, knn_graph
from manifast.smoothers import KernelRidgeSmoother, LinearRidgeSmoother
from manifast.spectral import fix_signs

__all__ = ["LPP", "SpectralRegression"]

_RANGE = 1e-12  # directions of X or K below this, relative to the largest, count as not there


class Projected(Embedding):
    """Base of embeddings that are a map of the rows: y = x·W + b on the features, or a kernel map."""

    _interpolates = True

    def _keep_map(self, X: Any, kernel: Kernel | None, coef: Array, intercept: Array) -> None:
        """Keep the map, (p, d) or (n, d) coefficients and intercept, and what it makes of the training rows."""
        self._X = X if kernel is not None and kernel.name != "precomputed" else None
        self._kernel = kernel
        self.intercept_ = intercept.astype(X.dtype)
        if kernel is None:
            self.components_ = np.ascontiguousarray(coef.T, dtype=X.dtype)
        else:
            self.dual_coef_ = np.ascontiguousarray(coef)  # float64: sums of them cancel
        self.embedding_ = self._map(X)

    def _map(self, X: Any) -> Array:
        if self._kernel is not None:
            return self._kernel.apply(X, self._X, self.dual_coef_, self.intercept_).astype(X.dtype, copy=False)
        return linear_map(X, self.components_.T, self.intercept_)

    @property
    def _n_features_out(self) -> int:
        return len(self.intercept_)


class _Projection(Projected):
    """A projection for the neighbour graph of Laplacian eigenmaps, on the features (kernel=None) or with a kernel."""

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_neighbors: int = 8,
        kernel: str | None = None,
        alpha: float = 0.0,
        sigma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        affinity: str = "heat",
        beta: Any = "mean",
        connect: bool = True,
        neighbors: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.kernel = kernel
        self.alpha = alpha
        self.sigma = sigma
        self.degree = degree
        self.coef0 = coef0
        self.affinity = affinity
        self.beta = beta
        self.connect = connect
        self.neighbors = neighbors
        self.verbose = verbose

    @property
    def _sparse(self) -> bool:  # type: ignore[override]
        return self.kernel is None

    def _embed(self, X: Any, y: Any) -> None:
        n = X.shape[0]
        d = check_components(self.n_components, n - 1, "the rows less the constant vector")
        alpha = as_number(self.alpha, "alpha", minimum=0.0)
        if self.affinity not in ("heat", "binary"):
            raise ValueError(f"affinity must be 'heat' or 'binary'. Got {self.affinity!r} instead.")
        kernel = None
        if self.kernel is not None:
            kernel = Kernel.of(
                self.kernel, X, sigma=self._in_units(self.sigma, 1), degree=self.degree, coef0=self.coef0
            )
        rows = kernel_features(X) if self.kernel == "precomputed" else X
        k = check_neighbors(self.n_neighbors, rows)
        width = heat_width(rows, self._in_units(self.beta, 2))
        W = knn_graph(rows, k, weights=self.affinity, beta=width, neighbors=neighbor_lists(self.neighbors, rows, k))
        objective = objectives.laplacian_eigenmaps(join(W, rows, self.connect, self.affinity, width))
        self._keep_map(X, kernel, *self._coefficients(X, kernel, objective, d, alpha))

    @abstractmethod
    def _coefficients(
        self, X: Any, kernel: Kernel | None, objective: objectives.Objective, d: int, alpha: float
    ) -> tuple[Array, Array]:
        """Coefficients of the features or of the kernel, (p, d) or (n, d), and intercept."""


class LPP(_Projection):
    """Locality preserving projections (He and Niyogi 2003), linear or with a kernel.

    The linear map y = W'x, or kernel map y = V'k(x), whose image of the training rows is smoothest on the neighbour
    graph: smallest generalised eigenvectors of X'LX against X'DX, or of KLK against KDK, solved in the range of X or K.
    The constant is left out where the range holds it.

    Parameters
    ----------
    n_components : int, default 2
        At most the rank of X or K.
    n_neighbors : int, default 8
    kernel : {None, "linear", "rbf", "poly", "precomputed"}, default None
        None projects the features themselves. For "precomputed" X is the kernel matrix, and `transform` takes the
        kernel of new rows with the training rows.
    alpha : float, default 0.0
        Ridge, alpha I or with a kernel alpha K, added to both sides: the largest of X'WX against X'DX + alpha I.
    sigma : float or None, default None
        Width of the kernel exp(-d²/sigma²); None is the median distance between rows.
    degree, coef0 : int and float, default 3 and 1.0
        Of the polynomial kernel (x·y + coef0)^degree.
    affinity : {"heat", "binary"}, default "heat"
        Weights of the neighbour graph.
    beta : "mean" or float, default "mean"
        Width of the heat weights exp(-d²/beta); "mean" is the mean squared distance over all pairs of rows.
    connect : bool, default True
        Join the components of a disconnected neighbour graph by the shortest missing edges, with a warning.
    neighbors : (distances, indices), optional
        Nearest neighbours of the training rows from elsewhere, instead of the exact search.
    verbose : bool, default False

    Attributes
    ----------
    embedding_ : array of shape (n, n_components)
        What the map makes of the training rows.
    eigenvalues_ : array of shape (n_components,)
    components_ : array of shape (n_components, p), for kernel=None
    dual_coef_ : array of shape (n, n_components), for a kernel
    intercept_ : zeros

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from manifast import LPP
    >>> X = load_digits().data
    >>> LPP(n_components=5).fit(X[:1000]).transform(X[1000:]).shape
    (797, 5)
    """

    def _coefficients(
        self, X: Any, kernel: Kernel | None, objective: objectives.Objective, d: int, alpha: float
    ) -> tuple[Array, Array]:
        if kernel is None and X.shape[1] <= X.shape[0]:
            coef, self.eigenvalues_ = smoothest(X.astype(np.float64), objective, d, np.full(X.shape[1], alpha))
            return coef, np.zeros(d)
        # In the range of K, or of XX' where there are more features than rows.
        values, vectors = la.eigh(_as_dense(X @ X.T) if kernel is None else kernel.matrix(X))
        kept = values > _RANGE * max(float(values[-1]), np.finfo(float).tiny)
        basis, values = vectors[:, kept], values[kept]
        inside, self.eigenvalues_ = smoothest(basis, objective, d, alpha / values)
        dual = basis @ (inside / values[:, None])
        return np.asarray(X.T @ dual) if kernel is None else dual, np.zeros(d)


def smoothest(F: Any, objective: objectives.Objective, d: int, ridge: Array) -> tuple[Array, Array]:
    """Coefficients C (p, d) of the smallest eigenvalues of F'LF + ridge against F'DF + ridge, and these.

    The ridge on both sides is the same as maximising F'WF against F'DF + ridge: directions in which F hardly varies do
    not count as smooth.
    """
    L, degrees = objective.A, objective.weights
    weighted = sp.diags_array(degrees) @ F if is_sparse(F) else degrees[:, None] * F
    upper, lower = _as_dense(F.T @ (L @ F)), _as_dense(F.T @ weighted)
    moments = np.asarray(weighted.sum(axis=0), dtype=np.float64).ravel()  # F'D1
    values, axes = la.eigh(0.5 * (lower + lower.T))
    kept = values > _RANGE * max(float(values[-1]), np.finfo(float).tiny)
    whitener = axes[:, kept] / np.sqrt(values[kept])
    towards = whitener.T @ moments  # the constant in a basis where F'DF is the identity
    holds_constant = towards @ towards >= (1 - 1e-10) * degrees.sum()
    if ridge.any():  # of the remaining freedom, whiten F'DF + ridge
        values, rotation = la.eigh(np.eye(whitener.shape[1]) + (whitener.T * ridge) @ whitener)
        whitener = whitener @ (rotation / np.sqrt(values))
        towards = np.sqrt(values) * (rotation.T @ towards)
    if holds_constant:  # reflect the constant onto the first axis, and leave that out
        mirror = towards / la.norm(towards)
        mirror[0] += 1.0 if mirror[0] >= 0 else -1.0
        whitener = (whitener - np.outer(whitener @ mirror, mirror) * (2.0 / (mirror @ mirror)))[:, 1:]
    most = whitener.shape[1]
    if d > most:
        raise ValueError(f"n_components must be at most {most}, the dimensions that X spans. Got {d} instead.")
    inside = whitener.T @ (upper + np.diag(ridge)) @ whitener
    eigenvalues, vectors = la.eigh(0.5 * (inside + inside.T), subset_by_index=(0, d - 1))
    coef = whitener @ vectors
    image = np.asarray(F @ coef)
    turned = np.einsum("ij,ij->j", image, fix_signs(image)) < 0
    return coef * np.where(turned, -1.0, 1.0), eigenvalues


def in_span(F: Array) -> tuple[Array, Array | None]:
    """Rows in the coordinates of the space they span where there are more features than rows, and its basis (p, n)."""
    if F.shape[1] <= F.shape[0]:
        return F, None
    basis, triangle = la.qr(F.T, mode="economic", overwrite_a=True, check_finite=False)
    return triangle.T, basis


def most_separating(between: Array, within: Array, d: int, size: float) -> tuple[Array, Array]:
    """Coefficients (p, d) of the largest eigenvalues of `between` against `within`, and these.

    Where `within` is singular the smallest jitter that helps is added, in units of `size`, with a warning.
    """
    p = len(between)
    for jitter in (0.0, *(p * np.finfo(float).eps * size * 10.0**e for e in range(12))):
        try:
            values, vectors = la.eigh(between, within + jitter * np.eye(p), subset_by_index=(p - d, p - 1))
        except la.LinAlgError:
            continue
        if jitter:
            warnings.warn(
                f"the scatter within classes is singular: {jitter:.1g} was added to its diagonal. Use a larger ridge.",
                UserWarning,
                stacklevel=7,
            )
        return fix_signs(vectors[:, ::-1]), values[::-1]
    raise la.LinAlgError("the scatter within classes must be positive semidefinite")


def _as_dense(matrix: Any) -> Array:
    return np.asarray(matrix.toarray() if is_sparse(matrix) else matrix, dtype=np.float64)


class SpectralRegression(_Projection):
    """Spectral regression (Cai et al. 2007), linear or with a kernel: Laplacian eigenmaps, then ridge regression.

    Parameters
    ----------
    n_components : int, default 2
    n_neighbors : int, default 8
    kernel : {None, "linear", "rbf", "poly", "precomputed"}, default None
        None regresses on the features themselves. For "precomputed" X is the kernel matrix, and `transform` takes the
        kernel of new rows with the training rows.
    alpha : float, default 0.1
        Ridge of the regression; more than 0 with a kernel.
    sigma : float or None, default None
        Width of the kernel exp(-d²/sigma²); None is the median distance between rows.
    degree, coef0 : int and float, default 3 and 1.0
        Of the polynomial kernel (x·y + coef0)^degree.
    affinity : {"heat", "binary"}, default "heat"
        Weights of the neighbour graph.
    beta : "mean" or float, default "mean"
        Width of the heat weights exp(-d²/beta); "mean" is the mean squared distance over all pairs of rows.
    connect : bool, default True
        Join the components of a disconnected neighbour graph by the shortest missing edges, with a warning.
    neighbors : (distances, indices), optional
        Nearest neighbours of the training rows from elsewhere, instead of the exact search.
    verbose : bool, default False

    Attributes
    ----------
    embedding_ : array of shape (n, n_components)
        What the map makes of the training rows: the regression's image of the eigenvectors.
    eigenvalues_ : array of shape (n_components,)
        Of Laplacian eigenmaps.
    components_ : array of shape (n_components, p), for kernel=None
    dual_coef_ : array of shape (n, n_components), for a kernel
    intercept_ : array of shape (n_components,)

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from manifast import SpectralRegression
    >>> X = load_digits().data
    >>> SpectralRegression(n_components=5, kernel="rbf").fit(X[:1000]).transform(X[1000:]).shape
    (797, 5)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_neighbors: int = 8,
        kernel: str | None = None,
        alpha: float = 0.1,
        sigma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        affinity: str = "heat",
        beta: Any = "mean",
        connect: bool = True,
        neighbors: Any = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            n_components,
            n_neighbors=n_neighbors,
            kernel=kernel,
            alpha=alpha,
            sigma=sigma,
            degree=degree,
            coef0=coef0,
            affinity=affinity,
            beta=beta,
            connect=connect,
            neighbors=neighbors,
            verbose=verbose,
        )

    def _coefficients(
        self, X: Any, kernel: Kernel | None, objective: objectives.Objective, d: int, alpha: float
    ) -> tuple[Array, Array]:
        smoother: Any
        if kernel is None:
            smoother = LinearRidgeSmoother(X.astype(np.float64), alpha)
        else:
            smoother = KernelRidgeSmoother(kernel.matrix(X), as_positive(alpha, "alpha"))
        self.eigenvalues_, Y = solve(objective, objective.A, d, np.float64, self.verbose)
        return smoother.fit(Y)  # type: ignore[no-any-return]
