"""What is known of the map of a fitted embedding: its Lipschitz constant, and what it does to rows left out of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from manifast import maps
from manifast._labels import Labels
from manifast._lipschitz import LipschitzConstants, as_coefficients, linear_lipschitz, rbf_lipschitz
from manifast._validation import Array
from manifast.kernels import gaussian, knn
from manifast.metrics import misclassification_rate

_LARGEST_INVERSE = 5000  # rows up to which the inverse of the kernel matrix is formed


@dataclass(frozen=True)
class GaussianMap:
    """f(x) = Σ_i c_i exp(-|x - x_i|²/sigma²) plus a constant, in the units of the data."""

    coef: Array
    sigma: float

    @property
    def lipschitz(self) -> LipschitzConstants:
        return rbf_lipschitz(self.coef, self.sigma)

    def __str__(self) -> str:
        return f"Gaussian, sigma {self.sigma:.4g}, {len(self.coef)} centres"


@dataclass(frozen=True)
class LinearMap:
    """f(x) = x·W plus a constant; `norm` is the spectral norm of W in the units of the data."""

    norm: float

    @property
    def lipschitz(self) -> LipschitzConstants:
        return LipschitzConstants(self.norm, self.norm)

    def __str__(self) -> str:
        return "linear"


def fitted_map(estimator: Any) -> GaussianMap | LinearMap | None:
    """The map of a fitted embedding; None where its Lipschitz constant is not known."""
    own = _mapping(estimator)
    mapping = getattr(own, "embedding_map_", getattr(own, "map_", None))
    # Rows beyond the range of numbers were divided by this power of two before the map was fitted to them.
    exponent = getattr(estimator, "_row_exponent", 0)
    if isinstance(mapping, maps.KernelMap) and mapping.kernel.name == "rbf":
        return GaussianMap(as_coefficients(mapping.dual), float(np.ldexp(mapping.kernel.sigma, exponent)))
    if isinstance(mapping, maps.LinearMap):
        return LinearMap(float(np.ldexp(linear_lipschitz(mapping.coef), -exponent)))
    if mapping is None and hasattr(estimator, "coef_") and hasattr(estimator, "sigma_"):  # somebody else's estimator
        return GaussianMap(as_coefficients(estimator.coef_), float(estimator.sigma_))
    return None


def measured_rows(estimator: Any, rows: Array) -> Array:
    """Rows as the map sees them: whitened where the estimator has a metric of its own."""
    before = getattr(estimator, "_whitening", None)
    if before is None:
        return rows
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(before.predict(np.ldexp(rows, -estimator._exponent)))


def map_name(estimator: Any) -> str:
    """The class of the map."""
    return type(_mapping(estimator)).__name__


def left_out_error(estimator: Any, rows: Array, embedding: Array, labels: Labels) -> float | None:
    """Share of the rows that Gaussian interpolation from all other rows puts next to a row of another class.

    The images of rows left out are F_loo = Y - Ψ^-1 Y / diag(Ψ^-1); copies of a row are left out together with it. The
    share is None for other maps, for maps whose centres are not all of the rows, and where Ψ is singular or too large
    to be inverted.
    """
    # Here and not above: extensions bring scikit-learn, which the rest of this package does without.
    from manifast.extensions import loo_residuals, merge_copies

    mapping = _mapping(estimator)
    width = _interpolator_width(mapping)
    if width is None or len(mapping.coef_) != len(rows) or len(rows) > _LARGEST_INVERSE:
        return None
    scaled = np.ldexp(rows.astype(np.float64), -getattr(estimator, "_row_exponent", 0))
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


def _mapping(estimator: Any) -> Any:
    """The object that holds the coefficients: the extension, or the estimator where it is its own map."""
    return getattr(estimator, "extension_", estimator)


def _interpolator_width(mapping: Any) -> float | None:
    """Width of a Gaussian interpolator in the units of the rows it was fitted to; None for other maps."""
    fitted = getattr(mapping, "map_", None)
    if not isinstance(fitted, maps.KernelMap) or not hasattr(mapping, "sigma_") or not hasattr(mapping, "coef_"):
        return None
    return fitted.kernel.sigma
