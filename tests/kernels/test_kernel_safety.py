"""What kernels do with what they should never be given: NaN under a fitted model, indices out of range, extreme scales,
misaligned and masked arrays, numbers that are none. Run in this process: a crash is a failure of the whole run."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from manifast import _kernels
from manifast._core import dispatch
from manifast._core import knn as _knn
from manifast._core import local as _local
from manifast._core import paths as _paths
from manifast._core import rbf as _rbf
from manifast._kernels import by_brute_force, by_tree
from manifast.kernels import gaussian, knn, l1_code, laplacian, neighbor_graph, rbf_apply, sq_distances

LEVELS = dispatch.levels()
SEARCHES = {"brute": by_brute_force, "tree": by_tree}


@pytest.fixture(params=LEVELS)
def level(request):
    dispatch.use(request.param)
    yield request.param
    dispatch.use("auto")


# l1_code


def certain(X, D, **options):
    """Codes with 1 and 2 threads: finite, in range, and the same bits."""
    results = [l1_code(X, D, n_threads=threads, **options) for threads in (1, 2)]
    for codes, e in results:
        assert codes.nnz == 0 or (codes.indices.min() >= 0 and codes.indices.max() < len(D))
        assert np.isfinite(codes.data).all()
        assert e is None or np.isfinite(e).all()
    (first, e), (second, other) = results
    for name in ("indptr", "indices", "data"):
        assert_array_equal(getattr(first, name), getattr(second, name))
    if e is not None:
        assert_array_equal(e, other)
    return first, e


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_path_that_leaves_the_range_of_float_reads_no_padding(level):
    rng = np.random.default_rng(0)
    x, D = rng.standard_normal((1, 30000)), rng.standard_normal((1, 30000))
    for _ in range(2):
        D -= np.outer(D @ x[0], x[0]) / (x[0] @ x[0])
    certain(x, 1e-9 * D, errors=False)
    certain([[1, 2], [-0.3, 0.5], [2, -1]], [[1e60, 1e60]], lam=0.1, exclude=[0, -1, 0])
    certain([[1.0, 0.0]], [[1e-30, 1.0], [0.0, 1.0]], errors=False)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("seed", range(12))
def test_badly_scaled_and_nearly_orthogonal_dictionaries(seed):
    rng = np.random.default_rng(seed)
    for _ in range(60):
        atoms, p, n = rng.integers(1, 40), rng.integers(1, 24), rng.integers(1, 5)
        D, X = rng.standard_normal((atoms, p)), rng.standard_normal((n, p))
        kind = rng.integers(4)
        if kind == 0 and p > 1:  # nearly orthogonal to the first row of X
            for _ in range(2):
                D -= np.outer(D @ X[0], X[0]) / (X[0] @ X[0])
        elif kind == 1:  # nearly of low rank
            D = rng.standard_normal((atoms, 1)) * D[:1] + 1e-9 * D
        elif kind == 2:  # atoms of very different sizes
            D *= 10.0 ** rng.integers(-12, 12, (atoms, 1))
        D *= 10.0 ** rng.integers(-200, 200) if rng.random() < 0.7 else 1
        X *= 10.0 ** rng.integers(-90, 90) if rng.random() < 0.5 else 1
        exclude = rng.integers(-1, atoms, n) if rng.random() < 0.5 else None
        lam = 0.0 if rng.random() < 0.5 else float(np.abs(X).max()) * 10.0 ** rng.integers(-6, 1)
        certain(X, D, errors=bool(rng.random() < 0.5), lam=lam, exclude=exclude)


def test_a_dictionary_means_the_same_at_every_power_of_two():
    rng = np.random.default_rng(3)
    X, D = rng.standard_normal((20, 30)), rng.standard_normal((60, 30))
    codes, _ = l1_code(X, D, errors=False)
    for exponent in (-300, -59, -7, 5, 61, 300):
        scaled, _ = l1_code(X, np.ldexp(D, exponent), errors=False)
        assert_array_equal(np.ldexp(scaled.toarray(), exponent), codes.toarray())


def test_codes_beyond_the_range_are_refused():
    with pytest.raises(ValueError, match=r"dictionary must not be so small against X .* float64\. Got"):
        l1_code([[1.0]], [[1e-310]], errors=False)
    with pytest.raises(ValueError, match=r"dictionary must not be so small against X .* float32\. Got"):
        l1_code(np.float32([[1e30]]), np.float32([[1e-30]]), errors=False)
    codes, _ = l1_code([[1e-310]], [[1e-310]], errors=False)
    assert_array_equal(codes.toarray(), [[1.0]])


# NaN under a search


def assert_in_range(distances, indices, n):
    assert indices.min() >= 0
    assert indices.max() < n
    assert (np.isnan(distances) | (distances >= 0)).all()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("k", [1, 7, 60])
def test_searches_survive_nan(level, search, dtype, threads, k):
    rng = np.random.default_rng(1)
    n, p = 500, 3
    for share in (0.02, 0.9, 1.0):
        x = rng.standard_normal((n, p)).astype(dtype)
        x[rng.random(n) < share] = np.nan
        x[rng.random((n, p)) < 0.2 * share] = np.nan
        for queries in (None, rng.standard_normal((2, p)).astype(dtype), x[:40].copy(), x[::-1].copy()):
            rows = n if queries is None else len(queries)
            # What no kernel wrote would be far out of range.
            distances, indices = np.full((rows, k), -1, dtype), np.full((rows, k), 2**40)
            SEARCHES[search](x, queries, distances, indices, threads)
            assert_in_range(distances, indices, n)
            if share == 1.0:
                assert np.isnan(distances).all()


@pytest.mark.parametrize("search", SEARCHES)
def test_rows_without_nan_keep_their_neighbours(search):
    rng = np.random.default_rng(2)
    x = rng.standard_normal((300, 4))
    queries = rng.standard_normal((50, 4))
    expected = knn(x, 5, queries=queries)
    with_nan = np.vstack([x, np.full((20, 4), np.nan)])
    with_nan = with_nan[rng.permutation(len(with_nan))]
    moved = np.array([np.flatnonzero((with_nan == row).all(axis=1))[0] for row in x])
    distances, indices = np.empty((50, 5)), np.empty((50, 5), dtype=np.int64)
    SEARCHES[search](with_nan, queries, distances, indices, 1)
    assert_array_equal(distances, expected[0])
    assert_array_equal(indices, moved[expected[1]])


def test_shortest_paths_survive_nan_and_end():
    rng = np.random.default_rng(3)
    n = 200
    starts, columns = np.arange(0, 6 * n + 1, 6), rng.integers(0, n, 6 * n).astype(np.int32)
    for lengths in (np.full(6 * n, np.nan), np.where(rng.random(6 * n) < 0.3, np.nan, 1.0), -np.ones(6 * n)):
        out = np.empty((n, n))
        _paths.shortest_paths(starts, columns, lengths, np.arange(n), out, 1)  # not symmetric, not even positive


# Gathers


@pytest.mark.parametrize("wrong", [-1, 30, 2**40])
def test_gathers_refuse_indices_out_of_range(wrong):
    x, y, d = np.zeros((30, 2)), np.zeros((30, 3)), np.ones((4, 5))
    lists = np.arange(20).reshape(4, 5)
    lists[2, 3] = wrong
    own = np.zeros((30, 5), dtype=np.int64) + np.arange(1, 6)
    own[29, 1] = wrong
    calls = [
        lambda: _local.barycenter_weights(x, np.ones((4, 2)), lists, 1e-3, np.empty((4, 5)), 1),
        lambda: _local.reconstruct(x, y, np.ones((4, 2)), lists, 1e-3, np.empty((4, 3)), 1),
        lambda: _local.lle_matrix(x, own, 1e-3, 1),
        lambda: _local.alignment_matrix(x, own, 1, 0.0, 1),
        lambda: _local.hessian_matrix(x, own, 1, 1),
        lambda: _local.modified_lle_matrix(x, own, np.arange(30), 1, 1e-3, 1e-12, 1),
        lambda: _local.modified_lle_matrix(x, own % 30, own[:, 1].copy(), 1, 1e-3, 1e-12, 1),
        lambda: _rbf.heat_mean(d, lists, y, 1.0, False, np.empty((4, 3)), 1),
        lambda: _paths.geodesic_rows(d, lists, np.ones((30, 6)), np.empty((4, 6)), 1),
        lambda: _paths.landmark_map(
            d, lists, np.ones((30, 6)), np.ones(6), np.ones((6, 2)), np.ones(2), np.empty((4, 2)), 1
        ),
        lambda: _paths.shortest_paths(
            np.arange(31), np.zeros(30, np.int32), np.ones(30), np.array([0, wrong]), np.empty((2, 30)), 1
        ),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="indices must be between 0 and n - 1"):
            call()


@pytest.mark.parametrize("spoil", ["column", "negative", "pointer", "descending", "short"])
def test_paths_refuse_a_damaged_graph(spoil):
    n = 20
    starts, columns, lengths = np.arange(n + 1), np.roll(np.arange(n), 1).astype(np.int32), np.ones(n)
    if spoil == "column":
        columns[7] = n
    elif spoil == "negative":
        columns[7] = -1
    elif spoil == "pointer":
        starts[-1] = 2**30
    elif spoil == "descending":
        starts[4] = 19
    else:
        columns = columns[:-3]
    with pytest.raises(ValueError, match="the graph must be a valid CSR matrix"):
        _paths.shortest_paths(starts, columns, lengths, np.arange(n), np.empty((n, n)), 1)


# Extreme scales


def exact_neighbours(x, k, queries=None):
    """By differences scaled one pair at a time: no square over- or underflows."""
    rows = x if queries is None else queries
    out = np.empty((len(rows), k), dtype=np.int64)
    for i, row in enumerate(rows):
        difference = np.abs(x - row)
        largest = difference.max(axis=1)
        unit = np.where(largest > 0, largest, 1)
        _, exponents = np.frexp(unit)
        fraction = np.sqrt((np.ldexp(difference, -exponents[:, None]) ** 2).sum(axis=1))
        fraction, more = np.frexp(np.where(largest > 0, fraction, 0))
        key = np.where(largest > 0, exponents + more, -(10**6))
        order = np.lexsort((np.arange(len(x)), fraction, key))
        out[i] = order[order != i][:k] if queries is None else order[:k]
    return out


@pytest.mark.parametrize("algorithm", ["brute", "tree"])
def test_neighbours_whose_squared_distances_vanish(algorithm):
    x = np.array([[1.0], [0.0], [3e-170], [1e-170]])
    distances, indices = knn(x, 1, algorithm=algorithm)
    assert_array_equal(indices.ravel(), [1, 3, 3, 1])
    assert_array_equal(distances.ravel()[1:], [1e-170, 3e-170 - 1e-170, 1e-170])
    distances, indices = knn([[1e-310], [2e-310]], 1, queries=[[1.0], [1.2e-310], [1e300]], algorithm=algorithm)
    assert_array_equal(distances.ravel(), [1.0, 1.2e-310 - 1e-310, 1e300])
    assert_array_equal(indices.ravel(), 0)


@pytest.mark.parametrize("algorithm", ["brute", "tree"])
@pytest.mark.parametrize("seed", range(6))
def test_neighbours_across_all_scales(algorithm, seed):
    rng = np.random.default_rng(seed)
    n, p, k = 60, int(rng.integers(1, 4)), int(rng.integers(1, 8))
    x = rng.standard_normal((n, p)) * 10.0 ** rng.choice([-300, -200, -170, -160, -10, 0, 100, 140], (n, 1))
    if seed % 2:
        x[rng.random((n, p)) < 0.3] = 0  # rows that agree in large entries and differ in small ones
        x[:20, 0] = 1
    x[40:44] = x[:4]
    assert_array_equal(knn(x, k, algorithm=algorithm)[1], exact_neighbours(x, k))
    queries = np.vstack([x[::7], rng.standard_normal((5, p)) * 1e-180])
    assert_array_equal(knn(x, k, queries=queries, algorithm=algorithm)[1], exact_neighbours(x, k, queries))


# Arrays and numbers at the door


def misaligned(array):
    array = np.ascontiguousarray(array)
    held = np.empty(array.nbytes + 1, dtype=np.uint8)
    view = held[1:].view(np.uint8)[: array.nbytes].view(array.dtype).reshape(array.shape)
    view[...] = array
    assert not view.flags.aligned
    return view


def test_misaligned_arrays_are_copied_before_a_kernel_sees_them(monkeypatch):
    rng = np.random.default_rng(5)
    X, C = rng.standard_normal((30, 3)), rng.standard_normal((9, 3))
    for module, name in ((_knn, "knn"), (_kernels, "by_tree"), (_rbf, "rbf_apply")):
        original = getattr(module, name)

        def checked(*arguments, original=original):
            assert all(a.flags.aligned for a in arguments if isinstance(a, np.ndarray))
            return original(*arguments)

        monkeypatch.setattr(module, name, checked)
    for algorithm in ("brute", "tree"):
        got = knn(misaligned(X), 3, queries=misaligned(C), algorithm=algorithm)
        assert_array_equal(got, knn(X, 3, queries=C, algorithm=algorithm))
    assert_array_equal(rbf_apply(misaligned(X), misaligned(C), misaligned(C), sigma=1.0), rbf_apply(X, C, C, sigma=1.0))
    distances, indices = knn(X, 3)
    graph = neighbor_graph(misaligned(distances), misaligned(indices), beta=1.0)
    assert_array_equal(graph.toarray(), neighbor_graph(distances, indices, beta=1.0).toarray())
    with pytest.raises(ValueError, match="out must be C-contiguous, aligned and writable"):
        sq_distances(X, out=misaligned(np.empty((30, 30))))


def test_masked_entries_are_refused():
    data = np.arange(12.0).reshape(6, 2)
    masked, whole = np.ma.array(data, mask=data == 4), np.ma.array(data, mask=False)
    calls = {
        "X": [lambda a: sq_distances(a), lambda a: knn(a, 1), lambda a: l1_code(a, data)],
        "queries": [lambda a: knn(data, 1, queries=a)],
        "dictionary": [lambda a: l1_code(data, a)],
        "coef": [lambda a: rbf_apply(data, data, a, sigma=1.0)],
    }
    for name, functions in calls.items():
        for function in functions:
            with pytest.raises(ValueError, match=f"{name} must have no masked entries. Got 1 of them"):
                function(masked)
            function(whole)
    with pytest.raises(ValueError, match="W must have no masked entries"):
        laplacian(np.ma.array(np.ones((2, 2)), mask=np.eye(2)))
    with pytest.raises(ValueError, match="coef must have no masked entries"):
        rbf_apply(data, data, np.ma.array(np.ones(6), mask=[1, 0, 0, 0, 0, 0]), sigma=1.0)


def test_masked_rows_are_refused_by_estimators():
    from manifast import LaplacianEigenmaps

    X = np.random.default_rng(0).standard_normal((30, 3))
    model = LaplacianEigenmaps(n_neighbors=5).fit(np.ma.array(X, mask=False))
    for call in (model.fit, model.transform):
        with pytest.raises(ValueError, match="X must have no masked entries"):
            call(np.ma.array(X, mask=X > 1))


@pytest.mark.parametrize("number", [10**400, -(10**400), "2", b"2", True, np.True_, None, [1.0, 2.0], 1j])
def test_what_is_no_number_is_refused(number):
    X = np.eye(3)
    for call, name in [
        (lambda: gaussian(X, sigma=number), "sigma"),
        (lambda: rbf_apply(X, X, X, sigma=number), "sigma"),
        (lambda: l1_code(X, X, tol=number), "tol"),
        (lambda: l1_code(X, X, lam=number), "lam"),
        (lambda: neighbor_graph(np.ones((3, 1)), [[1], [2], [0]], beta=number), "beta"),
    ]:
        with pytest.raises(ValueError, match=f"{name} must be a"):
            call()
    if number is not None:
        with pytest.raises(ValueError, match="k must be an integer from 1 to 2"):
            knn(X, number)


# Processes


@pytest.mark.process
@pytest.mark.parametrize("threads", [1, 2])
def test_a_process_ends_while_a_daemon_thread_is_inside_a_kernel(run_python, threads):
    """Python ends other threads that ask for its lock when it is ending itself; here it takes a while to end."""
    run_python(f"""
