"""Few rows take ways of their own through the kernels and the estimators: none may show in a bit of the result."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from manifast import LaplacianEigenmaps, LocallyLinearEmbedding
from manifast._core import rbf as _rbf
from manifast._kernels import heat_mean
from manifast.embeddings._base import RowEstimator
from manifast.extensions import RBF, KernelRidge, LandmarkIsomap, LatentVariable, Linear, Nystrom, Reconstruction
from manifast.kernels import gaussian, knn, rbf_apply, sq_distances

DTYPES = [np.float32, np.float64]
BATCH = 13  # more than any kernel takes for few


def rows_and_others(rng, m, p, dtype, scale=1.0):
    """Rows, and m others among which are their copies and rows so near that the expanded square has no digits left."""
    x, y = rng.standard_normal((BATCH, p)) + 3.0, rng.standard_normal((m, p)) + 3.0
    some = min(m, 9)
    y[m - some :] = x[:some]
    y[m - some :: 2] += 1e-4
    return (x * scale).astype(dtype), (y * scale).astype(dtype)


def assert_same_bits(call, x):
    """The batch, whole and in pieces around the sizes at which kernels change their way."""
    whole = call(x)
    for begin, size in ((0, 1), (4, 1), (BATCH - 1, 1), (2, 4), (1, 5), (3, 8), (0, 9)):
        assert np.array_equal(call(x[begin : begin + size]), whole[begin : begin + size], equal_nan=True)


@pytest.mark.parametrize("dtype", DTYPES)
def test_distances_for_every_number_of_features(rng, level, dtype):
    for p in range(1, 71):
        x, y = rows_and_others(rng, 45, p, dtype)
        assert_same_bits(lambda part, y=y: sq_distances(part, y), x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("p", [5, 19, 2100])
def test_distances_for_sizes_around_every_switch(rng, level, dtype, p):
    for m in (1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 192, 193, 207) if p < 100 else (17, 32, 193):
        x, y = rows_and_others(rng, m, p, dtype)
        assert_same_bits(lambda part, y=y: gaussian(part, y, sigma=2.0), x)
        coef = rng.standard_normal((m, 3)).astype(dtype)
        assert_same_bits(lambda part, y=y, coef=coef: rbf_apply(part, y, coef, sigma=2.0), x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_rbf_apply_for_every_number_of_outputs(rng, level, dtype):
    for m in (20, 33, 400):
        x, y = rows_and_others(rng, m, 11, dtype)
        for d in (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 70):
            coef = rng.standard_normal((m, d)).astype(dtype)
            expected = gaussian(x[:1].astype(float), y.astype(float), sigma=3.0) @ coef.astype(float)
            assert_same_bits(lambda part, y=y, coef=coef: rbf_apply(part, y, coef, sigma=3.0), x)
            # Relative to what is summed: the sums themselves may cancel.
            rounding = 50 * np.finfo(dtype).eps * np.abs(coef).sum(axis=0)
            assert (np.abs(rbf_apply(x[:1], y, coef, sigma=3.0) - expected) <= rounding).all()


RANGES = [(np.float32, (1e-22, 1e-19, 1e15, 1e18)), (np.float64, (1e-160, 1e-154, 1e150))]


@pytest.mark.parametrize("dtype, scales", RANGES)
@pytest.mark.parametrize("p", [4, 30])
def test_ends_of_the_range(rng, level, dtype, scales, p):
    """Where squares are subnormal, vanish or overflow the way they are summed would show first."""
    for scale in scales:
        x, y = rows_and_others(rng, 50, p, dtype, scale)
        assert_same_bits(lambda part, y=y: sq_distances(part, y), x)
        assert_same_bits(lambda part, y=y, s=scale: gaussian(part, y, sigma=s), x)
        distances = np.array([knn(y, 4, queries=x[i : i + 1])[0][0] for i in range(BATCH)])
        assert np.array_equal(distances, knn(y, 4, queries=x)[0])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("whole", [False, True])
def test_knn_for_every_number_of_features(rng, level, dtype, whole):
    """Also with integers, where most distances are tied, and by the tree, which few queries never see by themselves."""
    for p in range(1, 71):
        x, y = rows_and_others(rng, 60, p, dtype)
        if whole:
            x, y = np.rint(x), np.rint(y)
        for k in (7, 60) if p % 10 == 0 else (7,):
            expected = knn(y, k, queries=x, algorithm="brute")
            tree = knn(y, k, queries=x[:3], algorithm="tree")
            for found, other in zip(tree, expected, strict=True):
                assert np.array_equal(found, other[:3])
            assert_same_bits(lambda part, y=y, k=k: np.stack(knn(y, k, queries=part), axis=-1), x)


def test_knn_of_few_queries_with_many_neighbors(rng, level):
    """Lists too long to be kept sorted."""
    y = np.rint(rng.standard_normal((700, 9)) * 2)
    x = y[:BATCH] + 1
    for k in (128, 129, 500, 700):
        assert_same_bits(lambda part, k=k: np.stack(knn(y, k, queries=part), axis=-1), x)
    few = y[:6]
    for k in (1, 5):
        for found, expected in zip(knn(few, k, algorithm="brute"), knn(few, k, algorithm="tree"), strict=True):
            assert np.array_equal(found, expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_threads_share_the_points_of_one_row(rng, level, dtype):
    y = np.rint(rng.standard_normal((6000, 50)) * 2).astype(dtype)
    x, coef = y[:1] + dtype(0.5), rng.standard_normal((6000, 3)).astype(dtype)
    calls = (
        lambda threads: sq_distances(x, y, n_threads=threads),
        lambda threads: rbf_apply(x, y, coef, sigma=10.0, n_threads=threads),
        lambda threads: knn(y, 20, queries=x, n_threads=threads)[0],
        lambda threads: knn(y, 20, queries=x, n_threads=threads)[1],
        lambda threads: knn(y, 300, queries=x, n_threads=threads)[1],
    )
    for call in calls:
        expected = call(1)
        for threads in (2, 3, 4):
            assert np.array_equal(call(threads), expected)


def heat_mean_oracle(distances, neighbors, Y, beta, others):
    out = []
    for i, d in enumerate(distances.astype(np.longdouble)):
        rows = Y if neighbors is None else Y[neighbors[i]]
        taken = d > 0 if others and (d > 0).any() else np.ones(len(d), bool)
        nearest = d[taken].min()
        weights = np.where(taken, np.exp(-np.maximum(d**2 - nearest**2, 0) / np.longdouble(beta)), 0)
        out.append(weights @ rows / weights.sum())
    return np.array(out, dtype=float)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("others", [False, True])
@pytest.mark.parametrize("beta", [0.7, np.inf])
def test_heat_mean_matches_oracle(rng, level, dtype, others, beta):
    for k, d in ((1, 1), (3, 2), (9, 17), (40, 10), (41, 33)):
        Y = rng.standard_normal((40, d)).astype(dtype)
        neighbors = rng.integers(0, 40, (BATCH, k))
        distances = np.sort(rng.uniform(0, 2, (BATCH, k)), axis=1)
        distances[::2, 0] = 0
        distances[4] = 0
        for lists in (neighbors, None) if k == 40 else (neighbors,):
            made = heat_mean(distances, lists, Y, beta, others=others)
            expected = heat_mean_oracle(distances, lists, Y, beta, others)
            np.testing.assert_allclose(made, expected, rtol=1e-12, atol=1e-14)
            for i in range(BATCH):
                one = slice(i, i + 1)
                again = heat_mean(distances[one], None if lists is None else lists[one], Y, beta, others=others)
                assert np.array_equal(again, made[one])


def test_heat_mean_where_squares_would_overflow_or_vanish(level):
    Y = np.array([[1.0], [2.0], [4.0]])
    lists = np.array([[0, 1, 2]])

    def mean(distances, beta, others=False):
        return heat_mean(np.array([distances]), lists, Y, beta, others=others)[0, 0]

    assert mean([1e200, 1e200, 2e200], 1.0) == 1.5
    assert mean([1e-200, 1e-200, 1e-190], 1.0) == pytest.approx(7 / 3)
    assert mean([0.0, 1e200, 1.7e308], 1e-300, others=True) == 2.0
    assert mean([np.inf, np.inf, np.inf], 1.0) == pytest.approx(7 / 3)
    assert mean([5.0, 5.0, 5.0], 5e-324) == pytest.approx(7 / 3)


def test_heat_mean_refuses_shapes_that_do_not_match():
    out, Y, distances = np.empty((2, 3)), np.zeros((5, 3)), np.zeros((2, 4))
    with pytest.raises(ValueError, match="one column per row"):
        _rbf.heat_mean(distances, None, Y, 1.0, False, out, 1)
    with pytest.raises(ValueError, match="match in shape"):
        _rbf.heat_mean(distances, np.zeros((2, 3), np.int64), Y, 1.0, False, out, 1)
    with pytest.raises(ValueError, match="rows of distances"):
        _rbf.heat_mean(distances, np.zeros((2, 4), np.int64), Y, 1.0, False, out[:1], 1)


MAPS = [
    Linear(), RBF(), KernelRidge(), KernelRidge(kernel="poly"), LatentVariable(), Reconstruction(), LandmarkIsomap(),
    Nystrom(), Nystrom(n_neighbors=6), Nystrom(weights="binary"),
]  # fmt: skip


@pytest.mark.parametrize("extension", MAPS, ids=str)
@pytest.mark.parametrize("dtypes", [(np.float64,) * 3, (np.float32,) * 3, (np.float32, np.float64, np.float32)])
@pytest.mark.parametrize("p", [3, 20])
def test_maps(rng, extension, dtypes, p):
    """Training rows among the new ones; rows, embedding and new rows of one dtype, or mixed."""
    X, Y, new = rng.standard_normal((60, p)), rng.uniform(1, 2, (60, 3)), rng.standard_normal((BATCH, p))
    new[:3] = X[:3]
    X, Y, new = (part.astype(dtype) for part, dtype in zip((X, Y, new), dtypes, strict=True))
    assert_same_bits(extension.fit(X, Y).predict, new)


@pytest.mark.parametrize("scale", [1e-200, 1e170])
def test_maps_by_neighbours_at_any_scale(rng, scale):
    """What a search needs to know of its points is found at fit, once."""
    X, Y, new = rng.standard_normal((40, 5)), rng.uniform(1, 2, (40, 2)), rng.standard_normal((BATCH, 5))
    expected = Reconstruction(5).fit(X, Y).predict(new)
    made = Reconstruction(5).fit(X * scale, Y)
    np.testing.assert_allclose(made.predict(new * scale), expected, rtol=1e-6)
    assert_same_bits(made.predict, new * scale)


def outcome(model, X):
    """What transform gives, raises and warns."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            result = model.transform(X)
        except Exception as error:
            result = error
    told = [(w.category, str(w.message)) for w in said]
    if isinstance(result, Exception):
        return type(result), str(result), told
    return result.dtype, result.tobytes(), told


