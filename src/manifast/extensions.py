"""Maps for new points, f alone: fitted to rows X and any finished embedding Y of them.

Each has `fit(X, Y)` and `predict(X_new)`. A row's prediction has the same bits in any batch and on any number of
threads; predicting changes nothing.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError

from manifast._gram import Kernel, median_distance, settle
from manifast._local import _reconstruct
from manifast._paths import landmark_map, shortest_paths
from manifast._threads import blas_for
from manifast._validation import Array, as_count, as_matrix, as_number, as_positive, is_sparse, whole_or_not_at_all
from manifast.graphs import (
    NearestRows,
    as_rows,
    chunks,
    connect_components,
    full_graph,
    heat_width,
    knn_graph,
    nearest,
    unit_rows,
)
from manifast.kernels import (
    _affine_product,
    _distances_between,
    _heat_mean,
    _of_one_dtype,
    _rbf_product,
    gaussian,
    l1_code,
    laplacian,
    neighbor_graph,
    rbf_apply,
)
from manifast.smoothers import KernelRidgeSmoother
from manifast.theory import rbf_lipschitz

__all__ = [
    "RBF",
    "Extension",
    "KernelRidge",
    "LandmarkIsomap",
    "LatentVariable",
    "Linear",
    "Nystrom",
    "Reconstruction",
    "SparseCode",
]

_CHUNK = 1 << 21  # distances held at once


class Extension(BaseEstimator, ABC):  # type: ignore[misc]
    """What all maps share: the training rows, their embedding, and the checks of both."""

    _sparse: ClassVar[bool] = False  # whether X may be a sparse matrix

    def fit(self, X: Any, Y: Any) -> Extension:
        """Learn the map from rows X (n, p) and their embedding Y (n, d)."""
        X, Y = self._check(X, Y)
        with whole_or_not_at_all(self), blas_for(X.shape[0]):
            self._fit(X, Y)
            self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X: Any) -> Array:
        """Embedding of new rows."""
        if not hasattr(self, "n_features_in_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted: call fit(X, Y) first")
        rows = self._rows(X, columns=self.n_features_in_)
        if rows.shape[0] == 0:  # shape and dtype are those of any row's
            return self._predict(np.zeros((1, self.n_features_in_), rows.dtype))[:0]
        return self._predict(rows)

    def _check(self, X: Any, Y: Any) -> tuple[Any, Array]:
        X = self._rows(X, min_rows=1)
        Y = np.asarray(Y)
        Y = as_matrix(Y[:, None] if Y.ndim == 1 else Y, "Y")
        if Y.shape[0] != X.shape[0]:
            raise ValueError(f"Y must have one row per row of X, {X.shape[0]}. Got shape {Y.shape} instead.")
        return X, Y

    def _rows(self, X: Any, *, min_rows: int = 0, columns: int | None = None) -> Any:
        return (as_rows if self._sparse else as_matrix)(X, "X", min_rows=min_rows, columns=columns)

    @abstractmethod
    def _fit(self, X: Any, Y: Array) -> None:
        """Learn from checked rows."""

    @abstractmethod
    def _predict(self, X: Any) -> Array:
        """Map checked rows."""


class Linear(Extension):
    """Ridge regression on the features: y = x·coef + intercept.

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

    Examples
    --------
    >>> import numpy as np
    >>> from manifast.extensions import Linear
    >>> X = np.arange(6.0)[:, None]
    >>> Linear(alpha=0).fit(X, 2 * X + 1).predict([[2.5]]).round(9)
    array([[6.]])
    """

    def __init__(self, alpha: float | None = None, fit_intercept: bool = True) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept

    def _fit(self, X: Array, Y: Array) -> None:
        dtype = np.result_type(X.dtype, Y.dtype)
        X, Y = X.astype(np.float64), Y.astype(np.float64)
        mean, target = (X.mean(axis=0), Y.mean(axis=0)) if self.fit_intercept else (np.zeros(X.shape[1]), 0.0)
        left, values, right = la.svd(X - mean, full_matrices=False)
        if self.alpha is None:
            alpha = 1e-3 * float(np.square(values).sum()) / X.shape[1]
        else:
            alpha = as_number(self.alpha, "alpha", minimum=0.0)
        kept = values > max(X.shape) * np.finfo(float).eps * values.max(initial=0.0)
        shrunk = values[kept] / (np.square(values[kept]) + alpha)
        coef = right[kept].T @ (shrunk[:, None] * (left[:, kept].T @ (Y - target)))
        self.coef_ = np.ascontiguousarray(coef, dtype=dtype)
        self.intercept_ = np.asarray(np.zeros(Y.shape[1]) + target - mean @ coef, dtype=dtype)

    def _predict(self, X: Array) -> Array:
        dtype = np.result_type(X.dtype, self.coef_.dtype)
        return _affine_product(*(part.astype(dtype, copy=False) for part in (X, self.coef_, self.intercept_)))


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

    Examples
    --------
    >>> import numpy as np
    >>> from manifast.extensions import KernelRidge
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> KernelRidge(sigma=1.0, alpha=1e-9).fit(X, np.sin(X)).predict([[1.5]]).round(4)
    array([[0.9975]])
    """

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

    def _fit(self, X: Array, Y: Array) -> None:
        alpha = as_positive(self.alpha, "alpha")
        kernel = Kernel.of(self.kernel, X, sigma=self.sigma, degree=self.degree, coef0=self.coef0)
        dtype = np.result_type(X.dtype, Y.dtype)
        wide = Y.astype(np.float64)
        dual, intercept = KernelRidgeSmoother(kernel.matrix(X), alpha, bias=self.fit_intercept).fit(wide)
        self._kernel = kernel
        self._X = None if kernel.name == "precomputed" else X
        self.dual_coef_ = settle(dual, wide, dtype)
        self.intercept_ = np.asarray(intercept, dtype=dtype)

    def _predict(self, X: Array) -> Array:
        return self._kernel.apply(X, self._X, self.dual_coef_, self.intercept_).astype(
            self.intercept_.dtype, copy=False
        )


