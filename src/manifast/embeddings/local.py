"""Embeddings by neighbourhoods: each is an objective of `manifast.objectives.local`, with Y'Y = I."""

from __future__ import annotations

from typing import Any

from manifast import objectives
from manifast.embeddings.composed import Composed, choice

__all__ = ["LTSA", "LocalRegressionEmbedding", "LocallyLinearEmbedding"]


class LocallyLinearEmbedding(Composed):
    """Locally linear embedding (Roweis and Saul 2000) with a map for new rows.

    Every row is rebuilt from its nearest others with weights that sum to one; the embedding is rebuilt best by the same
    weights: the smallest eigenvectors of (I - W)'(I - W) but the constant one, with Y'Y = I.

    Parameters
    ----------
    n_components : int, default 2
    n_neighbors : int or None, default None
        None is 8, and for the other methods more where the components call for it: one and a half times the components,
        or for "hessian" one and a half times d(d + 3)/2 + 1 for d of them.
    method : {"standard", "modified", "hessian", "ltsa"}, default "standard"
        One weight vector for every row; several (Zhang and Wang 2006); Hessian eigenmaps (Donoho and Grimes 2003), for
        which n_neighbors must be more than d(d + 3)/2 for d components; local tangent spaces (Zhang and Zha 2004).
    reg : float, default 1e-3
        Regularisation of the weights, relative to the trace of each local Gram matrix.
    metric : {"euclidean", "cosine"}, default "euclidean"
        By which neighbours are found. Precomputed distances will not do, as the weights need the rows; neighbours from
        elsewhere come as `neighbors`.
    extension : None, str or extension, default None
        The map for new rows; None is `Reconstruction` with the same neighbours and regularisation.
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
    eigenvalues_ : array of shape (n_components,)
    reconstruction_error_ : float
        The sum of the eigenvalues: tr(Y'MY) of the matrix M that the neighbourhoods add up to.
    extension_ : the fitted map

    Notes
    -----
    Cost: `fit` takes O(n²p) for the neighbours, about O(n log n) below 9 features, O(nk²(k + p)) for the weights, and a
    sparse factorisation: nearly linear in n on sheets, more where neighbourhoods have many dimensions. A new row takes
    O(np + k²(k + p)).

    `transform` of the training rows equals `embedding_` up to a few hundredths, less for a smaller `reg`.

    Examples
    --------
    >>> from sklearn.datasets import make_swiss_roll
    >>> from manifast import LocallyLinearEmbedding
    >>> X, _ = make_swiss_roll(1000, random_state=0)
    >>> LocallyLinearEmbedding(n_neighbors=12).fit(X[:800]).transform(X[800:]).shape
    (200, 2)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_neighbors: int | None = None,
        method: str = "standard",
        reg: float = 1e-3,
        metric: str = "euclidean",
        extension: Any = None,
        connect: bool = True,
        neighbors: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.method = method
        self.reg = reg
        self.metric = metric
        self.extension = extension
        self.connect = connect
        self.neighbors = neighbors
        self.verbose = verbose

    def _objective(self) -> objectives.ObjectiveBuilder:
        if self.method not in _METHODS:
            known = ", ".join(map(repr, _METHODS))
            raise ValueError(f"method must be one of {known}. Got {self.method!r} instead.")
        return choice(_METHODS[self.method], self)

    @property
    def reconstruction_error_(self) -> float:
        """The sum of the eigenvalues."""
        if "_values" not in self.__dict__:
            raise AttributeError("reconstruction_error_ exists after fit")
        return float(self.eigenvalues_.sum())


_METHODS: dict[str, type[objectives.ObjectiveBuilder]] = {
    "standard": objectives.LLE,
    "modified": objectives.ModifiedLLE,
    "hessian": objectives.HessianLLE,
    "ltsa": objectives.LTSA,
}


class LTSA(Composed):
    """Local tangent space alignment (Zhang and Zha 2004) with a map for new rows.

    The tangent coordinates of the nearest others of every row are aligned: the smallest eigenvectors of the alignment
    matrix but the constant one, with Y'Y = I.

    Parameters
    ----------
    n_components : int, default 2
    n_neighbors : int or None, default None
        More than `n_components`; None is 8, or one and a half times `n_components` where that is more.
    metric : {"euclidean", "cosine"}, default "euclidean"
        By which neighbours are found. Precomputed distances will not do, as the weights need the rows; neighbours from
        elsewhere come as `neighbors`.
    extension : None, str or extension, default None
        The map for new rows; None is `Reconstruction` with the same neighbours.
    connect : bool, default True
        Join the components of a disconnected neighbour graph, with a warning.
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
    extension_ : the fitted map

    Notes
    -----
    Cost: `fit` takes O(n²p) for the neighbours, about O(n log n) below 9 features, O(nk²(k + p)) for the charts, and a
    sparse factorisation: nearly linear in n on sheets, more where neighbourhoods have many dimensions. A new row takes
    O(np + k²(k + p)).

    `transform` of the training rows equals `embedding_` up to a few hundredths, less on dense samples. A row that is in
    the neighbourhood of no other row is joined to its nearest, with a warning.

    Examples
    --------
    >>> from sklearn.datasets import make_swiss_roll
    >>> from manifast import LTSA
    >>> X, _ = make_swiss_roll(1000, random_state=0)
    >>> LTSA(n_neighbors=12).fit(X[:800]).transform(X[800:]).shape
    (200, 2)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_neighbors: int | None = None,
        metric: str = "euclidean",
        extension: Any = None,
        connect: bool = True,
        neighbors: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.extension = extension
        self.connect = connect
        self.neighbors = neighbors
        self.verbose = verbose

    def _objective(self) -> objectives.ObjectiveBuilder:
        return choice(objectives.LTSA, self)


