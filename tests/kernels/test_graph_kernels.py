"""neighbor_graph and laplacian against dense NumPy and scipy.sparse.csgraph."""

import numpy as np
import pytest
import scipy.linalg as la
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import laplacian as csgraph_laplacian

from manifast._core import graph as core
from manifast._kernels import index_dtype
from manifast.kernels import laplacian, neighbor_graph

DTYPES = [np.float32, np.float64]


def neighbours(rng, n, k, dtype=np.float64):
    """Each row's k nearest of n points in the plane, by a plain sort."""
    X = rng.standard_normal((n, 2))
    d = np.linalg.norm(X[:, None] - X[None], axis=2)
    np.fill_diagonal(d, np.inf)
    order = np.argsort(d, axis=1)[:, :k]
    return np.take_along_axis(d, order, axis=1).astype(dtype), order


def shortest(distances, indices):
    """Dense matrix of listed distances, +inf where nothing is listed."""
    n = len(distances)
    d = np.full((n, n), np.inf, distances.dtype)
    for i in range(n):
        for length, j in zip(distances[i], indices[i], strict=True):
            if j != i:
                d[i, j] = min(d[i, j], length)
    return d


def dense_graph(distances, indices, weights, beta, mode):
    """(pattern, weights) of the graph, written out."""
    d = shortest(distances, indices)
    listed = np.isfinite(d)
    pattern = listed | listed.T if mode == "union" else listed & listed.T
    d = np.minimum(d, d.T)
    if weights == "binary":
        w = np.ones_like(d)
    elif weights == "distance":
        w = d
    else:
        w = np.exp(-(d.astype(np.float64) ** 2) / beta)
    return pattern, np.where(pattern, w, 0)


def check(G, distances, indices, weights, beta, mode):
    n = len(distances)
    pattern, w = dense_graph(distances, indices, weights, beta, mode)
    assert isinstance(G, sp.csr_array) and G.shape == (n, n) and G.dtype == distances.dtype
    assert G.indices.dtype == G.indptr.dtype == index_dtype(2 * np.size(distances))
    rows, columns = np.nonzero(pattern)  # row by row, columns ascending
    np.testing.assert_array_equal(G.indices, columns)
    np.testing.assert_array_equal(G.indptr, np.concatenate([[0], np.cumsum(pattern.sum(axis=1))]))
    tolerance = 4e-7 if distances.dtype == np.float32 else 1e-15
    if weights == "heat":  # the argument's rounding is magnified by its size
        tolerance = tolerance * (1 + np.max(distances.astype(float) ** 2 / beta, initial=0))
    np.testing.assert_allclose(G.data, w[rows, columns], rtol=tolerance if weights == "heat" else 0, atol=1e-300)
    transposed = G.T.tocsr()
    transposed.sort_indices()
    np.testing.assert_array_equal(transposed.data, G.data)  # symmetric to the bit
    np.testing.assert_array_equal(transposed.indices, G.indices)


def same_bits(A, B):
    for name in ("indptr", "indices", "data"):
        one, other = getattr(A, name), getattr(B, name)
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one.view(np.uint8), other.view(np.uint8))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", ["union", "mutual"])
@pytest.mark.parametrize("weights", ["heat", "binary", "distance"])
@pytest.mark.parametrize("k", [1, 3, 7, 8, 15, 16, 17, 31, 32, 33, 59])
def test_graph_of_nearest_neighbours(level, rng, k, weights, mode, dtype):
    d, i = neighbours(rng, 60, k, dtype)
    beta = 0.7 if weights == "heat" else None
    check(neighbor_graph(d, i, weights=weights, beta=beta, mode=mode), d, i, weights, beta, mode)


@pytest.mark.parametrize("mode", ["union", "mutual"])
@pytest.mark.parametrize("weights", ["heat", "distance"])
@pytest.mark.parametrize("k", [4, 20, 40])
def test_lists_that_contradict_repeat_and_name_themselves(level, rng, k, weights, mode):
    i = rng.integers(0, 45, (45, k))
    d = rng.uniform(0.1, 2, (45, k))
    beta = 2.0 if weights == "heat" else None
    check(neighbor_graph(d, i, weights=weights, beta=beta, mode=mode), d, i, weights, beta, mode)


