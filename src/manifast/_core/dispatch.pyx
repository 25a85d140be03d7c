# cython: language_level=3, freethreading_compatible=True
"""The only module that links the C core: picks the instruction set and hands the kernel table to the others."""
import os

from manifast._core.core cimport (MF_INTERRUPTED, MF_NO_MEMORY, MF_OK, mf_best_table, mf_compiler, mf_find_table, mf_levels,
                                  mf_max_threads, mf_openmp_version, mf_run, mf_status, mf_table, mf_version)

cdef extern from "Python.h":
    int PyErr_CheckSignals_raw "PyErr_CheckSignals" ()

cdef const mf_table *_table = mf_best_table()


cdef const mf_table *table() noexcept nogil:
    return _table


# Leaves the exception of a signal handler set in the calling thread; `finish` lets it through.
cdef int _interrupted() noexcept nogil:
    with gil:
        return PyErr_CheckSignals_raw()


cdef mf_run start(int n_threads) noexcept:
    cdef mf_run run
    run.n_threads = n_threads
    run.interrupted = &_interrupted
    run.stop = 0
    run.last_poll = 0
    return run


cdef int finish(mf_status status) except -1:
    if status == MF_OK:
        return 0
    if status == MF_NO_MEMORY:
        raise MemoryError("manifast could not allocate its workspace")
    return -1  # interrupted: the exception is set already


def levels():
    """Names of the instruction sets built in that this machine runs, best first."""
    names = []
    cdef const char *const *level = mf_levels()
    while level[0] != NULL:
        if mf_find_table(level[0]) != NULL:
            names.append(level[0].decode())
        level += 1
    return names


def levels_built():
    """Names of all instruction sets built in, best first."""
    names = []
    cdef const char *const *level = mf_levels()
    while level[0] != NULL:
        names.append(level[0].decode())
        level += 1
    return names


def level():
    """Name of the instruction set in use."""
    return _table.level.decode()


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