class LocalRegressionEmbedding(Composed):
    """Embedding by local regressions alone: the smallest eigenvectors of L_l but the constant one (LGRM, equation 12).

    Parameters
    ----------
    n_components : int, default 2
    n_neighbors : int or None, default None
        Size of a clique: a row and its n_neighbors - 1 nearest. None is 8, or one and a half times the
        dimensions of the local PCA where that is more.
    gamma_local : float or None, default None
        Ridge of the local regressions; None is 0, which is stable after the local PCA.
    local_dim : int or None, default None
        Dimensions that the local PCA keeps; None is `n_components`.
    metric : {"euclidean", "cosine"}, default "euclidean"
        By which neighbours are found. Precomputed distances will not do, as the weights need the rows; neighbours from
        elsewhere come as `neighbors`.
    extension : None, str or extension, default None
        The map for new rows; None is `Reconstruction` with `n_neighbors` neighbours.
    connect : bool, default True
        Join the components of a disconnected neighbour graph, with a warning.
    neighbors : (distances, indices), "approximate" or "auto", optional
        The n_neighbors - 1 nearest others of the training rows from elsewhere, instead of the exact search.
        "approximate" finds them by clusters (`manifast.kernels.approximate_knn`), "auto" does so for 50,000 rows of 9
        features and more; `graph_recall_` is then the share of the true neighbours that were found.
    verbose : bool or int, default False
        1 names the stages and their times on stderr, 2 also says what the solvers do.

    Attributes
    ----------
    embedding_ : array of shape (n, n_components)
    eigenvalues_ : array of shape (n_components,)
    extension_ : the fitted map

    Notes
    -----
    Cost: `fit` takes O(n²p) for the neighbours, about O(n log n) below 9 features, O(nk²(k + p)) for the regressions,
    and a sparse factorisation: nearly linear in n on sheets, more where neighbourhoods have many dimensions. A new row
    takes O(np + k²(k + p)).

    `transform` of the training rows equals `embedding_` up to a few hundredths, less on dense samples.

    Examples
    --------
    >>> from sklearn.datasets import make_swiss_roll
    >>> from manifast import LocalRegressionEmbedding
    >>> X, _ = make_swiss_roll(1000, random_state=0)
    >>> LocalRegressionEmbedding(n_neighbors=8).fit(X[:800]).transform(X[800:]).shape
    (200, 2)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_neighbors: int | None = None,
        gamma_local: float | None = None,
        local_dim: int | None = None,
        metric: str = "euclidean",
        extension: Any = None,
        connect: bool = True,
        neighbors: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.gamma_local = gamma_local
        self.local_dim = local_dim
        self.metric = metric
        self.extension = extension
        self.connect = connect
        self.neighbors = neighbors
        self.verbose = verbose

    def _objective(self) -> objectives.ObjectiveBuilder:
        return choice(objectives.LocalRegression, self)
