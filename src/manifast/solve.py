"""The solve: from an objective (A, B) and a smoother to an embedding and its map.

The strategy follows from the structure of what is given, never from the name of a method:

* no smoother: eigenvectors of (A, B), in closed form where the objective knows its own (`modes`);
* a penalty (ridge regression on features or kernel): eigenvectors of (A + R, B), and the regression is the map;
* B that is zero on unlabelled rows: these are eliminated first, with a penalty or without (`_linalg.condensed`);
* a projection Y = FW on features or kernel: the pencil (F'AF, F'BF), smallest eigenvalues or largest ratios;
* Gaussian interpolation: eigenvectors of A + w Ψ^-2 through coefficients; Ψ^-1 is never formed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from manifast._linalg import dense as _dense
from manifast._linalg.condensed import condensed_eigenvectors
from manifast._linalg.interpolation import alternate
from manifast._linalg.memory import LANDMARKS, check_room
from manifast._linalg.pencils import RANGE, as_dense, in_span, largest_ratios, smallest_of_pencil
from manifast._progress import details
from manifast._validation import Array, is_sparse
from manifast.maps import Map
from manifast.objectives.base import Objective
from manifast.smoothers.base import Penalizing
from manifast.smoothers.gaussian import Interpolation
from manifast.smoothers.projection import Features
from manifast.spectral import LowRankSum, fix_signs, matrix_norm, smallest_eigenvectors

_NOTHING = 1e-12  # scatter within classes below this, relative to that between them, is rounding
_RIDGE = 0.1  # of largest ratios, relative to the mean diagonal entry of the scatter within


@dataclass(frozen=True)
class Solution:
    """Eigenvalues, the embedding, and the map of the smoother, None where there is no smoother."""

    values: Array
    Y: Array
    map: Map | None = None
    details: Any = None  # of an iteration: its history


def embed(
    objective: Objective, smoother: Penalizing | Features | Interpolation | None, d: int, *, exact: bool = True
) -> Solution:
    """The embedding of d dimensions; with `exact` False of as many as exist.

    `smoother` is None or what `Smoother.prepare` gave.
    """
    if isinstance(smoother, Features):
        return projected(objective, smoother, d, exact)
    if isinstance(smoother, Interpolation):
        return interpolated(objective, smoother, d)
    if smoother is None:
        return Solution(*unsmoothed(objective, d))
    if objective.margin is not None:
        values, Y = condensed_eigenvectors(objective.margin, smoother.penalty(objective.unit), d)
    else:
        A = smoother.added_to(objective.A, unit=objective.unit, drop_constant=objective.drop_constant)
        values, Y = eigenvectors(objective, A, d)
    return Solution(values, Y, smoother.fit(Y))


def unsmoothed(objective: Objective, d: int) -> tuple[Array, Array]:
    """The eigenvectors of the objective alone, in closed form where they are known."""
    if objective.modes is not None:
        return objective.modes(d)
    if objective.unbounded:
        raise ValueError(objective.unbounded)
    if objective.margin is not None and len(objective.margin.rows) < objective.n:
        values, Y = condensed_eigenvectors(objective.margin, None, d)
    else:
        values, Y = eigenvectors(objective, objective.A, d)
    if objective.finish is None:
        return values, Y
    values, factors = objective.finish(values)
    return values, np.ascontiguousarray(Y * factors)


def eigenvectors(objective: Objective, A: Any, d: int) -> tuple[Array, Array]:
    """Smallest eigenvectors of A, which may hold a penalty, against B of the objective; or its largest ratios."""
    if not objective.ratio:
        return smallest_eigenvectors(A, d, B=objective.B, null=objective.null, check=False, verbose=details())
    check_room(objective.n, 3, f"use a projection, or {LANDMARKS}")
    B = as_dense(objective.B) if isinstance(objective.B, LowRankSum) else objective.B
    inverse, Y = smallest_eigenvectors(
        _held(A) if objective.unbounded else A, d, B=B, check=False, verbose=details()
    )
    return 1.0 / inverse, fix_signs(Y / la.norm(Y, axis=0))


def projected(objective: Objective, features: Features, d: int, exact: bool) -> Solution:
    """Y = FW through the matrices F'AF and F'BF."""
    values, mapping = (_ratios if objective.ratio else _smallest)(objective, features, d, exact)
    return Solution(values, mapping.predict(features.rows.X), mapping)


def _smallest(objective: Objective, features: Features, d: int, exact: bool) -> tuple[Array, Map]:
    n, ridge = objective.n, features.ridge or 0.0
    if objective.B is not None and np.ndim(objective.B) != 1:
        raise ValueError("B of an objective must be the identity or a diagonal for a projection. Got a matrix instead.")
    if features.kernel is None and features.count <= n:
        F = features.matrix()
        mean = _centre(F, objective.centred)
        coef, values = _pencil(objective, F, d, np.ones(features.count), ridge, features.relative)
        return values, features.map(coef, -mean @ coef)
    # In the range of K, or of XX' where there are more features than rows.
    K = features.products()
    means = K.mean(axis=0) if objective.centred else np.zeros(n)
    if objective.centred:
        K -= means
        K -= (means - means.mean())[:, None]
    lengths, vectors = la.eigh(K)
    kept = lengths > RANGE * max(float(lengths[-1]), np.finfo(float).tiny)
    basis, lengths = vectors[:, kept], lengths[kept]
    inside, values = _pencil(objective, basis, d, lengths, ridge, features.relative)
    dual = basis @ (inside / lengths[:, None])
    if features.kernel is not None:
        return values, features.map(dual, -means @ dual)
    X = features.rows.X.astype(np.float64)
    coef = np.asarray(X.T @ dual)
    mean = np.asarray(X.mean(axis=0)).ravel() if objective.centred else np.zeros(X.shape[1])
    return values, features.map(coef, -mean @ coef)


def _pencil(
    objective: Objective, F: Any, d: int, units: Array, ridge: float, relative: bool
) -> tuple[Array, Array]:
    weights = objective.weights
    if ridge and relative:
        ridge *= float(np.einsum("ij,i,ij->", F, weights, F)) / F.shape[1]
    return smallest_of_pencil(
        F, objective.A @ F, weights, d, ridge / units, drop_constant=objective.drop_constant
    )


def _centre(F: Any, centred: bool) -> Array:
    """Centre the columns of F in place where asked for, and give their means, 0 where not."""
    if not centred:
        return np.zeros(F.shape[1])
    mean = np.asarray(F.mean(axis=0)).ravel()
    F -= mean
    return mean


def _ratios(objective: Objective, features: Features, d: int, exact: bool) -> tuple[Array, Map]:
    F = as_dense(features.matrix())
    F -= F.mean(axis=0)  # scatters do not change, and an offset costs no accuracy
    F, basis = in_span(F)
    images = objective.images(F)
    within, between = (_dense.product(F.T, image) for image in images)
    size, apart = float(np.trace(within)), float(np.trace(between))
    if size <= _NOTHING * apart:  # no class has two different rows: nothing within to be relative to
        size = apart or 1.0
    mean_diagonal = size / features.count
    ridge = _RIDGE * mean_diagonal if features.ridge is None else features.ridge
    if features.ridge is not None and features.relative:
        ridge *= mean_diagonal
    q = len(within)
    coef, values = largest_ratios(between, within + ridge * np.eye(q), min(d, q), mean_diagonal)
    exist = max(1, int(np.count_nonzero(values > 100 * q * np.finfo(float).eps * values[0])))
    if exact and d > exist:
        raise ValueError(
            f"n_components must be at most {exist}, the directions in which classes differ. Got {d} instead."
        )
    coef, values = coef[:, :exist], values[:exist]
    coef = coef if basis is None else fix_signs(basis @ coef)
    return values, features.map(coef, np.zeros(len(values)))


def interpolated(objective: Objective, smoother: Interpolation, d: int) -> Solution:
    """A + w Ψ^-2 through coefficients, with Y'Y = I."""
    if objective.ratio or objective.B is not None:
        raise ValueError(
            "the smoother 'gaussian' goes with objectives whose constraint is Y'Y = I only, as it solves for the "
            "coefficients C of Y = ΨC. Got an objective with another constraint: use constraint='identity' where the "
            "objective has it, or the smoother 'kernel_ridge'."
        )
    most = len(smoother.interpolator.roots)
    if d > most:
        raise ValueError(f"n_components must be at most {most}, the number of different rows. Got {d} instead.")
    for width in (smoother.sigma, *(() if smoother.candidates is None else smoother.candidates)):
        if not 1e-140 < width < 1e140:
            raise ValueError(
                "sigma, sigma_init and sigma_grid must have squares in the range of numbers. Got "
                f"{width:.3g} beside rows of ordinary size."
            )
    fit = alternate(
        smoother.interpolator.problem(objective),
        objective.unit * smoother.mu2,
        smoother.mu3,
        d,
        sigma=smoother.sigma,
        candidates=smoother.candidates,
        max_iter=smoother.max_iter,
        tol=smoother.tol,
    )
    return Solution(fit.values, fit.Y, smoother.map(fit), fit)


def _held(A: Any) -> Any:
    """A with the constant, on which ratios are 0 against 0, moved out of the way."""
    n = A.shape[0]
    size = matrix_norm(A) if not isinstance(A, LinearOperator) else 1.0
    constant = np.full((n, 1), 1.0 / np.sqrt(n))
    if isinstance(A, LowRankSum):
        return LowRankSum(A.sparse, np.hstack([A.factor, constant]), np.append(A.weights, size))
    if is_sparse(A):
        return LowRankSum(sp.csr_array(A), constant, np.array([size]))
    return as_dense(A) + size / n
