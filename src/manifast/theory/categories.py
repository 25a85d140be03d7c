"""Classes in categories: Theorem 16 of THEORY, and the matrices and the margin that it asks for."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as la

from manifast._labels import Labels, read_labels
from manifast._sparse import checked_sparse
from manifast._validation import Array, as_count, as_matrix, as_number, as_positive, is_sparse
from manifast.theory.margins import origin_margin
from manifast.theory.separability import own_graph

__all__ = ["CategoryConditions", "category_conditions", "category_margin", "category_objectives"]


class CategoryConditions(NamedTuple):
    """What Theorem 16 guarantees for classes in categories.

    `margin` is the least margin, 0 where a condition fails. `condition_holds` says whether both conditions are met, and
    `slack` is γ_c/(2√2) - ζ. `perturbation` is |L_nc|, `eigenvalue_gap` is η; `xi` and `zeta` are ξ and ζ.
    """

    margin: float
    condition_holds: bool
    slack: float
    perturbation: float
    eigenvalue_gap: float
    xi: float
    zeta: float


def category_objectives(W_within: Any, W_between: Any, categories: Any, mu: float) -> tuple[Array, Array]:
    """L and L_c of Theorem 16: L_w - mu L_b of all edges, and of the edges inside the categories.

    Parameters
    ----------
    W_within, W_between : sparse or dense matrices of shape (n, n)
        The graphs inside the classes and between them, see `manifast.graphs.class_graphs`.
    categories : array of n labels
        The category of every row; rows of one class belong to one category.
    mu : float
        Weight of the between-class Laplacian; both Laplacians are normalised.

    Returns
    -------
    L, L_categories : arrays of shape (n, n)
        A row without edges in a graph has zeros in its Laplacian.

    Examples
    --------
    >>> from manifast.graphs import class_graphs
    >>> from manifast.theory import category_conditions, category_margin, category_objectives
    >>> X = [[0.0], [0.3], [1.0], [1.4], [50.0], [50.2], [51.0], [51.5]]
    >>> y, categories = [0, 0, 1, 1, 2, 2, 3, 3], [0, 0, 0, 0, 1, 1, 1, 1]
    >>> within, between = class_graphs(X, y, n_neighbors_between=1, beta=2.0)
    >>> L, L_categories = category_objectives(within, between, categories, mu=0.1)
    >>> margin = category_margin(L_categories, y, categories)
    >>> category_conditions(L, L_categories, margin).perturbation
    0.0
    """
    mu = as_positive(mu, "mu")
    within, between = own_graph(W_within, "W_within"), own_graph(W_between, "W_between")
    n = within.shape[0]
    if between.shape[0] != n:
        raise ValueError(f"W_between must have the shape of W_within, ({n}, {n}). Got {between.shape} instead.")
    codes = read_labels("category_objectives", categories, n, least_classes=1).codes
    together = codes[:, None] == codes
    graphs = within.toarray(), between.toarray()
    whole, inside = ([_normalized(W * edges) for W in graphs] for edges in (np.ones_like(together), together))
    return whole[0] - mu * whole[1], inside[0] - mu * inside[1]


def category_margin(L_categories: Any, y: Any, categories: Any, n_components: int | None = None) -> float:
    """γ_c of Theorem 16: how far hyperplanes through the origin separate the classes of every category, eq. (32).

    Each category is embedded on its own, by the first eigenvectors of its block of `L_categories`.

    Parameters
    ----------
    L_categories : matrix of shape (n, n)
        See `category_objectives`.
    y, categories : arrays of n labels
        The class and the category of every row.
    n_components : int, optional
        Dimensions of the embedding of each category; omitted: one less than its classes, and at least one.

    Returns
    -------
    float
        The smallest margin over the categories; 0 where the classes of one cannot be separated in this way. A category
        of one class has to lie on one side of a hyperplane.

    Examples
    --------
    >>> import numpy as np
    >>> from manifast.theory import category_margin
    >>> round(category_margin(np.array([[1.0, 1.0], [1.0, 1.0]]), ["a", "b"], [0, 0]), 6)
    1.414214
    """
    L = _symmetric(L_categories, "L_categories")
    n = len(L)
    classes = read_labels("category_margin", y, n, least_classes=1).codes
    groups: Labels = read_labels("category_margin", categories, n, least_classes=1)
    margins = []
    for rows in groups.members:
        if L[np.ix_(rows, np.setdiff1d(np.arange(n), rows))].any():
            raise ValueError("L_categories must have no entries between categories. Got some.")
        names = np.unique(classes[rows])
        if np.isin(classes[np.setdiff1d(np.arange(n), rows)], names).any():
            raise ValueError("categories must hold whole classes. Got rows of one class in two categories.")
        d = max(1, len(names) - 1)
        if n_components is not None:
            d = as_count(n_components, "n_components", maximum=len(rows), why=", the rows of a category")
        Y = la.eigh(L[np.ix_(rows, rows)], subset_by_index=[0, d - 1])[1]
        margins.append(origin_margin([Y[classes[rows] == c] for c in names]))
    return min(margins)


def category_conditions(L: Any, L_categories: Any, margin: float) -> CategoryConditions:
    """Theorem 16: classes that are separable inside their category stay so when categories are joined weakly.

    Parameters
    ----------
    L : matrix of shape (n, n)
        L_w - mu L_b of all edges, normalised Laplacians, see `category_objectives`.
    L_categories : matrix of shape (n, n)
        The same matrix, made from the edges inside the categories only. It is not a block of L, because the degrees
        change with the edges.
    margin : float
        γ_c, the margin of eq. (32) between the classes of each category on its own, see `category_margin`.

    Returns
    -------
    CategoryConditions
        `margin` is γ_c/√2 - 2ζ. The conditions are |L_nc| < η/2, where L_nc = L - L_categories and η is the smallest
        gap between eigenvalues of `L_categories`, and ζ < γ_c/(2√2).

    Examples
    --------
    >>> import numpy as np
    >>> from manifast.theory import category_conditions
    >>> L = np.diag([0.0, 1.0, 2.0, 3.0])
    >>> found = category_conditions(L + 1e-6 * np.ones((4, 4)), L, margin=1.0)
    >>> found.condition_holds, round(found.margin, 4)
    (True, 0.6958)
    """
    inside = _symmetric(L_categories, "L_categories")
    n = len(inside)
    margin = as_number(margin, "margin", minimum=0.0)
    moved = _symmetric(L, "L", n) - inside
    perturbation = float(np.abs(la.eigvalsh(moved)).max())
    gap = float(np.diff(la.eigvalsh(inside)).min(initial=np.inf))
    lost = min(2.0 * perturbation / gap, 1.0) if gap > 0 else 1.0  # √(1 - ξ²)
    xi = float(np.sqrt(1.0 - lost**2))
    # The first term is 2 - 2ξ, written so that no digits cancel.
    zeta = float(np.sqrt(2.0 * lost**2 / (1.0 + xi) + 2.0 * np.sqrt(n) * lost))
    slack = margin / (2.0 * np.sqrt(2.0)) - zeta
    holds = bool(perturbation < gap / 2 and slack > 0)
    return CategoryConditions(float(2.0 * slack) if holds else 0.0, holds, float(slack), perturbation, gap, xi, zeta)


def _normalized(W: Array) -> Array:
    """D^(-1/2) (D - W) D^(-1/2); zeros for rows without edges."""
    degrees = W.sum(axis=1)
    roots = np.divide(1.0, np.sqrt(degrees), out=np.zeros_like(degrees), where=degrees > 0)
    return np.asarray(np.diag((degrees > 0).astype(float)) - roots[:, None] * W * roots)


def _symmetric(value: Any, name: str, n: int | None = None) -> Array:
    """A symmetric dense matrix; with n rows where n is given."""
    dense = checked_sparse(value, name).toarray() if is_sparse(value) else value
    M = as_matrix(dense, name, dtype=np.float64, min_rows=1)
    if M.shape != (n or M.shape[0],) * 2:
        raise ValueError(f"{name} must be a square matrix of {n or M.shape[0]} rows. Got shape {M.shape} instead.")
    difference = float(np.abs(M - M.T).max())
    if difference > 1e-8 * float(np.abs(M).max()):
        raise ValueError(f"{name} must be symmetric. Got entries that differ from their transpose by {difference:.3g}.")
    return 0.5 * (M + M.T)
