"""Smallest eigenvectors of A + w Φ^-2 through coefficients: Y = ΦC, and Φ is never inverted.

In the coefficients the problem is (wI + Φ'AΦ) c = λ Φ'Φ c. One Cholesky factor of it, shifted to be positive definite,
or of a problem like it, is the preconditioner of a block Davidson iteration, which takes residuals with Φ itself: where
Φ is nearly singular the factor loses digits, and the result does not.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg as la

from manifast._linalg import dense as _dense
from manifast._validation import Array
from manifast._warnings import warn

_PANEL = 256  # columns of a product whose lower triangle is enough
_GUARD = 4  # vectors beyond those that are wanted, which converge last
_BLOCKS = 6  # of the basis, before it is restarted
_PATIENCE = 20  # steps without half the residual, after which rounding is all that is left


def smallest_coefficients(
    apply: Callable[[Array], Array],
    phi: Array,
    weight: float,
    k: int,
    *,
    product: Array,
    start: Array | None = None,
    tol: float = 1e-10,
    max_iter: int = 300,
) -> tuple[Array, Array, Array]:
    """The k smallest eigenvalues of A + weight Φ^-2, their coefficients C (m, k) and vectors Y = ΦC with Y'Y = I.

    Parameters
    ----------
    apply : callable
        A times a block of columns.
    phi : array of shape (n, m)
    product : array of shape (m, m)
        What `shifted_product` gave for the same Φ and A, or for a matrix in place of A whose small eigenvectors are
        alike: the closer its floor is to the wanted eigenvalues, the faster.
    start : array of shape (n, any), optional
        Vectors near the wanted ones.
    tol : float
        Residuals count in the norm of the preconditioner, relative to that of the vectors.
    """
    n, m = phi.shape
    factor, _ = _dense.factor_jittered(product, "the shifted eigenproblem", ridge=weight)  # of a preconditioner only
    width = min(k + _GUARD, m)
    guess = np.random.default_rng(0).standard_normal((n, width))
    if start is not None:
        guess = np.hstack([start[:, :m], guess])[:, : max(width, min(start.shape[1] + 2, m))]
    fresh = _dense.solve(factor, phi.T @ guess)
    C = Y = AY = np.empty((0, 0))  # basis, its image under Φ and that under A
    ritz, values, best, waited = np.empty((0, 0)), np.empty(0), np.inf, 0
    for _ in range(max_iter):
        fresh, image = _orthonormal(phi, fresh, C, Y)
        if fresh.shape[1] == 0:
            break
        if C.size == 0:
            C, Y, AY = fresh, image, apply(image)
        else:
            C, Y, AY = np.hstack([C, fresh]), np.hstack([Y, image]), np.hstack([AY, apply(image)])
        projected = Y.T @ AY + weight * (C.T @ C)
        values, ritz = np.linalg.eigh(0.5 * (projected + projected.T))
        wanted = ritz[:, : min(width, ritz.shape[1])]
        coef = C @ wanted
        residual = weight * coef + phi.T @ (AY @ wanted - (Y @ wanted) * values[: wanted.shape[1]])
        correction = _dense.solve(factor, residual)
        error = np.sqrt(np.maximum(np.einsum("ij,ij->j", residual, correction), 0.0))
        lengths = np.asarray(la.norm(la.blas.dtrmm(1.0, factor, coef, lower=1, trans_a=1), axis=0))
        worst = float((error / np.maximum(lengths, np.finfo(float).tiny))[:k].max())
        waited = 0 if worst < 0.5 * best else waited + 1
        best = min(best, worst)
        if worst <= tol or (waited > _PATIENCE and worst < 1e-6) or C.shape[1] >= m:
            break
        if C.shape[1] + wanted.shape[1] > _BLOCKS * width:
            keep = ritz[:, : min(2 * width, ritz.shape[1])]
            C, Y, AY = C @ keep, Y @ keep, AY @ keep
        fresh = correction[:, : max(1, int(np.sum(error > 0)))]
    nothing = np.empty((0, 0))
    C, Y = _orthonormal(phi, C @ ritz[:, :k], nothing, nothing)
    if Y.shape[1] < k or np.abs(Y.T @ Y - np.eye(k)).max() > 1e-6:
        spanned = int(np.sum(la.eigvalsh(Y.T @ Y) > 1e-3))
        raise ValueError(
            f"n_components must be at most {min(spanned, k - 1)} for this width, whose kernel matrix spans no more "
            f"directions in working precision. Got {k}: use fewer, or a smaller sigma."
        )
    if best > 1e-4:  # errors of eigenvalues are its square
        from sklearn.exceptions import ConvergenceWarning

        warn(
            f"the eigenvectors did not converge: relative residuals up to {best:.1e}. Use a larger mu2, or fewer "
            "components.",
            ConvergenceWarning,
        )
    projected = Y.T @ apply(Y) + weight * (C.T @ C)
    values, ritz = np.linalg.eigh(0.5 * (projected + projected.T))
    return values, C @ ritz, Y @ ritz


def _shift(floor: float) -> float:
    """Slightly below the floor: the wanted eigenvalues stand out in the inverse, and it exists even at weight 0."""
    return -floor * (1 + 1e-4)


def shifted_product(apply: Callable[[Array], Array], phi: Array, floor: float) -> Array:
    """Φ'(A + shift)Φ, its lower triangle."""
    m = phi.shape[1]
    product = np.empty((m, m), order="F")
    for begin in range(0, m, _PANEL):
        end = min(begin + _PANEL, m)
        columns = phi[:, begin:end]
        product[begin:, begin:end] = _dense.product(phi[:, begin:].T, apply(columns) + _shift(floor) * columns)
    return product


def _orthonormal(phi: Array, C: Array, basis: Array, images: Array) -> tuple[Array, Array]:
    """C mixed so that Y = ΦC is orthonormal, and orthogonal to the images of the basis; what vanishes is left out."""
    Y = phi @ C
    for _ in range(4):
        before = np.asarray(la.norm(Y, axis=0))
        if images.size:
            overlap = images.T @ Y
            Y, C = Y - images @ overlap, C - basis @ overlap
        lengths = np.asarray(la.norm(Y, axis=0))
        sound = lengths > 1e-10 * before
        Y, C = Y[:, sound] / lengths[sound], C[:, sound] / lengths[sound]
        values, vectors = np.linalg.eigh(Y.T @ Y) if sound.any() else (np.empty(0), np.empty((0, 0)))
        good = values > 1e-8
        mixing = vectors[:, good] / np.sqrt(values[good])
        Y, C = Y @ mixing, C @ mixing
        if values.min(initial=1.0) > 0.01 and (lengths > 0.1 * before).all():
            break
        Y = phi @ C  # what was small has lost digits
    return C, Y
