# cython: language_level=3, freethreading_compatible=True, boundscheck=False, wraparound=False
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from manifast._core.core cimport mf_run, mf_status
from manifast._core.dispatch cimport finish, start, table

ctypedef fused real:
    float
    double


cdef int check_rows(const int32_t *rows, int64_t count, int64_t n, int64_t least) except -1:
    """Raises where a number is not between `least`, 0 or -1, and n - 1."""
    cdef int64_t i
    cdef uint32_t largest = 0
    for i in range(count):
        largest = max(largest, <uint32_t>(rows[i] - <int32_t>least))
    if count and largest >= <uint64_t>(n - least):
        raise ValueError(f"rows must be between {least} and n - 1 = {n - 1}. Got others.")
    return 0


def cluster_candidates(const real[:, ::1] x, const int64_t[::1] starts, const int64_t[::1] known,
                       const int32_t[::1] members, const double[:, ::1] keys, int32_t[:, ::1] candidates, int n_threads):
    """Fill `candidates` with the rows nearest to every member of a cluster among the others of it."""
    cdef mf_run run = start(n_threads)
    cdef mf_status status
    cdef int64_t clusters = starts.shape[0] - 1, keep = candidates.shape[1], c
    if candidates.shape[0] == 0 or keep == 0:
        return
    if candidates.shape[0] != members.shape[0] or clusters < 1 or starts[0] != 0 or starts[clusters] != members.shape[0]:
        raise ValueError("starts must run from 0 to the number of members, and candidates have a row for each")
    if known.shape[0] != clusters or keys.shape[0] != x.shape[0] or keys.shape[1] == 0:
        raise ValueError("known must have one entry per cluster, and keys one row per row of x")
    for c in range(clusters):
        if starts[c] > starts[c + 1] or known[c] < 0 or known[c] > starts[c + 1] - starts[c]:
            raise ValueError("starts must not descend, and known members be members")
    check_rows(&members[0], members.shape[0], x.shape[0], 0)
    with nogil:
        if real is float:
            status = table().cluster_candidates_f32(&x[0, 0], x.shape[1], &starts[0], &known[0], clusters, &members[0],
                                                    &keys[0, 0], keys.shape[1], keep, &candidates[0, 0], &run)
        else:
            status = table().cluster_candidates_f64(&x[0, 0], x.shape[1], &starts[0], &known[0], clusters, &members[0],
                                                    &keys[0, 0], keys.shape[1], keep, &candidates[0, 0], &run)
    finish(status)


def rank_candidates(const real[:, ::1] x, const int32_t[::1] order, const int64_t[:, ::1] places,
                    const int32_t[:, ::1] candidates, double[:, ::1] keys, int32_t[:, ::1] near, int n_threads):
    """Add the candidates at every row's places to the lists `keys` and `near`."""
    cdef mf_run run = start(n_threads)
    cdef mf_status status
    cdef int64_t n = x.shape[0], k = keys.shape[1], m = places.shape[1], i, j
    if n == 0 or k == 0 or m == 0 or candidates.shape[1] == 0:
        return
    check_lists(n, k, order, &keys.shape[0], &near.shape[0], &near[0, 0])
    if places.shape[0] != n:
        raise ValueError("places must have one row per row of x")
    for i in range(n):
        for j in range(m):
            if <uint64_t>places[i, j] >= <uint64_t>candidates.shape[0]:
                raise ValueError("places must be rows of candidates")
    check_rows(&candidates[0, 0], candidates.shape[0] * candidates.shape[1], n, -1)
    with nogil:
        if real is float:
            status = table().rank_candidates_f32(&x[0, 0], n, x.shape[1], &order[0], &places[0, 0], m, &candidates[0, 0],
                                                 candidates.shape[1], &keys[0, 0], &near[0, 0], k, &run)
        else:
            status = table().rank_candidates_f64(&x[0, 0], n, x.shape[1], &order[0], &places[0, 0], m, &candidates[0, 0],
                                                 candidates.shape[1], &keys[0, 0], &near[0, 0], k, &run)
    finish(status)


def join_neighbors(const real[:, ::1] x, const int32_t[::1] order, const int32_t[:, ::1] clusters,
                   const double[:, ::1] keys, const int32_t[:, ::1] near, double[:, ::1] new_keys,
                   int32_t[:, ::1] new_near, int n_threads):
    """Fill `new_keys` and `new_near` with the nearest among neighbours and their neighbours."""
    cdef mf_run run = start(n_threads)
    cdef mf_status status
    cdef int64_t n = x.shape[0], k = keys.shape[1], m = clusters.shape[1]
    if n == 0 or k == 0:
        return
    if clusters.shape[0] != n or m == 0:
        raise ValueError("clusters must have one row per row of x")
    check_lists(n, k, order, &keys.shape[0], &near.shape[0], &near[0, 0])
    if new_keys.shape[0] != n or new_keys.shape[1] != k or new_near.shape[0] != n or new_near.shape[1] != k:
        raise ValueError("new lists must have the shape of the old ones")
    with nogil:
        if real is float:
            status = table().join_neighbors_f32(&x[0, 0], n, x.shape[1], &order[0], &clusters[0, 0], m, &keys[0, 0], &near[0, 0], k,
                                                &new_keys[0, 0], &new_near[0, 0], &run)
        else:
            status = table().join_neighbors_f64(&x[0, 0], n, x.shape[1], &order[0], &clusters[0, 0], m, &keys[0, 0], &near[0, 0], k,
                                                &new_keys[0, 0], &new_near[0, 0], &run)
    finish(status)


cdef int check_lists(int64_t n, int64_t k, const int32_t[::1] order, const Py_ssize_t *keys, const Py_ssize_t *near,
                     const int32_t *rows) except -1:
    """Raises where order and lists do not belong to n rows."""
    if order.shape[0] != n or keys[0] != n or near[0] != n or near[1] != k:
        raise ValueError("order and lists must have one row per row of x, and lists the same shape")
    check_rows(&order[0], n, n, 0)
    return check_rows(rows, n * k, n, -1)
