"""Smallest eigenvalues of a sparse matrix from products alone, for matrices whose factor would be too large.

Subspace iteration with Chebyshev polynomials (Zhou, Saad, Tiago and Chelikowsky 2006): a block of vectors is multiplied
by a polynomial of the matrix that is small between `cut` and the largest eigenvalue and grows fast below `cut`, then
turned into Ritz vectors. The largest Ritz value of the block is the next cut.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from manifast._linalg.block_lanczos import largest_pairs
from manifast._linalg.dense import side_by_side
from manifast._progress import log
from manifast._threads import available_threads
from manifast._validation import Array

_ROUGH = 1e-2  # relative accuracy of the largest eigenvalue, which is rounded up by more
_GUARD = 6  # vectors beyond the wanted ones
_GAIN = 100.0  # by which the last wanted vector grows in a round, against those above the cut
_SPREAD = 1e10  # by which one of eigenvalue 0 would grow: beyond, rounding of the first vector hides the others
_LOWEST, _HIGHEST = 10, 1500  # degrees; where more would be needed a factor is the lesser evil
_TRIALS = 5  # rounds before the eigenvalues are known well enough to tell
_ROUNDS = 60

Product = Callable[[Array], Array]


def smallest_filtered(
    A: sp.csr_array, k: int, null: Array, bound: float, tol: float, *, verbose: bool = False
) -> tuple[Array, Array] | None:
    """The k smallest eigenvalues of a symmetric matrix and their vectors, orthogonal to `null`.

    `bound` is at least the largest eigenvalue, `tol` the residual that counts as none, relative to that eigenvalue.
    None where polynomials of too high a degree would be needed.
    """
    n, product = A.shape[0], RowBlocks(A)
    width = min(k + max(_GUARD, k // 2), n - null.shape[1])
    largest = float(largest_pairs(product, n, 1, None, null, _ROUGH, 30)[0][0])
    top = min(bound, (1 + 5 * _ROUGH) * largest) if largest > 0 else bound
    values, vectors, residuals = _ritz(product, np.random.default_rng(0).standard_normal((n, width)), null)
    for step in range(_ROUNDS):
        worst = float(residuals[:k].max()) / top
        if worst <= tol:
            return values[:k], vectors[:, :k]
        cut, low = min(float(values[-1]), top / 2), min(float(values[0]), 0.0)
        degree = int(np.ceil(_growth(_GAIN) / max(_growth(_place(float(values[k - 1]), cut, top)), 1e-12)))
        most = int(_growth(_SPREAD) / max(_growth(_place(low, cut, top)), 1e-12))
        if step >= _TRIALS and min(degree, most) > _HIGHEST:
            return None
        degree = max(min(degree, most, _HIGHEST), _LOWEST)
        values, vectors, residuals = _ritz(product, _filtered(product, vectors, low, cut, top, degree), null)
        if verbose:
            worst = float(residuals[:k].max()) / top
            log(f"smallest_eigenvectors: round {step + 1}, polynomial of degree {degree}, residual {worst:.1e}")
    return None


def _place(value: float, cut: float, top: float) -> float:
    """Where the map that takes `cut` to 1 and `top` to -1 takes a value below the cut: to 1 or more."""
    return 1.0 + 2.0 * max(cut - value, 0.0) / (top - cut)


def _growth(value: float) -> float:
    """T_m(value) = cosh(m * growth) for value >= 1."""
    return float(np.arccosh(value))


def _filtered(product: Product, block: Array, low: float, cut: float, top: float, degree: int) -> Array:
    """A Chebyshev polynomial of the matrix times a block, scaled so that it is 1 at `low`: nothing overflows."""
    center, half = (cut + top) / 2, (top - cut) / 2
    sigma = first = half / (low - center)
    before, now = block, product(block)
    now -= center * block
    now *= sigma / half
    for _ in range(degree - 1):
        following = 1.0 / (2.0 / first - sigma)
        after = product(now)
        after -= center * now
        after *= 2.0 * following / half
        before = before * (sigma * following)
        after -= before
        before, now, sigma = now, after, following
    return now


def _ritz(product: Product, block: Array, null: Array) -> tuple[Array, Array, Array]:
    """Ritz values in the space of a block, orthogonal to `null`, with their vectors and residuals."""
    for _ in range(2):  # once more: what is left of `null` may have grown when the block was made orthonormal
        block = np.linalg.qr(block - null @ (null.T @ block))[0]
    image = product(block)
    values, turn = np.linalg.eigh(block.T @ image)
    vectors = block @ turn
    return values, vectors, np.linalg.norm(image @ turn - vectors * values, axis=0)


class RowBlocks:
    """Products with a sparse matrix, in as many parts as there are threads; no row depends on how many."""

    def __init__(self, A: sp.csr_array) -> None:
        inner = np.searchsorted(A.indptr, np.linspace(0, A.nnz, available_threads() + 1)[1:-1])
        cuts = np.unique([0, *inner.tolist(), A.shape[0]])
        self._parts = [(begin, end, A[begin:end]) for begin, end in pairwise(cuts.tolist())]
        self._flops = 2.0 * A.nnz / len(self._parts)

    def __call__(self, block: Array) -> Array:
        out, right = np.empty(block.shape), np.ascontiguousarray(block)

        def one(part: tuple[int, int, sp.csr_array]) -> None:
            out[part[0] : part[1]] = part[2] @ right

        side_by_side(one, self._parts, self._flops * block.shape[1])
        return out
