# cython: language_level=3, freethreading_compatible=True, boundscheck=False, wraparound=False
from libc.stdint cimport int32_t, int64_t

import numpy as np

from manifast._core.core cimport mf_multilevel, mf_run, mf_status, mf_table
from manifast._core.dispatch cimport check_graph, finish, start, table


cdef class Multilevel:
    """A connected graph's Laplacians from fine to coarse; the kernels of the instruction set it was made with.

    `reached` < n says that the graph is not connected, and then there is nothing else. Vectors that are orthonormal by
    masses[0] are so by the caller's degrees after multiplication by `scale`.
    Blocks of vectors are C-contiguous float64 matrices whose width is a multiple of 4. One object serves one thread
    at a time: the V-cycle keeps its memory here."""
    cdef mf_multilevel *hierarchy
    cdef const mf_table *kernels
    cdef readonly int n_threads
    cdef readonly int64_t reached
    cdef readonly list sizes, entries, masses
    cdef readonly double scale

    def __cinit__(self, const int64_t[::1] indptr, const int32_t[::1] columns, const double[::1] weights,
                  int n_threads):
        cdef mf_run run = start(n_threads)
        cdef mf_status status
        cdef int64_t n = indptr.shape[0] - 1
        check_graph(indptr, columns, weights.shape[0])
        self.kernels = table()
        self.n_threads = n_threads
        self.sizes, self.entries, self.masses = [], [], []
        with nogil:
            status = self.kernels.multilevel_begin(n, &indptr[0], &columns[0], &weights[0], &self.hierarchy,
                                                   &self.reached, &run)
        finish(status)
        if self.reached < n:
            return
        while self.kernels.multilevel_size(self.hierarchy, len(self.sizes)):
            n = self.kernels.multilevel_size(self.hierarchy, len(self.sizes))
            self.entries.append(self.kernels.multilevel_entries(self.hierarchy, len(self.sizes)))
            self.masses.append(np.array(<const double[:n]>self.kernels.multilevel_mass(self.hierarchy,
                                                                                       len(self.sizes))))
            self.sizes.append(n)
        self.scale = self.kernels.multilevel_scale(self.hierarchy)

    def __dealloc__(self):
        if self.hierarchy != NULL:
            self.kernels.multilevel_free(self.hierarchy)

    def order(self):
        """The caller's node at each place of level 0."""
        cdef int64_t n = self.sizes[0]
        return np.array(<const int32_t[:n]>self.kernels.multilevel_order(self.hierarchy))

    def product(self, int level, const double[:, ::1] x):
        """L x."""
        cdef mf_run run = start(self.n_threads)
        cdef mf_status status
        made = np.empty((x.shape[0], x.shape[1]))
        cdef double[:, ::1] out = made
        with nogil:
            status = self.kernels.multilevel_product(self.hierarchy, level, &x[0, 0], x.shape[1], &out[0, 0], &run)
        finish(status)
        return made

    def precondition(self, int level, const double[:, ::1] r, const double[::1] scale, bint precise):
        """About L⁺ (r * scale), orthogonal to constants by mass; in float32 unless `precise`."""
        cdef mf_run run = start(self.n_threads)
        cdef mf_status status
        made = np.empty((r.shape[0], r.shape[1]))
        cdef double[:, ::1] out = made
        with nogil:
            if precise:
                status = self.kernels.multilevel_precondition_f64(self.hierarchy, level, &r[0, 0], r.shape[1],
                                                                  &scale[0], &out[0, 0], &run)
            else:
                status = self.kernels.multilevel_precondition_f32(self.hierarchy, level, &r[0, 0], r.shape[1],
                                                                  &scale[0], &out[0, 0], &run)
        finish(status)
        return made

    def prolong(self, int level, const double[:, ::1] coarse):
        """From level + 1 to level."""
        cdef mf_run run = start(self.n_threads)
        cdef mf_status status
        made = np.empty((self.sizes[level], coarse.shape[1]))
        cdef double[:, ::1] out = made
        with nogil:
            status = self.kernels.multilevel_prolong(self.hierarchy, level, &coarse[0, 0], coarse.shape[1],
                                                     &out[0, 0], &run)
        finish(status)
        return made


