# cython: language_level=3, freethreading_compatible=True, boundscheck=False, wraparound=False
from libc.stdint cimport int64_t

import numpy as np

from manifast._core.core cimport mf_blocks, mf_run, mf_status, mf_table
from manifast._core.dispatch cimport check_members, finish, start, table

ctypedef fused real:
    float
    double


cdef void *_address(array) except? NULL:
    """The first byte of a contiguous array, whatever its dtype."""
    return <void *><size_t>array.ctypes.data


def barycenter_weights(const real[:, ::1] x, const real[:, ::1] queries, const int64_t[:, ::1] neighbors, double reg,
                       real[:, ::1] out, int n_threads):
    """Fill `out` with the weights of each row's neighbours; queries may be None."""
    cdef mf_run run = start(n_threads)
    cdef mf_status status
    cdef int64_t m = neighbors.shape[0], k = neighbors.shape[1]
    cdef const real *query = NULL
    if out.shape[0] != m or out.shape[1] != k or (x.shape[0] if queries is None else queries.shape[0]) != m:
        raise ValueError("queries, neighbors and out must match in shape")
    if queries is not None and queries.shape[1] != x.shape[1]:
        raise ValueError("x and queries must match in shape")
    if m == 0 or k == 0:
        return
    check_members(&neighbors[0, 0], m * k, x.shape[0])
    if queries is not None:
        query = &queries[0, 0]
    with nogil:
        if real is float:
            status = table().barycenter_weights_f32(&x[0, 0], query, m, x.shape[1], &neighbors[0, 0], k, reg,
                                                    &out[0, 0], &run)
        else:
            status = table().barycenter_weights_f64(&x[0, 0], query, m, x.shape[1], &neighbors[0, 0], k, reg,
                                                    &out[0, 0], &run)
    finish(status)


def reconstruct(const real[:, ::1] x, const real[:, ::1] y, const real[:, ::1] queries,
                const int64_t[:, ::1] neighbors, double reg, real[:, ::1] out, int n_threads):
    """Fill `out` with the rows of y that belong to the queries."""
    cdef mf_run run = start(n_threads)
    cdef mf_status status
    cdef int64_t m = neighbors.shape[0], k = neighbors.shape[1], d = y.shape[1]
    if out.shape[0] != m or out.shape[1] != d or queries.shape[0] != m or y.shape[0] != x.shape[0]:
        raise ValueError("x, y, queries, neighbors and out must match in shape")
    if queries.shape[1] != x.shape[1]:
        raise ValueError("x and queries must match in shape")
    if m == 0 or k == 0:
        return
    check_members(&neighbors[0, 0], m * k, x.shape[0])
    with nogil:
        if real is float:
            status = table().reconstruct_f32(&x[0, 0], &queries[0, 0], m, x.shape[1], &neighbors[0, 0], k, reg,
                                             &y[0, 0], d, &out[0, 0], &run)
        else:
            status = table().reconstruct_f64(&x[0, 0], &queries[0, 0], m, x.shape[1], &neighbors[0, 0], k, reg,
                                             &y[0, 0], d, &out[0, 0], &run)
    finish(status)


cdef _fill(const mf_table *kernels, const mf_blocks *blocks, int64_t n, int64_t entries, mf_run *run):
    cdef mf_status status
    cdef bint wide = n >= kernels.int32_max or entries >= kernels.int32_max
    index = np.int64 if wide else np.int32
    indptr, columns, values = np.empty(n + 1, index), np.empty(entries, index), np.empty(entries)
    cdef void *to_indptr = _address(indptr)
    cdef void *to_columns = _address(columns)
    cdef double *to_values = <double *>_address(values)
    with nogil:
        status = kernels.blocks_fill(blocks, wide, to_indptr, to_columns, to_values, run)
    finish(status)
    return indptr, columns, values


def lle_matrix(const real[:, ::1] x, const int64_t[:, ::1] neighbors, double reg, int n_threads):
    """(I - W)'(I - W) as (indptr, columns, values), or the first row that names itself or a point twice."""
    cdef mf_run run = start(n_threads)
    cdef mf_status status
    cdef const mf_table *kernels = table()
    cdef mf_blocks *blocks = NULL
    cdef int64_t n = x.shape[0], k = neighbors.shape[1], entries = 0, bad = -1
    if neighbors.shape[0] != n or n == 0 or k == 0:
        raise ValueError("x and neighbors must match in shape")
    check_members(&neighbors[0, 0], n * k, n)
    try:
        with nogil:
            if real is float:
                status = kernels.lle_begin_f32(&x[0, 0], n, x.shape[1], &neighbors[0, 0], k, reg, &blocks, &entries,
                                               &bad, &run)
            else:
                status = kernels.lle_begin_f64(&x[0, 0], n, x.shape[1], &neighbors[0, 0], k, reg, &blocks, &entries,
                                               &bad, &run)
        finish(status)
        return bad if bad >= 0 else _fill(kernels, blocks, n, entries, &run)
    finally:
        kernels.blocks_free(blocks)


