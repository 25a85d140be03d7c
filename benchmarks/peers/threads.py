"""Several threads against one: kernels, graphs, paths and whole fits, with results that must not change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, make_blobs, make_swiss_roll
from threadpoolctl import threadpool_limits

import manifast
from benchmarks.measure import Row, race
from benchmarks.peers.l1 import KIND, PLAIN_SAMPLES, faces
from manifast import kernels
from manifast._paths import shortest_paths

N = 20_000


def _pair(
    name: str, threads: int, call: Callable[[int], Any], *, tolerance: float = 0.0, bar: float | None = None,
    repeats: tuple[int, int] = (3, 15), budget: float = 8.0,
) -> list[Row]:  # fmt: skip
    """`call(n)` on all threads and on one; nothing to compare where there is only one."""
    if threads == 1:
        return []

    def alone() -> Any:
        with threadpool_limits(1):
            return call(1)

    return [
        race(
            f"{name}: {threads} threads", threads, lambda: call(threads), "itself on 1 thread", alone,
            bar=0.9 * threads if bar is None else bar, difference=_largest, tolerance=tolerance, repeats=repeats,
            budget=budget,
        )
    ]  # fmt: skip


def _largest(ours: Any, alone: Any) -> float:
    """Largest difference relative to the largest value; sparse matrices by their stored values."""
    ours, alone = (getattr(result, "data", result) if hasattr(result, "indptr") else result for result in (ours, alone))
    return float(np.max(np.abs(ours - alone)) / np.max(np.abs(alone)))


def _normal(rows: int, p: int, dtype: str = "float64", seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows, p)).astype(dtype)


def dense_kernels(threads: int) -> list[Row]:
    X, Y, out = _normal(3000, 64), _normal(3000, 64, seed=1), np.empty((3000, 3000))
    C, W, many = _normal(2000, 64, seed=2), _normal(2000, 10, seed=3), _normal(N, 64)
    return [
        *_pair("sq_distances 3000 x 3000, p = 64", threads,
               lambda n: kernels.sq_distances(X, Y, out=out, n_threads=n)),
        *_pair("gaussian 3000 x 3000, p = 64", threads, lambda n: kernels.gaussian(X, Y, sigma=8.0, n_threads=n)),
        *_pair("rbf_apply (m, n, p, d) = (20,000, 2000, 64, 10)", threads,
               lambda n: kernels.rbf_apply(many, C, W, sigma=11.3, n_threads=n)),
    ]  # fmt: skip


def neighbours(threads: int) -> list[Row]:
    rows = []
    for p in (64, 784):
        X = _normal(N, p, "float32")
        name = f"knn self float32 20,000 x {p}, k = 10"
        rows += _pair(name, threads, lambda n, X=X: kernels.knn(X, 10, n_threads=n)[1])
    few = _normal(200_000, 3)
    rows += _pair("knn self float64 200,000 x 3, k = 10", threads, lambda n: kernels.knn(few, 10, n_threads=n)[1])
    return rows


def codes(threads: int) -> list[Row]:
    D, X = faces()
    return [
        *_pair(f"l1_code with errors, {len(X)} {KIND}", threads, lambda n: kernels.l1_code(X, D, n_threads=n)[0]),
        *_pair(f"l1_code plain dictionary, {PLAIN_SAMPLES} {KIND}", threads,
               lambda n: kernels.l1_code(X[:PLAIN_SAMPLES], D, errors=False, n_threads=n)[0]),
    ]  # fmt: skip


def graphs(threads: int) -> list[Row]:
    distances, indices = kernels.knn(_normal(200_000, 3), 10)
    beta = float(np.mean(distances**2))
    W = kernels.neighbor_graph(distances, indices, beta=beta)
    X = make_swiss_roll(N, random_state=0)[0]
    roll = kernels.neighbor_graph(*kernels.knn(X, 10), weights="distance")
    sources = np.arange(0, N, 40)
    return [
        *_pair("neighbor_graph 200,000 x 10", threads,
               lambda n: kernels.neighbor_graph(distances, indices, beta=beta, n_threads=n)),
        *_pair("laplacian of it", threads, lambda n: kernels.laplacian(W, n_threads=n)[0]),
        *_pair("shortest paths, Swiss roll 20,000, 500 sources", threads,
               lambda n: shortest_paths(roll, sources, n_threads=n)),
    ]  # fmt: skip


def fits(threads: int) -> list[Row]:
    """Sums of matrices by the BLAS may round differently on several threads."""
    X = make_swiss_roll(N, random_state=0)[0]
    rows = []
    for model in (
        manifast.LocallyLinearEmbedding(2, n_neighbors=10), manifast.LTSA(2, n_neighbors=10),
        manifast.Isomap(2, n_neighbors=10, n_landmarks=500), manifast.LaplacianEigenmaps(2, n_neighbors=10),
    ):  # fmt: skip
        name = f"{type(model).__name__}{', 500 landmarks' if type(model).__name__ == 'Isomap' else ''}"
        rows += _pair(
            f"{name} fit, Swiss roll 20,000, k = 10", threads, lambda _, model=model: model.fit(X).embedding_,
            tolerance=1e-6, repeats=(3, 7),
        )  # fmt: skip
    return rows


def dense_fits(threads: int) -> list[Row]:
    """Fits whose time is LAPACK's, for which no bar is set."""
    X, y = load_digits(return_X_y=True)
    roll = make_swiss_roll(2000, random_state=0)[0]
    blobs, labels = make_blobs(N, 100, centers=10, cluster_std=10.0, random_state=0)
    some = np.where(np.arange(N) < 200, labels, -1)
    return [
        *_pair("NSSE fit, digits", threads, lambda _: manifast.NSSE(9).fit(X, y).embedding_, tolerance=1e-5, bar=1.0,
               repeats=(2, 5)),
        *_pair("LGRM fit, Swiss roll 2000", threads, lambda _: manifast.LGRM(2, n_neighbors=8).fit(roll).embedding_,
               tolerance=1e-5, bar=1.0, repeats=(2, 5)),
        *_pair("ElasticEmbedding fit, 20,000 x 100, 200 labelled", threads,
               lambda _: manifast.ElasticEmbedding(20).fit(blobs, some).embedding_, tolerance=1e-5, bar=1.0,
               repeats=(1, 3)),
    ]  # fmt: skip


COMPARISONS = (dense_kernels, neighbours, codes, graphs, fits, dense_fits)
