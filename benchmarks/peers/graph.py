"""The kd-tree against scipy's, and graph with Laplacian against scipy.sparse and csgraph."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import laplacian as csgraph_laplacian
from scipy.spatial import cKDTree

from benchmarks.asv_suites.bench_graph import points, tree
from benchmarks.measure import Row, race
from manifast.kernels import knn, laplacian, neighbor_graph

N, K = 200_000, 10


def kd_tree(threads: int) -> list[Row]:
    rows = []
    for kind, p, bar in [("normal", 3, 1.0), ("normal", 2, None), ("normal", 5, None), ("roll", 3, None)]:
        X = points(kind, N, p)

        def peer(X: np.ndarray = X) -> tuple[np.ndarray, np.ndarray]:
            distances, indices = cKDTree(X).query(X, K + 1, workers=threads)
            return distances[:, 1:], indices[:, 1:]

        rows.append(
            race(
                f"knn self {kind} float64 {N:,} x {p}, k = {K}",
                threads,
                lambda X=X: knn(X, K, n_threads=threads),
                "scipy cKDTree",
                peer,
                bar=bar,
                difference=lambda ours, theirs: float(
                    max(np.max(ours[1] != theirs[1]), np.max(np.abs(ours[0] - theirs[0])))
                ),
                tolerance=1e-12,
                budget=12.0,
                repeats=(3, 9),
            )
        )
    return rows


def graph_and_laplacian(threads: int) -> list[Row]:
    distances, indices = tree(points("normal", N, 3), K, threads)
    beta = float(np.mean(distances**2))

    def theirs(normalization: str | None) -> sp.csr_matrix:
        starts = np.arange(0, N * K + 1, K)
        listed = sp.csr_matrix((np.exp(-(distances**2) / beta).ravel(), indices.ravel(), starts), shape=(N, N))
        W = listed.maximum(listed.T)
        if normalization == "rw":  # csgraph has no such thing: the plain one, rows divided by the degrees
            L, degrees = csgraph_laplacian(W, return_diag=True)
            return sp.diags(1 / degrees) @ L.tocsr()
        return csgraph_laplacian(W, normed=normalization == "sym").tocsr()

    def ours(normalization: str | None) -> sp.csr_array:
        W = neighbor_graph(distances, indices, beta=beta, n_threads=threads)
        return laplacian(W, normalization=normalization, n_threads=threads)[0]

    return [
        race(
            f"heat graph and {name} Laplacian, {N:,} x {K} neighbours",
            threads,
            lambda normalization=normalization: ours(normalization),
            "scipy.sparse, csgraph",
            lambda normalization=normalization: theirs(normalization),
            bar=3.5,
            difference=lambda one, other: float(abs(one - other).max() / abs(other).max()),
            tolerance=1e-14,
            repeats=(5, 25),
        )
        for name, normalization in [("plain", None), ("symmetric", "sym"), ("random-walk", "rw")]
    ]


COMPARISONS = (kd_tree, graph_and_laplacian)