class LatentVariable(Extension):
    """Mean of the embeddings of the nearest training rows, weighted by the heat kernel (LVM).

    y(x) = Σ exp(-|x - x_i|²/beta) y_i / Σ exp(-|x - x_i|²/beta) over the nearest; distances count relative to the
    nearest, so that not all weights underflow.

    Parameters
    ----------
    n_neighbors : int, default 3
        Cut to the number of training rows.
    beta : "mean" or float, default "mean"
        "mean" is the mean squared distance between training rows.

    Examples
    --------
    >>> import numpy as np
    >>> from manifast.extensions import LatentVariable
    >>> X = np.arange(6.0)[:, None]
    >>> LatentVariable(n_neighbors=2).fit(X, X).predict([[2.5]])
    array([[2.5]])
    """

    _sparse = True

    def __init__(self, n_neighbors: int = 3, beta: Any = "mean") -> None:
        self.n_neighbors = n_neighbors
        self.beta = beta

    def _fit(self, X: Any, Y: Array) -> None:
        self._k = min(as_count(self.n_neighbors, "n_neighbors"), X.shape[0])
        self.beta_ = heat_width(X, self.beta)
        self.X_, self.Y_, self._nearest = X, Y, NearestRows(X)

    def _predict(self, X: Any) -> Array:
        mean = _heat_mean(*self._nearest(self._k, X), self.Y_, self.beta_, others=False)
        return mean.astype(np.result_type(X.dtype, self.Y_.dtype), copy=False)


