"""Exact nearest neighbours: brute force for many features, a tree for few."""

from __future__ import annotations

import numpy as np

from manifast import kernels


class Brute:
    params = (["float32", "float64"], [16, 64, 784], ["self", "queries"])
    param_names = ("dtype", "p", "rows")
    timeout = 120

    def setup(self, dtype, p, rows):
        rng = np.random.default_rng(0)
        self.X = rng.standard_normal((5000, p)).astype(dtype)
        self.queries = None if rows == "self" else rng.standard_normal((2000, p)).astype(dtype)

    def time_knn(self, dtype, p, rows):
        kernels.knn(self.X, 10, queries=self.queries, algorithm="brute")


class ManyNeighbors:
    params = ([1, 10, 100, 1000],)
    param_names = ("k",)

    def setup(self, k):
        self.X = np.random.default_rng(0).standard_normal((5000, 32)).astype("float32")

    def time_knn(self, k):
        kernels.knn(self.X, k, algorithm="brute")


class Ties:
    """Data where float32 screening proves little: many equal distances, tight clusters far apart."""

    params = (["binary", "clusters"],)
    param_names = ("data",)

    def setup(self, data):
        rng = np.random.default_rng(0)
        if data == "binary":
            self.X = rng.integers(0, 2, (4000, 24)).astype("float32")
        else:
            self.X = rng.integers(-5, 6, (4000, 1)) * 1e4 + rng.standard_normal((4000, 24))

    def time_knn(self, data):
        kernels.knn(self.X, 10, algorithm="brute")


class PeakMemory:
    def setup(self):
        self.X = np.random.default_rng(0).standard_normal((60_000, 50)).astype("float32")

    def peakmem_knn(self):
        kernels.knn(self.X, 10, algorithm="brute")
