"""Barycentric weights, reconstruction, and the LLE and alignment matrices against plain NumPy."""

import numpy as np
import pytest
from helpers import X10, check_matrix, nearest, roll, same_bits

from manifast._local import alignment_matrix, barycenter_weights, lle_matrix, reconstruct

DTYPES = [np.float32, np.float64]


def plain_weights(X, neighbors, queries, reg=1e-3):
    X, queries = X.astype(float), queries.astype(float)
    rows = []
    for q, list_ in zip(queries, neighbors, strict=True):
        Z = X[list_] - q
        G = Z @ Z.T
        trace = np.trace(G)
        w = np.linalg.solve(G + (reg * trace if trace > 0 else reg) * np.eye(len(list_)), np.ones(len(list_)))
        rows.append(w / w.sum())
    return np.array(rows)


def plain_lle(X, neighbors, reg=1e-3):
    n = len(X)
    W = np.zeros((n, n))
    for i, w in enumerate(plain_weights(X, neighbors, X, reg)):
        W[i, neighbors[i]] = w
    return (np.eye(n) - W).T @ (np.eye(n) - W)


def plain_alignment(X, cliques, dim, gamma=0.0):
    n, k = len(X), cliques.shape[1]
    H = np.eye(k) - 1 / k
    M = np.zeros((n, n))
    for clique in cliques:
        U, s, _ = np.linalg.svd(H @ X[clique].astype(float), full_matrices=False)
        U, s = U[:, :dim], s[:dim]
        kept = s > 1e-6 * s[0]
        factor = np.where(kept, s**2 / np.where(kept, s**2 + gamma, 1), 0)
        M[np.ix_(clique, clique)] += H - (U * factor) @ U.T
    return M


# Weights and reconstruction


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("reg", [1e-6, 1e-3, 0.7])
@pytest.mark.parametrize(("p", "k"), [(1, 1), (1, 2), (1, 5), (2, 3), (3, 10), (17, 4), (40, 40), (400, 12)])
def test_weights(level, rng, p, k, reg, dtype):
    X = rng.standard_normal((61, p)).astype(dtype)
    queries = rng.standard_normal((13, p)).astype(dtype)
    neighbors = nearest(X, k)
    tolerance = 2e-6 if dtype == np.float32 else 1e-15 * k / reg + 1e-13
    found = barycenter_weights(X, neighbors, reg=reg)
    assert found.dtype == dtype and found.shape == (61, k)
    wanted = plain_weights(X, neighbors, X, reg)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance * np.abs(wanted).max())
    neighbors = nearest(X, k, queries)
    wanted = plain_weights(X, neighbors, queries, reg)
    found = barycenter_weights(X, neighbors, queries=queries, reg=reg)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance * np.abs(wanted).max())
    np.testing.assert_allclose(found.sum(axis=1, dtype=float), 1, rtol=k * 2e-7 if dtype == np.float32 else 1e-13)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", [1, 2, 9])
def test_reconstruct(level, rng, d, dtype):
    X, queries = rng.standard_normal((50, 3)).astype(dtype), rng.standard_normal((23, 3)).astype(dtype)
    Y = rng.standard_normal((50, d)).astype(dtype)
    neighbors = nearest(X, 7, queries)
    weights = plain_weights(X, neighbors, queries)
    wanted = np.einsum("ij,ijc->ic", weights, Y[neighbors].astype(float))
    found = reconstruct(X, Y, queries, neighbors)
    assert found.dtype == dtype
    tolerance = (6e-8 if dtype == np.float32 else 1e-12) * np.abs(weights).sum(axis=1).max() * np.abs(Y).max()
    np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance)


