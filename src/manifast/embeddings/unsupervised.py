"""Embeddings without labels. Each is an objective (A, B), a solve, and a natural map for new rows."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from manifast import objectives
from manifast._gram import Kernel, kernel_features, settle
from manifast._paths import shortest_paths
from manifast._validation import Array, as_count, as_number, as_positive, is_sparse
from manifast.embeddings._base import (
    Embedding,
    affinity_graph,
    check_components,
    check_neighbors,
    find_bridges,
    join,
    neighbor_lists,
    solve,
    warn_components,
)
from manifast.extensions import (
    LandmarkIsomap,
    Nystrom,
    Reconstruction,
    SparseCode,
    affinity_mean,
    mean_squares,
    nystrom_factors,
)
from manifast.graphs import full_graph, heat_width, knn_graph, n_components_of
from manifast.kernels import _affine_product, neighbor_graph
from manifast.smoothers import KernelRidgeSmoother, LinearRidgeSmoother
from manifast.spectral import smallest_eigenvectors

__all__ = ["LGRM", "LTSA", "Isomap", "LaplacianEigenmaps", "LocalRegressionEmbedding", "LocallyLinearEmbedding"]

AFFINITIES = ("heat", "binary", "full", "l1", "precomputed")


class LaplacianEigenmaps(Embedding):
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
    beta : "mean" or float, default "mean"
        Width of the heat weights exp(-d²/beta); "mean" is the mean squared distance over all pairs of rows.
    extension : None, str or extension, default None
        The map for new rows. None is the natural one: the Nyström formula, or for "l1" the code of the new row. For
        "precomputed" `transform` takes the affinities of new rows to the training rows.
    connect : bool, default True
        Join the components of a disconnected graph by the shortest missing edges, with a warning.
    mode : {"union", "mutual"}, default "union"
        An edge where either row is among the nearest of the other, or only where both are.
    neighbors : (distances, indices), optional
        Nearest neighbours of the training rows from elsewhere, instead of the exact search.
    verbose : bool, default False

    Attributes
    ----------
    embedding_ : array of shape (n, n_components)
    eigenvalues_ : array of shape (n_components,)
    affinity_matrix_ : sparse matrix or array of shape (n, n)
    extension_ : the fitted map

    Notes
    -----
    `transform` of the training rows equals `embedding_` to rounding for "full" graphs (unless rows repeat) and for
    "precomputed" ones without a diagonal, which counts nowhere in the graph. On neighbour graphs a new row links only
    to the rows it lists itself, which gives training rows their coordinates up to about a tenth.

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
        beta: Any = "mean",
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
        self.extension = extension
        self.connect = connect
        self.mode = mode
        self.neighbors = neighbors
        self.verbose = verbose

    @property
    def _sparse(self) -> bool:  # type: ignore[override]
        return self.affinity in ("heat", "binary", "precomputed")

    @property
    def _interpolates(self) -> bool:  # type: ignore[override]
        return self.affinity in ("full", "precomputed")

    def _embed(self, X: Any, y: Any) -> None:
        n = X.shape[0]
        k = check_components(self.n_components, n - 1, "the rows less the constant vector")
        W, width = self._graph(X)
        objective = objectives.laplacian_eigenmaps(W)
        self.eigenvalues_, self.embedding_ = solve(objective, objective.A, k, X.dtype, self.verbose)
        self._affinity = W
        if self.affinity == "full" and not is_sparse(W):  # sparse where it had to be joined
            self._affinity, self._X, self._width = None, X, width
        self._extend(X, self._natural(X, width))

    @property
    def affinity_matrix_(self) -> Any:
        """The graph; a full one is not kept but made again from the rows."""
        if not hasattr(self, "_affinity"):
            raise AttributeError("affinity_matrix_ exists after fit")
        return full_graph(self._X, beta=self._width) if self._affinity is None else self._affinity

    def _natural(self, X: Any, width: Any) -> Any:
        if self.affinity == "precomputed":
            return None
        if self.affinity == "l1":
            return SparseCode().fit(X, self.embedding_)
        links = None if self.affinity == "full" else self.n_neighbors
        natural = Nystrom(n_neighbors=links, beta=width, weights="binary" if self.affinity == "binary" else "heat")
        return natural._learn(X, self.embedding_, self.eigenvalues_, links, width)

    def _graph(self, X: Any) -> tuple[Any, Any]:
        """The affinity matrix and the width of its heat weights."""
        if self.affinity not in AFFINITIES:
            raise ValueError(
                f"affinity must be one of {', '.join(map(repr, AFFINITIES))}. Got {self.affinity!r} instead."
            )
        if self.affinity == "precomputed":
            if X.shape[0] != X.shape[1]:
                raise ValueError(f"X must be a square affinity matrix for affinity='precomputed'. Got shape {X.shape}.")
            W: Any = without_diagonal(X)
            count = n_components_of(W)
            if count > 1:
                warn_components(count, "which a precomputed graph leaves as they are", "")
            return W, None
        return affinity_graph(self, X, self.affinity, self.beta, mode=self.mode)

    def _map(self, X: Any) -> Array:
        if self.extension is not None or self.affinity != "precomputed":
            return super()._map(X)
        # The eigenvector equation with the affinities of the new rows.
        mean = affinity_mean(X, self.embedding_)
        return (mean * nystrom_factors(self.eigenvalues_)).astype(X.dtype, copy=False)


class _LocalEmbedding(Embedding):
    """LLE, LTSA and local regression: a sum over neighbourhoods against the identity, Y'Y = I."""

    def _embed(self, X: Array, y: Any) -> None:
        n = X.shape[0]
        k = check_components(self.n_components, n - 1, "the rows less the constant vector")
        self._check_parameters(X, k)
        neighbors, bridges = self._neighborhoods(X)
        objective = self._objective(X, neighbors, bridges, k)
        self.eigenvalues_, self.embedding_ = solve(objective, objective.A, k, X.dtype, self.verbose)
        reg = getattr(self, "reg", 1e-3)
        self._extend(X, Reconstruction(min(self.n_neighbors, n), reg).fit(X, self.embedding_))

    def _check_parameters(self, X: Array, k: int) -> None:
        """What can be refused before any work."""

    def _neighborhoods(self, X: Array) -> tuple[Array, Array]:
        """Nearest others of every row, and the bridges between components of their graph."""
        k = check_neighbors(self.n_neighbors, X)
        _, neighbors = neighbor_lists(self.neighbors, X, k)
        return neighbors, find_bridges(self._joined(neighbors), X, self.connect)

    def _joined(self, neighbors: Array) -> Any:
        """The graph of rows that some neighbourhood brings together."""
        return star_graph(np.column_stack([np.arange(len(neighbors)), neighbors]))

    @abstractmethod
    def _objective(self, X: Array, neighbors: Array, bridges: Array, k: int) -> objectives.Objective:
        """The sum over these neighbourhoods and bridges."""


