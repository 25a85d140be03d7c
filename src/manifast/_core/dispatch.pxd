from libc.stdint cimport int32_t, int64_t

from manifast._core.core cimport mf_prepared, mf_run, mf_status, mf_table

cdef const mf_table *table() noexcept nogil
cdef mf_run start(int n_threads) except *
cdef int finish(mf_status status) except -1
cdef int check_members(const int64_t *members, int64_t count, int64_t n) except -1
cdef int check_graph(const int64_t[::1] starts, const int32_t[::1] columns, int64_t values) except -1


cdef class Prepared:
    cdef mf_prepared *made
    cdef const mf_table *kernels
    cdef bint single
    cdef const float[:, ::1] rows32
    cdef const double[:, ::1] rows64
    cdef int64_t n, p
    cdef object __weakref__
    cdef int own(self, rows) except -1
