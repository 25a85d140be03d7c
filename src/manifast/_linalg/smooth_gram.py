"""Inner products of rows in the metric that a graph and a ridge give their features, for all weights at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg as la

from manifast._linalg import dense
from manifast._linalg.pencils import in_span
from manifast._validation import Array

_RANK = 1e-13  # eigenvalues below this, relative to the largest, are rounding


class SmoothGram:
    """G = F_l (a F'LF + b I)^-1 F_l' of some rows of the features F (n, q), for any a and b.

    One eigendecomposition of F'LF serves all of them. A linear function f = Fw of the rows that minimises something
    of these rows alone plus a f'Lf + b |w|² has w = (a F'LF + b I)^-1 F_l'u: all of it is a problem in u, by G.
    """

    def __init__(self, F: Array, L: Any, rows: Array) -> None:
        F, _ = in_span(F)
        smooth = dense.product(F.T, np.asarray(L @ F))
        values, axes = la.eigh(0.5 * (smooth + smooth.T), check_finite=False)
        self._values = np.maximum(values, 0.0)
        self._places = F[rows] @ axes

    def __call__(self, graph: float, ridge: float) -> Array:
        """G of the weights a and b."""
        return np.asarray((self._places / (graph * self._values + ridge)) @ self._places.T)


def root_of(G: Array) -> tuple[Array, Array]:
    """R with RR' = G and the pseudo-inverse of R', of the rank that stands out from rounding."""
    values, vectors = la.eigh(G, check_finite=False)
    kept = values > _RANK * max(float(values[-1]), np.finfo(float).tiny)
    lengths = np.sqrt(values[kept])
    return vectors[:, kept] * lengths, vectors[:, kept] / lengths
