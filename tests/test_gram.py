"""The median distance is exactly that of all pairs."""

from __future__ import annotations

import numpy as np
import pytest

from manifast._gram import median_distance
from manifast.kernels import sq_distances


@pytest.mark.parametrize("n", [2, 3, 10, 301])
def test_the_median_is_that_of_all_pairs(n):
    X = np.random.default_rng(n).standard_normal((n, 3))
    distances = np.sqrt(sq_distances(X)[np.triu_indices(n, 1)])
    assert median_distance(X) == np.median(distances)
