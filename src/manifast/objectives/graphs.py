"""Objectives of a graph of all rows: Laplacian eigenmaps and diffusion maps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator

from manifast._kernels import affine_product
from manifast._labels import Labels
from manifast._linalg.memory import LANDMARKS, check_room
from manifast._neighbors import given_lists
from manifast._rows import GraphChoice, Rows, refuse_neighbors, warn_components, without_diagonal
from manifast._validation import Array, as_number, is_sparse
from manifast._warnings import warn
from manifast.extensions import (
    SparseCode,
    finite_factors,
    fit_owned,
    natural_mean,
    natural_nystrom,
    out_of_kernel,
    out_of_reach,
)
from manifast.graphs import METRICS, n_components_of
from manifast.kernels import laplacian
from manifast.maps import AffinityMean, NeighborMean, Predictor
from manifast.objectives import formulas
from manifast.objectives.base import Objective, ObjectiveBuilder

AFFINITIES = ("heat", "binary", "full", "l1", "precomputed")


@dataclass(frozen=True)
class RowGraph:
    """A graph of rows and the width of its heat weights; a full graph is not kept but made again from the rows."""

    rows: Rows | None
    W: Any
    width: Any
    made_again: bool = False

    def kept(self) -> RowGraph:
        """What a fitted model keeps of it."""
        if self.rows is None or not self.made_again:
            return replace(self, rows=None)
        return replace(self, W=None, rows=replace(self.rows))  # without what was found about them

    @property
    def weights(self) -> Any:
        if self.rows is None or self.W is not None:
            return self.W
        return replace(self.rows).distances.complete("heat", self.width)


class Laplacian(ObjectiveBuilder):
    """Laplacian eigenmaps (Belkin and Niyogi 2003): L = D - W against D, or against the identity.

    Parameters
    ----------
    n_neighbors : int, default 8
        For the neighbour graphs: an edge joins two rows where either is among the nearest of the other.
    affinity : {"heat", "binary", "full", "l1", "precomputed"}, default "heat"
        Neighbour graph with heat or unit weights, full graph with heat weights, the graph of sparse codes, or X is the
        symmetric matrix of weights itself.
    beta : None, "local", "mean" or float, default None
        Width of the heat weights exp(-d²/beta): "local", one width per row from its nearest, as in
        `manifast.graphs.knn_graph`; "mean", the mean squared distance over all pairs of rows; or a number. None is
        "local" for neighbour graphs and "mean" for full ones.
    constraint : {"degree", "identity"}, default "degree"
        Y'DY = I, or Y'Y = I.
    metric : {"euclidean", "cosine", "precomputed"}, default "euclidean"
        What distances are: plain ones, 1 - cos of the angle between rows, or those in X, which then is the n × n matrix
        of distances, dense, or sparse with those of neighbours; `transform` takes distances to the training rows.
    connect : bool, default True
        Join the components of a disconnected graph by the shortest missing edges, with a warning.
    mode : {"union", "mutual"}, default "union"
        An edge where either row is among the nearest of the other, or only where both are.
    neighbors : (distances, indices), "approximate" or "auto", optional
        Nearest neighbours of the training rows from elsewhere, instead of the exact search.
        "approximate" finds them by clusters (`manifast.kernels.approximate_knn`), "auto" does so for 50,000 rows of 9
        features and more; `graph_recall_` is then the share of the true neighbours that were found.
    """

    sparse = True
    natural_name = "nystrom"
    metrics = METRICS

    def __init__(
        self,
        n_neighbors: int = 8,
        *,
        affinity: str = "heat",
        beta: Any = None,
        constraint: str = "degree",
        metric: str = "euclidean",
        connect: bool = True,
        mode: str = "union",
        neighbors: Any = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.affinity = affinity
        self.beta = beta
        self.constraint = constraint
        self.metric = metric
        self.connect = connect
        self.mode = mode
        self.neighbors = neighbors

    def check(self, rows: Rows, labels: Labels | None, d: int) -> None:
        if self.affinity not in AFFINITIES:
            known = ", ".join(map(repr, AFFINITIES))
            raise ValueError(f"affinity must be one of {known}. Got {self.affinity!r} instead.")
        if self.constraint not in ("degree", "identity"):
            raise ValueError(f"constraint must be 'degree' or 'identity'. Got {self.constraint!r} instead.")
        if self.affinity in ("l1", "precomputed") and self.metric != "euclidean":
            raise ValueError(
                f"metric must be 'euclidean' for affinity={self.affinity!r}, whose graph is not made from distances. "
                f"Got {self.metric!r} instead."
            )
        if self.affinity == "precomputed" and rows.X.shape[0] != rows.X.shape[1]:
            raise ValueError(
                f"X must be a square affinity matrix for affinity='precomputed'. Got shape {rows.X.shape}."
            )

    def graph(self, rows: Rows) -> RowGraph:
        """The weights, and the width of heat weights where there is one."""
        if self.affinity == "precomputed":
            refuse_neighbors(self.neighbors, "a graph that is given")
            W = without_diagonal(rows.X)
            count = n_components_of(W)
            if count > 1:
                warn_components(count, "which a precomputed graph leaves as they are")
            return RowGraph(None, W, 1.0)
        if self.affinity in ("heat", "binary") and given_lists(self.neighbors) is None:
            rows.neighbor_count(self.n_neighbors)  # None would be one number here, and another in the map
        choice = GraphChoice(self.affinity, self.n_neighbors, self.beta, self.mode, self.neighbors, self.connect)
        W, width = choice.joined(rows)
        made_again = self.affinity == "full" and not is_sparse(W)  # sparse where it had to be joined
        return RowGraph(rows, W, width, made_again)

    def build(self, rows: Rows, labels: Labels | None, d: int) -> Objective:
        graph = self.graph(rows)
        objective = formulas.laplacian_eigenmaps(graph.weights, self.constraint)
        return objective.replace(source=graph.kept())

    def _links(self) -> int | None:
        """Training rows that a new row is joined to: as many as neighbours were given, None for all."""
        if self.affinity == "full":
            return None
        lists = given_lists(self.neighbors)
        return self.n_neighbors if lists is None else int(np.shape(lists[1])[1])

    def natural_map(self, rows: Rows, objective: Objective, Y: Array, values: Array) -> Predictor:
        if self.affinity == "l1":
            return fit_owned(SparseCode(), rows.X, Y)
        if self.constraint == "identity" and self.affinity != "precomputed":
            links = self._links()
            return natural_mean(rows.features, Y, links or rows.n, objective.source.width, rows.metric)
        links, width = self._links(), objective.source.width
        if self.affinity == "full":  # k(x, x) = 1 counts there: the degrees grow by 1, and z'Dz = 1 by z'z
            kernel_values = 1.0 - values / (1.0 + np.square(Y, dtype=np.float64).sum(axis=0))
            lost = out_of_kernel(kernel_values)
            if len(lost):  # as for copies of one row
                warn(
                    f"the kernel has eigenvalues of almost 0 for columns {lost.tolist()}, where the Nyström formula "
                    "divides by them: rows hardly differ there, and new rows get a mean of all rows. Use fewer "
                    "components, a smaller beta, or another extension."
                )
            return natural_nystrom(rows.features, Y, kernel_values, None, width, metric=rows.metric, by_kernel=True)
        lost = out_of_reach(values)
        if len(lost):
            warn(
                f"the eigenvalues of columns {lost.tolist()} are within 1e-3 of 1, where the Nyström formula divides "
                "by almost 0: new rows get the mean of their neighbours there. Use fewer components, more neighbours, "
                "or another extension."
            )
        if self.affinity == "precomputed":
            return AffinityMean(Y, finite_factors(values))
        weights = "binary" if self.affinity == "binary" else "heat"
        return natural_nystrom(rows.features, Y, values, links, width, weights=weights, metric=rows.metric)


_DENSE = 400  # rows up to which the matrix itself is faster than products


class WalkLaplacian(LinearOperator):
    """D - W of a full graph as products with W, of which few are needed: most eigenvalues of the walk are near 0."""

    def __init__(self, W: Array, sums: Array) -> None:
        super().__init__(W.dtype, W.shape)  # type: ignore[call-arg]
        self._W, self._sums = W, sums

    def _matvec(self, v: Array) -> Array:
        return self._matmat(v.reshape(-1, 1)).ravel()

    def _matmat(self, V: Array) -> Array:
        return np.asarray(self._sums[:, None] * V - affine_product(self._W, np.ascontiguousarray(V)))

    def toarray(self) -> Array:
        return np.asarray(np.diag(self._sums) - self._W)


class Diffusion(ObjectiveBuilder):
    """Diffusion maps (Coifman and Lafon 2006): eigenvectors of a random walk on the graph, faster ones shrunk.

    Weights k_ij are divided by (q_i q_j)^alpha, q the sums of the rows of k, which takes out the density of the rows.
    The walk steps along the result, self-loops included; column j is λ_j^t ψ_j with ψ'Dψ / 1'D1 = 1, so that distances
    are those of the walk after t steps.

    Parameters
    ----------
    n_neighbors : int or None, default None
        Neighbour graph with heat weights; None is the full graph.
    alpha : float, default 0.5
        From 0 (weights as they are) to 1 (no influence of density).
    diffusion_time : float, default 1.0
        t, 0 leaves columns as they are.
    beta : None, "local", "mean" or float, default None
        Width of the heat weights exp(-d²/beta): "local", one width per row from its nearest, as in
        `manifast.graphs.knn_graph`; "mean", the mean squared distance over all pairs of rows; or a number. None is
        "local" for neighbour graphs and "mean" for full ones.
    metric : {"euclidean", "cosine", "precomputed"}, default "euclidean"
        What distances are: plain ones, 1 - cos of the angle between rows, or those in X, which then is the n × n matrix
        of distances, dense, or sparse with those of neighbours; `transform` takes distances to the training rows.
    connect : bool, default True
        Join the components of a disconnected graph by the shortest missing edges, with a warning.
    neighbors : (distances, indices), "approximate" or "auto", optional
        Nearest neighbours of the training rows from elsewhere, instead of the exact search.
        "approximate" finds them by clusters (`manifast.kernels.approximate_knn`), "auto" does so for 50,000 rows of 9
        features and more; `graph_recall_` is then the share of the true neighbours that were found.
    """

    metrics = METRICS

    def __init__(
        self,
        n_neighbors: int | None = None,
        *,
        alpha: float = 0.5,
        diffusion_time: float = 1.0,
        beta: Any = None,
        metric: str = "euclidean",
        connect: bool = True,
        neighbors: Any = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.alpha = alpha
        self.diffusion_time = diffusion_time
        self.beta = beta
        self.metric = metric
        self.connect = connect
        self.neighbors = neighbors

    def check(self, rows: Rows, labels: Labels | None, d: int) -> None:
        if as_number(self.alpha, "alpha", minimum=0.0) > 1:
            raise ValueError(f"alpha must be a number from 0 to 1. Got {self.alpha!r} instead.")
        as_number(self.diffusion_time, "diffusion_time", minimum=0.0)
        if self.n_neighbors is None and given_lists(self.neighbors) is None:
            check_room(rows.n, 3, f"use n_neighbors, or {LANDMARKS}")
        elif given_lists(self.neighbors) is None:
            rows.neighbor_count(self.n_neighbors)

    def build(self, rows: Rows, labels: Labels | None, d: int) -> Objective:
        full = self.n_neighbors is None and given_lists(self.neighbors) is None
        choice = GraphChoice(
            "full" if full else "heat", self.n_neighbors, self.beta, neighbors=self.neighbors, connect=self.connect
        )
        W, width = choice.joined(rows)
        W = W.astype(np.float64)
        sums = np.asarray(W.sum(axis=1)).ravel() + 1.0  # k(x, x) = 1
        scale = sums ** -float(self.alpha)
        W = W.multiply(scale[:, None]).multiply(scale).tocsr() if is_sparse(W) else W * scale[:, None] * scale
        sums = np.asarray(W.sum(axis=1)).ravel()
        L = laplacian(W)[0] if is_sparse(W) else WalkLaplacian(W, sums) if rows.n > _DENSE else np.diag(sums) - W
        degrees = sums + scale**2
        volume, time = float(degrees.sum()), float(self.diffusion_time)

        def finish(values: Array) -> tuple[Array, Array]:
            steps = 1.0 - values
            return steps, np.sqrt(volume) * np.sign(steps) ** round(time) * np.abs(steps) ** time

        lists = given_lists(self.neighbors)
        if lists is not None:
            links = int(np.shape(lists[1])[1])
        else:
            links = rows.n if full else rows.neighbor_count(self.n_neighbors)
        return Objective(L, degrees, finish=finish, source=DiffusionSource(links, width, scale))

    def natural_map(self, rows: Rows, objective: Objective, Y: Array, values: Array) -> Predictor:
        """ψ(x) = Σ_j w_j ψ_j / (λ Σ_j w_j) with w_j = k(x, x_j) / q_j^alpha: the step of the walk from the new row."""
        source: DiffusionSource = objective.source
        factors = 1.0 / np.where(np.abs(values) > 1e-12, values, 1.0)
        return NeighborMean.of(
            rows.features, Y, source.links, source.width, factors=factors, weights=source.scale, metric=rows.metric
        )


@dataclass(frozen=True)
class DiffusionSource:
    """How many training rows a row is linked to, the width of the weights, and q^-alpha."""

    links: int
    width: Any
    scale: Array