class RBF(Extension):
    """Gaussian interpolation: y = Σ_i c_i exp(-|x - x_i|²/σ²) with f(x_i) = y_i.

    Parameters
    ----------
    sigma : "median", "loo" or float, default "median"
        Width: `scale` times the median distance between rows; or chosen among `sigma_grid` (in medians) by closed-form
        leave-one-out, F_loo = Y - Ψ^-1 Y / diag(Ψ^-1), copies of a row together; or a number, taken as it is.
    scale : float, default 1.0
        Of the median.
    ridge : float or sequence of floats, default 0.0
        Added to the diagonal of Ψ: the map then smooths instead of interpolating. Several are chosen among by the same
        leave-one-out.
    sigma_grid : sequence of floats or None, default None
        Widths for "loo", in medians; None is 20 from 0.3 to 6.
    verbose : bool, default False
        Say which width was tried, and how it went.

    Attributes
    ----------
    sigma_ : float
    ridge_ : float
    coef_ : array of shape (n, d)
    loo_error_ : float
        Root mean square of the leave-one-out residuals relative to Y's own spread; where something was chosen by it.
    lipschitz_ : (float, float)
        Two constants of the map, Proposition 1 of NSSE and a tighter one, see `manifast.theory.rbf_lipschitz`.

    Notes
    -----
    Rows that repeat share their coefficients equally, and their embeddings are averaged: the solution of smallest norm,
    and with a ridge the same map as without merging them. Leave-one-out leaves all copies of a row out at once, as any
    of them would give the others away. Where Ψ is singular to working precision the smallest jitter that helps is
    added, and a warning says so; where it is at every candidate, that is done at the smallest width.

    Examples
    --------
    >>> import numpy as np
    >>> from manifast.extensions import RBF
    >>> X = np.linspace(0, 6, 12)[:, None]
    >>> model = RBF(sigma=1.0).fit(X, np.sin(X))
    >>> bool(np.allclose(model.predict(X), np.sin(X)))
    True
    """

    def __init__(
        self,
        sigma: Any = "median",
        scale: float = 1.0,
        ridge: Any = 0.0,
        sigma_grid: Any = None,
        verbose: bool = False,
    ) -> None:
        self.sigma = sigma
        self.scale = scale
        self.ridge = ridge
        self.sigma_grid = sigma_grid
        self.verbose = verbose

    def _fit(self, X: Array, Y: Array) -> None:
        dtype = np.result_type(X.dtype, Y.dtype)
        widths, ridges = rbf_candidates(X, self.sigma, self.ridge, self.sigma_grid, self.scale)
        wide, target, groups, counts = merge_copies(X, Y)
        self.sigma_, self.ridge_ = widths[0], ridges[0]
        self.__dict__.pop("loo_error_", None)  # of an earlier fit
        if len(widths) * len(ridges) > 1:
            self.sigma_, self.ridge_, residuals = choose_by_loo(wide, target, counts, widths, ridges, self.verbose)
            self.loo_error_ = float(np.linalg.norm(residuals)) / spread(target)
        coef = interpolate(wide, target, counts, self.sigma_, self.ridge_)
        self.X_ = X
        self.coef_, self._dtype = settle((coef / counts[:, None])[groups], target, dtype), dtype
        self.lipschitz_ = rbf_lipschitz(self.coef_, self.sigma_)

    def _predict(self, X: Array) -> Array:
        made = _rbf_product(X, self.X_, self.coef_, self.sigma_)
        return made.astype(np.result_type(X.dtype, self._dtype), copy=False)


_SIGMA_GRID = tuple(np.geomspace(0.3, 6.0, 20))


def rbf_candidates(
    X: Array, sigma: Any, ridge: Any, sigma_grid: Any, scale: Any = 1.0
) -> tuple[list[float], list[float]]:
    """Widths and ridges to choose among, as `RBF` takes them."""
    if isinstance(sigma, str) and sigma not in ("median", "loo"):
        raise ValueError(f"sigma must be 'median', 'loo' or a positive number. Got {sigma!r} instead.")
    unit = as_positive(scale, "scale")
    given = {"ridge": ridge, "sigma_grid": _SIGMA_GRID if sigma_grid is None else sigma_grid}
    values = {name: np.atleast_1d(np.asarray(value, dtype=object)) for name, value in given.items()}
    for name, several in values.items():
        if several.ndim != 1 or not len(several):
            raise ValueError(f"{name} must be a number or a sequence of some. Got {given[name]!r} instead.")
    ridges = [as_number(value, "ridge", minimum=0.0) for value in values["ridge"]]
    grid = [as_positive(value, "sigma_grid") for value in values["sigma_grid"]]
    if sigma == "loo":
        return [unit * median_distance(X) * s for s in grid], ridges
    return [unit * median_distance(X) if sigma == "median" else as_positive(sigma, "sigma")], ridges


def merge_copies(X: Array, Y: Array) -> tuple[Array, Array, Array, Array]:
    """Rows that differ and the mean of Y over the copies of each, in float64; the number of each row there; copies."""
    rows, groups, counts = unique_rows(X)
    target = np.zeros((len(rows), Y.shape[1]))
    np.add.at(target, groups, Y.astype(np.float64))
    target /= counts[:, None]
    return X[rows].astype(np.float64), target, groups, counts


def spread(Y: Array) -> float:
    """Size of Y about its mean, 1 where that is 0."""
    return float(np.linalg.norm(Y - Y.mean(axis=0))) or 1.0


