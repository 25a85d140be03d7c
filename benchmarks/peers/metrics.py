"""Trustworthiness against scikit-learn's, for one k and for all up to 30."""

from __future__ import annotations

import numpy as np

from benchmarks.measure import Row, race
from manifast.metrics import trustworthiness


def neighborhoods(threads: int) -> list[Row]:
    from sklearn.manifold import trustworthiness as theirs

    rng = np.random.default_rng(0)
    X = rng.standard_normal((5000, 50))
    embeddings = {"two of the features": X[:, :2].copy(), "unrelated": rng.standard_normal((5000, 2))}
    rows = [
        race(
            f"trustworthiness 5000 x 50, k = 5, {name}",
            threads,
            lambda Y=Y: trustworthiness(X, Y, 5, n_threads=threads),
            "scikit-learn",
            lambda Y=Y: theirs(X, Y, n_neighbors=5),
            bar=10.0,
            tolerance=1e-12,
            budget=10.0,
        )
        for name, Y in embeddings.items()
    ]
    small = X[:2000]
    return [
        *rows,
        race(
            "trustworthiness 2000 x 50, all k to 30",
            threads,
            lambda: trustworthiness(small, small[:, :2], range(1, 31), n_threads=threads),
            "scikit-learn, k by k",
            lambda: np.array([theirs(small, small[:, :2], n_neighbors=k) for k in range(1, 31)]),
            bar=10.0,
            tolerance=1e-12,
            budget=10.0,
            repeats=(1, 3),
        ),
    ]


COMPARISONS = (neighborhoods,)
