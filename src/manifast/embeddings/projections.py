"""Projections: embeddings that are a linear map of the rows, or a combination of kernel functions."""

from __future__ import annotations

from typing import Any

from manifast import objectives
from manifast._labels import Labels
from manifast._rows import Rows
from manifast._validation import as_number, as_positive
from manifast.embeddings.composed import Composed, choice, refuse_precomputed
from manifast.smoothers import KernelProjection, KernelRidge, Projection, Ridge, Smoother
from manifast.solve import Solution

__all__ = ["LLTSA", "LPP", "NPE", "SpectralRegression"]


class Projecting(Composed):
    """Base of projections: on the features for kernel=None, or with a kernel."""

    _interpolates = True

    @property
    def _sparse(self) -> bool:  # type: ignore[override]
        return self.kernel is None

    def _ridge(self) -> dict[str, Any]:
        """Ridge of the projection, and whether it is relative."""
        return {"ridge": as_number(self.alpha, "alpha", minimum=0.0), "relative": False}

    def _smoother(self) -> Smoother | None:
        if self.kernel is None:
            return Projection(**self._ridge())
        return choice(KernelProjection, self, **self._ridge())


class LPP(Projecting):
    """Locality preserving projections (He and Niyogi 2003), linear or with a kernel.

    The linear map y = W'x, or kernel map y = V'k(x), whose image of the training rows is smoothest on the neighbour
    graph: X'LX w = λ X'DX w for the smallest λ, or KLK v = λ KDK v, solved in the range of X or K. The constant is left
    out where the range holds it.

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
    beta : "local", "mean" or float, default "local"
        Width of the heat weights exp(-d²/beta): "local", one width per row from its nearest, as in
        `manifast.graphs.knn_graph`; "mean", the mean squared distance over all pairs of rows; or a number.
    constraint : {"degree", "identity"}, default "degree"
        The objective is against the degrees of the graph, or against the identity.
    metric : {"euclidean", "cosine"}, default "euclidean"
        What distances are in the neighbour graph: plain ones, or 1 - cos of the angle between rows.
    connect : bool, default True
        Join the components of a disconnected neighbour graph by the shortest missing edges, with a warning.
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
    eigenvalues_ : array of shape (n_components,)
    components_ : array of shape (n_components, p), for kernel=None
    dual_coef_ : array of shape (n, n_components), for a kernel
    intercept_ : zeros

    Notes
    -----
    Cost: `fit` takes O(n²p) for the neighbours, about O(n log n) below 9 features, then O(np(k + p)) and O(p³); with a
    kernel O(n³) and n × n matrices. A new row takes O(pd), with a kernel O(n(p + d)).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from manifast import LPP
    >>> X = load_digits().data
    >>> LPP(n_components=5).fit(X[:1000]).transform(X[1000:]).shape
    (797, 5)
    """

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
        beta: Any = "local",
        constraint: str = "degree",
        metric: str = "euclidean",
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
        self.constraint = constraint
        self.metric = metric
        self.connect = connect
        self.neighbors = neighbors
        self.verbose = verbose

    def _objective(self) -> objectives.ObjectiveBuilder:
        check_affinity(self.affinity)
        refuse_precomputed(self.metric)
        return choice(objectives.Laplacian, self)


def check_affinity(value: Any) -> None:
    if value not in ("heat", "binary"):
        raise ValueError(f"affinity must be 'heat' or 'binary'. Got {value!r} instead.")


