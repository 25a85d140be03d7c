"""Projections by labels: linear or kernel maps that keep classes apart where they are near each other."""

from __future__ import annotations

from typing import Any

from manifast import objectives
from manifast._validation import as_number
from manifast.embeddings._base import SupervisedEmbedding
from manifast.embeddings._metric import ClassMetric
from manifast.embeddings.composed import choice
from manifast.embeddings.projections import Projecting

__all__ = ["LDE", "LFDA"]


class Discriminating(ClassMetric, Projecting, SupervisedEmbedding):
    """Base of projections by labels, whose ridge is relative to the scatter within classes."""

    _sparse = False

    def _ridge(self) -> dict[str, Any]:
        return {"ridge": as_number(self.ridge, "ridge", minimum=0.0), "relative": True}


class LDE(Discriminating):
    """Local discriminant embedding (Chen et al. 2005), linear or with a kernel.

    The linear map y = W'x, or kernel map y = V'k(x), that keeps rows apart from their nearest of other classes while
    their nearest of the same class stay close: X'L_bX w = λ (X'L_wX + ridge) w for the largest λ, or
    KL_bK v = λ (KL_wK + ridge) v.

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
    metric : {"euclidean", "within", "auto"}, default "euclidean"
        Plain distances, those of the shrunk covariance inside the classes, or the better by validation, as in `NSSE`.
    sigma : float or None, default None
        Width of the kernel exp(-d²/sigma²); None is the median distance between rows.
    degree, coef0 : int and float, default 3 and 1.0
        Of the polynomial kernel (x·y + coef0)^degree.
    verbose : bool or int, default False
        1 names the stages and their times on stderr, 2 also says what the solvers do.

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

    Notes
    -----
    Cost: `fit` takes O(n²p) for the neighbours, O(np(k + p)) for the scatters and O(p³); with a kernel O(n³) and n × n
    matrices. A new row takes O(pd), with a kernel O(n(p + d)).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from manifast import LDE
    >>> X, y = load_digits(return_X_y=True)
    >>> LDE().fit(X[:1000], y[:1000]).transform(X[1000:]).shape
    (797, 9)
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        n_neighbors: int = 5,
        kernel: str | None = None,
        ridge: float = 0.1,
        affinity: str = "heat",
        beta: Any = "mean",
        metric: str = "euclidean",
        sigma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        verbose: bool | int = False,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.kernel = kernel
        self.ridge = ridge
        self.affinity = affinity
        self.beta = beta
        self.metric = metric
        self.sigma = sigma
        self.degree = degree
        self.coef0 = coef0
        self.verbose = verbose

    def _objective(self) -> objectives.ObjectiveBuilder:
        return choice(objectives.LDE, self)


class LFDA(Discriminating):
    """Local Fisher discriminant analysis (Sugiyama 2007), linear or with a kernel.

    Fisher's discriminant analysis in which far rows of one class need not come together: with affinities a_ij inside
    each class c the scatter within has weights a_ij/n_c, the scatter between a_ij(1/n - 1/n_c) inside classes and 1/n
    across; S_b w = λ (S_w + ridge) w for the largest λ, with S = ½ Σ a_ij (x_i - x_j)(x_i - x_j)' for such weights a.

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
    metric : {"euclidean", "within", "auto"}, default "euclidean"
        Plain distances, those of the shrunk covariance inside the classes, or the better by validation, as in `NSSE`.
    sigma : float or None, default None
        Width of the kernel exp(-d²/sigma²); None is the median distance between rows.
    degree, coef0 : int and float, default 3 and 1.0
        Of the polynomial kernel (x·y + coef0)^degree.
    verbose : bool or int, default False
        1 names the stages and their times on stderr, 2 also says what the solvers do.

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

    Notes
    -----
    Cost: `fit` takes O(n²p) for the affinities inside the classes, O(np²) for the scatters and O(p³); with a kernel
    O(n³) and n × n matrices. A new row takes O(pd), with a kernel O(n(p + d)).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from manifast import LFDA
    >>> X, y = load_digits(return_X_y=True)
    >>> LFDA().fit(X[:1000], y[:1000]).transform(X[1000:]).shape
    (797, 9)
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        n_neighbors: int = 7,
        kernel: str | None = None,
        ridge: float = 0.1,
        affinity: str = "local",
        beta: Any = "mean",
        metric: str = "euclidean",
        sigma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        verbose: bool | int = False,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.kernel = kernel
        self.ridge = ridge
        self.affinity = affinity
        self.beta = beta
        self.metric = metric
        self.sigma = sigma
        self.degree = degree
        self.coef0 = coef0
        self.verbose = verbose

    def _objective(self) -> objectives.ObjectiveBuilder:
        return choice(objectives.LFDA, self)
