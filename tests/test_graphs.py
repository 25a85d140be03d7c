"""Every graph against a dense construction in plain NumPy."""

import itertools
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from manifast._widths import root_widths
from manifast.graphs import (
    class_graphs,
    connect_components,
    full_graph,
    knn_graph,
    l1_graph,
    mean_sq_distance,
    n_components,
    radius_graph,
    search,
)
from manifast.kernels import knn

DTYPES = [np.float32, np.float64]
WEIGHTS = ["heat", "binary", "distance"]


def distances(X):
    X = np.asarray(X, dtype=np.float64)
    return np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=2))


def mean_of_pairs(X):
    d = distances(X)
    n = len(d)
    return (d**2).sum() / (n * (n - 1))


def weigh(d, weights, beta):
    return {"heat": np.exp(-(d**2) / beta), "binary": np.ones_like(d), "distance": d}[weights]


def nearest(d, k):
    """Whether j is among the k nearest of i; ties by index; infinite distances never are."""
    listed = np.zeros(d.shape, dtype=bool)
    for i, row in enumerate(d):
        order = np.argsort(row, kind="stable")[:k]
        listed[i, order[np.isfinite(row[order])]] = True
    return listed


def others(X):
    d = distances(X)
    np.fill_diagonal(d, np.inf)
    return d


def check(G, pattern, weights, dtype):
    """Pattern and weights (dense), symmetry to the bit, empty diagonal."""
    n = len(pattern)
    assert isinstance(G, sp.csr_array) and G.shape == (n, n) and G.dtype == dtype
    assert G.has_sorted_indices
    stored = sp.csr_array((np.ones(G.nnz), G.indices, G.indptr), shape=G.shape).toarray()
    np.testing.assert_array_equal(stored, pattern.astype(float))
    dense = G.toarray()
    np.testing.assert_array_equal(dense, dense.T)
    assert not pattern.diagonal().any()
    np.testing.assert_allclose(dense, np.where(pattern, weights, 0), rtol=1e-12 if dtype == np.float64 else 2e-6)


def union(listed):
    return listed | listed.T


# beta


@pytest.mark.parametrize("dtype", DTYPES)
def test_mean_sq_distance(rng, dtype):
    X = rng.standard_normal((40, 5)).astype(dtype)
    np.testing.assert_allclose(mean_sq_distance(X), mean_of_pairs(X), rtol=1e-13)
    np.testing.assert_allclose(mean_sq_distance(sp.csr_array(X)), mean_of_pairs(X), rtol=1e-13)
    holes = X * (rng.random(X.shape) < 0.3)
    np.testing.assert_allclose(mean_sq_distance(sp.csr_matrix(holes)), mean_of_pairs(holes), rtol=1e-13)


def test_mean_sq_distance_far_from_the_origin_and_out_of_range(rng):
    X = rng.integers(-50, 50, (30, 4)).astype(float)
    assert mean_sq_distance(X + 2.0**40) == pytest.approx(mean_of_pairs(X), rel=1e-14)
    assert mean_sq_distance(np.full((7, 2), 0.1)) == 0
    assert mean_sq_distance([[3.0, 4.0]]) == 0
    assert mean_sq_distance(X * 2.0**400) == pytest.approx(mean_of_pairs(X) * 2.0**800, rel=1e-14)
    assert mean_sq_distance(X * 2.0**-600) > 0
    assert np.isfinite(mean_sq_distance(X * 2.0**900))


def test_equal_rows_take_beta_1():
    X = np.full((4, 3), 0.1)
    np.testing.assert_array_equal(full_graph(X), 1 - np.eye(4))
    assert (knn_graph(X, 2).data == 1).all()


