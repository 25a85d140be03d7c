"""The level `small`: blocks, chunks and limits so tiny that a few rows reach every boundary. Same bits as `baseline`,
or rounding where a block is part of the order of a sum.

It has the instructions of `baseline` and is built on demand (MANIFAST_SMALL); the sanitizers run on it.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from manifast import _gram, maps
from manifast._core import dispatch
from manifast._kernels import index_dtype
from manifast._local import alignment_matrix, hessian_matrix, lle_matrix, modified_lle_matrix
from manifast._paths import shortest_paths
from manifast._ranks import RowSpace
from manifast.extensions import KernelRidge, LandmarkIsomap, Nystrom, Reconstruction
from manifast.graphs import class_graphs
from manifast.kernels import gaussian, knn, l1_code, laplacian, neighbor_graph, rbf_apply, sq_distances
from manifast.spectral import smallest_eigenvectors

pytestmark = pytest.mark.skipif("small" not in dispatch.levels_built(), reason="built without MANIFAST_SMALL")


@pytest.fixture
def on_both():
    """Calls a function with the usual limits and with the small ones, and returns what it gave."""
    chosen = dispatch.level()

    def call(function):
        results = []
        for name in "baseline", "small":
            dispatch.use(name)
            results.append(function())
        return results

    yield call
    dispatch.use(chosen)


def _same(usual, small) -> None:
    usual, small = (made if isinstance(made, tuple) else (made,) for made in (usual, small))
    for one, other in zip(usual, small, strict=True):
        if sp.issparse(one):
            assert_array_equal(one.indptr, other.indptr)
            assert_array_equal(one.indices, other.indices)
            one, other = one.data, other.data
        assert_array_equal(one, other)
        assert getattr(one, "dtype", None) == getattr(other, "dtype", None)


def _close(usual, small, rounding: float = 1e-9) -> None:
    if sp.issparse(usual):
        assert_array_equal(usual.indices, small.indices)
        usual, small = usual.data, small.data
    assert_allclose(small, usual, rtol=rounding, atol=rounding * np.abs(usual).max())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "m", "p"), [(3, 200, 5), (61, 203, 7), (130, 61, 100), (5, 700, 33)])
@pytest.mark.parametrize("threads", [1, 3])
def test_dense_kernels(rng, on_both, dtype, n, m, p, threads):
    x, y, coef = (rng.normal(size=size).astype(dtype) for size in ((n, p), (m, p), (m, 3)))
    _same(*on_both(lambda: sq_distances(x, y, n_threads=threads)))
    _same(*on_both(lambda: sq_distances(y, n_threads=threads)))
    _same(*on_both(lambda: gaussian(x, y, sigma=2.0, n_threads=threads)))
    # Blocks of centers are summed one by one: their size shows in the rounding.
    rounding = 1e-5 if dtype == np.float32 else 1e-13
    _close(*on_both(lambda: rbf_apply(x, y, coef, sigma=2.0, n_threads=threads)), rounding)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "p", "k"), [(100, 4, 5), (400, 30, 3), (400, 3, 40), (400, 30, 150), (150, 80, 20)])
@pytest.mark.parametrize("algorithm", ["brute", "tree"])
def test_neighbours(rng, on_both, dtype, n, p, k, algorithm):
    x = rng.integers(-3, 4, size=(n, p)).astype(dtype)  # ties
    x[n // 2 :] += rng.normal(size=(n - n // 2, p)) * 1e-3  # and near ties, which are ranked again
    _same(*on_both(lambda: knn(x, k, algorithm=algorithm, n_threads=2)))
    _same(*on_both(lambda: knn(x, k, queries=x[:77] + 0.5, algorithm=algorithm, n_threads=2)))
    neighbors = knn(x, k)[1]
    _same(*on_both(lambda: RowSpace(x, None, 2).ranks(neighbors)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [4, 20, 60])
@pytest.mark.parametrize("mode", ["union", "mutual"])
def test_graphs(rng, on_both, dtype, k, mode):
    """Beyond 1000 entries with 64-bit indices."""
    x = rng.normal(size=(150, 3)).astype(dtype)
    lists = knn(x, k)
    _same(*on_both(lambda: neighbor_graph(*lists, mode=mode, weights="distance", n_threads=3)))
    graph = neighbor_graph(*lists, mode=mode, weights="distance")
    for normalization in None, "sym", "rw":
        _same(*on_both(lambda kind=normalization: laplacian(graph, normalization=kind, n_threads=3)))
    lengths = graph.astype(np.float64)
    _same(*on_both(lambda: shortest_paths(lengths, np.arange(0, 150, 2), n_threads=2)))
    _same(*on_both(lambda: class_graphs(x, np.arange(150) % 3)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("p", "k"), [(3, 7), (3, 14), (90, 9), (90, 14)])
def test_local_methods(rng, on_both, dtype, p, k):
    """Features are summed in chunks: with few of them there is one chunk, and the same bits."""
    agree = _same if p < 8 else _close
    x = rng.normal(size=(120, p)).astype(dtype)
    neighbors = knn(x, k)[1]
    agree(*on_both(lambda: lle_matrix(x, neighbors, n_threads=2)))
    agree(*on_both(lambda: alignment_matrix(x, neighbors, dim=2, gamma=1e-3, n_threads=2)))
    agree(*on_both(lambda: hessian_matrix(x, neighbors, dim=2, n_threads=2)))
    agree(*on_both(lambda: modified_lle_matrix(x, neighbors, dim=2, n_threads=2)))


@pytest.mark.parametrize("errors", [True, False])
def test_sparse_codes(rng, on_both, errors):
    """The head of a dictionary, which small ones have here too, screens atoms: the codes are the same."""
    atoms, x = rng.normal(size=(90, 30)), rng.normal(size=(20, 30))
    (usual, e), (small, f) = on_both(lambda: l1_code(x, atoms, errors=errors, n_threads=2))
    assert_allclose(small.toarray(), usual.toarray(), atol=1e-9)
    if errors:
        assert_allclose(f, e, atol=1e-9)


def test_eigenvectors(rng, on_both):
    """Sums over chunks, fronts and levels of a hierarchy have another order here: the same to rounding."""
    x = rng.normal(size=(900, 2))
    graph = neighbor_graph(*knn(x, 8), weights="distance")
    L, degrees = laplacian(graph)
    for method in "direct", "multilevel":
        (values, vectors), (w, v) = on_both(lambda name=method: smallest_eigenvectors(L, 4, degrees, method=name))
        assert_allclose(w, values, rtol=1e-8, atol=1e-10)
        assert_allclose(np.abs(v.T @ (degrees[:, None] * vectors)), np.eye(4), atol=1e-6)


@pytest.mark.parametrize("made", [KernelRidge(), LandmarkIsomap(n_neighbors=6), Nystrom(), Reconstruction()])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_maps_in_tiny_chunks(rng, monkeypatch, made, dtype):
    """Chunks of Python's own: a map's bits depend on its own row only."""
    x, new = rng.normal(size=(90, 4)).astype(dtype), rng.normal(size=(53, 4)).astype(dtype)
    fitted = made.fit(x, x[:, :2])
    usual = fitted.predict(new)
    monkeypatch.setattr(maps, "_CHUNK", 300)
    monkeypatch.setattr(_gram, "_CHUNK", 300)
    assert_array_equal(fitted.predict(new), usual)


def test_the_index_grows_with_the_matrix():
    chosen = dispatch.level()
    dispatch.use("small")
    assert index_dtype(999) is np.int32
    assert index_dtype(1000) is np.int64
    dispatch.use("baseline")
    assert index_dtype(2**31 - 2) is np.int32
    assert index_dtype(2**31 - 1) is np.int64
    dispatch.use(chosen)
