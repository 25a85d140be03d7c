"""Shortest paths against a plain Dijkstra and scipy.sparse.csgraph, the maps of new points against their formulas."""

import heapq

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import dijkstra

from manifast._paths import geodesic_rows, landmark_map, shortest_paths
from manifast.kernels import knn, neighbor_graph


def plain_dijkstra(W, sources):
    """Written out; stored zeros are edges."""
    rows = []
    for source in sources:
        lengths = np.full(W.shape[0], np.inf)
        lengths[source] = 0
        heap = [(0.0, int(source))]
        while heap:
            length, v = heapq.heappop(heap)
            if length > lengths[v]:
                continue
            for e in range(W.indptr[v], W.indptr[v + 1]):
                u, way = W.indices[e], length + float(W.data[e])
                if way < lengths[u]:
                    lengths[u] = way
                    heapq.heappush(heap, (way, int(u)))
        rows.append(lengths)
    return np.array(rows).reshape(len(rows), W.shape[0])


def swiss_roll(rng, n, k=8):
    t = 1.5 * np.pi * (1 + 2 * rng.random(n))
    X = np.column_stack([t * np.cos(t), 21 * rng.random(n), t * np.sin(t)])
    return neighbor_graph(*knn(X, k), weights="distance")


def random_graph(rng, n, edges, zeros=0.0):
    """Any pairs, lengths over several orders of magnitude, some of them 0, some nodes with no edge at all."""
    i, j = rng.integers(0, n, (2, edges))
    i, j = i[i != j], j[i != j]
    _, first = np.unique(np.minimum(i, j) * n + np.maximum(i, j), return_index=True)
    i, j = i[first], j[first]
    w = 10 ** rng.uniform(-3, 3, len(i)) * (rng.random(len(i)) >= zeros)
    return from_edges(n, i, j, w)


def from_edges(n, i, j, w):
    """CSR by hand, so that zeros stay stored."""
    rows, columns, data = np.concatenate([i, j]), np.concatenate([j, i]), np.concatenate([w, w])
    order = np.lexsort((columns, rows))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])
    return sp.csr_array((data[order], columns[order], indptr), shape=(n, n))


def same(a, b):
    np.testing.assert_array_equal(a, b)


def test_all_pairs_of_a_swiss_roll(level, rng):
    W = swiss_roll(rng, 700)
    D = shortest_paths(W)
    same(D, dijkstra(W))
    same(D[:20], plain_dijkstra(W, range(20)))
    np.testing.assert_allclose(D, D.T, rtol=700 * 2**-52)
    assert (np.diag(D) == 0).all()


@pytest.mark.parametrize("edges", [0, 5, 60, 150, 400, 3000])
@pytest.mark.parametrize("zeros", [0.0, 0.5, 1.0])
def test_graphs_without_geometry(level, rng, edges, zeros):
    W = random_graph(rng, 150, edges, zeros)
    same(shortest_paths(W), plain_dijkstra(W, range(150)))


@pytest.mark.parametrize("m", [0, 1, 2, 3, 7, 8, 15, 16, 17, 40, 299, 300])
def test_some_sources(level, rng, m):
    W = swiss_roll(rng, 300, 5)
    sources = rng.permutation(300)[:m]
    D = shortest_paths(W, sources)
    assert D.shape == (m, 300) and D.dtype == np.float64
    same(D, plain_dijkstra(W, sources))


def test_repeated_sources(level, rng):
    W = swiss_roll(rng, 120, 5)
    sources = np.concatenate([np.full(40, 7), rng.integers(0, 120, 100), np.full(3, 7)])
    same(shortest_paths(W, sources), shortest_paths(W)[sources])


