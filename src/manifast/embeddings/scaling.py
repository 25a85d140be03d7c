"""Embeddings by classical scaling of distances: Isomap with and without labels, and classical MDS."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from manifast import objectives
from manifast._rows import Rows
from manifast._validation import Array
from manifast.embeddings._base import SupervisedEmbedding
from manifast.embeddings._metric import ClassMetric
from manifast.embeddings.composed import Composed, choice
from manifast.extensions import mean_squares
from manifast.solve import Solution

__all__ = ["ClassicalMDS", "Isomap", "SupervisedIsomap"]


class Isomap(Composed):
    """Isomap (Tenenbaum et al. 2000), exact or with landmarks, with a map for new rows.

    Classical scaling of the shortest paths δ through the neighbour graph: Y = V √Λ for the leading eigenvectors V of
    -½ H δ² H = VΛV'.

    Parameters
    ----------
    n_components : int, default 2
    n_neighbors : int or None, default 8
        None where there is a `radius`.
    radius : float or None, default None
        Instead of the nearest, all rows within a distance are neighbours; a new row out of reach of all has its
        nearest as its neighbour.
    metric : {"euclidean", "cosine", "precomputed"}, default "euclidean"
        What distances are: plain ones, 1 - cos of the angle between rows, or those in X. For "precomputed" `fit` takes
        the n × n matrix of distances, dense, or sparse with those of neighbours, as scikit-learn's
        `KNeighborsTransformer` makes it, and `transform` the distances of new rows to the training rows.
    n_landmarks : int or None, default None
        Scale only the geodesics between that many landmarks and place all other rows by triangulation from them (de
        Silva and Tenenbaum 2003); None is exact Isomap, which holds an n × n matrix.
    random_state : int, default 0
        Which rows become landmarks.
    extension : None, str or extension, default None
        The map for new rows; None is `LandmarkIsomap` on the geodesics at hand.
    neighbors : (distances, indices), "approximate" or "auto", optional
        Nearest neighbours of the training rows from elsewhere, instead of the exact search.
        "approximate" finds them by clusters (`manifast.kernels.approximate_knn`), "auto" does so for 50,000 rows of 9
        features and more; `graph_recall_` is then the share of the true neighbours that were found.
    verbose : bool or int, default False
        1 names the stages and their times on stderr, 2 also says what the solvers do.

    Attributes
    ----------
    embedding_ : array of shape (n, n_components)
    eigenvalues_ : array of shape (n_components,)
        Descending.
    landmarks_ : int array
        Rows that serve as landmarks; all of them in the exact method.
    dist_matrix_ : array of shape (n, n), or (n_landmarks, n)
        Geodesic distances from the landmarks to all rows.
    extension_ : the fitted map

    Notes
    -----
    Cost: `fit` takes O(n²(k + log n)) for the shortest paths, O(n²d) per step of the eigensolver, and n × n matrices;
    with m landmarks O(mn(k + log n)) and m × n. A new row takes O(n(p + k + d)).

    `transform` of the training rows equals `embedding_` to rounding: their shortest paths are those of the graph.

    Examples
    --------
    >>> from sklearn.datasets import make_swiss_roll
    >>> from manifast import Isomap
    >>> X, _ = make_swiss_roll(1000, random_state=0)
    >>> Isomap(n_landmarks=100).fit(X[:800]).transform(X[800:]).shape
    (200, 2)
    """

    _interpolates = True

    @property
    def _sparse(self) -> bool:  # type: ignore[override]
        return self.radius is None

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_neighbors: int | None = 8,
        radius: float | None = None,
        metric: str = "euclidean",
        n_landmarks: int | None = None,
        random_state: int = 0,
        extension: Any = None,
        neighbors: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.radius = radius
        self.metric = metric
        self.n_landmarks = n_landmarks
        self.random_state = random_state
        self.extension = extension
        self.neighbors = neighbors
        self.verbose = verbose

    def _objective(self) -> objectives.ObjectiveBuilder:
        return choice(objectives.Isomap, self)

    def _keep(
        self, rows: Rows, builder: objectives.ObjectiveBuilder, objective: objectives.Objective, solution: Solution
    ) -> None:
        super()._keep(rows, builder, objective, solution)
        self.landmarks_ = objective.source.landmarks

    @property
    def dist_matrix_(self) -> Array:
        """Geodesic distances from the landmarks to all rows, in their dtype."""
        if "_source" not in self.__dict__:
            raise AttributeError("dist_matrix_ exists after fit")
        lengths: Array = self._source.lengths
        with np.errstate(over="ignore", under="ignore"):
            scaled = np.ldexp(lengths, self._power) if self._power else lengths
            return scaled.astype(self.embedding_.dtype, copy=False)

    def reconstruction_error(self) -> float:
        """Root of the mean squared difference of the centred squares of geodesics from the products of the embedding.

        √(‖½ H δ² H‖² - Σ λ²) / n over the rows or, where there are some, the landmarks.
        """
        check_is_fitted(self, "embedding_")
        between = self._source.between
        means, total, n = mean_squares(between), 0.0, len(between)
        for rows in range(0, n, step := max(1, _CHUNK // n)):
            squares = np.square(between[rows : rows + step])
            centred = squares - means - squares.mean(axis=1)[:, None] + means.mean()
            total += 0.25 * float(np.einsum("ij,ij->", centred, centred))
        error = np.sqrt(max(0.0, total - float(np.sum(np.square(self._values))))) / n
        with np.errstate(over="ignore", under="ignore"):
            return float(np.ldexp(error, 2 * self._power))


_CHUNK = 1 << 22  # squares held at once


class SupervisedIsomap(ClassMetric, Composed, SupervisedEmbedding):
    """Supervised Isomap (Geng et al. 2005), with kernel ridge regression for new rows: IsoKRR.

    Isomap on distances that shrink inside classes and grow between them, δ = √(1 - exp(-d²/β)) for rows of one class
    and δ = √exp(d²/β) - α for others, before neighbours and geodesics are found.

    Parameters
    ----------
    n_components : int or None, default None
        None is one less than the classes.
    n_neighbors : int or None, default None
        Nearest by the distances above; None is all other rows. With few neighbours classes that lie apart hang together
        by single edges only, which costs accuracy.
    alpha : float, default 0.5
        From 0 to 1: how much nearer rows of different classes may come.
    beta : "mean" or float, default "mean"
        "mean" is the squared mean distance over all pairs of rows. The larger, the more rows of a class fall together
        and classes become equally far from each other: towards an embedding of the labels alone.
    metric : {"euclidean", "within", "auto"}, default "euclidean"
        Plain distances, those of the shrunk covariance inside the classes, or the better by validation, as in `NSSE`.
    extension : None, str or extension, default None
        The map for new rows; None is `KernelRidge`.
    verbose : bool or int, default False
        1 names the stages and their times on stderr, 2 also says what the solvers do.

    Attributes
    ----------
    embedding_ : array of shape (n, n_components)
    eigenvalues_ : array of shape (n_components,)
        Descending.
    extension_ : the fitted map
    classes_ : array
        The labels in order.

    Notes
    -----
    Cost: `fit` takes O(n²(p + k + log n)) for distances and geodesics and O(n³) for the default map. A new row takes
    O(n(p + d)).

    Holds n × n matrices. Where a graph of few neighbours falls into parts the shortest missing edges by the same
    distances join them, with a warning.

    References
    ----------
    Orsenigo and Vercellis, "Kernel ridge regression for out-of-sample mapping in supervised manifold learning", 2012.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manifast import SupervisedIsomap
    >>> X, y = load_iris(return_X_y=True)
    >>> SupervisedIsomap().fit(X[::2], y[::2]).transform(X[1::2]).shape
    (75, 2)
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        n_neighbors: int | None = None,
        alpha: float = 0.5,
        beta: Any = "mean",
        metric: str = "euclidean",
        extension: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.alpha = alpha
        self.beta = beta
        self.metric = metric
        self.extension = extension
        self.verbose = verbose

    def _objective(self) -> objectives.ObjectiveBuilder:
        return choice(objectives.ClassIsomap, self)


