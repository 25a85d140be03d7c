"""Maps for new points, f alone: fitted to rows X and any finished embedding Y of them.

Each has `fit(X, Y)` and `predict(X_new)`. A row's prediction has the same bits in any batch and on any number of
threads; predicting changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone

from manifast._local import reconstruct
from manifast._paths import landmark_map, shortest_paths
from manifast._validation import Array, as_count, as_matrix, as_number, as_positive
from manifast.graphs import as_rows, connect_components, full_graph, heat_width, knn_graph, nearest, unit_rows
from manifast.kernels import _affine_product, l1_code, laplacian, neighbor_graph, sq_distances

__all__ = ["Extension", "LandmarkIsomap", "Nystrom", "Reconstruction", "SparseCode"]

_CHUNK = 1 << 21  # distances held at once


class Extension(BaseEstimator):  # type: ignore[misc]
    """What all maps share: the training rows, their embedding, and the checks of both."""

    _sparse: ClassVar[bool] = False  # whether X may be a sparse matrix

    def fit(self, X: Any, Y: Any) -> Extension:
        """Learn the map from rows X (n, p) and their embedding Y (n, d)."""
        X, Y = self._check(X, Y)
        self._fit(X, Y)
        return self

    def predict(self, X: Any) -> Array:
        """Embedding of new rows."""
        if not hasattr(self, "X_"):
            raise ValueError(f"this {type(self).__name__} is not fitted: call fit(X, Y) first")
        return self._predict(self._rows(X, columns=self.X_.shape[1]))

    def _check(self, X: Any, Y: Any) -> tuple[Any, Array]:
        X = self._rows(X)
        Y = np.asarray(Y)
        Y = as_matrix(Y[:, None] if Y.ndim == 1 else Y, "Y")
        if Y.shape[0] != X.shape[0]:
            raise ValueError(f"Y must have one row per row of X, {X.shape[0]}. Got shape {Y.shape} instead.")
        return X, Y

    def _rows(self, X: Any, columns: int | None = None) -> Any:
        return as_rows(X, "X", columns=columns) if self._sparse else as_matrix(X, "X", columns=columns)

    def _fit(self, X: Any, Y: Array) -> None:
        raise NotImplementedError

    def _predict(self, X: Any) -> Array:
        raise NotImplementedError


class Reconstruction(Extension):
    """Rebuild a new row from its nearest training rows and take the same combination of their embeddings.

    The weights sum to one and minimise the reconstruction error (Saul and Roweis 2003; LGRM eq. 2), with `reg` times
    the trace of the local Gram matrix on its diagonal. The map jumps where the set of neighbours changes. A training
    row gets back its own coordinates up to the order of `reg`.

    Parameters
    ----------
    n_neighbors : int, default 10
        Cut to the number of training rows.
    reg : float, default 1e-3

    Examples
    --------
    >>> import numpy as np
    >>> from manifast.extensions import Reconstruction
    >>> X = np.arange(6.0)[:, None]
    >>> Reconstruction(n_neighbors=2, reg=1e-9).fit(X, 2 * X).predict([[2.5]]).round(6)
    array([[5.]])
    """

    def __init__(self, n_neighbors: int = 10, reg: float = 1e-3) -> None:
        self.n_neighbors = n_neighbors
        self.reg = reg

    def _fit(self, X: Array, Y: Array) -> None:
        self._k = min(as_count(self.n_neighbors, "n_neighbors"), X.shape[0])
        self._reg = as_positive(self.reg, "reg")
        self.X_, self.Y_ = X, Y

    def _predict(self, X: Array) -> Array:
        _, neighbors = nearest(self.X_, self._k, queries=X)
        return reconstruct(self.X_, self.Y_, X, neighbors, reg=self._reg)


class Nystrom(Extension):
    """The eigenvector equation of Laplacian eigenmaps, read as a formula for new rows (Bengio et al. 2003).

    z(x) = Σ_i k(x, x_i) z_i / (d(x) (1 - λ)) with d(x) = Σ_i k(x, x_i), over the nearest training rows, a training row
    at distance 0 left out. Exact for the training rows of a full graph; on a neighbour graph a training row sees only
    the neighbours it lists, not those that list it, so its coordinates come back approximately.

    Parameters
    ----------
    n_neighbors : int or None, default None
        Training rows that a new row links to; None is all of them.
    beta : "mean" or float, default "mean"
        Width of the heat weights exp(-d²/beta); "mean" is the mean squared distance between training rows.
    weights : {"heat", "binary"}, default "heat"

    Attributes
    ----------
    eigenvalues_ : array of shape (d,)
        Given to `fit`, or the Rayleigh quotient of each column of Y on the graph of the training rows.

    Examples
    --------
    >>> import numpy as np
    >>> from manifast import LaplacianEigenmaps
    >>> from manifast.extensions import Nystrom
    >>> X = np.linspace(0, 1, 30)[:, None] ** [1, 2]
    >>> model = LaplacianEigenmaps(n_components=1, affinity="full").fit(X)
    >>> again = Nystrom().fit(X, model.embedding_).predict(X)
    >>> bool(np.allclose(again, model.embedding_))
    True
    """

    _sparse = True

    def __init__(self, n_neighbors: int | None = None, beta: Any = "mean", weights: str = "heat") -> None:
        self.n_neighbors = n_neighbors
        self.beta = beta
        self.weights = weights

    def _fit(self, X: Any, Y: Array) -> None:
        n = X.shape[0]
        k = None if self.n_neighbors is None else min(as_count(self.n_neighbors, "n_neighbors"), n)
        if self.weights not in ("heat", "binary"):
            raise ValueError(f"weights must be 'heat' or 'binary'. Got {self.weights!r} instead.")
        width = heat_width(X, self.beta)
        if k is None:
            W: Any = full_graph(X, weights=self.weights, beta=width)
        else:
            W = knn_graph(X, min(k, n - 1), weights=self.weights, beta=width)
        L, degrees = laplacian(W)
        tall = Y.astype(np.float64)
        quotients = np.einsum("ij,ij->j", tall, L @ tall) / np.einsum("ij,i,ij->j", tall, degrees, tall)
        nystrom_factors(quotients)
        self._learn(X, Y, quotients, k, width)

    def _learn(self, X: Any, Y: Array, eigenvalues: Array, k: int | None, width: float) -> Nystrom:
        """From an embedding whose eigenvalues are known."""
        self.X_, self.Y_, self.eigenvalues_, self.beta_, self._k = X, Y, eigenvalues, width, k
        return self

    def _predict(self, X: Any) -> Array:
        factors = nystrom_factors(self.eigenvalues_)
        out = np.empty((X.shape[0], self.Y_.shape[1]), dtype=np.result_type(X.dtype, self.Y_.dtype))
        for rows in _chunks(X.shape[0], self._k or self.X_.shape[0]):
            out[rows] = self._mean(X[rows]) * factors
        return out

    def _mean(self, X: Any) -> Array:
        """Mean of the embeddings of linked rows, weighted by the kernel."""
        if self._k is None:
            squares, neighbors = sq_distances(X, self.X_).astype(np.float64, copy=False), None
        else:
            distances, neighbors = nearest(self.X_, self._k, queries=X)
            squares = distances.astype(np.float64) ** 2
        others = squares > 0
        # Relative to the nearest other row, so that not all weights underflow; a constant factor cancels.
        closest = np.min(squares, axis=1, where=others, initial=np.inf, keepdims=True)
        weights = np.where(others, 1.0, 0.0)
        if self.weights == "heat":
            weights[others] = np.exp(-(squares - np.where(np.isfinite(closest), closest, 0.0))[others] / self.beta_)
        weights[~others.any(axis=1)] = 1.0  # nothing but copies of the row: their mean
        return weighted_mean(weights, neighbors, self.Y_)


def nystrom_factors(eigenvalues: Array) -> Array:
    """1 / (1 - λ); refuses columns with λ near 1, which the formula cannot reach."""
    gaps = 1.0 - eigenvalues
    bad = np.flatnonzero(np.abs(gaps) < 1e-3)
    if len(bad):
        raise ValueError(
            f"the Nyström map has no value for columns {bad.tolist()}, whose eigenvalues are within 1e-3 of 1: use "
            "fewer components or another extension."
        )
    return 1.0 / gaps


def weighted_mean(weights: Array, neighbors: Array | None, Y: Array) -> Array:
    """Σ_j w_ij Y[neighbors_ij] / Σ_j w_ij in float64, summed in the order of j for every row; None: all rows of Y."""
    if neighbors is None:
        sums = _affine_product(weights, np.column_stack([Y, np.ones(len(Y))]).astype(np.float64))
        return sums[:, :-1] / sums[:, -1:]
    total = np.zeros(len(weights))
    out = np.zeros((len(weights), Y.shape[1]))
    for j in range(weights.shape[1]):
        total += weights[:, j]
        out += weights[:, j, None] * Y[neighbors[:, j]]
    return out / total[:, None]


class LandmarkIsomap(Extension):
    """Triangulate a new row from its geodesic distances to the training rows (de Silva and Tenenbaum 2003).

    Its geodesics δ run through its nearest training rows; y = -½ (δ² - mean δ² of the training rows) · Y (Y'Y)^-1. For
    Isomap's own embedding training rows get back their coordinates up to what the geodesics miss in d dimensions.

    Parameters
    ----------
    n_neighbors : int, default 10

    Examples
    --------
    >>> import numpy as np
    >>> from manifast.extensions import LandmarkIsomap
    >>> X = np.arange(8.0)[:, None]
    >>> LandmarkIsomap(n_neighbors=2).fit(X, X - 3.5).predict([[2.25]]).round(6)
    array([[-1.25]])
    """

    _sparse = True

    def __init__(self, n_neighbors: int = 10) -> None:
        self.n_neighbors = n_neighbors

    def _fit(self, X: Any, Y: Array) -> None:
        n = X.shape[0]
        k = min(as_count(self.n_neighbors, "n_neighbors"), n - 1)
        W = neighbor_graph(*nearest(X, k), weights="distance")
        W = connect_components(W, X, weights="distance")
        geodesics = shortest_paths(W)
        self._learn(X, geodesics, mean_squares(geodesics), Y, k)

    def _learn(self, X: Any, geodesics: Array, mean_sq: Array, Y: Array, k: int) -> LandmarkIsomap:
        """From the geodesics of all rows to the landmarks (n, landmarks) and the landmarks' embedding."""
        Y64 = Y.astype(np.float64)
        self.X_, self._k, self._dtype = X, k, Y.dtype
        self._geodesics, self._mean_sq = np.ascontiguousarray(geodesics), mean_sq
        self._projection = np.ascontiguousarray(Y64 @ np.linalg.pinv(Y64.T @ Y64, hermitian=True))
        return self

    def place(self, geodesics: Array) -> Array:
        """Embedding of rows whose geodesics to the landmarks are known, (m, landmarks)."""
        return _affine_product(-0.5 * (np.square(geodesics) - self._mean_sq), self._projection)

    def _predict(self, X: Any) -> Array:
        distances, neighbors = nearest(self.X_, self._k, queries=X)
        zero = np.zeros(self._projection.shape[1])
        out = landmark_map(
            distances.astype(np.float64), neighbors, self._geodesics, self._mean_sq, self._projection, zero
        )
        return out.astype(np.result_type(X.dtype, self._dtype), copy=False)


class SparseCode(Extension):
    """Code a new row by the training rows and take the mean of their embeddings, weighted by the code (SPARSE eq. 9).

    The code is the one of smallest L1 norm, with errors allowed in every feature at the same price; y = Σ_i |a_i| y_i /
    Σ_i |a_i|. A row whose code is empty gets the embedding of its nearest training row.

    Parameters
    ----------
    lam : float, default 0.0
        Weight of the L1 norm; 0 is the limit, an exact code.
    errors : bool, default True
        Code against [X I] instead of X alone.
    power : float, default 1
        Weights |a|^power: 1 as in the paper, 2 is often better.
    normalize : bool, default True
        Scale all rows to unit norm first.

    Examples
    --------
    >>> import numpy as np
    >>> from manifast.extensions import SparseCode
    >>> X, Y = np.eye(3), np.array([[0.0], [1.0], [2.0]])
    >>> SparseCode(errors=False).fit(X, Y).predict([[1.0, 1.0, 0.0]]).round(6)
    array([[0.5]])
    """

    def __init__(self, lam: float = 0.0, errors: bool = True, power: float = 1, normalize: bool = True) -> None:
        self.lam = lam
        self.errors = errors
        self.power = power
        self.normalize = normalize

    def _fit(self, X: Array, Y: Array) -> None:
        self._lam = as_number(self.lam, "lam", minimum=0.0)
        self._power = as_positive(self.power, "power")
        self.X_, self.Y_ = (unit_rows(X) if self.normalize else X), Y

    def codes(self, X: Any) -> sp.csr_array:
        """Sparse codes of new rows, one column per training row."""
        X = self._rows(X, columns=self.X_.shape[1])
        codes, _ = l1_code(unit_rows(X) if self.normalize else X, self.X_, errors=self.errors, lam=self._lam)
        return codes

    def _predict(self, X: Array) -> Array:
        weights = abs(self.codes(X)).astype(np.float64)
        weights.data **= self._power
        sums = np.asarray(weights @ np.column_stack([self.Y_, np.ones(len(self.Y_))]).astype(np.float64))
        empty = ~(sums[:, -1] > 0)
        if empty.any():
            rows = unit_rows(X[empty]) if self.normalize else X[empty]
            _, neighbors = nearest(self.X_, 1, queries=rows)
            sums[empty, :-1], sums[empty, -1] = self.Y_[neighbors[:, 0]], 1.0
        return np.asarray(sums[:, :-1] / sums[:, -1:], dtype=np.result_type(X.dtype, self.Y_.dtype))


def mean_squares(geodesics: Array) -> Array:
    """Mean of the squares in every column."""
    return np.asarray(np.einsum("ij,ij->j", geodesics, geodesics) / len(geodesics))


EXTENSIONS: dict[str, type[Extension]] = {
    "nystrom": Nystrom,
    "reconstruction": Reconstruction,
    "landmark_isomap": LandmarkIsomap,
    "sparse": SparseCode,
}


def as_extension(value: Any) -> Extension:
    """A fresh, unfitted extension from a short name or an instance."""
    if isinstance(value, str) and value in EXTENSIONS:
        return EXTENSIONS[value]()
    if hasattr(value, "fit") and hasattr(value, "predict") and not isinstance(value, type):
        made: Extension = clone(value)
        return made
    names = ", ".join(map(repr, EXTENSIONS))
    raise ValueError(
        f"extension must be None, one of {names}, or an instance with fit and predict. Got {value!r} instead."
    )


def _chunks(rows: int, width: int) -> Iterator[slice]:
    step = max(1, _CHUNK // max(1, width))
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))