class NPE(Projecting):
    """Neighbourhood preserving embedding (He et al. 2005): the objective of LLE, projected.

    The linear map y = W'x, or kernel map, whose image of the training rows is rebuilt best by the weights of LLE:
    X'MX w = λ X'X w for the smallest λ, M = (I - W)'(I - W).

    Parameters
    ----------
    n_components : int, default 2
        At most the rank of X or K.
    n_neighbors : int, default 8
    kernel : {None, "linear", "rbf", "poly", "precomputed"}, default None
        None projects the features themselves. For "precomputed" X is the kernel matrix, and `transform` takes the
        kernel of new rows with the training rows.
    alpha : float, default 0.0
        Ridge, alpha I or with a kernel alpha K, added to both sides.
    sigma : float or None, default None
        Width of the kernel exp(-d²/sigma²); None is the median distance between rows.
    degree, coef0 : int and float, default 3 and 1.0
        Of the polynomial kernel (x·y + coef0)^degree.
    reg : float, default 1e-3
        Regularisation of the weights, relative to the trace of each local Gram matrix.
    metric : {"euclidean", "cosine"}, default "euclidean"
        What distances are in the neighbour graph: plain ones, or 1 - cos of the angle between rows.
    connect : bool, default True
        Join the components of a disconnected neighbour graph by the shortest missing edges, with a warning.
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
    eigenvalues_ : array of shape (n_components,)
    components_ : array of shape (n_components, p), for kernel=None
    dual_coef_ : array of shape (n, n_components), for a kernel
    intercept_ : array of shape (n_components,)

    Notes
    -----
    Cost: `fit` takes O(n²p) for the neighbours, about O(n log n) below 9 features, O(nk²(k + p)) for the weights, then
    O(np²) and O(p³); with a kernel O(n³) and n × n matrices. A new row takes O(pd), with a kernel O(n(p + d)).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from manifast import NPE
    >>> X = load_digits().data
    >>> NPE(n_components=5).fit(X[:1000]).transform(X[1000:]).shape
    (797, 5)
    """

    _sparse = False

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
        reg: float = 1e-3,
        metric: str = "euclidean",
        connect: bool = True,
        neighbors: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.kernel = kernel
        self.alpha = alpha
        self.sigma = sigma
        self.degree = degree
        self.coef0 = coef0
        self.reg = reg
        self.metric = metric
        self.connect = connect
        self.neighbors = neighbors
        self.verbose = verbose

    def _objective(self) -> objectives.ObjectiveBuilder:
        return choice(objectives.LLE, self)


class LLTSA(Projecting):
    """Linear local tangent space alignment (Zhang et al. 2007): the objective of LTSA, projected.

    The linear map y = W'x + b, or kernel map, that aligns local tangent coordinates best: X'BX w = λ X'HX w for
    the smallest λ, B the alignment matrix; images are centred.

    Parameters
    ----------
    n_components : int, default 2
        At most the rank of X or K.
    n_neighbors : int or None, default None
        More than `n_components`; None is 8, or one and a half times `n_components` where that is more.
    kernel : {None, "linear", "rbf", "poly", "precomputed"}, default None
        None projects the features themselves. For "precomputed" X is the kernel matrix, and `transform` takes the
        kernel of new rows with the training rows.
    alpha : float, default 0.0
        Ridge, alpha I or with a kernel alpha K, added to both sides.
    sigma : float or None, default None
        Width of the kernel exp(-d²/sigma²); None is the median distance between rows.
    degree, coef0 : int and float, default 3 and 1.0
        Of the polynomial kernel (x·y + coef0)^degree.
    metric : {"euclidean", "cosine"}, default "euclidean"
        What distances are in the neighbour graph: plain ones, or 1 - cos of the angle between rows.
    connect : bool, default True
        Join the components of a disconnected neighbour graph by the shortest missing edges, with a warning.
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
    eigenvalues_ : array of shape (n_components,)
    components_ : array of shape (n_components, p), for kernel=None
    dual_coef_ : array of shape (n, n_components), for a kernel
    intercept_ : array of shape (n_components,)

    Notes
    -----
    Cost: `fit` takes O(n²p) for the neighbours, about O(n log n) below 9 features, O(nk²(k + p)) for the charts, then
    O(np²) and O(p³); with a kernel O(n³) and n × n matrices. A new row takes O(pd), with a kernel O(n(p + d)).

    Examples
    --------
    >>> from sklearn.datasets import make_s_curve
    >>> from manifast import LLTSA
    >>> X, _ = make_s_curve(1000, random_state=0)
    >>> LLTSA().fit(X[:800]).transform(X[800:]).shape
    (200, 2)
    """

    _sparse = False

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_neighbors: int | None = None,
        kernel: str | None = None,
        alpha: float = 0.0,
        sigma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        metric: str = "euclidean",
        connect: bool = True,
        neighbors: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.kernel = kernel
        self.alpha = alpha
        self.sigma = sigma
        self.degree = degree
        self.coef0 = coef0
        self.metric = metric
        self.connect = connect
        self.neighbors = neighbors
        self.verbose = verbose

    def _objective(self) -> objectives.ObjectiveBuilder:
        return choice(objectives.LTSA, self)


