# cython: language_level=3, freethreading_compatible=True, boundscheck=False, wraparound=False
from manifast._core.core cimport mf_run, mf_status
from manifast._core.dispatch cimport finish, start, table

ctypedef fused real:
    float
    double


def affine(const real[:, ::1] x, const real[:, ::1] w, const real[::1] b, real[:, ::1] out, int n_threads):
    """Fill `out` with x @ w + b; b may be None."""
    cdef mf_run run = start(n_threads)
    cdef mf_status status
    cdef const real *bias = &b[0] if b is not None and b.shape[0] else NULL
    if w.shape[0] != x.shape[1] or out.shape[0] != x.shape[0] or out.shape[1] != w.shape[1]:
        raise ValueError("x, w and out must match in shape")
    if b is not None and b.shape[0] != w.shape[1]:
        raise ValueError("b must have one entry per column of w")
    if out.shape[0] == 0 or out.shape[1] == 0:
        return
    with nogil:
        if real is float:
            status = table().affine_f32(&x[0, 0], x.shape[0], x.shape[1], &w[0, 0], w.shape[1], bias, &out[0, 0], &run)
        else:
            status = table().affine_f64(&x[0, 0], x.shape[0], x.shape[1], &w[0, 0], w.shape[1], bias, &out[0, 0], &run)
    finish(status)
