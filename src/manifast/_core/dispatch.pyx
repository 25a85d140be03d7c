# cython: language_level=3, freethreading_compatible=True, boundscheck=False, wraparound=False
"""The only module that links the C core: picks the instruction set and hands the kernel table to the others."""
import os
import threading

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from manifast._core.core cimport (MF_INTERRUPTED, MF_NO_MEMORY, MF_OK, mf_best_table, mf_compiler, mf_find_table, mf_level_name,
                                  mf_level_why_not, mf_max_threads, mf_openmp_version, mf_prepared_bytes,
                                  mf_prepared_free, mf_run, mf_status, mf_table, mf_version)

cdef extern from "Python.h":
    int PyErr_CheckSignals_raw "PyErr_CheckSignals" ()
    void PyErr_SetInterrupt()
    unsigned long PyThread_get_thread_ident()

cdef const mf_table *_table = mf_best_table()


cdef const mf_table *table() noexcept nogil:
    return _table


cdef double _pause = 0.05  # seconds: Python's lock may take long to get
cdef int64_t _polls = 0, _interrupt_at = 0


# Leaves the exception of a signal handler set in the calling thread; `finish` lets it through.
cdef int _interrupted() noexcept nogil:
    global _polls
    with gil:
        _polls += 1
        if _polls == _interrupt_at:
            PyErr_SetInterrupt()
        return PyErr_CheckSignals_raw()


# Raises what a signal handler raises meanwhile, and nothing else: at the end of the interpreter `threading` has lost its
# names, and then nobody waits for a signal.
cdef bint _on_main_thread() except -1:
    try:
        return PyThread_get_thread_ident() == threading.main_thread().ident
    except (AttributeError, TypeError):
        return False


# Only the main thread hears of signals. Another one that asked while the process ends would be ended by Python then and
# there, inside the kernel.
cdef mf_run start(int n_threads) except *:
    cdef mf_run run
    run.n_threads = n_threads
    run.interrupted = &_interrupted if _on_main_thread() else NULL
    run.stop = 0
    run.pause = _pause
    run.last_poll = 0
    return run


def watch_polls(double pause=0.05, int64_t interrupt_at=0):
    """For tests: count how often kernels look for signals from now on, as if Ctrl-C came at one of these times.

    They look at most every `pause` seconds; below 0, whenever they could.
    """
    global _pause, _polls, _interrupt_at
    _pause, _polls, _interrupt_at = pause, 0, interrupt_at


def polls():
    """How often kernels have looked for signals since `watch_polls`."""
    return _polls


cdef int finish(mf_status status) except -1:
    if status == MF_OK:
        return 0
    if status == MF_NO_MEMORY:
        raise MemoryError("manifast could not allocate its workspace")
    return -1  # interrupted: the exception is set already


cdef int check_members(const int64_t *members, int64_t count, int64_t n) except -1:
    """Raises where a number is not between 0 and n - 1: nothing else keeps a kernel from reading elsewhere."""
    cdef int64_t i
    cdef uint64_t largest = 0
    for i in range(count):
        largest = max(largest, <uint64_t>members[i])
    if count and largest >= <uint64_t>n:
        raise ValueError(f"indices must be between 0 and n - 1 = {n - 1}. Got others.")
    return 0


cdef int check_graph(const int64_t[::1] starts, const int32_t[::1] columns, int64_t values) except -1:
    """Raises where a CSR matrix has row pointers or columns out of range, or fewer values than it says."""
    cdef int64_t i, n = starts.shape[0] - 1, entries = starts[n] if n >= 0 else -1
    cdef bint fits = entries >= 0 and entries <= columns.shape[0] and entries <= values and starts[0] == 0
    cdef uint32_t largest = 0
    for i in range(n):
        fits &= starts[i] <= starts[i + 1]
    if fits:
        for i in range(entries):
            largest = max(largest, <uint32_t>columns[i])
        fits = entries == 0 or largest < n
    if not fits:
        raise ValueError("the graph must be a valid CSR matrix. Got row pointers or column indices out of range.")
    return 0


cdef class Prepared:
    """Rows in the form that one kernel of one instruction set reads. They stay alive with it, and nothing writes to it:
    any number of threads may use it at once. It cannot be pickled or copied."""

    def __cinit__(self, *_, **__):
        self.kernels = table()

    def __dealloc__(self):
        mf_prepared_free(self.made)

    cdef int own(self, rows) except -1:
        """Keep the rows; `single` says that they are float32."""
        mf_prepared_free(self.made)
        self.made = NULL
        self.single = rows.itemsize == 4
        if self.single:
            self.rows32 = rows
            self.n, self.p = self.rows32.shape[0], self.rows32.shape[1]
        else:
            self.rows64 = rows
            self.n, self.p = self.rows64.shape[0], self.rows64.shape[1]
        if not (0 < self.n < 2**31 and self.p > 0):
            raise ValueError(f"rows must be from 1 to 2^31 - 1 with at least 1 column. Got {self.n} x {self.p} instead.")
        return 0

    @property
    def current(self):
        """Whether it is of the instruction set in use."""
        return self.kernels == table()

    @property
    def nbytes(self):
        """What it holds beside the rows themselves."""
        return 0 if self.made == NULL else mf_prepared_bytes(self.made)


def largest(x):
    """The largest |entry| of a C-contiguous float32 or float64 matrix, NaN where one is not finite."""
    cdef const float[:, ::1] x32
    cdef const double[:, ::1] x64
    cdef double found = 0
    if x.size == 0:
        return 0.0
    if x.itemsize == 4:
        x32 = x
        with nogil:
            found = table().largest_f32(&x32[0, 0], x32.shape[0] * x32.shape[1])
    else:
        x64 = x
        with nogil:
            found = table().largest_f64(&x64[0, 0], x64.shape[0] * x64.shape[1])
    return found


def levels_built():
    """All instruction sets built in, best first: the name, and why this machine does not run it (None where it does)."""
    names = {}
    cdef int level = 0
    cdef const char *why_not
    while mf_level_name(level) != NULL:
        why_not = mf_level_why_not(level)
        names[mf_level_name(level).decode()] = None if why_not == NULL else why_not.decode()
        level += 1
    return names


def levels():
    """Names of the instruction sets built in that this machine runs, best first."""
    return [name for name, why_not in levels_built().items() if why_not is None]


def level():
    """Name of the instruction set in use."""
    return _table.level.decode()


def int32_max():
    """Indices of sparse matrices are int32 for fewer rows and entries: 2^31 - 1, and less in the level `small`."""
    return table().int32_max


def use(str name):
    """Use another instruction set from now on; "auto" is the best one."""
    global _table
    cdef const mf_table *found = mf_best_table() if name == "auto" else mf_find_table(name.encode())
    if found == NULL:
        raise ValueError(f"instruction set must be 'auto' or one of {levels()} on this machine. Got {name!r} instead.")
    _table = found


def max_threads():
    """What OpenMP would use here."""
    return mf_max_threads()


def build():
    """What the core was built with."""
    return {"version": mf_version().decode(), "compiler": mf_compiler().decode(), "openmp": mf_openmp_version()}


if os.environ.get("MANIFAST_ISA"):
    use(os.environ["MANIFAST_ISA"])