def test_components_and_isolated_nodes(level, rng):
    parts = [swiss_roll(rng, size, 4) for size in (40, 5, 90, 33)] + [sp.csr_array((1, 1))] * 3
    W = sp.csr_array(sp.block_diag(parts))
    W.indices = W.indices.astype(np.int64)
    shuffle = rng.permutation(W.shape[0])
    W = sp.csr_array(W[shuffle][:, shuffle])
    W.sort_indices()
    D = shortest_paths(W)
    same(D, plain_dijkstra(W, range(W.shape[0])))
    assert np.isinf(D).any()
    same(shortest_paths(W, shuffle[::3]), D[shuffle[::3]])


def test_long_chain_with_misleading_shortcuts(level):
    """Heavy shortcuts make a search from one source a poor guide for the others."""
    n = 400
    i = np.arange(n - 1)
    far = np.arange(0, n - 100)
    rng = np.random.default_rng(3)
    w = np.concatenate([rng.uniform(0.5, 1, n - 1), rng.uniform(30, 60, n - 100)])
    W = from_edges(n, np.concatenate([i, far]), np.concatenate([i + 1, far + 100]), w)
    same(shortest_paths(W), plain_dijkstra(W, range(n)))


def test_exponential_gadget(level):
    """A chain of detours with lengths of powers of two: label correcting in a wrong order takes exponential time."""
    links = 40
    a = 2 * np.arange(links)
    i = np.concatenate([a, a, a + 1])
    j = np.concatenate([a + 1, a + 2, a + 2])
    power = 2.0 ** (links - np.arange(links))
    w = np.concatenate([np.zeros(links), power, np.zeros(links)])
    W = from_edges(2 * links + 1, i, j, w)
    same(shortest_paths(W), np.zeros((2 * links + 1, 2 * links + 1)))
    rng = np.random.default_rng(5)
    W = from_edges(2 * links + 1, i, j, w + rng.random(3 * links))
    same(shortest_paths(W), plain_dijkstra(W, range(2 * links + 1)))


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.floats(0.5, 6))
def test_any_graph(seed, n, degree):
    rng = np.random.default_rng(seed)
    W = random_graph(rng, n, int(n * degree / 2), zeros=rng.choice([0, 0.3]))
    sources = rng.integers(0, n, rng.integers(0, 40))
    same(shortest_paths(W, sources), plain_dijkstra(W, sources))


def test_bits_do_not_depend_on_threads_levels_or_company(on_every_level, rng):
    W = swiss_roll(rng, 500)
    D = shortest_paths(W, n_threads=1)
    for other in on_every_level(lambda: shortest_paths(W, n_threads=2)):
        same(D, other)
    some = rng.permutation(500)[:37]
    same(shortest_paths(W, some, n_threads=3), D[some])
    same(shortest_paths(W, some[:1]), D[some[:1]])


def test_dense_float32_unsorted_and_diagonal(rng):
    W = swiss_roll(rng, 60, 4)
    D = shortest_paths(W)
    same(shortest_paths(W.toarray()), D)
    same(shortest_paths(W + sp.eye_array(60)), D)
    same(shortest_paths(W.tocoo()), D)
    narrow = W.astype(np.float32)
    same(shortest_paths(narrow), shortest_paths(narrow.astype(np.float64)))
    backwards = W.copy()
    for i in range(60):
        row = slice(W.indptr[i], W.indptr[i + 1])
        backwards.indices[row], backwards.data[row] = W.indices[row][::-1], W.data[row][::-1]
    backwards.has_sorted_indices = False
    backwards.has_canonical_format = False
    same(shortest_paths(backwards), D)
    integers = sp.csr_array(np.array([[0, 2, 9], [2, 0, 3], [9, 3, 0]]))
    same(shortest_paths(integers), [[0, 2, 5], [2, 0, 3], [5, 3, 0]])


def test_asymmetry_of_rounding_is_let_through(rng):
    W = swiss_roll(rng, 80, 5)
    V = W.copy()
    V.data *= 1 + 1e-14 * rng.random(V.nnz)
    np.testing.assert_allclose(shortest_paths(V), shortest_paths(W), rtol=1e-12)


