"""Maps by the nearest training rows: weighted means, barycentres, and the Nyström formulas."""

from __future__ import annotations

from typing import Any

import numpy as np

from manifast._linalg.memory import LANDMARKS, check_room
from manifast._validation import Array, as_count, as_positive
from manifast._widths import public_width
from manifast.extensions.base import Extension
from manifast.graphs import METRICS, check_metric, distances_of, graph_of_lists, heat_width
from manifast.kernels import laplacian
from manifast.maps import Barycenter, NeighborMean


class _OfNeighbors(Extension):
    """A map that keeps its training rows and their embedding."""

    map_: NeighborMean | Barycenter

    @property
    def X_(self) -> Any:
        return self.map_.rows

    @property
    def Y_(self) -> Array:
        return self.map_.images


class LatentVariable(_OfNeighbors):
    """Mean of the embeddings of the nearest training rows, weighted by the heat kernel: LVM of SPARSE.

    y(x) = Σ exp(-|x - x_i|²/beta) y_i / Σ exp(-|x - x_i|²/beta) over the nearest; distances count relative to the
    nearest, so that not all weights underflow.

    Parameters
    ----------
    n_neighbors : int, default 3
        Cut to the number of training rows.
    beta : "mean", "local" or float, default "mean"
        "mean" is the mean squared distance between training rows, "local" one width per row as in
        `manifast.graphs.knn_graph`, of a new row from its nearest training rows.
    metric : {"euclidean", "cosine", "precomputed"}, default "euclidean"
        For "precomputed" X is the matrix of distances (n, n), dense or sparse, and new rows are their distances to the
        training rows.

    Notes
    -----
    Cost: `fit` takes O(np). A new row takes O(np) for its k nearest, and O(kd).

    Examples
    --------
    >>> import numpy as np
    >>> from manifast.extensions import LatentVariable
    >>> X = np.arange(6.0)[:, None]
    >>> LatentVariable(n_neighbors=2).fit(X, X).predict([[2.5]])
    array([[2.5]])
    """

    _sparse = True
    _metrics = METRICS

    map_: NeighborMean

    def __init__(self, n_neighbors: int = 3, beta: Any = "mean", metric: str = "euclidean") -> None:
        self.n_neighbors = n_neighbors
        self.beta = beta
        self.metric = metric

    def _fit(self, X: Any, Y: Array) -> NeighborMean:
        k = min(as_count(self.n_neighbors, "n_neighbors"), X.shape[0])
        return self._learn(X, Y, k, heat_width(X, self.beta, self.metric, ())).map_

    def _learn(self, X: Any, Y: Array, k: int, width: Any) -> LatentVariable:
        """From a width that is known, or the roots of those of all rows."""
        self.beta_, self.n_features_in_ = public_width(width), X.shape[1]
        self.map_ = NeighborMean.of(X, Y, min(k, X.shape[0]), width, metric=self.metric)
        return self


def natural_mean(X: Any, Y: Array, links: int, width: Any, metric: str = "euclidean") -> LatentVariable:
    """The mean over the rows that a new row would be joined to, with the graph's own width or roots of widths."""
    beta = "local" if isinstance(width, np.ndarray) else width
    return LatentVariable(links, beta, metric)._learn(X, Y, links, width)


class Reconstruction(_OfNeighbors):
    """Rebuild a new row from its nearest training rows and take the same combination of their embeddings.

    y = Σ_i w_i y_i, where the weights sum to one and minimise |x - Σ_i w_i x_i|² (Saul and Roweis 2003; LGRM eq. 2),
    with `reg` times the trace of the local Gram matrix on its diagonal. The map jumps where the set of neighbours
    changes. A training row gets back its own coordinates up to the order of `reg`.

    Parameters
    ----------
    n_neighbors : int, default 10
        Cut to the number of training rows.
    reg : float, default 1e-3
    metric : {"euclidean", "cosine"}, default "euclidean"
        By which the nearest rows are found.

    Notes
    -----
    Cost: `fit` keeps the rows. A new row takes O(np) for its k nearest, and O(k²(k + p)).

    Examples
    --------
    >>> import numpy as np
    >>> from manifast.extensions import Reconstruction
    >>> X = np.arange(6.0)[:, None]
    >>> Reconstruction(n_neighbors=2, reg=1e-9).fit(X, 2 * X).predict([[2.5]]).round(6)
    array([[5.]])
    """

    _metrics = ("euclidean", "cosine")

    map_: Barycenter

    def __init__(self, n_neighbors: int = 10, reg: float = 1e-3, metric: str = "euclidean") -> None:
        self.n_neighbors = n_neighbors
        self.reg = reg
        self.metric = metric

    def _fit(self, X: Array, Y: Array) -> Barycenter:
        k = min(as_count(self.n_neighbors, "n_neighbors"), X.shape[0])
        check_metric(self.metric, self._metrics)
        return Barycenter(X, Y, k, as_positive(self.reg, "reg"), self.metric)


