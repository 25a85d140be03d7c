"""Embeddings by labels and the classifier: fits on digits, and one new row."""

from __future__ import annotations

import warnings

from sklearn.datasets import load_digits

import manifast

METHODS = {
    "SupervisedLaplacianEigenmaps": {},
    "FisherEmbedding": {"n_neighbors_between": 10},
    "LabelEncoding": {},
    "NSSE": {},
    "LDE": {},
    "LFDA": {},
    "SupervisedIsomap": {},
    "RBFDiscriminant": {"sigma_grid": (0.5, 1.0, 2.0)},
}


class Supervised:
    params = (tuple(METHODS),)
    param_names = ("method",)

    def setup(self, method: str) -> None:
        warnings.simplefilter("ignore")
        X, y = load_digits(return_X_y=True)
        self.X, self.y, self.new = X[:500], y[:500], X[500:501]
        self.model = getattr(manifast, method)(**METHODS[method])
        self.fitted = getattr(manifast, method)(**METHODS[method]).fit(self.X, self.y)
        self.map = self.fitted.predict if hasattr(self.fitted, "predict") else self.fitted.transform

    def time_fit(self, method: str) -> None:
        self.model.fit(self.X, self.y)

    def time_one_row(self, method: str) -> None:
        self.map(self.new)
