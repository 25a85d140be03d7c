"""When does an embedding generalise? Margins, Lipschitz constants, the condition parameter and the bounds of THEORY.

THEORY is Vural and Guillemot 2018, NSSE is Örnek and Vural 2018; equation and theorem numbers are theirs. The theorems
ask for a map that is flat enough for the margin between classes. On real images they rarely apply: every function says
whether its condition holds and by how much it misses, and `generalization_report` says it on one page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as la
from scipy.optimize import brentq
from scipy.sparse.csgraph import dijkstra

from manifast._hulls import widest_slab
from manifast._labels import Labels, read_labels
from manifast._validation import Array, as_count, as_matrix, as_number, as_positive
from manifast.graphs import _as_symmetric, _scale, nearest_outside
from manifast.kernels import gaussian, knn, sq_distances
from manifast.metrics import misclassification_rate

__all__ = [
    "Bound",
    "CategoryConditions",
    "GeneralizationReport",
    "LipschitzConstants",
    "SeparationBound",
    "Verdict",
    "ball_probability",
    "category_conditions",
    "coefficient_bound",
    "condition_parameter",
    "covering_bound",
    "generalization_report",
    "linear_bound",
    "nearest_neighbor_bound",
    "optimal_sigma",
    "origin_distance_bound",
    "q_mean_margin",
    "rbf_linear_bound",
    "rbf_lipschitz",
    "rbf_nearest_neighbor_bound",
    "separation_margin",
    "two_class_margin_bound",
    "within_diameter",
]

_CHUNK = 1 << 21  # distances held at once


class LipschitzConstants(NamedTuple):
    """Two constants L with |f(u) - f(v)| <= L |u - v|, the second never larger than the first."""

    proposition: float
    tight: float


class Bound(NamedTuple):
    """What a theorem guarantees for a new row of one class.

    `probability` is the least probability that it is classified correctly, 0 where the theorem says nothing;
    `condition_holds` whether all its conditions are met; `slack` what the margin has to spare, negative for how much it
    lacks, in the units of the embedding.
    """

    probability: float
    condition_holds: bool
    slack: float


class SeparationBound(NamedTuple):
    """A least separation, 0 where nothing is guaranteed, whether its condition holds, and what that has to spare."""

    margin: float
    condition_holds: bool
    slack: float


class CategoryConditions(NamedTuple):
    """Theorem 16: the least margin, whether both conditions hold, γ_c/(2√2) - ζ, |L_nc|, the gap η, and ξ and ζ."""

    margin: float
    condition_holds: bool
    slack: float
    perturbation: float
    eigenvalue_gap: float
    xi: float
    zeta: float


def separation_margin(Y: Any, y: Any, kind: str = "linear") -> float:
    """Margin between the classes of an embedding.

    Parameters
    ----------
    Y : array of shape (n, d)
    y : array of n labels
    kind : {"linear", "distance"}
        "linear": the largest γ of THEORY eq. (1), the full width of the empty slab between the two closest classes,
        where each pair has its own best hyperplane. "distance": the smallest distance between rows of different
        classes, γ of Theorems 6 and 9, which is never smaller.

    Returns
    -------
    float
        0 where two classes have no hyperplane between them, or share a point: Definition 1 knows no negative margin.

    Notes
    -----
    The widest slab between two classes is as wide as their convex hulls are apart. Wolfe's algorithm (1976) finds the
    nearest points; what is returned is the width of a slab that is really empty, within 1e-10 of the data's extent of
    the distance between the hulls. Margins below 1e-12 of that extent count as 0.

    Examples
    --------
    >>> from manifast.theory import separation_margin
    >>> Y, y = [[0.0, 0.0], [0.0, 2.0], [3.0, 1.0]], ["a", "a", "b"]
    >>> separation_margin(Y, y)
    3.0
    >>> round(separation_margin(Y, y, kind="distance"), 6)
    3.162278
    """
    if kind not in ("linear", "distance"):
        raise ValueError(f"kind must be 'linear' or 'distance'. Got {kind!r} instead.")
    Y, labels = _labelled_rows("separation_margin", "Y", Y, y)
    if kind == "distance":
        exponent = _scale(Y)
        rows = np.ldexp(Y, -exponent) if exponent else Y
        return float(np.ldexp(nearest_outside(rows, labels.codes, None)[2].min(), exponent))
    rows, exponent = _centred(Y)
    narrowest = np.inf
    for A, B in _pairs_of_classes(rows, labels):
        narrowest = min(narrowest, widest_slab(A, B, enough=narrowest)[0])
        if narrowest == 0:
            break
    return float(np.ldexp(narrowest, exponent))


def q_mean_margin(Y: Any, y: Any, q: int) -> float:
    """Margin between means of q rows of each class (THEORY, Definition 4), for the hyperplanes of largest margin.

    Parameters
    ----------
    Y : array of shape (n, d)
    y : array of n labels
    q : int
        At most the size of the smallest class; 1 gives `separation_margin`, more never less than that.

    Returns
    -------
    float
        0 where two classes have no hyperplane between them.

    Examples
    --------
    >>> from manifast.theory import q_mean_margin
    >>> Y, y = [[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]
    >>> q_mean_margin(Y, y, 1), q_mean_margin(Y, y, 2)
    (2.0, 3.0)
    """
    Y, labels = _labelled_rows("q_mean_margin", "Y", Y, y)
    smallest = int(labels.sizes.min())
    q = as_count(q, "q", maximum=smallest, why=f", the size of the smallest class, {smallest}")
    return float(_q_mean_margins(Y, labels, [q])[0])


def rbf_lipschitz(coef: Any, sigma: float) -> LipschitzConstants:
    """Two Lipschitz constants of the map f(x) = Σ_i c_i exp(-|x - x_i|²/sigma²).

    Parameters
    ----------
    coef : array of shape (n, d) or (n,)
    sigma : float

    Returns
    -------
    (proposition, tight) : named tuple of floats
        √n L_φ |C|_F of NSSE's Proposition 1, and L_φ √(Σ_k |c^k|_1²), which is never larger.
        L_φ = √2 e^(-1/2) / sigma is the steepest slope of the Gaussian.

    Examples
    --------
    >>> from manifast.theory import rbf_lipschitz
    >>> proposition, tight = rbf_lipschitz([[1.0, 0.0], [-1.0, 2.0]], sigma=1.0)
    >>> round(proposition, 4), round(tight, 4)
    (2.9714, 2.4261)
    """
    C, slope = _coefficients(coef), _slope(as_positive(sigma, "sigma"))
    return LipschitzConstants(
        float(np.sqrt(len(C)) * slope * np.linalg.norm(C)),
        float(slope * np.linalg.norm(np.abs(C).sum(axis=0))),
    )


def coefficient_bound(coef: Any) -> float:
    """C of THEORY, sec. 2.3: the largest sum of magnitudes of the coefficients of one dimension.

    Parameters
    ----------
    coef : array of shape (n, d) or (n,)

    Examples
    --------
    >>> from manifast.theory import coefficient_bound
    >>> coefficient_bound([[1.0, 0.0], [-1.0, 2.5]])
    2.5
    """
    return float(np.abs(_coefficients(coef)).sum(axis=0).max())


def condition_parameter(Y: Any, y: Any, coef: Any, sigma: float) -> float:
    """κ = √d C / (sigma γ), THEORY eq. (35) with C outside the root, as eq. (34) has it.

    The smaller, the nearer the conditions of Theorems 8 and 9 are to hold. It orders embeddings; it promises nothing.

    Parameters
    ----------
    Y : array of shape (n, d)
    y : array of n labels
    coef : array of shape (m, d)
        Coefficients of the Gaussian map that goes with Y.
    sigma : float

    Returns
    -------
    float
        With γ the smallest distance between classes; infinite where that is 0.

    Examples
    --------
    >>> from manifast.theory import condition_parameter
    >>> condition_parameter([[0.0], [2.0]], [0, 1], [[-1.0], [3.0]], sigma=4.0)
    0.5
    """
    Y, C = _columns(Y, "Y"), _coefficients(coef)
    if Y.shape[1] != C.shape[1]:
        raise ValueError(f"coef must have one column per column of Y, {Y.shape[1]}. Got {C.shape[1]} instead.")
    sigma, margin = as_positive(sigma, "sigma"), separation_margin(Y, y, kind="distance")
    return float(np.sqrt(C.shape[1]) * coefficient_bound(C) / (sigma * margin)) if margin else float(np.inf)


def optimal_sigma(n: int, alpha: float, a1: float, a2: float) -> float:
    """The width that makes the condition of Theorem 8 easiest to meet: the positive root of THEORY eq. (21).

    It minimises (a1/sigma + a2) sigma^-n exp(alpha sigma²).

    Parameters
    ----------
    n : int
        Dimension of the data.
    alpha : float
        Rate at which the inverse kernel matrix grows with sigma², eq. (20).
    a1, a2 : float
        Weights of the slope and of the deviation, √(2d) a e^(-1/2) δ and √d a ε in the paper.

    Returns
    -------
    float
        Between √(n / (2 alpha)) and √((n + 1) / (2 alpha)).

    Examples
    --------
    >>> from manifast.theory import optimal_sigma
    >>> round(optimal_sigma(2, 0.5, 1.0, 1.0), 6)
    1.546818
    """
    n, alpha = as_count(n, "n"), as_positive(alpha, "alpha")
    a1, a2 = as_positive(a1, "a1"), as_positive(a2, "a2")

    # With t = 2 alpha sigma², (21) reads a2 sigma (t - n) = a1 (n + 1 - t), here divided by a1 + a2 sigma.
    def balance(t: float) -> float:
        with np.errstate(over="ignore", under="ignore", divide="ignore"):
            share = 1.0 / (1.0 + a1 / (a2 * np.sqrt(t / 2 / alpha)))
        return float(share * (t - n) - (1.0 - share) * (n + 1 - t))

    return float(np.sqrt(brentq(balance, n, n + 1, xtol=1e-300, rtol=1e-15) / 2 / alpha))


def covering_bound(margin: float, lipschitz: float, *, covering_number: float, n_class: int, epsilon: float) -> Bound:
    """Theorem 2: linear classifier, any Lipschitz map; the error falls with one over the number of rows.

    Parameters
    ----------
    margin : float
        γ, `separation_margin(Y, y)`.
    lipschitz : float
        L of the map.
    covering_number : float
        How many balls of radius `epsilon / 2` cover the support of the class; the bound needs as many rows.
    n_class : int
        Training rows of the class.
    epsilon : float
        Condition: epsilon <= γ / (2 L).

    Returns
    -------
    Bound
        `slack` is γ/2 - L epsilon.

    Examples
    --------
    >>> from manifast.theory import covering_bound
    >>> covering_bound(1.0, 2.0, covering_number=10, n_class=100, epsilon=0.25)
    Bound(probability=0.95, condition_holds=True, slack=0.0)
    """
    margin, lipschitz = as_number(margin, "margin", minimum=0.0), as_positive(lipschitz, "lipschitz")
    balls, rows = as_number(covering_number, "covering_number", minimum=1.0), as_count(n_class, "n_class")
    slack = margin / 2 - lipschitz * as_positive(epsilon, "epsilon")
    return _bound(slack, rows >= balls, balls / (2 * rows))


def linear_bound(
    margin: float,
    lipschitz: float,
    *,
    n_components: int,
    n_class: int,
    eta: float,
    q: int,
    delta: float,
    epsilon: float,
) -> Bound:
    """Theorem 5: linear classifier, any Lipschitz map; the error falls exponentially.

    Parameters
    ----------
    margin : float
        γ_Q, `q_mean_margin(Y, y, q)`.
    lipschitz : float
        L of the map, `rbf_lipschitz(coef, sigma).tight` for a Gaussian one.
    n_components : int
        d, columns of the embedding.
    n_class : int
        N_m, training rows of the class.
    eta : float
        η, the least probability of a ball of radius `delta` around a point of the class, see `ball_probability`.
    q : int
        Rows of the class that such a ball is to hold; the bound needs n_class > q / eta.
    delta, epsilon : float
        Free parameters. Condition (8): L delta + √d epsilon <= γ_Q / 2.

    Returns
    -------
    Bound

    Examples
    --------
    >>> from manifast.theory import linear_bound
    >>> bound = linear_bound(1.0, 1.0, n_components=1, n_class=400, eta=0.5, q=100, delta=0.1, epsilon=0.05)
    >>> bound.condition_holds, round(bound.slack, 3), round(bound.probability, 6)
    (True, 0.35, 0.999993)
    """
    return nearest_neighbor_bound(
        margin, lipschitz, 0.0,
        n_components=n_components, n_class=n_class, eta=eta, q=q, delta=delta, epsilon=epsilon,
    )  # fmt: skip


def nearest_neighbor_bound(
    margin: float,
    lipschitz: float,
    diameter: float,
    *,
    n_components: int,
    n_class: int,
    eta: float,
    q: int,
    delta: float,
    epsilon: float,
) -> Bound:
    """Theorem 6 (NSSE, Theorem 1): nearest neighbour in the embedding, any Lipschitz map.

    Parameters
    ----------
    margin : float
        γ, `separation_margin(Y, y, kind="distance")`.
    lipschitz, n_components, n_class, eta, q
        As in `linear_bound`.
    diameter : float
        D_{2 delta}, `within_diameter(X, Y, y, 2 * delta)`.
    delta, epsilon : float
        Free parameters. Condition (10): L delta + √d epsilon + D_{2 delta} <= γ / 2.

    Returns
    -------
    Bound

    Examples
    --------
    >>> from manifast.theory import nearest_neighbor_bound
    >>> settings = dict(n_components=1, n_class=400, eta=0.5, q=100, delta=0.1, epsilon=0.05)
    >>> round(nearest_neighbor_bound(1.0, 1.0, 0.1, **settings).slack, 3)
    0.25
    >>> nearest_neighbor_bound(1.0, 1.0, 0.4, **settings).condition_holds
    False
    """
    lipschitz, d = as_positive(lipschitz, "lipschitz"), as_count(n_components, "n_components")
    delta, epsilon, q = as_positive(delta, "delta"), as_positive(epsilon, "epsilon"), as_count(q, "q")
    needed = lipschitz * delta + np.sqrt(d) * epsilon
    return _ball_bound(margin, needed, diameter, n_class, eta, q, 2 * d * _tail(q, epsilon, lipschitz * delta))


def rbf_linear_bound(
    margin: float,
    coef_bound: float,
    sigma: float,
    *,
    n_samples: int,
    n_components: int,
    n_class: int,
    eta: float,
    q: int,
    delta: float,
    epsilon: float,
) -> Bound:
    """Theorem 8: linear classifier, Gaussian map.

    Parameters
    ----------
    margin, n_components, n_class, eta, q
        As in `linear_bound`.
    coef_bound : float
        C, `coefficient_bound(coef)`.
    sigma : float
        Width of the Gaussians.
    n_samples : int
        N, centres of the map.
    delta, epsilon : float
        Free parameters. Condition (14): √d C (L_φ delta + epsilon) <= γ_Q / 2, L_φ = √2 e^(-1/2) / sigma.

    Returns
    -------
    Bound

    Examples
    --------
    >>> from manifast.theory import rbf_linear_bound
    >>> settings = dict(n_samples=800, n_components=1, n_class=400, eta=0.5, q=100, delta=0.1, epsilon=0.05)
    >>> bound = rbf_linear_bound(1.0, 2.0, 1.0, **settings)
    >>> bound.condition_holds, round(bound.slack, 4), round(bound.probability, 4)
    (True, 0.2284, 0.9999)
    """
    return rbf_nearest_neighbor_bound(
        margin, coef_bound, sigma, 0.0, n_samples=n_samples,
        n_components=n_components, n_class=n_class, eta=eta, q=q, delta=delta, epsilon=epsilon,
    )  # fmt: skip


def rbf_nearest_neighbor_bound(
    margin: float,
    coef_bound: float,
    sigma: float,
    diameter: float,
    *,
    n_samples: int,
    n_components: int,
    n_class: int,
    eta: float,
    q: int,
    delta: float,
    epsilon: float,
) -> Bound:
    """Theorem 9: nearest neighbour in the embedding, Gaussian map.

    Parameters
    ----------
    margin, diameter
        As in `nearest_neighbor_bound`.
    coef_bound, sigma, n_samples, n_components, n_class, eta, q
        As in `rbf_linear_bound`.
    delta, epsilon : float
        Free parameters. Condition (16): √d C (L_φ delta + epsilon) + D_{2 delta} <= γ / 2.

    Returns
    -------
    Bound

    Examples
    --------
    >>> from manifast.theory import rbf_nearest_neighbor_bound
    >>> settings = dict(n_samples=800, n_components=1, n_class=400, eta=0.5, q=100, delta=0.1, epsilon=0.05)
    >>> round(rbf_nearest_neighbor_bound(1.0, 2.0, 1.0, 0.1, **settings).slack, 4)
    0.1284
    """
    C, slope = as_number(coef_bound, "coef_bound", minimum=0.0), _slope(as_positive(sigma, "sigma"))
    d, centers = as_count(n_components, "n_components"), as_count(n_samples, "n_samples")
    delta, epsilon, q = as_positive(delta, "delta"), as_positive(epsilon, "epsilon"), as_count(q, "q")
    needed = np.sqrt(d) * C * (slope * delta + epsilon)
    return _ball_bound(margin, needed, diameter, n_class, eta, q, 2 * centers * _tail(q - 1, epsilon, slope * delta))


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
        The separation δ that is asked for. Condition: mu <= w_min (1 - √V_max δ)² / (β_max V_b), less than that for
        δ = 0.

    Returns
    -------
    SeparationBound
        `margin` bounds z_2,min - z_1,max from below, eq. (31), in the coordinates z = D_w^(-1/2) y; times the root of
        the smallest within-class degree it holds for y. `slack` is the largest mu of the condition, less mu.

    Notes
    -----
    A class that is not connected within, or a row without neighbours of the other class, leaves no such mu.

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
    """Corollary 15: how far two classes stay from the origin in one dimension, given how far they are apart.

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
        that the classes are apart, and `slack` by how much; every row must have neighbours in both graphs.

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


def category_conditions(L: Any, L_categories: Any, margin: float) -> CategoryConditions:
    """Theorem 16: classes that fall into categories stay separable when the categories are joined weakly.

    Parameters
    ----------
    L : matrix of shape (n, n)
        L_w - mu L_b of all edges, normalised Laplacians.
    L_categories : matrix of shape (n, n)
        The same from the edges inside the categories only. (Not a block of L: degrees change with the edges.)
    margin : float
        γ_c, the margin of eq. (32) that the classes of each category have alone.

    Returns
    -------
    CategoryConditions
        `margin` is γ_c/√2 - 2ζ, 0 where a condition fails: |L_nc| < η/2 for L_nc = L - L_categories and the smallest
        gap η between eigenvalues of `L_categories`, and ζ < γ_c/(2√2).

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
    # 2 - 2ξ without cancellation.
    zeta = float(np.sqrt(2.0 * lost**2 / (1.0 + xi) + 2.0 * np.sqrt(n) * lost))
    slack = margin / (2.0 * np.sqrt(2.0)) - zeta
    holds = bool(perturbation < gap / 2 and slack > 0)
    return CategoryConditions(float(2.0 * slack) if holds else 0.0, holds, float(slack), perturbation, gap, xi, zeta)


def ball_probability(X: Any, y: Any, delta: float) -> Array:
    """η of THEORY for every class: the least probability of a ball around one of its points.

    Estimated from the rows: the share of the other rows of the class that are nearer than `delta`, smallest over the
    rows of the class. It is an estimate at the rows, not a bound over the support.

    Parameters
    ----------
    X : array of shape (n, p)
    y : array of n labels
        At least 2 rows per class.
    delta : float

    Returns
    -------
    array of shape (n_classes,)
        Classes in ascending order.

    Examples
    --------
    >>> from manifast.theory import ball_probability
    >>> ball_probability([[0.0], [1.0], [2.0], [7.0], [8.0]], ["a", "a", "a", "b", "b"], delta=1.5)
    array([0.5, 1. ])
    """
    X, labels = _labelled_rows("ball_probability", "X", X, y, least_members=2)
    return np.asarray(_ball_probabilities(X, labels, [as_positive(delta, "delta")])[0])


def within_diameter(X: Any, Y: Any, y: Any, delta: float) -> float:
    """D_δ of Theorems 6 and 9: how far apart the embedding puts rows of one class that are within `delta`.

    Parameters
    ----------
    X : array of shape (n, p)
    Y : array of shape (n, d)
        Their embedding.
    y : array of n labels
    delta : float

    Returns
    -------
    float

    Examples
    --------
    >>> from manifast.theory import within_diameter
    >>> X, Y = [[0.0], [1.0], [5.0], [6.0]], [[0.0], [0.5], [9.0], [9.25]]
    >>> within_diameter(X, Y, [0, 0, 1, 1], delta=1.0)
    0.5
    """
    X, labels = _labelled_rows("within_diameter", "X", X, y)
    Y = _columns(Y, "Y")
    if len(Y) != len(X):
        raise ValueError(f"Y must have one row per row of X, {len(X)}. Got {len(Y)} instead.")
    return float(_within_diameters(X, Y, labels, [as_positive(delta, "delta")])[0])


@dataclass(frozen=True)
class Verdict:
    """One theorem on one embedding, at the parameters that serve it best, for the class it serves worst.

    `needed` is what the condition asks of half the margin before epsilon takes the rest.
    """

    theorem: str
    bound: Bound
    delta: float
    epsilon: float
    q: int
    margin: float
    needed: float

    def __str__(self) -> str:
        at = f"delta {self.delta:.3g}, Q {self.q}"
        if not self.bound.condition_holds:
            missed = f"by a factor of {2 * self.needed / self.margin:.3g}" if self.margin > 0 else "as the margin is 0"
            return f"condition not met: {self.needed:.3g} <= {self.margin / 2:.3g} fails {missed} ({at})"
        if self.bound.probability <= 0:
            return f"condition met, but vacuous: the probability it gives is 0 ({at})"
        return f"right with probability at least {_digits(self.bound.probability)} ({at}, epsilon {self.epsilon:.3g})"


@dataclass(frozen=True)
class GeneralizationReport:
    """What `generalization_report` found; prints as one page. None stands for what the map does not have."""

    estimator: str
    n_samples: int
    n_components: int
    n_classes: int
    map: str
    interpolation_error: float
    linear_margin: float
    distance_margin: float
    spacing: float
    diameter: float
    sigma: float | None
    coefficient_bound: float | None
    lipschitz: LipschitzConstants | None
    condition_parameter: float | None
    loo_error: float | None
    test_error: float | None
    verdicts: tuple[Verdict, ...]
    conclusion: str

    def __str__(self) -> str:
        width = max(len(label) for label, _ in self._lines())
        lines = [f"{label:<{width}}  {text}" for label, text in self._lines()]
        return "\n".join([self._title(), "", *lines, "", self.conclusion])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr><td style='text-align:left'>{escape(label)}</td><td style='text-align:left'>{escape(text)}</td></tr>"
            for label, text in self._lines()
        )
        return f"<div><b>{escape(self._title())}</b><table>{cells}</table><p>{escape(self.conclusion)}</p></div>"

    def _title(self) -> str:
        size = f"{self.n_samples} rows, {self.n_classes} classes, d = {self.n_components}"
        return f"Generalization of {self.estimator}: {size}"

    def _lines(self) -> list[tuple[str, str]]:
        lines = [
            ("linear margin", f"{self.linear_margin:.4g}" if self.linear_margin else "0: not linearly separable"),
            ("smallest distance between classes", f"{self.distance_margin:.4g}"),
            ("nearest row of the own class", f"at most {self.spacing:.4g} away in the data"),
            ("rows of one class within twice that", f"up to {self.diameter:.4g} apart in the embedding"),
            ("map", self.map),
            ("map at the training rows", f"off the embedding by {self.interpolation_error:.1e} of its size"),
        ]
        if self.lipschitz is not None:
            lines += [
                ("coefficient bound C", f"{self.coefficient_bound:.4g}"),
                ("Lipschitz constant", f"{self.lipschitz.tight:.4g} (Proposition 1: {self.lipschitz.proposition:.4g})"),
                ("condition parameter", f"{self.condition_parameter:.4g}"),
            ]
        if self.loo_error is not None:
            known = f"{self.loo_error:.2%}; optimistic where labels made the embedding"
            lines.append(("1-NN error of rows left out of the map", known))
        if self.test_error is not None:
            lines.append(("1-NN error on the test rows", f"{self.test_error:.2%}"))
        return lines + [(verdict.theorem, str(verdict)) for verdict in self.verdicts]


def generalization_report(
    estimator: Any, X: Any, y: Any, X_test: Any = None, y_test: Any = None
) -> GeneralizationReport:
    """Which of the theorems apply to a fitted embedding, and by how much the others miss.

    Parameters
    ----------
    estimator : fitted embedding
        With a Gaussian map (extension "rbf", NSSE, or a kernel map with a Gaussian kernel, whose bias changes nothing)
        everything is said; with another, whose Lipschitz constant is unknown, only what the embedding itself tells.
    X : array of shape (n, p)
        The rows it was fitted to.
    y : array of n labels
        Their classes, also where the embedding itself did not ask for them; -1 is a class like any other.
    X_test, y_test : array of shape (m, p) and m labels, optional
        Rows it has not seen: they add the error of the nearest neighbour in the embedding.

    Returns
    -------
    GeneralizationReport
        Prints as one page, and shows as a table in notebooks.

    Notes
    -----
    The theorems speak of a map with f(x_i) = y_i. Where it smooths instead (a ridge), they are applied to the rows
    f(x_i) in place of y_i: these the map does interpolate. The free parameters are searched: delta from the spacing of
    the rows upwards, Q up to the smallest class, and the largest epsilon that the condition leaves; η is estimated, see
    `ball_probability`. A guarantee is therefore an estimate, too.

    Examples
    --------
    >>> import numpy as np
    >>> from manifast import OutOfSample
    >>> from manifast.extensions import RBF
    >>> from manifast.theory import generalization_report
    >>> from sklearn.decomposition import PCA
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 100)
    >>> X = 10 * y[:, None] + 0.1 * rng.random((200, 2))
    >>> model = OutOfSample(PCA(n_components=1), extension=RBF(sigma=5.0, ridge=1.0)).fit(X)
    >>> report = generalization_report(model, X, y)
    >>> report.verdicts[0].bound.condition_holds
    True
    >>> print(report)  # doctest: +ELLIPSIS
    Generalization of OutOfSample: 200 rows, 2 classes, d = 1
    ...
    """
    rows, labels = _labelled_rows("generalization_report", "X", X, y)
    if not hasattr(estimator, "embedding_") or not hasattr(estimator, "transform"):
        raise ValueError(f"estimator must be a fitted embedding. Got {type(estimator).__name__} without embedding_.")
    embedding = as_matrix(estimator.embedding_, "estimator.embedding_")
    if len(rows) != len(embedding):
        raise ValueError(f"X must hold the rows the estimator was fitted to, {len(embedding)}. Got {len(rows)} rows.")
    if (X_test is None) != (y_test is None):
        raise ValueError("X_test and y_test must be given together. Got one of them.")
    image = as_matrix(estimator.transform(X), "estimator.transform(X)")
    missed = float(np.abs(image - embedding).max()) / (float(np.abs(embedding).max()) or 1.0)
    Y = embedding if missed < (1e-3 if embedding.dtype == np.float32 else 1e-6) else image
    spacing = max(float(knn(rows[at], 1)[0].max()) if len(at) > 1 else np.inf for at in labels.members)
    linear, distance = separation_margin(Y, y), separation_margin(Y, y, kind="distance")
    sums = _gaussian_map(estimator)
    steepness = rbf_lipschitz(*sums) if sums else None
    verdicts: tuple[Verdict, ...] = ()
    if sums and steepness and steepness.tight > 0 and np.isfinite(spacing):
        verdicts = _judge(rows, Y, labels, spacing, distance, *sums)
    return GeneralizationReport(
        estimator=type(estimator).__name__,
        n_samples=len(rows),
        n_components=Y.shape[1],
        n_classes=labels.count,
        map=f"Gaussian, sigma {sums[1]:.4g}, {len(sums[0])} centres" if sums else _map_name(estimator),
        interpolation_error=missed,
        linear_margin=linear,
        distance_margin=distance,
        spacing=spacing,
        diameter=float(_within_diameters(rows, Y, labels, [2 * spacing])[0]),
        sigma=sums[1] if sums else None,
        coefficient_bound=coefficient_bound(sums[0]) if sums else None,
        lipschitz=steepness,
        condition_parameter=condition_parameter(Y, y, *sums) if sums else None,
        loo_error=_left_out_error(estimator, rows, embedding, labels),
        test_error=None if X_test is None else _test_error(estimator, Y, labels, X_test, y_test),
        verdicts=verdicts,
        conclusion=_conclude(verdicts, sums is not None, spacing),
    )


def _judge(
    X: Array, Y: Array, labels: Labels, spacing: float, distance: float, coef: Array, sigma: float
) -> tuple[Verdict, ...]:
    """Theorems 5, 6, 8 and 9, each at the best (delta, Q, epsilon) that was found."""
    d, C, slope, L = Y.shape[1], coefficient_bound(coef), _slope(sigma), rbf_lipschitz(coef, sigma).tight
    root = float(np.sqrt(d))
    qs = np.unique(np.geomspace(1, labels.sizes.min(), 12).round().astype(int)).tolist()
    margins = _q_mean_margins(Y, labels, qs).tolist()
    # Smaller balls than the spacing are empty around some row; larger ones than this leave no theorem its condition.
    largest = max(distance, *margins) / (2 * min(L, root * C * slope))
    smallest = spacing * (1 + 1e-9) or 1e-6 * largest or 1.0
    deltas = np.geomspace(smallest, largest, 12) if largest > smallest else np.array([smallest])
    etas = _ball_probabilities(X, labels, deltas)
    diameters = _within_diameters(X, Y, labels, 2 * deltas).tolist()

    def any_map(margin: float, diameter: float, **settings: Any) -> Bound:
        return nearest_neighbor_bound(margin, L, diameter, n_components=d, **settings)

    def gaussian_map(margin: float, diameter: float, **settings: Any) -> Bound:
        return rbf_nearest_neighbor_bound(margin, C, sigma, diameter, n_samples=len(coef), n_components=d, **settings)

    # Steepness in delta and weight of epsilon in conditions (8), (10), (14) and (16); linear ones have no diameter.
    cases: list[tuple[str, bool, float, float, Callable[..., Bound]]] = [
        ("Theorem 5, linear classifier", True, L, root, any_map),
        ("Theorem 6, nearest neighbour", False, L, root, any_map),
        ("Theorem 8, linear classifier", True, root * C * slope, root * C, gaussian_map),
        ("Theorem 9, nearest neighbour", False, root * C * slope, root * C, gaussian_map),
    ]
    verdicts = []
    for theorem, linear, steep, weight, bound in cases:
        candidates = []
        for delta, eta, spread in zip(deltas.tolist(), etas, diameters, strict=True):
            diameter = 0.0 if linear else spread
            needed = steep * delta + diameter
            for q, margin in zip(qs, margins if linear else [distance] * len(qs), strict=True):
                epsilon = max((margin / 2 - needed) / weight * (1 - 1e-9), float(np.finfo(float).tiny))
                settings = {"q": q, "delta": delta, "epsilon": epsilon}
                found = min(
                    bound(margin, diameter, n_class=int(n), eta=e, **settings)
                    for n, e in zip(labels.sizes, eta, strict=True)
                )
                candidates.append(Verdict(theorem, found, delta, epsilon, q, margin, needed))
        verdicts.append(max(candidates, key=lambda v: (v.bound.condition_holds, v.bound.probability, v.bound.slack)))
    return tuple(verdicts)


def _conclude(verdicts: tuple[Verdict, ...], gaussian: bool, spacing: float) -> str:
    if not gaussian:
        return (
            "No theorem was applied: the Lipschitz constant of this map is not known. It is for Gaussian ones: "
            "extension='rbf' where the embedding takes an extension, and NSSE."
        )
    if not np.isfinite(spacing):
        return "No theorem was applied: a class has a single row, and the probability of a ball cannot be estimated."
    best: dict[str, float] = {}
    for verdict in verdicts:
        if verdict.bound.probability > 0:
            classifier = verdict.theorem.partition(", ")[2]
            best[classifier] = max(best.get(classifier, 0.0), verdict.bound.probability)
    if best:
        each = " and ".join(f"{_digits(probability)} by the {classifier}" for classifier, probability in best.items())
        return f"New rows of any class are classified correctly with probability at least {each} (estimated)."
    if any(verdict.bound.condition_holds for verdict in verdicts):
        return "All bounds are vacuous here: where a condition is met, the probability it gives is 0."
    return "All bounds are vacuous here: no condition is met. That is usual, and says nothing about the actual error."


def _digits(probability: float) -> str:
    return f"{probability:.4f}" if probability < 0.9999 else f"1 - {max(1 - probability, 1e-16):.0e}"


def _gaussian_map(estimator: Any) -> tuple[Array, float] | None:
    """Coefficients and width of the map where it is a sum of Gaussians, up to a constant."""
    mapping = getattr(estimator, "extension_", estimator)
    kernel = getattr(mapping, "_kernel", None)
    coef, sigma = getattr(mapping, "coef_", None), _width(mapping)
    if getattr(kernel, "name", None) == "rbf":
        coef, sigma = getattr(mapping, "dual_coef_", None), kernel.sigma  # type: ignore[union-attr]
    if coef is None or sigma is None:
        return None
    # Rows out of range were scaled by a power of two, and the width with them.
    return _coefficients(coef), float(np.ldexp(sigma, getattr(estimator, "_exponent", 0)))


def _width(mapping: Any) -> float | None:
    """Width of a Gaussian map in the units of the rows it was given."""
    width: float | None = getattr(mapping, "_width", getattr(mapping, "sigma_", None))  # NSSE's sigma_ is in the data's
    return width


def _left_out_error(estimator: Any, rows: Array, embedding: Array, labels: Labels) -> float | None:
    """Share of rows that Gaussian interpolation from all others puts next to a row of another class.

    F_loo = Y - Ψ^-1 Y / diag(Ψ^-1); copies of a row are left out with it. None for other maps, those with centres at
    some rows only, and where Ψ is singular, or too large for its inverse.
    """
    from manifast.extensions import loo_residuals, merge_copies

    mapping = getattr(estimator, "extension_", estimator)
    width, coef = _width(mapping), getattr(mapping, "coef_", None)
    if width is None or coef is None or len(coef) != len(rows) or len(rows) > _LEFT_OUT_ROWS:
        return None
    scaled = np.ldexp(rows.astype(np.float64), -getattr(estimator, "_exponent", 0))
    different, target, groups, counts = merge_copies(scaled, embedding)
    if len(different) < 2:
        return None
    psi = gaussian(different, sigma=width)
    residuals = next(loo_residuals(psi, target, counts, [getattr(mapping, "ridge_", 0.0)]))
    if residuals is None:
        return None
    Y = embedding.astype(np.float64)
    nearest = knn(Y, int(counts.max()) + 1, queries=(target - residuals)[groups])[1]
    first = np.argmax(groups[nearest] != groups[:, None], axis=1)
    return misclassification_rate(labels.codes, labels.codes[nearest[np.arange(len(Y)), first]])


_LEFT_OUT_ROWS = 5000


def _map_name(estimator: Any) -> str:
    return f"{type(getattr(estimator, 'extension_', estimator)).__name__}: Lipschitz constant not known"


def _test_error(estimator: Any, Y: Array, labels: Labels, X_test: Any, y_test: Any) -> float:
    new = as_matrix(estimator.transform(X_test), "estimator.transform(X_test)", dtype=Y.dtype)
    truth = np.asarray(y_test)
    if truth.shape != (len(new),):
        raise ValueError(f"y_test must hold one label per row of X_test, {len(new)}. Got shape {truth.shape} instead.")
    found = knn(Y, 1, queries=new)[1][:, 0]
    return misclassification_rate(truth, labels.classes[labels.codes[found]])


def _columns(value: Any, name: str) -> Array:
    """A matrix; a vector is one column."""
    return as_matrix(np.asarray(value)[:, None] if np.ndim(value) == 1 else value, name)


def _labelled_rows(function: str, name: str, rows: Any, y: Any, least_members: int = 1) -> tuple[Array, Labels]:
    matrix = _columns(rows, name) if name == "Y" else as_matrix(rows, name)
    return matrix, read_labels(function, y, len(matrix), least_members=least_members)


def _coefficients(coef: Any) -> Array:
    C = _columns(coef, "coef").astype(np.float64, copy=False)
    if not len(C):
        raise ValueError(f"coef must have at least 1 row. Got shape {C.shape} instead.")
    return C


def _slope(sigma: float) -> float:
    """L_φ, the steepest slope of exp(-r²/σ²), at r = σ/√2 (THEORY, sec. 2.4)."""
    return float(np.sqrt(2.0) * np.exp(-0.5) / sigma)


def _tail(count: int, epsilon: float, width: float) -> float:
    """exp(-count ε² / (2 width²)), Hoeffding's bound for the mean of `count` values within ±width."""
    ratio = min(epsilon / max(width, float(np.finfo(float).tiny)), 1e150)
    return float(np.exp(-0.5 * count * ratio * ratio))


