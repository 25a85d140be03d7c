# cython: language_level=3, freethreading_compatible=True, boundscheck=False, wraparound=False
from libc.stdint cimport int64_t

import numpy as np

from manifast._core.core cimport MF_OK, mf_graph, mf_normalization, mf_run, mf_status, mf_table, mf_weights
from manifast._core.dispatch cimport finish, start, table

ctypedef fused real:
    float
    double


cdef void *_address(array) except? NULL:
    """The first byte of a contiguous array, whatever its dtype; read-only ones are read only."""
    return <void *><size_t>array.ctypes.data


def neighbor_graph(const real[:, ::1] distances, const int64_t[:, ::1] neighbors, bint mutual, int weights, double beta,
                   bint wide, int n_threads):
    """A symmetric CSR graph as (indptr, columns, values), or the first row with a neighbour or distance out of range."""
    cdef mf_run run = start(n_threads)
    cdef mf_status status
    cdef const mf_table *kernels = table()
    cdef mf_graph *graph = NULL
    cdef int64_t n = distances.shape[0], k = distances.shape[1], entries = 0, bad = -1
    cdef void *to_indptr
    cdef void *to_columns
    cdef real *to_values
    index = np.int64 if wide else np.int32
    dtype = np.float32 if real is float else np.float64
    if n == 0 or k == 0:
        return np.zeros(n + 1, index), np.empty(0, index), np.empty(0, dtype)
    try:
        with nogil:
            if real is float:
                status = kernels.graph_begin_f32(&distances[0, 0], &neighbors[0, 0], n, k, mutual, wide, &graph,
                                                 &entries, &bad, &run)
            else:
                status = kernels.graph_begin_f64(&distances[0, 0], &neighbors[0, 0], n, k, mutual, wide, &graph,
                                                 &entries, &bad, &run)
        finish(status)
        if bad >= 0:
            return bad
        indptr, columns, values = np.empty(n + 1, index), np.empty(entries, index), np.empty(entries, dtype)
        to_indptr, to_columns, to_values = _address(indptr), _address(columns), <real *>_address(values)
        with nogil:
            if real is float:
                status = kernels.graph_fill_f32(graph, <mf_weights>weights, <float>beta, to_indptr, to_columns,
                                                to_values, &run)
            else:
                status = kernels.graph_fill_f64(graph, <mf_weights>weights, beta, to_indptr, to_columns,
                                                to_values, &run)
        finish(status)
    finally:
        kernels.graph_free(graph)
    return indptr, columns, values


def laplacian(indptr, columns, const real[::1] weights, int normalization, ignore, int n_threads):
    """The Laplacian as (indptr, columns, values, degrees in float64), or a sum of flaws beyond those in `ignore`.

    Both index arrays have one dtype, int32 or int64, that holds the number of entries with a full diagonal."""
    cdef mf_run run = start(n_threads)
    cdef mf_status status
    cdef const mf_table *kernels = table()
    cdef bint wide = indptr.dtype == np.int64
    cdef int64_t n = indptr.shape[0] - 1, entries = weights.shape[0]
    cdef int flaws = 0
    out_indptr, degrees = np.empty_like(indptr), np.empty(n)
    cdef void *from_indptr = _address(indptr)
    cdef void *from_columns = _address(columns)
    cdef void *to_indptr = _address(out_indptr)
    cdef double *to_degrees = <double *>_address(degrees)
    cdef const real *from_weights = &weights[0]
    cdef void *to_columns
    cdef real *to_values
    with nogil:
        if real is float:
            status = kernels.laplacian_begin_f32(wide, n, entries, from_indptr, from_columns, from_weights, to_degrees,
                                                 to_indptr, &flaws, &run)
        else:
            status = kernels.laplacian_begin_f64(wide, n, entries, from_indptr, from_columns, from_weights, to_degrees,
                                                 to_indptr, &flaws, &run)
    finish(status)
    if flaws & ~<int>ignore:
        return flaws
    size = int(out_indptr[n])
    out_columns, values = np.empty(size, indptr.dtype), np.empty(size, np.float32 if real is float else np.float64)
    to_columns, to_values = _address(out_columns), <real *>_address(values)
    with nogil:
        if real is float:
            status = kernels.laplacian_fill_f32(wide, n, from_indptr, from_columns, from_weights, to_degrees, to_indptr,
                                                <mf_normalization>normalization, to_columns, to_values, &run)
        else:
            status = kernels.laplacian_fill_f64(wide, n, from_indptr, from_columns, from_weights, to_degrees, to_indptr,
                                                <mf_normalization>normalization, to_columns, to_values, &run)
    finish(status)
    return out_indptr, out_columns, values, degrees