@pytest.mark.parametrize("k", [256, 257, 300])
def test_long_lists(level, rng, k):
    d, i = neighbours(rng, 301, 300)
    i, d = i[:, rng.permutation(300)][:, :k], d[:, rng.permutation(300)][:, :k]  # distances no longer fit: all uneven
    check(neighbor_graph(d, i, weights="distance"), d, i, "distance", None, "union")
    i[:, 5] = i[:, k - 1]
    check(neighbor_graph(d, i, weights="distance", mode="mutual"), d, i, "distance", None, "mutual")


def test_one_contradiction_among_many(level, rng):
    """A single pair with two distances must not hide behind all the others."""
    d, i = neighbours(rng, 80, 6)
    listed = np.isfinite(shortest(d, i))
    a, b = np.argwhere(listed & listed.T)[0]
    for row, column in ((a, b), (b, a)):
        changed = d.copy()
        changed[row, list(i[row]).index(column)] /= 2
        check(neighbor_graph(changed, i, weights="distance"), changed, i, "distance", None, "union")
        check(neighbor_graph(changed, i, weights="distance", mode="mutual"), changed, i, "distance", None, "mutual")


def test_every_row_lists_the_same_node(level):
    """A hub: one row of the graph is full."""
    n = 700
    i = np.zeros((n, 1), np.int64)
    i[0] = 1
    d = np.arange(1.0, n + 1)[:, None]
    check(neighbor_graph(d, i, weights="distance"), d, i, "distance", None, "union")


def test_graph_edge_cases(level):
    empty = neighbor_graph(np.empty((0, 3)), np.empty((0, 3), int), weights="binary")
    assert empty.shape == (0, 0)
    alone = neighbor_graph([[0.0]], [[0]], weights="binary")
    assert alone.shape == (1, 1) and alone.nnz == 0
    zero = neighbor_graph([[0.0], [0.0]], [[1], [0]], weights="distance")
    assert zero.nnz == 2 and not zero.data.any()  # an edge of length 0 stays an edge
    pair = neighbor_graph(np.array([[1.0], [1.0]]), np.array([[1], [0]], np.uint8), beta=1)
    np.testing.assert_allclose(pair.toarray(), [[0, np.exp(-1)], [np.exp(-1), 0]], rtol=1e-15)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scale", [1e-12, 1e-25, 1e12, 1e25])
def test_heat_weights_have_no_scale(level, rng, scale, dtype):
    d, i = neighbours(rng, 30, 4)
    wanted = neighbor_graph(d, i, beta=0.5).data
    found = neighbor_graph((d * scale).astype(dtype), i, beta=0.5 * scale**2).data
    np.testing.assert_allclose(found, wanted, rtol=1e-5 if dtype == np.float32 else 1e-13, atol=1e-40)


def test_heat_weights_far_and_near(level):
    d = np.array([[1e30], [1e-30], [30.0], [1.0]])
    G = neighbor_graph(d, [[1], [0], [3], [2]], beta=1.0)  # the smaller distance of each pair
    np.testing.assert_array_equal(G.data, [1, 1, np.exp(-1), np.exp(-1)])
    far = neighbor_graph(np.array([[1e200], [1e200]]), [[1], [0]], beta=1.0)
    np.testing.assert_array_equal(far.data, [0, 0])
    fading = neighbor_graph(np.array([[27.0], [27.0]]), [[1], [0]], beta=1.0)
    np.testing.assert_allclose(fading.data, np.exp(-729.0), rtol=1e-9)  # subnormal