def _ball_bound(
    margin: float, needed: float, diameter: float, n_class: int, eta: float, q: int, deviation: float
) -> Bound:
    """Theorems 5, 6, 8, 9: a ball has too few rows, or the mean over them deviates; eqs. (9), (11), (15), (17)."""
    margin, diameter = as_number(margin, "margin", minimum=0.0), as_number(diameter, "diameter", minimum=0.0)
    rows, eta = as_count(n_class, "n_class"), as_number(eta, "eta", minimum=0.0)
    if eta > 1:
        raise ValueError(f"eta must be a probability, from 0 to 1. Got {eta!r} instead.")
    spare = rows * eta - q
    return _bound(margin / 2 - needed - diameter, spare > 0, float(np.exp(-2.0 * spare * spare / rows)) + deviation)


def _bound(slack: float, enough_rows: bool, failure: float) -> Bound:
    holds = bool(slack >= 0 and enough_rows)
    return Bound(max(0.0, float(1.0 - failure)) if holds else 0.0, holds, float(slack))


def _centred(Y: Array) -> tuple[Array, int]:
    """Rows about their mean, in units of a power of two in which the largest entry is about 1; and that power."""
    wide = np.asarray(Y, dtype=np.float64)
    first = int(np.frexp(np.abs(wide).max())[1])
    wide = np.ldexp(wide, -first)
    wide = wide - wide.mean(axis=0)
    second = int(np.frexp(np.abs(wide).max())[1])
    return np.ldexp(wide, -second), first + second


