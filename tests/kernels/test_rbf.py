"""rbf_apply and the affine product: against plain NumPy, and bit-identical for a row in any batch."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifast._kernels import affine_product
from manifast.kernels import rbf_apply

DTYPES = [np.float32, np.float64]


def rbf_oracle(x, centers, coef, sigma):
    x, centers, coef = (np.asarray(a, dtype=np.longdouble) for a in (x, centers, coef))
    square = ((x[:, None] - centers[None]) ** 2).sum(-1)
    return np.exp(-square / np.longdouble(sigma) ** 2) @ coef


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "n, m, p, d", [(1, 1, 1, 1), (9, 7, 3, 2), (100, 250, 5, 11), (33, 400, 60, 3), (20, 13, 2300, 4)]
)
def test_matches_oracle(rng, level, dtype, n, m, p, d):
    x, c, w = (rng.standard_normal(shape).astype(dtype) for shape in ((n, p), (m, p), (m, d)))
    sigma = np.sqrt(2.0 * p)
    expected = rbf_oracle(x, c, w, sigma).astype(float)
    scale = np.abs(w).sum(0).max()
    result = rbf_apply(x, c, w, sigma=sigma)
    assert result.dtype == dtype and result.shape == (n, d)
    assert np.abs(result - expected).max() < 4 * np.finfo(dtype).eps * scale


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("p", [3, 70, 2100])
def test_bits_do_not_depend_on_threads_batch_or_layout(rng, level, dtype, p):
    x, c, w = (rng.standard_normal(s).astype(dtype) for s in ((205, p), (410, p), (410, 5)))
    sigma = np.sqrt(p)
    expected = rbf_apply(x, c, w, sigma=sigma, n_threads=1)
    for threads in (2, 3):
        assert np.array_equal(rbf_apply(x, c, w, sigma=sigma, n_threads=threads), expected)
    for i in (0, 17, 204):
        assert np.array_equal(rbf_apply(x[i : i + 1], c, w, sigma=sigma), expected[i : i + 1])
    assert np.array_equal(rbf_apply(x[40:180], c, w, sigma=sigma), expected[40:180])
    assert np.array_equal(rbf_apply(np.asfortranarray(x), np.asfortranarray(c), w[:, ::1], sigma=sigma), expected)
    assert np.array_equal(rbf_apply(x, c, w[:, 2], sigma=sigma), expected[:, 2])


def test_interpolates_at_centers(rng, level):
    """Kernel times its own solve gives the data back."""
    from manifast.kernels import gaussian

    c, y = rng.standard_normal((60, 8)), rng.standard_normal((60, 3))
    coef = np.linalg.solve(gaussian(c, sigma=1.5), y)
    np.testing.assert_allclose(rbf_apply(c, c, coef, sigma=1.5), y, rtol=1e-9, atol=1e-10)


def test_far_rows_give_zero_and_no_centers_give_zero(rng, level):
    c, w = rng.standard_normal((10, 4)), rng.standard_normal((10, 2))
    assert not rbf_apply(np.full((3, 4), 1e160), c, w, sigma=1.0).any()
    assert not rbf_apply(np.full((3, 4), 1e6), c, w, sigma=1.0).any()
    assert np.array_equal(rbf_apply(c, np.empty((0, 4)), np.empty((0, 2)), sigma=1.0), np.zeros((10, 2)))
    assert rbf_apply(np.empty((0, 4)), c, w, sigma=1.0).shape == (0, 2)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 30), st.integers(1, 30), st.integers(1, 20), st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_any_shape(n, m, p, d, seed):
    rng = np.random.default_rng(seed)
    x, c, w = rng.standard_normal((n, p)), rng.standard_normal((m, p)), rng.standard_normal((m, d))
    np.testing.assert_allclose(
        rbf_apply(x, c, w, sigma=2.0), rbf_oracle(x, c, w, 2.0).astype(float), rtol=1e-11, atol=1e-14
    )


@pytest.mark.process
def test_memory_stays_flat_in_the_number_of_rows(grown_memory):
    """Peak memory of the process grows by the result and a fixed workspace: the kernel matrix would be 800 MB."""
    grown = grown_memory(
        "import numpy as np\n"
        "from manifast.kernels import rbf_apply\n"
        "rng = np.random.default_rng(0)\n"
        "x, c, w = rng.standard_normal((200_000, 2)), rng.standard_normal((500, 2)), rng.standard_normal((500, 2))\n"
        "rbf_apply(x[:100], c, w, sigma=1.0)",
        "rbf_apply(x, c, w, sigma=1.0)",
    )
    assert grown < 20


def test_bad_input_is_refused(rng):
    x, c, w = rng.standard_normal((3, 2)), rng.standard_normal((4, 2)), rng.standard_normal((4, 2))
    with pytest.raises(ValueError, match="coef must have one row per center, 4"):
        rbf_apply(x, c, w[:3], sigma=1.0)
    with pytest.raises(ValueError, match="centers must have 2 columns"):
        rbf_apply(x, c[:, :1], w, sigma=1.0)
    with pytest.raises(ValueError, match="coef must be finite"):
        rbf_apply(x, c, np.full((4, 1), np.nan), sigma=1.0)
    with pytest.raises(ValueError, match="sigma must be a positive"):
        rbf_apply(x, c, w, sigma=0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n, p, d", [(1, 1, 1), (4, 5, 3), (7, 200, 20), (300, 33, 50), (5, 3000, 13)])
@pytest.mark.parametrize("bias", [True, False])
def test_affine_matches_oracle(rng, level, dtype, n, p, d, bias):
    x, w = rng.standard_normal((n, p)).astype(dtype), rng.standard_normal((p, d)).astype(dtype)
    b = rng.standard_normal(d).astype(dtype) if bias else None
    expected = x.astype(np.longdouble) @ w.astype(np.longdouble) + (0 if b is None else b)
    result = affine_product(x, w, b)
    assert result.dtype == dtype
    bound = np.finfo(dtype).eps * p**0.5 * 2 * (np.abs(x).astype(float) @ np.abs(w).astype(float) / p**0.5 + 1)
    assert (np.abs(result - expected) <= bound).all()
    for i in (0, n // 2, n - 1):
        assert np.array_equal(affine_product(x[i : i + 1], w, b), result[i : i + 1])
    for threads in (1, 2, 3):
        assert np.array_equal(affine_product(x, w, b, n_threads=threads), result)
    assert np.array_equal(affine_product(np.asfortranarray(x), np.asfortranarray(w), b), result)