def test_huge_and_tiny_lengths():
    W = from_edges(4, np.array([0, 1, 2]), np.array([1, 2, 3]), np.array([1e308, 1e308, 1e-320]))
    same(shortest_paths(W), plain_dijkstra(W, range(4)))
    same(shortest_paths(W)[0], [0, 1e308, np.inf, np.inf])  # beyond the range of doubles


def test_out(rng):
    W = swiss_roll(rng, 50, 4)
    out = np.empty((3, 50))
    assert shortest_paths(W, [1, 2, 3], out=out) is out
    same(out, shortest_paths(W)[1:4])
    read_only = np.empty((3, 50))
    read_only.flags.writeable = False
    for wrong in (np.empty((3, 49)), np.empty((3, 50), np.float32), np.empty((50, 3)).T, read_only, [[0.0]]):
        with pytest.raises(ValueError, match="out must be"):
            shortest_paths(W, [1, 2, 3], out=wrong)


def test_empty_graphs():
    assert shortest_paths(sp.csr_array((0, 0))).shape == (0, 0)
    same(shortest_paths(sp.csr_array((2, 2))), [[0, np.inf], [np.inf, 0]])
    assert shortest_paths(sp.csr_array((2, 2)), []).shape == (0, 2)
    same(shortest_paths([[0.0]]), [[0.0]])


@pytest.mark.parametrize(
    ("W", "message"),
    [
        (np.zeros((2, 3)), "W must be a square matrix. Got shape"),
        ([[0, 1.0], [0, 0]], "W must be symmetric. Got an edge"),
        ([[0, 1.0], [2.0, 0]], "W must be symmetric. Got entries"),
        ([[0, -1.0], [-1.0, 0]], "W must have finite lengths that are not negative"),
        ([[0, np.nan], [np.nan, 0]], "W must have finite lengths"),
        ([[0, np.inf], [np.inf, 0]], "W must have finite lengths"),
        ([[0, 1j], [1j, 0]], "W must hold real numbers"),
    ],
)
def test_bad_graphs(W, message):
    with pytest.raises(ValueError, match=message):
        shortest_paths(W)


@pytest.mark.parametrize("sources", [[2], [-1], [0.5], [[0]], 0, ["a"]])
def test_bad_sources(sources):
    with pytest.raises(ValueError, match="sources must be"):
        shortest_paths([[0, 1.0], [1.0, 0]], sources)


# New points


def ways(rng, m, k, n, columns, dtype=np.float64, stored=np.float64):
    geodesics = rng.uniform(0, 10, (n, columns)).astype(stored)
    return rng.uniform(0, 2, (m, k)).astype(dtype), rng.integers(0, n, (m, k)), geodesics


def plain_rows(distances, neighbors, geodesics):
    """The formula, in double."""
    return (distances.astype(float)[:, :, None] + geodesics.astype(float)[neighbors]).min(axis=1)


