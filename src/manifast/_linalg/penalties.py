"""The penalty that a ridge regression leaves of an embedding: the identity less a low rank."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from manifast._linalg import dense as _dense
from manifast._validation import Array, is_sparse
from manifast.spectral import LowRankSum


@dataclass(frozen=True)
class RidgePenalty:
    """weight · (I - Φ (Φ'Φ + diag(ridges))^-1 Φ'), Φ (n, r): a constant column without ridge is the bias."""

    weight: float
    factor: Array
    ridges: Array

    def __rmul__(self, factor: float) -> RidgePenalty:
        return replace(self, weight=factor * self.weight)

    def added_to(self, A: Any) -> Any:
        """A + the penalty: sparse plus low rank, or dense for a dense A."""
        if isinstance(A, LinearOperator):
            A = A.toarray()  # type: ignore[attr-defined]
        if isinstance(A, LowRankSum):
            rest = self.added_to(A.sparse)
            if not isinstance(rest, LowRankSum):
                return LowRankSum(rest, A.factor, A.weights)
            return LowRankSum(rest.sparse, np.hstack([rest.factor, A.factor]), np.append(rest.weights, A.weights))
        inside = _dense.product(self.factor.T, self.factor)
        inside.flat[:: len(inside) + 1] += self.ridges
        scale = 1.0 / np.sqrt(inside.diagonal())
        triangle = inside * scale * scale[:, None]
        if not _dense.factor(triangle):
            raise la.LinAlgError("the ridge is less than the rounding of the features: use a larger gamma or alpha")
        whitened: Array = _dense.solve_triangle(triangle, (self.factor * scale).T).T
        if not is_sparse(A):
            dense: Array = A - self.weight * _dense.product(whitened, whitened.T)
            dense.flat[:: len(dense) + 1] += self.weight
            return dense
        raised = sp.csr_array(A + self.weight * sp.eye_array(A.shape[0], format="csr"))
        if not whitened.shape[1]:
            return raised
        return LowRankSum(raised, whitened, np.full(whitened.shape[1], -self.weight))