class ClassicalMDS(Composed):
    """Classical multidimensional scaling (Torgerson 1952), exact or with landmarks, with a map for new rows.

    Y = V √Λ for the leading eigenvectors V of -½ H δ² H = VΛV', δ the distances between rows. New rows
    are placed by triangulation from the training rows or landmarks.

    Parameters
    ----------
    n_components : int, default 2
    metric : {"euclidean", "cosine", "precomputed"}, default "euclidean"
        What distances are: plain ones, 1 - cos of the angle between rows, or those in X. For "precomputed" `fit` takes
        the n × n matrix of distances and `transform` the distances of new rows to the training rows.
    n_landmarks : int or None, default None
        Scale only the distances between that many landmarks and place all other rows by triangulation from them (de
        Silva and Tenenbaum 2004); None holds an n × n matrix.
    random_state : int, default 0
        Which rows become landmarks.
    extension : None, str or extension, default None
        The map for new rows; None is triangulation, which with Euclidean distances is affine in the row.
    verbose : bool or int, default False
        1 names the stages and their times on stderr, 2 also says what the solvers do.

    Attributes
    ----------
    embedding_ : array of shape (n, n_components)
    eigenvalues_ : array of shape (n_components,)
        Descending.
    landmarks_ : int array
    extension_ : the fitted map

    Notes
    -----
    Cost: `fit` takes O(n²p) for the distances, O(n²d) per step of the eigensolver, and an n × n matrix; with m
    landmarks O(m²p + nm(p + d)) and m × m. A new row takes O(n(p + d)), or O(m(p + d)).

    `transform` of the training rows equals `embedding_` to rounding. On plain Euclidean distances the result is that of
    principal component analysis.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manifast import ClassicalMDS
    >>> X = load_iris().data
    >>> ClassicalMDS(n_landmarks=30).fit(X[::2]).transform(X[1::2]).shape
    (75, 2)
    """

    _interpolates = True
    _some_distances = False

    def __init__(
        self,
        n_components: int = 2,
        *,
        metric: str = "euclidean",
        n_landmarks: int | None = None,
        random_state: int = 0,
        extension: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_components = n_components
        self.metric = metric
        self.n_landmarks = n_landmarks
        self.random_state = random_state
        self.extension = extension
        self.verbose = verbose

    def _objective(self) -> objectives.ObjectiveBuilder:
        return choice(objectives.MDS, self)

    def _keep(
        self, rows: Rows, builder: objectives.ObjectiveBuilder, objective: objectives.Objective, solution: Solution
    ) -> None:
        super()._keep(rows, builder, objective, solution)
        self.landmarks_ = objective.source.landmarks
