"""Bounds on the error of new rows as formulas: Theorems 2, 5, 6, 8 and 9 of THEORY."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from manifast._lipschitz import gaussian_slope
from manifast._validation import as_count, as_number, as_positive

__all__ = [
    "Bound",
    "covering_bound",
    "linear_bound",
    "nearest_neighbor_bound",
    "rbf_linear_bound",
    "rbf_nearest_neighbor_bound",
]


class Bound(NamedTuple):
    """What a theorem guarantees for a new row of one class.

    The row is classified correctly at least with probability `probability`, which is 0 where the theorem says nothing.
    `condition_holds` says whether all conditions are met. `slack` is how much larger half the margin is than the
    condition asks, in the units of the embedding; it is negative where the margin is too small.
    """

    probability: float
    condition_holds: bool
    slack: float


def covering_bound(margin: float, lipschitz: float, *, covering_number: float, n_class: int, epsilon: float) -> Bound:
    """Theorem 2: linear classifier, any Lipschitz map; the error falls as one over the number of rows.

    Parameters
    ----------
    margin : float
        γ, `separation_margin(Y, y)`.
    lipschitz : float
        L of the map.
    covering_number : float
        How many balls of radius `epsilon / 2` cover the support of the class; the bound needs at least as many rows.
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
        L of the map: `rbf_lipschitz(coef, sigma).tight` of a Gaussian map, `linear_lipschitz(coef)` of a linear one.
    n_components : int
        d, columns of the embedding.
    n_class : int
        N_m, training rows of the class.
    eta : float
        η, the least probability of a ball of radius `delta` around a point of the class, see `ball_probability`.
    q : int
        How many rows of the class such a ball has to hold; the bound needs n_class > q / eta.
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
    C, slope = as_number(coef_bound, "coef_bound", minimum=0.0), gaussian_slope(as_positive(sigma, "sigma"))
    d, centers = as_count(n_components, "n_components"), as_count(n_samples, "n_samples")
    delta, epsilon, q = as_positive(delta, "delta"), as_positive(epsilon, "epsilon"), as_count(q, "q")
    needed = np.sqrt(d) * C * (slope * delta + epsilon)
    return _ball_bound(margin, needed, diameter, n_class, eta, q, 2 * centers * _tail(q - 1, epsilon, slope * delta))


def _ball_bound(
    margin: float, needed: float, diameter: float, n_class: int, eta: float, q: int, deviation: float
) -> Bound:
    """Theorems 5, 6, 8 and 9: the two ways to fail add up, eqs. (9), (11), (15) and (17).

    Either the ball around the new row holds too few rows of the class, or the mean of their images deviates.
    """
    margin, diameter = as_number(margin, "margin", minimum=0.0), as_number(diameter, "diameter", minimum=0.0)
    rows, eta = as_count(n_class, "n_class"), as_number(eta, "eta", minimum=0.0)
    if eta > 1:
        raise ValueError(f"eta must be a probability, from 0 to 1. Got {eta!r} instead.")
    spare = rows * eta - q
    return _bound(margin / 2 - needed - diameter, spare > 0, float(np.exp(-2.0 * spare * spare / rows)) + deviation)


def _bound(slack: float, enough_rows: bool, failure: float) -> Bound:
    holds = bool(slack >= 0 and enough_rows)
    return Bound(max(0.0, float(1.0 - failure)) if holds else 0.0, holds, float(slack))


def _tail(count: int, epsilon: float, width: float) -> float:
    """exp(-count ε² / (2 width²)): Hoeffding's bound for the mean of `count` values within ±width."""
    ratio = min(epsilon / max(width, float(np.finfo(float).tiny)), 1e150)
    return float(np.exp(-0.5 * count * ratio * ratio))
