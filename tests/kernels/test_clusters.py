"""Approximate neighbours by clusters: recall against brute force, the same bits for any threads, honest warnings."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from manifast import _clusters
from manifast._core import clusters as core
from manifast.kernels import approximate_knn, knn


def roll(n, p=20, seed=0, dtype=np.float32):
    rng = np.random.default_rng(seed)
    t, height = 1.5 * np.pi * (1 + 2 * rng.random(n)), 21 * rng.random(n)
    curve = np.column_stack([t * np.cos(t), height, t * np.sin(t)])
    turn = np.linalg.qr(rng.standard_normal((p, 3)))[0]
    return (curve @ turn.T + 0.02 * rng.standard_normal((n, p))).astype(dtype)


def groups(n, p=20, seed=0, count=30, dim=5, dtype=np.float32):
    rng = np.random.default_rng(seed)
    axes = rng.standard_normal((count, dim, p))
    label = rng.integers(0, count, n)
    rows = 10 * rng.standard_normal((count, p))[label]
    return (rows + np.einsum("ni,nip->np", rng.standard_normal((n, dim)), axes[label])).astype(dtype)


def true_recall(distances, X, k):
    """The share of listed neighbours that are as near as the k-th nearest."""
    return np.mean(distances <= knn(X, k)[0][:, -1:])


def check_lists(distances, indices, X):
    """What holds of every list: exact distances, ascending, ties by index, no row twice, none its own neighbour."""
    n = len(X)
    wide = X.astype(np.float64)
    exact = np.linalg.norm(wide[indices] - wide[:, None], axis=2)
    np.testing.assert_allclose(distances, exact, rtol=1e-6 if X.dtype == np.float32 else 1e-13)
    assert distances.dtype == X.dtype and indices.dtype == np.int64
    assert (np.diff(distances, axis=1) >= 0).all()
    assert (np.diff(np.sort(indices, axis=1), axis=1) > 0).all()
    assert (indices != np.arange(n)[:, None]).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("make", [roll, groups])
def test_recall_of_data_with_structure(make, dtype, level):
    X = make(6000, dtype=dtype)
    distances, indices, recall = approximate_knn(X, 10, recall=0.97)
    check_lists(distances, indices, X)
    assert true_recall(distances, X, 10) > 0.97
    assert recall == pytest.approx(true_recall(distances, X, 10), abs=0.02)


@pytest.mark.parametrize("make", [roll, groups])
def test_same_bits_for_any_threads_and_layout(make, level):
    X = make(5000)
    first = approximate_knn(X, 7, random_state=3, n_threads=1)
    for other in (X, np.asfortranarray(X)):
        for threads in (2, 3, 8):
            again = approximate_knn(other, 7, random_state=3, n_threads=threads)
            assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))


def test_seed_decides():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 12))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one, same, other = (approximate_knn(X, 5, recall=1.0, random_state=seed) for seed in (0, 0, 1))
    assert np.array_equal(one[1], same[1]) and not np.array_equal(one[1], other[1])


def test_knn_by_clusters_is_the_same_search():
    X = roll(3000)
    distances, indices, _ = approximate_knn(X, 5, recall=0.9, random_state=2)
    found = knn(X, 5, algorithm="clusters", recall=0.9, random_state=2)
    assert np.array_equal(found[0], distances) and np.array_equal(found[1], indices)


def test_data_without_structure_is_admitted():
    X = np.random.default_rng(0).standard_normal((40_000, 100)).astype(np.float32)
    with pytest.warns(UserWarning, match=r"found about \d+ % of the 15 nearest neighbours, less than the 99 %"):
        distances, indices, recall = approximate_knn(X, 15, recall=0.99)
    check_lists(distances, indices, X)
    assert recall < 0.99
    assert recall == pytest.approx(true_recall(distances, X, 15), abs=0.03)


def test_more_work_where_recall_is_wanted():
    X = np.random.default_rng(1).standard_normal((6000, 10))
    little, much = approximate_knn(X, 10, recall=0.3), approximate_knn(X, 10, recall=0.95)
    assert 0.3 <= little[2] < 0.95 <= much[2]
    assert true_recall(little[0], X, 10) < true_recall(much[0], X, 10)
    assert (much[0] <= little[0]).all()  # lists only ever improve


@pytest.mark.parametrize("n", [2, 3, 17, 500, 2000, 2001])
def test_few_rows(n):
    X = np.random.default_rng(n).standard_normal((n, 3))
    k = min(4, n - 1)
    distances, indices, recall = approximate_knn(X, k, recall=0.9)
    check_lists(distances, indices, X)
    if n <= 2000:
        exact = knn(X, k)
        assert recall == 1.0 and np.array_equal(exact[0], distances) and np.array_equal(exact[1], indices)


def test_many_neighbors_of_few_rows():
    X = roll(2500)
    distances, indices, recall = approximate_knn(X, 200)
    check_lists(distances, indices, X)
    assert recall >= 0.95
    distances, indices, recall = approximate_knn(X, 2499)
    assert recall == 1.0 and (np.sort(np.column_stack([indices, np.arange(2500)]), axis=1) == np.arange(2500)).all()


def test_equal_rows():
    X = np.ones((9000, 4), dtype=np.float32)
    distances, indices, recall = approximate_knn(X, 6)
    check_lists(distances, indices, X)
    assert recall == 1.0 and not distances.any()


def test_duplicates_among_others():
    X = groups(9000)
    X[::2] = X[0]  # a cluster of 4500 equal rows
    X[1::6] = X[3::6]
    distances, indices, recall = approximate_knn(X, 8)
    check_lists(distances, indices, X)
    assert recall >= 0.95 and true_recall(distances, X, 8) > 0.94


def test_large_clusters_are_cut_into_compact_pieces(monkeypatch):
    monkeypatch.setattr(_clusters, "_LARGEST", 1)
    X = np.concatenate([roll(4000), 1e-3 * roll(4000, seed=1)])
    made = _clusters._partition(X, 2, np.random.default_rng(0), 1)
    for part, overlap in ((made, 2), (made.first(), 1)):
        sizes = np.diff(part.starts)
        assert sizes.max() <= 500 and part.starts[0] == 0 and part.starts[-1] == overlap * len(X)
        assert (part.members[part.places] == np.arange(len(X))[:, None]).all()
        assert (np.bincount(part.members) == overlap).all()
        assert (part.labels == np.repeat(np.arange(len(sizes)), sizes)[part.places]).all()
    for c, known in enumerate(made.known):
        front = made.members[made.starts[c] : made.starts[c] + known]
        assert (made.labels[front, 0] == c).all()
    distances, indices, recall = approximate_knn(X, 5)
    check_lists(distances, indices, X)
    assert recall >= 0.95


@pytest.mark.parametrize(("scale", "dtype"), [(1e-30, np.float32), (1e30, np.float32), (1e-250, float), (1e250, float)])
def test_any_scale(scale, dtype):
    X = roll(3000, dtype=np.float64)
    plain = approximate_knn(X.astype(dtype), 5)
    power = 2.0 ** np.round(np.log2(scale))
    scaled = approximate_knn((X * power).astype(dtype), 5)
    assert np.array_equal(plain[1], scaled[1])
    np.testing.assert_allclose(scaled[0] / dtype(power), plain[0], rtol=1e-6)


def test_common_offset():
    X = roll(3000, p=3, dtype=np.float64)
    assert approximate_knn(X + 2.0**20, 5, recall=0.99)[2] >= 0.99


def test_join_takes_neighbors_of_neighbors():
    """One pass against a plain loop."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4))
    near = np.argsort(rng.random((60, 60)) + 10 * np.eye(60), axis=1)[:, :5].astype(np.int32)
    squares = ((X[:, None] - X) ** 2).sum(axis=2)
    near = np.take_along_axis(near, np.argsort(np.take_along_axis(squares, near, axis=1), axis=1), axis=1)
    near[7, 3:] = -1
    keys = np.take_along_axis(squares, near, axis=1)
    keys[7, 3:] = np.inf
    keys_found, found = np.empty_like(keys), np.empty_like(near)
    clusters = rng.integers(0, 12, (60, 2)).astype(np.int32)
    core.join_neighbors(X, rng.permutation(60).astype(np.int32), clusters, keys, near, keys_found, found, 2)
    for i in range(60):
        known = {int(j) for j in near[i] if j >= 0}
        theirs = {int(t) for j in known for t in near[j] if t >= 0}
        known |= {t for t in theirs if not set(clusters[t]) & set(clusters[i])}  # the others have been compared
        best = sorted((squares[i, j], j) for j in known - {i})[:5]
        assert [j for _, j in best] == found[i, : len(best)].tolist()
        np.testing.assert_allclose([d for d, _ in best], keys_found[i, : len(best)], rtol=1e-12)