import sys, threading, time
import numpy as np
from manifast.kernels import rbf_apply
rng = np.random.default_rng(0)
X, C, W = rng.standard_normal((100000, 300)), rng.standard_normal((5000, 300)), rng.standard_normal((5000, 4))
class Slow:
    def __del__(self):
        time.sleep(0.3)
sys.keep = Slow()
threading.Thread(target=lambda: rbf_apply(X, C, W, sigma=30.0, n_threads={threads}), daemon=True).start()
time.sleep(0.3)
""")


def test_neighbors_at_the_end_of_the_range():
    """The unit of the largest numbers overflowed, and the search never ended."""
    distances, indices = knn([[1e300], [1.7e308], [-1.7e308]], 1)
    assert indices.ravel().tolist() == [1, 0, 0]
    assert np.isfinite(distances).all()
    assert knn([[1e308], [5e-324], [0.0]], 2)[1].tolist() == [[1, 2], [2, 0], [1, 0]]


def test_masks_of_embeddings_and_matrices_are_refused():
    from manifast.extensions import RBF
    from manifast.spectral import smallest_eigenvectors

    masked = np.ma.masked_array(np.eye(4), mask=np.eye(4) > 0)
    with pytest.raises(ValueError, match="Y"):
        RBF().fit(np.arange(4.0)[:, None], masked)
    with pytest.raises(ValueError, match="A"):
        smallest_eigenvectors(masked, 1)
