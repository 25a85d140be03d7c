"""Lipschitz constants of fitted maps: sums of Gaussians and linear maps. Extensions and theory both build on this."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from manifast._validation import Array, as_columns, as_positive


class LipschitzConstants(NamedTuple):
    """Two constants L with |f(u) - f(v)| <= L |u - v| for all u and v; `tight` is never larger than `proposition`."""

    proposition: float
    tight: float


def rbf_lipschitz(coef: Any, sigma: float) -> LipschitzConstants:
    """Two Lipschitz constants of the map f(x) = Σ_i c_i exp(-|x - x_i|²/sigma²).

    Parameters
    ----------
    coef : array of shape (n, d) or (n,)
        The coefficients c_i, one row per Gaussian.
    sigma : float
        Width of the Gaussians.

    Returns
    -------
    (proposition, tight) : named tuple of floats
        `proposition` is √n L_φ |C|_F of NSSE's Proposition 1. `tight` is L_φ √(Σ_k |c^k|_1²), which is never larger.
        L_φ = √2 e^(-1/2) / sigma is the steepest slope of the Gaussian.

    Examples
    --------
    >>> from manifast.theory import rbf_lipschitz
    >>> proposition, tight = rbf_lipschitz([[1.0, 0.0], [-1.0, 2.0]], sigma=1.0)
    >>> round(proposition, 4), round(tight, 4)
    (2.9714, 2.4261)
    """
    C, slope = as_coefficients(coef), gaussian_slope(as_positive(sigma, "sigma"))
    return LipschitzConstants(
        float(np.sqrt(len(C)) * slope * np.linalg.norm(C)),
        float(slope * np.linalg.norm(np.abs(C).sum(axis=0))),
    )


def linear_lipschitz(coef: Any) -> float:
    """The Lipschitz constant of the map f(x) = x·W + b: the spectral norm of W, its largest singular value.

    No smaller constant exists: f stretches the first left singular vector of W by exactly this factor.

    Parameters
    ----------
    coef : array of shape (p, d), (d, p) or (p,)
        W or its transpose, such as `coef_` or `components_` of a fitted linear map.

    Returns
    -------
    float

    Examples
    --------
    >>> from manifast.theory import linear_lipschitz
    >>> linear_lipschitz([[3.0, 0.0], [0.0, -4.0]])
    4.0
    """
    return float(np.linalg.norm(as_coefficients(coef), 2))


def as_coefficients(coef: Any) -> Array:
    """Coefficients of a map as a checked float64 matrix of at least one row; a vector is one column."""
    C = as_columns(coef, "coef").astype(np.float64, copy=False)
    if not len(C):
        raise ValueError(f"coef must have at least 1 row. Got shape {C.shape} instead.")
    return C


def gaussian_slope(sigma: float) -> float:
    """L_φ, the steepest slope of exp(-r²/σ²), which it has at r = σ/√2 (THEORY, sec. 2.4)."""
    return float(np.sqrt(2.0) * np.exp(-0.5) / sigma)
