"""Objectives by labels: a graph inside the classes against one between them, as difference or as ratio."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp

from manifast._labels import Labels
from manifast._linalg.blocks import BlockDiagonal
from manifast._linalg.memory import LANDMARKS, check_room
from manifast._linalg.pencils import as_dense
from manifast._rows import Rows
from manifast._validation import Array, as_count, as_positive
from manifast._warnings import warn
from manifast.graphs import between_graph, within_blocks
from manifast.kernels import laplacian
from manifast.objectives import formulas
from manifast.objectives.base import Objective, ObjectiveBuilder
from manifast.spectral import fix_signs, smallest_eigenvectors

_RANK = 1e-12  # eigenvalues of L_w below this, relative to its size, count as 0


class ClassGraphs(ObjectiveBuilder):
    """Base: L_w of heat weights inside the classes and L_b of a graph between them, plain or normalised."""

    supervised = True
    mu: float

    def __init__(
        self,
        *,
        n_neighbors_within: int | None = None,
        n_neighbors_between: int | None = None,
        normalized: bool = False,
        beta: Any = "mean",
    ) -> None:
        self.n_neighbors_within = n_neighbors_within
        self.n_neighbors_between = n_neighbors_between
        self.normalized = normalized
        self.beta = beta

    def check(self, rows: Rows, labels: Labels | None, d: int) -> None:
        assert labels is not None
        self._counts(rows)
        if self.n_neighbors_within is None:
            check_room(int(labels.sizes.max()), 2, f"use n_neighbors_within, or {LANDMARKS}", lapack=False)

    def _counts(self, rows: Rows) -> list[int | None]:
        names = ("n_neighbors_within", "n_neighbors_between")
        return [
            None if k is None else as_count(k, name, maximum=rows.n - 1, why=f" for {rows.n} rows")
            for name, k in zip(names, (self.n_neighbors_within, self.n_neighbors_between), strict=True)
        ]

    def build(self, rows: Rows, labels: Labels | None, d: int) -> Objective:
        assert labels is not None
        X = rows.features
        within, between = self._counts(rows)
        width = rows.heat_width(self.beta)
        blocks = BlockDiagonal(labels.members, within_blocks(X, labels.members, within, width))
        graph = None if between is None else between_graph(X, labels.members, between, width)
        return self.combine(rows, labels, blocks, graph, d)

    @abstractmethod
    def combine(self, rows: Rows, labels: Labels, within: BlockDiagonal, between: Any, d: int) -> Objective:
        """(A, B) of the graphs; `between` None is the complete graph between the classes, which is not built."""


class Supervised(ClassGraphs):
    """Supervised Laplacian eigenmaps: L_w - mu L_b (NSSE eq. 2, THEORY eq. 30), with Y'Y = I.

    Parameters
    ----------
    mu : float, default 1.0
    n_neighbors_within : int or None, default None
        Join each row to that many nearest of its class, the parts of a class joined by the shortest missing edges;
        None is the complete graph inside each class.
    n_neighbors_between : int or None, default None
        Join each row to that many nearest of other classes with heat weights; None is the complete graph between the
        classes with weight 1, which is never built.
    normalized : bool, default False
        Normalised Laplacians D^-1/2 (D - W) D^-1/2, as in THEORY eq. 30.
    beta : "mean" or float, default "mean"
        Width of the heat weights exp(-d²/beta); "mean" is the mean squared distance over all pairs of rows.
    """

    def __init__(
        self,
        mu: float = 1.0,
        *,
        n_neighbors_within: int | None = None,
        n_neighbors_between: int | None = None,
        normalized: bool = False,
        beta: Any = "mean",
    ) -> None:
        super().__init__(
            n_neighbors_within=n_neighbors_within,
            n_neighbors_between=n_neighbors_between,
            normalized=normalized,
            beta=beta,
        )
        self.mu = mu

    def check(self, rows: Rows, labels: Labels | None, d: int) -> None:
        as_positive(self.mu, "mu")
        super().check(rows, labels, d)

    def most_components(self, rows: Rows, labels: Labels | None) -> tuple[int, str]:
        return rows.n, "the number of rows"

    def combine(self, rows: Rows, labels: Labels, within: BlockDiagonal, between: Any, d: int) -> Objective:
        mu = float(self.mu)
        plain = between is None and not self.normalized
        objective = formulas.supervised(within, between, labels, mu=mu, normalized=self.normalized)
        if not plain:
            return objective

        def modes(d: int) -> tuple[Array, Array]:
            found = ClassModes(within, labels, rows.features, max(0, d - (labels.count - 1)))
            self._warn_of_ties(d, labels.count - 1)
            return found.best(found.within - mu * found.between, d)

        return objective.replace(modes=modes, floor=-mu * rows.n)

    def _warn_of_ties(self, d: int, natural: int) -> None:
        if d == natural:
            return
        what = (
            "they are equally good: those that tell the class means apart best are kept"
            if d < natural
            else "the others are directions inside classes"
        )
        warn(
            f"the complete graph between {natural + 1} classes has {natural} leading directions, and n_components "
            f"is {d}: {what}. Use n_components={natural}, or n_neighbors_between."
        )


class Fisher(ClassGraphs):
    """The largest ratio of L_b against L_w + eps I (THEORY eq. 36), or against the pseudo-inverse of L_w.

    Parameters
    ----------
    regularization : {"ridge", "pinv"}, default "ridge"
        The ratio is unbounded where L_w vanishes. A ridge bounds it; the pseudo-inverse leaves the vectors out that are
        constant on every class: polarised embeddings that generalise badly, as the paper shows.
    eps : float, default 1e-3
        The ridge.
    n_neighbors_within, n_neighbors_between, normalized, beta
        The graphs, as in `Supervised`.
    """

    def __init__(
        self,
        regularization: str = "ridge",
        *,
        eps: float = 1e-3,
        n_neighbors_within: int | None = None,
        n_neighbors_between: int | None = None,
        normalized: bool = False,
        beta: Any = "mean",
    ) -> None:
        super().__init__(
            n_neighbors_within=n_neighbors_within,
            n_neighbors_between=n_neighbors_between,
            normalized=normalized,
            beta=beta,
        )
        self.regularization = regularization
        self.eps = eps

    def check(self, rows: Rows, labels: Labels | None, d: int) -> None:
        if self.regularization not in ("ridge", "pinv"):
            raise ValueError(f"regularization must be 'ridge' or 'pinv'. Got {self.regularization!r} instead.")
        as_positive(self.eps, "eps")
        super().check(rows, labels, d)

    def most_components(self, rows: Rows, labels: Labels | None) -> tuple[int, str]:
        assert labels is not None
        if self.regularization == "ridge":
            return rows.n - 1, "the rows less the constant vector"
        return rows.n - labels.count, "the rows less the classes, which is the rank of L_w"

    def combine(self, rows: Rows, labels: Labels, within: BlockDiagonal, between: Any, d: int) -> Objective:
        eps, ridge = float(self.eps), self.regularization == "ridge"
        objective = formulas.fisher(within, between, labels, eps=eps if ridge else 0.0, normalized=self.normalized)

        def common(d: int) -> tuple[Array, Array]:
            found = ClassModes(within, labels, rows.features, max(0, d - (labels.count - 1)) if ridge else d)
            if ridge:
                ratios = found.between / (found.within + eps)
            else:
                kept = found.within > _RANK * found.scale
                _check_rank(d, int(np.sum(kept)))
                ratios = np.where(kept, found.between / np.where(kept, found.within, 1.0), 0.0)
            ratios, Y = found.best(-ratios, d)
            return -ratios, Y

        closed = common if between is None and not self.normalized else None
        if ridge:
            return objective.replace(modes=closed)
        return objective.replace(
            modes=closed or partial(pseudo_inverse_ratios, objective),
            free_only="regularization='pinv' leaves out what a smoother could hold: use regularization='ridge'.",
        )


def pseudo_inverse_ratios(objective: Objective, d: int) -> tuple[Array, Array]:
    """Largest eigenvalues of the pseudo-inverse of L_w times L_b, and their vectors of unit length."""
    spread, axes = la.eigh(as_dense(objective.A))
    kept = spread > _RANK * spread[-1]
    _check_rank(d, int(np.sum(kept)))
    half = axes[:, kept] / np.sqrt(spread[kept])
    inside = half.T @ np.asarray(objective.B @ half)
    count = len(inside)
    ratios, mixing = la.eigh(0.5 * (inside + inside.T), subset_by_index=(count - d, count - 1))
    Y = half @ mixing[:, ::-1]
    return ratios[::-1], fix_signs(Y / la.norm(Y, axis=0))


def _check_rank(d: int, rank: int) -> None:
    if d > rank:
        raise ValueError(
            f"n_components must be at most {rank} for regularization='pinv', the rank of the within-class Laplacian in "
            f"working precision. Got {d}: use fewer, a larger beta, or 'ridge'."
        )


class ClassModes:
    """Common eigenvectors of the within-class Laplacian and that of the complete graph between the classes.

    L_b = diag(N - n_c) + ZZ' - 11' has the eigenvalues N on contrasts of the classes, where L_w vanishes, N - n_c on
    whatever sums to zero inside class c, and 0 on the constant. So eigenvectors of every class's own Laplacian, the
    contrasts and the constant are all there is, and L_b is never built. All contrasts are equally good: they are turned
    so that the first ones tell the class means apart best.
    """

    def __init__(self, graph: BlockDiagonal, labels: Labels, X: Array, inside: int) -> None:
        n, self._labels = len(X), labels
        self._contrasts = class_contrasts(labels, X)
        self.scale = max(float(sums.max()) for sums in graph.sums()) or 1.0  # of the within-class Laplacian
        within, between = [np.zeros(labels.count)], [np.append(np.full(labels.count - 1, float(n)), 0.0)]
        self._inside: list[Array] = []
        self._at: list[tuple[int, int]] = [(-1, j) for j in range(labels.count)]
        for c, (block, size) in enumerate(zip(graph.blocks, labels.sizes, strict=True)):
            wanted = min(inside, int(size) - 1)
            values, vectors = np.empty(0), np.empty((size, 0))
            if wanted:
                L = laplacian(sp.csr_array(block, dtype=np.float64))[0]
                values, vectors = smallest_eigenvectors(L, wanted, null=np.ones(size), check=False)
            self._inside.append(vectors)
            self._at += [(c, j) for j in range(wanted)]
            within.append(values)
            between.append(np.full(wanted, float(n - size)))
        self.within, self.between = np.concatenate(within), np.concatenate(between)

    def best(self, scores: Array, d: int) -> tuple[Array, Array]:
        """The d smallest scores, one per mode, and their unit vectors."""
        chosen = np.argsort(scores, kind="stable")[:d]
        Y = np.zeros((len(self._labels.codes), d))
        for column, (c, j) in enumerate(self._at[i] for i in chosen):
            if c < 0:
                Y[:, column] = self._contrasts[:, j]
            else:
                Y[self._labels.members[c], column] = self._inside[c][:, j]
        return scores[chosen], fix_signs(Y)


def class_contrasts(labels: Labels, X: Array) -> Array:
    """Orthonormal vectors (n, classes), constant on every class: contrasts of the classes, and the constant last."""
    roots = np.sqrt(labels.sizes)
    heights = np.column_stack([contrasts(roots, labels, X), roots / np.sqrt(len(X))]) / roots[:, None]
    return np.asarray(heights[labels.codes])


def contrasts(roots: Array, labels: Labels, X: Array) -> Array:
    """Orthonormal (classes, classes - 1), orthogonal to `roots`, the first ones along which class means differ most.

    The class means count with weights `roots`; where these are √n_c the scaled means, less the common one, are
    contrasts themselves.
    """
    means = np.stack([X[rows].mean(axis=0, dtype=np.float64) for rows in labels.members])
    means -= X.mean(axis=0, dtype=np.float64)
    across = la.qr(roots[:, None])[0][:, 1:]
    spread = across.T @ (roots[:, None] * means)
    if spread.shape[1] < spread.shape[0]:  # fewer features than contrasts: the others come in any order
        return np.asarray(across @ la.svd(spread)[0])
    return np.asarray(across @ la.svd(spread, full_matrices=False)[0])