def test_reconstruct_is_affine(level, rng):
    """Weights sum to 1 and reproduce the query where reg is small: an affine map of X extends to the queries."""
    X, queries = rng.standard_normal((80, 2)), rng.uniform(-0.5, 0.5, (30, 2))
    A, b = rng.standard_normal((2, 3)), rng.standard_normal(3)
    found = reconstruct(X, X @ A + b, queries, nearest(X, 6, queries), reg=1e-12)
    np.testing.assert_allclose(found, queries @ A + b, atol=1e-9)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_row_depends_on_itself_alone(level, rng, dtype):
    X, Y = rng.standard_normal((300, 5)).astype(dtype), rng.standard_normal((300, 3)).astype(dtype)
    queries = rng.standard_normal((101, 5)).astype(dtype)
    queries[17] = X[4]
    neighbors = nearest(X, 8, queries)
    neighbors[17] = 4
    all_at_once = reconstruct(X, Y, queries, neighbors, n_threads=1)
    for threads in (2, 3):
        np.testing.assert_array_equal(reconstruct(X, Y, queries, neighbors, n_threads=threads), all_at_once)
    one_by_one = [reconstruct(X, Y, queries[i : i + 1], neighbors[i : i + 1])[0] for i in range(101)]
    np.testing.assert_array_equal(one_by_one, all_at_once)
    np.testing.assert_array_equal(reconstruct(X, Y, queries[3:60], neighbors[3:60]), all_at_once[3:60])
    layouts = (np.asfortranarray(X), np.repeat(Y, 2, axis=0)[::2], queries.T.copy().T, np.asfortranarray(neighbors))
    np.testing.assert_array_equal(reconstruct(*layouts), all_at_once)
    weights = barycenter_weights(X, neighbors, queries=queries, n_threads=1)
    np.testing.assert_array_equal(barycenter_weights(X, neighbors[5:9], queries=queries[5:9]), weights[5:9])
    np.testing.assert_array_equal(barycenter_weights(X, neighbors, queries=queries, n_threads=3), weights)


def test_duplicates_get_equal_weights(level, rng):
    X = np.ones((9, 4))
    np.testing.assert_allclose(barycenter_weights(X, np.arange(5)[None].repeat(9, 0)), 0.2, rtol=1e-15)
    Y = rng.standard_normal((9, 2))
    np.testing.assert_allclose(reconstruct(X, Y, X[:1], [[0, 1, 2]]), Y[:3].mean(axis=0)[None], rtol=1e-14)
    X = np.array([[0.0], [0.0], [1.0]])  # two on the query, one off it
    w = barycenter_weights(X, [[0, 1, 2]], queries=[[0.0]])
    np.testing.assert_allclose(w, plain_weights(X, [[0, 1, 2]], X[:1]), rtol=1e-13)
    repeated = barycenter_weights(X, [[2, 2]], queries=[[0.5]])
    np.testing.assert_allclose(repeated, [[0.5, 0.5]], rtol=1e-13)


@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1e-300, 1e-160, 1e-50, 1e50, 1e160, 1e300, 8e307])
def test_scales_change_no_weight(level, rng, scale):
    X = rng.integers(-2, 3, (30, 3)).astype(float) if scale < 1e-300 else rng.uniform(-2, 2, (30, 3))
    neighbors = rng.permuted(np.tile(np.arange(30), (30, 1)), axis=1)[:, :6]
    wanted = plain_weights(X, neighbors, X)
    if scale == 1e-310:  # rounding to a subnormal grid moves the points
        X = np.round(X * 2**20) / 2**20
        scale = 2.0**-1050
        wanted = plain_weights(X, neighbors, X)
    found = barycenter_weights(X * scale, neighbors)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12 * np.abs(wanted).max())


