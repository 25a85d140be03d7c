"""Constants of Gaussian maps f(x) = Σ_i c_i exp(-|x - x_i|²/σ²): their coefficients, condition parameter and width."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import brentq

from manifast._lipschitz import as_coefficients
from manifast._validation import as_columns, as_count, as_positive
from manifast.theory.margins import separation_margin

__all__ = ["coefficient_bound", "condition_parameter", "optimal_sigma"]


def coefficient_bound(coef: Any) -> float:
    """C of THEORY, sec. 2.3: the largest column sum of the magnitudes of the coefficients.

    Parameters
    ----------
    coef : array of shape (n, d) or (n,)
        One row per Gaussian, one column per dimension of the embedding.

    Returns
    -------
    float

    Examples
    --------
    >>> from manifast.theory import coefficient_bound
    >>> coefficient_bound([[1.0, 0.0], [-1.0, 2.5]])
    2.5
    """
    return float(np.abs(as_coefficients(coef)).sum(axis=0).max())


def condition_parameter(Y: Any, y: Any, coef: Any, sigma: float) -> float:
    """κ = √d C / (sigma γ), THEORY eq. (35) with C outside the root, as eq. (34) has it.

    The smaller it is, the closer the conditions of Theorems 8 and 9 are to being met. It compares embeddings with each
    other; it guarantees nothing.

    Parameters
    ----------
    Y : array of shape (n, d)
    y : array of n labels
    coef : array of shape (m, d)
        Coefficients of the Gaussian map that goes with Y.
    sigma : float
        Width of the Gaussians.

    Returns
    -------
    float
        γ is the smallest distance between classes; κ is infinite where γ is 0.

    Examples
    --------
    >>> from manifast.theory import condition_parameter
    >>> condition_parameter([[0.0], [2.0]], [0, 1], [[-1.0], [3.0]], sigma=4.0)
    0.5
    """
    Y, C = as_columns(Y, "Y"), as_coefficients(coef)
    if Y.shape[1] != C.shape[1]:
        raise ValueError(f"coef must have one column per column of Y, {Y.shape[1]}. Got {C.shape[1]} instead.")
    sigma, margin = as_positive(sigma, "sigma"), separation_margin(Y, y, kind="distance")
    return float(np.sqrt(C.shape[1]) * coefficient_bound(C) / (sigma * margin)) if margin else float(np.inf)


def optimal_sigma(n: int, alpha: float, a1: float, a2: float) -> float:
    """The width for which the condition of Theorem 8 is easiest to meet: the positive root of THEORY eq. (21).

    This width minimises (a1/sigma + a2) sigma^-n exp(alpha sigma²).

    Parameters
    ----------
    n : int
        Dimension of the data.
    alpha : float
        Rate at which the inverse kernel matrix grows with sigma², eq. (20).
    a1, a2 : float
        Weights of the slope and of the deviation: √(2d) a e^(-1/2) δ and √d a ε in the paper.

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
