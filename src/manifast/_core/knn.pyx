# cython: language_level=3, freethreading_compatible=True, boundscheck=False, wraparound=False
from libc.stdint cimport int64_t

from manifast._core.core cimport mf_run, mf_status
from manifast._core.dispatch cimport finish, start, table

ctypedef fused real:
    float
    double


def knn(const real[:, ::1] y, const real[:, ::1] queries, real[:, ::1] distances, int64_t[:, ::1] indices, int n_threads):
    """Fill `distances` and `indices` with the nearest rows of y; queries None: of each row of y, itself left out."""
    cdef mf_run run = start(n_threads)
    cdef mf_status status
    cdef const real *other = NULL
    cdef Py_ssize_t m = distances.shape[0], k = distances.shape[1]
    if m == 0 or k == 0:
        return
    if indices.shape[0] != m or indices.shape[1] != k or m != (y if queries is None else queries).shape[0]:
        raise ValueError("distances and indices must have one row per query and the same shape")
    if k > y.shape[0] - (queries is None) or (queries is not None and queries.shape[1] != y.shape[1]):
        raise ValueError("k must not exceed the number of neighbours there are, and columns must match")
    if queries is not None:
        other = &queries[0, 0]
    with nogil:
        if real is float:
            status = table().knn_f32(&y[0, 0], y.shape[0], other, m, y.shape[1], k, &distances[0, 0], &indices[0, 0], &run)
        else:
            status = table().knn_f64(&y[0, 0], y.shape[0], other, m, y.shape[1], k, &distances[0, 0], &indices[0, 0], &run)
    finish(status)