@pytest.mark.parametrize("k", [5, 40])
@pytest.mark.parametrize("mode", ["union", "mutual"])
def test_graph_threads(level, rng, mode, k):
    n = 1500
    i = rng.integers(0, n, (n, k))
    d = rng.uniform(0.1, 1, (n, k))
    wanted = neighbor_graph(d, i, beta=0.4, mode=mode, n_threads=1)
    for threads in (2, 3, 20):
        same_bits(neighbor_graph(d, i, beta=0.4, mode=mode, n_threads=threads), wanted)
    for normalization in (None, "sym", "rw"):
        L, degrees = laplacian(wanted, normalization=normalization, n_threads=1)
        for threads in (2, 3, 20):
            again, same_degrees = laplacian(wanted, normalization=normalization, n_threads=threads)
            same_bits(again, L)
            np.testing.assert_array_equal(same_degrees, degrees)


@pytest.mark.parametrize("k", [6, 12, 40])
def test_wide_indices_give_the_same_graph(level, rng, k):
    d, i = neighbours(rng, 90, k)
    i = np.ascontiguousarray(i)
    narrow = core.neighbor_graph(d, i, False, 0, 1.0, False, 2)
    wide = core.neighbor_graph(d, i, False, 0, 1.0, True, 2)
    assert wide[0].dtype == wide[1].dtype == np.int64
    for one, other in zip(narrow, wide, strict=True):
        np.testing.assert_array_equal(one, other)
    for kind in range(3):
        results = [core.laplacian(*arrays, kind, 0, 2) for arrays in (narrow, wide)]
        assert results[1][0].dtype == results[1][1].dtype == np.int64
        for one, other in zip(*results, strict=True):
            np.testing.assert_array_equal(one, other)


def test_layouts(rng):
    d, i = neighbours(rng, 50, 5)
    wanted = neighbor_graph(d, i, beta=1.0)
    same_bits(neighbor_graph(np.asfortranarray(d), np.asfortranarray(i), beta=1.0), wanted)
    same_bits(neighbor_graph(np.repeat(d, 2, axis=1)[:, ::2], i.astype(np.int32), beta=1.0), wanted)
    same_bits(neighbor_graph(d.astype(">f8"), i.astype(">i8"), beta=1.0), wanted)
    d.flags.writeable = i.flags.writeable = False
    same_bits(neighbor_graph(d, i, beta=1.0), wanted)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"indices": [[1], [-1]]}, r"indices must be between 0 and n - 1 = 1. Got \[-1\] in row 1"),
        ({"indices": [[2], [0]]}, r"indices must be between 0 and n - 1 = 1. Got \[2\] in row 0"),
        ({"indices": [[1.0], [0.0]]}, "indices must be integers"),
        ({"indices": [[1]]}, "indices must have the shape of distances"),
        ({"distances": [[1.0], [-1.0]]}, r"distances must not be negative\. Got -1\.0 in row 1"),
        ({"distances": [[1.0], [np.nan]]}, "distances must be finite"),
        ({"distances": [[1.0], [np.inf]]}, "distances must be finite"),
        ({"beta": None}, "beta must be a positive number"),
        ({"beta": 0.0}, "beta must be a positive, finite number"),
        ({"beta": -1.0}, "beta must be a positive, finite number"),
        ({"weights": "binary"}, "beta must be None for binary weights"),
        ({"weights": "gauss"}, "weights must be 'heat', 'binary' or 'distance'"),
        ({"mode": "both"}, "mode must be 'union' or 'mutual'"),
        ({"n_threads": 0}, "n_threads must be None or an integer"),
    ],
)
def test_graph_errors(change, message):
    arguments = {"distances": [[1.0], [1.0]], "indices": [[1], [0]], "beta": 1.0} | change
    with pytest.raises(ValueError, match=message):
        neighbor_graph(arguments.pop("distances"), arguments.pop("indices"), **arguments)


