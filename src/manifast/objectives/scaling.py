"""Objectives of classical scaling, -½ H δ² H: geodesic distances (Isomap) or plain ones (classical MDS)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from manifast._labels import Labels
from manifast._linalg.memory import LANDMARKS, check_room
from manifast._paths import shortest_paths
from manifast._progress import stage
from manifast._rows import OF_PATHS, Rows, join
from manifast._validation import Array, as_count, as_number, as_positive
from manifast._warnings import warn
from manifast.extensions import KernelRidge, check_reach, fit_owned, mean_squares, natural_triangulation, reach_graph
from manifast.graphs import METRICS, as_radius, distances_of
from manifast.kernels import neighbor_graph, sq_distances
from manifast.maps import LinearMap, Predictor, Triangulation
from manifast.objectives.base import Objective, ObjectiveBuilder

_LARGEST_EXPONENT = 50.0  # of exp(d²/β): beyond, another class is far away, and numbers need not grow
_DENSE = 400  # rows up to which the centred matrix itself is faster than products with the squares
_ROUNDING = 1e-10  # eigenvalues below this, relative to the largest, are rounding of the distances


class CentredSquares(LinearOperator):
    """½ H δ² H as products with δ², for vectors that are kept orthogonal to the constant, which does the centring."""

    def __init__(self, squares: Array) -> None:
        super().__init__(squares.dtype, squares.shape)  # type: ignore[call-arg]
        self._squares = squares

    def _matvec(self, v: Array) -> Array:
        return np.asarray(0.5 * (self._squares @ v))

    def _matmat(self, V: Array) -> Array:
        return np.asarray(0.5 * (self._squares @ V))

    def toarray(self) -> Array:
        return centred_squares(self._squares)


def centred_squares(squares: Array) -> Array:
    """½ H δ² H, exactly symmetric."""
    means = squares.mean(axis=0)
    centred = 0.5 * (squares - means - squares.mean(axis=1)[:, None] + means.mean())
    return np.asarray(0.5 * (centred + centred.T))


def classical_scaling(squares: Array, source: Any = None) -> Objective:
    """Classical scaling of squared distances: smallest eigenvectors of ½ H δ² H, times the roots of their sizes."""
    A: Any = centred_squares(squares) if len(squares) <= _DENSE else CentredSquares(squares)
    unit = float(np.abs(squares).max(initial=0.0)) * len(squares) / 4 or 1.0  # about the largest eigenvalue

    def finish(values: Array) -> tuple[Array, Array]:
        # Rounding of the distances, not a dimension: dividing by it would blow up new rows.
        lengths = np.where(values > -_ROUNDING * np.abs(values).max(initial=0.0), 0.0, -values)
        if lengths[-1] <= 0:
            warn(
                f"only {int((lengths > 0).sum())} of {len(lengths)} dimensions carry positive eigenvalues; the others "
                "are zero. Use fewer components."
            )
        return lengths, np.sqrt(lengths)

    return Objective(A, unit=unit, finish=finish, source=source)


@dataclass(frozen=True)
class Geodesics:
    """Geodesic distances from landmarks (rows of the matrix) to all rows, and the neighbours they run through.

    These are k nearest, or all within a radius.
    """

    lengths: Array
    landmarks: Array
    k: int | None
    radius: float | None = None

    @property
    def between(self) -> Array:
        """Those between landmarks."""
        whole = len(self.landmarks) == self.lengths.shape[1]
        return self.lengths if whole else np.ascontiguousarray(self.lengths[:, self.landmarks])


class _OfLandmarks(ObjectiveBuilder):
    """An objective of all rows or of some landmarks, from which the others are placed."""

    n_landmarks: int | None

    def check(self, rows: Rows, labels: Labels | None, d: int) -> None:
        count = landmark_count(self.n_landmarks, rows.n)
        if count == rows.n:
            check_room(rows.n, 2, f"use n_landmarks, or {LANDMARKS}", lapack=False)
        else:
            check_room(rows.n, 2, "use fewer n_landmarks", columns=count, lapack=False)

    def most_components(self, rows: Rows, labels: Labels | None) -> tuple[int, str]:
        return landmark_count(self.n_landmarks, rows.n) - 1, "one less than the rows or landmarks"


class Isomap(_OfLandmarks):
    """Isomap (Tenenbaum et al. 2000): classical scaling of the shortest paths through the neighbour graph.

    Parameters
    ----------
    n_neighbors : int or None, default 8
        None where there is a `radius`.
    radius : float or None, default None
        Instead of the nearest, all rows within a distance are neighbours.
    metric : {"euclidean", "cosine", "precomputed"}, default "euclidean"
        What distances are: plain ones, 1 - cos of the angle between rows, or those in X, which then is the n × n matrix
        of distances, dense, or sparse with those of neighbours; `transform` takes distances to the training rows.
    neighbors : (distances, indices), "approximate" or "auto", optional
        Nearest neighbours of the training rows from elsewhere, instead of the exact search.
        "approximate" finds them by clusters (`manifast.kernels.approximate_knn`), "auto" does so for 50,000 rows of 9
        features and more; `graph_recall_` is then the share of the true neighbours that were found.
    n_landmarks : int or None, default None
        Scale only the geodesics between that many landmarks, and place all other rows by triangulation from them (de
        Silva and Tenenbaum 2003); None is exact Isomap, which holds an n × n matrix.
    random_state : int, default 0
        Which rows become landmarks.
    """

    sparse = True
    natural_name = "landmark_isomap"
    metrics = METRICS

    def __init__(
        self,
        n_neighbors: int | None = 8,
        *,
        radius: float | None = None,
        metric: str = "euclidean",
        neighbors: Any = None,
        n_landmarks: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.radius = radius
        self.metric = metric
        self.neighbors = neighbors
        self.n_landmarks = n_landmarks
        self.random_state = random_state

    def check(self, rows: Rows, labels: Labels | None, d: int) -> None:
        check_reach(self.n_neighbors, self.radius)
        if self.radius is None:
            rows.neighbor_count(self.n_neighbors)
        elif self.neighbors is not None:
            raise ValueError("neighbors must be None with a radius. Got both.")
        else:
            as_radius(self.radius)
        super().check(rows, labels, d)

    def dimensions(self, value: Any, rows: Rows, labels: Labels | None) -> int:
        count = landmark_count(self.n_landmarks, rows.n)
        if self.n_landmarks is not None and count <= as_count(value, "n_components"):
            raise ValueError(f"n_landmarks must be more than n_components = {value}. Got {count} instead.")
        return super().dimensions(value, rows, labels)

    def build(self, rows: Rows, labels: Labels | None, d: int) -> Objective:
        landmarks = chosen_landmarks(self.n_landmarks, rows.n, self.random_state)
        graph, k, radius = self._graph(rows)
        graph = join(graph, rows.distances, True, "distance", advice=OF_PATHS)
        with stage(f"shortest paths from {len(landmarks)} rows"):
            lengths = shortest_paths(graph, landmarks)
        source = Geodesics(lengths, landmarks, k, radius)
        return classical_scaling(np.square(source.between), source).replace(lengths=rows.metric != "cosine")

    def _graph(self, rows: Rows) -> tuple[sp.csr_array, int | None, float | None]:
        """The graph of distances, and the neighbours that a new row has."""
        if self.radius is None:
            distances, neighbors = rows.neighbors(rows.neighbor_count(self.n_neighbors), self.neighbors)
            wide = distances.astype(np.float64, copy=False)
            return neighbor_graph(wide, neighbors, weights="distance"), neighbors.shape[1], None
        radius = float(rows.in_distances(self.radius, 1))
        with stage(f"neighbours of {rows.n} rows within {self.radius}"):
            return reach_graph(rows.distances, None, radius), None, radius

    def natural_map(self, rows: Rows, objective: Objective, Y: Array, values: Array) -> Predictor:
        """Triangulation from the geodesics at hand; Y are the landmarks' rows."""
        source: Geodesics = objective.source
        # All pairs are symmetric to rounding, so that rows serve as columns.
        whole = len(source.landmarks) == rows.n
        to_landmarks = source.lengths if whole else source.lengths.T
        squares = mean_squares(source.between)
        return natural_triangulation(rows.features, to_landmarks, squares, Y, source.k, source.radius, rows.metric)

    def place_all(self, natural: Any, objective: Objective) -> Array:
        return np.asarray(natural.place(objective.source.lengths.T))


