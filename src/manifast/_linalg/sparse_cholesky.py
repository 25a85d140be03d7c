"""Sparse Cholesky factorisation for the solvers: analysis first, which tells what it costs, then factors and solves."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import scipy.sparse as sp

from manifast._core.cholesky import Cholesky
from manifast._sparse import checked_sparse
from manifast._threads import kernel_threads
from manifast._validation import Array, as_matrix, contiguous, is_sparse

__all__ = ["SparseCholesky"]

_LARGEST = 2**30  # rows: indices are int32 inside


_ONE_THREAD_FLOPS = 1e7


class SparseCholesky:
    """L L' of a sparse symmetric positive definite matrix, its columns in an order that keeps L sparse.

    Making one orders the columns and counts what a factorisation takes; `factor` does it, and `solve` uses it. Results
    are bit-identical for any number of threads, and a column of a solve does not depend on the other columns.

    Parameters
    ----------
    A : scipy.sparse CSR matrix of shape (n, n)
        float64, symmetric, with both triangles stored. Only one of each pair of entries is read; the pattern is checked
        for symmetry, the values are not. Entries of the diagonal that are not stored are 0.
    max_flops : float, optional
        Give up on the analysis once the factorisation is known to take more: then `feasible` is False, and `entries`
        and `flops` say nothing but that `flops` is above `max_flops`.
    n_threads : int, optional
        For factors and solves.

    Attributes
    ----------
    n : int
    entries : int
        Entries of L, with the zeros stored for the sake of speed.
    flops : float
        Multiplications and additions of one factorisation.
    feasible : bool

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from manifast._linalg.sparse_cholesky import SparseCholesky
    >>> A = sp.csr_array(np.array([[4.0, 2.0, 0.0], [2.0, 5.0, 0.0], [0.0, 0.0, 1.0]]))
    >>> SparseCholesky(A).factor().solve(np.array([[6.0], [7.0], [3.0]]))
    array([[1.],
           [1.],
           [3.]])
    """

    def __init__(self, A: Any, *, max_flops: float | None = None, n_threads: int | None = None) -> None:
        matrix = _as_symmetric(A)
        limit = np.inf if max_flops is None else float(max_flops)
        if not limit >= 0:
            raise ValueError(f"max_flops must be None or a number of at least 0. Got {max_flops!r} instead.")
        with kernel_threads(n_threads) as threads:
            core = _analyse(matrix, limit, threads)
        if not core.symmetric:
            raise ValueError("A must have a symmetric pattern, both triangles stored. Got one that is not symmetric.")
        self._core = core
        self._matrix = matrix
        self._n_threads = n_threads
        self._lock = threading.Lock()  # a factor is written in place
        self.n: int = self._core.n
        self.entries: int = self._core.entries
        self.flops: float = self._core.flops
        self.feasible: bool = self._core.feasible
        # Below this, waking threads costs more than they bring.
        if n_threads is None and self.feasible and self.flops < _ONE_THREAD_FLOPS:
            self._n_threads = 1

    def factor(self, A: Any = None, shift: float = 0.0, *, B: Any = None) -> SparseCholesky:
        """Factor A + shift * I, or A + shift * diag(B); any earlier factor is gone.

        Parameters
        ----------
        A : scipy.sparse CSR matrix of shape (n, n), optional
            Other values on the pattern that was analysed; the matrix of the analysis where omitted.
        shift : float
        B : array of shape (n,), optional

        Returns
        -------
        self

        Raises
        ------
        numpy.linalg.LinAlgError
            Where the matrix is not positive definite, as far as rounding can tell.
        """
        if not self.feasible:
            raise ValueError("factor must take at most max_flops operations. Got more: raise max_flops.")
        matrix = self._matrix
        if A is not None and A is not matrix:
            given = _as_symmetric(A)
            if not _same_pattern(given, matrix):
                raise ValueError("A must have the pattern of the matrix that was analysed. Got another pattern.")
            matrix = given
        if not np.isfinite(shift):
            raise ValueError(f"shift must be a finite number. Got {shift!r} instead.")
        diagonal = None
        if B is not None:
            diagonal = np.ascontiguousarray(B, dtype=np.float64)
            if diagonal.shape != (self.n,) or not np.isfinite(diagonal).all():
                raise ValueError(f"B must be {self.n} finite numbers. Got an array of shape {diagonal.shape} instead.")
        with self._lock, kernel_threads(self._n_threads) as threads:
            bad = self._core.factor(contiguous(matrix.data[: matrix.nnz]), float(shift), diagonal, threads)
        if bad >= 0:
            raise np.linalg.LinAlgError(
                f"A + shift * B is not positive definite: the pivot of row {bad} is not positive."
            )
        return self

    def solve(self, rhs: Any) -> Array:
        """The solution X of (A + shift * B) X = rhs, for rhs of shape (n, m) or (n,)."""
        if not self._core.factored:
            raise ValueError("solve needs a factor. Got no successful call of factor before it.")
        vector = np.ndim(rhs) == 1
        right = as_matrix(np.asarray(rhs)[:, None] if vector else rhs, "rhs", dtype=np.float64)
        if right.shape[0] != self.n:
            raise ValueError(f"rhs must have {self.n} rows. Got shape {np.shape(rhs)} instead.")
        with self._lock, kernel_threads(self._n_threads) as threads:
            solution = self._core.solve(right, threads)
        return solution[:, 0] if vector else solution


def _analyse(matrix: sp.csr_array, limit: float, threads: int) -> Cholesky:
    indptr = np.ascontiguousarray(matrix.indptr, dtype=np.int64)
    columns = np.ascontiguousarray(matrix.indices[: matrix.nnz], dtype=np.int32)
    return Cholesky(indptr, columns, limit, threads)


def _same_pattern(one: sp.csr_array, other: sp.csr_array) -> bool:
    if one.indices is other.indices and one.indptr is other.indptr:
        return True
    return np.array_equal(one.indptr, other.indptr) and np.array_equal(one.indices, other.indices)


def _as_symmetric(value: Any) -> sp.csr_array:
    """A square float64 CSR matrix in canonical form; a copy only where the input is not one already."""
    if not is_sparse(value):
        raise ValueError(f"A must be a square sparse matrix. Got {type(value).__name__} instead.")
    if len(value.shape) != 2 or value.shape[0] != value.shape[1]:
        raise ValueError(f"A must be a square sparse matrix. Got shape {value.shape} instead.")
    if value.shape[0] >= _LARGEST:
        raise ValueError(f"A must have fewer than 2^30 rows. Got {value.shape[0]} instead.")
    return checked_sparse(value, "A", dtype=np.float64)
