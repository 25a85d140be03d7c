# cython: language_level=3, freethreading_compatible=True, boundscheck=False, wraparound=False
from libc.stdint cimport int64_t

from manifast._core.core cimport mf_run, mf_status
from manifast._core.dispatch cimport check_members, finish, start, table

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
