"""Label propagation together with a linear or kernel map, which serves new rows: LapRLS and FME.

Rows are samples, L = D - W is the Laplacian of the graph, and Y holds one-hot labels.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from manifast._gram import Kernel, kernel_features
from manifast._labels import Labels
from manifast._linalg import dense as _dense
from manifast._linalg.systems import PenalizedSystem, raised, spd_solver
from manifast._progress import details
from manifast._validation import Array, as_number, as_positive, is_sparse
from manifast.classifiers.base import GraphClassifier, in_bounds, visible_ridge
from manifast.maps import KernelMap, LinearMap
from manifast.smoothers.ridge import KernelRidgeSmoother, LinearRidgeSmoother

__all__ = ["FME", "LapRLS"]



class _MapClassifier(GraphClassifier):
    """LapRLS and FME: the scores are, or are close to, a linear or kernel map of the rows; it serves new rows too."""

    _stored: ClassVar[dict[str, str]] = GraphClassifier._stored | {"map_": "map"}
    _weighs_graph = True

    def _validate(self, X: Any, *, reset: bool) -> Any:
        if is_sparse(X):
            raise ValueError(
                "X must be dense, as its rows are the features of a map. Got a sparse matrix: give X.toarray(), or a "
                "sparse graph as graph."
            )
        return super()._validate(X, reset=reset)

    def _graph_and_kernel(self, X: Array) -> tuple[Any, Kernel | None]:
        """The graph of the rows, and the kernel; None is the linear map."""
        kernel = None
        if self.kernel is not None:
            kernel = Kernel.of(
                self.kernel, X, sigma=self._in_units(self.sigma, 1), degree=self.degree, coef0=self.coef0
            )
        if self.kernel != "precomputed":
            return self._graph(X), kernel
        if self._by_rows():
            return self._graph(kernel_features(X)), kernel
        _check_definite(X)
        return self._graph(X), kernel

    def _keep(self, X: Array, kernel: Kernel | None, coef: Array, intercept: Array) -> None:
        """Keep the map x·coef + intercept, or k(x)·coef + intercept, in float64 because its terms may cancel."""
        coef = np.ascontiguousarray(coef, dtype=np.float64)
        intercept = np.asarray(intercept, dtype=np.float64)
        rows = None if kernel is None or kernel.name == "precomputed" else X
        self.map_ = LinearMap(coef, intercept) if kernel is None else KernelMap(kernel, rows, coef, intercept)

    def _scores(self, X: Array) -> Array:
        return self.map_.predict(X)

    @property
    def coef_(self) -> Array:
        """Coefficients of the linear map (classes, p)."""
        return np.ascontiguousarray(self._of_map(LinearMap, "coef_").coef.T)

    @property
    def dual_coef_(self) -> Array:
        """Coefficients of the kernel map (n, classes)."""
        return self._of_map(KernelMap, "dual_coef_").dual  # type: ignore[no-any-return]

    @property
    def intercept_(self) -> Array:
        """What the map adds to every row (classes,)."""
        return self._of_map((LinearMap, KernelMap), "intercept_").intercept  # type: ignore[no-any-return]


class LapRLS(_MapClassifier):
    """Laplacian regularised least squares (Belkin, Niyogi and Sindhwani 2006), linear or with a kernel.

    The map f minimises Σ_labelled |f(x_i) - y_i|² + γ_A |f|² + γ_I tr(f'Lf), where the last term is over all rows. f is
    linear, f(x) = x·W + b with a bias b that is not penalised, or in the space of a kernel, f(x) = Σ_i α_i K(x, x_i).
    With every row labelled and a graph inside the classes this is supervised manifold regularisation (MReg).

    A row is unlabelled where y is -1, NaN, None or pandas' NA.

    Parameters
    ----------
    n_neighbors : int or None, default None
        None is 10, or as many as few rows have, with a warning.
        For the neighbour graphs: an edge joins two rows if one is among the nearest neighbours of the other.
    beta : None, "local", "mean" or float, default None
        Width of the heat weights exp(-d²/beta): "local", one width per row from its nearest, as in
        `manifast.graphs.knn_graph`; "mean", the mean squared distance over all pairs of rows; or a number. None is
        "local" for neighbour graphs and "mean" for full ones.
    gamma_A : float, default 0.01
        Weight of the norm of the map, more than 0.
    gamma_I : float, default 0.01
        Weight of the graph; 0 is ridge regression on the labelled rows.
    kernel : {None, "linear", "rbf", "poly", "precomputed"}, default None
        None is the linear map of the features. For "precomputed" X is the kernel matrix, and `predict` takes the kernel
        of new rows with the training rows.
    sigma : float or None, default None
        Width of the kernel exp(-d²/sigma²); None is the median distance between rows.
    degree, coef0 : int and float, default 3 and 1.0
        Parameters of the polynomial kernel (x·y + coef0)^degree.
    graph : {"heat", "binary", "full", "l1", "precomputed"} or matrix, default "heat"
        "heat" and "binary" are neighbour graphs with heat or unit weights, "full" joins all rows with heat weights, and
        "l1" is the graph of sparse codes. A matrix (n, n) given here, dense or sparse, is the graph of the rows of X.
        For "precomputed" X is the symmetric matrix of weights itself; its rows are the features as well, or with
        `kernel="precomputed"` the kernel.
    neighbors : (distances, indices), "approximate" or "auto", optional
        Nearest neighbours of the training rows, found by other means; None searches for them exactly.
        "approximate" finds them by clusters (`manifast.kernels.approximate_knn`), "auto" does so for 50,000 rows of 9
        features and more; `graph_recall_` is then the share of the true neighbours that were found.
    verbose : bool, default False
        Print the stages of the fit and their times on stderr.

    Attributes
    ----------
    classes_ : array of shape (classes,)
    coef_ : array of shape (classes, p), for kernel=None
    dual_coef_ : array of shape (n, classes), for a kernel
    intercept_ : array of shape (classes,)
    scores_ : array of shape (n, classes)
        Images of the training rows under the map.
    transduction_ : array of shape (n,)
        Predicted classes of the training rows.

    Notes
    -----
    Cost: `fit` takes O(n²p) for the neighbours, about O(n log n) below 9 features, then O(np(k + p)) and O(p³); with a
    kernel O(n³) and n × n matrices. A new row takes O(pM) for M classes, with a kernel O(n(p + M)).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from manifast import LapRLS
    >>> X, y = load_digits(return_X_y=True)
    >>> some = np.where(np.arange(1000) < 100, y[:1000], -1)
    >>> bool(np.mean(LapRLS(kernel="rbf").fit(X[:1000], some).predict(X[1000:]) == y[1000:]) > 0.85)
    True
    """

    def __init__(
        self,
        n_neighbors: int | None = None,
        beta: Any = None,
        gamma_A: float = 0.01,
        gamma_I: float = 0.01,
        *,
        kernel: str | None = None,
        sigma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        graph: Any = "heat",
        neighbors: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.beta = beta
        self.gamma_A = gamma_A
        self.gamma_I = gamma_I
        self.kernel = kernel
        self.sigma = sigma
        self.degree = degree
        self.coef0 = coef0
        self.graph = graph
        self.neighbors = neighbors
        self.verbose = verbose

    def _propagate(self, X: Array, labels: Labels) -> Array:
        gamma_A = as_positive(self.gamma_A, "gamma_A")
        gamma_I = as_number(self.gamma_I, "gamma_I", minimum=0.0)
        W, kernel = self._graph_and_kernel(X)
        return self._fit_map(X, labels, W, kernel, gamma_A, gamma_I)

    def _fit_map(
        self, X: Array, labels: Labels, W: Any, kernel: Kernel | None, gamma_A: float, gamma_I: float
    ) -> Array:
        """Keep the map of these weights, and give the scores of the training rows."""
        labelled = (labels.codes >= 0).astype(np.float64)
        metric = raised(gamma_I * laplacian_of(W), labelled)  # J + γ_I L
        target = labels.indicators
        if kernel is not None:
            dual = _regularized(metric, kernel.matrix(X), target, gamma_A)
            self._keep(X, kernel, dual, np.zeros(labels.count))
            return self._scores(X)
        # The bias is not penalised: it makes the residuals of the labelled rows add up to 0, and L is blind to it.
        gamma_A = in_bounds(self._in_units(gamma_A, 2))
        mean, share = (labelled @ X) / labelled.sum(), labels.sizes / labelled.sum()
        rows = X - mean
        target = labelled[:, None] * (target - share)
        if X.shape[1] > X.shape[0]:
            coef = rows.T @ _regularized(metric, rows @ rows.T, target, gamma_A)
        else:
            inner = rows.T @ (metric @ rows)
            inner = 0.5 * (inner + inner.T)
            inner.flat[:: len(inner) + 1] += gamma_A
            coef = spd_solver(inner, advice="Use a larger gamma_A.")(rows.T @ target)
        self._keep(X, None, coef, share - mean @ coef)
        return self._scores(X)


class FME(_MapClassifier):
    """Flexible manifold embedding (Nie et al. 2010): label propagation together with a ridge regression on its scores.

    The scores F and the map minimise tr (F-Y)'U(F-Y) + tr F'LF + μ(|W|² + γ |XW + 1b' - F|²), where U is large on
    labelled rows and 0 elsewhere. So F = (U + L + R)^-1 UY with the penalty R of ridge regression (SEE eqs. 13 and 15),
    and W and b follow from F. With a kernel the map is f(x) = Σ_i α_i K(x, x_i), without bias.

    A row is unlabelled where y is -1, NaN, None or pandas' NA.

    Parameters
    ----------
    n_neighbors : int or None, default None
        None is 10, or as many as few rows have, with a warning.
        For the neighbour graphs: an edge joins two rows if one is among the nearest neighbours of the other.
    beta : None, "local", "mean" or float, default None
        Width of the heat weights exp(-d²/beta): "local", one width per row from its nearest, as in
        `manifast.graphs.knn_graph`; "mean", the mean squared distance over all pairs of rows; or a number. None is
        "local" for neighbour graphs and "mean" for full ones.
    mu : float, default 1.0
        Weight of the regression against the graph.
    gamma : float, default 1.0
        How closely the map follows the scores; larger is closer.
    label_weight : float, default 1e9
        U of the labelled rows: how closely their scores follow the labels.
    kernel : {None, "linear", "rbf", "poly", "precomputed"}, default None
        None is the linear map of the features. For "precomputed" X is the kernel matrix, and `predict` takes the kernel
        of new rows with the training rows.
    sigma : float or None, default None
        Width of the kernel exp(-d²/sigma²); None is the median distance between rows.
    degree, coef0 : int and float, default 3 and 1.0
        Parameters of the polynomial kernel (x·y + coef0)^degree.
    graph : {"heat", "binary", "full", "l1", "precomputed"} or matrix, default "heat"
        As in `LapRLS`.
    neighbors : (distances, indices), "approximate" or "auto", optional
        Nearest neighbours of the training rows, found by other means; None searches for them exactly.
        "approximate" finds them by clusters (`manifast.kernels.approximate_knn`), "auto" does so for 50,000 rows of 9
        features and more; `graph_recall_` is then the share of the true neighbours that were found.
    verbose : bool, default False
        Print the stages of the fit and their times on stderr.

    Attributes
    ----------
    classes_ : array of shape (classes,)
    coef_ : array of shape (classes, p), for kernel=None
    dual_coef_ : array of shape (n, classes), for a kernel
    intercept_ : array of shape (classes,)
    scores_ : array of shape (n, classes)
        F; the images of the training rows under the map may differ from it.
    transduction_ : array of shape (n,)
        Predicted classes of the training rows, those of the largest F.

    Notes
    -----
    Cost: `fit` takes O(n²p) for the neighbours, about O(n log n) below 9 features, O(np²), and a sparse system with one
    right-hand side per class; with a kernel O(n³) and n × n matrices. A new row takes O(pM) for M classes, with a
    kernel O(n(p + M)).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from manifast import FME
    >>> X, y = load_digits(return_X_y=True)
    >>> some = np.where(np.arange(1000) < 100, y[:1000], -1)
    >>> bool(np.mean(FME().fit(X[:1000], some).predict(X[1000:]) == y[1000:]) > 0.85)
    True
    """

    def __init__(
        self,
        n_neighbors: int | None = None,
        beta: Any = None,
        mu: float = 1.0,
        gamma: float = 1.0,
        label_weight: float = 1e9,
        *,
        kernel: str | None = None,
        sigma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        graph: Any = "heat",
        neighbors: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.beta = beta
        self.mu = mu
        self.gamma = gamma
        self.label_weight = label_weight
        self.kernel = kernel
        self.sigma = sigma
        self.degree = degree
        self.coef0 = coef0
        self.graph = graph
        self.neighbors = neighbors
        self.verbose = verbose

    def _propagate(self, X: Array, labels: Labels) -> Array:
        mu, gamma = as_positive(self.mu, "mu"), as_positive(self.gamma, "gamma")
        weight = as_positive(self.label_weight, "label_weight")
        W, kernel = self._graph_and_kernel(X)
        return self._fit_map(X, labels, W, kernel, mu, gamma, weight)

    def _fit_map(
        self, X: Array, labels: Labels, W: Any, kernel: Kernel | None, mu: float, gamma: float, weight: float
    ) -> Array:
        """Keep the map of these weights, and give the scores of the training rows."""
        smoother: Any
        if kernel is None:
            smoother = LinearRidgeSmoother(X.astype(np.float64), in_bounds(self._in_units(1.0 / gamma, 2)))
        else:
            smoother = KernelRidgeSmoother(kernel.matrix(X), 1.0 / gamma, bias=False)
        S = raised(laplacian_of(W), weight * (labels.codes >= 0))
        F = PenalizedSystem(S, smoother.penalty(mu * gamma), verbose=details()).solve(weight * labels.indicators)
        self._keep(X, kernel, *smoother.fit(F))
        return F


def laplacian_of(W: Any) -> Any:
    """D - W, dense or sparse as W is."""
    return raised(-W, np.asarray(W.sum(axis=1)).ravel())


def _regularized(metric: Any, K: Array, target: Array, ridge: float) -> Array:
    """The α for which f = Kα minimises f'Mf - 2 tr(f'T) + ridge α'Kα: it solves (MK + ridge I) α = T."""
    matrix = np.asarray(metric @ K)
    matrix.flat[:: len(matrix) + 1] += visible_ridge(ridge, matrix, "gamma_A", "a larger gamma_A or a smaller gamma_I")
    return _dense.solve_general(matrix, target)


def _check_definite(K: Array) -> None:
    """Refuse a kernel matrix that is not positive semidefinite up to rounding."""
    shifted = 0.5 * np.asarray(K + K.T, dtype=np.float64)
    shifted.flat[:: len(K) + 1] += (1e-4 if K.dtype == np.float32 else 1e-8) * np.abs(shifted).sum(axis=0).max()
    if not _dense.factor(shifted):
        raise ValueError("X must be a positive semidefinite kernel matrix. Got one that is not.")
