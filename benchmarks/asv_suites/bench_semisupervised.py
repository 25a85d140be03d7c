"""Semi-supervised embeddings: fits and new rows."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.datasets import make_blobs

import manifast

METHODS = {
    "ElasticEmbedding": {},
    "ElasticEmbedding, rbf": {"kernel": "rbf"},
    "ElasticEmbeddingCV": {"lam": (1.0, 1e3), "mu": (1e-3, 1.0, 1e3), "gamma": (1e-3, 1.0, 1e3)},
    "SDA": {},
    "SDE": {},
    "TCA": {},
}


class SemiSupervised:
    params = (tuple(METHODS), (1000, 4000))
    param_names = ("method", "rows")

    def setup(self, name: str, n: int) -> None:
        warnings.simplefilter("ignore")
        self.X, truth = make_blobs(n, 50, centers=10, cluster_std=10.0, random_state=0)
        self.y = np.where(np.arange(n) < 100, truth, -1)
        self.made = getattr(manifast, name.split(",")[0])(**METHODS[name])
        self.fitted = getattr(manifast, name.split(",")[0])(**METHODS[name]).fit(self.X, self.y)

    def time_fit(self, name: str, n: int) -> None:
        self.made.fit(self.X, self.y)

    def time_one_row(self, name: str, n: int) -> None:
        self.fitted.transform(self.X[:1])

    def time_1000_rows(self, name: str, n: int) -> None:
        self.fitted.transform(self.X[:1000])


class Large:
    """Beyond sparse factors: 20,000 rows in 100 dimensions."""

    def setup(self) -> None:
        self.X, truth = make_blobs(20_000, 100, centers=10, cluster_std=10.0, random_state=0)
        self.y = np.where(np.arange(20_000) < 200, truth, -1)

    def time_fit(self) -> None:
        manifast.ElasticEmbedding(20).fit(self.X, self.y)

    def peakmem_fit(self) -> None:
        manifast.ElasticEmbedding(20).fit(self.X, self.y)
