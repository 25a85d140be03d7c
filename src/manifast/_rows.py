"""Checked training rows as objectives and smoothers see them, and the neighbourhoods and graphs found among them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from manifast._gram import kernel_features
from manifast._linalg.memory import LANDMARKS, check_room
from manifast._neighbors import given_lists, search_neighbors
from manifast._progress import stage, stages
from manifast._threads import lazy
from manifast._validation import Array, as_count, in_other_units, is_sparse
from manifast._warnings import warn
from manifast._widths import is_local
from manifast.graphs import Distances, bridges_between, distances_of, graph_of_lists, joined, l1_graph, n_components_of

# What components of a graph mean where labels or paths decide, not eigenvectors of its Laplacian.
OF_LABELS = "Use a larger n_neighbors if they belong together."
OF_PATHS = (
    "Distances between components then run through single edges. Use a larger n_neighbors if they belong together, "
    "which makes the number of connected components smaller, or embed every component on its own."
)


_NEIGHBORS = 10  # default of graphs of partly labelled rows


@dataclass(frozen=True)
class Rows:
    """Rows X that were checked, scaled by 2^-exponent where squares of them would have left the range of numbers.

    `kernel`: X holds kernel values instead of features; neighbours are found in the space of the kernel. `metric` says
    what distances are; for "precomputed" X holds them.
    """

    X: Any
    exponent: int = 0
    kernel: bool = False
    columns: int | None = None  # features that a projection may combine, where there is one
    metric: str = "euclidean"
    found: dict[str, float | None] = field(default_factory=dict)  # recall of the neighbours, where it was asked for

    @property
    def n(self) -> int:
        return int(self.X.shape[0])

    @lazy
    def features(self) -> Any:
        """Rows to measure distances between."""
        return kernel_features(self.X) if self.kernel else self.X

    @lazy
    def distances(self) -> Distances:
        """Distances between the rows, in the metric."""
        return distances_of(self.features, self.metric)

    def in_units(self, value: Any, power: int) -> Any:
        """A parameter in (units of the data)^power, in those that the rows were scaled to."""
        return in_other_units(value, power, self.exponent)

    def in_distances(self, value: Any, power: int) -> Any:
        """The same for (units of the distances)^power; those of angles have none."""
        return value if self.metric == "cosine" else self.in_units(value, power)

    def squared(self, ridge: float) -> float:
        """A ridge in squared units of the data, in those that the rows were scaled to, as far as numbers reach."""
        return float(np.clip(self.in_units(ridge, 2), 1e-290, 1e290)) if ridge else 0.0

    def heat_width(self, beta: Any) -> float:
        """The width of heat weights that `beta` stands for."""
        return float(self.distances.heat_width(self.in_distances(beta, 2)))

    def neighbor_count(self, value: Any, *, least: int = 1, others: bool = True) -> int:
        """n_neighbors, checked: at most n - 1, or n where a row counts among its own neighbours."""
        most = self.n - 1 if others else self.n
        why = f" for n_samples = {self.n}, n_features = {self.X.shape[1]}"
        k = as_count(value, "n_neighbors", maximum=most, why=why)
        if k < least:
            raise ValueError(f"n_neighbors must be at least {least} for this method. Got {k} instead.")
        return k

    @property
    def recall(self) -> dict[str, float]:
        """The attribute `graph_recall_` of an estimator whose neighbours were searched by "approximate" or "auto"."""
        recall = self.found.get("recall")
        return {} if recall is None else {"graph_recall_": recall}

    def neighbors(self, k: int, given: Any = None) -> tuple[Array, Array]:
        """Distances and indices of the nearest others: the user's own lists, or a search, as `neighbors` says."""
        if given_lists(given) is not None:
            return neighbor_lists(given, self.n)
        distances, indices, recall = search_neighbors(self.distances, self.features, k, given)
        self.found["recall"] = recall
        return distances, indices