class LocallyLinearEmbedding(_LocalEmbedding):
    """Locally linear embedding (Roweis and Saul 2000) with a map for new rows.

    Every row is rebuilt from its nearest others with weights that sum to one; the embedding is rebuilt best by the same
    weights: the smallest eigenvectors of (I - W)'(I - W) but the constant one, with Y'Y = I.

    Parameters
    ----------
    n_components : int, default 2
    n_neighbors : int, default 8
    reg : float, default 1e-3
        Regularisation of the weights, relative to the trace of each local Gram matrix.
    extension : None, str or extension, default None
        The map for new rows; None is `Reconstruction` with the same neighbours and regularisation.
    connect : bool, default True
        Join the components of a disconnected neighbour graph by the shortest missing edges, with a warning.
    neighbors : (distances, indices), optional
        Nearest neighbours of the training rows from elsewhere, instead of the exact search.
    verbose : bool, default False

    Attributes
    ----------
    embedding_ : array of shape (n, n_components)
    eigenvalues_ : array of shape (n_components,)
        Their sum is the reconstruction error.
    extension_ : the fitted map

    Notes
    -----
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
        n_neighbors: int = 8,
        reg: float = 1e-3,
        extension: Any = None,
        connect: bool = True,
        neighbors: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.reg = reg
        self.extension = extension
        self.connect = connect
        self.neighbors = neighbors
        self.verbose = verbose

    def _objective(self, X: Array, neighbors: Array, bridges: Array, k: int) -> objectives.Objective:
        return objectives.reconstruction(X, neighbors, bridges, reg=as_positive(self.reg, "reg"))


class LTSA(_LocalEmbedding):
    """Local tangent space alignment (Zhang and Zha 2004) with a map for new rows.

    The tangent coordinates of the nearest others of every row are aligned: the smallest eigenvectors of the alignment
    matrix but the constant one, with Y'Y = I.

    Parameters
    ----------
    n_components : int, default 2
    n_neighbors : int, default 8
        More than `n_components`.
    extension : None, str or extension, default None
        The map for new rows; None is `Reconstruction` with the same neighbours.
    connect : bool, default True
        Join the components of a disconnected neighbour graph, with a warning.
    neighbors : (distances, indices), optional
        Nearest neighbours of the training rows from elsewhere, instead of the exact search.
    verbose : bool, default False

    Attributes
    ----------
    embedding_ : array of shape (n, n_components)
    eigenvalues_ : array of shape (n_components,)
    extension_ : the fitted map

    Notes
    -----
    `transform` of the training rows equals `embedding_` up to a few hundredths, less on dense samples. A row that is in
    nobody's neighbourhood is joined to its nearest, with a warning.

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
        n_neighbors: int = 8,
        extension: Any = None,
        connect: bool = True,
        neighbors: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.extension = extension
        self.connect = connect
        self.neighbors = neighbors
        self.verbose = verbose

    def _check_parameters(self, X: Array, k: int) -> None:
        if self.neighbors is None:
            check_local_dim(None, k, check_neighbors(self.n_neighbors, X), X.shape[1])

    def _objective(self, X: Array, neighbors: Array, bridges: Array, k: int) -> objectives.Objective:
        dim = check_local_dim(None, k, neighbors.shape[1], X.shape[1])
        return objectives.alignment(X, neighbors, bridges, dim=dim)

    def _joined(self, neighbors: Array) -> Any:
        return star_graph(neighbors)  # a row is not in its own neighbourhood, and may be in none


