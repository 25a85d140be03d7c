# cython: language_level=3, freethreading_compatible=True, boundscheck=False, wraparound=False
from libc.stdint cimport int32_t, int64_t

from manifast._core.core cimport mf_run, mf_status
from manifast._core.dispatch cimport check_graph, check_members, finish, start, table

ctypedef fused real:
    float
    double


def shortest_paths(const int64_t[::1] starts, const int32_t[::1] columns, const double[::1] lengths,
                   const int64_t[::1] sources, double[:, ::1] out, int n_threads):
    """Fill row i of `out` with the lengths of the shortest paths from sources[i]; the graph is symmetric."""
    cdef mf_run run = start(n_threads)
    cdef mf_status status
    cdef int64_t n = starts.shape[0] - 1, m = sources.shape[0]
    cdef const int32_t *to_columns = &columns[0] if columns.shape[0] else NULL
    cdef const double *to_lengths = &lengths[0] if lengths.shape[0] else NULL
    if out.shape[0] != m or out.shape[1] != n:
        raise ValueError("out must have one row per source and one column per node")
    if m == 0 or n == 0:
        return
    check_graph(starts, columns, lengths.shape[0])
    check_members(&sources[0], m, n)
    with nogil:
        status = table().shortest_paths(n, &starts[0], to_columns, to_lengths, &sources[0], m, &out[0, 0], &run)
    finish(status)


def geodesic_rows(const double[:, ::1] distances, const int64_t[:, ::1] neighbors, const real[:, ::1] geodesics, out,
                  int n_threads):
    """Fill `out`, float32 or float64 and contiguous, with the nearest ways over the neighbours."""
    cdef mf_run run = start(n_threads)
    cdef mf_status status
    cdef int64_t m = distances.shape[0], k = distances.shape[1], columns = geodesics.shape[1]
    cdef bint narrow = out.dtype.itemsize == 4
    cdef void *to = <void *><size_t>out.ctypes.data
    if neighbors.shape[0] != m or neighbors.shape[1] != k or out.shape != (m, columns):
        raise ValueError("distances, neighbors and out must match in shape")
    if m == 0 or columns == 0:
        return
    if k:
        check_members(&neighbors[0, 0], m * k, geodesics.shape[0])
    with nogil:
        if real is float:
            status = table().geodesic_rows_f32(&distances[0, 0], &neighbors[0, 0], m, k, &geodesics[0, 0], columns,
                                               narrow, to, &run)
        else:
            status = table().geodesic_rows_f64(&distances[0, 0], &neighbors[0, 0], m, k, &geodesics[0, 0], columns,
                                               narrow, to, &run)
    finish(status)


def landmark_map(const double[:, ::1] distances, const int64_t[:, ::1] neighbors, const real[:, ::1] geodesics,
                 const double[::1] mean_sq, const double[:, ::1] projection, const double[::1] offset,
                 double[:, ::1] out, int n_threads):
    """Fill `out` with the embedding of new points by their distances to landmarks."""
    cdef mf_run run = start(n_threads)
    cdef mf_status status
    cdef int64_t m = distances.shape[0], k = distances.shape[1], columns = geodesics.shape[1], d = projection.shape[1]
    if neighbors.shape[0] != m or neighbors.shape[1] != k or out.shape[0] != m or out.shape[1] != d:
        raise ValueError("distances, neighbors and out must match in shape")
    if mean_sq.shape[0] != columns or projection.shape[0] != columns or offset.shape[0] != d:
        raise ValueError("mean_sq, projection and offset must match the geodesics")
    if m == 0 or columns == 0 or d == 0:
        return
    if k:
        check_members(&neighbors[0, 0], m * k, geodesics.shape[0])
    with nogil:
        if real is float:
            status = table().landmark_map_f32(&distances[0, 0], &neighbors[0, 0], m, k, &geodesics[0, 0], columns,
                                              &mean_sq[0], &projection[0, 0], d, &offset[0], &out[0, 0], &run)
        else:
            status = table().landmark_map_f64(&distances[0, 0], &neighbors[0, 0], m, k, &geodesics[0, 0], columns,
                                              &mean_sq[0], &projection[0, 0], d, &offset[0], &out[0, 0], &run)
    finish(status)
