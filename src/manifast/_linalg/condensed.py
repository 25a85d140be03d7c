"""Problems whose constraint holds on labelled rows only: the unlabelled ones are eliminated."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import scipy.linalg as la

from manifast._linalg.systems import Operator, PenalizedSystem, raised, spd_solver
from manifast._progress import details
from manifast._threads import lazy
from manifast._validation import Array
from manifast.spectral import fix_signs

_COLUMNS = 128  # right-hand sides solved together
_SPREAD = 1e4  # of eigenvalues: beyond, the large ones have lost too many digits beside the small ones


@dataclass(frozen=True)
class Margins:
    """λM and the diagonal D of the margins between classes (SEE eqs. 2 to 6), and the rows that they belong to."""

    rows: Array
    M: Array
    D: Array
    L: Any  # what is minimised without the margins


class Condensed:
    """min tr Z'(A + λM̃)Z with Z'D̃Z = I (SEE eqs. 9 and 13), the unlabelled rows eliminated.

    M̃ and D̃ are zero but for their labelled block, M and diag(D). So all finite eigenvalues follow from the labelled
    rows alone: with P the labelled block of (A + τD̃)^-1 the Schur complement of A is P^-1 - τD. Small eigenvalues are
    lost in it beside large ones. They are taken from the inverse, on what is orthogonal to the eigenvectors of the
    large ones: 1/θ - τ of the largest θ of C(I + λC'MC)^-1C' for P = CC'. All of that in units in which D is I.

    In P in turn the large ones are lost beside the small ones, and with them the way from the labelled rows to the
    others. Where that is so, `with_far` adds the P of a τ as large as the largest eigenvalue: that is well conditioned.
    """

    def __init__(self, block: Array, M: Array, D: Array, shift: float) -> None:
        self._root, self._shift = np.sqrt(D), shift
        self._M = M / self._root / self._root[:, None]
        values, self._axes = la.eigh(0.5 * (block + block.T) * self._root * self._root[:, None], check_finite=False)
        self._values = np.maximum(values, np.finfo(float).eps * values[-1])
        self._C = self._axes * np.sqrt(self._values)
        self._far = self

    @lazy
    def _schur(self) -> Array:
        return np.asarray((self._axes * (1.0 / self._values - self._shift)) @ self._axes.T)

    def with_far(self, far: Condensed) -> Condensed:
        """The same with another τ to take large eigenvalues and the unlabelled rows from."""
        other = copy(self)
        other._far = far
        return other

    def far_shift(self) -> float | None:
        """τ for a problem that holds the large eigenvalues, None where this one does."""
        spread = self._values[-1] / self._values[0]
        return float(1.0 / self._values[0]) if spread > _SPREAD else None

    def eigenvectors(self, lam: float, d: int) -> tuple[Array, Array, Array]:
        """The d smallest eigenvalues, Z of the labelled rows, and T (l, d) with Z = (A + τD̃)^-1 E T of all rows.

        E are the columns of the identity that belong to labelled rows; τ is that of `far` where there is one.
        """
        far, margins = self._far, lam * self._M
        values, vectors = la.eigh(far._schur + margins, check_finite=False)
        largest = 1.0 / far._values[0] + float(np.abs(margins).sum(axis=0).max())
        small = vectors[:, values < np.sqrt(largest / self._values[-1])]  # below, the inverse keeps more digits
        if k := small.shape[1]:
            inside = self._C.T @ margins @ self._C
            inside.flat[:: len(inside) + 1] += 1.0
            image = self._C.T @ small
            try:
                inverse = image.T @ la.solve(inside, image, assume_a="pos", check_finite=False)
            except la.LinAlgError:
                raise ValueError(f"lam must not be so large that rounding hides the graph. Got {lam:.3g}.") from None
            theta, turn = la.eigh(inverse, check_finite=False)
            values[:k], vectors[:, :k] = 1.0 / theta[::-1] - self._shift, small @ turn[:, ::-1]
        scaled = vectors[:, :d]
        mixing = self._root[:, None] * (far._axes @ ((far._axes.T @ scaled) / far._values[:, None]))
        return np.maximum(values[:d], 0.0), scaled / self._root[:, None], mixing


def condensed_eigenvectors(margin: Margins, penalty: Any, d: int) -> tuple[Array, Array]:
    """The d smallest eigenvalues of min tr Z'(L + λM̃ + R)Z with Z'D̃Z = I, and Z of all rows; `penalty` is R or None."""
    rows, M, D, L = margin.rows, margin.M, margin.D, margin.L
    shift = mean_degree(L)
    response = responses(shifted_solver(L, rows, D, shift, penalty), L.shape[0], rows)
    condensed = Condensed(response[rows], M, D, shift)
    far = condensed.far_shift()
    if far is not None:
        response = responses(shifted_solver(L, rows, D, far, penalty), L.shape[0], rows)
        condensed = condensed.with_far(Condensed(response[rows], M, D, far))
    values, inside, mixing = condensed.eigenvectors(1.0, d)
    return values, embedded(response, mixing, rows, inside)


def mean_degree(L: Any) -> float:
    """A τ of the size of the graph's weights."""
    return float(L.diagonal().mean()) or 1.0


def shifted(L: Any, rows: Array, D: Array, shift: float) -> Any:
    """L + τD̃, positive definite where every component has a label."""
    diagonal = np.zeros(L.shape[0])
    diagonal[rows] = shift * D
    return raised(L, diagonal)


def shifted_solver(L: Any, rows: Array, D: Array, shift: float, penalty: Any) -> Operator:
    """The inverse of L + τD̃ + R, R a penalty or None."""
    matrix = shifted(L, rows, D, shift)
    if penalty is None:
        return spd_solver(matrix, verbose=details())
    return PenalizedSystem(matrix, penalty, verbose=details()).solve


def regressions_on(S: Any, rows: Array, weight: float, smoothers: list[Any]) -> Iterator[tuple[Array, Array]]:
    """The rows' block of (S + R)^-1 and what the map of the regression makes of these columns, for every smoother.

    The smoothers differ in their ridges alone, and share what does not depend on these.
    """
    columns = unit(S.shape[0], rows)
    system = PenalizedSystem(S, smoothers[0].penalty(weight))
    first = system.inner(columns)
    for smoother in smoothers:
        if smoother is not smoothers[0]:
            system = system.with_ridges(smoother.penalty(weight).ridges)
        response = system.complete(first.copy(), columns)
        yield response[rows], smoother.hat(rows) @ response


def by_product(mus: list[float], gammas: list[float]) -> Iterator[tuple[float, list[tuple[float, float]]]]:
    """All pairs (μ, γ) in groups of the same μγ: the weight of a regression, whose ridge is 1/γ."""
    products: dict[float, list[tuple[float, float]]] = {}
    for mu, gamma in product(mus, gammas):
        products.setdefault(float(f"{mu * gamma:.12g}"), []).append((mu, gamma))
    yield from products.items()


def responses(solve: Operator, n: int, rows: Array) -> Array:
    """Columns of the system's inverse (n, l) that belong to some rows."""
    response = np.empty((n, len(rows)))
    for begin in range(0, len(rows), _COLUMNS):
        response[:, begin : begin + _COLUMNS] = solve(unit(n, rows[begin : begin + _COLUMNS]))
    return response


def unit(n: int, rows: Array) -> Array:
    """Columns of the identity (n, n) that belong to some rows."""
    columns = np.zeros((n, len(rows)))
    columns[rows, np.arange(len(rows))] = 1.0
    return columns


def embedded(response: Array, mixing: Array, rows: Array, inside: Array) -> Array:
    """response @ mixing, its labelled rows as they are known, with signs fixed; in place where the shapes agree."""
    d = mixing.shape[1]
    Z = response if d == response.shape[1] else np.empty((len(response), d))
    for begin in range(0, len(Z), 4096):
        Z[begin : begin + 4096] = response[begin : begin + 4096] @ mixing
    Z[rows] = inside
    for begin in range(0, d, 64):
        Z[:, begin : begin + 64] = fix_signs(Z[:, begin : begin + 64])
    return Z


