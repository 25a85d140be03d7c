"""Linear embeddings of rows of which only some have a label; -1, NaN, None and pandas' NA stand for none."""

from __future__ import annotations

from typing import Any

from manifast import objectives
from manifast._validation import as_number, as_positive
from manifast.embeddings._base import SupervisedEmbedding
from manifast.embeddings.composed import Composed, choice
from manifast.smoothers import Projection, Ridge, Smoother

__all__ = ["SDA", "SDE", "TCA"]


class SDA(Composed, SupervisedEmbedding):
    """Semi-supervised discriminant analysis (Cai et al. 2007).

    Linear discriminant analysis of the labelled rows, kept smooth on a neighbour graph of all rows: S_b w = λ (S_t +
    alpha X'LX + ridge I) w for the largest λ, with S_b and S_t the between-class and total scatter of the labelled
    rows.

    Rows that are -1, NaN, None or pandas' NA in y have no label.

    Parameters
    ----------
    n_components : int or None, default None
        At most the number of classes less one, which is the default.
    alpha : float, default 0.1
        Weight of smoothness on the graph.
    ridge : float, default 0.1
        In squared units of the rows.
    n_neighbors : int or None, default None
        None is 10, or as many as few rows have, with a warning.
    graph : {"heat", "binary", "full", "l1"} or matrix of shape (n, n), default "heat"
        Neighbour graph with heat or unit weights, full graph with heat weights, the graph of sparse codes, or symmetric
        affinities of the training rows.
    beta : None, "local", "mean" or float, default None
        Width of the heat weights exp(-d²/beta): "local", one width per row from its nearest, as in
        `manifast.graphs.knn_graph`; "mean", the mean squared distance over all pairs of rows; or a number. None is
        "local" for neighbour graphs and "mean" for full ones.
    connect : bool, default True
        Join the components of a disconnected graph by the shortest missing edges, with a warning. A given matrix is
        left as it is.
    neighbors : (distances, indices), "approximate" or "auto", optional
        Nearest neighbours of the training rows from elsewhere, instead of the exact search.
        "approximate" finds them by clusters (`manifast.kernels.approximate_knn`), "auto" does so for 50,000 rows of 9
        features and more; `graph_recall_` is then the share of the true neighbours that were found.
    verbose : bool or int, default False
        1 names the stages and their times on stderr, 2 also says what the solvers do.

    Attributes
    ----------
    embedding_ : array of shape (n, n_components)
        What the map makes of the training rows.
    components_ : array of shape (n_components, p)
    intercept_ : zeros
    eigenvalues_ : array of shape (n_components,)
        Descending.
    classes_ : array

    Notes
    -----
    Cost: `fit` takes O(n²p) for the neighbours, about O(n log n) below 9 features, then O(np(k + p)) and O(p³). A new
    row takes O(pd).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from manifast import SDA
    >>> X, y = load_digits(return_X_y=True)
    >>> some = np.where(np.arange(1000) < 100, y[:1000], -1)
    >>> SDA().fit(X[:1000], some).transform(X[1000:]).shape
    (797, 9)
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        alpha: float = 0.1,
        ridge: float = 0.1,
        n_neighbors: int | None = None,
        graph: Any = "heat",
        beta: Any = None,
        connect: bool = True,
        neighbors: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.alpha = alpha
        self.ridge = ridge
        self.n_neighbors = n_neighbors
        self.graph = graph
        self.beta = beta
        self.connect = connect
        self.neighbors = neighbors
        self.verbose = verbose

    _interpolates = True
    _unlabelled = True

    def _objective(self) -> objectives.ObjectiveBuilder:
        return choice(objectives.SDA, self)

    def _smoother(self) -> Smoother | None:
        return Projection(as_positive(self.ridge, "ridge"))


class SDE(SDA):
    """Semi-supervised discriminant embedding (Yu et al. 2012, Huang et al. 2012).

    Local discriminant embedding of the labelled rows, kept smooth on a neighbour graph of all rows: X_l'L_bX_l w = λ
    (X_l'L_wX_l + alpha X'LX + ridge I) w for the largest λ. All labelled rows of one class are joined in the graph of
    L_w, all of different classes in that of L_b, with weights 1.

    Rows that are -1, NaN, None or pandas' NA in y have no label.

    Parameters
    ----------
    n_components : int or None, default None
        At most the dimensions that X spans; None is the number of classes less one.
    alpha : float, default 0.1
        Weight of smoothness on the graph.
    ridge : float, default 0.1
        In squared units of the rows.
    n_neighbors, graph, beta, connect, neighbors, verbose
        As in `SDA`.

    Attributes
    ----------
    embedding_, components_, intercept_, eigenvalues_, classes_
        As in `SDA`.

    Notes
    -----
    Cost: `fit` takes O(n²p) for the neighbours, about O(n log n) below 9 features, then O(np(k + p)) and O(p³). A new
    row takes O(pd).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from manifast import SDE
    >>> X, y = load_digits(return_X_y=True)
    >>> some = np.where(np.arange(1000) < 100, y[:1000], -1)
    >>> SDE(12).fit(X[:1000], some).transform(X[1000:]).shape
    (797, 12)
    """

    def _objective(self) -> objectives.ObjectiveBuilder:
        return choice(objectives.SDE, self)


class TCA(Composed, SupervisedEmbedding):
    """Transductive component analysis (Liu et al. 2008), in our reading.

    The original text was not at hand. Read from its summary in SEE: min tr Y'(L + alpha M̃ + R)Y with Y'Y = I, for the
    Laplacian L of a graph of all rows, the margins M̃ between the classes of the labelled rows, and R what the ridge
    regression of Y on X leaves, R = mu (H - X_c (X_c'X_c + ridge I)^-1 X_c'). This regression maps new rows.

    Rows that are -1, NaN, None or pandas' NA in y have no label.

    Parameters
    ----------
    n_components : int or None, default None
        At most the number of rows; None is the number of classes less one.
    alpha : float, default 1.0
        Weight of the margins.
    ridge : float, default 0.1
        Of the regression, 1/γ in `ElasticEmbedding`, in squared units of the rows.
    mu : float, default 1.0
        Weight of the regression, μγ in `ElasticEmbedding`.
    n_neighbors, graph, beta, connect, neighbors, verbose
        As in `SDA`.

    Attributes
    ----------
    embedding_ : array of shape (n, n_components)
        Orthonormal columns; `transform` of the training rows is their regression, which does not interpolate.
    components_ : array of shape (n_components, p)
    intercept_ : array of shape (n_components,)
    eigenvalues_ : array of shape (n_components,)
        Ascending.
    classes_ : array

    Notes
    -----
    Cost: `fit` takes O(n²p) for the neighbours, about O(n log n) below 9 features, O(np²), and O(n(k + p)d) per step of
    the eigensolver on a sparse matrix plus one of rank p. A new row takes O(pd).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from manifast import TCA
    >>> X, y = load_digits(return_X_y=True)
    >>> some = np.where(np.arange(1000) < 100, y[:1000], -1)
    >>> TCA(20).fit(X[:1000], some).transform(X[1000:]).shape
    (797, 20)
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        alpha: float = 1.0,
        ridge: float = 0.1,
        mu: float = 1.0,
        n_neighbors: int | None = None,
        graph: Any = "heat",
        beta: Any = None,
        connect: bool = True,
        neighbors: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.alpha = alpha
        self.ridge = ridge
        self.mu = mu
        self.n_neighbors = n_neighbors
        self.graph = graph
        self.beta = beta
        self.connect = connect
        self.neighbors = neighbors
        self.verbose = verbose

    _unlabelled = True

    def _objective(self) -> objectives.ObjectiveBuilder:
        weight = as_number(self.alpha, "alpha", minimum=0.0)
        return choice(objectives.Margin, self, lam=weight, constraint="identity")

    def _smoother(self) -> Smoother | None:
        return Ridge(as_number(self.mu, "mu", minimum=0.0), ridge=as_positive(self.ridge, "ridge"))
