"""The formulas of the objectives: (A, B) from graphs, neighbourhoods and classes, with their equation numbers.

An embedding minimises tr(Y'AY) subject to Y'BY = I. Objectives without labels are positive semidefinite and vanish on
constants, which the solver is told to leave out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from manifast._labels import Labels, read_labels
from manifast._linalg.blocks import BlockDiagonal
from manifast._local import (
    alignment_matrix,
    barycenter_weights,
    hessian_matrix,
    lle_matrix,
    modified_lle_matrix,
)
from manifast._validation import Array, as_matrix, is_sparse
from manifast.kernels import laplacian, sq_distances
from manifast.objectives.base import Objective
from manifast.spectral import LowRankSum


def laplacian_eigenmaps(W: Any, constraint: str = "degree") -> Objective:
    """Laplacian eigenmaps (Belkin and Niyogi 2003): L = D - W against D, or I. Rows without edges weigh nothing."""
    L: Any
    if is_sparse(W):
        L, degrees = laplacian(W.astype(np.float64))
    else:
        dense = np.array(W, dtype=np.float64)
        np.fill_diagonal(dense, 0.0)
        degrees = dense.sum(axis=1)
        L = np.diag(degrees) - dense
    lonely = degrees <= 0
    if lonely.any():
        degrees = np.where(lonely, degrees[~lonely].min(initial=1.0), degrees)
    return Objective(L, None if constraint == "identity" else degrees)


def reconstruction(X: Array, neighbors: Array, bridges: Array, *, reg: float) -> Objective:
    """LLE (Roweis and Saul 2000): (I - W)'(I - W), every row rebuilt from its neighbours with weights that sum to 1.

    A bridge (i, j) between components adds the reconstruction of i from its nearest and j, and the other way round.
    """
    M = lle_matrix(X, neighbors, reg=reg)
    if len(bridges):
        ends, near = _bridge_neighbors(neighbors, bridges)
        weights = barycenter_weights(X, near, queries=X[ends], reg=reg).astype(np.float64)
        rows = np.repeat(np.arange(len(ends)), near.shape[1] + 1)
        values = np.column_stack([np.ones(len(ends)), -weights]).ravel()
        residuals = sp.coo_array((values, (rows, np.column_stack([ends, near]).ravel())), shape=(len(ends), len(X)))
        M = M + residuals.T @ residuals
    return Objective(sp.csr_array(M))


def modified_reconstruction(X: Array, neighbors: Array, bridges: Array, *, dim: int, reg: float) -> Objective:
    """Modified LLE (Zhang and Wang 2006): every row rebuilt from its neighbours in several ways at once.

    A bridge (i, j) between components adds the same for i from its nearest and j, and the other way round.
    """
    ends, near = _bridge_neighbors(neighbors, bridges)
    lists, centers = np.vstack([neighbors, near]), np.append(np.arange(len(X)), ends)
    return Objective(modified_lle_matrix(X, lists, dim=dim, reg=reg, centers=centers))


def _bridge_neighbors(neighbors: Array, bridges: Array) -> tuple[Array, Array]:
    """Both ends of every bridge, and their lists of neighbours with the other end instead of the farthest."""
    ends, others = np.vstack([bridges, bridges[:, ::-1]]).astype(np.int64).T
    return ends, np.column_stack([neighbors[ends][:, : neighbors.shape[1] - 1], others])


def alignment(X: Array, cliques: Array, bridges: Array, *, dim: int, gamma: float = 0.0) -> Objective:
    """LTSA and local regression: Σ_i S_i A_i S_i' with A_i = H - U diag(s²/(s²+γ)) U' (LGRM eqs. 10 to 12).

    U and s are the leading singular vectors and values of the centred clique; γ = 0 is the alignment matrix of LTSA
    (Zhang and Zha 2004). A bridge (i, j) adds a clique of the nearest rows of both its ends.
    """
    return Objective(alignment_matrix(X, _bridged(cliques, bridges), dim=dim, gamma=gamma))


def hessian(X: Array, neighbors: Array, bridges: Array, *, dim: int) -> Objective:
    """Hessian eigenmaps (Donoho and Grimes 2003): Σ_i S_i H_i'H_i S_i', the second order of functions.

    A bridge (i, j) adds a clique of the nearest rows of both its ends.
    """
    return Objective(hessian_matrix(X, _bridged(neighbors, bridges), dim=dim))


def _bridged(cliques: Array, bridges: Array) -> Array:
    """The cliques, and for each bridge (i, j) one as large of the nearest rows of i and j in turn."""
    k = cliques.shape[1]
    joint = []
    for i, j in bridges:
        mixed = np.stack([np.append(i, cliques[i]), np.append(j, cliques[j])]).T.ravel()
        _, first = np.unique(mixed, return_index=True)
        joint.append(mixed[np.sort(first)][:k])
    return np.vstack([cliques, joint]) if joint else cliques


def supervised(within: Any, between: Any, y: Any, *, mu: float, normalized: bool = False) -> Objective:
    """Supervised Laplacian eigenmaps: L_w - μ L_b (NSSE eq. 2, THEORY eq. 30), plain or normalised.

    `within` is a graph or the `BlockDiagonal` of one; `between=None` is the complete graph between the classes y, which
    is not built.
    """
    labels = y if isinstance(y, Labels) else read_labels("supervised", y, within.shape[0])

    def difference() -> Any:
        blocks = within.laplacian() if isinstance(within, BlockDiagonal) and not normalized else None
        L_w = class_laplacian(within, labels, normalized)
        L_b = between_laplacian(labels, normalized) if between is None else class_laplacian(between, labels, normalized)
        if not isinstance(L_b, LowRankSum):
            return sp.csr_array(L_w - mu * L_b)
        diagonal = L_b.sparse.diagonal()
        made = sp.csr_array(L_w - mu * L_b.sparse)
        shifted = None if blocks is None else blocks.raised(-mu * diagonal)
        return LowRankSum(made, L_b.factor, -mu * L_b.weights, shifted)

    return Objective(difference, drop_constant=False)


def fisher(within: Any, between: Any, labels: Labels, *, eps: float, normalized: bool = False) -> Objective:
    """The largest of L_b against L_w + εI (THEORY eq. 36), plain or normalised; `between` None as in `supervised`."""

    def regularised() -> Any:
        L_w = class_laplacian(within, labels, normalized)
        return sp.csr_array(L_w + eps * sp.eye_array(L_w.shape[0])) if eps else L_w

    L_b = between_laplacian(labels, normalized) if between is None else class_laplacian(between, labels, normalized)
    return Objective(regularised, L_b, drop_constant=False, ratio=True)


def class_laplacian(W: Any, labels: Labels, normalized: bool) -> sp.csr_array:
    """D - W, or D^-1/2 (D - W) D^-1/2."""
    graph = W.tocsr() if isinstance(W, BlockDiagonal) else W
    return laplacian(graph.astype(np.float64), normalization="sym" if normalized else None)[0]


def between_laplacian(labels: Labels, normalized: bool = False) -> LowRankSum:
    """The Laplacian of the complete graph between the classes: diagonal plus low rank.

    Degrees are N - n_c and weights 11' - ZZ' = Z (11' - I) Z' for class indicators Z; rows without a label have none.
    """
    hot = labels.indicators
    degrees = np.where(labels.codes >= 0, labels.sizes.sum() - hot @ labels.sizes, 0.0)
    values, vectors = np.linalg.eigh(np.eye(labels.count) - 1.0)
    factor = hot @ vectors
    if normalized:
        return LowRankSum(sp.eye_array(len(hot), format="csr"), factor / np.sqrt(degrees)[:, None], values)
    return LowRankSum(sp.diags_array(degrees, format="csr"), factor, values)


def within_laplacian(labels: Labels) -> LowRankSum:
    """The Laplacian of the complete graph inside the classes with weights 1: diag(n_c) - ZZ'."""
    hot = labels.indicators
    return LowRankSum(sp.diags_array(hot @ labels.sizes, format="csr"), hot, np.full(labels.count, -1.0))


def margins(codes: Array, count: int) -> tuple[Array, Array]:
    """M_l and the diagonal D_l of the margin between classes (SEE eqs. 2 to 6) for rows of classes 0 … count - 1.

    A row's margin is its mean squared distance to other classes less that to its own. With S^w and S^b the matrices of
    these means, D^b the column sums of S^b: M_l = 3I + D^b + S^b + S^b' - 2S^w and D_l = I + D^b.
    """
    hot: Array = (codes[:, None] == np.arange(count)).astype(np.float64)
    sizes, total = hot.sum(axis=0), len(codes)
    same: Array = hot @ hot.T
    within = same / sizes[codes][:, None]
    between = (1.0 - same) / (total - sizes[codes])[:, None]
    D = 1.0 + between.sum(axis=0)
    return np.diag(2.0 + D) + between + between.T - 2.0 * within, D


def sample_margins(Z: Any, y: Any) -> Array:
    """The margin m(i) of every labelled row (SEE eq. 1): mean squared distance to other classes less that to its own.

    Parameters
    ----------
    Z : array of shape (n, d)
        An embedding.
    y : array of n labels
        -1 for rows without a label, whose margin is not a number.

    Returns
    -------
    array of shape (n,)

    Examples
    --------
    >>> from manifast.objectives import sample_margins
    >>> sample_margins([[0.0], [1.0], [3.0]], ["a", "a", "b"])
    array([8.5, 3.5, 6.5])
    """
    rows = as_matrix(Z, "Z", min_rows=1)
    labels = y if isinstance(y, Labels) else read_labels("sample_margins", y, len(rows), unlabelled=True)
    known = labels.labelled
    squares = sq_distances(rows[known].astype(np.float64))
    same = labels.codes[known][:, None] == labels.codes[known]
    margins = np.full(len(rows), np.nan)
    margins[known] = np.where(same, 0.0, squares).sum(axis=1) / (~same).sum(axis=1) - (
        np.where(same, squares, 0.0).sum(axis=1) / same.sum(axis=1)
    )
    return margins
