"""sq_distances and gaussian against plain NumPy, and the promises about bits, offsets and near pairs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifast.kernels import gaussian, sq_distances

DTYPES = [np.float32, np.float64]
SHAPES = [(1, 1, 1), (5, 7, 3), (6, 16, 4), (13, 33, 17), (100, 130, 64), (97, 5, 300), (7, 250, 2100)]


def oracle(x, y):
    """Differences squared and summed, in extended precision."""
    x, y = x.astype(np.longdouble), y.astype(np.longdouble)
    return np.array([[((a - b) ** 2).sum() for b in y] for a in x], dtype=np.longdouble).reshape(len(x), len(y))


def tolerance(dtype, p):
    return np.finfo(dtype).eps * (8 + 2 * np.sqrt(p))


def assert_accurate(result, x, y):
    """Errors as of a rounded sum of the squared norms about the middle of y; a fixed share of digits for near pairs."""
    expected = oracle(x, y)
    dtype, p = result.dtype.type, x.shape[1]
    middle = y.astype(np.longdouble).mean(0) if len(y) else 0
    norms = [((a.astype(np.longdouble) - middle) ** 2).sum(-1) for a in (x, y)]
    bound = tolerance(dtype, p) * (norms[0][:, None] + norms[1])
    near = {np.float32: 1e-2, np.float64: 1e-3}[dtype]
    assert (np.abs(result - expected) <= np.minimum(bound, tolerance(dtype, p) * expected / near * 4)).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n, m, p", SHAPES)
def test_matches_oracle(rng, level, dtype, n, m, p):
    x, y = rng.standard_normal((n, p)).astype(dtype), rng.standard_normal((m, p)).astype(dtype)
    result = sq_distances(x, y)
    assert result.dtype == dtype and result.shape == (n, m)
    assert_accurate(result, x, y)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n, p", [(1, 1), (2, 3), (50, 5), (101, 40), (40, 1100)])
def test_self_is_symmetric_with_zero_diagonal(rng, level, dtype, n, p):
    x = rng.standard_normal((n, p)).astype(dtype)
    result = sq_distances(x)
    assert np.array_equal(result, result.T)
    assert not result.diagonal().any()
    assert np.array_equal(result, sq_distances(x, x))
    assert_accurate(result, x, x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_identical_rows_are_at_zero_and_nothing_is_negative(rng, level, dtype):
    x = rng.standard_normal((40, 77)).astype(dtype)
    y = np.concatenate([x[::-1], x + dtype(1e-4), x * dtype(1 + 1e-6)])
    result = sq_distances(x, y)
    assert (result >= 0).all()
    assert not result[np.arange(40), np.arange(39, -1, -1)].any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_common_offset_costs_no_accuracy(rng, level, dtype):
    # On a grid that float32 still resolves at 1e4, so that the offset itself rounds nothing.
    x, y = (np.round(rng.standard_normal((30, 20)) * 64) / 64 for _ in range(2))
    expected = oracle(x, y).astype(float)
    result = sq_distances((x + 1e4).astype(dtype), (y + 1e4).astype(dtype))
    np.testing.assert_allclose(result, expected, rtol=tolerance(dtype, 20))


@pytest.mark.parametrize("dtype", DTYPES)
def test_near_pairs_keep_their_digits(rng, level, dtype):
    """Clusters far apart, pairs close inside: the expanded square would lose everything."""
    centers = rng.integers(-3, 4, (6, 9)) * 1000.0
    x = (centers[rng.integers(0, 6, 60)] + np.round(rng.standard_normal((60, 9)) * 256) / 256).astype(dtype)
    np.testing.assert_allclose(sq_distances(x), oracle(x, x).astype(float), rtol=60 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", DTYPES)
def test_integer_data_are_exact(rng, level, dtype):
    x, y = rng.integers(0, 17, (60, 64)), rng.integers(0, 17, (70, 64))
    expected = ((x[:, None] - y[None]) ** 2).sum(-1)
    assert np.array_equal(sq_distances(x.astype(dtype), y.astype(dtype)), expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("p", [3, 50, 2500])
def test_bits_do_not_depend_on_threads_batch_or_layout(rng, level, dtype, p):
    x, y = rng.standard_normal((110, p)).astype(dtype), rng.standard_normal((140, p)).astype(dtype)
    expected = sq_distances(x, y, n_threads=1)
    for threads in (2, 3, 5):
        assert np.array_equal(sq_distances(x, y, n_threads=threads), expected)
        assert np.array_equal(sq_distances(x, n_threads=threads), sq_distances(x, n_threads=1))
    for i in (0, 5, 109):
        assert np.array_equal(sq_distances(x[i : i + 1], y), expected[i : i + 1])
    assert np.array_equal(sq_distances(x[3:50], y), expected[3:50])
    assert np.array_equal(sq_distances(np.asfortranarray(x), np.asfortranarray(y)), expected)
    assert np.array_equal(sq_distances(np.repeat(x, 2, axis=0)[::2], y), expected)


def test_levels_agree_to_rounding(rng, on_every_level):
    x = rng.standard_normal((80, 200))
    first, *others = on_every_level(lambda: sq_distances(x))
    for result in others:
        np.testing.assert_allclose(result, first, rtol=1e-13)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("p", [4, 16, 40])
def test_ends_of_the_range(rng, level, dtype, p):
    """A square that the dtype still holds is found although the norms or products overflow; equal rows are at 0."""
    largest = float(np.finfo(dtype).max)
    x = np.zeros((2, p), dtype)
    x[1] = np.sqrt(largest / p * 0.9)
    np.testing.assert_allclose(sq_distances(x)[0, 1], largest * 0.9, rtol=1e-5)
    x[0] = x[1]
    x[0, 0] *= dtype(0.5)
    assert np.array_equal(sq_distances(x, x[::-1].copy())[:, ::-1] == 0, np.eye(2, dtype=bool))
    smallest = float(np.sqrt(np.finfo(dtype).smallest_subnormal))
    for scale in smallest * np.geomspace(0.1, 1e4, 60):
        small = (rng.standard_normal((3, p)) * scale).astype(dtype)
        result = sq_distances(small)
        assert not result.diagonal().any()
        expected = oracle(small, small).astype(float)
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=4 * p * float(np.finfo(dtype).smallest_subnormal))


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 40), st.integers(0, 40), st.integers(1, 40), st.sampled_from(DTYPES), st.integers(0, 2**32 - 1),
    st.sampled_from([1e-12, 1.0, 1e12]),
)  # fmt: skip
def test_any_shape_and_scale(n, m, p, dtype, seed, scale):
    rng = np.random.default_rng(seed)
    x, y = ((rng.standard_normal((rows, p)) * scale).astype(dtype) for rows in (n, m))
    result = sq_distances(x, y)
    assert result.shape == (n, m)
    assert_accurate(result, x, y)


def test_out_is_filled_and_returned(rng):
    x, y = rng.standard_normal((20, 3)), rng.standard_normal((31, 3))
    out = np.full((20, 31), np.nan)
    assert sq_distances(x, y, out=out) is out
    assert np.array_equal(out, sq_distances(x, y))


@pytest.mark.parametrize(
    "out, message",
    [
        (np.empty((3, 2)), "out must be an array of shape"),
        (np.empty((3, 3), np.float32), "out must be an array of shape"),
        (np.empty((3, 3), order="F"), "C-contiguous"),
        ([[0.0] * 3] * 3, "out must be an array of shape"),
    ],
)
def test_bad_out_is_refused(out, message):
    with pytest.raises(ValueError, match=message):
        sq_distances(np.eye(3), out=out)


def test_out_may_not_overlap_the_input():
    x = np.zeros((3, 3))
    with pytest.raises(ValueError, match="must not share memory"):
        sq_distances(x, out=x)


@pytest.mark.parametrize(
    "x, message",
    [
        (np.zeros(3), "X must be a matrix with 2 dimensions. Got 1"),
        (np.zeros((2, 2, 2)), "X must be a matrix with 2 dimensions. Got 3"),
        (np.zeros((3, 0)), "at least 1 column"),
        (np.array([[1.0, np.nan]]), "X must be finite"),
        (np.array([[1.0, -np.inf]]), "X must be finite"),
        (np.array([["a"]]), "X must hold real numbers"),
        (np.array([[1j]]), "X must hold real numbers"),
        (np.array([[None]]), "X must hold real numbers"),
    ],
)
def test_bad_input_is_refused(x, message):
    with pytest.raises(ValueError, match=message):
        sq_distances(x)


def test_sparse_input_is_refused():
    import scipy.sparse

    with pytest.raises(ValueError, match="X must be a dense array"):
        sq_distances(scipy.sparse.eye_array(3))


def test_mismatched_columns_are_refused():
    with pytest.raises(ValueError, match="Y must have 3 columns"):
        sq_distances(np.zeros((2, 3)), np.zeros((2, 4)))


@pytest.mark.parametrize("threads", [0, -1, 1.5, "2", True])
def test_bad_threads_are_refused(threads):
    with pytest.raises(ValueError, match="n_threads must be None or an integer"):
        sq_distances(np.eye(2), n_threads=threads)


def test_unusual_but_valid_input(rng):
    x = rng.integers(0, 9, (12, 4))
    expected = sq_distances(x.astype(float))
    assert sq_distances(x).dtype == np.float64
    assert np.array_equal(sq_distances(x), expected)
    assert np.array_equal(sq_distances(x.tolist()), expected)
    assert np.array_equal(sq_distances(x.astype(">f8")), expected)
    assert np.array_equal(sq_distances(x > 4), sq_distances((x > 4).astype(float)))
    assert sq_distances(x.astype(np.float16)).dtype == np.float32
    read_only = x.astype(float)
    read_only.flags.writeable = False
    assert np.array_equal(sq_distances(read_only), expected)
    assert sq_distances(x.astype(np.float32), x.astype(float)).dtype == np.float64


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sigma", [0.3, 2.0, 50.0])
def test_gaussian_matches_oracle(rng, level, dtype, sigma):
    x, y = rng.standard_normal((40, 6)).astype(dtype), rng.standard_normal((50, 6)).astype(dtype)
    exponent = -oracle(x, y) / np.longdouble(sigma) ** 2
    # An error in the exponent is a relative error of the result.
    rtol = np.finfo(dtype).eps * (4 + 16 * np.abs(exponent).max() / 1)
    result = gaussian(x, y, sigma=sigma)
    assert result.dtype == dtype
    np.testing.assert_allclose(result, np.exp(exponent).astype(dtype), rtol=float(rtol), atol=np.finfo(dtype).tiny)


@pytest.mark.parametrize("dtype", DTYPES)
def test_exponential_is_accurate_to_a_few_ulp(level, dtype):
    """One feature and distance t from the origin: the exponent is exact, so only exp itself can err."""
    t = np.sqrt(np.arange(0, 80 if dtype == np.float32 else 690, 0.37)).astype(dtype)[:, None]
    square = sq_distances(t, np.zeros((1, 1), dtype))
    exact = np.exp(-square.astype(np.longdouble))
    error = np.abs(gaussian(t, np.zeros((1, 1), dtype), sigma=1.0) - exact) / np.spacing(exact.astype(dtype))
    assert error.max() < 2


@pytest.mark.parametrize("dtype", DTYPES)
def test_exponential_at_its_ends(level, dtype):
    zero = np.zeros((1, 1), dtype)

    def value(t):
        return gaussian(np.array([[t]], dtype), zero, sigma=1.0)[0, 0]

    assert value(0) == 1
    assert value(1e-10) == 1
    assert value(1e15) == 0
    assert value(np.finfo(dtype).max) == 0
    tail = np.arange(9.4, 10.3, 0.05) if dtype == np.float32 else np.arange(26.7, 27.4, 0.05)
    for t in tail.astype(dtype):  # through the subnormals
        expected = np.exp(-np.longdouble(t * t))
        assert abs(value(t) - expected) <= 2 * max(np.spacing(dtype(expected)), np.finfo(dtype).smallest_subnormal)


@pytest.mark.parametrize("sigma", [1e-300, 1e-200, 1e-44, 1e-30, 1e-15, 1e15, 1e25, 1e37, 1e200, 1e300])
@pytest.mark.parametrize("dtype", DTYPES)
def test_gaussian_at_any_sigma(level, dtype, sigma):
    from manifast.kernels import rbf_apply

    # Data at the scale of sigma (as far as the dtype reaches), at scale 1, and both.
    scales = [1.0] + [sigma] * (float(np.finfo(dtype).tiny) * 1e3 < sigma < float(np.finfo(dtype).max) / 1e3)
    for scale in scales:
        x = (np.array([[0.0], [1.0], [3.0]]) * scale).astype(dtype)
        ratio = (x.astype(np.longdouble) - x.astype(np.longdouble).T) / np.longdouble(sigma)
        expected = np.exp(-(ratio**2)).astype(float)
        result = gaussian(x, sigma=sigma)
        assert result.dtype == dtype
        np.testing.assert_allclose(result, expected, rtol=50 * np.finfo(dtype).eps, atol=float(np.finfo(dtype).tiny))
        applied = rbf_apply(x, x, np.eye(3, dtype=dtype), sigma=sigma)
        assert applied.dtype == dtype
        np.testing.assert_allclose(applied, expected, rtol=50 * np.finfo(dtype).eps, atol=float(np.finfo(dtype).tiny))


@pytest.mark.parametrize("sigma", [0, -1.0, np.nan, np.inf, "wide", None])
def test_bad_sigma_is_refused(sigma):
    with pytest.raises(ValueError, match="sigma must be a positive"):
        gaussian(np.eye(2), sigma=sigma)
