# cython: language_level=3, freethreading_compatible=True, boundscheck=False, wraparound=False
from libc.stdint cimport int64_t

from manifast._core.core cimport mf_run, mf_status
from manifast._core.dispatch cimport Prepared, finish, start


cdef class Tree(Prepared):
    """Points among which neighbours are sought by a kd-tree."""

    def __init__(self, rows, int n_threads):
        cdef mf_run run = start(n_threads)
        cdef mf_status status
        self.own(rows)
        with nogil:
            if self.single:
                status = self.kernels.kdtree_prepare_f32(&self.rows32[0, 0], self.n, self.p, &self.made, &run)
            else:
                status = self.kernels.kdtree_prepare_f64(&self.rows64[0, 0], self.n, self.p, &self.made, &run)
        finish(status)

    def knn(self, queries, distances, int64_t[:, ::1] indices, int n_threads):
        """Fill `distances` and `indices`, one row per query, with the nearest rows; queries None: of each row, itself left out."""
        cdef mf_run run = start(n_threads)
        cdef mf_status status
        cdef const float[:, ::1] q32
        cdef const double[:, ::1] q64
        cdef float[:, ::1] d32
        cdef double[:, ::1] d64
        cdef const float *from32 = NULL
        cdef const double *from64 = NULL
        cdef int64_t m = indices.shape[0], k = indices.shape[1]
        if m == 0 or k == 0:
            return
        if self.made == NULL or distances.shape[0] != m or distances.shape[1] != k or m >= 2**31:
            raise ValueError("distances and indices must have one row per query and the same shape")
        if (self.n if queries is None else queries.shape[0]) != m or (queries is not None and queries.shape[1] != self.p):
            raise ValueError("distances and indices must have one row per query, and columns must match")
        if k > self.n - (queries is None):
            raise ValueError("k must not exceed the number of neighbours there are")
        if self.single:
            d32 = distances
            if queries is not None:
                q32 = queries
                from32 = &q32[0, 0]
            with nogil:
                status = self.kernels.kdtree_search_f32(self.made, from32, m, k, &d32[0, 0], &indices[0, 0], &run)
        else:
            d64 = distances
            if queries is not None:
                q64 = queries
                from64 = &q64[0, 0]
            with nogil:
                status = self.kernels.kdtree_search_f64(self.made, from64, m, k, &d64[0, 0], &indices[0, 0], &run)
        finish(status)