@pytest.mark.parametrize("k", [3, 20, 50])
def test_out_of_range_anywhere_is_found(level, rng, k):
    for _ in range(30):
        i = rng.integers(0, 300, (300, k))
        row, column, bad = rng.integers(300), rng.integers(k), rng.choice([-1, 300, 2**40, -(2**40)])
        i[row, column] = bad
        with pytest.raises(ValueError, match=f"in row {row}"):
            neighbor_graph(np.ones((300, k)), i, weights="binary", n_threads=2)


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_any_lists(data):
    n = data.draw(st.integers(1, 40), "n")
    k = data.draw(st.integers(1, 40), "k")
    mode = data.draw(st.sampled_from(["union", "mutual"]), "mode")
    dtype = data.draw(st.sampled_from(DTYPES), "dtype")
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1), "seed"))
    i = rng.integers(0, n, (n, k))
    d = rng.integers(0, 4, (n, k)).astype(dtype)
    check(neighbor_graph(d, i, weights="distance", mode=mode, n_threads=2), d, i, "distance", None, mode)


def random_graph(rng, n, density, dtype=np.float64, loops=False):
    W = rng.uniform(0.1, 1, (n, n)) * (rng.uniform(size=(n, n)) < density)
    W = np.triu(W, 1)
    W = W + W.T
    if loops:
        W += np.diag(rng.uniform(0, 3, n) * (rng.uniform(size=n) < 0.5))
    return W.astype(dtype)


def dense_laplacian(W, normalization):
    W = W - np.diag(np.diag(W))
    degrees = W.sum(axis=1)
    if normalization is None:
        return np.diag(degrees) - W, degrees
    safe = np.where(degrees > 0, degrees, 1)
    scaled = W / np.sqrt(np.outer(safe, safe)) if normalization == "sym" else W / safe[:, None]
    return np.diag((degrees > 0).astype(float)) - scaled, degrees


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("normalization", [None, "sym", "rw"])
@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize("density", [0.0, 0.03, 0.3, 1.0])
def test_laplacian(level, rng, density, loops, normalization, dtype):
    W = random_graph(rng, 40, density, dtype, loops)
    if density == 0.03:
        assert not (W - np.diag(np.diag(W))).any(axis=1).all()  # some nodes are isolated
    L, degrees = laplacian(sp.csr_array(W), normalization=normalization)
    wanted, wanted_degrees = dense_laplacian(W.astype(np.float64), normalization)
    eps = np.finfo(dtype).eps
    assert isinstance(L, sp.csr_array) and L.dtype == degrees.dtype == dtype
    np.testing.assert_allclose(L.toarray(), wanted, rtol=4 * eps, atol=0)
    np.testing.assert_allclose(degrees, wanted_degrees, rtol=4 * eps, atol=0)
    assert L.has_canonical_format and (np.diff(L.indptr) >= 1).all()
    check_order = sp.csr_array((L.data, L.indices, L.indptr), shape=L.shape)  # flags found anew
    assert check_order.has_canonical_format
    np.testing.assert_array_equal(L.diagonal() == 0, degrees == 0)
    if normalization != "rw":
        np.testing.assert_array_equal(L.toarray(), L.toarray().T)  # to the bit
        eigenvalues = np.linalg.eigvalsh(L.toarray().astype(np.float64))
        assert eigenvalues.min() > -100 * eps
        if normalization == "sym":
            assert eigenvalues.max() < 2 + 100 * eps
    if normalization != "sym":
        np.testing.assert_allclose(L.sum(axis=1), 0, atol=40 * eps * max(1, degrees.max()))


@pytest.mark.parametrize("normed", [False, True])
@pytest.mark.parametrize("loops", [False, True])
def test_laplacian_agrees_with_csgraph(level, rng, loops, normed):
    W = sp.csr_array(random_graph(rng, 60, 0.02, loops=loops))
    theirs, diagonal = csgraph_laplacian(W, normed=normed, return_diag=True)
    ours, degrees = laplacian(W, normalization="sym" if normed else None)
    np.testing.assert_allclose(ours.toarray(), theirs.toarray(), rtol=1e-15, atol=1e-15)
    if normed:
        np.testing.assert_allclose(np.where(degrees > 0, np.sqrt(degrees), 1), diagonal, rtol=1e-15, atol=1e-15)
    else:
        np.testing.assert_allclose(degrees, diagonal, rtol=1e-15, atol=1e-15)