def test_scales_side_by_side(level, rng):
    """Rows of wildly different extent in one batch, and neighbours of wildly different distance."""
    X = rng.uniform(-1, 1, (40, 3))
    X[:10] *= 1e-200
    X[10:20] *= 1e200
    X[20] = 1.7e308
    X[21] = -1.7e308
    neighbors = np.array([(i // 10 * 10 + (i + np.arange(1, 6)) % 10) for i in range(40)])
    neighbors[5] = [6, 15, 20, 21, 35]
    weights = barycenter_weights(X, neighbors)
    assert np.isfinite(weights).all()
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-13)
    for i in (0, 12, 37):
        own = X[i // 10 * 10 : i // 10 * 10 + 10] / [1e-200, 1e200, 1, 1][i // 10]
        wanted = plain_weights(own, neighbors[i : i + 1] % 10, own[i % 10 : i % 10 + 1])
        np.testing.assert_allclose(weights[i : i + 1], wanted, atol=1e-12)


@pytest.mark.parametrize("reg", [1e-300, 1e-14, 1e-10, 1e10, 1e300])
def test_no_regularisation_gives_nan(level, rng, reg):
    X = rng.standard_normal((40, 2))
    X[5:9] = X[4]
    X[20:] = np.linspace(0, 1, 20)[:, None]
    weights = barycenter_weights(X, nearest(X, 12), reg=reg)
    assert np.isfinite(weights).all()
    if reg >= 1e10:
        np.testing.assert_allclose(weights, 1 / 12, rtol=1e-9)


# The LLE matrix


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n", "p", "k"), [(2, 1, 1), (40, 1, 3), (40, 3, 1), (60, 3, 10), (30, 3, 29), (50, 70, 9)])
def test_lle(level, rng, n, p, k, dtype):
    X = rng.standard_normal((n, p)).astype(dtype)
    neighbors = nearest(X, k)
    check_matrix(lle_matrix(X, neighbors), plain_lle(X, neighbors), 1e-11)


def test_lle_of_scikit_learn(level, rng):
    from sklearn.manifold._locally_linear import barycenter_kneighbors_graph

    X = roll(rng, 90)
    W = barycenter_kneighbors_graph(X, 8).toarray()
    check_matrix(lle_matrix(X, nearest(X, 8)), (np.eye(90) - W).T @ (np.eye(90) - W), 1e-11)


def test_lle_of_duplicates_and_constant_features(level, rng):
    X = rng.standard_normal((40, 3))
    X[:, 1] = 7
    X[10:16] = X[10]
    neighbors = nearest(X, 5)
    check_matrix(lle_matrix(X, neighbors), plain_lle(X, neighbors), 1e-11)


# The alignment matrix


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("gamma", [0.0, 0.3])
@pytest.mark.parametrize(
    ("n", "p", "k", "dim"),
    [(5, 1, 2, 1), (40, 1, 6, 1), (40, 2, 2, 1), (60, 3, 10, 1), (60, 3, 10, 2), (60, 3, 10, 3), (60, 9, 10, 4),
     (60, 10, 10, 4), (60, 11, 10, 9), (50, 100, 12, 3), (54, 40, 50, 5), (24, 70, 20, 19), (20, 1500, 7, 2)],
)  # fmt: skip
def test_alignment(level, rng, n, p, k, dim, gamma, dtype):
    X = (rng.standard_normal((n, p)) * np.geomspace(3, 0.3, p) + 5).astype(dtype)
    cliques = nearest(X, k)
    check_matrix(alignment_matrix(X, cliques, dim=dim, gamma=gamma), plain_alignment(X, cliques, dim, gamma), 1e-11)


@pytest.mark.parametrize(("p", "k"), [(3, 10), (6, 7), (8, 7), (200, 12), (24, 25), (25, 24), (200, 40)])
def test_the_projector_is_accurate(level, rng, p, k):
    """One clique at a time, a large gap after dim directions, an offset much larger than the spread."""
    for _ in range(20):
        X = rng.standard_normal((k, 2)) @ rng.standard_normal((2, p)) + 1e-3 * rng.standard_normal((k, p)) + 64
        clique = np.arange(k)[None]
        M = alignment_matrix(X, clique, dim=2).toarray()
        np.testing.assert_allclose(M, plain_alignment(X - X[0], clique, 2), atol=1e-12)
        np.testing.assert_allclose(M @ M, M, atol=1e-14 * k)


def test_ltsa_of_scikit_learn(level, rng):
    """The loop of sklearn.manifold.locally_linear_embedding(method="ltsa"), which sums I - G G' per clique."""
    X = roll(rng, 80)
    k, dim = 9, 2
    neighbors = nearest(X, k)
    M = np.zeros((80, 80))
    for i in range(80):
        Xi = X[neighbors[i]] - X[neighbors[i]].mean(0)
        U = np.linalg.svd(Xi, full_matrices=True)[0]
        G = np.c_[np.full(k, 1 / np.sqrt(k)), U[:, :dim]]
        M[np.ix_(neighbors[i], neighbors[i])] += np.eye(k) - G @ G.T
    check_matrix(alignment_matrix(X, neighbors, dim=dim), M, 1e-11)


def test_local_regression_of_lgrm(level, rng):
    """Yang et al. 2010, eq. 10 to 12: the residual of ridge regression with bias on the local coordinates."""
    X, gamma, dim, k = roll(rng, 80), 0.7, 2, 8
    cliques = np.c_[np.arange(80), nearest(X, k - 1)]
    H = np.eye(k) - 1 / k
    M = np.zeros((80, 80))
    for clique in cliques:
        _, _, Vt = np.linalg.svd(H @ X[clique], full_matrices=False)
        T = H @ X[clique] @ Vt[:dim].T
        M[np.ix_(clique, clique)] += H - T @ np.linalg.solve(T.T @ T + gamma * np.eye(dim), T.T)
    check_matrix(alignment_matrix(X, cliques, dim=dim, gamma=gamma), M, 1e-11)


@pytest.mark.parametrize("p", [2, 5, 30])  # by features with rank to spare, and by points
def test_affine_images_are_annihilated(level, rng, p):
    T = rng.standard_normal((70, 2))
    X = T @ rng.standard_normal((2, p)) + rng.standard_normal(p)
    M = alignment_matrix(X, nearest(T, 9), dim=2)
    assert abs(M @ T).max() <= 1e-12 * abs(M).max() * np.abs(T).max() * 9
    full = M.toarray()
    assert (np.linalg.eigvalsh(full) > 1e-6 * full.max()).sum() == 70 - 3  # and nothing else is


def test_limits_of_gamma(level, rng):
    X, cliques = rng.standard_normal((30, 4)), nearest(rng.standard_normal((30, 4)), 6)
    H = np.zeros((30, 30))
    for clique in cliques:
        H[np.ix_(clique, clique)] += np.eye(6) - 1 / 6
    check_matrix(alignment_matrix(X, cliques, dim=3, gamma=1e300), H)
    check_matrix(alignment_matrix(X, cliques, dim=3, gamma=1e-300), alignment_matrix(X, cliques, dim=3).toarray())


@pytest.mark.parametrize(("p", "k"), [(3, 8), (20, 8), (18, 30), (50, 30)])
def test_rank_below_dim(level, rng, p, k):
    """Null directions add nothing: duplicates give H, points on a line the projection off that line."""
    line = rng.standard_normal((k, 1)) * rng.standard_normal(p) + rng.standard_normal(p)
    few = np.repeat(rng.standard_normal((3, p)), [k - 4, 3, 1], axis=0)  # rank 2
    X = np.concatenate([np.tile(rng.standard_normal(p), (k, 1)), line, few])
    cliques = np.arange(3 * k).reshape(3, k)
    wanted = np.zeros((3 * k, 3 * k))
    for clique, rank in zip(cliques, [0, 1, 2], strict=True):
        U = np.linalg.svd(X[clique] - X[clique].mean(0), full_matrices=False)[0][:, :rank]
        wanted[np.ix_(clique, clique)] = np.eye(k) - 1 / k - U @ U.T
    for gamma in (0.0, 1e-100):
        check_matrix(alignment_matrix(X, cliques, dim=3, gamma=gamma), wanted)


@pytest.mark.parametrize("k", [6, 30])
def test_equal_singular_values(level, k):
    """A regular simplex: any leading space will do, but it must be one."""
    M = alignment_matrix(np.eye(k), np.arange(k)[None], dim=3).toarray()
    np.testing.assert_allclose(M @ M, M, atol=2e-15 * k)
    np.testing.assert_allclose(np.trace(M), k - 4, rtol=1e-14)


@pytest.mark.parametrize("p", [3, 20])
@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e-100, 1e100, 1e200, 5e307])
def test_alignment_has_no_scale(level, rng, scale, p):
    X = rng.uniform(-2, 2, (30, p))
    cliques = rng.permuted(np.tile(np.arange(30), (30, 1)), axis=1)[:, : 7 if p == 3 else 16]
    check_matrix(alignment_matrix(X * scale, cliques, dim=2), alignment_matrix(X, cliques, dim=2).toarray(),
                 1e-9 if scale < 1e-300 else 1e-12)  # fmt: skip
    with np.errstate(over="ignore", under="ignore"):
        gamma = min(0.5 * scale * scale, 1e308)
    if 1e-300 < gamma < 1e300:
        wanted = alignment_matrix(X, cliques, dim=2, gamma=0.5).toarray()
        check_matrix(alignment_matrix(X * scale, cliques, dim=2, gamma=gamma), wanted)


def test_few_cliques_and_points_in_none(level, rng):
    X = rng.standard_normal((20, 3))
    cliques = np.array([[3, 1, 7, 9], [9, 12, 3, 19]])
    check_matrix(alignment_matrix(X, cliques, dim=2), plain_alignment(X, cliques, 2))
    empty = alignment_matrix(X, np.empty((0, 4), np.int64), dim=2)
    assert empty.shape == (20, 20) and empty.nnz == 0


def test_a_hub(level, rng):
    """One point in every clique: its row is full."""
    X = rng.standard_normal((150, 3))
    cliques = np.c_[np.zeros(149, np.int64), np.arange(1, 150), np.roll(np.arange(1, 150), 1)]
    check_matrix(alignment_matrix(X, cliques, dim=1), plain_alignment(X, cliques, 1))


@pytest.mark.parametrize("dtype", DTYPES)
def test_matrices_do_not_depend_on_threads_or_layout(level, rng, dtype):
    X = roll(rng, 500).astype(dtype)
    neighbors = nearest(X, 9)
    strange = np.repeat(np.asfortranarray(X), 2, axis=1)[:, ::2], np.asfortranarray(neighbors.astype(np.uint16))
    for make in (lle_matrix, lambda *a, **k: alignment_matrix(*a, dim=2, gamma=0.1, **k)):
        alone = make(X, neighbors, n_threads=1)
        for threads in (2, 3):
            same_bits(make(X, neighbors, n_threads=threads), alone)
        same_bits(make(*strange), alone)


# Checks at the door


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: barycenter_weights(X10, [[1, 10]] * 10), "neighbors must be between 0 and n - 1 = 9"),
        (lambda: barycenter_weights(X10, [[1, -1]] * 10), "neighbors must be between"),
        (lambda: barycenter_weights(X10, np.full((10, 1), 2**63, np.uint64)), "neighbors must be between"),
        (lambda: barycenter_weights(X10, [[1.0]] * 10), "neighbors must hold integers"),
        (lambda: barycenter_weights(X10, [1] * 10), "neighbors must be a matrix"),
        (lambda: barycenter_weights(X10, np.empty((10, 0), int)), "neighbors must be a matrix with at least 1 column"),
        (lambda: barycenter_weights(X10, [[1]] * 9), "neighbors must have 10 rows"),
        (lambda: barycenter_weights(X10, [[1]] * 9, queries=X10[:8]), "neighbors must have 8 rows"),
        (lambda: barycenter_weights(X10, [[1]], queries=[[1.0]]), "queries must have 3 columns"),
        (lambda: barycenter_weights(X10, [[1]] * 10, reg=0), "reg must be a positive"),
        (lambda: barycenter_weights(X10, [[1]] * 10, reg=np.inf), "reg must be a positive"),
        (lambda: barycenter_weights(X10 * np.nan, [[1]] * 10), "X must be finite"),
        (lambda: reconstruct(X10, X10[:9], X10, [[1]] * 10), "Y must have one row per row of X, 10"),
        (lambda: reconstruct(X10, X10, X10, [[11]] * 10), "neighbors must be between"),
        (lambda: lle_matrix(X10, [[1]] * 10), "neighbors must not name a row itself.*in row 1"),
        (lambda: lle_matrix(X10, [[1, 2]] * 9 + [[3, 3]]), "neighbors must not name"),
        (lambda: lle_matrix(np.empty((0, 3)), np.empty((0, 2), int)), "X must have at least 1 row"),
        (lambda: alignment_matrix(X10, [[0, 1, 2], [0, 3, 0]], dim=1), "cliques must not name a point twice.*in row 1"),
        (lambda: alignment_matrix(X10, [[0, 1, 10]], dim=1), "cliques must be between"),
        (lambda: alignment_matrix(X10, [[0, 1, 2]], dim=3), r"dim must be an integer from 1 to 2, min\(k - 1, p\)"),
        (lambda: alignment_matrix(X10, [[0, 1, 2, 3, 4]], dim=4), r"from 1 to 3, min\(k - 1, p\)"),
        (lambda: alignment_matrix(X10, [[0]], dim=1), r"from 1 to 0, min\(k - 1, p\)"),
        (lambda: alignment_matrix(X10, [[0, 1, 2]], dim=0), "dim must be"),
        (lambda: alignment_matrix(X10, [[0, 1, 2]], dim=1.0), "dim must be"),
        (lambda: alignment_matrix(X10, [[0, 1, 2]], dim=1, gamma=-1), "gamma must be"),
        (lambda: alignment_matrix(X10, [[0, 1, 2]], dim=1, n_threads=0), "n_threads must be"),
    ],
)  # fmt: skip
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_no_queries(level):
    none = np.empty((0, 3))
    assert barycenter_weights(X10, np.empty((0, 4), int), queries=none).shape == (0, 4)
    assert reconstruct(X10, X10[:, :2], none, np.empty((0, 4), int)).shape == (0, 2)
