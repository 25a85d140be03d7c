"""Rows packed once: one-row transforms, batches against prepared rows and against plain ones, and growth with n."""

from __future__ import annotations

import numpy as np

from manifast import extensions, kernels

try:
    from manifast._prepared import PreparedAtoms, PreparedCenters, PreparedRows
except ImportError:  # versions before that module
    PreparedAtoms = PreparedCenters = PreparedRows = None


class OneRow:
    """A row against 1000 x 64, d = 10, checks included."""

    params = (["RBF", "KernelRidge", "LatentVariable", "Reconstruction", "Nystrom"], ["float32", "float64"])
    param_names = ("map", "dtype")

    def setup(self, name: str, dtype: str) -> None:
        rng = np.random.default_rng(0)
        X, Y = rng.standard_normal((1000, 64)).astype(dtype), rng.uniform(1, 2, (1000, 10)).astype(dtype)
        self.row = rng.standard_normal((1, 64)).astype(dtype)
        self.fitted = getattr(extensions, name)().fit(X, Y)
        self.fitted.predict(self.row)

    def time_predict(self, name: str, dtype: str) -> None:
        self.fitted.predict(self.row)


class Prepared:
    """Prepared or not, by the number of new rows."""

    params = ([1, 16, 1000], ["prepared", "plain"])
    param_names = ("rows", "operand")

    def setup(self, rows: int, operand: str) -> None:
        if operand == "prepared" and PreparedRows is None:
            raise NotImplementedError
        rng = np.random.default_rng(0)
        self.X, self.new = rng.standard_normal((2000, 64)), rng.standard_normal((rows, 64))
        self.coef, self.atoms = rng.standard_normal((2000, 10)), rng.standard_normal((1241, 200))
        self.samples = rng.standard_normal((min(rows, 16), 200))
        if operand == "prepared":
            self.rows, self.centers = PreparedRows(self.X), PreparedCenters(self.X, self.coef)
            self.dictionary = PreparedAtoms(self.atoms)

    def time_distances(self, rows: int, operand: str) -> None:
        if operand == "prepared":
            self.rows.sq_distances(self.new)
        else:
            kernels.sq_distances(self.new, self.X)

    def time_nearest(self, rows: int, operand: str) -> None:
        if operand == "prepared":
            self.rows.nearest(self.new, 10)
        else:
            kernels.knn(self.X, 10, queries=self.new)

    def time_gaussians(self, rows: int, operand: str) -> None:
        if operand == "prepared":
            self.centers.product(self.new, 8.0)
        else:
            kernels.rbf_apply(self.new, self.X, self.coef, sigma=8.0)

    def time_codes(self, rows: int, operand: str) -> None:
        if operand == "prepared":
            self.dictionary.codes(self.samples, errors=True, lam=0.0)
        else:
            kernels.l1_code(self.samples, self.atoms)


class Growth:
    """1000 new rows of three features: nearly the same for any number of training rows."""

    params = ([2000, 8000, 32_000, 128_000], ["LatentVariable", "Reconstruction"])
    param_names = ("training rows", "map")

    def setup(self, n: int, name: str) -> None:
        rng = np.random.default_rng(0)
        X, self.new = rng.standard_normal((n, 3)), rng.standard_normal((1000, 3))
        self.fitted = getattr(extensions, name)().fit(X, X[:, :2])
        self.fitted.predict(self.new)

    def time_predict(self, n: int, name: str) -> None:
        self.fitted.predict(self.new)
