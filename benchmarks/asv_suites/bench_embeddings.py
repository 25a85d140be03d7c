"""Embeddings: fits, maps for new rows, the eigensolver's methods, and peak memory."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.datasets import load_digits, make_swiss_roll

import manifast
from manifast.graphs import knn_graph
from manifast.kernels import laplacian
from manifast.spectral import smallest_eigenvectors

METHODS = {
    "LaplacianEigenmaps": {},
    "LocallyLinearEmbedding": {},
    "LTSA": {},
    "LocalRegressionEmbedding": {},
    "Isomap": {},
    "Isomap with landmarks": {"n_landmarks": 200},
    "LGRM": {},
    "LPP": {},
    "SpectralRegression": {"kernel": "rbf"},
}


def make(name: str, **parameters: object) -> object:
    return getattr(manifast, name.split()[0])(n_neighbors=10, **METHODS[name], **parameters)


class Fit:
    params = (tuple(METHODS), ("Swiss roll 2000", "digits"))
    param_names = ("method", "data")

    def setup(self, method: str, data: str) -> None:
        warnings.simplefilter("ignore")
        self.X = load_digits().data if data == "digits" else make_swiss_roll(2000, random_state=0)[0]

    def time_fit(self, method: str, data: str) -> None:
        make(method).fit(self.X)


class FitLarge:
    params = (("LaplacianEigenmaps", "LocallyLinearEmbedding", "LTSA"), (20_000, 50_000))
    param_names = ("method", "n")

    def setup(self, method: str, n: int) -> None:
        self.X = make_swiss_roll(n, random_state=0)[0]

    def time_fit(self, method: str, n: int) -> None:
        make(method).fit(self.X)

    def peakmem_fit(self, method: str, n: int) -> None:
        make(method).fit(self.X)


class Transform:
    params = (tuple(METHODS), (1, 10_000))
    param_names = ("method", "rows")

    def setup(self, method: str, rows: int) -> None:
        warnings.simplefilter("ignore")
        self.model = make(method).fit(make_swiss_roll(1000, random_state=0)[0])
        self.new = make_swiss_roll(rows, random_state=1)[0]

    def time_transform(self, method: str, rows: int) -> None:
        self.model.transform(self.new)


class Solver:
    params = (("direct", "multilevel"), ("Swiss roll 20,000", "digits"))
    param_names = ("method", "graph")

    def setup(self, method: str, graph: str) -> None:
        X = load_digits().data if graph == "digits" else make_swiss_roll(20_000, random_state=0)[0]
        self.L, self.degrees = laplacian(knn_graph(X, 10))
        self.constant = np.ones(len(X))

    def time_smallest_eigenvectors(self, method: str, graph: str) -> None:
        smallest_eigenvectors(self.L, 4, self.degrees, null=self.constant, method=method)
