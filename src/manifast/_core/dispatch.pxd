from manifast._core.core cimport mf_run, mf_status, mf_table

cdef const mf_table *table() noexcept nogil
cdef mf_run start(int n_threads) noexcept
cdef int finish(mf_status status) except -1