class MDS(_OfLandmarks):
    """Classical scaling (Torgerson 1952) of the distances between rows, or between some landmarks.

    Parameters
    ----------
    metric : {"euclidean", "cosine", "precomputed"}, default "euclidean"
        What distances are: plain ones, 1 - cos of the angle between rows, or those in X, which then is the n × n matrix
        of distances; `transform` takes distances to the training rows.
    n_landmarks : int or None, default None
        Scale the distances between that many rows, and place the others by triangulation (de Silva and Tenenbaum 2004);
        None is all rows, which holds an n × n matrix.
    random_state : int, default 0
        Which rows become landmarks.
    """

    metrics = METRICS

    def __init__(
        self, *, metric: str = "euclidean", n_landmarks: int | None = None, random_state: int = 0
    ) -> None:
        self.metric = metric
        self.n_landmarks = n_landmarks
        self.random_state = random_state

    def build(self, rows: Rows, labels: Labels | None, d: int) -> Objective:
        landmarks = chosen_landmarks(self.n_landmarks, rows.n, self.random_state)
        squares = rows.distances.squares(landmarks)
        source = LandmarkRows(rows.features, landmarks, squares)
        return classical_scaling(squares, source).replace(lengths=rows.metric != "cosine")

    def natural_map(self, rows: Rows, objective: Objective, Y: Array, values: Array) -> Predictor:
        """Triangulation (de Silva and Tenenbaum): y = -½ (δ² - mean δ²) · Y (Y'Y)^-1.

        With Euclidean distances it is an affine map of the row.
        """
        source: LandmarkRows = objective.source
        wide = Y.astype(np.float64)
        projection = np.ascontiguousarray(wide @ np.linalg.pinv(wide.T @ wide, hermitian=True))
        if rows.metric != "euclidean":
            kept = None if rows.metric == "precomputed" else source.X[source.landmarks]
            return Triangulation(kept, source.landmarks, source.squares.mean(axis=0), projection, rows.metric)
        known = np.asarray(source.X[source.landmarks], dtype=np.float64)
        # Columns of the projection sum to zero: |x|² drops out of δ² = |x|² - 2 x·z + |z|².
        projection -= projection.mean(axis=0)
        norms = np.einsum("ij,ij->i", known, known)
        intercept = -0.5 * (norms - source.squares.mean(axis=0)) @ projection
        return LinearMap(np.ascontiguousarray(known.T @ projection), intercept)

    def place_all(self, natural: Any, objective: Objective) -> Array:
        return np.asarray(natural.predict(objective.source.X))


