"""Triangulation of new rows by their geodesic distances."""

from __future__ import annotations

from typing import Any

import numpy as np

from manifast._linalg.memory import LANDMARKS, check_room
from manifast._paths import shortest_paths
from manifast._validation import Array, as_count
from manifast.extensions.base import Extension
from manifast.graphs import connect_components, nearest
from manifast.kernels import neighbor_graph
from manifast.maps import LandmarkMap


class LandmarkIsomap(Extension):
    """Triangulate a new row from its geodesic distances to the training rows (de Silva and Tenenbaum 2003).

    Its geodesics δ run through its nearest training rows; y = -½ (δ² - mean δ² of the training rows) · Y (Y'Y)^-1. For
    Isomap's own embedding training rows get back their coordinates. The formula takes Y in the units of the geodesics:
    other embeddings come back turned and stretched, which a classifier on top must be trained for.

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

    map_: LandmarkMap

    def __init__(self, n_neighbors: int = 10) -> None:
        self.n_neighbors = n_neighbors

    def _check_rows(self, n: int) -> None:
        check_room(n, 1, f"use Isomap(n_landmarks=...), or {LANDMARKS}", lapack=False)

    def _fit(self, X: Any, Y: Array) -> LandmarkMap:
        n = X.shape[0]
        k = min(as_count(self.n_neighbors, "n_neighbors"), n - 1)
        W = neighbor_graph(*nearest(X, k), weights="distance")
        W = connect_components(W, X, weights="distance")
        geodesics = shortest_paths(W)
        return self._learn(X, geodesics, mean_squares(geodesics), Y, k).map_

    def _learn(self, X: Any, geodesics: Array, mean_sq: Array, Y: Array, k: int) -> LandmarkIsomap:
        """From the geodesics of all rows to the landmarks (n, landmarks) and the landmarks' embedding."""
        Y64 = Y.astype(np.float64)
        projection = np.ascontiguousarray(Y64 @ np.linalg.pinv(Y64.T @ Y64, hermitian=True))
        self.n_features_in_ = X.shape[1]
        self.map_ = LandmarkMap(X, np.ascontiguousarray(geodesics), mean_sq, projection, k)
        return self

    def place(self, geodesics: Array) -> Array:
        """Embedding of rows whose geodesics to the landmarks are known, (m, landmarks)."""
        return self.map_.place(geodesics)

    @property
    def X_(self) -> Any:
        return self.map_.rows


def mean_squares(geodesics: Array) -> Array:
    """Mean of the squares in every column."""
    return np.asarray(np.einsum("ij,ij->j", geodesics, geodesics) / len(geodesics))