class LocalRegressionEmbedding(_LocalEmbedding):
    """Embedding by local regressions alone: the smallest eigenvectors of L_l (LGRM eq. 12) but the constant one.

    Parameters
    ----------
    n_components : int, default 2
    n_neighbors : int, default 8
        Size of a clique: a row and its n_neighbors - 1 nearest.
    gamma_local : float or None, default None
        Ridge of the local regressions; None is 0, which is stable after the local PCA.
    local_dim : int or None, default None
        Dimensions that the local PCA keeps; None is `n_components`.
    extension : None, str or extension, default None
        The map for new rows; None is `Reconstruction` with `n_neighbors` neighbours.
    connect : bool, default True
        Join the components of a disconnected neighbour graph, with a warning.
    neighbors : (distances, indices), optional
        The n_neighbors - 1 nearest others of the training rows from elsewhere, instead of the exact search.
    verbose : bool, default False

    Attributes
    ----------
    embedding_ : array of shape (n, n_components)
    eigenvalues_ : array of shape (n_components,)
    extension_ : the fitted map

    Notes
    -----
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
        n_neighbors: int = 8,
        gamma_local: float | None = None,
        local_dim: int | None = None,
        extension: Any = None,
        connect: bool = True,
        neighbors: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.gamma_local = gamma_local
        self.local_dim = local_dim
        self.extension = extension
        self.connect = connect
        self.neighbors = neighbors
        self.verbose = verbose

    def _check_parameters(self, X: Array, k: int) -> None:
        if self.neighbors is None:
            clique = check_neighbors(self.n_neighbors, X, least=2, others=False)
            check_local_dim(self.local_dim, k, clique, X.shape[1])
        local_ridge(self.gamma_local)

    def _neighborhoods(self, X: Array) -> tuple[Array, Array]:
        return cliques_of(self, X)

    def _objective(self, X: Array, neighbors: Array, bridges: Array, k: int) -> objectives.Objective:
        dim = check_local_dim(self.local_dim, k, neighbors.shape[1], X.shape[1])
        return objectives.alignment(X, neighbors, bridges, dim=dim, gamma=local_ridge(self.gamma_local))


def cliques_of(estimator: Any, X: Array) -> tuple[Array, Array]:
    """Every row with its n_neighbors - 1 nearest (LGRM eq. 3), and the bridges between components."""
    k = check_neighbors(estimator.n_neighbors, X, least=2, others=False)
    _, neighbors = neighbor_lists(estimator.neighbors, X, k - 1)
    cliques = np.column_stack([np.arange(X.shape[0]), neighbors]).astype(np.int64)
    return cliques, find_bridges(star_graph(cliques), X, estimator.connect)


def star_graph(cliques: Array) -> sp.csr_array:
    """The first of each clique joined to its others: connected where the cliques hang together."""
    n, k = cliques.shape
    ends = np.repeat(cliques[:, 0], k - 1), cliques[:, 1:].ravel()
    return sp.coo_array((np.ones(len(ends[0])), ends), shape=(n, n)).tocsr()


def without_diagonal(W: Any) -> Any:
    """A graph without self-loops, which count nowhere; a copy where there are some."""
    if not W.diagonal().any():
        return W
    W = W.copy()
    if is_sparse(W):
        W.setdiag(0.0)
        W.eliminate_zeros()
    else:
        np.fill_diagonal(W, 0.0)
    return W


def check_local_dim(value: Any, n_components: int, clique: int, features: int) -> int:
    """Dimensions of the tangent spaces: those of the embedding, or as many as a clique and the features have."""
    if value is not None:
        return as_count(value, "local_dim", maximum=min(clique - 1, features), why=f" for cliques of {clique} rows")
    if n_components >= clique:
        raise ValueError(
            f"n_neighbors must be more than n_components = {n_components}, so that a neighbourhood spans as many "
            f"dimensions. Got neighbourhoods of {clique} rows."
        )
    return min(n_components, features)


def local_ridge(value: Any) -> float:
    """gamma_local: by default none, as the local PCA already keeps the regressions well posed."""
    return 0.0 if value is None else as_number(value, "gamma_local", minimum=0.0)


class Isomap(Embedding):
    """Isomap (Tenenbaum et al. 2000), exact or with landmarks, with a map for new rows.

    Classical scaling of the shortest paths through the neighbour graph: leading eigenvectors of -½ H δ² H, times the
    roots of their eigenvalues.

    Parameters
    ----------
    n_components : int, default 2
    n_neighbors : int, default 8
    n_landmarks : int or None, default None
        Scale only the geodesics between that many landmarks and place all other rows by triangulation from them (de
        Silva and Tenenbaum 2003); None is exact Isomap, which holds an n × n matrix.
    random_state : int, default 0
        Which rows become landmarks.
    extension : None, str or extension, default None
        The map for new rows; None is `LandmarkIsomap` on the geodesics at hand.
    neighbors : (distances, indices), optional
        Nearest neighbours of the training rows from elsewhere, instead of the exact search.
    verbose : bool, default False

    Attributes
    ----------
    embedding_ : array of shape (n, n_components)
    eigenvalues_ : array of shape (n_components,)
        Descending.
    landmarks_ : int array
        Rows that serve as landmarks; all of them in the exact method.
    extension_ : the fitted map

    Notes
    -----
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
    _sparse = True

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_neighbors: int = 8,
        n_landmarks: int | None = None,
        random_state: int = 0,
        extension: Any = None,
        neighbors: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.n_landmarks = n_landmarks
        self.random_state = random_state
        self.extension = extension
        self.neighbors = neighbors
        self.verbose = verbose

    def _embed(self, X: Any, y: Any) -> None:
        n = X.shape[0]
        count = n
        if self.n_landmarks is not None:
            count = as_count(self.n_landmarks, "n_landmarks", maximum=n, why=f" for {n} rows, more than n_components")
            as_count(self.n_components, "n_components")
            if count <= self.n_components:
                raise ValueError(
                    f"n_landmarks must be more than n_components = {self.n_components}. Got {count} instead."
                )
        d = check_components(self.n_components, count - 1, "one less than the rows or landmarks")
        k = check_neighbors(self.n_neighbors, X)
        landmarks = np.arange(n)
        if count < n:
            landmarks = np.sort(np.random.default_rng(self.random_state).choice(n, count, replace=False))
        distances, neighbors = neighbor_lists(self.neighbors, X, k)
        graph = neighbor_graph(distances.astype(np.float64, copy=False), neighbors, weights="distance")
        graph = join(graph, X, True, "distance")
        geodesics = shortest_paths(graph, landmarks)
        between = geodesics if count == n else geodesics[:, landmarks]
        values, vectors = classical_scaling(between, d, self.verbose)
        placed = np.ascontiguousarray(vectors * np.sqrt(np.maximum(values, 0.0)))
        self.eigenvalues_, self.landmarks_ = values, landmarks
        # All pairs are symmetric to rounding, so that rows serve as columns.
        to_landmarks = geodesics if count == n else geodesics.T
        natural = LandmarkIsomap(n_neighbors=k)._learn(X, to_landmarks, mean_squares(between), placed, k)
        self.embedding_ = (placed if count == n else natural.place(to_landmarks)).astype(X.dtype, copy=False)
        self._extend(X, natural)
        if self._exponent:  # back in the units of the data
            with np.errstate(over="ignore"):
                self.embedding_ = np.ldexp(self.embedding_, self._exponent)
                self.eigenvalues_ = np.ldexp(values, 2 * self._exponent)

    def _map(self, X: Any) -> Array:
        mapped = super()._map(X)
        return np.ldexp(mapped, self._exponent) if self._exponent else mapped


