"""Objectives of partly labelled rows: a graph of all rows, and what the labels of some say beside it."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from manifast._labels import Labels
from manifast._linalg.condensed import Margins
from manifast._linalg.memory import LANDMARKS, check_room
from manifast._rows import OF_LABELS, GraphChoice, Rows, refuse_neighbors, warn_components
from manifast._validation import as_number, is_sparse
from manifast.graphs import given_graph, n_components_of
from manifast.objectives import formulas
from manifast.objectives.base import Objective, ObjectiveBuilder
from manifast.objectives.scatter import UNBOUNDED
from manifast.spectral import LowRankSum

GRAPHS = ("heat", "binary", "full", "l1")


class PartlyLabelled(ObjectiveBuilder):
    """Base: the Laplacian of a graph of all rows, labelled or not."""

    supervised = True
    unlabelled = True

    def __init__(
        self,
        n_neighbors: int | None = None,
        *,
        graph: Any = "heat",
        beta: Any = None,
        connect: bool = True,
        neighbors: Any = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.graph = graph
        self.beta = beta
        self.connect = connect
        self.neighbors = neighbors

    def check(self, rows: Rows, labels: Labels | None, d: int) -> None:
        if isinstance(self.graph, str) and self.graph not in GRAPHS:
            known = ", ".join(map(repr, GRAPHS))
            raise ValueError(f"graph must be one of {known} or a matrix. Got {self.graph!r} instead.")
        if isinstance(self.graph, str) and self.graph == "full":
            check_room(rows.n, 3, f"use a graph of neighbours, or {LANDMARKS}")

    def laplacian(self, rows: Rows) -> Any:
        """The Laplacian of the graph that was asked for, sparse, or dense for a full graph."""
        if isinstance(self.graph, str):
            choice = GraphChoice(
                self.graph,
                self.n_neighbors,
                self.beta,
                neighbors=self.neighbors,
                connect=self.connect,
                advice=OF_LABELS,
                unit=True,
            )
            W, _ = choice.joined(rows)
        else:
            refuse_neighbors(self.neighbors, "a graph that is given")
            W = given_graph(self.graph, rows.n)
            count = n_components_of(W)
            if count > 1:
                warn_components(count, "which a given graph leaves as they are", OF_LABELS)
        return formulas.laplacian_eigenmaps(W).A


class Margin(PartlyLabelled):
    """Margins between the classes of the labelled rows (SEE eqs. 5 to 9), beside a graph of all rows.

    min tr Z'(L + lam M̃)Z with Z'D̃Z = I, where M̃ and D̃ are zero but for the labelled rows; or with Z'Z = I.

    Parameters
    ----------
    lam : float, default 1.0
        Weight λ of the margins beside the graph.
    graph : None, {"heat", "binary", "full", "l1"} or matrix of shape (n, n), default None
        None is no graph: eqs. 5 and 6, the margins alone, whose rows must all have labels unless a smoother ties the
        others to them.
    n_neighbors : int or None, default None
        None is 10, or as many as few rows have, with a warning.
    beta : None, "local", "mean" or float, default None
        Width of the heat weights exp(-d²/beta): "local", one width per row from its nearest, as in
        `manifast.graphs.knn_graph`; "mean", the mean squared distance over all pairs of rows; or a number. None is
        "local" for neighbour graphs and "mean" for full ones.
    constraint : {"margin", "identity"}, default "margin"
        Z'D̃Z = I, or Z'Z = I (TCA).
    connect : bool, default True
        Join the components of a disconnected graph by the shortest missing edges, with a warning.
    neighbors : (distances, indices), "approximate" or "auto", optional
        Nearest neighbours of the training rows from elsewhere, instead of the exact search.
        "approximate" finds them by clusters (`manifast.kernels.approximate_knn`), "auto" does so for 50,000 rows of 9
        features and more; `graph_recall_` is then the share of the true neighbours that were found.
    """

    def __init__(
        self,
        lam: float = 1.0,
        *,
        graph: Any = None,
        n_neighbors: int | None = None,
        beta: Any = None,
        constraint: str = "margin",
        connect: bool = True,
        neighbors: Any = None,
    ) -> None:
        super().__init__(n_neighbors, graph=graph, beta=beta, connect=connect, neighbors=neighbors)
        self.lam = lam
        self.constraint = constraint

    def check(self, rows: Rows, labels: Labels | None, d: int) -> None:
        as_number(self.lam, "lam", minimum=0.0)
        if self.constraint not in ("margin", "identity"):
            raise ValueError(f"constraint must be 'margin' or 'identity'. Got {self.constraint!r} instead.")
        if self.graph is not None:
            super().check(rows, labels, d)

    def most_components(self, rows: Rows, labels: Labels | None) -> tuple[int, str]:
        assert labels is not None
        if self.constraint == "identity":
            return rows.n, "the rows"
        why = "the number of labelled rows, on which alone the constraint Z'D̃Z = I holds"
        return len(labels.labelled), why

    def build(self, rows: Rows, labels: Labels | None, d: int) -> Objective:
        assert labels is not None
        L = sp.csr_array((rows.n, rows.n)) if self.graph is None else self.laplacian(rows)
        return self.assemble(labels, rows.n, L)

    def assemble(self, labels: Labels, n: int, L: Any) -> Objective:
        """The objective of a graph whose Laplacian is known."""
        known = labels.labelled
        M, D = formulas.margins(labels.codes[known], labels.count)
        M *= float(self.lam)

        def total() -> Any:
            places = np.repeat(known, len(known)), np.tile(known, len(known))
            margins = sp.csr_array(sp.coo_array((M.ravel(), places), shape=(n, n)))
            return sp.csr_array(L + margins) if is_sparse(L) else L + margins.toarray()

        if self.constraint == "identity":
            return Objective(total, drop_constant=False)
        weights = np.zeros(n)
        weights[known] = D
        unbounded = ""
        if self.graph is None and len(known) < n:
            unbounded = (
                "margins alone say nothing of rows without a label: give the objective a graph (Margin(graph='heat')), "
                "or use a smoother, or leave those rows out."
            )
        return Objective(
            total, weights, drop_constant=False, margin=Margins(known, M, D, L), unbounded=unbounded
        )


class SDA(PartlyLabelled):
    """Semi-supervised discriminant analysis (Cai et al. 2007): S_b against S_t + alpha L, scatters of labelled rows.

    Parameters
    ----------
    alpha : float, default 0.1
        Weight of smoothness on the graph.
    n_neighbors, graph, beta, connect, neighbors
        The graph of all rows, as in `Margin`; default "heat".
    """

    def __init__(
        self,
        alpha: float = 0.1,
        *,
        n_neighbors: int | None = None,
        graph: Any = "heat",
        beta: Any = None,
        connect: bool = True,
        neighbors: Any = None,
    ) -> None:
        super().__init__(n_neighbors, graph=graph, beta=beta, connect=connect, neighbors=neighbors)
        self.alpha = alpha

    def check(self, rows: Rows, labels: Labels | None, d: int) -> None:
        as_number(self.alpha, "alpha", minimum=0.0)
        super().check(rows, labels, d)

    def most_components(self, rows: Rows, labels: Labels | None) -> tuple[int, str]:
        assert labels is not None
        most = min(labels.count - 1, rows.n - 1, rows.X.shape[1])
        return most, "the classes less one and the dimensions that X spans"

    def build(self, rows: Rows, labels: Labels | None, d: int) -> Objective:
        assert labels is not None
        return self.assemble(labels, rows.n, self.laplacian(rows))

    def assemble(self, labels: Labels, n: int, L: Any) -> Objective:
        """The objective of a graph whose Laplacian is known."""
        within, between = self.scatters(labels)
        smooth = float(self.alpha) * L
        if is_sparse(smooth):
            A: Any = LowRankSum(smooth + within.sparse, within.factor, within.weights)
        else:
            A = smooth + within.toarray()
        return Objective(A, between, drop_constant=False, ratio=True, unbounded=UNBOUNDED)

    def scatters(self, labels: Labels) -> tuple[LowRankSum, LowRankSum]:
        """What is to be small and what is to be large beside the graph, as matrices of all rows."""
        n, hot = len(labels.codes), labels.indicators
        known = hot.sum(axis=1)
        mean = known[:, None] / np.sqrt(known.sum())
        total = LowRankSum(sp.diags_array(known, format="csr"), mean, np.array([-1.0]))
        factor = np.hstack([hot / np.sqrt(labels.sizes), mean])
        between = LowRankSum(sp.csr_array((n, n)), factor, np.append(np.ones(labels.count), -1.0))
        return total, between


class SDE(SDA):
    """Semi-supervised discriminant embedding (Yu et al. 2012): L_b against L_w + alpha L, complete class graphs.

    Parameters
    ----------
    alpha, n_neighbors, graph, beta, connect, neighbors
        As in `SDA`.
    """

    def most_components(self, rows: Rows, labels: Labels | None) -> tuple[int, str]:
        return min(rows.n - 1, rows.X.shape[1]), "the dimensions that X spans"

    def scatters(self, labels: Labels) -> tuple[LowRankSum, LowRankSum]:
        return formulas.within_laplacian(labels), formulas.between_laplacian(labels)
