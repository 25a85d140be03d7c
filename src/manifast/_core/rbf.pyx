# cython: language_level=3, freethreading_compatible=True, boundscheck=False, wraparound=False
from libc.stdint cimport int64_t

from manifast._core.core cimport mf_run, mf_status
from manifast._core.dispatch cimport Prepared, check_members, finish, start, table

ctypedef fused real:
    float
    double


def rbf_apply(const real[:, ::1] x, const real[:, ::1] centers, const real[:, ::1] coef, double inv_sigma2,
              real[:, ::1] out, int n_threads):
    """Fill `out` with exp(-|x - c|^2 * inv_sigma2) @ coef."""
    cdef mf_run run = start(n_threads)
    cdef mf_status status
    if centers.shape[1] != x.shape[1] or coef.shape[0] != centers.shape[0]:
        raise ValueError("x, centers and coef must match in shape")
    if out.shape[0] != x.shape[0] or out.shape[1] != coef.shape[1] or centers.shape[0] == 0:
        raise ValueError("out must have the rows of x and the columns of coef, and there must be centers")
    if out.shape[0] == 0 or out.shape[1] == 0:
        return
    with nogil:
        if real is float:
            status = table().rbf_apply_f32(&x[0, 0], x.shape[0], &centers[0, 0], centers.shape[0], x.shape[1],
                                           &coef[0, 0], coef.shape[1], <float>inv_sigma2, &out[0, 0], &run)
        else:
            status = table().rbf_apply_f64(&x[0, 0], x.shape[0], &centers[0, 0], centers.shape[0], x.shape[1],
                                           &coef[0, 0], coef.shape[1], inv_sigma2, &out[0, 0], &run)
    finish(status)


def heat_mean(const double[:, ::1] distances, const int64_t[:, ::1] neighbors, const real[:, ::1] y, double beta,
              bint others, double[:, ::1] out, int n_threads):
    """Fill `out` with means of rows of y, weighted by exp(-distance^2 / beta); neighbors None: of all rows of y.

    `others` leaves out distance 0.
    """
    cdef mf_run run = start(n_threads)
    cdef mf_status status
    cdef const int64_t *lists = NULL
    cdef int64_t m = distances.shape[0], k = distances.shape[1], d = y.shape[1]
    if neighbors is None and k != y.shape[0]:
        raise ValueError("distances must have one column per row of y")
    if neighbors is not None and (neighbors.shape[0] != m or neighbors.shape[1] != k):
        raise ValueError("distances and neighbors must match in shape")
    if out.shape[0] != m or out.shape[1] != d or k == 0:
        raise ValueError("out must have the rows of distances and the columns of y, and there must be neighbours")
    if m == 0 or d == 0:
        return
    if neighbors is not None:
        lists = &neighbors[0, 0]
        check_members(lists, m * k, y.shape[0])
    with nogil:
        if real is float:
            status = table().heat_mean_f32(&distances[0, 0], lists, m, k, &y[0, 0], d, beta, others, &out[0, 0], &run)
        else:
            status = table().heat_mean_f64(&distances[0, 0], lists, m, k, &y[0, 0], d, beta, others, &out[0, 0], &run)
    finish(status)


cdef class Centers(Prepared):
    """Centers of Gaussians with coefficients."""

    cdef const float[:, ::1] coef32
    cdef const double[:, ::1] coef64
    cdef int64_t d

    def __init__(self, rows, coef, int n_threads):
        cdef mf_run run = start(n_threads)
        cdef mf_status status
        self.own(rows)
        self.d = coef.shape[1]
        if coef.shape[0] != self.n or self.d == 0:
            raise ValueError("coef must have one row per center, and columns")
        if self.single:
            self.coef32 = coef
        else:
            self.coef64 = coef
        with nogil:
            if self.single:
                status = self.kernels.rbf_prepare_f32(&self.rows32[0, 0], self.n, self.p, &self.coef32[0, 0], self.d,
                                                      &self.made, &run)
            else:
                status = self.kernels.rbf_prepare_f64(&self.rows64[0, 0], self.n, self.p, &self.coef64[0, 0], self.d,
                                                      &self.made, &run)
        finish(status)

    def rbf_apply(self, x, double inv_sigma2, out, int n_threads):
        """Fill `out` as the function does."""
        cdef mf_run run = start(n_threads)
        cdef mf_status status
        cdef const float[:, ::1] x32
        cdef const double[:, ::1] x64
        cdef float[:, ::1] out32
        cdef double[:, ::1] out64
        cdef int64_t m
        if self.made == NULL or x.shape[1] != self.p or out.shape[0] != x.shape[0] or out.shape[1] != self.d:
            raise ValueError("x, centers, coef and out must match in shape")
        if x.shape[0] == 0:
            return
        if self.single:
            x32, out32 = x, out
            m = x32.shape[0]
            with nogil:
                status = self.kernels.rbf_apply_to_f32(self.made, &x32[0, 0], m, <float>inv_sigma2, &out32[0, 0], &run)
        else:
            x64, out64 = x, out
            m = x64.shape[0]
            with nogil:
                status = self.kernels.rbf_apply_to_f64(self.made, &x64[0, 0], m, inv_sigma2, &out64[0, 0], &run)
        finish(status)