def neighbor_lists(given: Any, n: int) -> tuple[Array, Array]:
    """The user's own lists of nearest neighbours, checked, without the rows themselves."""
    shapes = [np.shape(part) for part in given] if isinstance(given, tuple | list) else []
    if len(shapes) != 2 or shapes[0] != shapes[1] or len(shapes[0]) != 2 or shapes[0][0] != n:
        raise ValueError(f"neighbors must be (distances, indices), both of shape ({n}, k). Got {shapes or given!r}.")
    distances, indices = np.asarray(given[0]), np.asarray(given[1])
    if indices.dtype.kind not in "iu":
        raise ValueError(f"neighbors must be (distances, indices) with integer indices. Got {indices.dtype} instead.")
    if indices.size and not (indices.min() >= 0 and indices.max() < n):
        raise ValueError(
            f"neighbors must name rows from 0 to {n - 1}. Got indices from {indices.min()} to {indices.max()}."
        )
    itself = indices == np.arange(n)[:, None]
    if itself.any():
        if not (itself.sum(axis=1) == 1).all() or indices.shape[1] == 1:
            raise ValueError(
                "neighbors must list every row as its own neighbour, once, or no row. Got lists in which some rows "
                "name themselves and others do not, or name themselves twice."
            )
        distances, indices = (part[~itself].reshape(n, -1) for part in (distances, indices))
    ordered = np.sort(indices, axis=1)
    twice = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
    if len(twice):
        raise ValueError(
            f"neighbors must not name a row twice. Got {indices[twice[0]].tolist()} as neighbours of row {twice[0]}."
        )
    return distances, np.ascontiguousarray(indices, dtype=np.int64)


_NOT_OF_NEIGHBORS = {"full": "a full graph, which joins all rows", "l1": "the graph of sparse codes"}


def refuse_neighbors(given: Any, graph: str) -> None:
    """Refuse neighbours, or a way to search for them, where a graph has no use for either."""
    if given is not None and not (isinstance(given, str) and given == "auto"):
        came = repr(given) if isinstance(given, str) else "lists of neighbours"
        raise ValueError(f"neighbors must be None or 'auto' for {graph}. Got {came}: use a graph of neighbours.")


@dataclass(frozen=True)
class GraphChoice:
    """Parameters of a graph of rows: neighbour graphs ("heat", "binary"), "full" or "l1"."""

    kind: str
    n_neighbors: Any = 8
    beta: Any = None  # "local" for neighbour graphs, "mean" for full ones
    mode: str = "union"
    neighbors: Any = None
    connect: bool = True
    advice: str | None = None  # what a warning about components says can be done
    unit: bool = False  # whether local weights are divided by their median, for sums of the Laplacian and other terms

    def weights(self, rows: Rows) -> tuple[Any, Any]:
        """The graph as it comes, and the width of its heat weights: one, or an array with the root of each row's."""
        if self.kind in _NOT_OF_NEIGHBORS:
            refuse_neighbors(self.neighbors, _NOT_OF_NEIGHBORS[self.kind])
        if self.kind == "l1":
            with stage(f"graph of sparse codes of {rows.n} rows"):
                return l1_graph(rows.features, verbose=stages()), 1.0
        if self.kind == "full":
            width = rows.heat_width("mean" if self.beta is None else self.beta)
            check_room(rows.n, 3, f"use a graph of neighbours, or {LANDMARKS}")
            with stage(f"full graph of {rows.n} rows"):
                return rows.distances.complete("heat", width), width
        k = rows.neighbor_count(self._count(rows))
        beta = "local" if self.beta is None else self.beta
        local = self.kind == "heat" and is_local(beta)
        if not is_local(beta):
            beta = rows.heat_width(beta)  # refused before any work
        searched = given_lists(self.neighbors) is None
        distances, indices = rows.neighbors(rows.distances.searched_for(k) if local else k, self.neighbors)
        distances = distances.astype(rows.X.dtype, copy=False)
        width = rows.distances.heat_width(beta, () if searched and not rows.distances.all_known else distances)
        if searched:
            distances, indices = distances[:, :k], indices[:, :k]
        if self.kind == "binary":
            return graph_of_lists(distances, indices, "binary", None, self.mode), width
        W = graph_of_lists(distances, indices, "heat", width, self.mode)
        if self.unit and isinstance(width, np.ndarray):  # others are near 1
            W.data /= np.median(W.data) or 1.0
        return W, width

    def _count(self, rows: Rows) -> Any:
        """n_neighbors; None is 10, or with a warning all others where there are fewer than 10."""
        most = rows.n - 1
        if self.n_neighbors is not None or most >= _NEIGHBORS:
            return _NEIGHBORS if self.n_neighbors is None else self.n_neighbors
        warn(f"n_neighbors is cut from its default, {_NEIGHBORS}, to {most}: X has only {rows.n} rows.")
        return most

    def joined(self, rows: Rows) -> tuple[Any, Any]:
        """The same with its components joined, with a warning where there are several."""
        W, width = self.weights(rows)
        if self.kind == "full" and np.partition(W, 1, axis=1)[:, 1].min() > 0:  # no weight but the diagonal's is zero
            return W, width
        weights = "heat" if self.kind == "full" else self.kind
        return join(W, rows.distances, self.connect, weights, width, advice=self.advice), width