@pytest.mark.parametrize("estimator", [LaplacianEigenmaps(2), LocallyLinearEmbedding(n_components=2)], ids=str)
def test_plain_rows_are_judged_as_scikit_learn_judges_them(rng, monkeypatch, estimator):
    X = rng.standard_normal((50, 6))
    new = rng.standard_normal((4, 6))
    with_nan, with_inf = new.copy(), new.copy()
    with_nan[2, 3], with_inf[1, 0] = np.nan, -np.inf
    inputs = [
        new, new[:1], new.astype(np.float32), np.asfortranarray(new), new[::2], new.tolist(), new.astype(">f8"),
        new.astype(np.float16), (10 * new).astype(int), new.astype(object), new.view(np.matrix), np.ma.array(new),
        with_nan, with_inf, with_nan.astype(np.float32), new[:0], new[0], new[None], new[:, :5], np.hstack([new, new]),
        new * 1e200, new.astype(complex), "text", None, sp.csr_array(new),
    ]  # fmt: skip
    for trained in (X, X.astype(np.float32), X * 1e250):
        estimator.fit(trained)
        quick = [outcome(estimator, given) for given in inputs]
        with monkeypatch.context() as patch:
            patch.setattr(RowEstimator, "_plain", lambda self, X: False)
            assert quick == [outcome(estimator, given) for given in inputs]


def test_feature_names_are_missed(rng):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(rng.standard_normal((30, 3)), columns=["a", "b", "c"])
    model = LaplacianEigenmaps(2).fit(frame)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        plain = model.transform(frame.to_numpy()[:2])
    assert np.array_equal(plain, model.transform(frame[:2]))


def test_unfitted_is_said():
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError, match="not fitted yet"):
        LaplacianEigenmaps().transform(np.eye(3))
