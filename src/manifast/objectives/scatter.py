"""Objectives of scatters: the largest of one graph's scatter between classes against another's inside them.

Scatters are sums over differences of rows, Σ_ij w_ij (f_i - f_j)(f_i - f_j)' / 2 = F'LF: a common offset changes
nothing. They are unbounded for a free Y, where rows of one class can fall onto one point, so they go with a smoother.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from manifast._labels import Labels
from manifast._linalg.memory import LANDMARKS, check_room
from manifast._rows import Rows
from manifast._validation import Array, as_count
from manifast.graphs import class_graphs
from manifast.kernels import knn, laplacian, sq_distances
from manifast.objectives.base import Objective, ObjectiveBuilder

_CHUNK = 1 << 22  # affinities held at once
UNBOUNDED = (
    "this objective has no bound without a smoother, as rows of one class could all fall onto one point. Use "
    "smoother='projection' or 'kernel_projection', or the objective 'fisher', which has a ridge of its own."
)


class ScatterObjective(ObjectiveBuilder):
    """Base: what is common to ratios of scatters."""

    supervised = True

    def check_free(self, rows: Rows) -> None:
        """Where the embedding is no projection both matrices are dense."""
        if rows.columns is None:
            check_room(rows.n, 4, f"use a projection, or {LANDMARKS}")

    def most_components(self, rows: Rows, labels: Labels | None) -> tuple[int, str]:
        return min(rows.n - 1, rows.columns or rows.n), "what differences of the rows can span"


class LDE(ScatterObjective):
    """Local discriminant embedding (Chen et al. 2005): L_b of nearest rows of other classes against L_w of the same.

    Parameters
    ----------
    n_neighbors : int, default 5
        Of both graphs: nearest of the same class, cut to its size, and nearest of other classes.
    affinity : {"heat", "binary"}, default "heat"
        Weights of both graphs.
    beta : "mean" or float, default "mean"
        Width of the heat weights exp(-d²/beta); "mean" is the mean squared distance over all pairs of rows.
    """

    def __init__(self, n_neighbors: int = 5, *, affinity: str = "heat", beta: Any = "mean") -> None:
        self.n_neighbors = n_neighbors
        self.affinity = affinity
        self.beta = beta

    def check(self, rows: Rows, labels: Labels | None, d: int) -> None:
        self.check_free(rows)
        if self.affinity not in ("heat", "binary"):
            raise ValueError(f"affinity must be 'heat' or 'binary'. Got {self.affinity!r} instead.")
        rows.neighbor_count(self.n_neighbors)

    def build(self, rows: Rows, labels: Labels | None, d: int) -> Objective:
        assert labels is not None
        k = rows.neighbor_count(self.n_neighbors)
        within, between = (
            laplacian(W.astype(np.float64))[0]
            for W in class_graphs(
                rows.features,
                labels.codes,
                n_neighbors_within=k,
                n_neighbors_between=k,
                weights=self.affinity,
                beta=rows.heat_width(self.beta),
            )
        )
        return Objective(within, between, drop_constant=False, ratio=True, unbounded=UNBOUNDED)


class LFDA(ScatterObjective):
    """Local Fisher discriminant analysis (Sugiyama 2007): far rows of one class need not come together.

    With affinities a_ij inside each class c the scatter within has weights a_ij/n_c, the scatter between
    a_ij(1/n - 1/n_c) inside classes and 1/n across.

    Parameters
    ----------
    n_neighbors : int, default 7
        The neighbour, inside the class and cut to its size, whose distance is the local scale of a row.
    affinity : {"local", "heat"}, default "local"
        exp(-d_ij²/(s_i s_j)) with the local scales s of both rows, as in the paper, or the heat weights exp(-d²/beta).
    beta : "mean" or float, default "mean"
        Width of the heat weights; "mean" is the mean squared distance over all pairs of rows.
    """

    def __init__(self, n_neighbors: int = 7, *, affinity: str = "local", beta: Any = "mean") -> None:
        self.n_neighbors = n_neighbors
        self.affinity = affinity
        self.beta = beta

    def check(self, rows: Rows, labels: Labels | None, d: int) -> None:
        self.check_free(rows)
        if self.affinity not in ("local", "heat"):
            raise ValueError(f"affinity must be 'local' or 'heat'. Got {self.affinity!r} instead.")
        as_count(self.n_neighbors, "n_neighbors")

    def build(self, rows: Rows, labels: Labels | None, d: int) -> Objective:
        assert labels is not None
        X, k, width = rows.features, as_count(self.n_neighbors, "n_neighbors"), rows.heat_width(self.beta)
        scales = np.empty(rows.n)
        for members in labels.members:
            local = self.affinity == "local"
            scales[members] = local_scales(X[members], k) if local else np.sqrt(width)
        return LocalScatters(X, scales, labels)


class LocalScatters(Objective):
    """The Laplacians of LFDA as products: affinities are made in blocks, and serve both."""

    def __init__(self, X: Array, scales: Array, labels: Labels) -> None:
        self._X, self._scales, self._labels = X, scales, labels
        super().__init__(self._within, drop_constant=False, ratio=True, unbounded=UNBOUNDED)

    def images(self, F: Array) -> tuple[Array, Array]:
        n, sizes = len(F), self._labels.sizes[self._labels.codes][:, None]
        local, sums = np.empty_like(F), np.empty_like(F)
        for members in self._labels.members:
            f = F[members]
            local[members] = affinity_differences(self._X[members], self._scales[members], f)
            sums[members] = f.sum(axis=0)
        # Across classes all pairs weigh 1/n: by the Laplacian diag(n - n_c) + ZZ' - 11'.
        across = F * (1 - sizes / n) + (sums - F.sum(axis=0)) / n
        return local / sizes, local * (1 / n - 1 / sizes) + across

    def _within(self) -> Array:
        return self.images(np.eye(len(self._X)))[0]

    @property
    def B(self) -> Array:
        return self.images(np.eye(len(self._X)))[1]

    @B.setter
    def B(self, value: Any) -> None:
        """It follows from the rows."""


def local_scales(X: Array, k: int) -> Array:
    """Distance of every row to its k-th nearest, or to the furthest where there are fewer (Zelnik-Manor and Perona)."""
    k = min(k, len(X) - 1)
    return knn(X, k)[0][:, -1].astype(np.float64) if k else np.zeros(len(X))


def affinity_differences(X: Array, scales: Array, F: Array) -> Array:
    """Σ_j a_ij (f_i - f_j) with a_ij = exp(-|x_i - x_j|²/(s_i s_j)), 0 where a scale is 0: (D - A)F in blocks of A."""
    out = np.empty_like(F)
    step = max(1, _CHUNK // len(X))
    for begin in range(0, len(X), step):
        part = slice(begin, begin + step)
        products = np.outer(scales[part], scales)
        squares = sq_distances(X[part], X).astype(np.float64, copy=False)
        affinities = np.exp(-np.divide(squares, products, out=np.full_like(squares, np.inf), where=products > 0))
        out[part] = affinities.sum(axis=1)[:, None] * F[part] - affinities @ F
    return out