class SpectralRegression(Composed):
    """Spectral regression (Cai et al. 2007), linear or with a kernel: Laplacian eigenmaps, then ridge regression.

    The eigenvectors Z of L z = λ D z are regressed on the rows: W and b minimise |XW + 1b' - Z|² + alpha |W|², and
    y = W'x + b. With a kernel y = V'k(x) + b. It is the limit of `LGRM` for small `mu` (LGRM, Propositions 3 and 4).

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
    beta : "local", "mean" or float, default "local"
        Width of the heat weights exp(-d²/beta): "local", one width per row from its nearest, as in
        `manifast.graphs.knn_graph`; "mean", the mean squared distance over all pairs of rows; or a number.
    constraint : {"degree", "identity"}, default "degree"
        The objective is against the degrees of the graph, or against the identity.
    metric : {"euclidean", "cosine"}, default "euclidean"
        What distances are in the neighbour graph: plain ones, or 1 - cos of the angle between rows.
    connect : bool, default True
        Join the components of a disconnected neighbour graph by the shortest missing edges, with a warning.
    neighbors : (distances, indices), "approximate" or "auto", optional
        Nearest neighbours of the training rows from elsewhere, instead of the exact search.
        "approximate" finds them by clusters (`manifast.kernels.approximate_knn`), "auto" does so for 50,000 rows of 9
        features and more; `graph_recall_` is then the share of the true neighbours that were found.
    verbose : bool or int, default False
        1 names the stages and their times on stderr, 2 also says what the solvers do.

    Attributes
    ----------
    embedding_ : array of shape (n, n_components)
        What the map makes of the training rows: the regression's image of the eigenvectors.
    eigenvalues_ : array of shape (n_components,)
        Of Laplacian eigenmaps.
    components_ : array of shape (n_components, p), for kernel=None
    dual_coef_ : array of shape (n, n_components), for a kernel
    intercept_ : array of shape (n_components,)

    Notes
    -----
    Cost: `fit` takes O(n²p) for the neighbours, about O(n log n) below 9 features, O(nkd) per step of the eigensolver,
    then O(np²) and O(p³) for the regression; with a kernel O(n³) and n × n matrices. A new row takes O(pd), with a
    kernel O(n(p + d)).

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
        beta: Any = "local",
        constraint: str = "degree",
        metric: str = "euclidean",
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
        self.constraint = constraint
        self.metric = metric
        self.connect = connect
        self.neighbors = neighbors
        self.verbose = verbose

    _interpolates = True

    @property
    def _sparse(self) -> bool:  # type: ignore[override]
        return self.kernel is None

    def _objective(self) -> objectives.ObjectiveBuilder:
        check_affinity(self.affinity)
        refuse_precomputed(self.metric)
        return choice(objectives.Laplacian, self)

    def _regression(self) -> Ridge | KernelRidge:
        if self.kernel is None:
            return Ridge(ridge=as_number(self.alpha, "alpha", minimum=0.0))
        return choice(KernelRidge, self, ridge=as_positive(self.alpha, "alpha"))

    def _dimensions(self, builder: objectives.ObjectiveBuilder, rows: Rows, labels: Labels | None) -> int:
        self._regression().check(rows)
        return super()._dimensions(builder, rows, labels)

    def _keep(
        self, rows: Rows, builder: objectives.ObjectiveBuilder, objective: objectives.Objective, solution: Solution
    ) -> None:
        mapping = self._regression().prepare(rows).fit(solution.Y)
        super()._keep(rows, builder, objective, Solution(solution.values, mapping.predict(rows.X), mapping))
