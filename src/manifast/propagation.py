"""Label propagation: classifiers that learn from a few labels and the graph of all rows; -1 in y means unlabelled.

Each is its matrices and a solve. GFHF, LGC and RMGT solve for scores F of the training rows on the graph alone, and a
map brings them to new rows. LapRLS and FME learn a linear or kernel map together with the scores. TPTSSR codes each new
row by the labelled ones. Rows are samples, L = D - W is the Laplacian of the graph, Y holds one-hot labels.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from contextlib import nullcontext
from typing import Any

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from manifast._classifier import ScoreClassifier
from manifast._gram import Kernel, kernel_features, linear_map
from manifast._labels import Labels
from manifast._threads import one_blas_thread
from manifast._validation import Array, as_number, as_positive, is_sparse
from manifast.embeddings._base import join, named_graph
from manifast.embeddings.unsupervised import without_diagonal
from manifast.extensions import LatentVariable, SparseCode, affinity_mean, as_extension
from manifast.graphs import given_graph, heat_width
from manifast.kernels import _affine_product
from manifast.smoothers import KernelRidgeSmoother, LinearRidgeSmoother
from manifast.systems import PenalizedSystem, factor_with_jitter, grounded_solution, raised, spd_solver

__all__ = ["FME", "GFHF", "LGC", "RMGT", "TPTSSR", "LapRLS"]

GRAPHS = ("heat", "binary", "full", "l1")  # made from the rows
_CHUNK = 1 << 21  # codes held at once
_NOISE = 10.0  # scores up to this multiple of the most negative one, which would be 0, are rounding
_THIN = 500  # features up to which BLAS gains little from threads, and may lose much on a busy machine


class Propagation(ScoreClassifier):
    """Base of the methods on a graph: which graph, and the scores and classes of the training rows."""

    _unlabelled = True
    _cuts_neighbors = True  # its default, on few rows

    def fit(self, X: Any, y: Any) -> Propagation:
        """Learn from the rows X and their labels y, where -1 means that a row has none."""
        super().fit(X, y)
        return self

    def _learn(self, X: Any, labels: Labels) -> None:
        scores = self._propagate(X, labels)
        self.scores_ = np.ascontiguousarray(scores, dtype=X.dtype)
        self.transduction_ = np.asarray(self.classes_[scores.argmax(axis=1)])

    @abstractmethod
    def _propagate(self, X: Any, labels: Labels) -> Array:
        """Scores of the training rows (n, classes)."""

    def _by_rows(self) -> bool:
        """Whether the graph is one to be made from the rows."""
        return isinstance(self.graph, str) and self.graph != "precomputed"

    def _graph(self, X: Any) -> Any:
        """The weights without self-loops, in float64, and as `_width` that of heat weights of the rows."""
        if not isinstance(self.graph, str):
            W = without_diagonal(given_graph(self.graph, X.shape[0]))
            self._width = heat_width(X, self._in_units(self.beta, 2))
        elif self.graph == "precomputed":
            W = without_diagonal(given_graph(X, X.shape[0], "X"))
        elif self.graph in GRAPHS:
            W, self._width = named_graph(self, X, self.graph, self.beta)
        else:
            names = ", ".join(map(repr, (*GRAPHS, "precomputed")))
            raise ValueError(f"graph must be one of {names}, or a matrix. Got {self.graph!r} instead.")
        return W.astype(np.float64, copy=False)


class _Transduction(Propagation):
    """GFHF, LGC and RMGT: the scores are a solution on the graph, and new rows get theirs by an extension."""

    _shares = False  # whether scores are not negative, and only their proportions count

    def __init__(
        self,
        n_neighbors: int = 10,
        beta: Any = "mean",
        *,
        graph: Any = "heat",
        extension: Any = None,
        connect: bool = True,
        neighbors: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.beta = beta
        self.graph = graph
        self.extension = extension
        self.connect = connect
        self.neighbors = neighbors
        self.verbose = verbose

    @property
    def _sparse(self) -> bool:  # type: ignore[override]
        return not isinstance(self.graph, str) or self.graph in ("heat", "binary", "precomputed")

    def _propagate(self, X: Any, labels: Labels) -> Array:
        extension = None if self.extension is None else as_extension(self.extension)
        self._check_parameters(labels)
        W = self._graph(X)
        reached = _reached(W, labels)
        if not reached.all() and self.connect and self._by_rows():
            weights = "heat" if self.graph == "full" else self.graph
            W = join(W, X, True, weights, self._width).astype(np.float64, copy=False)
            reached = _reached(W, labels)
        scores = np.tile(labels.sizes / labels.sizes.sum(), (X.shape[0], 1))
        inside: Any = slice(None)
        if not reached.all():
            warnings.warn(
                f"{int((~reached).sum())} rows have no path to a label in the graph: they get the shares of the "
                "classes among the labels.",
                UserWarning,
                stacklevel=5,
            )
            inside = np.flatnonzero(reached)
            W = W[inside][:, inside]
        found = self._solve(W, Labels(labels.classes, labels.codes[inside]))
        scores[inside] = _legible(found, scores[0], X.dtype) if self._shares else found
        self.extension_ = self._natural(X) if extension is None else extension
        if self.extension_ is not None:
            self.extension_.fit(X, scores.astype(X.dtype))
        return scores

    def _check_parameters(self, labels: Labels) -> None:
        """What can be refused before any work."""

    @abstractmethod
    def _solve(self, W: Any, labels: Labels) -> Array:
        """Scores on a graph that leads from every row to a label."""

    def _natural(self, X: Any) -> Any:
        """The map of a new row joined to the graph by the graph's own rule: the mean of the scores it is joined to."""
        if not isinstance(self.graph, str):
            return LatentVariable(self.n_neighbors, self._width)
        if self.graph == "precomputed":
            return None
        if self.graph == "l1":
            return SparseCode()
        links = X.shape[0] if self.graph == "full" else self.n_neighbors
        equal = float(np.finfo(np.float64).max)  # a width that makes all weights 1
        return LatentVariable(links, equal if self.graph == "binary" else self._width)

    def _scores(self, X: Any) -> Array:
        scores = affinity_mean(X, self.scores_) if self.extension_ is None else self.extension_.predict(X)
        return _proportions(scores) if self._shares else np.asarray(scores)


