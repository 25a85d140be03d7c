"""Exact brute-force neighbours against faiss's flat index and scikit-learn's brute force."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.measure import Row, peer, race
from manifast.kernels import knn

K = 10


def _normal(seed: int, rows: int, p: int, dtype: str) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows, p)).astype(dtype)


def _rank_difference(data: np.ndarray, queries: np.ndarray) -> Any:
    """Largest relative difference of the distances to the neighbours found, taken anew in double precision.

    Each list may order neighbours that its own rounding cannot tell apart as it likes, so distances are compared, not
    indices; the peer's rows may hold the query itself, which is left out.
    """

    def distances(indices: np.ndarray) -> np.ndarray:
        found = np.empty(indices.shape)
        for start in range(0, len(indices), 500):
            part = slice(start, start + 500)
            found[part] = np.linalg.norm(data[indices[part]].astype(float) - queries[part, None].astype(float), axis=2)
        return np.sort(found, axis=1)

    def difference(ours: np.ndarray, theirs: np.ndarray) -> float:
        if theirs.shape[1] > ours.shape[1]:
            own = theirs == np.arange(len(theirs))[:, None]
            theirs = theirs[~own].reshape(len(theirs), -1)
        one, other = distances(ours), distances(theirs)
        return float(np.max(np.abs(one - other) / other))

    return difference


def flat_index(threads: int) -> list[Row]:
    faiss = peer("faiss")
    rows = []
    for p, self_bar, bar in [(64, 3.0, 1.4), (784, 2.1, 1.05)]:
        data, queries = _normal(0, 20_000, p, "float32"), _normal(1, 5000, p, "float32")

        def flat(points: np.ndarray, k: int, data: np.ndarray = data) -> np.ndarray:
            index = faiss.IndexFlatL2(data.shape[1])
            index.add(data)
            return index.search(points, k)[1]

        for name, points, k, wanted in [("self", data, K + 1, self_bar), ("5000 queries", queries, K, bar)]:
            ours = None if points is data else points
            rows.append(
                race(
                    f"knn {name} float32 20,000 x {p}, k = {K}",
                    threads,
                    lambda data=data, ours=ours: knn(data, K, queries=ours, algorithm="brute", n_threads=threads)[1],
                    "faiss IndexFlatL2",
                    (lambda points=points, k=k, flat=flat: flat(points, k)) if faiss else None,
                    bar=wanted,
                    difference=_rank_difference(data, points),
                    tolerance=1e-5,
                    budget=12.0,
                )
            )
    return rows


def brute_force(threads: int) -> list[Row]:
    from sklearn.neighbors import NearestNeighbors

    rows = []
    for p, bar in [(64, 2.5), (784, 1.7)]:
        data = _normal(0, 20_000, p, "float64")
        rows.append(
            race(
                f"knn self float64 20,000 x {p}, k = {K}",
                threads,
                lambda data=data: knn(data, K, algorithm="brute", n_threads=threads)[1],
                "scikit-learn brute",
                lambda data=data: NearestNeighbors(n_neighbors=K, algorithm="brute").fit(data).kneighbors()[1],
                bar=bar,
                difference=_rank_difference(data, data),
                tolerance=1e-12,
                budget=20.0,
                repeats=(2, 5),
            )
        )
    return rows


COMPARISONS = (flat_index, brute_force)
