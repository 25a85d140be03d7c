# cython: language_level=3, freethreading_compatible=True, boundscheck=False, wraparound=False
from libc.stdint cimport int64_t

from manifast._core.core cimport mf_run, mf_status
from manifast._core.dispatch cimport Prepared, finish, start, table

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


cdef class Points(Prepared):
    """Points among which neighbours are sought by brute force."""

    def __init__(self, rows, int n_threads):
        cdef mf_run run = start(n_threads)
        cdef mf_status status
        self.own(rows)
        with nogil:
            if self.single:
                status = self.kernels.knn_prepare_f32(&self.rows32[0, 0], self.n, self.p, &self.made, &run)
            else:
                status = self.kernels.knn_prepare_f64(&self.rows64[0, 0], self.n, self.p, &self.made, &run)
        finish(status)

    def knn(self, queries, distances, int64_t[:, ::1] indices, int n_threads):
        """Fill `distances` and `indices`, one row per query, with the nearest rows."""
        cdef mf_run run = start(n_threads)
        cdef mf_status status
        cdef const float[:, ::1] q32
        cdef const double[:, ::1] q64
        cdef float[:, ::1] d32
        cdef double[:, ::1] d64
        cdef int64_t m = indices.shape[0], k = indices.shape[1]
        if m == 0 or k == 0:
            return
        if self.made == NULL or distances.shape[0] != m or distances.shape[1] != k or m >= 2**31:
            raise ValueError("distances and indices must have one row per query and the same shape")
        if queries.shape[0] != m or queries.shape[1] != self.p or k > self.n:
            raise ValueError("k must not exceed the number of neighbours there are, and columns must match")
        if self.single:
            d32 = distances
            q32 = queries
            with nogil:
                status = self.kernels.knn_to_f32(self.made, &q32[0, 0], m, k, &d32[0, 0], &indices[0, 0], &run)
        else:
            d64 = distances
            q64 = queries
            with nogil:
                status = self.kernels.knn_to_f64(self.made, &q64[0, 0], m, k, &d64[0, 0], &indices[0, 0], &run)
        finish(status)
