"""Triangulation of new rows by their geodesic distances."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from manifast._linalg.memory import LANDMARKS, check_room
from manifast._paths import shortest_paths
from manifast._validation import Array, as_count
from manifast.extensions.base import Extension
from manifast.graphs import METRICS, Distances, as_radius, distances_of, from_edges, joined
from manifast.kernels import neighbor_graph
from manifast.maps import LandmarkMap, kept_rows


class LandmarkIsomap(Extension):
    """Triangulate a new row from its geodesic distances to the training rows (de Silva and Tenenbaum 2003).

    Its geodesics δ run through its nearest training rows; y = -½ (δ² - mean δ² of the training rows) · Y (Y'Y)^-1. For
    Isomap's own embedding training rows get back their coordinates. The formula takes Y in the units of the geodesics:
    other embeddings come back turned and stretched, which a classifier on top must be trained for.

    Parameters
    ----------
    n_neighbors : int or None, default 10
        None where there is a `radius`.
    radius : float or None, default None
        Instead of the nearest, all rows within a distance are neighbours, and at least the nearest.
    metric : {"euclidean", "cosine", "precomputed"}, default "euclidean"
        For "precomputed" X is the matrix of distances (n, n), dense or sparse, and new rows are their distances to the
        training rows.

    Notes
    -----
    Cost: `fit` takes O(n²(k + log n)) for the geodesics and an n × n matrix. A new row takes O(n(p + k + d)).

    Examples
    --------
    >>> import numpy as np
    >>> from manifast.extensions import LandmarkIsomap
    >>> X = np.arange(8.0)[:, None]
    >>> LandmarkIsomap(n_neighbors=2).fit(X, X - 3.5).predict([[2.25]]).round(6)
    array([[-1.25]])
    """

    _sparse = True
    _metrics = METRICS

    map_: LandmarkMap

    def __init__(
        self, n_neighbors: int | None = 10, radius: float | None = None, metric: str = "euclidean"
    ) -> None:
        self.n_neighbors = n_neighbors
        self.radius = radius
        self.metric = metric

    def _check_rows(self, n: int) -> None:
        check_room(n, 1, f"use Isomap(n_landmarks=...), or {LANDMARKS}", lapack=False)

    def _fit(self, X: Any, Y: Array) -> LandmarkMap:
        distances = distances_of(X, self.metric)
        check_reach(self.n_neighbors, self.radius)
        k = None if self.radius is not None else min(as_count(self.n_neighbors, "n_neighbors"), distances.n - 1)
        W = reach_graph(distances, k, self.radius)
        geodesics = shortest_paths(joined(W, distances, "distance", 1.0))
        return self._learn(X, geodesics, mean_squares(geodesics), Y, k).map_

    def _learn(self, X: Any, geodesics: Array, mean_sq: Array, Y: Array, k: int | None) -> LandmarkIsomap:
        """From the geodesics of all rows to the landmarks (n, landmarks) and the landmarks' embedding."""
        Y64 = Y.astype(np.float64)
        projection = np.ascontiguousarray(Y64 @ np.linalg.pinv(Y64.T @ Y64, hermitian=True))
        self.n_features_in_ = X.shape[1]
        ways = np.ascontiguousarray(geodesics)
        self.map_ = LandmarkMap(kept_rows(X, self.metric), ways, mean_sq, projection, k, self.radius, self.metric)
        return self

    def place(self, geodesics: Array) -> Array:
        """Embedding of rows whose geodesics to the landmarks are known, (m, landmarks)."""
        return self.map_.place(geodesics)

    @property
    def X_(self) -> Any:
        return self.map_.rows


def natural_triangulation(
    X: Any, geodesics: Array, mean_sq: Array, Y: Array, k: int | None, radius: float | None, metric: str
) -> LandmarkIsomap:
    """The triangulation from geodesics that are known, of all rows to the landmarks, whose embedding is Y."""
    return LandmarkIsomap(k, radius, metric)._learn(X, geodesics, mean_sq, Y, k)


def check_reach(n_neighbors: Any, radius: Any) -> None:
    """Refuse both a number of neighbours and a radius, or neither."""
    if radius is not None and n_neighbors is not None:
        raise ValueError(
            f"Both n_neighbors and radius are provided: one of them must be None. Got {n_neighbors!r} and {radius!r}."
        )
    if radius is None and n_neighbors is None:
        raise ValueError("n_neighbors must be an integer, or None with a radius. Got None for both.")


def reach_graph(distances: Distances, k: int | None, radius: Any) -> sp.csr_array:
    """Graph of distances to the k nearest, or to all rows within a radius."""
    if k is not None:
        lengths, neighbors = distances.nearest(k)
        return neighbor_graph(lengths.astype(np.float64, copy=False), neighbors, weights="distance")
    i, j, length = distances.pairs_within(as_radius(radius))
    return from_edges(distances.n, i, j, length.astype(np.float64, copy=False))


def mean_squares(geodesics: Array) -> Array:
    """Mean of the squares in every column."""
    return np.asarray(np.einsum("ij,ij->j", geodesics, geodesics) / len(geodesics))
