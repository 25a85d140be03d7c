"""Objectives that are sums over neighbourhoods, with Y'Y = I: LLE and its variants, LTSA, local regression."""

from __future__ import annotations

from abc import abstractmethod
from math import ceil
from typing import Any

import numpy as np

from manifast._labels import Labels
from manifast._neighbors import given_lists
from manifast._progress import stage
from manifast._rows import Rows, find_bridges, star_graph
from manifast._validation import Array, as_count, as_number, as_positive
from manifast.extensions import Reconstruction, fit_owned
from manifast.maps import Predictor
from manifast.objectives import formulas
from manifast.objectives.base import Objective, ObjectiveBuilder

_NEIGHBORS = 8
_PER_DIMENSION = 1.5  # neighbours that a dimension of a local coordinate system takes


def default_neighbors(d: int) -> int:
    """Neighbours where nobody chose a number: as many as local coordinates of d dimensions call for, at least 8."""
    return max(_NEIGHBORS, ceil(_PER_DIMENSION * d))


class LocalObjective(ObjectiveBuilder):
    """Base: neighbourhoods of all rows, joined where their graph falls apart, and the matrix that they add up to."""

    natural_name = "reconstruction"
    metrics = ("euclidean", "cosine")
    reg = 1e-3  # of the map that rebuilds new rows from their nearest

    def __init__(
        self,
        n_neighbors: int | None = None,
        *,
        metric: str = "euclidean",
        connect: bool = True,
        neighbors: Any = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.connect = connect
        self.neighbors = neighbors

    def row_metric(self) -> str:
        if isinstance(self.metric, str) and self.metric == "precomputed":
            raise ValueError(
                "metric must be 'euclidean' or 'cosine' for this method, which needs the rows themselves. Got "
                "'precomputed' instead: give rows as X and neighbours from elsewhere as neighbors=(distances, indices)."
            )
        return super().row_metric()

    def count(self, rows: Rows, d: int) -> Any:
        """n_neighbors, by default as many as local coordinates of d dimensions call for, if there are."""
        if self.n_neighbors is not None:
            return self.n_neighbors
        return min(self.neighbors_for(d), rows.n - 1)

    def neighbors_for(self, d: int) -> int:
        """Neighbours that d dimensions call for."""
        return default_neighbors(d)

    def check(self, rows: Rows, labels: Labels | None, d: int) -> None:
        if given_lists(self.neighbors) is None:
            self.check_neighborhoods(rows, self.neighborhood_size(rows, d), d)

    def neighborhood_size(self, rows: Rows, d: int) -> int:
        return rows.neighbor_count(self.count(rows, d))

    def check_neighborhoods(self, rows: Rows, size: int, d: int) -> None:
        """Refuse neighbourhoods of that size for d dimensions."""

    def build(self, rows: Rows, labels: Labels | None, d: int) -> Objective:
        lists = self.neighborhoods(rows, d)
        self.check_neighborhoods(rows, lists.shape[1], d)
        bridges = find_bridges(self.joined(lists), rows.distances, self.connect)
        with stage("weights of the neighbourhoods"):
            objective = self.matrix(rows, lists, bridges, d)
        searched = given_lists(self.neighbors) is None
        return objective.replace(source=self.count(rows, d) if searched else lists.shape[1])

    def neighborhoods(self, rows: Rows, d: int) -> Array:
        """Nearest others of every row."""
        return rows.neighbors(rows.neighbor_count(self.count(rows, d)), self.neighbors)[1]

    def joined(self, lists: Array) -> Any:
        """The graph of rows that some neighbourhood brings together."""
        return star_graph(np.column_stack([np.arange(len(lists)), lists]))

    @abstractmethod
    def matrix(self, rows: Rows, lists: Array, bridges: Array, d: int) -> Objective:
        """The sum over these neighbourhoods and bridges."""

    def natural_map(self, rows: Rows, objective: Objective, Y: Array, values: Array) -> Predictor:
        return fit_owned(Reconstruction(min(objective.source, rows.n), self.reg, rows.metric), rows.features, Y)


class LLE(LocalObjective):
    """Locally linear embedding (Roweis and Saul 2000): (I - W)'(I - W), every row rebuilt from its nearest others.

    Parameters
    ----------
    n_neighbors : int or None, default None
        None is 8.
    reg : float, default 1e-3
        Regularisation of the weights, relative to the trace of each local Gram matrix.
    metric : {"euclidean", "cosine"}, default "euclidean"
        By which neighbours are found.
    connect : bool, default True
        Join the components of a disconnected neighbour graph by the shortest missing edges, with a warning.
    neighbors : (distances, indices), "approximate" or "auto", optional
        Nearest neighbours of the training rows from elsewhere, instead of the exact search.
        "approximate" finds them by clusters (`manifast.kernels.approximate_knn`), "auto" does so for 50,000 rows of 9
        features and more; `graph_recall_` is then the share of the true neighbours that were found.
    """

    def __init__(
        self,
        n_neighbors: int | None = None,
        *,
        reg: float = 1e-3,
        metric: str = "euclidean",
        connect: bool = True,
        neighbors: Any = None,
    ) -> None:
        super().__init__(n_neighbors, metric=metric, connect=connect, neighbors=neighbors)
        self.reg = reg

    def neighbors_for(self, d: int) -> int:
        return _NEIGHBORS

    def check(self, rows: Rows, labels: Labels | None, d: int) -> None:
        as_positive(self.reg, "reg")
        super().check(rows, labels, d)

    def matrix(self, rows: Rows, lists: Array, bridges: Array, d: int) -> Objective:
        return formulas.reconstruction(rows.features, lists, bridges, reg=float(self.reg))


class CliqueLLE(LLE):
    """LLE in the cliques of LGRM: every row rebuilt from its n_neighbors - 1 nearest (LGRM eqs. 3 and 23)."""

    def neighborhoods(self, rows: Rows, d: int) -> Array:
        size = rows.neighbor_count(self.count(rows, d), least=2, others=False)
        return cliques(rows, size, self.neighbors)[:, 1:]


class ModifiedLLE(LLE):
    """Modified LLE (Zhang and Wang 2006): several weight vectors for every row instead of one.

    Parameters
    ----------
    n_neighbors : int or None, default None
        At least as many as dimensions; None is 8, or one and a half times the dimensions where that is more.
    reg, metric, connect, neighbors
        As in `LLE`.
    """

    def neighbors_for(self, d: int) -> int:
        return default_neighbors(d)

    def check_neighborhoods(self, rows: Rows, size: int, d: int) -> None:
        if size < d:
            raise ValueError(f"n_neighbors must be at least n_components = {d} for modified LLE. Got {size} instead.")

    def matrix(self, rows: Rows, lists: Array, bridges: Array, d: int) -> Objective:
        return formulas.modified_reconstruction(rows.features, lists, bridges, dim=d, reg=float(self.reg))


class HessianLLE(LocalObjective):
    """Hessian eigenmaps (Donoho and Grimes 2003): local estimates of the curvature of functions on the rows.

    Parameters
    ----------
    n_neighbors : int or None, default None
        More than d + d(d + 1)/2 for d dimensions; None is one and a half times that, at least 8.
    metric, connect, neighbors
        As in `LLE`.
    """

    def neighbors_for(self, d: int) -> int:
        return default_neighbors(d * (d + 3) // 2 + 1)

    def check_neighborhoods(self, rows: Rows, size: int, d: int) -> None:
        least = d * (d + 3) // 2
        if size <= least:
            raise ValueError(
                f"n_neighbors must be more than d(d + 3)/2 = {least} for d = {d} components of Hessian LLE. Got {size}."
            )

    def matrix(self, rows: Rows, lists: Array, bridges: Array, d: int) -> Objective:
        return formulas.hessian(rows.features, lists, bridges, dim=d)


class LTSA(LocalObjective):
    """Local tangent space alignment (Zhang and Zha 2004): tangent coordinates of the nearest others of every row.

    Parameters
    ----------
    n_neighbors : int or None, default None
        More than the dimensions; None is 8, or one and a half times the dimensions where that is more.
    metric, connect, neighbors
        As in `LLE`.
    """

    def check_neighborhoods(self, rows: Rows, size: int, d: int) -> None:
        check_local_dim(None, d, size, rows.features.shape[1])

    def joined(self, lists: Array) -> Any:
        return star_graph(lists)  # a row is not in its own neighbourhood, and may be in none

    def matrix(self, rows: Rows, lists: Array, bridges: Array, d: int) -> Objective:
        dim = check_local_dim(None, d, lists.shape[1], rows.features.shape[1])
        return formulas.alignment(rows.features, lists, bridges, dim=dim).replace(centred=True)


class LocalRegression(LocalObjective):
    """Local regressions in cliques of a row and its nearest: L_l of LGRM (12).

    Parameters
    ----------
    n_neighbors : int or None, default None
        Size of a clique: a row and its n_neighbors - 1 nearest. None is 8, or one and a half times the dimensions of
        the local PCA where that is more.
    gamma_local : float or None, default None
        Ridge of the local regressions, in squared units of the rows; None is 0, which is stable after the local PCA.
    local_dim : int or None, default None
        Dimensions that the local PCA keeps; None is those of the embedding.
    metric, connect, neighbors
        As in `LLE`; lists hold the n_neighbors - 1 nearest others.
    """

    def __init__(
        self,
        n_neighbors: int | None = None,
        *,
        gamma_local: float | None = None,
        local_dim: int | None = None,
        metric: str = "euclidean",
        connect: bool = True,
        neighbors: Any = None,
    ) -> None:
        super().__init__(n_neighbors, metric=metric, connect=connect, neighbors=neighbors)
        self.gamma_local = gamma_local
        self.local_dim = local_dim

    def neighbors_for(self, d: int) -> int:
        return default_neighbors(d if self.local_dim is None else as_count(self.local_dim, "local_dim"))

    def check(self, rows: Rows, labels: Labels | None, d: int) -> None:
        self._ridge()
        super().check(rows, labels, d)

    def neighborhood_size(self, rows: Rows, d: int) -> int:
        return rows.neighbor_count(self.count(rows, d), least=2, others=False)

    def check_neighborhoods(self, rows: Rows, size: int, d: int) -> None:
        check_local_dim(self.local_dim, d, size, rows.features.shape[1])

    def neighborhoods(self, rows: Rows, d: int) -> Array:
        return cliques(rows, self.neighborhood_size(rows, d), self.neighbors)

    def joined(self, lists: Array) -> Any:
        return star_graph(lists)

    def matrix(self, rows: Rows, lists: Array, bridges: Array, d: int) -> Objective:
        dim = check_local_dim(self.local_dim, d, lists.shape[1], rows.features.shape[1])
        return formulas.alignment(rows.features, lists, bridges, dim=dim, gamma=rows.squared(self._ridge()))

    def _ridge(self) -> float:
        return 0.0 if self.gamma_local is None else as_number(self.gamma_local, "gamma_local", minimum=0.0)


def cliques(rows: Rows, size: int, given: Any) -> Array:
    """Every row with its size - 1 nearest (LGRM eq. 3)."""
    _, neighbors = rows.neighbors(size - 1, given)
    return np.column_stack([np.arange(rows.n), neighbors]).astype(np.int64)


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
