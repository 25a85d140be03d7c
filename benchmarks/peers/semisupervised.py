"""Elastic embedding: large fits against the neighbour graph alone, small ones and the search against plain NumPy."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np
import scipy.linalg as la
from sklearn.datasets import make_blobs

from benchmarks.measure import Row, limited, race
from manifast import ElasticEmbedding, ElasticEmbeddingCV
from manifast.embeddings.elastic import GRID
from manifast.graphs import knn_graph
from manifast.kernels import knn


def problem(n: int, p: int, labelled: int, classes: int = 10) -> tuple[Any, Any, Any]:
    """Overlapping classes: rows, labels of some (-1 for the others), labels of all."""
    X, truth = make_blobs(n, p, centers=classes, cluster_std=10.0, random_state=0)
    y = np.full(n, -1)
    y[:labelled] = truth[:labelled]
    return X, y, truth


def large_fits(threads: int) -> list[Row]:
    X, y, truth = problem(50_000, 100, 500)

    def wrong(model: Any, _: Any) -> float:
        """Share of new rows that the map takes to a wrong class, in the first classes - 1 columns."""
        parts = model.embedding_[:500], model.transform(X[-2000:])
        train, new = (np.ascontiguousarray(part[:, :9]) for part in parts)
        return float(np.mean(truth[knn(train, 1, queries=new)[1][:, 0]] != truth[-2000:]))

    rows = []
    # Weights at which the map is of use, and those at which the system is hardest: the Laplacian alone.
    for mu, gamma, tolerance in ((1.0, 10.0, 0.3), (1e-9, 1e-9, 1.0)):
        model = ElasticEmbedding(mu=mu, gamma=gamma)
        rows.append(
            race(
                f"ElasticEmbedding, 50,000 x 100, 500 labelled, mu = {mu:g}, gamma = {gamma:g}",
                threads,
                lambda model=model: model.fit(X, y),
                "its kNN graph alone",
                lambda: knn_graph(X, 10),
                bar=1 / 10,
                difference=wrong,
                tolerance=tolerance,
                repeats=(1, 1),
            )
        )
    return rows


def plain_fit(X: Any, y: Any, lam: float, mu: float, gamma: float, k: int = 10) -> Any:
    """SEE eqs. 2 to 13 as printed, in NumPy: dense matrices, explicit inverses, one dense eigensolver."""
    n, p = X.shape
    norms = np.sum(X**2, axis=1)
    squares = norms[:, None] + norms - 2 * X @ X.T
    np.fill_diagonal(squares, np.inf)
    near = np.argsort(squares, axis=1)[:, :k]
    listed = np.zeros((n, n), bool)
    listed[np.arange(n)[:, None], near] = True
    np.fill_diagonal(squares, 0.0)
    S = np.where(listed | listed.T, np.exp(-squares / (squares.sum() / (n * (n - 1)))), 0.0)
    rows = np.flatnonzero(y != -1)
    same = y[rows][:, None] == y[rows]
    S_w = same / same.sum(axis=1)[:, None]
    S_b = ~same / (~same).sum(axis=1)[:, None]
    D_b = np.diag(S_b.sum(axis=0))
    L, D = np.diag(S.sum(axis=1)) - S, np.zeros((n, n))
    L[np.ix_(rows, rows)] += lam * (3 * np.eye(len(rows)) + D_b + S_b + S_b.T - 2 * S_w)
    D[np.ix_(rows, rows)] = np.eye(len(rows)) + D_b
    H = np.eye(n) - 1 / n
    Xc = X.T @ H
    A = gamma * np.linalg.inv(gamma * Xc @ Xc.T + np.eye(p)) @ Xc
    B = H @ X @ A + 1 / n
    E = mu * A.T @ A + mu * gamma * (B - np.eye(n)).T @ (B - np.eye(n))
    # D is singular: D z = θ (L + E) z instead, whose largest θ are the smallest eigenvalues' reciprocals.
    theta, Z = la.eigh(D, L + E)
    theta, Z = theta[::-1][: len(rows)], Z[:, ::-1][:, : len(rows)]
    return 1 / theta, Z / np.sqrt(theta)


def small_fit(threads: int) -> Row:
    X, y, _ = problem(2000, 100, 100)

    def difference(model: Any, plain: Any) -> float:
        return float(np.abs(model.eigenvalues_ / plain[0] - 1).max())

    return race(
        "ElasticEmbedding, 2000 x 100, 100 labelled",
        threads,
        lambda: ElasticEmbedding(lam=1.0, mu=1.0, gamma=1e-3, beta="mean").fit(X, y),
        "plain NumPy",
        lambda: plain_fit(X, y, 1.0, 1.0, 1e-3),
        bar=20.0,
        difference=difference,
        tolerance=1e-6,
        repeats=(2, 3),
    )


def searches(threads: int) -> list[Row]:
    """The paper's grid; the loops are estimated from the mean of a few fits, without what their scores would take."""
    X, y, _ = problem(1000, 50, 100)
    W = knn_graph(X, 10)
    search = ElasticEmbeddingCV(graph=W)
    rng = np.random.default_rng(0)
    choices = rng.choice(GRID, (12, 3))
    name = "ElasticEmbeddingCV, 7 x 7 x 7 weights, 25 splits, 1000 x 50, 100 labelled"
    with limited(threads):
        ours = min(_seconds(lambda: search.fit(X, y)) for _ in range(2))
        fits = len(GRID) ** 3 * 25
        own = [
            min(_seconds(lambda: ElasticEmbedding(lam=a, mu=b, gamma=c, graph=W).fit(X, y)) for _ in range(2))  # noqa: B023
            for a, b, c in choices
        ]
        plain = [_seconds(lambda: plain_fit(X, y, a, b, c)) for a, b, c in ((1.0, 1.0, 1e-3), (1e-3, 1.0, 1.0))]  # noqa: B023
    note = f"estimated: {fits} fits"
    return [
        Row(name, threads, ours, "a loop of ElasticEmbedding fits", fits * float(np.mean(own)), 5.0, note),
        Row(name, threads, ours, "the same loop in plain NumPy", fits * float(np.mean(plain)), 20.0, note),
    ]


def _seconds(call: Any) -> float:
    start = perf_counter()
    call()
    return perf_counter() - start


COMPARISONS = (large_fits, small_fit, searches)