@pytest.mark.parametrize("stored", [np.float32, np.float64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("m", "k", "columns"), [(1, 1, 1), (7, 3, 15), (70, 5, 16), (130, 10, 127), (65, 2, 300)])
def test_geodesic_rows(level, rng, m, k, columns, dtype, stored):
    d, i, g = ways(rng, m, k, 50, columns, dtype, stored)
    out = geodesic_rows(d, i, g)
    assert out.dtype == dtype
    same(out, plain_rows(d, i, g).astype(dtype))
    same(geodesic_rows(d, i, np.asfortranarray(g), n_threads=2), out)
    same(geodesic_rows(d[m // 2 :], i[m // 2 :], g), out[m // 2 :])


def test_geodesic_rows_out_of_reach(rng):
    d, i, g = ways(rng, 30, 2, 10, 20)
    g[:, 3] = np.inf
    g[4] = np.inf
    same(geodesic_rows(d, i, g), plain_rows(d, i, g))


@pytest.mark.parametrize("stored", [np.float32, np.float64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("m", "k", "columns", "d"), [(1, 1, 1, 1), (40, 3, 17, 2), (1030, 4, 130, 3), (9, 10, 513, 12)]
)
def test_landmark_map(level, rng, m, k, columns, d, dtype, stored):
    distances, neighbors, g = ways(rng, m, k, 60, columns, dtype, stored)
    mean_sq, projection, offset = rng.uniform(20, 40, columns), rng.standard_normal((columns, d)), rng.random(d)
    out = landmark_map(distances, neighbors, g, mean_sq, projection, offset)
    assert out.dtype == dtype and out.shape == (m, d)
    centred = plain_rows(distances, neighbors, g) ** 2 - mean_sq
    expected = -0.5 * centred @ projection + offset
    size = np.abs(centred) @ np.abs(projection) + 1
    assert (np.abs(out - expected) <= size * (1e-14 if dtype == np.float64 else 1e-7)).all()


def test_landmark_map_rows_stand_alone(level, rng):
    distances, neighbors, g = ways(rng, 2100, 4, 60, 200)
    rest = rng.uniform(20, 40, 200), rng.standard_normal((200, 2)), rng.random(2)
    out = landmark_map(distances, neighbors, g, *rest, n_threads=1)
    same(landmark_map(distances, neighbors, g, *rest, n_threads=2), out)
    for rows in (slice(0, 1), slice(5, 9), slice(1000, 2050)):
        same(landmark_map(distances[rows], neighbors[rows], g, *rest), out[rows])


@pytest.mark.parametrize("kind", ["equal", "unreachable", "some unreachable", "one column"])
def test_landmark_map_of_geodesics_that_order_nothing(level, rng, kind):
    """Many points are worked on in an order that geodesics decide, and that no result depends on."""
    distances, neighbors, g = ways(rng, 150, 3, 60, 1 if kind == "one column" else 90)
    g[:] = {"equal": 0.0, "unreachable": np.inf}.get(kind, g)
    if kind == "some unreachable":
        g[::7] = np.inf
    rest = rng.uniform(20, 40, g.shape[1]), rng.standard_normal((g.shape[1], 2)), rng.random(2)
    out = landmark_map(distances, neighbors, g, *rest)
    for row in range(0, 150, 11):
        same(landmark_map(distances[[row]], neighbors[[row]], g, *rest), out[[row]])


def test_no_new_points():
    d, i, g = np.empty((0, 3)), np.empty((0, 3), int), np.ones((4, 5))
    assert geodesic_rows(d, i, g).shape == (0, 5)
    assert landmark_map(d, i, g, np.ones(5), np.ones((5, 2)), np.ones(2)).shape == (0, 2)


def test_bad_ways(rng):
    d, i, g = ways(rng, 5, 2, 6, 4)
    for wrong, message in [
        ((d[0], i[0], g), "distances must be a matrix"),
        ((d * np.nan, i, g), "distances must be finite"),
        ((d, i[:, :1], g), "neighbors must have the shape of distances"),
        ((d, i.astype(float), g), "neighbors must be integers"),
        ((d, i + 6, g), "neighbors must be rows of geodesics, 0 to 5"),
        ((d, i - 6, g), "neighbors must be rows of geodesics"),
        ((d, i, g[0]), "geodesics must be a matrix"),
    ]:
        with pytest.raises(ValueError, match=message):
            geodesic_rows(*wrong)
    for rest, message in [
        ((np.ones(3), np.ones((4, 2)), np.ones(2)), "mean_sq must have 4 columns"),
        ((np.ones(4), np.ones((5, 2)), np.ones(2)), "projection must have one row per column of geodesics"),
        ((np.ones(4), np.ones((4, 2)), np.ones(3)), "offset must have 2 columns"),
    ]:
        with pytest.raises(ValueError, match=message):
            landmark_map(d, i, g, *rest)
