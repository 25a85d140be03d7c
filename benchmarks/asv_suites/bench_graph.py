"""Neighbours in few dimensions by kd-tree, graphs from neighbour lists, and Laplacians."""

from __future__ import annotations

import numpy as np

from manifast import kernels

try:
    from manifast._kernels import by_tree
except ImportError:  # versions before that module
    from manifast._core.kdtree import kdtree_knn as by_tree


def points(kind: str, n: int, p: int) -> np.ndarray:
    """Uniform or normal points, or a Swiss roll (which has three features whatever p)."""
    rng = np.random.default_rng(0)
    if kind == "uniform":
        return rng.uniform(size=(n, p))
    if kind == "normal":
        return rng.standard_normal((n, p))
    t = 1.5 * np.pi * (1 + 2 * rng.uniform(size=n))
    return np.stack([t * np.cos(t), 21 * rng.uniform(size=n), t * np.sin(t)], axis=1)


def tree(X: np.ndarray, k: int, threads: int, queries: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The tree itself, past the choice of algorithm that `knn` makes."""
    rows = len(X) if queries is None else len(queries)
    distances, indices = np.empty((rows, k), X.dtype), np.empty((rows, k), np.int64)
    by_tree(X, queries, distances, indices, threads)
    return distances, indices


class Tree:
    params = (["float32", "float64"], [2, 3, 5, 8], ["uniform", "normal", "roll"])
    param_names = ("dtype", "p", "data")

    def setup(self, dtype, p, data):
        if data == "roll" and p != 3:
            raise NotImplementedError
        self.X = points(data, 20_000, p).astype(dtype)

    def time_self(self, dtype, p, data):
        tree(self.X, 10, 1)

    def time_queries(self, dtype, p, data):
        tree(self.X, 10, 1, self.X[::4] + self.X.dtype.type(0.01))


class TreeManyNeighbors:
    params = ([1, 10, 48, 49, 1000],)
    param_names = ("k",)

    def setup(self, k):
        self.X = points("uniform", 10_000, 3)

    def time_self(self, k):
        tree(self.X, k, 1)


class TreeTies:
    """Hardly any two distances differ."""

    params = (["grid", "identical"],)
    param_names = ("data",)

    def setup(self, data):
        rng = np.random.default_rng(0)
        self.X = rng.integers(0, 30, (20_000, 3)).astype(float) if data == "grid" else np.ones((20_000, 3))

    def time_self(self, data):
        tree(self.X, 10, 1)


class Graph:
    params = (["float32", "float64"], [10, 50], ["union", "mutual"])
    param_names = ("dtype", "k", "mode")

    def setup(self, dtype, k, mode):
        self.distances, self.indices = tree(points("normal", 50_000, 3).astype(dtype), k, 1)

    def time_heat(self, dtype, k, mode):
        kernels.neighbor_graph(self.distances, self.indices, beta=0.1, mode=mode, n_threads=1)


class Laplacian:
    params = (["float32", "float64"], ["plain", "sym", "rw"])
    param_names = ("dtype", "normalization")

    def setup(self, dtype, normalization):
        self.W = kernels.neighbor_graph(*tree(points("normal", 50_000, 3).astype(dtype), 10, 1), beta=0.1)

    def time_laplacian(self, dtype, normalization):
        kernels.laplacian(self.W, normalization=None if normalization == "plain" else normalization, n_threads=1)
