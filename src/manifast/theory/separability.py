"""What class graphs guarantee for two classes before they are embedded: Theorem 14 and Corollary 15 of THEORY."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra

from manifast._labels import read_labels
from manifast._rows import without_diagonal
from manifast._validation import Array, as_number, as_positive
from manifast.graphs import given_graph

__all__ = [
    "SeparationBound",
    "origin_distance_bound",
    "two_class_margin_bound",
]

_CHUNK = 1 << 21  # path lengths held at once


class SeparationBound(NamedTuple):
    """A guaranteed separation of classes.

    `margin` is the least separation, 0 where nothing is guaranteed. `condition_holds` says whether the condition is
    met, and `slack` by how much; it is negative where the condition is missed.
    """

    margin: float
    condition_holds: bool
    slack: float


def two_class_margin_bound(
    W_within: Any, W_between: Any, y: Any, mu: float, *, separation: float = 0.0
) -> SeparationBound:
    """Theorem 14: the least separation of two classes by supervised Laplacian eigenmaps in one dimension.

    Parameters
    ----------
    W_within, W_between : sparse or dense matrices of shape (n, n)
        The two graphs, see `manifast.graphs.class_graphs`.
    y : array of n labels
        Two classes, each of at least 2 rows.
    mu : float
        Weight of the between-class Laplacian; both Laplacians are normalised.
    separation : float, default 0
        The separation δ that is asked for. Condition: mu <= w_min (1 - √V_max δ)² / (β_max V_b); for δ = 0 mu must be
        less than that.

    Returns
    -------
    SeparationBound
        `margin` bounds z_2,min - z_1,max from below, eq. (31), in the coordinates z = D_w^(-1/2) y. Multiplied by the
        square root of the smallest within-class degree it bounds the same for y. `slack` is the largest mu that meets
        the condition, minus mu.

    Notes
    -----
    No mu meets the condition where the graph of a class is disconnected, or where a row has no neighbour in the other
    class.

    Examples
    --------
    >>> from manifast.graphs import class_graphs
    >>> from manifast.theory import two_class_margin_bound
    >>> y = [0, 0, 1, 1]
    >>> within, between = class_graphs([[0.0], [1.0], [5.0], [6.0]], y, weights="binary")
    >>> bound = two_class_margin_bound(within, between, y, mu=0.01)
    >>> bound.condition_holds, round(bound.margin, 4), round(bound.slack, 3)
    (True, 0.5657, 0.24)
    """
    mu, wished = as_positive(mu, "mu"), as_number(separation, "separation", minimum=0.0)
    graph = _two_class_graph(W_within, W_between, y)
    fits = graph.weakest > 0 and np.isfinite(graph.beta.max())
    largest = graph.weakest / (graph.beta.max() * graph.between_volume) if fits else 0.0
    allowed = largest * max(1.0 - np.sqrt(graph.volume) * wished, 0.0) ** 2
    holds = mu < largest and mu <= allowed
    margin = (1.0 - np.sqrt(mu / largest)) / np.sqrt(graph.volume) if mu < largest else 0.0
    return SeparationBound(float(margin), bool(holds), float(allowed - mu))


def origin_distance_bound(W_within: Any, W_between: Any, y: Any, separation: float) -> SeparationBound:
    """Corollary 15: how far two classes stay from the origin in one dimension, given the distance between them.

    Parameters
    ----------
    W_within, W_between, y
        As in `two_class_margin_bound`.
    separation : float
        z_2,min - z_1,max: as measured, or as `two_class_margin_bound` guarantees it.

    Returns
    -------
    SeparationBound
        `margin` bounds min(|z_1,max|, |z_2,min|) from below: half the separation times β_min/β_max. The condition is
        that the classes are apart and that every row has neighbours in both graphs. `slack` is the separation.

    Examples
    --------
    >>> from manifast.graphs import class_graphs
    >>> from manifast.theory import origin_distance_bound
    >>> y = [0, 0, 1, 1]
    >>> within, between = class_graphs([[0.0], [1.0], [5.0], [6.0]], y, weights="binary")
    >>> origin_distance_bound(within, between, y, separation=0.5)
    SeparationBound(margin=0.25, condition_holds=True, slack=0.5)
    """
    apart = as_number(separation, "separation", minimum=0.0)
    beta = _two_class_graph(W_within, W_between, y).beta
    holds = bool(apart > 0 and beta.min() > 0 and np.isfinite(beta.max()))
    return SeparationBound(float(0.5 * beta.min() / beta.max() * apart) if holds else 0.0, holds, apart)


@dataclass(frozen=True)
class _TwoClassGraph:
    """What Theorem 14 and Corollary 15 need: β_i, V_max, V_b and min_k w_min,k / D_k (Definitions 10 to 12)."""

    beta: Array
    volume: float
    between_volume: float
    weakest: float


def _two_class_graph(W_within: Any, W_between: Any, y: Any) -> _TwoClassGraph:
    within, between = own_graph(W_within, "W_within"), own_graph(W_between, "W_between")
    n = within.shape[0]
    if between.shape[0] != n:
        raise ValueError(f"W_between must have the shape of W_within, ({n}, {n}). Got {between.shape} instead.")
    labels = read_labels("this bound", y, n, least_members=2)
    if labels.count != 2:
        raise ValueError(f"y must hold 2 classes. Got {labels.count} instead.")
    for W, name, same in ((within, "W_within", True), (between, "W_between", False)):
        edges = W.tocoo()
        if ((labels.codes[edges.row] == labels.codes[edges.col]) != same).any():
            asked, other = ("the same class", "different classes")[:: 1 if same else -1]
            raise ValueError(f"{name} must join only rows of {asked}. Got edges between rows of {other}.")
    d_within, d_between = within.sum(axis=1), between.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        beta = np.where(d_between > 0, d_within / d_between, np.inf)
    parts = [within[rows][:, rows] for rows in labels.members]
    return _TwoClassGraph(
        beta,
        max(float(part.sum()) for part in parts),
        float(between.sum()),
        min(float(part.data.min(initial=np.inf)) / _hop_diameter(part) if part.nnz else 0.0 for part in parts),
    )


def own_graph(W: Any, name: str) -> sp.csr_array:
    """A checked copy of a graph in float64, without self-loops."""
    graph = sp.csr_array(given_graph(W, np.shape(W)[0] if np.ndim(W) else 0, name), dtype=np.float64, copy=True)
    graph = sp.csr_array(without_diagonal(graph))
    graph.eliminate_zeros()
    return graph


def _hop_diameter(W: Any) -> float:
    """The largest number of edges on a shortest path (Definition 11); infinite for a disconnected graph."""
    n = W.shape[0]
    if W.nnz == n * (n - 1):
        return 1.0
    step = max(1, _CHUNK // n)
    parts = (np.arange(begin, min(begin + step, n)) for begin in range(0, n, step))
    return max(float(dijkstra(W, unweighted=True, indices=part).max()) for part in parts)
