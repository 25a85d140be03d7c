"""Convex hulls of two sets of rows: how far they are apart, and the slab between them."""

from __future__ import annotations

import numpy as np

from manifast._validation import Array

_ROUNDING = 1e-12  # of rows whose extent is about 1: what is smaller is taken for zero


def widest_slab(A: Array, B: Array, enough: float = np.inf) -> tuple[float, Array | None]:
    """Width and unit normal (from B to A) of the widest empty slab between two sets of rows; 0 and None without one.

    Wolfe's algorithm (1976) for the point of smallest norm in the hull of all differences a - b. Any normal ω gives the
    slab min ω·a - max ω·b, any point of the hull an upper bound: the gap between them certifies the result. It ends
    early with a slab that is `enough`.
    """
    point = A.mean(axis=0) - B.mean(axis=0)
    corral, weights = np.empty((0, A.shape[1])), np.empty(0)
    best: tuple[float, Array | None] = (0.0, None)
    shortest = np.inf
    while True:
        norm = float(np.linalg.norm(point))
        if norm <= _ROUNDING:
            return 0.0, None
        normal = point / norm
        left, right = A @ normal, B @ normal
        i, j = int(left.argmin()), int(right.argmax())
        width = float(left[i] - right[j])
        if width > best[0]:
            best = width, normal
        # Rounding ends it, too, where the norm no longer falls.
        if norm - best[0] <= 1e-3 * _ROUNDING or best[0] >= enough or (len(corral) and norm >= shortest):
            return best if best[0] > _ROUNDING else (0.0, None)
        shortest = norm if len(corral) else np.inf
        corral, weights = np.vstack([corral, A[i] - B[j]]), np.append(weights, 0.0 if len(corral) else 1.0)
        while True:
            # The point of smallest norm in the affine hull of the corral.
            rest = np.linalg.lstsq((corral[1:] - corral[0]).T, -corral[0], rcond=None)[0]
            wanted = np.append(1.0 - rest.sum(), rest)
            outside = wanted < 0
            if not outside.any():
                weights = wanted
                break
            step = float((weights[outside] / (weights[outside] - wanted[outside])).min())
            weights = weights + step * (wanted - weights)
            weights[np.flatnonzero(outside)[weights[outside].argmin()]] = 0.0
            kept = weights > 0
            corral, weights = corral[kept], weights[kept]
        point = weights @ corral
