"""Embeddings by labels: class graphs weighed against each other, or the labels themselves."""

from __future__ import annotations

from typing import Any

import numpy as np

from manifast import objectives
from manifast._rows import Rows
from manifast._validation import Array
from manifast._warnings import warn
from manifast.embeddings._base import SupervisedEmbedding
from manifast.embeddings._metric import ClassMetric
from manifast.embeddings.composed import Composed, choice
from manifast.extensions import RBF, LatentVariable, fit_owned
from manifast.maps import Predictor

__all__ = ["FisherEmbedding", "LabelEncoding", "SupervisedLaplacianEigenmaps"]

_RIDGES = (0.0, 1e-6, 1e-3, 1e-1)  # of the natural map, chosen among by leave-one-out
_RBF_ROWS = 10_000  # beyond, the interpolator's matrix would take more than a gigabyte
_LOO_ROWS = 2000  # of which the ridge is chosen at most: leave-one-out takes twelve times as long as the map itself


class ClassEmbedding(ClassMetric, Composed, SupervisedEmbedding):
    """Base: the natural map is Gaussian, as classes are far apart. Rows of few features call for a ridge."""

    def _natural_map(
        self, rows: Rows, builder: objectives.ObjectiveBuilder, objective: objectives.Objective, values: Array
    ) -> Predictor:
        X = rows.X
        if rows.n > _RBF_ROWS:
            warn(
                f"with more than {_RBF_ROWS} rows new ones are mapped by extension='lvm', as the matrix of the "
                "Gaussian map would not fit. Choose an extension to silence this."
            )
            return fit_owned(LatentVariable(), X, self.embedding_)
        # Chosen on centred coordinates, so that label encoding and its contrasts get the same.
        centred = self.embedding_ - self.embedding_.mean(axis=0)
        some = np.unique(np.linspace(0, rows.n - 1, min(rows.n, _LOO_ROWS)).astype(int))
        ridge = fit_owned(RBF(ridge=_RIDGES), X[some], centred[some]).ridge_
        return fit_owned(RBF(ridge=ridge), X, self.embedding_)


