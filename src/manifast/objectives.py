"""Objectives (A, B): which rows belong together. An embedding minimises tr(Y'AY) subject to Y'BY = I.

Those without labels are positive semidefinite and vanish on constants, which the solver is told to leave out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from manifast._labels import Labels, read_labels
from manifast._local import alignment_matrix, barycenter_weights, lle_matrix
from manifast._validation import Array, is_sparse
from manifast.kernels import laplacian
from manifast.spectral import LowRankSum


@dataclass(frozen=True)
class Objective:
    """A and B of one problem; B is None for the identity, or the vector of a diagonal."""

    A: Any
    B: Array | None = None
    drop_constant: bool = True

    @property
    def weights(self) -> Array:
        """The diagonal of B."""
        return np.ones(self.A.shape[0]) if self.B is None else self.B

    @property
    def null(self) -> Array | None:
        """What the solver leaves out."""
        return np.ones(self.A.shape[0]) if self.drop_constant else None


def laplacian_eigenmaps(W: Any) -> Objective:
    """Laplacian eigenmaps (Belkin and Niyogi 2003): L = D - W against D. Rows without edges weigh nothing."""
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
    return Objective(L, degrees)


def reconstruction(X: Array, neighbors: Array, bridges: Array, *, reg: float) -> Objective:
    """LLE (Roweis and Saul 2000): (I - W)'(I - W), every row rebuilt from its neighbours with weights that sum to 1.

    A bridge (i, j) between components adds the reconstruction of i from its nearest and j, and the other way round.
    """
    M = lle_matrix(X, neighbors, reg=reg)
    if len(bridges):
        ends, others = np.vstack([bridges, bridges[:, ::-1]]).T
        near = np.column_stack([neighbors[ends][:, : neighbors.shape[1] - 1], others])
        weights = barycenter_weights(X, near, queries=X[ends], reg=reg).astype(np.float64)
        rows = np.repeat(np.arange(len(ends)), near.shape[1] + 1)
        values = np.column_stack([np.ones(len(ends)), -weights]).ravel()
        residuals = sp.coo_array((values, (rows, np.column_stack([ends, near]).ravel())), shape=(len(ends), len(X)))
        M = M + residuals.T @ residuals
    return Objective(sp.csr_array(M))


def alignment(X: Array, cliques: Array, bridges: Array, *, dim: int, gamma: float = 0.0) -> Objective:
    """LTSA and local regression: Σ_i S_i A_i S_i' with A_i = H - U diag(s²/(s²+γ)) U' (LGRM eqs. 10 to 12).

    U and s are the leading singular vectors and values of the centred clique; γ = 0 is the alignment matrix of LTSA
    (Zhang and Zha 2004). A bridge (i, j) adds a clique of the nearest rows of both its ends.
    """
    k = cliques.shape[1]
    if len(bridges):
        joint = []
        for i, j in bridges:
            mixed = np.stack([np.append(i, cliques[i]), np.append(j, cliques[j])]).T.ravel()
            _, first = np.unique(mixed, return_index=True)
            joint.append(mixed[np.sort(first)][:k])
        cliques = np.vstack([cliques, joint])
    return Objective(alignment_matrix(X, cliques, dim=dim, gamma=gamma))


def supervised(within: Any, between: Any, y: Any, *, mu: float, normalized: bool = False) -> Objective:
    """Supervised Laplacian eigenmaps: L_w - μ L_b (NSSE eq. 2, THEORY eq. 30), plain or normalised.

    `between=None` is the complete graph between the classes y, which is not built.
    """
    labels = y if isinstance(y, Labels) else read_labels("supervised", y, within.shape[0])
    L_w, L_b = (class_laplacian(W, labels, normalized) for W in (within, between))
    if isinstance(L_b, LowRankSum):
        return Objective(LowRankSum(sp.csr_array(L_w - mu * L_b.sparse), L_b.factor, -mu * L_b.weights), None, False)
    return Objective(sp.csr_array(L_w - mu * L_b), None, False)


def class_laplacian(W: Any, labels: Labels, normalized: bool) -> Any:
    """D - W, or D^-1/2 (D - W) D^-1/2; of the complete graph between the classes where W is None.

    That one has degrees N - n_c and weights 11' - ZZ' = Z (11' - I) Z' for class indicators Z: diagonal plus low rank.
    """
    if W is not None:
        return laplacian(W.astype(np.float64), normalization="sym" if normalized else None)[0]
    n, hot = len(labels.codes), labels.indicators
    degrees = n - hot @ labels.sizes
    values, vectors = np.linalg.eigh(np.eye(labels.count) - 1.0)
    factor = hot @ vectors
    if normalized:
        return LowRankSum(sp.eye_array(n, format="csr"), factor / np.sqrt(degrees)[:, None], values)
    return LowRankSum(sp.diags_array(degrees, format="csr"), factor, values)


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


def given(A: Any, n: int) -> Objective:
    """A local Laplacian of the user's own: symmetric, with rows that sum to zero."""
    A = sp.csr_array(A, dtype=np.float64) if is_sparse(A) else np.asarray(A, dtype=np.float64)
    if A.shape != (n, n):
        raise ValueError(f"local must be a matrix of shape ({n}, {n}) for {n} rows of X. Got shape {A.shape} instead.")
    largest = abs(A).max()
    if not np.isfinite(largest) or abs(A - A.T).max() > 1e-8 * largest:
        raise ValueError("local must be a symmetric matrix of finite numbers. Got one that is not.")
    if abs(A.sum(axis=1)).max() > 1e-6 * largest:
        raise ValueError("local must be a Laplacian, whose rows sum to zero. Got rows that do not.")
    return Objective(A)
