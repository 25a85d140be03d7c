"""The kd-tree against a plain sort by (squared distance, index): equal indices, equal bits."""

import platform
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifast._core import dispatch
from manifast._kernels import by_tree


def tree(X, k, queries=None, threads=1):
    X = np.ascontiguousarray(X)
    rows = len(X) if queries is None else len(queries)
    distances, indices = np.full((rows, k), np.nan, X.dtype), np.full((rows, k), -1, np.int64)
    by_tree(X, None if queries is None else np.ascontiguousarray(queries), distances, indices, threads)
    return distances, indices


def fused(a, b):
    """a² + b in one rounding, where the instruction set in use rounds once."""
    if dispatch.level() in ("baseline", "wide", "small") and platform.machine() not in ("aarch64", "arm64"):
        return a * a + b
    exact = [float(Fraction(x) ** 2 + Fraction(y)) for x, y in zip(a.ravel().tolist(), b.ravel().tolist(), strict=True)]
    return np.array(exact).reshape(a.shape)


def squared(X, Y):
    """The definition: four sums over k mod 4, in double, added pairwise."""
    difference = X[:, None].astype(np.float64) - Y[None].astype(np.float64)
    sums = np.zeros((4, *difference.shape[:2]))
    for k in range(difference.shape[2]):
        if k < 4:
            sums[k] = difference[..., k] ** 2
        else:
            sums[k % 4] = fused(difference[..., k], sums[k % 4])
    return (sums[0] + sums[1]) + (sums[2] + sums[3])


def oracle(X, k, queries=None):
    d2 = squared(X if queries is None else queries, X)
    order = np.empty((len(d2), k), np.int64)
    for i, row in enumerate(d2):
        others = np.arange(len(X))
        if queries is None:
            others = np.delete(others, i)
        order[i] = others[np.lexsort((others, row[others]))[:k]]
    return np.sqrt(np.take_along_axis(d2, order, axis=1)).astype(X.dtype), order


def assert_same(found, wanted):
    np.testing.assert_array_equal(found[1], wanted[1])
    assert found[0].dtype == wanted[0].dtype
    np.testing.assert_array_equal(found[0].view(np.uint8), wanted[0].view(np.uint8))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("p", [1, 2, 3, 4, 5, 8, 11])
def test_self_neighbours(level, rng, p, dtype):
    X = rng.standard_normal((90, p)).astype(dtype)
    for k in (1, 7, 15, 16, 17):
        assert_same(tree(X, k), oracle(X, k))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("p", [1, 3, 6])
def test_queries(level, rng, p, dtype):
    X, Q = rng.standard_normal((70, p)).astype(dtype), 2 * rng.standard_normal((45, p)).astype(dtype)
    for k in (1, 10, 70):
        assert_same(tree(X, k, Q), oracle(X, k, Q))


def test_large_against_brute_force_distances(level, rng):
    X = rng.standard_normal((3000, 3))
    assert_same(tree(X, 10, threads=2), oracle(X, 10))


@pytest.mark.parametrize("n", [2, 3, 15, 16, 17, 31, 32, 33, 47, 48, 49, 64, 65, 160, 161])
def test_every_leaf_count_and_largest_k(level, rng, n):
    X = rng.standard_normal((n, 2))
    assert_same(tree(X, n - 1), oracle(X, n - 1))
    assert_same(tree(X, n, X), oracle(X, n, X))


@pytest.mark.parametrize("k", [47, 48, 49, 50, 96, 97, 299])
def test_sorted_lists_and_reservoirs(level, rng, k):
    X = rng.standard_normal((300, 3))
    assert_same(tree(X, k), oracle(X, k))


def test_smallest(level):
    one = np.array([[1.5, -2.0]])
    assert tree(one, 0)[0].shape == (1, 0)
    assert_same(tree(one, 1, one), (np.array([[0.0]]), np.array([[0]])))
    assert_same(tree(np.array([[0.0], [3.0]]), 1), (np.array([[3.0], [3.0]]), np.array([[1], [0]])))
    assert tree(one, 1, np.empty((0, 2)))[0].shape == (0, 1)


@pytest.mark.parametrize("p,side", [(1, 60), (2, 13), (3, 6), (4, 4)])
def test_grid_of_ties(level, rng, p, side):
    grid = np.stack(np.meshgrid(*[np.arange(side)] * p), axis=-1).reshape(-1, p).astype(float)
    X = grid[rng.permutation(len(grid))]
    for k in (1, 4, 9, 60):
        k = min(k, len(X) - 1)
        assert_same(tree(X, k), oracle(X, k))
        assert_same(tree(X, k, X + 0.5), oracle(X, k, X + 0.5))


