"""Gaussian interpolation as a smoother: the penalty Ψ^-2 of NSSE (6), whose width may be learnt with the embedding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from manifast._gram import Kernel
from manifast._linalg.interpolation import Fit, Interpolator
from manifast._linalg.memory import LANDMARKS, check_room
from manifast._rows import Rows
from manifast._validation import Array, as_count, as_number, as_positive
from manifast.maps import KernelMap, Map
from manifast.smoothers.base import Smoother

_START = 1.5  # medians


@dataclass(frozen=True)
class Interpolation:
    """The weights of (10), the widths to choose from, and the kernel matrices of the rows."""

    rows: Rows
    interpolator: Interpolator
    mu2: float
    mu3: float
    sigma: float
    candidates: Array | None  # None: sigma stays; none in it: a free search
    max_iter: int
    tol: float

    def map(self, fit: Fit) -> Map:
        """ΨC = Y carried to new rows; coefficients in float64, as sums of them cancel."""
        return KernelMap(Kernel("rbf", fit.sigma), self.rows.X, fit.coef, np.zeros(fit.coef.shape[1]))


class Gaussian(Smoother):
    """Gaussian interpolation ΨC = Y, C small: the penalty weight · tr(Y'Ψ^-2 Y), Ψ = exp(-d²/σ²) (NSSE eqs. 6 and 10).

    Parameters
    ----------
    weight : float, default 0.3
        μ2 of (10).
    width_weight : float, default 30.0
        μ3 of (10): weight of 1/σ² where the width is learnt.
    sigma : float or None, default None
        Width of the kernel; None is learnt in turn with the embedding.
    sigma_init : float or None, default None
        Where learning starts; None is 1.5 medians of the distances.
    sigma_grid : sequence of floats or None, default None
        Candidates for the width, of which each step takes the best, as in the paper. None brackets the best width on a
        coarse grid from 0.3 to 6 medians and refines it.
    relative : bool, default True
        Take widths in medians of the distances between rows and `width_weight` in squared medians.
    max_iter : int, default 20
        Steps of the width at most.
    tol : float, default 1e-2
        Relative change of the width that counts as none; with a grid it must repeat.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manifast import ComposedEmbedding
    >>> from manifast.smoothers import Gaussian
    >>> X, y = load_iris(return_X_y=True)
    >>> ComposedEmbedding("supervised", Gaussian(sigma=1.0)).fit(X[::2], y[::2]).transform(X[1::2]).shape
    (75, 2)
    """

    interpolates = True

    def __init__(
        self,
        weight: float = 0.3,
        *,
        width_weight: float = 30.0,
        sigma: float | None = None,
        sigma_init: float | None = None,
        sigma_grid: Any = None,
        relative: bool = True,
        max_iter: int = 20,
        tol: float = 1e-2,
    ) -> None:
        self.weight = weight
        self.width_weight = width_weight
        self.sigma = sigma
        self.sigma_init = sigma_init
        self.sigma_grid = sigma_grid
        self.relative = relative
        self.max_iter = max_iter
        self.tol = tol

    def check(self, rows: Rows) -> None:
        self._numbers()
        check_room(rows.n, 4, LANDMARKS)

    def _numbers(self) -> tuple[float, float, float | None, float | None, list[float] | None, int, float]:
        mu2, mu3 = as_positive(self.weight, "weight"), as_number(self.width_weight, "width_weight", minimum=0.0)
        fixed, start = (
            None if value is None else as_positive(value, name)
            for name, value in (("sigma", self.sigma), ("sigma_init", self.sigma_init))
        )
        grid = None if self.sigma_grid is None else [as_positive(s, "sigma_grid") for s in np.ravel(self.sigma_grid)]
        if grid == []:
            raise ValueError("sigma_grid must be None or hold at least one width. Got an empty grid.")
        return mu2, mu3, fixed, start, grid, as_count(self.max_iter, "max_iter"), as_number(self.tol, "tol", minimum=0)

    def prepare(self, rows: Rows, interpolator: Interpolator | None = None) -> Interpolation:
        """The smoother for these rows; an interpolator that is at hand for them serves again."""
        mu2, mu3, fixed, start, grid, max_iter, tol = self._numbers()
        interpolator = Interpolator(rows.X) if interpolator is None else interpolator
        unit = interpolator.median if self.relative else float(np.ldexp(1.0, -rows.exponent))
        first = fixed or start
        return Interpolation(
            rows,
            interpolator,
            mu2,
            min(mu3 * unit * unit, 1e300) if mu3 else 0.0,
            _START * interpolator.median if first is None else first * unit,
            None if fixed is not None else np.array(grid or []) * unit,
            max_iter,
            tol,
        )
