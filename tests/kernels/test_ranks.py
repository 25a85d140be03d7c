"""Exact ranks of neighbours: the kernel below trustworthiness, continuity and neighbourhood preservation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifast._ranks import GivenDistances, RowSpace
from manifast.kernels import knn

DTYPES = [np.float32, np.float64]


def plain_ranks(x, q, neighbors):
    """By a sort of all distances, taken from differences in double."""
    x = x.astype(np.float64)
    seen = x if q is None else q.astype(np.float64)
    ranks = np.empty(neighbors.shape, dtype=np.int64)
    for i, row in enumerate(seen):
        squares = ((x - row) ** 2).sum(axis=1)
        order = np.argsort(squares, kind="stable")
        if q is None:
            order = order[order != i]
        places = np.zeros(len(x), dtype=np.int64)
        places[order] = np.arange(1, len(order) + 1)
        ranks[i] = places[neighbors[i]]
    return ranks


def some_neighbors(rng, n, m, k, self):
    """k different rows for each of m, in no order, never the row itself where that is asked for."""
    lists = np.empty((m, k), dtype=np.int64)
    for i in range(m):
        allowed = np.delete(np.arange(n), i) if self else np.arange(n)
        lists[i] = rng.permutation(allowed)[:k]
    return lists


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("p", [1, 2, 9, 50, 300])
@pytest.mark.parametrize("k", [1, 5, 128, 129, 149])
def test_ranks_against_a_sort(rng, level, dtype, p, k):
    x, q = rng.standard_normal((150, p)).astype(dtype), rng.standard_normal((31, p)).astype(dtype)
    lists = some_neighbors(rng, 150, 150, k, True)
    assert np.array_equal(RowSpace(x, None, None).ranks(lists), plain_ranks(x, None, lists))
    lists = some_neighbors(rng, 150, 31, k, False)
    assert np.array_equal(RowSpace(x, q, None).ranks(lists), plain_ranks(x, q, lists))


@pytest.mark.parametrize("k", [3, 150])
def test_near_ties_are_settled_by_exact_distances(rng, level, k):
    """Distances that float32 cannot tell apart: tight clusters far apart, one outlier, an offset. All are exact."""
    clusters = rng.integers(-5, 6, (200, 1)) * 4096.0 + rng.integers(-64, 65, (200, 12)) / 512
    outlier = rng.integers(-50, 51, (200, 12)).astype(float)
    outlier[7] = 2.0**20
    for x in (clusters, outlier, 1e6 + rng.integers(-50, 50, (200, 12)) * 2.0**-12):
        lists = some_neighbors(rng, 200, 200, k, True)
        assert np.array_equal(RowSpace(x, None, None).ranks(lists), plain_ranks(x, None, lists))


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(3, 200), st.integers(1, 12), st.sampled_from(DTYPES), st.integers(1, 4))
def test_ties_by_index(data, n, p, dtype, high):
    """Small integers: most distances are equal, and all are exact."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    x = rng.integers(-high, high + 1, (n, p)).astype(dtype)
    k = data.draw(st.integers(1, n - 1))
    lists = some_neighbors(rng, n, n, k, True)
    assert np.array_equal(RowSpace(x, None, None).ranks(lists), plain_ranks(x, None, lists))
    lists = some_neighbors(rng, n, 5, k, False)
    q = x[rng.integers(0, n, 5)]
    assert np.array_equal(RowSpace(x, q, None).ranks(lists), plain_ranks(x, q, lists))


@pytest.mark.parametrize("dtype", DTYPES)
def test_ranks_of_nearest_neighbours_count_up(rng, level, dtype):
    for x in (rng.standard_normal((400, 30)), np.zeros((60, 3)), rng.integers(0, 2, (300, 8)), rng.random((500, 2))):
        x = x.astype(dtype)
        lists = knn(x, 50)[1]
        assert np.array_equal(RowSpace(x, None, None).ranks(lists), np.broadcast_to(np.arange(1, 51), lists.shape))


@pytest.mark.parametrize("k", [4, 130])
def test_threads_and_batches_change_nothing(rng, level, k):
    x, q = rng.standard_normal((700, 20)), rng.standard_normal((200, 20))
    lists = some_neighbors(rng, 700, 200, k, False)
    expected = RowSpace(x, q, 1).ranks(lists)
    for threads in (2, 3, 5):
        assert np.array_equal(RowSpace(x, q, threads).ranks(lists), expected)
    for i in (0, 100, 199):
        part = slice(i, i + 1)
        assert np.array_equal(RowSpace(x, q[part].copy(), 1).ranks(lists[part]), expected[part])


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e-30, 1e30, 1e160, 1e300])
def test_any_scale(rng, level, scale):
    x = rng.standard_normal((90, 6))
    lists = some_neighbors(rng, 90, 90, 7, True)
    assert np.array_equal(RowSpace(x * scale, None, None).ranks(lists), RowSpace(x, None, None).ranks(lists))


def test_indices_out_of_range_are_refused():
    for bad in (-1, 5):
        with pytest.raises(ValueError, match="indices must be between 0 and n - 1 = 4"):
            RowSpace(np.eye(5), None, None).ranks(np.full((5, 1), bad))


def test_given_distances_agree_with_rows(rng):
    x, q = rng.standard_normal((60, 4)), rng.standard_normal((20, 4))
    between = np.linalg.norm(x[:, None] - x, axis=2)
    lists = some_neighbors(rng, 60, 60, 9, True)
    assert np.array_equal(GivenDistances(between, False).ranks(lists), RowSpace(x, None, None).ranks(lists))
    assert np.array_equal(GivenDistances(between, False).neighbors(9), knn(x, 9)[1])
    across = np.linalg.norm(q[:, None] - x, axis=2)
    lists = some_neighbors(rng, 60, 20, 9, False)
    assert np.array_equal(GivenDistances(across, True).ranks(lists), RowSpace(x, q, None).ranks(lists))
    assert np.array_equal(GivenDistances(across, True).neighbors(60), knn(x, 60, queries=q)[1])