def flaws(indptr, columns, const double[::1] weights, int n_threads):
    """What is wrong with a CSR graph, as a sum of mf_flaw; both index arrays are int32, or int64."""
    cdef mf_run run = start(n_threads)
    cdef mf_status status
    cdef bint wide = indptr.dtype == np.int64
    cdef int64_t n = indptr.shape[0] - 1
    cdef int found = 0
    spare, degrees = np.empty_like(indptr), np.empty(n)
    cdef size_t from_indptr = indptr.ctypes.data, from_columns = columns.ctypes.data, to_spare = spare.ctypes.data
    cdef double[::1] to_degrees = degrees
    with nogil:
        status = table().laplacian_begin_f64(wide, n, weights.shape[0], <void *>from_indptr, <void *>from_columns,
                                             &weights[0], &to_degrees[0], <void *>to_spare, &found, &run)
    finish(status)
    return found


cdef int _collect(parts, const double **pointers, int64_t *widths) except -1:
    cdef const double[:, ::1] view
    cdef int count = 0
    for part in parts:
        view = part
        pointers[count], widths[count] = &view[0, 0], view.shape[1]
        count += 1
    return count


def gram(tuple parts, const double[:, ::1] y, const double[:, ::1] ay, const double[::1] mass, int n_threads):
    """[parts]ᵀ [mass y, ay] for up to 3 parts."""
    cdef mf_run run = start(n_threads)
    cdef mf_status status
    cdef const mf_table *kernels = table()
    cdef const double *pointers[3]
    cdef int64_t widths[3]
    cdef int count = _collect(parts, pointers, widths)
    made = np.empty((sum(part.shape[1] for part in parts), 2 * y.shape[1]))
    cdef double[:, ::1] out = made
    with nogil:
        status = kernels.tall_gram(y.shape[0], pointers, widths, count, &y[0, 0], &ay[0, 0], y.shape[1], &mass[0],
                                   &out[0, 0], &run)
    finish(status)
    return made


def update(tuple parts, const double[:, ::1] coef, tuple outs, int n_threads):
    """[outs] = [parts] coef for up to 3 parts; outs may be among the parts."""
    cdef mf_run run = start(n_threads)
    cdef mf_status status
    cdef const mf_table *kernels = table()
    cdef const double *pointers[3]
    cdef const double *to[3]
    cdef int64_t widths[3]
    cdef int64_t out_widths[3]
    cdef int count = _collect(parts, pointers, widths)
    cdef int out_count = _collect(outs, to, out_widths)
    cdef int64_t n = parts[0].shape[0]
    with nogil:
        status = kernels.tall_update(n, pointers, widths, count, &coef[0, 0], <double **>to, out_widths, out_count,
                                     &run)
    finish(status)


def residual(const double[:, ::1] x, const double[:, ::1] ax, const double[::1] mass, const double[::1] values,
             int n_threads):
    """r = ax - mass x values, and the norms of its columns by 1 / mass."""
    cdef mf_run run = start(n_threads)
    cdef mf_status status
    cdef const mf_table *kernels = table()
    made, squares = np.empty((x.shape[0], x.shape[1])), np.empty(x.shape[1])
    cdef double[:, ::1] out = made
    cdef double[::1] to_squares = squares
    with nogil:
        status = kernels.tall_residual(x.shape[0], &x[0, 0], &ax[0, 0], x.shape[1], &mass[0], &values[0],
                                       &out[0, 0], &to_squares[0], &run)
    finish(status)
    return made, np.sqrt(squares)


def center(double[:, ::1] x, const double[::1] mass, int n_threads):
    """x less its mean by mass, column by column, in place."""
    cdef mf_run run = start(n_threads)
    cdef mf_status status
    cdef const mf_table *kernels = table()
    with nogil:
        status = kernels.tall_center(x.shape[0], &x[0, 0], x.shape[1], &mass[0], &run)
    finish(status)
