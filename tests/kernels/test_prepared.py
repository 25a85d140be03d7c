"""Rows that are packed once: the same bits as without, whatever the threads, batches, dtypes and instruction sets;
never pickled or copied; freed with their owner; safe in several threads at once and after a fork."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import threading
import weakref

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from manifast import Isomap, LaplacianEigenmaps, LocallyLinearEmbedding
from manifast._core import dispatch
from manifast._core.distances import Columns
from manifast._core.kdtree import Tree
from manifast._core.knn import Points
from manifast._core.l1 import Dictionary
from manifast._core.rbf import Centers
from manifast._gram import Kernel, KernelSum
from manifast._prepared import PreparedAtoms, PreparedCenters, PreparedRows
from manifast._validation import as_matrix, largest_magnitude
from manifast.extensions import RBF, KernelRidge, LandmarkIsomap, LatentVariable, Nystrom, Reconstruction, SparseCode
from manifast.kernels import knn, l1_code, rbf_apply, sq_distances
from manifast.maps import SparseCodeMap

DTYPES = [np.float32, np.float64]
BATCHES = (1, 2, 4, 5, 8, 9, 23)


def rows_and_others(rng, m, p, dtype):
    """Rows, and m others among which are their copies and rows so near that the expanded square has no digits left."""
    x, y = rng.standard_normal((max(BATCHES), p)) + 3.0, rng.standard_normal((m, p)) + 3.0
    some = min(m, 9)
    y[m - some :] = x[:some]
    y[m - some :: 2] += 1e-4
    return x.astype(dtype), y.astype(dtype)


SHAPES = [(1, 3), (5, 9), (17, 1), (33, 8), (193, 64), (400, 21), (40, 2100)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("m, p", SHAPES)
def test_distances_and_gaussian_sums_to_the_bit(rng, level, dtype, m, p):
    x, y = rows_and_others(rng, m, p, dtype)
    columns = Columns(y, 1)
    squares = sq_distances(x, y, n_threads=1)
    for d in (1, 5, 18):
        coef = rng.standard_normal((m, d)).astype(dtype)
        centers = Centers(y, coef, 2)
        sums = rbf_apply(x, y, coef, sigma=3.0, n_threads=1)
        for threads in (1, 2, 3):
            for size in BATCHES:
                out = np.empty((size, d), dtype)
                centers.rbf_apply(x[:size], 1.0 / 9.0, out, threads)
                assert_array_equal(out, sums[:size])
                if d == 1:
                    out = np.empty((size, m), dtype)
                    columns.sq_distances(x[:size], 0.0, out, threads)
                    assert_array_equal(out, squares[:size])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("m, p", SHAPES)
@pytest.mark.parametrize("whole", [False, True])
def test_nearest_rows_to_the_bit(rng, level, dtype, m, p, whole):
    """Also with integers, where most distances are tied."""
    x, y = rows_and_others(rng, m, p, dtype)
    if whole:
        x, y = np.rint(x), np.rint(y)
    for kind in (Points, Tree):
        handle = kind(y, 2)
        for k in {1, min(7, m), m}:
            expected = knn(y, k, queries=x, algorithm="brute", n_threads=1)
            for threads in (1, 2, 3):
                for size in BATCHES:
                    distances, indices = np.empty((size, k), dtype), np.empty((size, k), np.int64)
                    handle.knn(x[:size], distances, indices, threads)
                    assert_array_equal(distances, expected[0][:size])
                    assert_array_equal(indices, expected[1][:size])


def test_the_team_shares_the_points_of_few_queries(rng, level):
    y = np.rint(rng.standard_normal((9000, 40)) * 2)
    x = y[:3] + 0.5
    handle = Points(y, 2)
    for k in (5, 300):
        expected = knn(y, k, queries=x, n_threads=1)
        for threads in (1, 2, 5):
            distances, indices = np.empty((3, k)), np.empty((3, k), np.int64)
            handle.knn(x, distances, indices, threads)
            assert_array_equal(distances, expected[0])
            assert_array_equal(indices, expected[1])


@pytest.mark.parametrize("p", [1, 2, 3, 4, 5, 9])
@pytest.mark.parametrize("k", [3, 60])
def test_queries_that_go_alone_through_a_tree(rng, level, p, k):
    """Few queries for many points take a way of their own; integers, so that ties decide."""
    for dtype in DTYPES:
        y = rng.integers(-4, 5, (2000, p)).astype(dtype)
        x = rng.integers(-5, 6, (300, p)).astype(dtype) / 2
        expected = knn(y, k, queries=x, algorithm="brute")
        for found, other in zip(knn(y, k, queries=x, algorithm="tree"), expected, strict=True):
            assert_array_equal(found, other)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("errors", [True, False])
def test_sparse_codes_to_the_bit(rng, level, dtype, errors):
    """Whatever the number of samples that the dictionary was prepared for."""
    atoms, x = (rng.standard_normal((count, 40)).astype(dtype) for count in (300, 12))
    expected, rest = l1_code(x, atoms, errors=errors, n_threads=1)
    for samples in (1, 1 << 30):
        handle = Dictionary(atoms, samples, 2)
        for threads in (1, 2):
            e = np.empty_like(x) if errors else None
            indptr, indices, values, _ = handle.code(x, 0.0, 1e-9, None, e, threads)
            assert_array_equal(indptr, expected.indptr)
            assert_array_equal(indices, expected.indices)
            assert_array_equal(values.astype(dtype), expected.data)
            if errors:
                assert_array_equal(e, rest)


@pytest.mark.parametrize("rows_dtype", DTYPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes_may_differ(rng, level, rows_dtype, dtype):
    x, y = rows_and_others(rng, 80, 12, np.float64)
    x, y = x.astype(dtype), y.astype(rows_dtype)
    coef = rng.standard_normal((80, 3)).astype(dtype)
    rows, centers, atoms = PreparedRows(y), PreparedCenters(y, coef), PreparedAtoms(y)
    for _ in range(2):
        for size in (1, 9):
            assert_array_equal(rows.sq_distances(x[:size]), sq_distances(x[:size], y))
            for found, expected in zip(rows.nearest(x[:size], 4), knn(y, 4, queries=x[:size]), strict=True):
                assert found.dtype == expected.dtype
                assert_array_equal(found, expected)
            assert_array_equal(centers.product(x[:size], 3.0), rbf_apply(x[:size], y, coef, sigma=3.0))
            codes = atoms.codes(x[:size], errors=True, lam=0.1)
            assert_array_equal(codes.toarray(), l1_code(x[:size], y, lam=0.1)[0].toarray())


@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e200])
@pytest.mark.parametrize("p", [2, 30])
def test_extreme_scales(rng, scale, p):
    """Rows and queries far from 1, or far from each other, are found as `knn` finds them."""
    y = rng.standard_normal((60, p)) * scale
    x = np.concatenate([y[:3] + 0.1 * scale, rng.standard_normal((2, p)) * 1e180, y[:2] * (1 + 1e-12), 0 * y[:1]])
    y[5, 0], x[0, 0] = y[4, 0], 1e-170
    rows = PreparedRows(y)
    for begin, end in ((0, len(x)), (0, 1), (3, 4), (7, 8)):
        for found, expected in zip(rows.nearest(x[begin:end], 3), knn(y, 3, queries=x[begin:end]), strict=True):
            assert_array_equal(found, expected)
    coef = rng.standard_normal((60, 2))
    for sigma in (scale, 1e-170, 1e170):
        made = PreparedCenters(y, coef).product(x[:3], sigma)
        assert_array_equal(made, rbf_apply(x[:3], y, coef, sigma=sigma))


def test_another_instruction_set_packs_again(rng):
    if len(dispatch.levels()) < 2:
        pytest.skip("this machine runs one instruction set only")
    x, y = rows_and_others(rng, 90, 20, np.float64)
    coef = rng.standard_normal((90, 2))
    rows, centers, atoms = PreparedRows(y), PreparedCenters(y, coef), PreparedAtoms(y)
    try:
        for name in (*dispatch.levels(), *dispatch.levels()):
            dispatch.use(name)
            assert_array_equal(rows.sq_distances(x), sq_distances(x, y))
            assert_array_equal(rows.nearest(x, 3)[0], knn(y, 3, queries=x)[0])
            assert_array_equal(centers.product(x, 2.0), rbf_apply(x, y, coef, sigma=2.0))
            assert_array_equal(atoms.codes(x, errors=True, lam=0.0).toarray(), l1_code(x, y)[0].toarray())
            assert all(handle.current for _, handle in rows._made.values())
    finally:
        dispatch.use("auto")


EXTENSIONS = {
    "rbf": RBF(),
    "kernel_ridge": KernelRidge(),
    "kernel_ridge_linear": KernelRidge(kernel="linear"),
    "kernel_ridge_poly": KernelRidge(kernel="poly", degree=2),
    "nystrom": Nystrom(),
    "nystrom_near": Nystrom(n_neighbors=5),
    "lvm": LatentVariable(),
    "reconstruction": Reconstruction(),
    "landmark_isomap": LandmarkIsomap(),
    "sparse": SparseCode(),
    "sparse_near": SparseCode(dictionary_size=30, dictionary_method="nearest"),
}


def operands(value, seen=None):
    """All objects with something packed that an object holds."""
    seen = set() if seen is None else seen
    if id(value) in seen or not hasattr(value, "__dict__"):
        return []
    seen.add(id(value))
    found = [value] if hasattr(value, "_made") and hasattr(value, "nbytes") else []
    for part in vars(value).values():
        found += operands(part, seen)
    return found


@pytest.fixture(params=EXTENSIONS)
def fitted(request, rng):
    X, Y = rng.standard_normal((150, 12)), rng.uniform(1, 2, (150, 3))
    return clone(EXTENSIONS[request.param]).fit(X, Y), rng.standard_normal((40, 12))


def test_what_is_packed_stays_at_home(fitted):
    """Not in a pickle, not in a copy; both give the same bits."""
    model, new = fitted
    size = len(pickle.dumps(model))
    expected = model.predict(new)
    assert len(pickle.dumps(model)) == size
    for made in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), clone(model).fit(model.X_, model.Y_)
                 if hasattr(model, "Y_") and "sparse" not in type(model).__name__.lower() else model):
        if made is not model:
            assert sum(part.nbytes for part in operands(made)) == 0
        assert_array_equal(made.predict(new), expected)
        for i in (0, 7):
            assert_array_equal(made.predict(new[i : i + 1]), expected[i : i + 1])
    assert_array_equal(copy.copy(model).predict(new), expected)


def test_it_goes_with_its_owner(fitted):
    model, new = fitted
    model.predict(new)
    packed = operands(model)
    if not packed:
        pytest.skip("a linear or polynomial kernel has NumPy arrays only")
    handles = [weakref.ref(handle) for part in packed for _, handle in part._made.values()]
    assert handles
    del packed
    model.map_ = None
    gc.collect()
    assert all(handle() is None for handle in handles)


def test_handles_cannot_be_pickled(rng):
    with pytest.raises(TypeError):
        pickle.dumps(Points(rng.standard_normal((5, 3)), 1))


@pytest.mark.parametrize("name", ["rbf", "nystrom", "lvm", "reconstruction", "sparse", "landmark_isomap"])
def test_threads_share_a_model(rng, name):
    """The first use of a model by several threads at once."""
    X, Y, new = rng.standard_normal((300, 12)), rng.uniform(1, 2, (300, 3)), rng.standard_normal((64, 12))
    expected = clone(EXTENSIONS[name]).fit(X, Y).predict(new)
    for _ in range(5):
        model = clone(EXTENSIONS[name]).fit(X, Y)
        start, found = threading.Barrier(6), {}

        def work(number, model=model, start=start, found=found):
            start.wait()
            found[number] = [model.predict(new), model.predict(new[number : number + 1])]

        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for number, (whole, one) in found.items():
            assert_array_equal(whole, expected)
            assert_array_equal(one, expected[number : number + 1])
        assert len(found) == 6


@pytest.mark.process
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("used", [False, True])
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_after_a_fork(rng, used):
    X, new = rng.standard_normal((400, 12)), rng.standard_normal((50, 12))
    models = [clone(EXTENSIONS[name]).fit(X, X[:, :2]) for name in ("rbf", "nystrom", "lvm", "sparse")]
    expected = [clone(model).fit(X, X[:, :2]).predict(new) for model in models]
    if used:
        for model in models:
            model.predict(new)
    child = os.fork()
    if child == 0:
        same = all(np.array_equal(model.predict(new), other) for model, other in zip(models, expected, strict=True))
        os._exit(0 if same else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_memory_is_about_that_of_the_rows(rng, dtype):
    rows = rng.standard_normal((5000, 64)).astype(dtype)
    coef = rng.standard_normal((5000, 7)).astype(dtype)
    few = np.ascontiguousarray(rows[:, :3])
    assert Columns(rows, 1).nbytes < 1.05 * rows.nbytes
    assert Centers(rows, coef, 1).nbytes < 1.05 * (rows.nbytes + coef.nbytes)
    assert Points(rows, 1).nbytes < 1.05 * rows.nbytes * (0.5 if dtype == np.float64 else 1)
    assert Tree(few, 1).nbytes < 1.3 * few.nbytes + 5 * len(few)
    atom = 64 * (8 + 4)  # bytes: in double and in float
    assert Dictionary(rows, 100, 1).nbytes < 1.1 * atom * len(rows)


def test_rows_in_a_memory_map_are_not_packed(rng, tmp_path):
    X, new = rng.standard_normal((200, 12)), rng.standard_normal((5, 12))
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    rows, centers, atoms = PreparedRows(mapped), PreparedCenters(mapped, X[:, :2]), PreparedAtoms(mapped)
    assert_array_equal(rows.nearest(new, 3)[1], knn(X, 3, queries=new)[1])
    assert_array_equal(rows.sq_distances(new), sq_distances(new, X))
    assert_array_equal(centers.product(new, 2.0), rbf_apply(new, X, X[:, :2], sigma=2.0))
    assert_array_equal(atoms.codes(new, errors=True, lam=0.1).toarray(), l1_code(new, X, lam=0.1)[0].toarray())
    assert rows.nbytes == centers.nbytes == atoms.nbytes == 0


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.process
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="resident memory is read from /proc")
def test_nothing_leaks(rng):
    """Many fits and uses in a row, each of which packs a few hundred kilobytes."""
    X, new = rng.standard_normal((1500, 30)), rng.standard_normal((9, 30))
    Y = X[:, :3].copy()
    few = np.ascontiguousarray(X[:, :3])

    def use(times):
        for _ in range(times):
            for extension in (LatentVariable(), Reconstruction(), SparseCode(lam=0.5)):
                model = extension.fit(X, Y)
                model.predict(new)
                model.predict(new[:1].astype(np.float32))
                pickle.loads(pickle.dumps(model)).predict(new[:1])
            PreparedCenters(X, Y).product(new, 3.0)
            PreparedRows(X).sq_distances(new)
            PreparedRows(few).nearest(few[:9], 3)

    use(10)
    before = resident()
    use(60)
    assert resident() - before < 8e6  # one of them leaking would be at least 20 MB


def test_linear_and_polynomial_kernels_are_made_once(rng):
    X, dual, new = rng.standard_normal((50, 6)), rng.standard_normal((50, 2)), rng.standard_normal((7, 6))
    for kernel, expected in ((Kernel("linear"), new @ X.T @ dual), (Kernel("poly"), (new @ X.T + 1) ** 3 @ dual)):
        made = KernelSum(kernel, X, dual, np.ones(2))
        for _ in range(2):
            np.testing.assert_allclose(made(new), expected + 1, rtol=1e-9, atol=1e-9)
            np.testing.assert_array_equal(made(new[2:3]), made(new)[2:3])
        assert len(made._turned) == 1


@pytest.mark.parametrize("estimator", [LaplacianEigenmaps(2), LocallyLinearEmbedding(2), Isomap(2)])
def test_estimators_pack_in_their_natural_maps(rng, estimator):
    X = rng.standard_normal((200, 3))
    model = clone(estimator).fit(X)
    expected = model.transform(X[:20] + 0.01)
    assert sum(part.nbytes for part in operands(model)) > 0
    assert_array_equal(pickle.loads(pickle.dumps(model)).transform(X[:20] + 0.01), expected)


def test_a_map_of_sparse_codes_restored_from_its_arrays(rng):
    model = SparseCode().fit(rng.standard_normal((60, 8)), rng.standard_normal((60, 2)))
    new = rng.standard_normal((5, 8))
    again = SparseCodeMap.restore(model.map_.header(), model.map_.arrays())
    assert_array_equal(again.predict(new), model.predict(new))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_every_place_is_checked_for_nan_and_infinity(level, dtype, bad):
    for size in (1, 7, 16, 33, 70):
        for place in range(size):
            x = np.full((1, size), -2.0, dtype)
            assert largest_magnitude(x) == 2.0
            x[0, place] = 3.0
            assert largest_magnitude(x) == 3.0
            x[0, place] = bad
            assert np.isnan(largest_magnitude(x))
            assert np.isnan(largest_magnitude(x[:, ::-1]))
            with pytest.raises(ValueError, match="X must be finite"):
                as_matrix(x, "X")


def test_the_largest_numbers_are_finite():
    for dtype in DTYPES:
        most = np.finfo(dtype).max
        assert largest_magnitude(np.full((3, 40), -most, dtype)) == float(most)
        assert as_matrix(np.full((3, 40), most, dtype), "X").dtype == dtype
