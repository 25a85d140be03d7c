# cython: language_level=3, freethreading_compatible=True, boundscheck=False, wraparound=False
from libc.stdint cimport int32_t, int64_t

import numpy as np

from manifast._core.core cimport mf_cholesky, mf_run, mf_status, mf_table
from manifast._core.dispatch cimport finish, start, table


cdef class Cholesky:
    """One sparse factorisation; it stays with the instruction set it was made for."""

    cdef mf_cholesky *_made
    cdef const mf_table *_kernels
    cdef int64_t _stored
    cdef readonly int64_t n, entries
    cdef readonly double flops
    cdef readonly bint feasible, symmetric, factored

    def __cinit__(self, const int64_t[::1] indptr, const int32_t[::1] columns, double max_flops, int n_threads):
        cdef mf_run run = start(n_threads)
        cdef mf_status status
        cdef int feasible = 0, flaws = 0
        cdef const int32_t *first = &columns[0] if columns.shape[0] else NULL
        if indptr.shape[0] < 1 or indptr.shape[0] > 2**30:
            raise ValueError(f"indptr must have from 1 to 2^30 entries. Got {indptr.shape[0]} instead.")
        self._kernels = table()
        self.n, self._stored = indptr.shape[0] - 1, columns.shape[0]
        with nogil:
            status = self._kernels.cholesky_analyse(self.n, columns.shape[0], &indptr[0], first, max_flops,
                                                    &self._made, &self.entries, &self.flops, &feasible, &flaws, &run)
        finish(status)
        self.feasible, self.symmetric = feasible, not flaws

    def __dealloc__(self):
        if self._made != NULL:
            self._kernels.cholesky_free(self._made)

    def factor(self, const double[::1] values, double shift, const double[::1] shifts, int n_threads):
        """Factors; the row whose pivot is not positive, or -1. `values` has the entries of the pattern."""
        cdef mf_run run = start(n_threads)
        cdef mf_status status
        cdef int64_t bad = -1
        cdef const double *first = &values[0] if values.shape[0] else NULL
        cdef const double *diagonal = &shifts[0] if shifts is not None and self.n else NULL
        if not self.feasible:
            raise ValueError("factor needs a feasible analysis of a symmetric pattern. Got one that is not.")
        if values.shape[0] != self._stored or (shifts is not None and shifts.shape[0] != self.n):
            raise ValueError(f"values must be {self._stored} numbers. Got {values.shape[0]} instead.")
        self.factored = False
        with nogil:
            status = self._kernels.cholesky_factor(self._made, first, shift, diagonal, &bad, &run)
        finish(status)
        self.factored = bad < 0
        return bad

    def solve(self, const double[:, ::1] rhs, int n_threads):
        """The solution for each column of rhs, (n, m)."""
        cdef mf_run run = start(n_threads)
        cdef mf_status status
        cdef int64_t m = rhs.shape[1]
        if not self.factored or rhs.shape[0] != self.n:
            raise ValueError(f"solve needs a factor and {self.n} rows. Got {rhs.shape[0]} rows.")
        out = np.empty((self.n, m))
        cdef double[:, ::1] to = out
        if self.n == 0 or m == 0:
            return out
        with nogil:
            status = self._kernels.cholesky_solve(self._made, &rhs[0, 0], m, &to[0, 0], &run)
        finish(status)
        return out