def join(
    W: Any, distances: Distances, connect: bool, weights: str, width: float = 1.0, *, advice: str | None = None
) -> Any:
    """The graph with its components joined, with a warning where there are several; without `connect` only the warning.

    Where distances between components are unknown, these are left apart, unless the graph is one of distances, whose
    paths would have no length.
    """
    count = n_components_of(W, weights)
    if count == 1:
        return W
    if connect and not distances.all_known and weights != "distance":
        warn_components(count, "left apart, as a sparse matrix has no distances between them", advice)
        return W
    made = joined(sp.csr_array(W), distances, weights, width) if connect else W
    warn_components(count, _JOINED if connect else "left apart", advice)
    return made


def find_bridges(W: Any, distances: Distances, connect: bool) -> Array:
    """Pairs of rows (m, 2) that would join the components of a graph, with a warning where there are several.

    Rows without an edge, which are in no neighbourhood, do not count as components.
    """
    alone = int(W.shape[0] - np.count_nonzero(np.diff(W.indptr) + np.bincount(W.indices, minlength=W.shape[0])))
    count, done = n_components_of(W, "binary"), _JOINED if connect else "left apart"
    if alone and count - alone <= 1:
        advice = "Use a larger n_neighbors, or leave out rows that are far from all others."
        warn(f"the graph has {alone} of {W.shape[0]} rows that no other row has as a neighbour, {done}. {advice}")
    elif count > 1:
        others = f"beside {alone} row(s) that no other row has as a neighbour, " if alone else ""
        warn_components(count - alone, others + done)
    if count == 1 or not connect:
        return np.empty((0, 2), dtype=np.int64)
    return bridges_between(W, distances)


_JOINED = "joined by the shortest missing edges"


def warn_components(count: int, what: str, advice: str | None = None) -> None:
    """Say that a graph falls apart, and what to do; by default for embeddings by eigenvectors of the graph."""
    first = "dimension does" if count == 2 else f"{count - 1} dimensions do"
    eigenvectors = (
        f"The first {first} little but tell the components apart. Use a larger n_neighbors if they belong together; "
        "or embed every component on its own; or use another map that keeps the distances between them, such as Isomap."
    )
    warn(f"the graph has {count} connected components, {what}. {eigenvectors if advice is None else advice}")


def star_graph(cliques: Array) -> sp.csr_array:
    """The first of each clique joined to its others: connected where the cliques hang together."""
    n, k = cliques.shape
    ends = np.repeat(cliques[:, 0], k - 1), cliques[:, 1:].ravel()
    return sp.coo_array((np.ones(len(ends[0])), ends), shape=(n, n)).tocsr()


def without_diagonal(W: Any) -> Any:
    """A graph without self-loops, which count nowhere; a copy where there are some."""
    if not W.diagonal().any():
        return W
    if is_sparse(W):  # not `setdiag`, which would store what is missing first
        W = sp.csr_array(W, copy=True)
        W.data[W.indices == np.repeat(np.arange(W.shape[0]), np.diff(W.indptr))] = 0
        W.eliminate_zeros()
    else:
        W = W.copy()
        np.fill_diagonal(W, 0.0)
    return W