class Nystrom(_OfNeighbors):
    """The Nyström formula: the eigenvector equation of eigenmaps, read for new rows (Bengio et al. 2003, 2004).

    "laplacian": z(x) = Σ_i k(x, x_i) z_i / (d(x) (1 - λ)) with d(x) = Σ_i k(x, x_i), over the nearest training rows, a
    training row at distance 0 left out. Exact for the training rows of a full graph; on a neighbour graph a training
    row sees only the neighbours it lists, not those that list it, so its coordinates come back approximately.

    "kernel": z(x) = Σ_i k(x, x_i) z_i / (d(x) λ), where k(x, x) = 1 counts too and λ is an eigenvalue of the normalised
    kernel K(x, y) / d(x) (NSSE, sec. 2.3). Its eigenvectors are those of K(x, y) / √(d(x) d(y)), divided by √d. It has
    a value where the eigenvalue of the Laplacian is near 1, and gives training rows of Laplacian eigenmaps back up to
    what k(x, x) changes.

    Parameters
    ----------
    n_neighbors : int or None, default None
        Training rows that a new row links to; None is all of them.
    beta : "mean", "local" or float, default "mean"
        Width of the heat weights exp(-d²/beta); "mean" is the mean squared distance between training rows; "local",
        with `n_neighbors`, is one width per row as in `manifast.graphs.knn_graph`.
    weights : {"heat", "binary"}, default "heat"
    formula : {"auto", "laplacian", "kernel"}, default "auto"
        "auto" is "kernel" where all training rows count, "laplacian" with `n_neighbors`.
    metric : {"euclidean", "cosine", "precomputed"}, default "euclidean"
        For "precomputed" X is the matrix of distances (n, n), dense or sparse, and new rows are their distances to the
        training rows.

    Attributes
    ----------
    eigenvalues_ : array of shape (d,)
        Rayleigh quotients of the columns of Y on the graph of the training rows, of the Laplacian or of the normalised
        kernel as the formula has it; 0 and 1 for a column of zeros, which stays one.

    Notes
    -----
    Cost: `fit` takes O(n²p) at most. A new row takes O(np) for its k nearest and O(kd), or O(n(p + d)) for all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from manifast import LaplacianEigenmaps
    >>> from manifast.extensions import Nystrom
    >>> X = np.linspace(0, 1, 30)[:, None] ** [1, 2]
    >>> model = LaplacianEigenmaps(n_components=1, affinity="full").fit(X)
    >>> again = Nystrom(formula="laplacian").fit(X, model.embedding_).predict(X)
    >>> bool(np.allclose(again, model.embedding_))
    True
    """

    _sparse = True
    _metrics = METRICS

    map_: NeighborMean

    def __init__(
        self,
        n_neighbors: int | None = None,
        beta: Any = "mean",
        weights: str = "heat",
        formula: str = "auto",
        metric: str = "euclidean",
    ) -> None:
        self.n_neighbors = n_neighbors
        self.beta = beta
        self.weights = weights
        self.formula = formula
        self.metric = metric

    def _check_rows(self, n: int) -> None:
        if self.n_neighbors is None:
            check_room(n, 2, f"use n_neighbors, or {LANDMARKS}", lapack=False)

    def _fit(self, X: Any, Y: Array) -> NeighborMean:
        n = X.shape[0]
        if n < 2:
            raise ValueError("X must have at least 2 rows for the Nyström map. Got 1 instead.")
        k = None if self.n_neighbors is None else min(as_count(self.n_neighbors, "n_neighbors"), n)
        if self.weights not in ("heat", "binary"):
            raise ValueError(f"weights must be 'heat' or 'binary'. Got {self.weights!r} instead.")
        if self.formula not in ("auto", "laplacian", "kernel"):
            raise ValueError(f"formula must be 'auto', 'laplacian' or 'kernel'. Got {self.formula!r} instead.")
        distances = distances_of(X, self.metric)
        width = distances.heat_width(self.beta, None if k is None else ())
        if k is None:
            W: Any = distances.complete(self.weights, width)
        else:
            beta = width if self.weights == "heat" else None
            W = graph_of_lists(*distances.nearest(min(k, n - 1)), self.weights, beta)
        L, degrees = laplacian(W)
        sizes = np.abs(Y).max(axis=0).astype(np.float64)
        tall = Y / np.where(sizes > 0, sizes, 1.0)
        energies, masses = np.einsum("ij,ij->j", tall, L @ tall), np.einsum("ij,i,ij->j", tall, degrees, tall)
        lost = np.flatnonzero((masses <= 0) & (sizes > 0))
        if len(lost):
            raise ValueError(
                f"beta must be so large that weights between rows do not vanish. Got {self.beta!r}, at which columns "
                f"{lost.tolist()} of Y are 0 on all rows with a weight."
            )
        if self.formula == "laplacian" or (self.formula == "auto" and k is not None):
            quotients = energies / np.where(masses > 0, masses, 1.0)
            refuse_out_of_reach(quotients)
            return self._learn(X, Y, quotients, k, width).map_
        # With k(x, x) = 1 the degrees grow by 1, and the Laplacian stays.
        masses = masses + np.einsum("ij,ij->j", tall, tall)
        quotients = 1.0 - energies / np.where(masses > 0, masses, 1.0)
        lost = out_of_kernel(quotients)
        if len(lost):
            raise ValueError(
                f"the Nyström map has no value for columns {lost.tolist()}, whose eigenvalues with the kernel are "
                f"within {_LEAST_EIGENVALUE:g} of 0: use fewer components or another extension."
            )
        return self._learn_by_kernel(X, Y, quotients, k, width).map_

    def _learn(self, X: Any, Y: Array, eigenvalues: Array, k: int | None, width: Any) -> Nystrom:
        """From an embedding whose eigenvalues with the Laplacian are known: the formula "laplacian"."""
        self.eigenvalues_, self.beta_, self.n_features_in_ = eigenvalues, public_width(width), X.shape[1]
        self.map_ = self._mean(X, Y, k, width, finite_factors(eigenvalues), others=True)
        return self

    def _learn_by_kernel(self, X: Any, Y: Array, eigenvalues: Array, k: int | None, width: Any) -> Nystrom:
        """The same by those of the normalised kernel: the formula "kernel"; where one is near 0, the plain mean."""
        self.eigenvalues_, self.beta_, self.n_features_in_ = eigenvalues, public_width(width), X.shape[1]
        known = eigenvalues.astype(np.float64)
        known[out_of_kernel(eigenvalues)] = 1.0
        factors = 1.0 / known
        self.map_ = self._mean(X, Y, k, width, factors, others=False)
        return self

    def _mean(self, X: Any, Y: Array, k: int | None, width: Any, factors: Array, *, others: bool) -> NeighborMean:
        width = width if self.weights == "heat" else np.inf
        return NeighborMean.of(X, Y, k, width, others=others, factors=factors, metric=self.metric)


