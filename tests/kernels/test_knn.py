"""knn against a plain NumPy oracle: exact neighbours, ties by index, proofs that hold on hard data."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifast.kernels import knn

DTYPES = [np.float32, np.float64]


def squares(x, y):
    return ((x.astype(float)[:, None] - y.astype(float)[None]) ** 2).sum(-1)


def oracle(x, k, queries=None):
    """All squared distances in double, sorted by (distance, index)."""
    d = squares(x if queries is None else queries, x)
    if queries is None:
        np.fill_diagonal(d, np.inf)
    order = np.argsort(d, axis=1, kind="stable")[:, :k]
    return np.sqrt(np.take_along_axis(d, order, 1)), order


def check(x, k, queries=None, exact_ties=False, **options):
    """Same neighbours as the oracle; where sums round differently, swaps only inside that rounding."""
    distances, indices = knn(x, k, queries=queries, **options)
    expected, order = oracle(x, k, queries)
    assert distances.dtype == x.dtype and indices.dtype == np.int64
    assert (np.diff(distances, axis=1) >= 0).all()
    np.testing.assert_allclose(distances, expected, rtol=2e-7 if x.dtype == np.float32 else 1e-13, atol=1e-300)
    if exact_ties:
        assert np.array_equal(indices, order)
    else:
        rows = np.arange(len(indices))[:, None]
        d = squares(x if queries is None else queries, x)
        np.testing.assert_allclose(d[rows, indices], d[rows, order], rtol=1e-13)
        assert all(len(set(row)) == k for row in indices)
        if queries is None:
            assert not (indices == rows).any()
    return distances, indices


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "n, p, k",
    [(2, 1, 1), (3, 2, 2), (50, 3, 49), (200, 20, 7), (130, 64, 10), (90, 300, 5), (60, 2500, 4), (400, 12, 150)],
)
def test_matches_oracle(rng, level, dtype, n, p, k):
    x = rng.standard_normal((n, p)).astype(dtype)
    check(x, k)
    check(x, k, queries=rng.standard_normal((37, p)).astype(dtype))
    check(x, min(k + 1, n), queries=x[: n // 2 + 1])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("p, high", [(1, 4), (3, 3), (8, 2), (30, 3), (64, 17)])
def test_ties_go_to_the_lower_index(rng, level, dtype, p, high):
    """Integer-valued data: distances are exact, and most are tied."""
    x = rng.integers(0, high, (300, p)).astype(dtype)
    for k in (1, 10, 200):
        check(x, k, exact_ties=True)
        check(x, k, queries=x[:50] + dtype(1), exact_ties=True)


@pytest.mark.parametrize("dtype", DTYPES)
def test_all_points_equal(level, dtype):
    x = np.full((70, 20), 3.25, dtype)
    distances, indices = knn(x, 5)
    assert not distances.any()
    assert np.array_equal(indices[0], [1, 2, 3, 4, 5]) and np.array_equal(indices[69], [0, 1, 2, 3, 4])
    assert np.array_equal(knn(x, 3, queries=x[:2])[1], [[0, 1, 2]] * 2)


@pytest.mark.parametrize("dtype", DTYPES)
def test_duplicated_points(rng, level, dtype):
    check(np.repeat(rng.standard_normal((30, 15)), 12, axis=0).astype(dtype), 10, exact_ties=True)


@pytest.mark.parametrize("offset, spread", [(1e4, 1.0), (1e6, 1e-3), (1e4, 1e-9)])
def test_near_pairs_far_from_the_origin_keep_their_order(rng, level, offset, spread):
    x = offset + spread * rng.standard_normal((150, 10))
    check(x, 8)
    check(np.float32(1e4) + rng.standard_normal((150, 10)).astype(np.float32), 8)


@pytest.mark.parametrize("dtype", DTYPES)
def test_tight_clusters_far_apart(rng, level, dtype):
    """Inside a cluster float32 screening sees only noise: the proof must send these rows up the ladder."""
    centers = rng.integers(-5, 6, (8, 12)) * 4096.0
    x = (centers[rng.integers(0, 8, 250)] + rng.integers(-64, 65, (250, 12)) / 512).astype(dtype)
    check(x, 9, exact_ties=True)


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e-30, 1e30, 1e160, 1e300])
def test_any_scale(rng, level, scale):
    x = rng.standard_normal((80, 6))
    distances, indices = knn(x, 6)
    scaled, same = knn(x * scale, 6)
    assert np.array_equal(same, indices)
    np.testing.assert_allclose(scaled / scale, distances, rtol=1e-14)
    if 1e-40 < scale < 1e38:
        small = (x * scale).astype(np.float32)
        check(small, 6)


def test_outlier_far_away(rng, level):
    x = rng.standard_normal((100, 5))
    x[7] = 1e30
    check(x, 4)
    near = x[:50][np.abs(x[:50]).max(1) < 10]
    queries = np.array([[1e200] * 5, [1e-200] * 5, [1.0] * 5])
    check(near, 4, queries=queries[1:])
    distances, indices = knn(near, 4, queries=queries)
    np.testing.assert_allclose(distances[0], np.sqrt(5) * 1e200, rtol=1e-14)
    assert np.array_equal(indices[0], [0, 1, 2, 3])  # all tied, to the last bit
    assert np.array_equal(indices[1:], knn(near, 4, queries=queries[1:])[1])
    check(near.astype(np.float32), 4, queries=np.full((2, 5), 1e38, np.float32))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("p", [2, 40])
def test_bits_do_not_depend_on_threads_batch_or_layout(rng, level, dtype, p):
    x, q = rng.standard_normal((500, p)).astype(dtype), rng.standard_normal((90, p)).astype(dtype)
    expected, queried = knn(x, 7, n_threads=1), knn(x, 7, queries=q, n_threads=1)
    for threads in (2, 3, 4, 7):
        for one, other in (
            (expected, knn(x, 7, n_threads=threads)),
            (queried, knn(x, 7, queries=q, n_threads=threads)),
        ):
            assert np.array_equal(one[0], other[0]) and np.array_equal(one[1], other[1])
    for i in (0, 33, 89):
        distances, indices = knn(x, 7, queries=q[i : i + 1])
        assert np.array_equal(distances[0], queried[0][i]) and np.array_equal(indices[0], queried[1][i])
    strided = np.repeat(x, 2, axis=1)[:, ::2]
    assert np.array_equal(knn(strided, 7)[0], expected[0])
    assert np.array_equal(knn(np.asfortranarray(x), 7)[1], expected[1])


@pytest.mark.parametrize("p", [1, 3, 6, 9, 16, 17])
@pytest.mark.parametrize("fill", [2, 20])
def test_tree_and_brute_force_give_the_same_bits(rng, level, p, fill):
    """Whatever "auto" picks (few features, or data that fill few dimensions: the tree) cannot be seen in the result."""
    x = rng.standard_normal((300, min(fill, p))) @ rng.standard_normal((min(fill, p), p))
    x[40:60] = x[:20]
    for queries in (None, x[:30] + 0.5, x[:30]):
        results = [knn(x, 8, queries=queries, algorithm=name) for name in ("brute", "tree", "auto")]
        for distances, indices in results[1:]:
            assert np.array_equal(distances, results[0][0]) and np.array_equal(indices, results[0][1])


def test_one_point_with_queries():
    for p in (1, 7, 30):
        distances, indices = knn(np.zeros((1, p)), 1, queries=np.ones((2, p)))
        assert np.array_equal(indices, [[0], [0]])
        np.testing.assert_allclose(distances, np.sqrt(p))


def test_levels_give_the_same_neighbours(rng, on_every_level):
    x = rng.standard_normal((300, 30)).astype(np.float32)
    first, *others = on_every_level(lambda: knn(x, 10))
    for distances, indices in others:
        assert np.array_equal(indices, first[1])
        np.testing.assert_allclose(distances, first[0], rtol=1e-6)


def test_proof_holds_for_very_many_features(level):
    """Long chains of rounding in the norms: float32 screening is off by more than what tells the two rows apart."""
    p, value = 400_000, 1.0707
    x = np.zeros((40, p), np.float32)
    x[0] = np.where(np.arange(p) % 2, -value, value)  # each term of its norm rounds the same way
    others = np.arange(1, 40)  # norms of one term, a little larger
    x[others, others] = np.sqrt(value**2 * p * 1.001 * (1 + 0.0004 * others))
    check(x, 1, queries=np.zeros((1, p), np.float32), algorithm="brute")


def test_outlier_beside_tiny_points(rng, level):
    """Squares of 1e-60 are still numbers beside an outlier of 1e130: nothing may be rescaled away."""
    x = rng.standard_normal((30, 3)) * 1e-60
    expected = knn(x, 4)[1]
    indices = knn(np.vstack([x, np.full((1, 3), 1e130)]), 4)[1]
    assert np.array_equal(indices[:30], expected)


@settings(max_examples=80, deadline=None)
@given(st.data(), st.integers(2, 60), st.integers(1, 12), st.sampled_from(DTYPES), st.integers(1, 5))
def test_small_integers_of_any_shape(data, n, p, dtype, high):
    seed = data.draw(st.integers(0, 2**32 - 1))
    x = np.random.default_rng(seed).integers(-high, high + 1, (n, p)).astype(dtype)
    k = data.draw(st.integers(1, n - 1))
    check(x, k, exact_ties=True)
    check(x, k + 1, queries=x, exact_ties=True)


@pytest.mark.parametrize("k", [0, -1, 5, 2.0, True, "3", None])
def test_bad_k_is_refused(k):
    with pytest.raises(ValueError, match="k must be an integer from 1 to 4 for 5 rows of X"):
        knn(np.eye(5), k)


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="k must be an integer from 1 to 5"):
        knn(np.eye(5), 6, queries=np.eye(5))
    with pytest.raises(ValueError, match="X must have at least 2 row"):
        knn(np.eye(1), 1)
    with pytest.raises(ValueError, match="X must have at least 2 row"):
        knn(np.empty((0, 3)), 1)
    with pytest.raises(ValueError, match="queries must have 3 columns"):
        knn(np.eye(3), 1, queries=np.eye(2))
    with pytest.raises(ValueError, match="algorithm must be"):
        knn(np.eye(3), 1, algorithm="magic")
    with pytest.raises(ValueError, match="queries must be finite"):
        knn(np.eye(3), 1, queries=np.full((1, 3), np.nan))


def test_no_queries_give_empty_results():
    distances, indices = knn(np.eye(4), 2, queries=np.empty((0, 4)))
    assert distances.shape == indices.shape == (0, 2)


@pytest.mark.process
@pytest.mark.parametrize("n", [20_000, pytest.param(60_000, marks=pytest.mark.heavy)])
def test_extra_memory_stays_below_200_megabytes(grown_memory, n):
    """All distances of 20,000 rows would take 1600."""
    grown = grown_memory(
        "import numpy as np\n"
        "from manifast.kernels import knn\n"
        f"x = np.random.default_rng(0).standard_normal(({n}, 50)).astype('float32')\n"
        "knn(x[:500], 10, algorithm='brute')",
        "knn(x, 10, algorithm='brute')",
    )
    assert grown < 200


@pytest.mark.parametrize("n", [700, pytest.param(1797, marks=pytest.mark.heavy)])
def test_digits(digits, n):
    check(digits[:n], 10, exact_ties=True)
    check(digits[-n:].astype(np.float32), 10, exact_ties=True)