@dataclass(frozen=True)
class LandmarkRows:
    """Rows of which some are landmarks, and the squared distances between these."""

    X: Array
    landmarks: Array
    squares: Array


def landmark_count(value: Any, n: int) -> int:
    """n_landmarks, checked; None is all rows."""
    if value is None:
        return n
    return as_count(value, "n_landmarks", maximum=n, why=f" for {n} rows, more than n_components")


def chosen_landmarks(value: Any, n: int, seed: Any) -> Array:
    """Rows that serve as landmarks, ascending."""
    count = landmark_count(value, n)
    return np.arange(n) if count == n else np.sort(np.random.default_rng(seed).choice(n, count, replace=False))


class ClassIsomap(ObjectiveBuilder):
    """Isomap of distances that know the classes (Orsenigo and Vercellis 2012).

    Before the geodesics a distance d becomes √(1 - exp(-d²/β)) inside a class and √exp(d²/β) - alpha between classes.

    Parameters
    ----------
    n_neighbors : int or None, default None
        None joins all rows.
    alpha : float, default 0.5
        From 0 to 1.
    beta : "mean" or float, default "mean"
        "mean" is the squared mean distance between rows.
    """

    supervised = True

    def __init__(self, n_neighbors: int | None = None, *, alpha: float = 0.5, beta: Any = "mean") -> None:
        self.n_neighbors = n_neighbors
        self.alpha = alpha
        self.beta = beta

    def most_components(self, rows: Rows, labels: Labels | None) -> tuple[int, str]:
        return rows.n - 1, "one less than the rows"

    def check(self, rows: Rows, labels: Labels | None, d: int) -> None:
        check_room(rows.n, 4, LANDMARKS)
        if self.n_neighbors is not None:
            rows.neighbor_count(self.n_neighbors)
        if as_number(self.alpha, "alpha", minimum=0.0) > 1:
            raise ValueError(f"alpha must be a number from 0 to 1. Got {self.alpha!r} instead.")

    def build(self, rows: Rows, labels: Labels | None, d: int) -> Objective:
        assert labels is not None
        k = rows.n - 1 if self.n_neighbors is None else rows.neighbor_count(self.n_neighbors)
        distances = class_distances(rows.features, labels.codes, rows.in_units(self.beta, 2), float(self.alpha))
        among = distances_of(distances, "precomputed")
        graph = join(reach_graph(among, k, None), among, True, "distance", advice=OF_PATHS)
        with stage(f"shortest paths between {rows.n} rows"):
            geodesics = shortest_paths(graph)
        return classical_scaling(np.square(geodesics))

    def natural_map(self, rows: Rows, objective: Objective, Y: Array, values: Array) -> Predictor:
        return fit_owned(KernelRidge(), rows.X, Y)


def class_distances(X: Array, codes: Array, beta: Any, alpha: float) -> Array:
    """All distances that know the classes, in float64: √(1 - exp(-d²/β)) inside, √exp(d²/β) - α between."""
    if isinstance(beta, str) and beta != "mean":
        raise ValueError(f"beta must be 'mean' or a positive number. Got {beta!r} instead.")
    width = None if isinstance(beta, str) else as_positive(beta, "beta")
    squares = sq_distances(X.astype(np.float64, copy=False))
    if width is None:
        width = (float(np.sqrt(squares).sum()) / (squares.size - len(X))) ** 2 or 1.0
    ratio = np.minimum(squares / width, _LARGEST_EXPONENT)
    return np.where(codes[:, None] == codes, np.sqrt(-np.expm1(-ratio)), np.exp(0.5 * ratio) - alpha)
