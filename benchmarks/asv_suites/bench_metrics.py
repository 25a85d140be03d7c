"""Neighbourhood metrics: one pass over all pairs for all k up to the largest."""

from __future__ import annotations

import numpy as np

try:
    from manifast.metrics import trustworthiness
except ImportError:  # versions before that function
    trustworthiness = None


class Neighborhoods:
    params = (["float32", "float64"], [5, 100], ["good", "poor"])
    param_names = ("dtype", "k", "embedding")

    def setup(self, dtype, k, embedding):
        if trustworthiness is None:
            raise NotImplementedError
        rng = np.random.default_rng(0)
        chart = rng.standard_normal((5000, 2))
        self.X = (chart @ rng.standard_normal((2, 50)) + 0.01 * rng.standard_normal((5000, 50))).astype(dtype)
        self.Y = (chart if embedding == "good" else rng.standard_normal((5000, 2))).astype(dtype)

    def time_trustworthiness(self, dtype, k, embedding):
        trustworthiness(self.X, self.Y, k)


class PeakMemory:
    def setup(self):
        if trustworthiness is None:
            raise NotImplementedError
        self.X = np.random.default_rng(0).standard_normal((50_000, 50))

    def peakmem_trustworthiness(self):
        trustworthiness(self.X, self.X[:, :2], range(1, 31))
