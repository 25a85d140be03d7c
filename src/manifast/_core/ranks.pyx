# cython: language_level=3, freethreading_compatible=True, boundscheck=False, wraparound=False
from libc.stdint cimport int64_t

from manifast._core.core cimport mf_run, mf_status
from manifast._core.dispatch cimport check_members, finish, start, table

ctypedef fused real:
    float
    double


def neighbor_ranks(const real[:, ::1] y, const real[:, ::1] queries, const int64_t[:, ::1] neighbors,
                   int64_t[:, ::1] ranks, int n_threads):
    """Fill `ranks` with the places of the neighbours among all rows of y; queries None: seen from each row of y."""
    cdef mf_run run = start(n_threads)
    cdef mf_status status
    cdef const real *other = NULL
    cdef Py_ssize_t m = neighbors.shape[0], k = neighbors.shape[1]
    if m == 0 or k == 0:
        return
    if ranks.shape[0] != m or ranks.shape[1] != k or m != (y if queries is None else queries).shape[0]:
        raise ValueError("neighbors and ranks must have one row per query and the same shape")
    if queries is not None and queries.shape[1] != y.shape[1]:
        raise ValueError("queries and y must have the same columns")
    check_members(&neighbors[0, 0], m * k, y.shape[0])
    if queries is not None:
        other = &queries[0, 0]
    with nogil:
        if real is float:
            status = table().neighbor_ranks_f32(&y[0, 0], y.shape[0], other, m, y.shape[1], &neighbors[0, 0], k,
                                                &ranks[0, 0], &run)
        else:
            status = table().neighbor_ranks_f64(&y[0, 0], y.shape[0], other, m, y.shape[1], &neighbors[0, 0], k,
                                                &ranks[0, 0], &run)
    finish(status)
