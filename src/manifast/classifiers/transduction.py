"""Label propagation on the graph alone: GFHF, LGC and RMGT.

They solve for scores F of the training rows, and an extension carries the scores to new rows. Rows are samples,
L = D - W is the Laplacian of the graph, and Y holds one-hot labels.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from manifast._dask import over_blocks
from manifast._labels import Labels
from manifast._linalg.systems import grounded_solution, raised, spd_solver
from manifast._progress import details
from manifast._validation import Array, as_positive, is_sparse, shown
from manifast._warnings import warn
from manifast.classifiers.base import GraphClassifier
from manifast.extensions import SparseCode, as_extension, fit_owned, natural_mean
from manifast.maps import AffinityMean

__all__ = ["GFHF", "LGC", "RMGT"]

_NOISE = 10.0  # exact scores are not negative: up to this multiple of the most negative one, scores are rounding errors


_LINKS = 10  # neighbours of a new row where nobody chose a number


class _Transduction(GraphClassifier):
    """GFHF, LGC and RMGT: the scores solve a system on the graph, and an extension gives new rows their scores."""

    _stored: ClassVar[dict[str, str]] = GraphClassifier._stored | {"extension_": "map"}
    _shares = False  # whether scores are not negative and only their proportions count

    def __init__(
        self,
        n_neighbors: int | None = None,
        beta: Any = None,
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
            W = self._joined(W, X)
            reached = _reached(W, labels)
        scores = np.tile(labels.sizes / labels.sizes.sum(), (X.shape[0], 1))
        inside: Any = slice(None)
        if not reached.all():
            warn(
                f"{int((~reached).sum())} rows have no path to a label in the graph: they get the shares of the "
                "classes among the labels.",
            )
            inside = np.flatnonzero(reached)
            W = W[inside][:, inside]
        found = self._solve(W, Labels(labels.classes, labels.codes[inside]))
        scores[inside] = _legible(found, scores[0], X.dtype) if self._shares else found
        images = scores.astype(X.dtype)
        self.extension_ = self._natural(X, images) if extension is None else fit_owned(extension, X, images)
        return scores

    def _check_parameters(self, labels: Labels) -> None:
        """Refuse bad parameters before any work."""

    @abstractmethod
    def _solve(self, W: Any, labels: Labels) -> Array:
        """Scores on a graph in which every row has a path to a label."""

    def _natural(self, X: Any, scores: Array) -> Any:
        """The default map: a new row is joined to the graph by the graph's own rule, and gets its neighbours' mean."""
        if isinstance(self.graph, str) and self.graph == "precomputed":
            return AffinityMean(scores)
        if isinstance(self.graph, str) and self.graph == "l1":
            return fit_owned(SparseCode(), X, scores)
        full = isinstance(self.graph, str) and self.graph == "full"
        equal = float(np.finfo(np.float64).max)  # a width that makes all weights 1
        width = equal if isinstance(self.graph, str) and self.graph == "binary" else self._width
        return natural_mean(X, scores, X.shape[0] if full else self.n_neighbors or _LINKS, width)

    def _scores(self, X: Any) -> Array:
        scores = self.extension_.predict(X)
        return _proportions(scores) if self._shares else np.asarray(scores)


class GFHF(_Transduction):
    """Gaussian fields and harmonic functions (Zhu, Ghahramani and Lafferty 2003).

    Labelled rows keep their labels, and the score of every other row is the weighted mean of its neighbours' scores:
    F_u = -L_uu^-1 L_ul Y_l. The score of a class is the probability that a random walk from the row meets that class
    first.

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
    graph : {"heat", "binary", "full", "l1", "precomputed"} or matrix, default "heat"
        "heat" and "binary" are neighbour graphs with heat or unit weights, "full" joins all rows with heat weights, and
        "l1" is the graph of sparse codes. For "precomputed" X is the symmetric matrix of weights itself, dense or
        sparse, and `predict` takes the weights of new rows to the training rows. A matrix (n, n) given here is the
        graph of the rows of X.
    extension : None, str or extension, default None
        The map that gives new rows their scores. None is the mean of the scores of the rows that the new row would be
        joined to, weighted as in the graph; for "l1" weighted by its sparse code.
    connect : bool, default True
        Where a component of the graph has no label, join the components by the shortest missing edges, with a warning.
        With False, and in a graph given by the user, the rows of such a component get the shares of the classes among
        the labels as scores.
    neighbors : (distances, indices), "approximate" or "auto", optional
        Nearest neighbours of the training rows, found by other means; None searches for them exactly.
        "approximate" finds them by clusters (`manifast.kernels.approximate_knn`), "auto" does so for 50,000 rows of 9
        features and more; `graph_recall_` is then the share of the true neighbours that were found.
    verbose : bool, default False
        Print the stages of the fit and their times on stderr.

    Attributes
    ----------
    classes_ : array of shape (classes,)
    scores_ : array of shape (n, classes)
        F; each row adds up to 1.
    transduction_ : array of shape (n,)
        Predicted classes of the training rows.
    extension_ : the fitted map

    Notes
    -----
    Cost: `fit` takes O(n²p) for the neighbours, about O(n log n) below 9 features, and a sparse system with one
    right-hand side per class, with O(nk) memory beside its factor. A new row takes O(np).

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

    @over_blocks
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes of new rows (m, classes)."""
        return self._checked_scores(X)

    def _solve(self, W: Any, labels: Labels) -> Array:
        return harmonic(W, labels, np.empty((len(labels.codes), 0)), verbose=details())[0]


class LGC(_Transduction):
    """Learning with local and global consistency (Zhou et al. 2004).

    Scores spread along the edges and are pulled back to the labels, also in labelled rows: F = (1-α)(I - αS)^-1 Y with
    S = D^(-1/2) W D^(-1/2). With α near 1 all scores share a part that depends on the degrees of labelled rows only; it
    may outweigh what separates the classes. So every column of F is divided by its sum (class mass normalisation
    with equal shares of the classes).

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
    alpha : float, default 0.99
        Between 0 and 1, how much a row takes from its neighbours.
    class_mass : bool, default True
        Whether every column of F is divided by its sum; False is the plain method.
    graph : {"heat", "binary", "full", "l1", "precomputed"} or matrix, default "heat"
        As in `GFHF`.
    extension : None, str or extension, default None
        The map that gives new rows their scores, as in `GFHF`.
    connect : bool, default True
        Join components that have no label, as in `GFHF`.
    neighbors : (distances, indices), "approximate" or "auto", optional
        Nearest neighbours of the training rows, found by other means; None searches for them exactly.
        "approximate" finds them by clusters (`manifast.kernels.approximate_knn`), "auto" does so for 50,000 rows of 9
        features and more; `graph_recall_` is then the share of the true neighbours that were found.
    verbose : bool, default False
        Print the stages of the fit and their times on stderr.

    Attributes
    ----------
    classes_ : array of shape (classes,)
    scores_ : array of shape (n, classes)
        F; with class_mass each column adds up to 1.
    transduction_ : array of shape (n,)
        Predicted classes of the training rows.
    extension_ : the fitted map

    Notes
    -----
    Cost: `fit` takes O(n²p) for the neighbours, about O(n log n) below 9 features, and a sparse system with one
    right-hand side per class, with O(nk) memory beside its factor. A new row takes O(np).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from manifast import LGC
    >>> X, y = load_digits(return_X_y=True)
    >>> some = np.where(np.arange(1000) < 100, y[:1000], -1)
    >>> bool(np.mean(LGC().fit(X[:1000], some).predict(X[1000:]) == y[1000:]) > 0.85)
    True
    """

    _shares = True

    def __init__(
        self,
        n_neighbors: int | None = None,
        beta: Any = None,
        alpha: float = 0.99,
        class_mass: bool = True,
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
        self.class_mass = class_mass

    @over_blocks
    def predict_proba(self, X: Any) -> Array:
        """Shares of the classes in the scores of new rows (m, classes)."""
        return self._checked_scores(X)

    def _check_parameters(self, labels: Labels) -> None:
        if not as_positive(self.alpha, "alpha") < 1:
            raise ValueError(f"alpha must be more than 0 and less than 1. Got {self.alpha!r} instead.")

    def _solve(self, W: Any, labels: Labels) -> Array:
        # With F = D^(1/2) G this is (D - αW) G = (1-α) D^(1/2) Y: a Laplacian times α, plus (1-α) D.
        alpha = float(self.alpha)
        degrees = np.asarray(W.sum(axis=1)).ravel()
        degrees = np.where(degrees > 0, degrees, 1.0)
        roots = np.sqrt(degrees)[:, None]
        solve = spd_solver(raised(-alpha * W, degrees), verbose=details())
        F = np.asarray(roots * solve((1 - alpha) * roots * labels.indicators))
        return F / F.sum(axis=0) if self.class_mass else F  # no sum is 0: a labelled row keeps at least 1 - α


class RMGT(_Transduction):
    """Robust multi-class graph transduction (Liu and Chang 2009): harmonic scores whose classes have given sizes.

    The harmonic solution F⁰ of `GFHF` is corrected along h = L_uu^-1 1 so that column c of F adds up to n times the
    prior of class c: F_u = F⁰ + (h / 1'h)(n prior - 1'Y_l - 1'F⁰).

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
    prior : array of shape (classes,) or None, default None
        Shares of the classes among all rows, in the order of `classes_`; they add up to 1. None is equal shares.
    graph : {"heat", "binary", "full", "l1", "precomputed"} or matrix, default "heat"
        As in `GFHF`.
    extension : None, str or extension, default None
        The map that gives new rows their scores, as in `GFHF`.
    connect : bool, default True
        Join components that have no label, as in `GFHF`.
    neighbors : (distances, indices), "approximate" or "auto", optional
        Nearest neighbours of the training rows, found by other means; None searches for them exactly.
        "approximate" finds them by clusters (`manifast.kernels.approximate_knn`), "auto" does so for 50,000 rows of 9
        features and more; `graph_recall_` is then the share of the true neighbours that were found.
    verbose : bool, default False
        Print the stages of the fit and their times on stderr.

    Attributes
    ----------
    classes_ : array of shape (classes,)
    scores_ : array of shape (n, classes)
        F; each row adds up to 1, and each column to n times the prior of its class. Scores may be negative.
    transduction_ : array of shape (n,)
        Predicted classes of the training rows.
    extension_ : the fitted map

    Notes
    -----
    Cost: `fit` takes O(n²p) for the neighbours, about O(n log n) below 9 features, and a sparse system with one
    right-hand side per class and one more. A new row takes O(np).

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
        n_neighbors: int | None = None,
        beta: Any = None,
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
        try:
            prior = np.asarray(self.prior, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            prior = np.empty(0)
        if prior.shape != (labels.count,) or not (prior >= 0).all() or not abs(prior.sum() - 1) <= 1e-6:
            raise ValueError(
                f"prior must be {labels.count} shares, one per class, that add up to 1. "
                f"Got {shown(self.prior)} instead."
            )
        self._prior = prior

    def _solve(self, W: Any, labels: Labels) -> Array:
        # Only h / 1'h counts. With a multiple of 1 this small, h stays in range where the weights are tiny.
        ones = np.full((len(labels.codes), 1), max(1e-200 * W.max(), np.finfo(float).tiny))
        F, h = harmonic(W, labels, ones, verbose=details())
        missing = len(F) * self._prior - F.sum(axis=0)
        return np.asarray(F + h / (h.sum() or 1.0) * missing)


def harmonic(W: Any, labels: Labels, B: Array, *, verbose: bool = False) -> tuple[Array, Array]:
    """The harmonic scores F and the response H to B, as (F, H).

    On unlabelled rows F_u = -L_uu^-1 L_ul Y_l and H_u = L_uu^-1 B_u. On labelled rows F is Y and H is 0.
    """
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
    """Scores that are not negative, and without rows of mere rounding errors.

    Rows that no label reaches beyond rounding get the shares of the classes, scaled down to the size of the rounding
    errors. Rows too small for the dtype are scaled up, as only their proportions count.
    """
    noise, least = _NOISE * max(0.0, -float(scores.min())), 1e8 * float(np.finfo(dtype).tiny)
    largest = scores.max(axis=1)
    lost = largest <= noise
    if lost.any():
        warn(
            f"no label reaches {int(lost.sum())} rows through the graph: they get the shares of the classes among the "
            "labels. Use a larger alpha, a graph of more neighbours, or more labels.",
        )
    factors = np.maximum(1.0, least / np.where(lost, 1.0, largest))
    return np.where(lost[:, None], max(noise, least) * shares, factors[:, None] * np.maximum(scores, 0.0))


def _proportions(scores: Array) -> Array:
    """Scores that are not negative, each row divided by its sum; a row of zeros gets equal shares."""
    scores = np.maximum(scores, 0.0)
    total = scores.sum(axis=1, keepdims=True)
    return np.asarray(np.where(total > 0, scores / np.where(total > 0, total, 1.0), 1.0 / scores.shape[1]))
