"""Embeddings by the eigenvectors of a graph of all rows."""

from __future__ import annotations

from typing import Any

from manifast import objectives
from manifast._neighbors import given_lists
from manifast.embeddings.composed import Composed, choice

__all__ = ["DiffusionMaps", "LaplacianEigenmaps"]


class LaplacianEigenmaps(Composed):
    """Laplacian eigenmaps (Belkin and Niyogi 2003) with a map for new rows.

    The eigenvectors of L z = λ D z with the smallest eigenvalues but the constant one, scaled to Z'DZ = I.

    Parameters
    ----------
    n_components : int, default 2
    n_neighbors : int, default 8
        For the neighbour graphs: an edge joins two rows where either is among the nearest of the other.
    affinity : {"heat", "binary", "full", "l1", "precomputed"}, default "heat"
        Neighbour graph with heat or unit weights, full graph with heat weights, the graph of sparse codes (each row
        coded by all others), or X is the symmetric affinity matrix itself (dense or sparse).
    beta : None, "local", "mean" or float, default None
        Width of the heat weights exp(-d²/beta): "local", one width per row from its nearest, as in
        `manifast.graphs.knn_graph`; "mean", the mean squared distance over all pairs of rows; or a number. None is
        "local" for neighbour graphs and "mean" for full ones.
    constraint : {"degree", "identity"}, default "degree"
        Z'DZ = I, or Z'Z = I.
    metric : {"euclidean", "cosine", "precomputed"}, default "euclidean"
        What distances are: plain ones, 1 - cos of the angle between rows, or those in X. For "precomputed" `fit` takes
        the n × n matrix of distances, dense, or sparse with those of neighbours, as scikit-learn's
        `KNeighborsTransformer` makes it, and `transform` the distances of new rows to the training rows. "mean" of
        `beta` is then over the distances that X holds.
    extension : None, str or extension, default None
        The map for new rows. None is the natural one: the Nyström formula, or for "l1" the code of the new row. For
        "precomputed" `transform` takes the affinities of new rows to the training rows.
    connect : bool, default True
        Join the components of a disconnected graph by the shortest missing edges, with a warning.
    mode : {"union", "mutual"}, default "union"
        An edge where either row is among the nearest of the other, or only where both are.
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
    affinity_matrix_ : sparse matrix or array of shape (n, n)
    extension_ : the fitted map

    Notes
    -----
    Cost: `fit` takes O(n²p) for the neighbours, about O(n log n) below 9 features, and O(nkd) per step of the
    eigensolver on the graph, with O(nk) memory; "full" graphs are n × n matrices. A new row takes O(np).

    `transform` of the training rows equals `embedding_` to rounding for "precomputed" graphs without a diagonal, which
    counts nowhere in the graph. On "full" graphs the map is `Nystrom(formula="kernel")`, in which k(x, x) counts: it
    gives training rows back approximately, and new rows better coordinates than the exact `formula="laplacian"`
    (coil20, 7 images each, 20 dimensions: 15 against 58 % error of the nearest neighbour). On neighbour graphs a new
    row links only to the rows it lists itself, which gives training rows their coordinates up to about a tenth.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from manifast import LaplacianEigenmaps
    >>> X = load_digits().data
    >>> model = LaplacianEigenmaps(n_components=2).fit(X[:1000])
    >>> model.transform(X[1000:]).shape
    (797, 2)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_neighbors: int = 8,
        affinity: str = "heat",
        beta: Any = None,
        constraint: str = "degree",
        metric: str = "euclidean",
        extension: Any = None,
        connect: bool = True,
        mode: str = "union",
        neighbors: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.affinity = affinity
        self.beta = beta
        self.constraint = constraint
        self.metric = metric
        self.extension = extension
        self.connect = connect
        self.mode = mode
        self.neighbors = neighbors
        self.verbose = verbose

    @property
    def _sparse(self) -> bool:  # type: ignore[override]
        return self.affinity in ("heat", "binary", "precomputed")

    @property
    def _some_distances(self) -> bool:  # type: ignore[override]
        return self.affinity != "full"

    @property
    def _interpolates(self) -> bool:  # type: ignore[override]
        return self.affinity == "precomputed" and self.constraint == "degree"

    def _objective(self) -> objectives.ObjectiveBuilder:
        return choice(objectives.Laplacian, self)

    @property
    def affinity_matrix_(self) -> Any:
        """The graph; a full one is not kept but made again from the rows."""
        if not hasattr(self, "_source"):
            raise AttributeError("affinity_matrix_ exists after fit")
        return self._source.weights


class DiffusionMaps(Composed):
    """Diffusion maps (Coifman and Lafon 2006) with a map for new rows.

    Eigenvectors of a random walk on the graph of rows, Pψ_j = λ_j ψ_j, times λ_j^t: Euclidean distances in the
    embedding are those of the walk after t steps. Weights k_ij are first divided by (q_i q_j)^alpha, q the sums of the
    rows of k, which takes out the density of the rows.

    Parameters
    ----------
    n_components : int, default 2
    n_neighbors : int or None, default None
        Neighbour graph with heat weights; None is the full graph.
    alpha : float, default 0.5
        From 0 (weights as they are) to 1 (no influence of density).
    diffusion_time : float, default 1.0
        t; 0 leaves the eigenvectors as they are.
    beta : None, "local", "mean" or float, default None
        Width of the heat weights exp(-d²/beta): "local", one width per row from its nearest, as in
        `manifast.graphs.knn_graph`; "mean", the mean squared distance over all pairs of rows; or a number. None is
        "local" for neighbour graphs and "mean" for full ones.
    metric : {"euclidean", "cosine", "precomputed"}, default "euclidean"
        What distances are: plain ones, 1 - cos of the angle between rows, or those in X. For "precomputed" `fit` takes
        the n × n matrix of distances, dense, or sparse with those of neighbours, as scikit-learn's
        `KNeighborsTransformer` makes it, and `transform` the distances of new rows to the training rows.
    extension : None, str or extension, default None
        The map for new rows; None is the step of the walk from the new row, divided by λ (Nyström).
    connect : bool, default True
        Join the components of a disconnected graph by the shortest missing edges, with a warning.
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
        Of the random walk, descending, without that of the constant.
    extension_ : the fitted map

    Notes
    -----
    Cost: `fit` takes O(n²p) for the full graph, O(n²d) per step of the eigensolver and an n × n matrix; with
    `n_neighbors` O(n²p) for the neighbours, about O(n log n) below 9 features, and O(nk) memory. A new row takes O(n(p
    + d)).

    `transform` of the training rows equals `embedding_` to rounding for the full graph.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from manifast import DiffusionMaps
    >>> X = load_digits().data
    >>> DiffusionMaps(n_components=3).fit(X[:500]).transform(X[500:]).shape
    (1297, 3)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_neighbors: int | None = None,
        alpha: float = 0.5,
        diffusion_time: float = 1.0,
        beta: Any = None,
        metric: str = "euclidean",
        extension: Any = None,
        connect: bool = True,
        neighbors: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.alpha = alpha
        self.diffusion_time = diffusion_time
        self.beta = beta
        self.metric = metric
        self.extension = extension
        self.connect = connect
        self.neighbors = neighbors
        self.verbose = verbose

    @property
    def _interpolates(self) -> bool:  # type: ignore[override]
        return not self._some_distances

    @property
    def _some_distances(self) -> bool:  # type: ignore[override]
        return self.n_neighbors is not None or given_lists(self.neighbors) is not None

    def _objective(self) -> objectives.ObjectiveBuilder:
        return choice(objectives.Diffusion, self)