class GFHF(_Transduction):
    """Gaussian fields and harmonic functions (Zhu, Ghahramani and Lafferty 2003).

    Labelled rows keep their labels, and the score of every other row is the weighted mean of its neighbours' scores:
    F_u = -L_uu^-1 L_ul Y_l. It is the probability that a random walk from the row meets that class first.

    Parameters
    ----------
    n_neighbors : int, default 10
        For the neighbour graphs: an edge joins two rows where either is among the nearest of the other.
    beta : "mean" or float, default "mean"
        Width of the heat weights exp(-d²/beta); "mean" is the mean squared distance over all pairs of rows.
    graph : {"heat", "binary", "full", "l1", "precomputed"} or matrix, default "heat"
        Neighbour graph with heat or unit weights, full graph with heat weights, the graph of sparse codes; or X is the
        symmetric matrix of weights itself, dense or sparse, and `predict` takes the weights of new rows to the training
        rows. A matrix (n, n) given here is the graph of the rows of X.
    extension : None, str or extension, default None
        The map of the scores to new rows. None is the mean of the scores of the rows that the new one would be joined
        to, weighted as in the graph; for "l1" by its sparse code.
    connect : bool, default True
        Where a component has no label, join the components by the shortest missing edges, with a warning. Otherwise,
        and in a graph that was given, its rows get the shares of the classes among the labels.
    neighbors : (distances, indices), optional
        Nearest neighbours of the training rows from elsewhere, instead of the exact search.
    verbose : bool, default False

    Attributes
    ----------
    classes_ : array of shape (classes,)
    scores_ : array of shape (n, classes)
        F. Its rows add up to 1.
    transduction_ : array of shape (n,)
        Classes of the training rows.
    extension_ : the fitted map

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from manifast import GFHF
    >>> X, y = load_digits(return_X_y=True)
    >>> some = np.where(np.arange(1000) < 100, y[:1000], -1)
    >>> model = GFHF().fit(X[:1000], some)
    >>> bool(np.mean(model.transduction_ == y[:1000]) > 0.85), bool(np.mean(model.predict(X[1000:]) == y[1000:]) > 0.85)
    (True, True)
    """

    _shares = True

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes of new rows (m, classes)."""
        return self._checked_scores(X)

    def _solve(self, W: Any, labels: Labels) -> Array:
        return harmonic(W, labels, np.empty((len(labels.codes), 0)), verbose=self.verbose)[0]


class LGC(_Transduction):
    """Learning with local and global consistency (Zhou et al. 2004).

    Scores spread along the edges and are pulled back to the labels, also in labelled rows: F = (1-α)(I - αS)^-1 Y with
    S = D^(-1/2) W D^(-1/2).

    Parameters
    ----------
    n_neighbors : int, default 10
        For the neighbour graphs: an edge joins two rows where either is among the nearest of the other.
    beta : "mean" or float, default "mean"
        Width of the heat weights exp(-d²/beta); "mean" is the mean squared distance over all pairs of rows.
    alpha : float, default 0.99
        Between 0 and 1, how much a row takes from its neighbours.
    graph : {"heat", "binary", "full", "l1", "precomputed"} or matrix, default "heat"
        As in `GFHF`.
    extension : None, str or extension, default None
        The map of the scores to new rows, as in `GFHF`.
    connect : bool, default True
        Join components without a label, as in `GFHF`.
    neighbors : (distances, indices), optional
        Nearest neighbours of the training rows from elsewhere, instead of the exact search.
    verbose : bool, default False

    Attributes
    ----------
    classes_ : array of shape (classes,)
    scores_ : array of shape (n, classes)
        F.
    transduction_ : array of shape (n,)
        Classes of the training rows.
    extension_ : the fitted map

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from manifast import LGC
    >>> X, y = load_digits(return_X_y=True)
    >>> some = np.where(np.arange(1000) < 100, y[:1000], -1)
    >>> bool(np.mean(LGC().fit(X[:1000], some).predict(X[1000:]) == y[1000:]) > 0.9)
    True
    """

    _shares = True

    def __init__(
        self,
        n_neighbors: int = 10,
        beta: Any = "mean",
        alpha: float = 0.99,
        *,
        graph: Any = "heat",
        extension: Any = None,
        connect: bool = True,
        neighbors: Any = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            n_neighbors,
            beta,
            graph=graph,
            extension=extension,
            connect=connect,
            neighbors=neighbors,
            verbose=verbose,
        )
        self.alpha = alpha

    def predict_proba(self, X: Any) -> Array:
        """Shares of the classes in the scores of new rows (m, classes)."""
        return self._checked_scores(X)

    def _check_parameters(self, labels: Labels) -> None:
        if not as_positive(self.alpha, "alpha") < 1:
            raise ValueError(f"alpha must be more than 0 and less than 1. Got {self.alpha!r} instead.")

    def _solve(self, W: Any, labels: Labels) -> Array:
        # With F = D^(1/2) G this is (D - αW) G = (1-α) D^(1/2) Y: a Laplacian, and (1-α) D on its diagonal.
        alpha = float(self.alpha)
        degrees = np.asarray(W.sum(axis=1)).ravel()
        degrees = np.where(degrees > 0, degrees, 1.0)
        roots = np.sqrt(degrees)[:, None]
        solve = spd_solver(raised(-alpha * W, degrees), verbose=self.verbose)
        return np.asarray(roots * solve((1 - alpha) * roots * labels.indicators))


class RMGT(_Transduction):
    """Robust multi-class graph transduction (Liu and Chang 2009): harmonic scores whose classes have given sizes.

    The harmonic solution F⁰ of `GFHF` is corrected along h = L_uu^-1 1 so that column c of F adds up to n times the
    prior of class c: F_u = F⁰ + (h / 1'h)(n prior - 1'Y_l - 1'F⁰).

    Parameters
    ----------
    n_neighbors : int, default 10
        For the neighbour graphs: an edge joins two rows where either is among the nearest of the other.
    beta : "mean" or float, default "mean"
        Width of the heat weights exp(-d²/beta); "mean" is the mean squared distance over all pairs of rows.
    prior : array of shape (classes,) or None, default None
        Shares of the classes among all rows, in the order of `classes_`, which add up to 1; None is equal shares.
    graph : {"heat", "binary", "full", "l1", "precomputed"} or matrix, default "heat"
        As in `GFHF`.
    extension : None, str or extension, default None
        The map of the scores to new rows, as in `GFHF`.
    connect : bool, default True
        Join components without a label, as in `GFHF`.
    neighbors : (distances, indices), optional
        Nearest neighbours of the training rows from elsewhere, instead of the exact search.
    verbose : bool, default False

    Attributes
    ----------
    classes_ : array of shape (classes,)
    scores_ : array of shape (n, classes)
        F. Its rows add up to 1, its columns to n times the prior; scores may be negative.
    transduction_ : array of shape (n,)
        Classes of the training rows.
    extension_ : the fitted map

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from manifast import RMGT
    >>> X, y = load_digits(return_X_y=True)
    >>> some = np.where(np.arange(1000) < 100, y[:1000], -1)
    >>> RMGT().fit(X[:1000], some).scores_.sum(axis=0).round(6)
    array([100., 100., 100., 100., 100., 100., 100., 100., 100., 100.])
    """

    def __init__(
        self,
        n_neighbors: int = 10,
        beta: Any = "mean",
        prior: Any = None,
        *,
        graph: Any = "heat",
        extension: Any = None,
        connect: bool = True,
        neighbors: Any = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            n_neighbors,
            beta,
            graph=graph,
            extension=extension,
            connect=connect,
            neighbors=neighbors,
            verbose=verbose,
        )
        self.prior = prior

    def _check_parameters(self, labels: Labels) -> None:
        if self.prior is None:
            self._prior = np.full(labels.count, 1.0 / labels.count)
            return
        prior = np.asarray(self.prior, dtype=np.float64)
        if prior.shape != (labels.count,) or not (prior >= 0).all() or not abs(prior.sum() - 1) <= 1e-6:
            raise ValueError(
                f"prior must be {labels.count} shares, one per class, that add up to 1. Got {self.prior!r} instead."
            )
        self._prior = prior

    def _solve(self, W: Any, labels: Labels) -> Array:
        # Only h / 1'h counts: multiples of 1 as small as this keep h in range where weights are tiny.
        ones = np.full((len(labels.codes), 1), max(1e-200 * W.max(), np.finfo(float).tiny))
        F, h = harmonic(W, labels, ones, verbose=self.verbose)
        missing = len(F) * self._prior - F.sum(axis=0)
        return np.asarray(F + h / (h.sum() or 1.0) * missing)


def harmonic(W: Any, labels: Labels, B: Array, *, verbose: bool = False) -> tuple[Array, Array]:
    """F with labelled rows as they are and F_u = -L_uu^-1 L_ul Y_l, and H with H_u = L_uu^-1 B_u, 0 where labelled."""
    F, H = labels.indicators, np.zeros(B.shape)
    known, free = labels.labelled, np.flatnonzero(labels.codes < 0)
    if len(free):
        rows = W[free]
        links = rows[:, known]
        right = np.hstack([links @ F[known], B[free]])
        solved, _ = grounded_solution(rows[:, free], np.asarray(links.sum(axis=1)).ravel(), right, verbose=verbose)
        F[free], H[free] = np.split(solved, [labels.count], axis=1)
    return F, H


def _reached(W: Any, labels: Labels) -> Array:
    """Which rows have a path to a labelled one."""
    _, components = connected_components(W if is_sparse(W) and W.data.all() else sp.csr_array(W > 0), directed=False)
    return np.isin(components, components[labels.labelled])


def _legible(scores: Array, shares: Array, dtype: Any) -> Array:
    """Scores that are not negative, without what rounding and underflow have left no digit of.

    Rows that nothing arrived in get the shares of the classes, as small as the noise. Rows that are too small for the
    dtype are scaled up: their proportions count.
    """
    noise, least = _NOISE * max(0.0, -float(scores.min())), 1e8 * float(np.finfo(dtype).tiny)
    largest = scores.max(axis=1)
    lost = largest <= noise
    if lost.any():
        warnings.warn(
            f"nothing of any label arrives in {int(lost.sum())} rows: they get the shares of the classes among the "
            "labels. Use a larger alpha, a graph of more neighbours, or more labels.",
            UserWarning,
            stacklevel=6,
        )
    factors = np.maximum(1.0, least / np.where(lost, 1.0, largest))
    return np.where(lost[:, None], max(noise, least) * shares, factors[:, None] * np.maximum(scores, 0.0))


def _proportions(scores: Array) -> Array:
    """Scores that are not negative, each row scaled to a sum of 1; equal ones where there is nothing."""
    scores = np.maximum(scores, 0.0)
    total = scores.sum(axis=1, keepdims=True)
    return np.asarray(np.where(total > 0, scores / np.where(total > 0, total, 1.0), 1.0 / scores.shape[1]))


def _check_definite(K: Array) -> None:
    """Refuse a kernel matrix that is not positive semidefinite to rounding."""
    shifted = 0.5 * np.asarray(K + K.T, dtype=np.float64)
    shifted.flat[:: len(K) + 1] += (1e-4 if K.dtype == np.float32 else 1e-8) * np.abs(shifted).sum(axis=0).max()
    try:
        la.cholesky(shifted, overwrite_a=True, check_finite=False)
    except la.LinAlgError:
        raise ValueError("X must be a positive semidefinite kernel matrix. Got one that is not.") from None


class _MapPropagation(Propagation):
    """LapRLS and FME: scores that are, or are close to, a linear or kernel map of the rows, which serves new ones."""

    def _validate(self, X: Any, *, reset: bool) -> Any:
        if is_sparse(X):
            raise ValueError(
                "X must be dense, as its rows are the features of a map. Got a sparse matrix: give X.toarray(), or a "
                "sparse graph as graph."
            )
        return super()._validate(X, reset=reset)

    def _learn(self, X: Array, labels: Labels) -> None:
        thin = self.kernel is None and X.shape[1] <= _THIN
        with one_blas_thread() if thin else nullcontext():
            super()._learn(X, labels)

    def _graph_and_kernel(self, X: Array) -> tuple[Any, Kernel | None]:
        """The graph of the rows, and the kernel if there is one."""
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
        """Keep the map x·coef + intercept, or k(x)·coef + intercept; in float64, as sums of its parts may cancel."""
        for name in ("coef_", "dual_coef_"):  # of an earlier fit
            if hasattr(self, name):
                delattr(self, name)
        self._kernel, self._X = kernel, None
        self.intercept_ = intercept
        if kernel is None:
            self.coef_ = np.ascontiguousarray(coef.T)
        else:
            self._X = None if kernel.name == "precomputed" else X
            self.dual_coef_ = np.ascontiguousarray(coef)

    def _scores(self, X: Array) -> Array:
        if self._kernel is None:
            return linear_map(X.astype(np.float64, copy=False), self.coef_.T, self.intercept_)
        return self._kernel.apply(X, self._X, self.dual_coef_, self.intercept_)


class LapRLS(_MapPropagation):
    """Laplacian regularised least squares (Belkin, Niyogi and Sindhwani 2006), linear or with a kernel.

    The map f of smallest Σ_labelled |f(x_i) - y_i|² + γ_A |f|² + γ_I tr(f'Lf), f over all rows in the last term: linear
    with a bias that costs nothing, f(x) = x·W + b, or in the space of a kernel, f(x) = Σ_i α_i K(x, x_i). With every
    row labelled and a graph inside the classes it is supervised manifold regularisation (MReg).

    Parameters
    ----------
    n_neighbors : int, default 10
        For the neighbour graphs: an edge joins two rows where either is among the nearest of the other.
    beta : "mean" or float, default "mean"
        Width of the heat weights exp(-d²/beta); "mean" is the mean squared distance over all pairs of rows.
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
        Of the polynomial kernel (x·y + coef0)^degree.
    graph : {"heat", "binary", "full", "l1", "precomputed"} or matrix, default "heat"
        Neighbour graph with heat or unit weights, full graph with heat weights, the graph of sparse codes. A matrix
        (n, n) given here, dense or sparse, is the graph of the rows of X. For "precomputed" X is the symmetric matrix
        of weights itself, whose rows are at the same time the features, or with `kernel="precomputed"` the kernel.
    neighbors : (distances, indices), optional
        Nearest neighbours of the training rows from elsewhere, instead of the exact search.
    verbose : bool, default False

    Attributes
    ----------
    classes_ : array of shape (classes,)
    coef_ : array of shape (classes, p), for kernel=None
    dual_coef_ : array of shape (n, classes), for a kernel
    intercept_ : array of shape (classes,)
    scores_ : array of shape (n, classes)
        What the map makes of the training rows.
    transduction_ : array of shape (n,)
        Classes of the training rows.

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
        n_neighbors: int = 10,
        beta: Any = "mean",
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
        labelled = (labels.codes >= 0).astype(np.float64)
        metric = raised(gamma_I * laplacian_of(W), labelled)  # J + γ_I L
        target = labels.indicators
        if kernel is not None:
            dual = _regularized(metric, kernel.matrix(X), target, gamma_A)
            self._keep(X, kernel, dual, np.zeros(labels.count))
            return self._scores(X)
        # The bias is free: it makes the residuals of the labelled rows add up to 0, and L does not see it.
        gamma_A = _in_bounds(self._in_units(gamma_A, 2))
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


def laplacian_of(W: Any) -> Any:
    """D - W, dense or sparse as W is."""
    return raised(-W, np.asarray(W.sum(axis=1)).ravel())


def _in_bounds(value: float) -> float:
    """A number whose reciprocal and square root are finite and not 0."""
    return min(max(value, 1e-280), 1e280)


def _visible(ridge: float, matrix: Array, name: str, remedy: str) -> float:
    """A ridge, or what rounding of the matrix it is added to leaves visible, with a warning."""
    least = 10 * np.finfo(float).eps * float(np.abs(matrix).sum(axis=0).max())
    if ridge < least:
        warnings.warn(
            f"{name} = {ridge:.2g} is lost beside the rounding of the other terms: {least:.1g} was taken instead. Use "
            f"{remedy}.",
            UserWarning,
            stacklevel=7,
        )
    return max(ridge, least)


def _regularized(metric: Any, K: Array, target: Array, ridge: float) -> Array:
    """α with f = Kα of smallest f'Mf - 2 tr(f'T) + ridge α'Kα: the solution of (MK + ridge I) α = T."""
    matrix = np.asarray(metric @ K)
    matrix.flat[:: len(matrix) + 1] += _visible(ridge, matrix, "gamma_A", "a larger gamma_A or a smaller gamma_I")
    factor = la.lu_factor(matrix, overwrite_a=True, check_finite=False)
    return np.asarray(la.lu_solve(factor, target, check_finite=False))


class FME(_MapPropagation):
    """Flexible manifold embedding (Nie et al. 2010): label propagation beside a ridge regression that follows it.

    The scores F and the map of smallest tr (F-Y)'U(F-Y) + tr F'LF + μ(|W|² + γ |XW + 1b' - F|²), U large on labelled
    rows and 0 elsewhere. So F = (U + L + R)^-1 UY with the penalty R of ridge regression (SEE eqs. 13 and 15), and then
    W and b. With a kernel the map is f(x) = Σ_i α_i K(x, x_i), without bias.

    Parameters
    ----------
    n_neighbors : int, default 10
        For the neighbour graphs: an edge joins two rows where either is among the nearest of the other.
    beta : "mean" or float, default "mean"
        Width of the heat weights exp(-d²/beta); "mean" is the mean squared distance over all pairs of rows.
    mu : float, default 1.0
        Weight of the regression against the graph.
    gamma : float, default 1.0
        How closely the map follows the scores.
    label_weight : float, default 1e9
        U of labelled rows: how closely their scores follow the labels.
    kernel : {None, "linear", "rbf", "poly", "precomputed"}, default None
        None is the linear map of the features. For "precomputed" X is the kernel matrix, and `predict` takes the kernel
        of new rows with the training rows.
    sigma : float or None, default None
        Width of the kernel exp(-d²/sigma²); None is the median distance between rows.
    degree, coef0 : int and float, default 3 and 1.0
        Of the polynomial kernel (x·y + coef0)^degree.
    graph : {"heat", "binary", "full", "l1", "precomputed"} or matrix, default "heat"
        As in `LapRLS`.
    neighbors : (distances, indices), optional
        Nearest neighbours of the training rows from elsewhere, instead of the exact search.
    verbose : bool, default False

    Attributes
    ----------
    classes_ : array of shape (classes,)
    coef_ : array of shape (classes, p), for kernel=None
    dual_coef_ : array of shape (n, classes), for a kernel
    intercept_ : array of shape (classes,)
    scores_ : array of shape (n, classes)
        F, from which the map may differ.
    transduction_ : array of shape (n,)
        Classes of the training rows by F.

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
        n_neighbors: int = 10,
        beta: Any = "mean",
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
        smoother: Any
        if kernel is None:
            smoother = LinearRidgeSmoother(X.astype(np.float64), _in_bounds(self._in_units(1.0 / gamma, 2)))
        else:
            smoother = KernelRidgeSmoother(kernel.matrix(X), 1.0 / gamma, bias=False)
        S = raised(laplacian_of(W), weight * (labels.codes >= 0))
        F = PenalizedSystem(S, smoother.penalty(mu * gamma), verbose=self.verbose).solve(weight * labels.indicators)
        self._keep(X, kernel, *smoother.fit(F))
        return F


class TPTSSR(ScoreClassifier):
    """Two-phase test sample sparse representation (Xu et al. 2011).

    A new row x is coded by all training rows, a = argmin |x - Σ_i a_i x_i|² + ridge |a|². The share of them that alone
    come closest to it, by |x - a_i x_i|, code it once more; the class whose part of that code leaves the smallest
    residual wins. Every row of the training data has a label: -1 is a class like any other.

    Parameters
    ----------
    share : float, default 0.05
        Of the training rows that are kept for the second code, at least one row.
    ridge : float, default 0.01
        Of both codes, more than 0.

    Attributes
    ----------
    classes_ : array of shape (classes,)

    Notes
    -----
    `decision_function` is the negative residual of each class. Classes of which no row was kept come last, by the norm
    of the row. The ridge is taken as it is: rows of about unit norm are what its default is made for.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from manifast import TPTSSR
    >>> X, y = load_digits(return_X_y=True)
    >>> bool(TPTSSR().fit(X[:1000] / 16, y[:1000]).score(X[1000:] / 16, y[1000:]) > 0.85)
    True
    """

    def __init__(self, share: float = 0.05, ridge: float = 0.01) -> None:
        self.share = share
        self.ridge = ridge

    def _learn(self, X: Array, labels: Labels) -> None:
        share = as_positive(self.share, "share")
        if share > 1:
            raise ValueError(f"share must be more than 0 and at most 1. Got {self.share!r} instead.")
        ridge = _in_bounds(self._in_units(as_positive(self.ridge, "ridge"), 2))
        wide = X.astype(np.float64, copy=False)
        # a = X (X'X + ridge I)^-1 x = (XX' + ridge I)^-1 X x, whichever is smaller.
        tall = X.shape[0] >= X.shape[1]
        gram = wide.T @ wide if tall else wide @ wide.T
        ridge = _visible(ridge, gram, "ridge", "a larger ridge, or smaller rows")
        gram.flat[:: len(gram) + 1] += ridge
        solve = spd_solver(gram, advice="Use a larger ridge.")
        self._coder = np.ascontiguousarray(solve(wide.T) if tall else solve(wide).T, dtype=X.dtype)
        self._X, self._codes, self._ridge = X, labels.codes, ridge
        self._kept = max(1, round(share * X.shape[0]))

    def _scores(self, X: Array) -> Array:
        train = self._X.astype(X.dtype, copy=False)
        turned, coder = np.ascontiguousarray(train.T), self._coder.astype(X.dtype, copy=False)
        squares = np.einsum("ij,ij->i", train, train)
        scores = np.empty((len(X), len(self.classes_)))
        step = max(1, _CHUNK // len(train))
        with one_blas_thread():  # the systems are small, and their bits must not depend on the threads
            for begin in range(0, len(X), step):
                rows = X[begin : begin + step]
                codes = _affine_product(rows, coder)
                alone = codes * (codes * squares - 2 * _affine_product(rows, turned))  # |x - a_i x_i|² - |x|²
                near = np.argsort(alone, axis=1, kind="stable")[:, : self._kept]
                for at, row in enumerate(rows):
                    scores[begin + at] = self._compete(row.astype(np.float64), np.sort(near[at]))
        return scores

    def _compete(self, x: Array, near: Array) -> Array:
        """Negative residuals of the classes where x is coded by these training rows."""
        atoms, classes = self._X[near].astype(np.float64), self._codes[near]
        gram = _affine_product(atoms, np.ascontiguousarray(atoms.T))
        gram.flat[:: len(gram) + 1] += self._ridge
        factor = factor_with_jitter(gram, warn=False)
        code = la.cho_solve(factor, _affine_product(atoms, x[:, None]), check_finite=False)[:, 0]
        present = np.unique(classes)
        rest = x - _affine_product(np.where(classes == present[:, None], code, 0.0), atoms)
        residuals = np.sqrt(np.einsum("ij,ij->i", rest, rest))
        size = max(float(np.sqrt(np.einsum("i,i", x, x))), float(np.finfo(np.float32).tiny))
        scores = np.full(len(self.classes_), -residuals.max() - size)
        scores[present] = -residuals
        return scores

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # on scikit-learn's checks: codes see directions, and two features few
        return tags
