"""Gaussian interpolation, and the choice of its width and ridge by closed-form leave-one-out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.linalg as la

from manifast._gram import Kernel, median_distance, settle
from manifast._linalg import dense as _dense
from manifast._linalg.copies import unique_rows
from manifast._linalg.memory import LANDMARKS, check_room
from manifast._lipschitz import rbf_lipschitz
from manifast._progress import log
from manifast._validation import Array, as_number, as_positive
from manifast._warnings import warn
from manifast.extensions.base import Extension
from manifast.kernels import gaussian, rbf_apply
from manifast.maps import KernelMap


class RBF(Extension):
    """Gaussian interpolation: y = Σ_i c_i exp(-|x - x_i|²/σ²) with f(x_i) = y_i.

    The map of `NSSE` and the natural one of embeddings by labels: ΨC = Y is solved for the coefficients.

    Parameters
    ----------
    sigma : "median", "loo" or float, default "median"
        Width: `scale` times the median distance between rows; or chosen among `sigma_grid` (in medians) by closed-form
        leave-one-out, F_loo = Y - Ψ^-1 Y / diag(Ψ^-1), copies of a row together; or a number, taken as it is.
    scale : float, default 1.0
        Of the median.
    ridge : float or sequence of floats, default 0.0
        Added to the diagonal of Ψ: the map then smooths instead of interpolating. Several are chosen among by the same
        leave-one-out.
    sigma_grid : sequence of floats or None, default None
        Widths for "loo", in medians; None is 20 from 0.3 to 6.
    verbose : bool, default False
        Say which width was tried, and how it went.

    Attributes
    ----------
    sigma_ : float
    ridge_ : float
    coef_ : array of shape (n, d)
    loo_error_ : float
        Root mean square of the leave-one-out residuals relative to Y's own spread; where something was chosen by it.
    lipschitz_ : (float, float)
        Two constants of the map, Proposition 1 of NSSE and a tighter one, see `manifast.theory.rbf_lipschitz`.

    Notes
    -----
    Cost: `fit` takes O(n²p + n³) for every width that is tried, and an n × n matrix. A new row takes O(n(p + d)).

    Rows that repeat share their coefficients equally, and their embeddings are averaged: the solution of smallest norm,
    and with a ridge the same map as without merging them. Leave-one-out leaves all copies of a row out at once, as any
    of them would give the others away. Where Ψ is singular to working precision the smallest jitter that helps is
    added, and a warning says so; where it is at every candidate, that is done at the smallest width.

    Examples
    --------
    >>> import numpy as np
    >>> from manifast.extensions import RBF
    >>> X = np.linspace(0, 6, 12)[:, None]
    >>> model = RBF(sigma=1.0).fit(X, np.sin(X))
    >>> bool(np.allclose(model.predict(X), np.sin(X)))
    True
    """

    map_: KernelMap

    def __init__(
        self,
        sigma: Any = "median",
        scale: float = 1.0,
        ridge: Any = 0.0,
        sigma_grid: Any = None,
        verbose: bool = False,
    ) -> None:
        self.sigma = sigma
        self.scale = scale
        self.ridge = ridge
        self.sigma_grid = sigma_grid
        self.verbose = verbose

    def _check_rows(self, n: int) -> None:
        check_room(n, 2 if self.sigma == "loo" or np.size(self.ridge) > 1 else 1, LANDMARKS)

    def _fit(self, X: Array, Y: Array) -> KernelMap:
        dtype = np.result_type(X.dtype, Y.dtype)
        widths, ridges = rbf_candidates(X, self.sigma, self.ridge, self.sigma_grid, self.scale)
        wide, target, groups, counts = merge_copies(X, Y)
        self.sigma_, self.ridge_ = widths[0], ridges[0]
        self.__dict__.pop("loo_error_", None)  # of an earlier fit
        if len(widths) * len(ridges) > 1:
            self.sigma_, self.ridge_, residuals = choose_by_loo(wide, target, counts, widths, ridges, self.verbose)
            self.loo_error_ = float(np.linalg.norm(residuals)) / spread(target)
        coef = interpolate(wide, target, counts, self.sigma_, self.ridge_)
        kept = settle((coef / counts[:, None])[groups], target, dtype)
        self.lipschitz_ = rbf_lipschitz(kept, self.sigma_)
        return KernelMap(Kernel("rbf", self.sigma_), X, kept, np.zeros(Y.shape[1], kept.dtype))

    @property
    def X_(self) -> Array:
        assert self.map_.rows is not None
        return self.map_.rows

    @property
    def coef_(self) -> Array:
        return self.map_.dual


_SIGMA_GRID = tuple(np.geomspace(0.3, 6.0, 20))


def rbf_candidates(
    X: Array, sigma: Any, ridge: Any, sigma_grid: Any, scale: Any = 1.0
) -> tuple[list[float], list[float]]:
    """Widths and ridges to choose among, as `RBF` takes them."""
    if isinstance(sigma, str) and sigma not in ("median", "loo"):
        raise ValueError(f"sigma must be 'median', 'loo' or a positive number. Got {sigma!r} instead.")
    unit = as_positive(scale, "scale")
    given = {"ridge": ridge, "sigma_grid": _SIGMA_GRID if sigma_grid is None else sigma_grid}
    values = {name: np.atleast_1d(np.asarray(value, dtype=object)) for name, value in given.items()}
    for name, several in values.items():
        if several.ndim != 1 or not len(several):
            raise ValueError(f"{name} must be a number or a sequence of numbers. Got {given[name]!r} instead.")
    ridges = [as_number(value, "ridge", minimum=0.0) for value in values["ridge"]]
    grid = [as_positive(value, "sigma_grid") for value in values["sigma_grid"]]
    if not isinstance(sigma, str):
        return [as_positive(sigma, "sigma")], ridges
    median = unit * median_distance(X)
    return [median * size for size in grid] if sigma == "loo" else [median], ridges


def merge_copies(X: Array, Y: Array) -> tuple[Array, Array, Array, Array]:
    """Rows that differ and the mean of Y over the copies of each, in float64; the number of each row there; copies."""
    rows, groups, counts = unique_rows(X)
    target = np.zeros((len(rows), Y.shape[1]))
    np.add.at(target, groups, Y.astype(np.float64))
    target /= counts[:, None]
    return X[rows].astype(np.float64), target, groups, counts


def spread(Y: Array) -> float:
    """Size of Y about its mean, 1 where that is 0."""
    return float(np.linalg.norm(Y - Y.mean(axis=0))) or 1.0


def interpolate(X: Array, Y: Array, counts: Array, sigma: float, ridge: float) -> Array:
    """Coefficients of (Ψ + ridge) C = Y, by Cholesky with the smallest jitter that makes it succeed.

    Rows are what `merge_copies` gives. For m copies the sum of m rows of (Ψ + ridge I) C = Y, divided by m, has ridge /
    m on the diagonal, and C there is the sum of their coefficients.
    """
    psi = np.empty((0, 0))

    def succeeds(jitter: float) -> bool:
        nonlocal psi
        psi = np.empty((0, 0))  # one n × n matrix at a time
        psi = gaussian(X, sigma=sigma)
        psi.flat[:: len(psi) + 1] += (ridge + jitter) / counts
        return _dense.factor(psi)

    jitter = _dense.smallest_jitter(succeeds, 1.0, len(X), "the kernel matrix")
    coef = _dense.solve(psi, Y)
    if ridge == 0:
        sample = np.unique(np.linspace(0, len(X) - 1, min(len(X), 500)).astype(int))
        missed = np.abs(rbf_apply(X[sample], X, coef, sigma=sigma) - Y[sample]).max() / (np.abs(Y).max() or 1.0)
        if missed > 1e-6:
            warn(
                f"the kernel matrix is nearly singular at sigma = {sigma:.3g} (jitter {jitter:.1g}), and the embedding "
                f"is reproduced only to {missed:.1e}. Use a smaller sigma, or ridge > 0 on purpose.",
            )
    return coef


def choose_by_loo(
    X: Array,
    Y: Array,
    counts: Array,
    widths: list[float],
    ridges: list[float],
    verbose: bool,
    score: Callable[[Array], Any] = np.linalg.norm,
) -> tuple[float, float, Array]:
    """The width and ridge whose leave-one-out residuals Y - F_loo have the smallest score, and these residuals.

    Where Ψ is singular for all of them it is the smallest width and the largest ridge, with residuals at the smallest
    jitter that helps, and a warning.
    """
    found: tuple[float, float, Array] | None = None
    best: Any = None
    for sigma in widths:
        candidates = zip(ridges, loo_residuals(gaussian(X, sigma=sigma), Y, counts, ridges), strict=True)
        for ridge, residuals in candidates:
            if verbose:
                error = np.inf if residuals is None else np.linalg.norm(residuals) / spread(Y)
                log(f"RBF: sigma {sigma:.4g}, ridge {ridge:.2g}: leave-one-out error {error:.4f}")
            if residuals is None or not np.isfinite(residuals).all():
                continue
            value = score(residuals)
            if found is None or value < best:
                best, found = value, (sigma, ridge, residuals)
    if found is not None:
        return found
    sigma, ridge = min(widths), max(ridges)
    left: Array | None = None

    def succeeds(jitter: float) -> bool:
        nonlocal left
        left = next(loo_residuals(gaussian(X, sigma=sigma), Y, counts, [ridge + jitter]))
        return left is not None and bool(np.isfinite(left).all())

    jitter = _dense.smallest_jitter(succeeds, 1.0, len(X), "the kernel matrix")
    assert left is not None
    warn(
        f"the kernel matrix is singular at every sigma: the smallest, {sigma:.3g}, is used with jitter "
        f"{jitter:.1g}. Use a smaller sigma or sigma_grid, or a larger ridge.",
    )
    return sigma, ridge, left


_FEW_RIDGES = 5  # so many Cholesky factors take less time than one eigendecomposition
_EIGEN_ROWS = 2000  # beyond, an eigendecomposition takes many seconds, in which it cannot be interrupted


def loo_residuals(psi: Array, Y: Array, counts: Array, ridges: list[float]) -> Iterator[Array | None]:
    """Y - F_loo = Ψ^-1 Y / diag(Ψ^-1) for every ridge on the diagonal of psi, None where that is singular.

    Rows are what `merge_copies` gives: all copies of a row are left out at once, and m of them divide its ridge by m,
    see `interpolate`. Few ridges: Cholesky, and the diagonal from the inverse of its triangle. More share one
    eigendecomposition. psi is overwritten.
    """
    n = len(psi)
    # Ψ + ridge M^-1 = M^-½ (M^½ Ψ M^½ + ridge I) M^-½: with these units the ridge is the same for all rows.
    root = np.sqrt(counts)[:, None]
    psi *= root
    psi *= root.T
    Y = root * Y
    if len(ridges) <= _FEW_RIDGES or n > _EIGEN_ROWS:
        for ridge in ridges:
            shifted = _dense.copied(psi)
            shifted.flat[:: n + 1] += ridge
            if not _dense.factor(shifted):
                yield None
                continue
            solved = _dense.solve(shifted, Y)
            _dense.invert_triangle(shifted)
            yield solved / (root * np.einsum("ij,ij->j", shifted, shifted)[:, None])
        return
    values, vectors = la.eigh(psi, overwrite_a=True, check_finite=False)
    inside, squares = vectors.T @ Y, np.square(vectors)
    for ridge in ridges:
        total = values + ridge
        if total[0] <= n * np.finfo(float).eps * total[-1]:
            yield None
        else:
            yield vectors @ (inside / total[:, None]) / (root * (squares @ (1.0 / total))[:, None])
