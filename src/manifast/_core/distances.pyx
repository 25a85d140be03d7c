# cython: language_level=3, freethreading_compatible=True, boundscheck=False, wraparound=False
from manifast._core.core cimport mf_run, mf_status
from manifast._core.dispatch cimport finish, start, table

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
