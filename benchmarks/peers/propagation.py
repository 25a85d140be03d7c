"""Label propagation: against scikit-learn to the same residual, plain NumPy, and the time of the graph alone."""

from __future__ import annotations

import os
import subprocess
import sys
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.datasets import make_blobs, make_swiss_roll
from sklearn.semi_supervised import LabelSpreading

from benchmarks.measure import Row, limited, race
from manifast import FME, GFHF, LGC
from manifast.graphs import knn_graph

RESIDUAL = 1e-6


def swiss_roll(n: int, labels: int) -> tuple[Any, Any, Any]:
    """Rows, labels of some of them, and all labels: five classes along the roll."""
    X, t = make_swiss_roll(n, random_state=0)
    y = np.digitize(t, np.quantile(t, [0.2, 0.4, 0.6, 0.8]))
    some = np.full(n, -1)
    chosen = np.random.default_rng(0).choice(n, labels, replace=False)
    some[chosen] = y[chosen]
    return X, some, y


def spreading(threads: int) -> Row:
    """Graph and solve, each of its own system to a relative residual of 1e-6 (ours goes to 1e-10)."""
    X, some, y = swiss_roll(200_000, 1000)
    theirs = LabelSpreading(kernel="knn", n_neighbors=10, alpha=0.99, tol=0.0)
    theirs.max_iter = steps_to(theirs, X, some, RESIDUAL)
    with limited(threads):
        peer_seconds = _seconds(lambda: theirs.fit(X, some))
        model = LGC()
        seconds = min(_seconds(lambda: model.fit(X, some)) for _ in range(3))
    accuracy = [float(np.mean(found.transduction_ == y)) for found in (model, theirs)]
    note = f"{theirs.max_iter} iterations there; accuracy {accuracy[0]:.3f} and {accuracy[1]:.3f}"
    equal = accuracy[0] > accuracy[1] - 0.01
    return Row(
        "LGC, Swiss roll 200,000, 1000 labels, graph and solve", threads, seconds, "LabelSpreading", peer_seconds, 3.0,
        note, equal,
    )  # fmt: skip


def steps_to(model: LabelSpreading, X: Any, some: Any, residual: float) -> int:
    """Iterations F <- αSF + (1-α)Y from F = Y until (1-α)Y - (I-αS)F, which is the next step, is small."""
    model.X_ = X
    S = model._build_graph()
    Y = (some[:, None] == np.arange(some.max() + 1)).astype(float)
    F, right = Y.copy(), (1 - model.alpha) * Y
    for count in range(10_000):
        following = model.alpha * (S @ F) + right
        if np.linalg.norm(following - F, axis=0).max() <= residual * np.linalg.norm(right, axis=0).min():
            return count
        F = following
    raise RuntimeError("no convergence")


def harmonic(threads: int) -> Row:
    """GFHF with few labels, where the systems are worst conditioned, against its graph alone."""
    X, some, _ = swiss_roll(200_000, 50)
    return race(
        "GFHF, Swiss roll 200,000, 50 labels",
        threads,
        lambda: GFHF().fit(X, some),
        "its graph alone",
        lambda: knn_graph(X, 10),
        difference=lambda *_: 0.0,
        repeats=(1, 2),
    )


def clusters(n: int, p: int, labels: int) -> tuple[Any, Any]:
    X, y = make_blobs(n, p, centers=10, cluster_std=12.0, random_state=0)
    return X, np.where(np.arange(n) < labels, y, -1)


MEMORY = """
from benchmarks.peers.propagation import clusters
from manifast import FME
X, some = clusters(50_000, 100, 500)
FME().fit(X, some)
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(int(peak.split()[1]) / 1024)
"""


def large_fme(threads: int) -> Row:
    X, some = clusters(50_000, 100, 500)
    row = race(
        "FME linear, 50,000 x 100, 500 labels",
        threads,
        lambda: FME().fit(X, some),
        "its graph alone",
        lambda: knn_graph(X, 10),
        bar=1 / 10,
        difference=lambda *_: 0.0,
        repeats=(1, 1),
    )
    paths = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        [sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True, env={**os.environ, **paths}
    )
    peak = float(done.stdout)
    return Row(
        row.name, threads, row.ours_seconds, row.peer_name, row.peer_seconds, row.bar,
        f"peak of the whole process {peak:.0f} MB, allowed 1024", peak < 1024,
    )  # fmt: skip


def small_fme(threads: int) -> Row:
    X, some = clusters(2000, 100, 100)
    return race(
        "FME linear, 2000 x 100, 100 labels",
        threads,
        lambda: FME(beta="mean").fit(X, some).scores_,
        "plain NumPy",
        lambda: plain_fme(X, some),
        bar=20.0,
        tolerance=1e-7,
        repeats=(2, 5),
    )


def plain_fme(X: Any, some: Any, mu: float = 1.0, gamma: float = 1.0, weight: float = 1e9, k: int = 10) -> Any:
    """F = (U + L + R)^-1 UY as it is written."""
    n = len(X)
    norms = np.sum(X**2, axis=1)
    squares = np.maximum(norms[:, None] + norms - 2 * X @ X.T, 0)
    beta = squares.sum() / (n * (n - 1))
    np.fill_diagonal(squares, np.inf)
    listed = np.zeros((n, n), bool)
    np.put_along_axis(listed, np.argsort(squares, axis=1)[:, :k], True, axis=1)
    W = np.where(listed | listed.T, np.exp(-squares / beta), 0.0)
    H = np.eye(n) - 1 / n
    U, L = np.diag(weight * (some >= 0)), np.diag(W.sum(axis=1)) - W
    R = mu * gamma * H @ np.linalg.inv(np.eye(n) + gamma * H @ X @ X.T @ H) @ H
    return np.linalg.inv(U + L + R) @ U @ (some[:, None] == np.arange(some.max() + 1)).astype(float)


def _seconds(call: Any) -> float:
    start = perf_counter()
    call()
    return perf_counter() - start


COMPARISONS = (spreading, harmonic, large_fme, small_fme)