@pytest.mark.parametrize("normalization", [None, "sym", "rw"])
def test_disconnected_graph_has_one_zero_eigenvalue_per_component(level, rng, normalization):
    blocks = [np.ones((n, n)) - np.eye(n) for n in (3, 4, 5)]
    W = sp.csr_array(la.block_diag(*blocks, np.zeros((2, 2))))  # and two isolated nodes
    L, _ = laplacian(W, normalization=normalization)
    eigenvalues = np.linalg.eigvals(L.toarray()).real
    assert (np.abs(eigenvalues) < 1e-12).sum() == 5


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "dia", "bsr"])
def test_laplacian_of_any_format(rng, form):
    W = random_graph(rng, 20, 0.3, loops=True)
    wanted = laplacian(sp.csr_array(W))[0]
    for stored in (sp.csr_array(W).asformat(form), sp.csr_matrix(W).asformat(form)):
        same_bits(laplacian(stored)[0], wanted)
    same_bits(laplacian(W)[0], wanted)
    same_bits(laplacian(np.asfortranarray(W))[0], wanted)
    same_bits(laplacian(W.tolist())[0], wanted)


def test_laplacian_leaves_its_input_alone(rng):
    W = sp.csr_array(random_graph(rng, 20, 0.3))
    columns = W.indices.copy()
    columns[: W.indptr[1]] = columns[: W.indptr[1]][::-1]
    data = W.data.copy()
    data[: W.indptr[1]] = data[: W.indptr[1]][::-1]
    unsorted = sp.csr_array((data.copy(), columns.copy(), W.indptr.copy()), shape=W.shape)
    same_bits(laplacian(unsorted)[0], laplacian(W)[0])
    np.testing.assert_array_equal(unsorted.indices, columns)
    np.testing.assert_array_equal(unsorted.data, data)
    wide = sp.csr_array(W)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    same_bits(laplacian(wide)[0], laplacian(W)[0])
    W.data.flags.writeable = W.indices.flags.writeable = W.indptr.flags.writeable = False
    laplacian(W)


def test_laplacian_dtypes(rng):
    W = (random_graph(rng, 15, 0.4) > 0).astype(int)
    wanted = laplacian(W.astype(float))[0]
    for dtype in (bool, np.int8, np.uint32, ">f8"):
        same_bits(laplacian(W.astype(dtype))[0], wanted)
    assert laplacian(W.astype(np.float16))[0].dtype == np.float32


@pytest.mark.parametrize("n", [0, 1, 3])
def test_laplacian_without_edges(n):
    for W in (np.zeros((n, n)), sp.csr_array((n, n)), np.eye(n)):
        for normalization in (None, "sym", "rw"):
            L, degrees = laplacian(W, normalization=normalization)
            assert L.shape == (n, n) and degrees.shape == (n,)
            assert not L.toarray().any() and not degrees.any()


@pytest.mark.parametrize("scale", [1e-320, 1e-300, 1e300])
def test_normalized_laplacians_have_no_scale(level, rng, scale):
    W = np.array([[0, 1, 2], [1, 0, 4], [2, 4, 0]]) * scale
    for normalization in ("sym", "rw"):
        wanted = laplacian(W / scale, normalization=normalization)[0]
        np.testing.assert_allclose(
            laplacian(W, normalization=normalization)[0].toarray(),
            wanted.toarray(),
            rtol=1e-3 if scale < 1e-310 else 1e-14,
        )


