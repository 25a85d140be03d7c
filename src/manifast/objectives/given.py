"""An objective of the user's own: matrices, or a function that makes them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator

from manifast._labels import Labels
from manifast._rows import Rows
from manifast._sparse import checked_sparse
from manifast._validation import is_sparse
from manifast.objectives.base import Objective, ObjectiveBuilder
from manifast.spectral import LowRankSum


class Given(ObjectiveBuilder):
    """(A, B) of the user's own.

    Parameters
    ----------
    objective : Objective, matrix of shape (n, n), or function (X, y) -> Objective or matrix
        A matrix is A of a Laplacian, symmetric with rows that sum to zero, with Y'Y = I; y is None, or the number of
        every row's class with -1 for rows without a label.
    name : str, default "objective"
        What error messages call it.
    """

    unlabelled = True

    def __init__(self, objective: Any, *, name: str = "objective") -> None:
        self.objective = objective
        self.name = name

    def build(self, rows: Rows, labels: Labels | None, d: int) -> Objective:
        made = self.objective
        if callable(made) and not isinstance(made, Objective) and not hasattr(made, "shape"):
            made = made(rows.X, None if labels is None else labels.codes)
        if not isinstance(made, Objective):
            return given_laplacian(made, rows.n, self.name)
        B = made.B
        if B is not None and np.ndim(B) == 1:
            B = np.asarray(B, dtype=np.float64)
            if B.shape != (rows.n,) or not (np.isfinite(B).all() and B.min() >= 0):
                raise ValueError(f"B of the objective must hold {rows.n} numbers that are finite and not negative.")
        elif B is not None:
            B = checked_symmetric(B, rows.n, "B of the objective")
        return made.replace(_A=checked_symmetric(made.A, rows.n, "A of the objective"), B=B)


def checked_symmetric(A: Any, n: int, name: str) -> Any:
    """A matrix of the user's own that is symmetric, finite and of the size of the rows."""
    if isinstance(A, LowRankSum):
        return LowRankSum(checked_symmetric(A.sparse, n, name), A.factor, A.weights)
    if isinstance(A, LinearOperator):
        shape: Any = A.shape
    else:
        A = checked_sparse(A, name, dtype=np.float64) if is_sparse(A) else np.asarray(A, dtype=np.float64)
        shape = A.shape
    if shape != (n, n):
        raise ValueError(f"{name} must be a matrix of shape ({n}, {n}) for {n} rows of X. Got shape {shape} instead.")
    if isinstance(A, LinearOperator):
        return A
    largest = abs(A).max()
    if not np.isfinite(largest) or abs(A - A.T).max() > 1e-8 * largest:
        raise ValueError(f"{name} must be a symmetric matrix of finite numbers. Got one that is not.")
    return A


def given_laplacian(A: Any, n: int, name: str) -> Objective:
    """A local Laplacian of the user's own: symmetric, with rows that sum to zero."""
    A = checked_symmetric(A, n, name)
    if abs(A.sum(axis=1)).max() > 1e-6 * abs(A).max():
        raise ValueError(f"{name} must be a Laplacian, whose rows sum to zero. Got rows that do not.")
    return Objective(A)