class SupervisedLaplacianEigenmaps(ClassEmbedding):
    """Supervised Laplacian eigenmaps (Raducanu and Dornaika 2012): classes together, and apart from each other.

    The smallest eigenvectors of L_w - mu L_b (NSSE eq. 2), with Y'Y = I: L_w of a graph inside the classes with heat
    weights, L_b of a graph between them.

    Parameters
    ----------
    n_components : int or None, default None
        None is the number of classes less one. With the complete graph between the classes that many directions are
        equally good; fewer are those that tell the class means apart best, and more only add directions inside classes.
    mu : float, default 1.0
    n_neighbors_within : int or None, default None
        Join each row to that many nearest of its class, the parts of a class joined by the shortest missing edges;
        None is the complete graph inside each class.
    n_neighbors_between : int or None, default None
        Join each row to that many nearest of other classes with heat weights; None is the complete graph between the
        classes with weight 1, which is never built.
    normalized : bool, default False
        Normalised Laplacians D^-1/2 (D - W) D^-1/2, as in THEORY eq. 30.
    beta : "mean" or float, default "mean"
        Width of the heat weights exp(-d²/beta); "mean" is the mean squared distance over all pairs of rows.
    metric : {"euclidean", "within", "auto"}, default "euclidean"
        Plain distances, those of the shrunk covariance inside the classes, or the better by validation, as in `NSSE`.
    extension : None, str or extension, default None
        The map for new rows; None is `RBF` with the median distance as its width and a ridge chosen by leave-one-out
        on up to 2000 rows; its time grows with n³ (`LatentVariable` beyond 10,000 rows, with a warning). `RBF()`
        interpolates.
    verbose : bool or int, default False
        1 names the stages and their times on stderr, 2 also says what the solvers do.

    Attributes
    ----------
    embedding_ : array of shape (n, n_components)
    eigenvalues_ : array of shape (n_components,)
    classes_ : array of classes
    extension_ : the fitted map

    Notes
    -----
    Cost: Complete graphs with plain Laplacians need no eigenproblem of n rows: O(n²p) for the weights inside the
    classes. Graphs of neighbours take O(nkd) per step. The default map takes O(n³) and an n × n matrix, a new row O(n(p
    + d)).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from manifast import SupervisedLaplacianEigenmaps
    >>> X, y = load_digits(return_X_y=True)
    >>> SupervisedLaplacianEigenmaps().fit(X[:500], y[:500]).transform(X[500:]).shape
    (1297, 9)
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        mu: float = 1.0,
        n_neighbors_within: int | None = None,
        n_neighbors_between: int | None = None,
        normalized: bool = False,
        beta: Any = "mean",
        metric: str = "euclidean",
        extension: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.mu = mu
        self.n_neighbors_within = n_neighbors_within
        self.n_neighbors_between = n_neighbors_between
        self.normalized = normalized
        self.beta = beta
        self.metric = metric
        self.extension = extension
        self.verbose = verbose

    def _objective(self) -> objectives.ObjectiveBuilder:
        return choice(objectives.Supervised, self)


class FisherEmbedding(ClassEmbedding):
    """Largest ratio of between-class to within-class spread, tr(Y'L_bY) / tr(Y'L_wY) (THEORY, equation 36).

    The ratio is unbounded where L_w vanishes, on vectors that are constant on every class, so it takes a regularisation
    to say what is meant.

    Parameters
    ----------
    n_components : int or None, default None
        None is the number of classes less one.
    regularization : {"ridge", "pinv"}, default "ridge"
        Eigenvectors of L_b against L_w + eps I: with a small eps close to supervised Laplacian eigenmaps. Or those of
        the pseudo-inverse of L_w times L_b, which leaves class contrasts out: polarised embeddings that generalise
        badly, as the paper shows.
    eps : float, default 1e-3
        The ridge.
    n_neighbors_within, n_neighbors_between, normalized, beta
        The graphs, as in `SupervisedLaplacianEigenmaps`. With neighbours between the classes, or normalised Laplacians,
        "pinv" takes dense matrices of n × n, and so does "ridge" with the complete normalised one.
    metric : {"euclidean", "within", "auto"}, default "euclidean"
        Plain distances, those of the shrunk covariance inside the classes, or the better by validation, as in `NSSE`.
    extension : None, str or extension, default None
        The map for new rows; None is `RBF` with the median distance as its width and a ridge chosen by leave-one-out
        on up to 2000 rows; its time grows with n³ (`LatentVariable` beyond 10,000 rows, with a warning). `RBF()`
        interpolates.
    verbose : bool or int, default False
        1 names the stages and their times on stderr, 2 also says what the solvers do.

    Attributes
    ----------
    embedding_ : array of shape (n, n_components)
        Columns of unit length.
    eigenvalues_ : array of shape (n_components,)
        The ratios, descending.
    classes_ : array of classes
    extension_ : the fitted map

    Notes
    -----
    Cost: O(n²p) for the weights inside the classes; the default map takes O(n³) and an n × n matrix, a new row O(n(p +
    d)).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from manifast import FisherEmbedding
    >>> X, y = load_digits(return_X_y=True)
    >>> FisherEmbedding(n_neighbors_between=10).fit(X[:500], y[:500]).transform(X[500:]).shape
    (1297, 9)
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        regularization: str = "ridge",
        eps: float = 1e-3,
        n_neighbors_within: int | None = None,
        n_neighbors_between: int | None = None,
        normalized: bool = False,
        beta: Any = "mean",
        metric: str = "euclidean",
        extension: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.regularization = regularization
        self.eps = eps
        self.n_neighbors_within = n_neighbors_within
        self.n_neighbors_between = n_neighbors_between
        self.normalized = normalized
        self.beta = beta
        self.metric = metric
        self.extension = extension
        self.verbose = verbose

    def _objective(self) -> objectives.ObjectiveBuilder:
        return choice(objectives.Fisher, self)


class LabelEncoding(ClassEmbedding):
    """Rows embedded at their own labels: one corner of a simplex for each class, and a map that carries it to new rows.

    Y_ic = 1 for the class c of row i, and 0 for others; no eigenproblem. With classes of one size it
    decides as `SupervisedLaplacianEigenmaps` does with its defaults.

    Parameters
    ----------
    n_components : int or None, default None
        None is the number of classes: column c is 1 for the rows of class c. One less is the same simplex, turned into
        the dimensions that it spans; still fewer are those that tell the class means apart best.
    metric : {"euclidean", "within", "auto"}, default "euclidean"
        Plain distances, those of the shrunk covariance inside the classes, or the better by validation, as in `NSSE`.
    extension : None, str or extension, default None
        The map for new rows; None is `RBF` with the median distance as its width and a ridge chosen by leave-one-out
        on up to 2000 rows; its time grows with n³ (`LatentVariable` beyond 10,000 rows, with a warning). `RBF()`
        interpolates.
    verbose : bool or int, default False
        1 names the stages and their times on stderr, 2 also says what the solvers do.

    Attributes
    ----------
    embedding_ : array of shape (n, n_components)
    classes_ : array of classes
    extension_ : the fitted map

    Notes
    -----
    Cost: The embedding takes O(nM) for M classes, the default map O(n³) and an n × n matrix, a new row O(n(p + d)).

    Examples
    --------
    >>> from manifast import LabelEncoding
    >>> LabelEncoding().fit_transform([[0.0], [1.0], [2.0]], ["b", "a", "b"])
    array([[0., 1.],
           [1., 0.],
           [0., 1.]])
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        metric: str = "euclidean",
        extension: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_components = n_components
        self.metric = metric
        self.extension = extension
        self.verbose = verbose

    def _objective(self) -> objectives.ObjectiveBuilder:
        return objectives.OneHot()
