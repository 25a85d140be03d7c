"""Projected pencils: embeddings Y = FW through the small matrices F'AF and F'BF."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp

from manifast._linalg import dense
from manifast._validation import Array, is_sparse, largest_magnitude
from manifast._warnings import warn
from manifast.spectral import fix_signs, smallest_eigenvectors

RANGE = 1e-12  # directions of F below this, relative to the largest, count as not there
_OUTLYING = 200  # powers of two beyond which products of F with objectives of squared distances may leave the range


def smallest_of_pencil(
    F: Any, image: Any, weights: Array, d: int, ridge: Array, *, drop_constant: bool = True
) -> tuple[Array, Array]:
    """Coefficients C (q, d) of the smallest eigenvalues of F'AF + ridge against F'BF + ridge, and these.

    `image` is A F, `weights` the diagonal of B. The ridge on both sides is the same as maximising F'(B - A)F against
    F'BF + ridge: directions in which F hardly varies do not count as smooth. With `drop_constant` the constant is left
    out where the range of F holds it.
    """
    exponent = int(np.frexp(largest_magnitude(F.data if is_sparse(F) else F))[1])
    if abs(exponent) > _OUTLYING:
        unit = 2.0**-exponent  # exact
        found = smallest_of_pencil(F * unit, image * unit, weights, d, ridge * unit**2, drop_constant=drop_constant)
        return found[0] * unit, found[1]
    weighted = sp.diags_array(weights) @ F if is_sparse(F) else weights[:, None] * F
    upper, lower = as_dense(F.T @ image), as_dense(F.T @ weighted)
    values, axes = la.eigh(0.5 * (lower + lower.T)) if len(lower) else (np.empty(0), lower)
    kept = values > RANGE * values.max(initial=float(np.finfo(float).tiny))
    if not kept.any():
        raise _too_many(d, 0, F)
    whitener = axes[:, kept] / np.sqrt(values[kept])
    moments = np.asarray(weighted.sum(axis=0), dtype=np.float64).ravel()  # F'B1
    towards = whitener.T @ moments  # the constant in a basis where F'BF is the identity
    holds_constant = drop_constant and towards @ towards >= (1 - 1e-10) * weights.sum()
    if ridge.any():  # of the remaining freedom, whiten F'BF + ridge
        with np.errstate(over="ignore", invalid="ignore"):
            inner = np.eye(whitener.shape[1]) + (whitener.T * ridge) @ whitener
        if not np.isfinite(inner).all():
            raise ValueError(f"the ridge must leave products in the range of numbers. Got {ridge.max():.3g}.")
        values, rotation = la.eigh(inner)
        whitener = whitener @ (rotation / np.sqrt(values))
        towards = np.sqrt(values) * (rotation.T @ towards)
    if holds_constant:  # reflect the constant onto the first axis, and leave that out
        mirror = towards / la.norm(towards)
        mirror[0] += 1.0 if mirror[0] >= 0 else -1.0
        whitener = (whitener - np.outer(whitener @ mirror, mirror) * (2.0 / (mirror @ mirror)))[:, 1:]
    most = whitener.shape[1]
    if d > most:
        raise _too_many(d, most, F)
    inside = whitener.T @ (upper + np.diag(ridge)) @ whitener
    eigenvalues, vectors = la.eigh(0.5 * (inside + inside.T), subset_by_index=(0, d - 1))
    coef = whitener @ vectors
    image = np.asarray(F @ coef)
    turned = np.einsum("ij,ij->j", image, fix_signs(image)) < 0
    return coef * np.where(turned, -1.0, 1.0), eigenvalues


def _too_many(d: int, most: int, F: Any) -> ValueError:
    mean = np.asarray(F.mean(axis=0), dtype=np.float64).ravel()
    spread = as_dense(F).std(axis=0).max(initial=0.0)
    if 0 < spread < np.sqrt(RANGE) * 10 * la.norm(mean):
        return ValueError(
            f"n_components must be at most {most}, the dimensions that stand out from rounding beside the mean of X, "
            f"which is {la.norm(mean) / spread:.0e} times as long as X varies. Got {d}: subtract X.mean(axis=0) first."
        )
    return ValueError(f"n_components must be at most {most}, the dimensions that X spans. Got {d} instead.")


def in_span(F: Array) -> tuple[Array, Array | None]:
    """Rows in the coordinates of the space they span where there are more features than rows, and its basis (p, n)."""
    if F.shape[1] <= F.shape[0]:
        return F, None
    basis, triangle = la.qr(F.T, mode="economic", overwrite_a=True, check_finite=False)
    return triangle.T, basis


def largest_ratios(between: Array, within: Array, d: int, size: float) -> tuple[Array, Array]:
    """Coefficients (q, d) of the largest eigenvalues of `between` against `within`, and these.

    Where `within` is singular the smallest jitter that helps is added, in units of `size`, with a warning.
    """
    triangle, jitter = dense.factor_jittered(within, "the scatter within classes", size=size)
    values, vectors = largest_against(between, triangle, d)
    if jitter:
        warn(f"the scatter within classes is singular: {jitter:.1g} was added to its diagonal. Use a larger ridge.")
    return fix_signs(vectors), values


def largest_against(A: Array, triangle: Array, d: int) -> tuple[Array, Array]:
    """The d largest eigenvalues of A v = λ LL' v, descending, and their vectors with V'LL'V = I.

    By the symmetric L^-1 A L^-T. Where d is small against its size, from a spectral solver that can be interrupted.
    """
    half = dense.solve_triangle(triangle, A)
    inside = dense.solve_triangle(triangle, half.T)
    values, vectors = smallest_eigenvectors(-0.5 * (inside + inside.T), d, check=False)
    return -values, dense.solve_triangle(triangle, vectors, transposed=True)


def as_dense(matrix: Any) -> Array:
    """A matrix of any kind as a float64 array."""
    return np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix, dtype=np.float64)