def natural_nystrom(
    X: Any,
    Y: Array,
    eigenvalues: Array,
    links: int | None,
    width: Any,
    *,
    weights: str = "heat",
    metric: str = "euclidean",
    by_kernel: bool = False,
) -> Nystrom:
    """The Nyström map of an embedding whose eigenvalues are known, with the graph's own links and widths."""
    made = Nystrom(links, "local" if isinstance(width, np.ndarray) else width, weights, metric=metric)
    return (made._learn_by_kernel if by_kernel else made._learn)(X, Y, eigenvalues, links, width)


_LEAST_EIGENVALUE = 1e-6  # of the kernel: below, rounding of float32 distances shows in the map


def out_of_reach(eigenvalues: Array) -> Array:
    """Columns with λ near 1, for which the Nyström formula has no value."""
    return np.flatnonzero(np.abs(1.0 - eigenvalues) < 1e-3)


def out_of_kernel(eigenvalues: Array) -> Array:
    """The same for eigenvalues of the normalised kernel, which are near 0 there."""
    return np.flatnonzero(np.abs(eigenvalues) < _LEAST_EIGENVALUE)


def refuse_out_of_reach(eigenvalues: Array) -> None:
    lost = out_of_reach(eigenvalues)
    if len(lost):
        raise ValueError(
            f"the Nyström map has no value for columns {lost.tolist()}, whose eigenvalues are within 1e-3 of 1: use "
            "fewer components or another extension."
        )


def finite_factors(eigenvalues: Array) -> Array:
    """1 / (1 - λ), and 1 where the formula has no value: the mean of the neighbours."""
    gaps = 1.0 - eigenvalues
    gaps[out_of_reach(eigenvalues)] = 1.0
    return np.asarray(1.0 / gaps)