# Neighbours


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", ["union", "mutual"])
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("beta", ["mean", 0.7])
def test_knn_graph(rng, weights, mode, beta, dtype):
    X = rng.standard_normal((50, 4)).astype(dtype)
    listed = nearest(others(X), 6)
    pattern = union(listed) if mode == "union" else listed & listed.T
    width = mean_of_pairs(X) if beta == "mean" else beta
    expected = weigh(distances(X), weights, width)
    check(knn_graph(X, 6, weights=weights, beta=beta, mode=mode), pattern, expected, dtype)
    check(knn_graph(sp.csr_array(X), 6, weights=weights, beta=beta, mode=mode), pattern, expected, dtype)
    lists = knn(X, 6)
    check(knn_graph(X, weights=weights, beta=beta, mode=mode, neighbors=lists), pattern, expected, dtype)


def local_weights(X):
    squares = distances(X) ** 2
    widths = [0.25 * np.mean([s for s in np.sort(row)[1:6] if s > 0] or [np.nan]) for row in squares]
    widths = np.where(np.isnan(widths), np.nanmin(widths), widths)
    return np.exp(-squares / np.sqrt(np.outer(widths, widths)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("k", [1, 3, 8])
def test_local_widths(rng, dtype, k):
    X = rng.standard_normal((60, 3)).astype(dtype) * np.geomspace(1, 3, 60)[:, None].astype(dtype)
    X[7] = X[20]  # a copy does not count
    X[30:36] = X[40]  # nothing but copies: the smallest width of the others
    expected = local_weights(X)
    G = knn_graph(X, k)
    tolerance = 2e-4 if dtype == np.float32 else 1e-12
    rows, columns = G.nonzero()
    np.testing.assert_allclose(G.toarray()[rows, columns], expected[rows, columns], rtol=tolerance, atol=1e-13)
    assert G.dtype == dtype
    assert (G.toarray() == G.toarray().T).all()
    pattern = (others(X) <= 0.9) & ~np.eye(60, dtype=bool)
    found = radius_graph(X, 0.9).toarray()
    np.testing.assert_allclose(found, np.where(pattern, expected, 0), rtol=tolerance, atol=1e-13)
    lists = knn(X, max(k, 5))
    again = knn_graph(X, neighbors=lists)
    np.testing.assert_array_equal(again.toarray(), knn_graph(X, max(k, 5)).toarray())


def test_local_widths_of_any_scale_and_density(rng):
    X = rng.standard_normal((50, 2))
    for scale in (2.0**-400, 2.0**400):
        np.testing.assert_allclose(knn_graph(X * scale, 6).toarray(), knn_graph(X, 6).toarray(), rtol=1e-12)
    X[0] = 1e6  # far from all others: its edges are faint, and still there
    W = knn_graph(X, 6)
    assert W.data.min() >= 9e-14
    assert n_components(W) == 1
    assert (knn_graph(np.zeros((7, 2)), 3).data == 1).all()
    assert (knn_graph([[0.0], [2.0]], 1).data == np.exp(-4.0)).all()


@pytest.mark.parametrize("call", [lambda X: full_graph(X, beta="local"),
                                  lambda X: class_graphs(X, np.arange(9) % 2, beta="local")])
def test_local_widths_are_for_neighbour_graphs(rng, call):
    with pytest.raises(ValueError, match=r"beta must be 'mean' or a positive number. Got 'local'"):
        call(rng.standard_normal((9, 2)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("chunk", [250, 1 << 22])
def test_sparse_neighbours_are_the_dense_ones(rng, monkeypatch, dtype, chunk):
    monkeypatch.setattr(search, "CHUNK", chunk)
    X = (rng.integers(-2, 3, (70, 9)) * (rng.random((70, 9)) < 0.3)).astype(dtype)  # many ties and duplicates
    for k in (1, 5, 69):
        d, i = search._sparse_knn(sp.csr_array(X), k)
        dense_d, dense_i = knn(X, k)
        np.testing.assert_array_equal(i, dense_i)
        np.testing.assert_allclose(d, dense_d, rtol=1e-6 if dtype == np.float32 else 1e-14)
    assert (search._sparse_knn(sp.csr_array((5, 3)), 2)[0] == 0).all()


def test_sparse_rows_close_together_and_far_from_the_origin(rng):
    X = 1e6 + rng.random((60, 3))
    np.testing.assert_array_equal(search._sparse_knn(sp.csr_array(X), 7)[1], knn(X, 7)[1])


def test_lists_with_the_row_itself():
    X = np.array([[0.0], [1.0], [3.0]])
    lists = [[0.0, 1.0], [0.0, 1.0], [0.0, 2.0]], [[0, 1], [1, 0], [2, 1]]
    G = knn_graph(X, weights="distance", neighbors=lists)
    np.testing.assert_array_equal(G.toarray(), [[0, 1, 0], [1, 0, 2], [0, 2, 0]])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("chunk", [1, 200, 1 << 22])
def test_radius_graph(rng, monkeypatch, weights, dtype, chunk):
    monkeypatch.setattr("manifast.graphs.distances.CHUNK", chunk)
    X = rng.standard_normal((60, 3)).astype(dtype)
    X[7] = X[20]
    pattern = others(X) <= 1.1
    assert not pattern.any(axis=1).all()
    G = radius_graph(X, 1.1, weights=weights, beta="mean")
    check(G, pattern, weigh(distances(X), weights, mean_of_pairs(X)), dtype)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_radius_includes_its_own_length(scale):
    X = np.arange(5.0)[:, None] * scale
    G = radius_graph(X, 2 * scale, weights="distance")
    step = np.abs(np.subtract.outer(np.arange(5), np.arange(5)))
    np.testing.assert_array_equal(G.toarray(), np.where(step <= 2, step * scale, 0))
    np.testing.assert_array_equal(full_graph(X, weights="distance"), step * scale)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weights", WEIGHTS)
def test_full_graph(rng, weights, dtype):
    X = rng.standard_normal((45, 3)).astype(dtype)
    G = full_graph(X, weights=weights)
    assert isinstance(G, np.ndarray) and G.dtype == dtype
    np.testing.assert_array_equal(G, G.T)
    expected = weigh(distances(X), weights, mean_of_pairs(X)) * (1 - np.eye(45))
    np.testing.assert_allclose(G, expected, rtol=1e-5 if dtype == np.float32 else 1e-12)
    check(sp.csr_array(full_graph(X, beta=2.5)), ~np.eye(45, dtype=bool), weigh(distances(X), "heat", 2.5), dtype)


# L1


def coded(X, i):
    """The code of row i by linear programming: min |a|_1 + |e|_1 with a D + e = x."""
    n, p = X.shape
    D = np.delete(X, i, axis=0)
    constraints = np.vstack([D, -D, np.eye(p), -np.eye(p)]).T
    found = linprog(np.ones(constraints.shape[1]), A_eq=constraints, b_eq=X[i], method="highs").x
    return np.insert(found[: n - 1] - found[n - 1 : 2 * n - 2], i, 0)


def test_l1_graph(rng):
    X = rng.standard_normal((14, 5))
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    A = np.abs([coded(unit, i) for i in range(14)])
    G = l1_graph(X)
    assert isinstance(G, sp.csr_array)
    np.testing.assert_allclose(G.toarray(), (A + A.T) / 2, atol=1e-7)
    np.testing.assert_array_equal(G.toarray(), G.toarray().T)
    assert (G.diagonal() == 0).all()
    raw = np.abs([coded(X, i) for i in range(14)])
    np.testing.assert_allclose(l1_graph(X, normalize=False).toarray(), (raw + raw.T) / 2, atol=1e-7)
    narrow = l1_graph(X.astype(np.float32), lam=0.1, errors=False)
    assert narrow.dtype == np.float32
    np.testing.assert_allclose(narrow.toarray(), l1_graph(X, lam=0.1, errors=False).toarray(), atol=1e-5)


def test_l1_graph_scales_and_zero_rows(rng):
    X = rng.standard_normal((12, 4))
    scaled = X * 10.0 ** rng.integers(-150, 150, (12, 1))
    np.testing.assert_allclose(l1_graph(scaled).toarray(), l1_graph(X).toarray(), atol=1e-12)
    X[3] = 0
    G = l1_graph(X)
    assert G[[3]].nnz == 0 and G.nnz > 0


@pytest.mark.parametrize("bar", [True, False])
def test_l1_graph_shows_progress(rng, capsys, monkeypatch, bar):
    X = rng.standard_normal((120, 4))
    if bar:

        class Module:
            @staticmethod
            def tqdm(items, desc):
                print(f"bar of {len(items)}: {desc}", file=sys.stderr)
                return items

        monkeypatch.setitem(sys.modules, "tqdm", Module)
    else:
        monkeypatch.setitem(sys.modules, "tqdm", None)
    silent = l1_graph(X)
    assert capsys.readouterr() == ("", "")
    told = l1_graph(X, verbose=True)
    assert ("bar of 60: L1 graph" if bar else "L1 graph: 120 of 120 rows") in capsys.readouterr().err
    np.testing.assert_array_equal(silent.toarray(), told.toarray())


# Classes


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize(("k_within", "k_between"), [(None, None), (3, 4), (39, 39), (1, None)])
def test_class_graphs(rng, weights, k_within, k_between, dtype):
    X = rng.standard_normal((40, 3)).astype(dtype)
    y = np.repeat([5, -1, 2, 9], [1, 20, 7, 12])[rng.permutation(40)]
    same = y[:, None] == y
    d = others(X)
    w = weigh(distances(X), weights, mean_of_pairs(X))
    within, between = class_graphs(X, y, n_neighbors_within=k_within, n_neighbors_between=k_between, weights=weights)
    if k_within is None:
        pattern = same & ~np.eye(40, dtype=bool)
    else:
        pattern = union(nearest(np.where(same, d, np.inf), k_within))
    if dtype == np.float64 or weights == "binary" or k_within is not None:
        check(within, pattern, w, dtype)
    else:
        np.testing.assert_allclose(within.toarray(), np.where(pattern, w, 0), rtol=1e-5)
    if k_between is None:
        check(between, ~same, np.ones_like(w), dtype)
    else:
        check(between, union(nearest(np.where(same, np.inf, d), k_between)), w, dtype)


@pytest.mark.parametrize("small", [1, 7, 12, 19, 20])
def test_one_search_for_all_small_classes(rng, small, monkeypatch):
    """The same graph, ties and all, whichever classes count as small."""
    X = rng.integers(0, 3, (40, 2)).astype(float)
    y = np.repeat([5, -1, 2, 9], [1, 20, 7, 12])[rng.permutation(40)]
    graphs = []
    for limit in (0, small):
        monkeypatch.setattr("manifast.graphs.classes._SMALL_CLASS", limit)
        graphs += [class_graphs(X, y, n_neighbors_between=k, weights="distance")[1] for k in (1, 4, 25, 39)]
    for one, other in zip(graphs[:4], graphs[4:], strict=True):
        for part in ("indptr", "indices", "data"):
            np.testing.assert_array_equal(getattr(one, part), getattr(other, part))


def test_labels_of_any_kind(rng):
    X = rng.standard_normal((6, 2))
    codes = [0, 0, 1, 1, 2, 2]
    expected = [G.toarray() for G in class_graphs(X, codes)]
    mixed = np.array(["a", "a", -1, -1, "c", "c"], dtype=object)
    for y in (["x", "x", "a", "a", "b", "b"], mixed, [-1.0, -1.0, 7.0, 7.0, 0.0, 0.0]):
        for G, H in zip(class_graphs(X, y), expected, strict=True):
            np.testing.assert_array_equal(G.toarray(), H)


# Bridges


def spanning_bridges(X, labels):
    """Kruskal over all pairs in different components, by (length, i, j)."""
    d, n = distances(X), len(X)
    pairs = sorted((d[i, j], i, j) for i in range(n) for j in range(i + 1, n) if labels[i] != labels[j])
    labels, found = np.array(labels), {}
    for length, i, j in pairs:
        if labels[i] != labels[j]:
            labels[labels == labels[j]] = labels[i]
            found[i, j] = length
    return found


def blocks(rng, sizes, dtype=np.float64, grid=False):
    """Rows at random places and a graph that joins those of each block in a chain."""
    n = sum(sizes)
    X = (rng.integers(0, 6, (n, 2)) if grid else rng.random((n, 2)) * 10).astype(dtype)
    labels = np.repeat(np.arange(len(sizes)), sizes)[rng.permutation(n)]
    W = np.zeros((n, n), dtype=dtype)
    for c in range(len(sizes)):
        rows = np.flatnonzero(labels == c)
        for i, j in itertools.pairwise(rows):
            W[i, j] = W[j, i] = rng.uniform(0.2, 1)
    return X, labels, W


@pytest.mark.parametrize("grid", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("small", [1, 32])
@pytest.mark.parametrize("sizes", [(3, 2), (1, 1, 1), (20, 1, 1, 4, 2), (5,) * 9, (1,) * 33])
def test_bridges_are_the_shortest(rng, monkeypatch, sizes, small, weights, dtype, grid):
    monkeypatch.setattr("manifast.graphs.bridges._SMALL_COMPONENT", small)
    X, labels, W = blocks(rng, sizes, dtype, grid)
    G = connect_components(sp.csr_array(W), X, weights=weights, beta=3.0)
    assert n_components(G, weights=weights) == 1 and G.dtype == dtype
    expected = W.astype(float)
    smallest = W[W > 0].min() if (W > 0).any() else np.finfo(dtype).tiny
    for (i, j), length in spanning_bridges(X, labels).items():
        value = {"heat": np.exp(-(length**2) / 3.0), "binary": 1.0, "distance": length}[weights]
        expected[i, j] = expected[j, i] = value if weights == "distance" else max(value, smallest)
    np.testing.assert_allclose(G.toarray(), expected, rtol=1e-12 if dtype == np.float64 else 1e-5)
    np.testing.assert_array_equal(G.toarray(), G.toarray().T)
    assert G.nnz == (W > 0).sum() + 2 * (len(sizes) - 1)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32 - 1), st.lists(st.integers(1, 9), min_size=2, max_size=12), st.booleans())
def test_any_components(seed, sizes, grid):
    rng = np.random.default_rng(seed)
    X, labels, W = blocks(rng, sizes, grid=grid)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("manifast.graphs.bridges._SMALL_COMPONENT", int(rng.choice([0, 3, 32])))
        patch.setattr("manifast.graphs.bridges._PIECES", int(rng.choice([0, 4, 500])))
        G = connect_components(W, X, weights="distance")
    bridges = spanning_bridges(X, labels)
    rows, columns = sp.csr_array((np.ones(G.nnz), G.indices, G.indptr), shape=G.shape).nonzero()
    added = {(int(i), int(j)) for i, j in zip(rows, columns, strict=True) if i < j and W[i, j] == 0}
    assert added == set(bridges)


@pytest.mark.parametrize("pieces", [0, 500])
def test_clusters_far_apart(rng, monkeypatch, pieces):
    """Bounds that leave few rows to search, in more dimensions than a tree likes, at any scale."""
    monkeypatch.setattr("manifast.graphs.bridges._PIECES", pieces)
    centres = rng.standard_normal((7, 20)) * 30
    labels = rng.integers(0, 7, 350)
    X = centres[labels] + rng.standard_normal((350, 20))
    expected = spanning_bridges(X, labels)
    for scale in (1.0, 2.0**500, 2.0**-500):
        W = knn_graph(X * scale, 5, weights="distance")
        assert n_components(W, weights="distance") == 7
        added = sp.coo_array(connect_components(W, X * scale, weights="distance") - W)
        lengths = {(int(i), int(j)): w for i, j, w in zip(added.row, added.col, added.data, strict=True) if i < j and w}
        assert lengths.keys() == expected.keys()
        for pair, length in lengths.items():
            assert length == pytest.approx(expected[pair] * scale, rel=1e-13)


@pytest.mark.parametrize("dtype", DTYPES)
def test_components_around_one_another(rng, monkeypatch, dtype):
    """Spheres with one centre, where no line tells them apart, far from the origin."""
    monkeypatch.setattr("manifast.graphs.bridges._SMALL_COMPONENT", 5)
    labels = np.repeat(np.arange(4), 40)
    X = rng.standard_normal((160, 6))
    X = (X / np.linalg.norm(X, axis=1, keepdims=True) * (1 + 3 * labels[:, None]) + 100).astype(dtype)
    W = sp.block_diag([np.ones((40, 40)) - np.eye(40)] * 4, format="csr").astype(dtype)
    added = sp.coo_array(connect_components(W, X, weights="distance") - W)
    pairs = {(int(i), int(j)) for i, j, w in zip(added.row, added.col, added.data, strict=True) if i < j and w}
    assert pairs == set(spanning_bridges(X.astype(np.float64), labels))


def test_connected_graphs_come_back_as_they_are(rng):
    X = rng.random((30, 2))
    W = knn_graph(X, 10)
    assert n_components(W) == 1
    assert connect_components(W, X) is W


def test_zero_weights_join_only_as_distances():
    X = np.array([[0.0], [0.0], [1.0]])
    W = radius_graph(X, 0.5, weights="distance")  # a stored 0
    assert W.nnz == 2 and n_components(W, weights="distance") == 2 and n_components(W) == 3
    G = connect_components(W, X, weights="distance")
    assert G.nnz == 4 and n_components(G, weights="distance") == 1
    np.testing.assert_array_equal(G.toarray(), [[0, 0, 1], [0, 0, 0], [1, 0, 0]])
    faded = knn_graph([[0.0], [1e3], [2e3]], 2, beta=1.0)
    assert n_components(faded) == 3
    joined = connect_components(faded, [[0.0], [1e3], [2e3]], beta=1.0)
    assert n_components(joined) == 1 and joined.nnz == 6


def test_bits_do_not_depend_on_threads(rng):
    X = rng.standard_normal((200, 3))
    y = rng.integers(0, 3, 200)
    sparse_enough = radius_graph(X, 0.3)
    calls = [
        lambda t: knn_graph(X, 5, n_threads=t),
        lambda t: radius_graph(X, 0.5, n_threads=t),
        lambda t: sp.csr_array(full_graph(X, n_threads=t)),
        lambda t: l1_graph(X[:60], n_threads=t),
        lambda t: class_graphs(X, y, n_neighbors_within=4, n_neighbors_between=4, n_threads=t)[1],
        lambda t: connect_components(sparse_enough, X, n_threads=t),
    ]
    for call in calls:
        np.testing.assert_array_equal(call(1).toarray(), call(2).toarray())


X3 = np.array([[0.0], [1.0], [3.0]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: knn_graph(X3, 3), "n_neighbors must be an integer from 1 to 2 for 3 rows of X. Got 3 instead."),
        (lambda: knn_graph(X3, 0), "n_neighbors must be"),
        (lambda: knn_graph(X3, 1.5), "n_neighbors must be"),
        (lambda: knn_graph(X3, 1, weights="cosine"), "weights must be 'heat', 'binary' or 'distance'"),
        (lambda: knn_graph(X3, 1, beta="median"), "beta must be 'local', 'mean' or a positive number"),
        (lambda: knn_graph(X3, 1, beta=0), "beta must be a positive"),
        (lambda: knn_graph(X3, 1, mode="both"), "mode must be"),
        (lambda: knn_graph(X3 * np.nan, 1), "X must be finite"),
        (lambda: knn_graph(sp.csr_array(X3 * np.nan), 1), "X must be finite"),
        (lambda: knn_graph(sp.csr_array(X3 * 1j), 1), "X must hold real numbers"),
        (lambda: knn_graph(sp.csr_array(X3[:1]), 1), "X must have at least 2"),
        (lambda: knn_graph(X3, neighbors=5), "neighbors must be a pair"),
        (lambda: knn_graph(X3, neighbors=([[1.0]], [[0]])), "neighbors must have one row per row of X, 3. Got 1"),
        (lambda: radius_graph(X3, 0.0), "radius must be a positive"),
        (lambda: full_graph(X3[0]), "X must be a matrix"),
        (lambda: l1_graph(X3[:1]), "X must have at least 2"),
        (lambda: l1_graph(X3, lam=-1), "lam must be"),
        (lambda: class_graphs(X3, [1, 1, 1]), "y must hold at least 2 classes. Got 1 instead."),
        (lambda: class_graphs(X3, [1, 2]), "y must hold one label per row of X, 3"),
        (lambda: class_graphs(X3, [1, 2, np.nan]), "y must not hold NaN"),
        (lambda: class_graphs(X3, [1, 2, 2], n_neighbors_within=0), "n_neighbors_within must be"),
        (lambda: class_graphs(X3, [1, 2, 2], n_neighbors_between=5), "n_neighbors_between must be"),
        (lambda: connect_components(np.eye(2), X3), "X must have one row per node of W, 2"),
        (lambda: connect_components(np.ones((2, 3)), X3), "W must be a square matrix"),
        (lambda: connect_components([[0, 1.0], [0, 0]], X3[:2]), "W must be symmetric"),
        (lambda: connect_components([[0, -1.0], [-1.0, 0]], X3[:2]), "W must have finite weights"),
        (lambda: n_components(np.zeros((0, 0))), "W must have at least 1 row"),
    ],
)  # fmt: skip
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_widths_of_rows_do_not_depend_on_the_others(rng):
    """A copy among the rows changes how sums are taken, but no bit of another row's width."""
    for k in (1, 3, 5, 6, 10):
        for scale in (1.0, 1e-200, 1e200):
            distances = np.sort(rng.uniform(0.1, 1.0, (40, k)), axis=1) * scale
            plain = root_widths(distances)
            first = distances[:, :5] / scale
            np.testing.assert_allclose(plain, scale * np.sqrt(0.25 * np.mean(first**2, axis=1)), rtol=1e-14)
            distances[::3, 0] = 0
            with_copies = root_widths(distances)
            others = np.arange(40) % 3 > 0
            np.testing.assert_array_equal(with_copies[others], plain[others])
            for i in range(5):
                np.testing.assert_array_equal(root_widths(distances[i : i + 1]), with_copies[i : i + 1])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", ["knn_graph", "radius_graph", "full_graph", "connect_components", "class_graphs"])
def test_rows_whose_distances_leave_the_range(name, dtype, rng):
    """Weights follow from ratios of distances; distances themselves are refused."""
    rows = np.clip(rng.standard_normal((12, 3)), -1, 1)
    largest = 2.0 ** (np.finfo(dtype).maxexp - 1)
    apart = sp.csr_array(np.kron(np.eye(2), np.ones((6, 6)) - np.eye(6)))
    few = {"n_neighbors_within": 3, "n_neighbors_between": 2}
    calls = {
        "knn_graph": lambda X, unit, **rest: knn_graph(X, 3, **rest),
        "radius_graph": lambda X, unit, **rest: radius_graph(X, unit, **rest),
        "full_graph": lambda X, unit, **rest: full_graph(X, **rest),
        "connect_components": lambda X, unit, **rest: connect_components(apart.astype(X.dtype), X, **rest),
        "class_graphs": lambda X, unit, **rest: class_graphs(X, np.arange(12) % 2, **few, **rest)[1],
    }

    def dense(W):
        return W.toarray() if sp.issparse(W) else W

    call, X = calls[name], rows.astype(dtype)
    for weights in ("heat", "binary"):
        for beta in ("mean",) if name in ("full_graph", "class_graphs") else ("mean", "local"):
            expected, huge = (dense(call(X * dtype(unit), unit, weights=weights, beta=beta)) for unit in (1.0, largest))
            np.testing.assert_allclose(huge, expected, rtol=1e-5 if dtype == np.float32 else 1e-12)
    far = (largest * (1 - 2 * np.eye(12))).astype(dtype)
    with pytest.raises(ValueError, match="distances are in the range of float"):
        call(far, np.inf, weights="distance")