def test_kernels_refuse_rows_out_of_range():
    X, keys = np.zeros((10, 2)), np.zeros((10, 2))
    members, candidates = np.array([0, 1, 10], dtype=np.int32), np.empty((3, 2), dtype=np.int32)
    for starts, known, words in (
        ([0, 3], [0], "rows must be between 0 and n - 1 = 9"),
        ([0, 4], [0], "starts must"),
        ([0, 3], [4], "known members"),
        ([0, 3], [0, 0], "known must have one entry"),
    ):
        with pytest.raises(ValueError, match=words):
            core.cluster_candidates(X, np.array(starts), np.array(known), members, keys, candidates, 1)
    near, order, clusters = np.full((10, 2), 10, np.int32), np.arange(10, dtype=np.int32), np.zeros((10, 1), np.int32)
    with pytest.raises(ValueError, match="rows must be between -1 and n - 1 = 9"):
        core.join_neighbors(X, order, clusters, keys, near, keys.copy(), near.copy(), 1)
    near[:] = -1
    with pytest.raises(ValueError, match="places must be rows of candidates"):
        core.rank_candidates(X, order, np.full((10, 1), 3), np.zeros((3, 2), dtype=np.int32), keys, near, 1)


def test_candidates_of_clusters():
    """Against a plain loop: the nearest others of the cluster that the list does not rule out, known pairs left out."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 9))
    squares = ((X[:, None] - X) ** 2).sum(axis=2)
    starts, known = np.array([0, 120, 120, 260]), np.array([50, 0, 0])
    members = np.concatenate([rng.permutation(300)[:120], rng.permutation(300)[:140]]).astype(np.int32)
    keys = np.sort(np.where(rng.random((300, 4)) < 0.8, np.inf, 12 * rng.random((300, 4))), axis=1)
    candidates = np.empty((260, 7), dtype=np.int32)
    core.cluster_candidates(X, starts, known, members, keys, candidates, 2)
    for c in range(3):
        rows = members[starts[c] : starts[c + 1]]
        for place, row in enumerate(rows):
            new = [j for other, j in enumerate(rows) if other != place and max(other, place) >= known[c] // 32 * 32]
            near = sorted((squares[row, j], j) for j in new if squares[row, j] < keys[row, -1])[:7]
            expected = {j for _, j in near}
            found = {int(j) for j in candidates[starts[c] + place] if j >= 0}
            assert expected <= found | {j for j in expected if place < known[c] and j in rows[: known[c]]}
            assert found <= set(rows.tolist()) - {row}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"recall": 0.0}, "recall must be a positive"),
        ({"recall": 1.5}, "recall must be a number above 0 and at most 1. Got 1.5"),
        ({"recall": "high"}, "recall must be a positive number"),
        ({"random_state": -1}, "random_state must be an integer of at least 0. Got -1"),
        ({"random_state": 0.5}, "random_state must be an integer"),
        ({"queries": [[0.0, 0.0]]}, "queries must be None for algorithm='clusters'"),
    ],
)
def test_bad_options(options, words):
    with pytest.raises(ValueError, match=words):
        knn(np.eye(5, 2), 2, algorithm="clusters", **options)


@pytest.mark.parametrize("k", [0, 5, 1.5, True])
def test_bad_k(k):
    with pytest.raises(ValueError, match="k must be an integer from 1 to 4"):
        approximate_knn(np.eye(5, 2), k)


def test_bad_rows():
    for X in ([[1.0, np.nan], [0.0, 1.0]], [[np.inf], [0.0]], np.zeros((1, 3)), np.zeros(3)):
        with pytest.raises(ValueError, match="X must"):
            approximate_knn(X, 1)


def test_few_rows_of_all_sizes_are_searched_as_exactly_as_by_the_exact_search():
    """Squares of distances far below the largest entry vanished."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((30, 3)) * 10.0 ** rng.integers(-300, 300, (30, 1))
    for found, expected in zip(approximate_knn(x, 5)[:2], knn(x, 5), strict=True):
        np.testing.assert_array_equal(found, expected)