def classical_scaling(geodesics: Array, d: int, verbose: bool) -> tuple[Array, Array]:
    """Largest eigenvalues of -½ H δ² H and their vectors, descending; signs fixed."""
    n = len(geodesics)
    squares = np.square(geodesics)
    constant = np.ones(n)
    if n <= 400:
        means = squares.mean(axis=0)
        centred = 0.5 * (squares - means - squares.mean(axis=1)[:, None] + means.mean())
        A: Any = 0.5 * (centred + centred.T)
    else:
        # Vectors are kept orthogonal to the constant, which does the centring.
        A = LinearOperator((n, n), matvec=lambda v: 0.5 * (squares @ v), matmat=lambda V: 0.5 * (squares @ V))
    values, vectors = smallest_eigenvectors(A, d, null=constant, verbose=verbose)
    # Rounding of the geodesics, not a dimension: dividing by it would blow up new rows.
    values = np.where(values > -1e-10 * np.abs(values).max(initial=0.0), 0.0, values)
    if values[-1] >= 0:
        warnings.warn(
            f"only {int((values < 0).sum())} of {d} dimensions carry positive eigenvalues; the others are zero. Use "
            "fewer components.",
            UserWarning,
            stacklevel=5,
        )
    return -values, vectors


class LGRM(Embedding):
    """Local and global regressive mapping (Yang et al. 2010): an embedding and its kernel map in one problem.

    min tr Y'(L_loc + μ L_g)Y with Y'Y = I (eqs. 19 and 23): local regressions say which rows belong together, a global
    ridge regression in the kernel's space keeps the embedding predictable, and predicts new rows (eq. 22).

    Parameters
    ----------
    n_components : int, default 2
    n_neighbors : int, default 8
        Size of a clique: a row and its n_neighbors - 1 nearest. For local="le" neighbours of a row.
    mu : float, default 1e-3
        Weight of the global regression.
    gamma : float, default 1e-4
        Ridge of the global regression.
    gamma_local : float or None, default None
        Ridge of the local regressions; None is 0, which is stable after the local PCA.
    local_dim : int or None, default None
        Dimensions that the local PCA keeps; None is `n_components`.
    kernel : {"rbf", "linear", "poly", "precomputed"}, default "rbf"
        For "precomputed" X is the kernel matrix, and `transform` takes the kernel of new rows with the training rows.
    sigma : float or None, default None
        Width of the kernel exp(-d²/sigma²); None is the median distance between rows.
    degree, coef0 : int and float, default 3 and 1.0
        Of the polynomial kernel (x·y + coef0)^degree.
    local : {"regression", "le", "lle", "ltsa"} or matrix of shape (n, n), default "regression"
        The local Laplacian (eq. 23). "ltsa" is "regression" without ridge; "le" is the heat-weighted neighbour graph's.
    beta : "mean" or float, default "mean"
        Width of the heat weights of local="le".
    reg : float, default 1e-3
        Regularisation of the weights of local="lle".
    connect : bool, default True
        Join the components of a disconnected neighbour graph, with a warning.
    neighbors : (distances, indices), optional
        The n_neighbors - 1 nearest others of the training rows from elsewhere, instead of the exact search.
    verbose : bool, default False

    Attributes
    ----------
    embedding_ : array of shape (n, n_components)
    eigenvalues_ : array of shape (n_components,)
    dual_coef_ : array of shape (n, n_components)
    intercept_ : array of shape (n_components,)

    Notes
    -----
    `transform` of the training rows is the global regression of `embedding_`: it differs by the residual that the
    objective weighs with `mu`: a thousandth of the embedding's size where the kernel can follow the embedding, much
    more where it cannot, as a linear kernel on a curved manifold.

    Examples
    --------
    >>> from sklearn.datasets import make_swiss_roll
    >>> from manifast import LGRM
    >>> X, _ = make_swiss_roll(1000, random_state=0)
    >>> LGRM(n_neighbors=8, sigma=10.0).fit(X[:800]).transform(X[800:]).shape
    (200, 2)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_neighbors: int = 8,
        mu: float = 1e-3,
        gamma: float = 1e-4,
        gamma_local: float | None = None,
        local_dim: int | None = None,
        kernel: str = "rbf",
        sigma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        local: Any = "regression",
        beta: Any = "mean",
        reg: float = 1e-3,
        connect: bool = True,
        neighbors: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.mu = mu
        self.gamma = gamma
        self.gamma_local = gamma_local
        self.local_dim = local_dim
        self.kernel = kernel
        self.sigma = sigma
        self.degree = degree
        self.coef0 = coef0
        self.local = local
        self.beta = beta
        self.reg = reg
        self.connect = connect
        self.neighbors = neighbors
        self.verbose = verbose

    def _embed(self, X: Array, y: Any) -> None:
        n = X.shape[0]
        d = check_components(self.n_components, n - 1, "the rows less the constant vector")
        mu, gamma = as_positive(self.mu, "mu"), as_positive(self.gamma, "gamma")
        kernel = Kernel.of(self.kernel, X, sigma=self._in_units(self.sigma, 1), degree=self.degree, coef0=self.coef0)
        objective = self._objective(X, d)
        smoother: Any
        if kernel.name == "linear" and X.shape[1] < n:
            smoother = LinearRidgeSmoother(X.astype(np.float64), gamma)
        else:
            smoother = KernelRidgeSmoother(kernel.matrix(X), gamma)
        A = smoother.add_penalty(objective.A, mu)
        self.eigenvalues_, Y = solve(objective, A, d, np.float64, self.verbose)
        dual, intercept = smoother.fit(Y)
        self.embedding_ = Y.astype(X.dtype, copy=False)
        self._linear, self._offset = None, intercept
        if isinstance(smoother, LinearRidgeSmoother):
            # The same map in dual form: X' dual are the coefficients, and the residual is γ times the dual.
            self._linear = dual
            dual = (Y - X.astype(np.float64) @ dual - intercept) / gamma
        self.dual_coef_, self.intercept_ = settle(dual, Y, X.dtype), intercept.astype(X.dtype, copy=False)
        self._kernel = kernel
        self._X = None if self._linear is not None or kernel.name == "precomputed" else X

    def _objective(self, X: Array, d: int) -> objectives.Objective:
        """The local Laplacian L_loc of (23)."""
        if not isinstance(self.local, str):
            return objectives.given(self.local, X.shape[0])
        if self.local not in ("regression", "le", "lle", "ltsa"):
            raise ValueError(
                f"local must be 'regression', 'le', 'lle', 'ltsa' or a matrix. Got {self.local!r} instead."
            )
        if self.kernel == "precomputed":
            X = kernel_features(X)
        if self.local == "le":
            k = check_neighbors(self.n_neighbors, X)
            width = heat_width(X, self._in_units(self.beta, 2))
            W = join(knn_graph(X, k, beta=width, neighbors=self.neighbors), X, self.connect, "heat", width)
            return objectives.Objective(objectives.laplacian_eigenmaps(W).A)
        cliques, bridges = cliques_of(self, X)
        if self.local == "lle":
            return objectives.reconstruction(X, cliques[:, 1:], bridges, reg=as_positive(self.reg, "reg"))
        dim = check_local_dim(self.local_dim, d, cliques.shape[1], X.shape[1])
        ridge = 0.0 if self.local == "ltsa" else local_ridge(self.gamma_local)
        return objectives.alignment(X, cliques, bridges, dim=dim, gamma=ridge)

    def _map(self, X: Array) -> Array:
        if self._linear is not None:
            return _affine_product(X.astype(np.float64), self._linear, self._offset).astype(X.dtype, copy=False)
        return self._kernel.apply(X, self._X, self.dual_coef_, self.intercept_).astype(X.dtype, copy=False)
