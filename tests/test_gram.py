"""The median distance: exactly that of all pairs, however it is found."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from manifast._gram import _two_of_rank, median_distance
from manifast.kernels import sq_distances


@pytest.mark.parametrize("n", [2, 3, 50, 600, 5000])
@pytest.mark.parametrize("kind", ["normal", "few values", "sorted", "all equal", "far apart"])
def test_values_of_a_rank(n, kind):
    rng = np.random.default_rng(n)
    values = {
        "normal": rng.standard_normal(n),
        "few values": rng.integers(0, 4, n).astype(float),
        "sorted": np.sort(rng.standard_normal(n)),
        "all equal": np.ones(n),
        "far apart": np.where(np.arange(n) % 511, 1.0, 1e300),  # the sample sees nothing of the rest
    }[kind]
    for rank in {1, min(2, n - 1), n // 2, n - 1}:
        assert_array_equal(_two_of_rank(values, rank), np.sort(values)[rank - 1 : rank + 1])


@pytest.mark.parametrize("n", [2, 3, 10, 301])
def test_the_median_is_that_of_all_pairs(n):
    X = np.random.default_rng(n).standard_normal((n, 3))
    distances = np.sqrt(sq_distances(X)[np.triu_indices(n, 1)])
    assert median_distance(X) == np.median(distances)
