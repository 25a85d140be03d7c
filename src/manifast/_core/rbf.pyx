# cython: language_level=3, freethreading_compatible=True, boundscheck=False, wraparound=False
from manifast._core.core cimport mf_run, mf_status
from manifast._core.dispatch cimport finish, start, table

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