def alignment_matrix(const real[:, ::1] x, const int64_t[:, ::1] cliques, int64_t dim, double gamma, int n_threads):
    """The alignment matrix as (indptr, columns, values), or the first clique that names a point twice."""
    cdef mf_run run = start(n_threads)
    cdef mf_status status
    cdef const mf_table *kernels = table()
    cdef mf_blocks *blocks = NULL
    cdef int64_t n = x.shape[0], count = cliques.shape[0], k = cliques.shape[1], entries = 0, bad = -1
    if n == 0 or count == 0 or not 1 <= dim <= min(k - 1, x.shape[1]):
        raise ValueError("x, cliques and dim must match")
    check_members(&cliques[0, 0], count * k, n)
    try:
        with nogil:
            if real is float:
                status = kernels.alignment_begin_f32(&x[0, 0], n, x.shape[1], &cliques[0, 0], count, k, dim, gamma,
                                                     &blocks, &entries, &bad, &run)
            else:
                status = kernels.alignment_begin_f64(&x[0, 0], n, x.shape[1], &cliques[0, 0], count, k, dim, gamma,
                                                     &blocks, &entries, &bad, &run)
        finish(status)
        return bad if bad >= 0 else _fill(kernels, blocks, n, entries, &run)
    finally:
        kernels.blocks_free(blocks)


def hessian_matrix(const real[:, ::1] x, const int64_t[:, ::1] cliques, int64_t dim, int n_threads):
    """The matrix of Hessian eigenmaps as (indptr, columns, values), or the first clique that names a point twice."""
    cdef mf_run run = start(n_threads)
    cdef mf_status status
    cdef const mf_table *kernels = table()
    cdef mf_blocks *blocks = NULL
    cdef int64_t n = x.shape[0], count = cliques.shape[0], k = cliques.shape[1], entries = 0, bad = -1
    if n == 0 or count == 0 or not 1 <= dim <= min(k - 1, x.shape[1]) or k <= dim + dim * (dim + 1) // 2:
        raise ValueError("x, cliques and dim must match")
    check_members(&cliques[0, 0], count * k, n)
    try:
        with nogil:
            if real is float:
                status = kernels.hessian_begin_f32(&x[0, 0], n, x.shape[1], &cliques[0, 0], count, k, dim, &blocks,
                                                   &entries, &bad, &run)
            else:
                status = kernels.hessian_begin_f64(&x[0, 0], n, x.shape[1], &cliques[0, 0], count, k, dim, &blocks,
                                                   &entries, &bad, &run)
        finish(status)
        return bad if bad >= 0 else _fill(kernels, blocks, n, entries, &run)
    finally:
        kernels.blocks_free(blocks)


def modified_lle_matrix(const real[:, ::1] x, const int64_t[:, ::1] neighbors, const int64_t[::1] centers, int64_t dim,
                        double reg, double tol, int n_threads):
    """The matrix of modified LLE as (indptr, columns, values), or the first list that names its center or a point
    twice."""
    cdef mf_run run = start(n_threads)
    cdef mf_status status
    cdef const mf_table *kernels = table()
    cdef mf_blocks *blocks = NULL
    cdef int64_t n = x.shape[0], count = neighbors.shape[0], k = neighbors.shape[1], entries = 0, bad = -1
    if n == 0 or count == 0 or centers.shape[0] != count or not 1 <= dim <= min(k, x.shape[1]):
        raise ValueError("x, neighbors, centers and dim must match")
    check_members(&neighbors[0, 0], count * k, n)
    check_members(&centers[0], count, n)
    try:
        with nogil:
            if real is float:
                status = kernels.modified_begin_f32(&x[0, 0], n, x.shape[1], &neighbors[0, 0], &centers[0], count, k,
                                                    dim, reg, tol, &blocks, &entries, &bad, &run)
            else:
                status = kernels.modified_begin_f64(&x[0, 0], n, x.shape[1], &neighbors[0, 0], &centers[0], count, k,
                                                    dim, reg, tol, &blocks, &entries, &bad, &run)
        finish(status)
        return bad if bad >= 0 else _fill(kernels, blocks, n, entries, &run)
    finally:
        kernels.blocks_free(blocks)
