"""Fitted maps: coefficients in float32 only where their rounding does not show in the image."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from manifast import LPP, SpectralRegression
from manifast._gram import power
from manifast.extensions import KernelRidge, Linear

ROWS = np.random.default_rng(0).standard_normal((100, 3))
IMAGE = np.sin(ROWS).astype(np.float32)


@pytest.mark.parametrize(
    ("model", "rows"),
    [
        (KernelRidge("poly", alpha=1e6, degree=2), 1e3 * ROWS),
        (SpectralRegression(kernel="poly", alpha=1e6, degree=2), 1e3 * ROWS),
        (Linear(), ROWS + 1e3),
        (LPP(), ROWS + 1e3),
    ],
    ids=["kernel ridge", "spectral regression", "linear", "projection"],
)
def test_float32_maps_of_large_features_are_as_good_as_the_data(model, rows):
    """Large features or kernel values times rounded coefficients: off by the image's own size and more."""
    rows = rows.astype(np.float32)
    narrow, wide = (clone(model).fit(rows.astype(dtype), IMAGE.astype(dtype)) for dtype in (np.float32, np.float64))
    apply = "predict" if hasattr(model, "predict") else "transform"
    got, expected = getattr(narrow, apply)(rows), getattr(wide, apply)(rows.astype(np.float64))
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, expected, atol=2e-6 * np.abs(expected).max())


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 7, 100])
def test_powers_are_products_in_a_fixed_order(degree):
    """NumPy's own powers have other bits from version to version."""
    base = np.random.default_rng(0).uniform(-2, 2, (9, 5))
    expected = []
    for value in base.ravel().tolist():
        made, square = None, value
        for bit in reversed(format(degree, "b")):
            if bit == "1":
                made = square if made is None else made * square
            square = square * square if abs(square) < 1e100 else square
        expected.append(made)
    np.testing.assert_array_equal(power(base, degree).ravel(), expected)
    np.testing.assert_allclose(power(base, degree), base**degree, rtol=1e-13)