@pytest.mark.parametrize(
    "W, message",
    [
        (np.ones((2, 3)), r"W must be a square matrix. Got shape \(2, 3\)"),
        (np.ones(3), "W must be a square matrix"),
        (
            np.array([[0, 1], [2, 0.0]]),
            r"W must be symmetric\. Got entries \(i, j\) and \(j, i\) that differ by up to 1",
        ),
        (np.array([[0, 1], [0, 0.0]]), "W must be symmetric"),
        (np.array([[0, -1], [-1, 0.0]]), "finite weights that are not negative"),
        (np.array([[-1, 1], [1, 0.0]]), "finite weights that are not negative"),
        (np.array([[0, np.nan], [np.nan, 0]]), "finite weights that are not negative"),
        (np.array([[0, np.inf], [np.inf, 0]]), "finite weights that are not negative"),
        (np.array([[0, 1j], [1j, 0]]), "W must hold real numbers"),
        (np.array([["a"]]), "W must hold real numbers"),
    ],
)
def test_laplacian_errors(level, W, message):
    with pytest.raises(ValueError, match=message):
        laplacian(W)
    if W.ndim == 2 and W.dtype.kind != "U":
        with pytest.raises(ValueError, match=message):
            laplacian(sp.csr_array(W))


def test_laplacian_rejects_an_unknown_normalization():
    with pytest.raises(ValueError, match=r"normalization must be None, 'sym' or 'rw'\. Got 'symmetric'"):
        laplacian(np.zeros((2, 2)), normalization="symmetric")


@pytest.mark.parametrize(
    "array, value", [("indices", 4), ("indices", -1), ("indices", 2**31 - 1), ("indptr", -1), ("indptr", 100)]
)
def test_laplacian_survives_a_corrupt_matrix(level, array, value):
    W = sp.csr_array(np.ones((4, 4)) - np.eye(4))
    W.has_canonical_format = W.has_sorted_indices = True
    getattr(W, array)[2] = value
    with pytest.raises(ValueError, match="W must be a valid CSR matrix"):
        laplacian(W)


def test_symmetry_within_rounding_passes_and_anything_more_does_not(level, rng):
    W = random_graph(rng, 50, 0.2)
    i, j = np.argwhere(W)[7]
    for change, fine in ((1e-13, True), (1e-6, False)):
        bent = W.copy()
        bent[i, j] *= 1 + change
        if fine:
            np.testing.assert_allclose(laplacian(bent)[0].toarray(), laplacian(W)[0].toarray(), rtol=1e-12, atol=1e-12)
        else:
            with pytest.raises(ValueError, match="W must be symmetric"):
                laplacian(bent)


def test_asymmetries_that_cancel_in_a_sum_are_seen(level):
    """Two edges with their weights exchanged on one side: row sums and totals do not tell."""
    W = np.zeros((4, 4))
    W[0, 1], W[1, 0], W[2, 3], W[3, 2] = 1, 2, 2, 1
    with pytest.raises(ValueError, match="W must be symmetric"):
        laplacian(W)
    W = np.zeros((3, 3))
    W[0, 1] = W[1, 2] = W[2, 0] = 1  # a directed triangle
    with pytest.raises(ValueError, match="W must be symmetric"):
        laplacian(W)


def test_zeros_of_either_sign_and_stored_on_one_side_are_symmetric(level):
    W = sp.csr_array(([0.0, 1.0, 1.0], ([0, 0, 1], [2, 1, 0])), shape=(3, 3))
    assert W.nnz == 3
    np.testing.assert_array_equal(laplacian(W)[0].toarray(), [[1, -1, 0], [-1, 1, 0], [0, 0, 0]])
    W = sp.csr_array(([0.0, -0.0], ([0, 1], [1, 0])), shape=(2, 2))
    np.testing.assert_array_equal(laplacian(W, normalization="sym")[0].toarray(), np.zeros((2, 2)))


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_any_small_graph(data):
    n = data.draw(st.integers(1, 25), "n")
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1), "seed"))
    normalization = data.draw(st.sampled_from([None, "sym", "rw"]), "normalization")
    W = rng.integers(0, 4, (n, n)) * (rng.uniform(size=(n, n)) < rng.uniform())
    W = (W + W.T).astype(float)
    L, degrees = laplacian(W, normalization=normalization, n_threads=2)
    wanted, wanted_degrees = dense_laplacian(W, normalization)
    np.testing.assert_array_equal(degrees, wanted_degrees)
    np.testing.assert_allclose(L.toarray(), wanted, rtol=1e-15 if normalization else 0, atol=0)
