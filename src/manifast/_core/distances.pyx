# cython: language_level=3, freethreading_compatible=True, boundscheck=False, wraparound=False
from libc.stdint cimport int64_t

from manifast._core.core cimport mf_run, mf_status
from manifast._core.dispatch cimport Prepared, finish, start, table

ctypedef fused real:
    float
    double


def sq_distances(const real[:, ::1] x, const real[:, ::1] y, double inv_sigma2, real[:, ::1] out, int n_threads):
    """Fill `out` with squared distances, or with exp(-distances * inv_sigma2) where inv_sigma2 > 0; y may be None."""
    cdef mf_run run = start(n_threads)
    cdef mf_status status
    cdef const real *other = NULL
    cdef Py_ssize_t m = x.shape[0]
    if y is not None:
        m = y.shape[0]
        other = &y[0, 0] if m else NULL
    if out.shape[0] != x.shape[0] or out.shape[1] != m or (y is not None and y.shape[1] != x.shape[1]):
        raise ValueError("x, y and out must match in shape")
    if x.shape[0] == 0 or m == 0:
        return
    with nogil:
        if real is float:
            status = table().sq_distances_f32(&x[0, 0], x.shape[0], other, m, x.shape[1], <float>inv_sigma2,
                                              &out[0, 0], &run)
        else:
            status = table().sq_distances_f64(&x[0, 0], x.shape[0], other, m, x.shape[1], inv_sigma2, &out[0, 0], &run)
    finish(status)


cdef class Columns(Prepared):
    """Rows to which others have distances."""

    def __init__(self, rows, int n_threads):
        cdef mf_run run = start(n_threads)
        cdef mf_status status
        self.own(rows)
        with nogil:
            if self.single:
                status = self.kernels.distances_prepare_f32(&self.rows32[0, 0], self.n, self.p, &self.made, &run)
            else:
                status = self.kernels.distances_prepare_f64(&self.rows64[0, 0], self.n, self.p, &self.made, &run)
        finish(status)

    def sq_distances(self, x, double inv_sigma2, out, int n_threads):
        """Fill `out` as the function does."""
        cdef mf_run run = start(n_threads)
        cdef mf_status status
        cdef const float[:, ::1] x32
        cdef const double[:, ::1] x64
        cdef float[:, ::1] out32
        cdef double[:, ::1] out64
        cdef int64_t m
        if self.made == NULL or x.shape[1] != self.p or out.shape[0] != x.shape[0] or out.shape[1] != self.n:
            raise ValueError("x, rows and out must match in shape")
        if x.shape[0] == 0:
            return
        if self.single:
            x32, out32 = x, out
            m = x32.shape[0]
            with nogil:
                status = self.kernels.distances_to_f32(self.made, &x32[0, 0], m, <float>inv_sigma2, &out32[0, 0], &run)
        else:
            x64, out64 = x, out
            m = x64.shape[0]
            with nogil:
                status = self.kernels.distances_to_f64(self.made, &x64[0, 0], m, inv_sigma2, &out64[0, 0], &run)
        finish(status)
