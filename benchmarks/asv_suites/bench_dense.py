"""Distances, Gaussian kernels, RBF maps, affine products, and what an import costs."""

from __future__ import annotations

import numpy as np

from manifast import kernels


def normal(rows, columns, dtype="float64", seed=0):
    return np.random.default_rng(seed).standard_normal((rows, columns)).astype(dtype)


class Distances:
    params = (["float32", "float64"], [3, 64, 1024], ["X", "X, Y"])
    param_names = ("dtype", "p", "arguments")

    def setup(self, dtype, p, arguments):
        self.X = normal(2000, p, dtype)
        self.Y = None if arguments == "X" else normal(2000, p, dtype, seed=1)
        self.out = np.empty((2000, 2000), dtype)

    def time_sq_distances(self, dtype, p, arguments):
        kernels.sq_distances(self.X, self.Y, out=self.out)

    def time_gaussian(self, dtype, p, arguments):
        kernels.gaussian(self.X, self.Y, sigma=p**0.5)


class RBFApply:
    params = (["float32", "float64"], [(20_000, 1000, 3, 2), (5000, 1000, 64, 10), (2000, 1000, 1024, 20)])
    param_names = ("dtype", "(m, n, p, d)")

    def setup(self, dtype, shape):
        m, n, p, d = shape
        self.X, self.centers, self.coef = normal(m, p, dtype), normal(n, p, dtype, 1), normal(n, d, dtype, 2)
        self.sigma = p**0.5

    def time_rbf_apply(self, dtype, shape):
        kernels.rbf_apply(self.X, self.centers, self.coef, sigma=self.sigma)


class Affine:
    params = (["float32", "float64"],)
    param_names = ("dtype",)

    def setup(self, dtype):
        self.X, self.W, self.b = normal(10_000, 200, dtype), normal(200, 20, dtype, 1), normal(1, 20, dtype, 2)[0]
        try:
            from manifast._kernels import affine_product
        except ImportError:  # versions before that module
            affine_product = kernels._affine_product
        self.product = affine_product

    def time_affine(self, dtype):
        self.product(self.X, self.W, self.b)


class SingleRow:
    """What a call costs apart from its work."""

    def setup(self):
        self.x, self.Y = normal(1, 16), normal(10, 16, seed=1)

    def time_sq_distances(self):
        kernels.sq_distances(self.x, self.Y)


class Import:
    """The kernels may add 0.1 s to NumPy and scipy.sparse: compare the first two."""

    def timeraw_numpy_and_scipy_sparse(self):
        return "import numpy, scipy.sparse"

    def timeraw_kernels(self):
        return "import numpy, scipy.sparse, manifast.kernels"

    def timeraw_package(self):
        return "import manifast"
