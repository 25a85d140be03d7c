# cython: language_level=3, freethreading_compatible=True, boundscheck=False, wraparound=False
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

import numpy as np

from manifast._core.core cimport mf_run, mf_status
from manifast._core.dispatch cimport finish, start, table

ctypedef fused real:
    float
    double


def l1_code(const real[:, ::1] x, const real[:, ::1] dictionary, double lam, double tol, const int64_t[::1] exclude,
            real[:, ::1] errors, int n_threads):
    """Codes of the rows of x as (indptr, indices, double values, status per row); fills `errors`, which may be None."""
    cdef mf_run run = start(n_threads)
    cdef mf_status status
    cdef Py_ssize_t n = x.shape[0], i
    indptr = np.zeros(n + 1, dtype=np.int64)
    verdict = np.zeros(n, dtype=np.int8)
    if n == 0:
        return indptr, np.empty(0, dtype=np.int64), np.empty(0), verdict
    cdef int64_t[::1] counts = indptr
    cdef signed char[::1] verdicts = verdict
    cdef const int64_t *skip = &exclude[0] if exclude is not None else NULL
    cdef real *error = &errors[0, 0] if errors is not None else NULL
    cdef int64_t[::1] index
    cdef double[::1] value
    cdef int64_t nowhere_index
    cdef double nowhere_value
    cdef void **blocks = <void **>malloc(n * sizeof(void *))
    if blocks == NULL:
        raise MemoryError("manifast could not allocate its workspace")
    try:
        with nogil:
            if real is float:
                status = table().l1_code_f32(&x[0, 0], n, &dictionary[0, 0], dictionary.shape[0], x.shape[1], lam, tol,
                                             skip, &counts[1], blocks, error, &verdicts[0], &run)
            else:
                status = table().l1_code_f64(&x[0, 0], n, &dictionary[0, 0], dictionary.shape[0], x.shape[1], lam, tol,
                                             skip, &counts[1], blocks, error, &verdicts[0], &run)
        finish(status)
        total = int(indptr.sum())
        try:
            indices, values = np.empty(total, dtype=np.int64), np.empty(total)
        except MemoryError:
            for i in range(n):
                counts[1 + i] = 0
            table().l1_collect(blocks, &counts[1], n, &nowhere_index, &nowhere_value)
            raise
        index, value = indices, values
        table().l1_collect(blocks, &counts[1], n, &index[0] if total else &nowhere_index,
                           &value[0] if total else &nowhere_value)
    finally:
        free(blocks)
    np.cumsum(indptr, out=indptr)
    return indptr, indices, values, verdict