@pytest.mark.parametrize("k", [1, 10, 60])
def test_identical_points(level, k):
    X = np.full((1000, 3), 0.1)
    distances, indices = tree(X, k)
    assert not distances.any()
    for i in range(len(X)):
        np.testing.assert_array_equal(indices[i], np.delete(np.arange(k + 1), min(i, k)))


@pytest.mark.parametrize("n", [30_000, pytest.param(300_000, marks=pytest.mark.heavy)])
def test_many_identical_points_stay_fast(n):
    """Quadratic in the ties would be hours for the larger number; the smaller one checks the order alone."""
    X = np.full((n, 2), 7.0)
    X[::3] = 8.0
    _, indices = tree(X, 3, threads=2)
    np.testing.assert_array_equal(indices[0], [3, 6, 9])
    np.testing.assert_array_equal(indices[-1], [1, 2, 4])


def test_duplicates(level, rng):
    X = rng.integers(0, 3, (200, 2)).astype(float)
    assert_same(tree(X, 30), oracle(X, 30))
    X = np.repeat(rng.standard_normal((20, 3)), 10, axis=0)[rng.permutation(200)]
    assert_same(tree(X, 12), oracle(X, 12))


def test_order_of_points_that_ordinary_rounding_cannot_tell_apart(level):
    """Neighbours at distances one rounding apart, far from the origin; the last is the nearest."""
    X = np.array([[2.0**26 + 1 + j * 2.0**-26] for j in range(40)])[::-1].copy()
    Q = np.array([[2.0**26]])
    distances, indices = tree(X, 40, Q)
    np.testing.assert_array_equal(indices[0], np.arange(40)[::-1])
    assert_same((distances, indices), oracle(X, 40, Q))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("threads", [2, 3, 7])
def test_threads(level, rng, threads, dtype):
    X, Q = rng.standard_normal((4001, 3)).astype(dtype), rng.standard_normal((777, 3)).astype(dtype)
    assert_same(tree(X, 11, threads=threads), tree(X, 11))
    assert_same(tree(X, 60, Q, threads=threads), tree(X, 60, Q))


def test_rows_alone_and_in_a_batch(level, rng):
    X, Q = rng.standard_normal((500, 6)), rng.standard_normal((40, 6))
    distances, indices = tree(X, 9, Q)
    for i in range(len(Q)):
        assert_same(tree(X, 9, Q[i : i + 1]), (distances[i : i + 1], indices[i : i + 1]))


def test_queries_that_are_data_find_themselves_first(level, rng):
    X = rng.standard_normal((300, 4))
    distances, indices = tree(X, 5, X)
    np.testing.assert_array_equal(indices[:, 0], np.arange(300))
    assert not distances[:, 0].any()
    assert_same((distances[:, 1:].copy(), indices[:, 1:]), tree(X, 4))


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_scales(level, rng, scale):
    X = rng.standard_normal((200, 3)) * scale
    assert_same(tree(X, 6), oracle(X, 6))


def test_one_feature_far_wider_than_the_rest(level, rng):
    X = rng.standard_normal((400, 3)) * [1e8, 1e-8, 0.0] + [0, 0, 5]
    assert_same(tree(X, 6), oracle(X, 6))


def test_levels_agree_on_integers(rng):
    X = rng.integers(-50, 50, (500, 7)).astype(np.float32)
    results = []
    for name in dispatch.levels():
        dispatch.use(name)
        results.append(tree(X, 8))
    dispatch.use("auto")
    for other in results[1:]:
        assert_same(other, results[0])


def test_shapes_are_checked(rng):
    X = rng.standard_normal((5, 2))
    with pytest.raises(ValueError, match="k must not exceed"):
        tree(X, 5)
    with pytest.raises(ValueError, match="k must not exceed"):
        tree(X, 6, X)
    with pytest.raises(ValueError, match="columns must match"):
        tree(X, 2, np.zeros((3, 3)))
    with pytest.raises(ValueError, match="one row per query"):
        by_tree(X, None, np.empty((4, 2)), np.empty((4, 2), np.int64), 1)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_any_small_integers(data):
    n = data.draw(st.integers(2, 80), "n")
    p = data.draw(st.integers(1, 9), "p")
    m = data.draw(st.integers(0, 20), "m")
    span = data.draw(st.integers(0, 4), "span")
    seed = data.draw(st.integers(0, 2**32 - 1), "seed")
    dtype = data.draw(st.sampled_from([np.float32, np.float64]), "dtype")
    k = data.draw(st.integers(1, n - 1), "k")
    rng = np.random.default_rng(seed)
    X = rng.integers(-span, span + 1, (n, p)).astype(dtype)
    Q = rng.integers(-span - 1, span + 2, (m, p)).astype(dtype)
    assert_same(tree(X, k, threads=2), oracle(X, k))
    assert_same(tree(X, k, Q, threads=2), oracle(X, k, Q))
