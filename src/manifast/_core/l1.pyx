# cython: language_level=3, freethreading_compatible=True, boundscheck=False, wraparound=False
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

import numpy as np

from manifast._core.core cimport mf_run, mf_status
from manifast._core.dispatch cimport Prepared, finish, start


cdef class Dictionary(Prepared):
    """Atoms that rows are coded in; with what pays where as many `samples` are coded."""

    def __init__(self, rows, int64_t samples, int n_threads):
        cdef mf_run run = start(n_threads)
        cdef mf_status status
        self.own(rows)
        with nogil:
            if self.single:
                status = self.kernels.l1_prepare_f32(&self.rows32[0, 0], self.n, self.p, samples, &self.made, &run)
            else:
                status = self.kernels.l1_prepare_f64(&self.rows64[0, 0], self.n, self.p, samples, &self.made, &run)
        finish(status)

    def code(self, x, double lam, double tol, const int64_t[::1] exclude, errors, int n_threads):
        """Codes of rows as (indptr, indices, double values, status per row); fills `errors`, which may be None."""
        cdef mf_run run = start(n_threads)
        cdef mf_status status
        cdef const float[:, ::1] x32
        cdef const double[:, ::1] x64
        cdef float[:, ::1] errors32
        cdef double[:, ::1] errors64
        cdef float *error32 = NULL
        cdef double *error64 = NULL
        cdef Py_ssize_t n = x.shape[0], i
        if self.made == NULL or x.shape[1] != self.p or (errors is not None and errors.shape != x.shape):
            raise ValueError("x, errors and the dictionary must match in shape")
        if exclude is not None and exclude.shape[0] != n:
            raise ValueError("exclude must have one entry per row")
        indptr = np.zeros(n + 1, dtype=np.int64)
        verdict = np.zeros(n, dtype=np.int8)
        if n == 0:
            return indptr, np.empty(0, dtype=np.int64), np.empty(0), verdict
        cdef int64_t[::1] counts = indptr
        cdef signed char[::1] verdicts = verdict
        cdef const int64_t *skip = &exclude[0] if exclude is not None else NULL
        cdef int64_t[::1] index
        cdef double[::1] value
        cdef int64_t nowhere_index
        cdef double nowhere_value
        if self.single:
            x32 = x
            if errors is not None:
                errors32 = errors
                error32 = &errors32[0, 0]
        else:
            x64 = x
            if errors is not None:
                errors64 = errors
                error64 = &errors64[0, 0]
        cdef void **blocks = <void **>malloc(n * sizeof(void *))
        if blocks == NULL:
            raise MemoryError("manifast could not allocate its workspace")
        try:
            with nogil:
                if self.single:
                    status = self.kernels.l1_code_f32(self.made, &x32[0, 0], n, lam, tol, skip, &counts[1], blocks,
                                                      error32, &verdicts[0], &run)
                else:
                    status = self.kernels.l1_code_f64(self.made, &x64[0, 0], n, lam, tol, skip, &counts[1], blocks,
                                                      error64, &verdicts[0], &run)
            finish(status)
            total = int(indptr.sum())
            try:
                indices, values = np.empty(total, dtype=np.int64), np.empty(total)
            except MemoryError:
                for i in range(n):
                    counts[1 + i] = 0
                self.kernels.l1_collect(blocks, &counts[1], n, &nowhere_index, &nowhere_value)
                raise
            index, value = indices, values
            self.kernels.l1_collect(blocks, &counts[1], n, &index[0] if total else &nowhere_index,
                                    &value[0] if total else &nowhere_value)
        finally:
            free(blocks)
        np.cumsum(indptr, out=indptr)
        return indptr, indices, values, verdict