def _pairs_of_classes(Y: Array, labels: Labels) -> Iterator[tuple[Array, Array]]:
    """Rows of every two classes, those with close means first."""
    groups = [Y[rows] for rows in labels.members]
    means = np.array([group.mean(axis=0) for group in groups])
    apart = sq_distances(means)
    for k, m in sorted(combinations(range(labels.count), 2), key=lambda pair: float(apart[pair])):
        yield groups[k], groups[m]


def _q_mean_margins(Y: Array, labels: Labels, qs: list[int]) -> Array:
    """Definition 4 for several Q: the worst mean of Q rows is that of the Q rows nearest to the hyperplane."""
    rows, exponent = _centred(Y)
    margins, last = np.full(len(qs), np.inf), np.array(qs) - 1
    for A, B in _pairs_of_classes(rows, labels):
        _, normal = widest_slab(A, B)
        if normal is None:
            return np.zeros(len(qs))
        above, below = np.sort(A @ normal), np.sort(-(B @ normal))
        middle = (above[0] - below[0]) / 2
        means = [np.cumsum(side)[last] / (last + 1) for side in (above - middle, below + middle)]
        margins = np.minimum(margins, 2 * np.minimum(*means))
    return np.asarray(np.ldexp(margins, exponent))


def _class_blocks(labels: Labels, *matrices: Array) -> Iterator[tuple[int, list[Array]]]:
    """Class after class, distances of some of its rows to all of them, in each of the matrices."""
    scaled = [(np.ldexp(x, -e) if e else x, e) for x, e in ((x, _scale(x)) for x in matrices)]
    for c, members in enumerate(labels.members):
        step = max(1, _CHUNK // len(members))
        for begin in range(0, len(members), step):
            rows = members[begin : begin + step]
            yield c, [np.ldexp(_distances(x[rows], x[members]), e) for x, e in scaled]


def _distances(A: Array, B: Array) -> Array:
    return np.sqrt(sq_distances(A.astype(np.float64), B.astype(np.float64)))


def _ball_probabilities(X: Array, labels: Labels, deltas: Any) -> Array:
    """η of every class, one row per radius."""
    eta = np.ones((len(deltas), labels.count))
    for c, (distances,) in _class_blocks(labels, X):
        for k, delta in enumerate(deltas):
            others = (distances < delta).sum(axis=1) - 1
            eta[k, c] = min(eta[k, c], others.min() / (distances.shape[1] - 1))
    return eta


def _within_diameters(X: Array, Y: Array, labels: Labels, deltas: Any) -> Array:
    """D_δ for every radius."""
    largest = np.zeros(len(deltas))
    for _, (distances, apart) in _class_blocks(labels, X, Y):
        for k, delta in enumerate(deltas):
            largest[k] = max(largest[k], apart[distances <= delta].max(initial=0.0))
    return largest


@dataclass(frozen=True)
class _TwoClassGraph:
    """What Theorem 14 and Corollary 15 ask for: β_i, V_max, V_b and min_k w_min,k / D_k (Definitions 10 to 12)."""

    beta: Array
    volume: float
    between_volume: float
    weakest: float


def _two_class_graph(W_within: Any, W_between: Any, y: Any) -> _TwoClassGraph:
    within, between = (
        _without_loops(_as_symmetric(W, name)) for W, name in ((W_within, "W_within"), (W_between, "W_between"))
    )
    n = within.shape[0]
    if between.shape[0] != n:
        raise ValueError(f"W_between must have the shape of W_within, ({n}, {n}). Got {between.shape} instead.")
    labels = read_labels("this bound", y, n, least_members=2)
    if labels.count != 2:
        raise ValueError(f"y must hold 2 classes. Got {labels.count} instead.")
    for W, name, same in ((within, "W_within", True), (between, "W_between", False)):
        edges = W.tocoo()
        if ((labels.codes[edges.row] == labels.codes[edges.col]) != same).any():
            kind = "the same class" if same else "different classes"
            raise ValueError(f"{name} must join only rows of {kind}. Got other edges.")
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


def _without_loops(W: Any) -> Any:
    W = W.astype(np.float64)
    W.setdiag(0.0)
    W.eliminate_zeros()
    return W


def _hop_diameter(W: Any) -> float:
    """The most edges on a shortest path (Definition 11), infinite for a graph in several parts."""
    n = W.shape[0]
    if W.nnz == n * (n - 1):
        return 1.0
    step = max(1, _CHUNK // n)
    parts = (np.arange(begin, min(begin + step, n)) for begin in range(0, n, step))
    return max(float(dijkstra(W, unweighted=True, indices=part).max()) for part in parts)


def _symmetric(value: Any, name: str, n: int | None = None) -> Array:
    """A symmetric dense matrix, of n rows where that is known."""
    M = as_matrix(value.toarray() if hasattr(value, "toarray") else value, name, dtype=np.float64, min_rows=1)
    if M.shape != (n or M.shape[0],) * 2:
        raise ValueError(f"{name} must be a square matrix of {n or M.shape[0]} rows. Got shape {M.shape} instead.")
    difference = float(np.abs(M - M.T).max())
    if difference > 1e-8 * float(np.abs(M).max()):
        raise ValueError(f"{name} must be symmetric. Got entries that differ from their mirror by {difference:.3g}.")
    return 0.5 * (M + M.T)