def unique_rows(X: Array) -> tuple[Array, Array, Array]:
    """First rows of every kind in order, the kind of each row, and how many there are of it."""
    _, first, inverse, counts = np.unique(
        np.ascontiguousarray(X) + 0.0, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[inverse.reshape(-1)], counts[order]


def _jitters(n: int) -> Iterator[float]:
    """What is tried on the diagonal of a singular Ψ, smallest first."""
    return (n * np.finfo(float).eps * 10.0**e for e in range(12))


def interpolate(X: Array, Y: Array, counts: Array, sigma: float, ridge: float) -> Array:
    """Coefficients of (Ψ + ridge) C = Y, by Cholesky with the smallest jitter that makes it succeed.

    Rows are what `merge_copies` gives. For m copies the sum of m rows of (Ψ + ridge I) C = Y, divided by m, has ridge /
    m on the diagonal, and C there is the sum of their coefficients.
    """
    for jitter in (0.0, *_jitters(len(X))):
        psi = gaussian(X, sigma=sigma)
        psi.flat[:: len(psi) + 1] += (ridge + jitter) / counts
        factor, failed = la.lapack.dpotrf(psi.T, lower=1, clean=0, overwrite_a=1)
        if not failed:
            break
    else:
        raise la.LinAlgError("the kernel matrix cannot be factored: use a smaller sigma or ridge > 0")
    coef, _ = la.lapack.dpotrs(factor, Y, lower=1)
    if ridge == 0:
        sample = np.unique(np.linspace(0, len(X) - 1, min(len(X), 500)).astype(int))
        missed = np.abs(rbf_apply(X[sample], X, coef, sigma=sigma) - Y[sample]).max() / (np.abs(Y).max() or 1.0)
        if missed > 1e-6:
            warnings.warn(
                f"the kernel matrix is nearly singular at sigma = {sigma:.3g} (jitter {jitter:.1g}), and the embedding "
                f"is reproduced only to {missed:.1e}. Use a smaller sigma, or ridge > 0 on purpose.",
                UserWarning,
                stacklevel=5,
            )
    return np.asarray(coef)


def choose_by_loo(
    X: Array,
    Y: Array,
    counts: Array,
    widths: list[float],
    ridges: list[float],
    verbose: bool,
    score: Callable[[Array], Any] = np.linalg.norm,
) -> tuple[float, float, Array]:
    """The width and ridge whose leave-one-out residuals Y - F_loo have the smallest score, and these residuals.

    Where Ψ is singular for all of them it is the smallest width and the largest ridge, with residuals at the smallest
    jitter that helps, and a warning.
    """
    found: tuple[float, float, Array] | None = None
    best: Any = None
    for sigma in widths:
        candidates = zip(ridges, loo_residuals(gaussian(X, sigma=sigma), Y, counts, ridges), strict=True)
        for ridge, residuals in candidates:
            if verbose:
                error = np.inf if residuals is None else np.linalg.norm(residuals) / spread(Y)
                print(f"RBF: sigma {sigma:.4g}, ridge {ridge:.2g}: leave-one-out error {error:.4f}")
            if residuals is None or not np.isfinite(residuals).all():
                continue
            value = score(residuals)
            if found is None or value < best:
                best, found = value, (sigma, ridge, residuals)
    if found is not None:
        return found
    sigma, ridge = min(widths), max(ridges)
    for jitter in _jitters(len(X)):
        residuals = next(loo_residuals(gaussian(X, sigma=sigma), Y, counts, [ridge + jitter]))
        if residuals is not None and np.isfinite(residuals).all():
            warnings.warn(
                f"the kernel matrix is singular at every sigma: the smallest, {sigma:.3g}, is used with jitter "
                f"{jitter:.1g}. Use a smaller sigma or sigma_grid, or a larger ridge.",
                UserWarning,
                stacklevel=4,
            )
            return sigma, ridge, residuals
    raise la.LinAlgError("the kernel matrix cannot be factored: use a smaller sigma or ridge > 0")


_FEW_RIDGES = 5  # so many Cholesky factors take less time than one eigendecomposition


def loo_residuals(psi: Array, Y: Array, counts: Array, ridges: list[float]) -> Iterator[Array | None]:
    """Y - F_loo = Ψ^-1 Y / diag(Ψ^-1) for every ridge on the diagonal of psi, None where that is singular.

    Rows are what `merge_copies` gives: all copies of a row are left out at once, and m of them divide its ridge by m,
    see `interpolate`. Few ridges: Cholesky, and the diagonal from the inverse of its triangle. More share one
    eigendecomposition. psi is overwritten.
    """
    n = len(psi)
    # Ψ + ridge M^-1 = M^-½ (M^½ Ψ M^½ + ridge I) M^-½: with these units the ridge is the same for all rows.
    root = np.sqrt(counts)[:, None]
    psi *= root
    psi *= root.T
    Y = root * Y
    if len(ridges) <= _FEW_RIDGES:
        for ridge in ridges:
            shifted = psi.copy()
            shifted.flat[:: n + 1] += ridge
            factor, failed = la.lapack.dpotrf(shifted.T, lower=1, clean=1, overwrite_a=1)
            if failed:
                yield None
                continue
            solved, _ = la.lapack.dpotrs(factor, Y, lower=1)
            inverse, failed = la.lapack.dtrtri(factor, lower=1, overwrite_c=1)
            yield None if failed else solved / (root * np.einsum("ij,ij->j", inverse, inverse)[:, None])
        return
    values, vectors = la.eigh(psi, overwrite_a=True, check_finite=False)
    inside, squares = vectors.T @ Y, np.square(vectors)
    for ridge in ridges:
        total = values + ridge
        if total[0] <= n * np.finfo(float).eps * total[-1]:
            yield None
        else:
            yield vectors @ (inside / total[:, None]) / (root * (squares @ (1.0 / total))[:, None])


class Reconstruction(Extension):
    """Rebuild a new row from its nearest training rows and take the same combination of their embeddings.

    The weights sum to one and minimise the reconstruction error (Saul and Roweis 2003; LGRM eq. 2), with `reg` times
    the trace of the local Gram matrix on its diagonal. The map jumps where the set of neighbours changes. A training
    row gets back its own coordinates up to the order of `reg`.

    Parameters
    ----------
    n_neighbors : int, default 10
        Cut to the number of training rows.
    reg : float, default 1e-3

    Examples
    --------
    >>> import numpy as np
    >>> from manifast.extensions import Reconstruction
    >>> X = np.arange(6.0)[:, None]
    >>> Reconstruction(n_neighbors=2, reg=1e-9).fit(X, 2 * X).predict([[2.5]]).round(6)
    array([[5.]])
    """

    def __init__(self, n_neighbors: int = 10, reg: float = 1e-3) -> None:
        self.n_neighbors = n_neighbors
        self.reg = reg

    def _fit(self, X: Array, Y: Array) -> None:
        self._k = min(as_count(self.n_neighbors, "n_neighbors"), X.shape[0])
        self._reg = as_positive(self.reg, "reg")
        self.X_, self.Y_, self._nearest = X, Y, NearestRows(X)

    def _predict(self, X: Array) -> Array:
        _, neighbors = self._nearest(self._k, X)
        return _reconstruct(self.X_, self.Y_, X, neighbors, self._reg)


class Nystrom(Extension):
    """The eigenvector equation of Laplacian eigenmaps, read as a formula for new rows (Bengio et al. 2003).

    z(x) = Σ_i k(x, x_i) z_i / (d(x) (1 - λ)) with d(x) = Σ_i k(x, x_i), over the nearest training rows, a training row
    at distance 0 left out. Exact for the training rows of a full graph; on a neighbour graph a training row sees only
    the neighbours it lists, not those that list it, so its coordinates come back approximately.

    Parameters
    ----------
    n_neighbors : int or None, default None
        Training rows that a new row links to; None is all of them.
    beta : "mean" or float, default "mean"
        Width of the heat weights exp(-d²/beta); "mean" is the mean squared distance between training rows.
    weights : {"heat", "binary"}, default "heat"

    Attributes
    ----------
    eigenvalues_ : array of shape (d,)
        Rayleigh quotients of the columns of Y on the graph of the training rows; 0 for a column of zeros, which stays
        one.

    Examples
    --------
    >>> import numpy as np
    >>> from manifast import LaplacianEigenmaps
    >>> from manifast.extensions import Nystrom
    >>> X = np.linspace(0, 1, 30)[:, None] ** [1, 2]
    >>> model = LaplacianEigenmaps(n_components=1, affinity="full").fit(X)
    >>> again = Nystrom().fit(X, model.embedding_).predict(X)
    >>> bool(np.allclose(again, model.embedding_))
    True
    """

    _sparse = True

    def __init__(self, n_neighbors: int | None = None, beta: Any = "mean", weights: str = "heat") -> None:
        self.n_neighbors = n_neighbors
        self.beta = beta
        self.weights = weights

    def _fit(self, X: Any, Y: Array) -> None:
        n = X.shape[0]
        if n < 2:
            raise ValueError("X must have at least 2 rows for the Nyström map. Got 1 instead.")
        k = None if self.n_neighbors is None else min(as_count(self.n_neighbors, "n_neighbors"), n)
        if self.weights not in ("heat", "binary"):
            raise ValueError(f"weights must be 'heat' or 'binary'. Got {self.weights!r} instead.")
        width = heat_width(X, self.beta)
        if k is None:
            W: Any = full_graph(X, weights=self.weights, beta=width)
        else:
            W = knn_graph(X, min(k, n - 1), weights=self.weights, beta=width)
        L, degrees = laplacian(W)
        sizes = np.abs(Y).max(axis=0).astype(np.float64)
        tall = Y / np.where(sizes > 0, sizes, 1.0)
        energies, masses = np.einsum("ij,ij->j", tall, L @ tall), np.einsum("ij,i,ij->j", tall, degrees, tall)
        lost = np.flatnonzero((masses <= 0) & (sizes > 0))
        if len(lost):
            raise ValueError(
                f"beta must be so large that weights between rows do not vanish. Got {width:.3g}, at which columns "
                f"{lost.tolist()} of Y are 0 on all rows with a weight."
            )
        quotients = energies / np.where(masses > 0, masses, 1.0)
        nystrom_factors(quotients)
        self._learn(X, Y, quotients, k, width)

    def _learn(self, X: Any, Y: Array, eigenvalues: Array, k: int | None, width: float) -> Nystrom:
        """From an embedding whose eigenvalues are known."""
        self.X_, self.Y_, self.eigenvalues_, self.beta_, self._k = X, Y, eigenvalues, width, k
        self._nearest, self.n_features_in_ = NearestRows(X), X.shape[1]
        return self

    def _predict(self, X: Any) -> Array:
        factors = nystrom_factors(self.eigenvalues_)
        out = np.empty((X.shape[0], self.Y_.shape[1]), dtype=np.result_type(X.dtype, self.Y_.dtype))
        for rows in _blocks(X.shape[0], self._k or self.X_.shape[0]):
            out[rows] = self._mean(X[rows]) * factors
        return out

    def _mean(self, X: Any) -> Array:
        """Mean of the embeddings of linked rows, weighted by the kernel."""
        if self._k is None:
            x, y = _of_one_dtype(as_matrix(X, "X"), self.X_)
            squares = _distances_between(x, y, 1.0, False)
            distances, neighbors = np.sqrt(squares.astype(np.float64, copy=False)), None
        else:
            distances, neighbors = self._nearest(self._k, X)
        return _heat_mean(distances, neighbors, self.Y_, self.beta_ if self.weights == "heat" else np.inf, others=True)


def nystrom_factors(eigenvalues: Array) -> Array:
    """1 / (1 - λ); refuses columns with λ near 1, which the formula cannot reach."""
    gaps = 1.0 - eigenvalues
    if np.abs(gaps).min(initial=1.0) < 1e-3:
        bad = np.flatnonzero(np.abs(gaps) < 1e-3)
        raise ValueError(
            f"the Nyström map has no value for columns {bad.tolist()}, whose eigenvalues are within 1e-3 of 1: use "
            "fewer components or another extension."
        )
    return 1.0 / gaps


def affinity_mean(X: Any, Y: Array) -> Array:
    """Means of the rows of Y (n, d), weighted by the affinities X (m, n) of new rows with them."""
    columns = np.column_stack([Y, np.ones(len(Y), Y.dtype)])
    sums = X @ columns if is_sparse(X) else _affine_product(X, columns.astype(X.dtype, copy=False))
    if not (sums[:, -1] > 0).all():
        raise ValueError("X must link every new row to a training row. Got a row of affinities that sum to 0.")
    return np.asarray(sums[:, :-1] / sums[:, -1:])


class LandmarkIsomap(Extension):
    """Triangulate a new row from its geodesic distances to the training rows (de Silva and Tenenbaum 2003).

    Its geodesics δ run through its nearest training rows; y = -½ (δ² - mean δ² of the training rows) · Y (Y'Y)^-1. For
    Isomap's own embedding training rows get back their coordinates. The formula takes Y in the units of the geodesics:
    other embeddings come back turned and stretched, which a classifier on top must be trained for.

    Parameters
    ----------
    n_neighbors : int, default 10

    Examples
    --------
    >>> import numpy as np
    >>> from manifast.extensions import LandmarkIsomap
    >>> X = np.arange(8.0)[:, None]
    >>> LandmarkIsomap(n_neighbors=2).fit(X, X - 3.5).predict([[2.25]]).round(6)
    array([[-1.25]])
    """

    _sparse = True

    def __init__(self, n_neighbors: int = 10) -> None:
        self.n_neighbors = n_neighbors

    def _fit(self, X: Any, Y: Array) -> None:
        n = X.shape[0]
        k = min(as_count(self.n_neighbors, "n_neighbors"), n - 1)
        W = neighbor_graph(*nearest(X, k), weights="distance")
        W = connect_components(W, X, weights="distance")
        geodesics = shortest_paths(W)
        self._learn(X, geodesics, mean_squares(geodesics), Y, k)

    def _learn(self, X: Any, geodesics: Array, mean_sq: Array, Y: Array, k: int) -> LandmarkIsomap:
        """From the geodesics of all rows to the landmarks (n, landmarks) and the landmarks' embedding."""
        Y64 = Y.astype(np.float64)
        self.X_, self._k, self._dtype, self.n_features_in_ = X, k, Y.dtype, X.shape[1]
        self._nearest = NearestRows(X)
        self._geodesics, self._mean_sq = np.ascontiguousarray(geodesics), mean_sq
        self._projection = np.ascontiguousarray(Y64 @ np.linalg.pinv(Y64.T @ Y64, hermitian=True))
        return self

    def place(self, geodesics: Array) -> Array:
        """Embedding of rows whose geodesics to the landmarks are known, (m, landmarks)."""
        return _affine_product(-0.5 * (np.square(geodesics) - self._mean_sq), self._projection)

    def _predict(self, X: Any) -> Array:
        distances, neighbors = self._nearest(self._k, X)
        zero = np.zeros(self._projection.shape[1])
        out = landmark_map(
            distances.astype(np.float64), neighbors, self._geodesics, self._mean_sq, self._projection, zero
        )
        return out.astype(np.result_type(X.dtype, self._dtype), copy=False)


class SparseCode(Extension):
    """Code a new row by the training rows and take the mean of their embeddings, weighted by the code (SPARSE eq. 9).

    The code is the one of smallest L1 norm, with errors allowed in every feature at the same price; y = Σ_i |a_i| y_i /
    Σ_i |a_i|. A row whose code is empty gets the embedding of its nearest training row.

    Parameters
    ----------
    lam : float, default 0.0
        Weight of the L1 norm; 0 is the limit, an exact code.
    errors : bool, default True
        Code against [X I] instead of X alone.
    power : float, default 1
        Weights |a|^power: 1 as in the paper, 2 is often better.
    normalize : bool, default True
        Scale all rows to unit norm first.
    top : int or None, default None
        Keep only that many coefficients of each code, the largest.
    projection : int or None, default None
        Project all rows to that many random orthonormal axes first.
    dictionary_size : int or None, default None
        Code against that many training rows only (SPARSE sec. 4.4).
    dictionary_method : {"kmeans", "nearest"}, default "kmeans"
        Which: the nearest to the centres of k-means, the same for all new rows; or the nearest to each new row.
    random_state : int, default 0
        Of the projection and k-means.
    verbose : bool, default False
        Show progress.

    Examples
    --------
    >>> import numpy as np
    >>> from manifast.extensions import SparseCode
    >>> X, Y = np.eye(3), np.array([[0.0], [1.0], [2.0]])
    >>> SparseCode(errors=False).fit(X, Y).predict([[1.0, 1.0, 0.0]]).round(6)
    array([[0.5]])
    """

    def __init__(
        self,
        lam: float = 0.0,
        errors: bool = True,
        power: float = 1,
        normalize: bool = True,
        top: int | None = None,
        projection: int | None = None,
        dictionary_size: int | None = None,
        dictionary_method: str = "kmeans",
        random_state: int = 0,
        verbose: bool = False,
    ) -> None:
        self.lam = lam
        self.errors = errors
        self.power = power
        self.normalize = normalize
        self.top = top
        self.projection = projection
        self.dictionary_size = dictionary_size
        self.dictionary_method = dictionary_method
        self.random_state = random_state
        self.verbose = verbose

    def _fit(self, X: Array, Y: Array) -> None:
        n, p = X.shape
        self._lam = as_number(self.lam, "lam", minimum=0.0)
        self._power = as_positive(self.power, "power")
        self._top = None if self.top is None else as_count(self.top, "top")
        size = None if self.dictionary_size is None else as_count(self.dictionary_size, "dictionary_size", maximum=n)
        if self.dictionary_method not in ("kmeans", "nearest"):
            raise ValueError(
                f"dictionary_method must be 'kmeans' or 'nearest'. Got {self.dictionary_method!r} instead."
            )
        self._axes = None
        if self.projection is not None:
            axes = as_count(self.projection, "projection", maximum=p, why=f" for {p} features")
            gaussian_matrix = np.random.default_rng(self.random_state).standard_normal((p, axes))
            self._axes = np.ascontiguousarray(la.qr(gaussian_matrix, mode="economic")[0], dtype=X.dtype)
        rows = self._prepare(X)
        self._count, self._atoms = n, np.arange(n)
        if size is not None and self.dictionary_method == "kmeans":
            self._atoms = representatives(rows, size, self.random_state)
        self._near = size if self.dictionary_method == "nearest" else None
        self.X_, self.Y_ = rows[self._atoms], Y[self._atoms]

    def _prepare(self, X: Array) -> Array:
        """Projected, unit rows."""
        if self._axes is not None:
            X = _affine_product(X.astype(self._axes.dtype, copy=False), self._axes)
        return unit_rows(X) if self.normalize else X

    def codes(self, X: Any) -> sp.csr_array:
        """Sparse codes of new rows, one column per training row."""
        codes = self._codes(self._prepare(self._rows(X, columns=self.n_features_in_)))
        columns = self._atoms[codes.indices].astype(codes.indices.dtype)
        return sp.csr_array((codes.data, columns, codes.indptr), shape=(codes.shape[0], self._count))

    def _codes(self, rows: Array) -> sp.csr_array:
        """One column per atom."""
        parts = [self._code(rows[part]) for part in chunks(len(rows), self.verbose, "sparse codes")]
        codes = parts[0] if len(parts) == 1 else sp.csr_array(sp.vstack(parts, format="csr"))
        return codes if self._top is None else largest_entries(codes, self._top)

    def _code(self, rows: Array) -> sp.csr_array:
        if self._near is None:
            return l1_code(rows, self.X_, errors=self.errors, lam=self._lam)[0]
        _, neighbors = nearest(self.X_, self._near, queries=rows)
        indptr, columns, values = [0], [], []
        for row, near in zip(rows, np.sort(neighbors, axis=1), strict=True):
            code = l1_code(row[None], self.X_[near], errors=self.errors, lam=self._lam)[0]
            columns.append(near[code.indices])
            values.append(code.data)
            indptr.append(indptr[-1] + code.nnz)
        shape = (len(rows), len(self.X_))
        return sp.csr_array((np.concatenate(values), np.concatenate(columns), np.array(indptr)), shape=shape)

    def _predict(self, X: Array) -> Array:
        rows = self._prepare(X)
        weights = abs(self._codes(rows)).astype(np.float64)
        weights.data **= self._power
        sums = np.asarray(weights @ np.column_stack([self.Y_, np.ones(len(self.Y_))]).astype(np.float64))
        empty = ~(sums[:, -1] > 0)
        if empty.any():
            _, neighbors = nearest(self.X_, 1, queries=rows[empty])
            sums[empty, :-1], sums[empty, -1] = self.Y_[neighbors[:, 0]], 1.0
        return np.asarray(sums[:, :-1] / sums[:, -1:], dtype=np.result_type(X.dtype, self.Y_.dtype))


def representatives(X: Array, count: int, seed: int) -> Array:
    """Numbers of the rows nearest to the centres of k-means, ascending."""
    from sklearn.cluster import KMeans

    centers = KMeans(count, n_init=1, random_state=seed).fit(X).cluster_centers_.astype(X.dtype)
    return np.unique(nearest(X, 1, queries=centers)[1])


def largest_entries(codes: sp.csr_array, top: int) -> sp.csr_array:
    """Each row with its `top` entries of largest magnitude, the first of equal ones."""
    rows = np.repeat(np.arange(codes.shape[0]), np.diff(codes.indptr))
    order = np.lexsort((codes.indices, -np.abs(codes.data), rows))
    rank = np.arange(len(order)) - codes.indptr[rows]
    kept = np.sort(order[rank < top])
    indptr = np.append(0, np.cumsum(np.bincount(rows[kept], minlength=codes.shape[0])))
    return sp.csr_array((codes.data[kept], codes.indices[kept], indptr), shape=codes.shape)


def mean_squares(geodesics: Array) -> Array:
    """Mean of the squares in every column."""
    return np.asarray(np.einsum("ij,ij->j", geodesics, geodesics) / len(geodesics))


EXTENSIONS: dict[str, type[Extension]] = {
    "rbf": RBF,
    "kernel_ridge": KernelRidge,
    "linear": Linear,
    "lvm": LatentVariable,
    "nystrom": Nystrom,
    "reconstruction": Reconstruction,
    "landmark_isomap": LandmarkIsomap,
    "sparse": SparseCode,
}


def as_extension(value: Any) -> Extension:
    """A fresh, unfitted extension from a short name or an instance."""
    if isinstance(value, str) and value in EXTENSIONS:
        return EXTENSIONS[value]()
    if hasattr(value, "fit") and hasattr(value, "predict") and not isinstance(value, type):
        made: Extension = clone(value)
        return made
    names = ", ".join(map(repr, EXTENSIONS))
    raise ValueError(
        f"extension must be None, one of {names}, or an instance with fit and predict. Got {value!r} instead."
    )


def _blocks(rows: int, width: int) -> Iterator[slice]:
    step = max(1, _CHUNK // max(1, width))
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))
