"""Constants of Gaussian maps f(x) = Σ_i c_i exp(-|x - x_i|²/σ²): their coefficients, condition parameter and width."""

from __future__ import annotations

from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as la
from scipy.optimize import brentq
from scipy.special import gammaln

from manifast._lipschitz import as_coefficients
from manifast._validation import Array, as_columns, as_count, as_matrix, as_positive
from manifast.kernels import gaussian, knn
from manifast.theory.margins import separation_margin

__all__ = ["InverseGrowth", "coefficient_bound", "condition_parameter", "inverse_growth", "optimal_sigma"]

_WIDTHS = np.geomspace(0.5, 8.0, 9)  # of the Gaussians, in medians of the distances to the nearest row


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


class InverseGrowth(NamedTuple):
    """Constants of THEORY eq. (20): |Φ^-1| <= exp(log_beta) sigma^-n exp(alpha sigma²).

    β itself may be beyond the range of numbers.
    """

    n: int
    alpha: float
    log_beta: float

    def log_bound(self, sigma: float) -> float:
        """Logarithm of the right side of (20)."""
        sigma = as_positive(sigma, "sigma")
        return float(self.log_beta - self.n * np.log(sigma) + self.alpha * sigma**2)

    def optimal_sigma(self, delta: float, epsilon: float) -> float:
        """The width of eq. (21); of a1 and a2 only the ratio matters, which is √2 e^(-1/2) delta / epsilon."""
        slope = np.sqrt(2.0) * np.exp(-0.5) * as_positive(delta, "delta")
        return optimal_sigma(self.n, self.alpha, float(slope), as_positive(epsilon, "epsilon"))


def inverse_growth(X: Any, *, kind: str = "measured", n: int | None = None) -> InverseGrowth:
    """How fast the inverse of the Gaussian kernel matrix of the rows grows with the width: α and β of THEORY eq. (20).

    Parameters
    ----------
    X : array of shape (rows, p)
        Different rows, at least 2.
    kind : {"measured", "bound"}
        "bound" are the constants of Narcowich, Sivakumar and Ward (1994), as Wendland (2005, Corollary 12.4) states
        them: they hold for every width, and need only the smallest distance between rows. They are far too large in
        many dimensions. "measured" takes the norm of the inverse at several widths and puts the lowest curve of the
        form (20) above them; it holds at these widths, from half to eight medians of the distances to the nearest row,
        as far as the matrix can be inverted.
    n : int, optional
        Dimension of the data; p where omitted. With "measured", give the dimension of the manifold: in many columns
        sigma^-n outweighs all else, and the optimal width is in the middle of the measured ones whatever the data.

    Returns
    -------
    InverseGrowth
        (n, alpha, log_beta), with `log_bound(sigma)` and `optimal_sigma(delta, epsilon)`.

    Examples
    --------
    >>> import numpy as np
    >>> from manifast.theory import inverse_growth
    >>> growth = inverse_growth(np.arange(20.0)[:, None])
    >>> growth.n, growth.alpha > 0
    (1, True)
    >>> 0.5 < growth.optimal_sigma(delta=0.1, epsilon=0.1) < 5
    True
    """
    if kind not in ("measured", "bound"):
        raise ValueError(f"kind must be 'measured' or 'bound'. Got {kind!r} instead.")
    rows = as_matrix(X, "X", min_rows=2).astype(np.float64)
    if kind == "bound" and n not in (None, rows.shape[1]):
        raise ValueError(f"n must be the number of columns of X, {rows.shape[1]}, for kind='bound'. Got {n} instead.")
    n = rows.shape[1] if n is None else as_count(n, "n")
    nearest = knn(rows, 1)[0][:, 0]
    if nearest.min() == 0:
        raise ValueError("X must hold different rows: the kernel matrix of equal rows has no inverse. Got equal rows.")
    if not 1e-140 < nearest.min() <= nearest.max() < 1e140:
        raise ValueError("X must be scaled: squares of distances must be in the range of numbers. Got others.")
    return _narcowich(n, float(nearest.min()) / 2) if kind == "bound" else _measured(rows, n, float(np.median(nearest)))


def _narcowich(n: int, radius: float) -> InverseGrowth:
    """From the separation radius: λ_min >= C_n (sigma/(√2 q))^n exp(-(M_n sigma/q)²)."""
    log_gamma = float(gammaln(n / 2 + 1))
    log_m = np.log(12.0) + (np.log(np.pi / 9) + 2 * log_gamma) / (n + 1)
    log_c = -np.log(2.0) - log_gamma + n * (log_m - np.log(8.0) / 2)
    return InverseGrowth(
        n, float(np.exp(2 * (log_m - np.log(radius)))), float(n * (np.log(radius) + np.log(2.0) / 2) - log_c)
    )


def _measured(rows: Array, n: int, spacing: float) -> InverseGrowth:
    """The lowest curve above the measured norms, which are a line in sigma² once n log(sigma) is added to them."""
    widths, heights = [], []
    for sigma in _WIDTHS * spacing:
        smallest = float(la.eigvalsh(gaussian(rows, sigma=float(sigma)), subset_by_index=[0, 0])[0])
        if smallest <= 1e-13 * len(rows):  # rounding: wider ones are worse
            break
        widths.append(float(sigma))
        heights.append(n * np.log(sigma) - np.log(smallest))
    if len(widths) < 2:
        raise ValueError("X must hold rows whose kernel matrix can be inverted. Got rows that are too unevenly spaced.")
    squares, tops = np.square(np.array(widths) / widths[-1]), np.array(heights)
    # The lowest line above points touches two of them: it is the one that is lowest over their mean.
    slopes = [(tops[j] - tops[i]) / (squares[j] - squares[i]) for i, j in combinations(range(len(tops)), 2)]
    slope = min(slopes, key=lambda slope: float((tops - slope * squares).max() + slope * squares.mean()))
    return InverseGrowth(n, float(slope / widths[-1] ** 2), float((tops - slope * squares).max()))
