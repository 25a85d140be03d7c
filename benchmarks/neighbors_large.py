"""Neighbours of many rows by clusters, beside pynndescent and faiss, and embeddings made from them.

    python benchmarks/neighbors_large.py                        # 1,000,000 rows: minutes, 3 GB
    python benchmarks/neighbors_large.py --rows 100000          # half a minute
    python benchmarks/neighbors_large.py --rows 100000 --hnsw   # also faiss's graph index
    python benchmarks/neighbors_large.py --rows 200000 --embeddings

Data are float32 with 50 features: a noisy roll, and 200 groups of 8 intrinsic dimensions; 15 neighbours. Every method
runs on the same threads in the same process, its lists are checked against the exact search on 1000 rows, and a peer is
tuned to the wanted recall before it is timed: for an index of faiss the smallest number of probes that reaches it on
those rows. pynndescent is compiled by a first run on few rows. Of `--repeats` runs of everything in turn the best of
each counts: on a machine that is not idle one run says little. Memory is what the peak of the process grows by.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.measure import limited, peer
from manifast.kernels import approximate_knn, knn

K, FEATURES, JUDGES = 15, 50, 1000


def roll(n: int) -> np.ndarray:
    """A roll in three dimensions turned into 50, with noise in all of them."""
    rng = np.random.default_rng(0)
    t, height = 1.5 * np.pi * (1 + 2 * rng.random(n)), 21 * rng.random(n)
    curve = np.column_stack([t * np.cos(t), height, t * np.sin(t)])
    turn = np.linalg.qr(rng.standard_normal((FEATURES, 3)))[0]
    return (curve @ turn.T + 0.05 * rng.standard_normal((n, FEATURES))).astype(np.float32)


def groups(n: int) -> np.ndarray:
    """200 normal groups, each in 8 dimensions of its own, with a little noise in all."""
    rng = np.random.default_rng(0)
    X = np.empty((n, FEATURES), dtype=np.float32)
    labels, centers = rng.integers(0, 200, n), 3 * rng.standard_normal((200, FEATURES))
    for label in range(200):
        rows = np.flatnonzero(labels == label)
        axes = 2 * rng.standard_normal((8, FEATURES)) / np.sqrt(FEATURES)
        noise = 0.01 * rng.standard_normal((len(rows), FEATURES))
        X[rows] = centers[label] + rng.standard_normal((len(rows), 8)) @ axes + noise
    return X


class Judges:
    """Rows whose true neighbours are known."""

    def __init__(self, X: np.ndarray) -> None:
        self.rows = np.random.default_rng(7).choice(len(X), JUDGES, replace=False)
        self._X, self._farthest = X, knn(X, K + 1, queries=X[self.rows])[0][:, -1:]

    def recall(self, indices: np.ndarray) -> float:
        """The share of true neighbours in lists of these rows, which may hold the row itself."""
        hits = 0
        for row, near, farthest in zip(self.rows, indices, self._farthest, strict=True):
            others = np.unique(near[(near != row) & (near >= 0)])
            distances = np.linalg.norm(self._X[others].astype(float) - self._X[row].astype(float), axis=1)
            hits += min(K, int(np.sum(distances <= farthest * (1 + 1e-6))))
        return hits / (JUDGES * K)


def memory(which: str) -> float:
    """What this process holds ("VmRSS") or has held since `forget_peak` ("VmHWM"), in MB; 0 where nobody says."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(which)), 0.0)


def forget_peak() -> None:
    if Path("/proc/self/clear_refs").exists():
        Path("/proc/self/clear_refs").write_text("5")


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    begin = perf_counter()
    result = call()
    return result, perf_counter() - begin


def faiss_index(X: np.ndarray, judges: Judges, wanted: float, graph: bool) -> tuple[np.ndarray, float, str]:
    """Lists by an index of faiss tuned to the wanted recall, seconds without the tuning, and its settings."""
    faiss = peer("faiss")
    lists = round(4 * np.sqrt(len(X)) / 2)

    def build() -> Any:
        if graph:
            index = faiss.IndexHNSWFlat(FEATURES, 16)
        else:
            index = faiss.IndexIVFFlat(faiss.IndexFlatL2(FEATURES), FEATURES, lists)
            index.cp.max_points_per_centroid = 64
            index.train(X)
        index.add(X)
        return index

    index, seconds = timed(build)
    for effort in (16, 24, 32, 48, 64, 96, 128, 256) if graph else (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64):
        if graph:
            index.hnsw.efSearch = effort
        else:
            index.nprobe = effort
        if judges.recall(index.search(X[judges.rows], K + 1)[1]) >= wanted:
            break
    (_, indices), searched = timed(lambda: index.search(X, K + 1))
    name = f"faiss HNSW, M = 16, efSearch = {effort}" if graph else f"faiss IVF, {lists} lists, nprobe = {effort}"
    return indices, seconds + searched, name


def descent(X: np.ndarray, threads: int) -> tuple[np.ndarray, float, str]:
    """Lists by pynndescent, compiled before."""
    NNDescent = peer("pynndescent").NNDescent
    NNDescent(X[:20_000], n_neighbors=K + 1, n_jobs=threads, random_state=0)
    index, seconds = timed(lambda: NNDescent(X, n_neighbors=K + 1, n_jobs=threads, random_state=0))
    return index.neighbor_graph[0], seconds, "pynndescent"


def clusters(X: np.ndarray, threads: int, wanted: float) -> tuple[np.ndarray, float, str]:
    """Lists by manifast, seconds, and the memory that they took."""
    forget_peak()
    before = memory("VmRSS")
    (_, indices, estimate), seconds = timed(lambda: approximate_knn(X, K, recall=wanted, n_threads=threads))
    grown = memory("VmHWM") - before
    return indices, seconds, f"manifast, {grown:.0f} MB beside the data, estimate {estimate:.3f}"


def compare(name: str, X: np.ndarray, options: argparse.Namespace) -> None:
    judges = Judges(X)
    calls: list[Callable[[], tuple[np.ndarray, float, str]]] = [lambda: clusters(X, options.threads, options.recall)]
    if peer("pynndescent"):
        calls.append(lambda: descent(X, options.threads))
    if peer("faiss"):
        calls.append(lambda: faiss_index(X, judges, options.recall, graph=False))
        if options.hnsw:
            calls.append(lambda: faiss_index(X, judges, options.recall, graph=True))
    print(f"\n{name}: {len(X):,} x {FEATURES} float32, {K} neighbours, {options.threads} threads", flush=True)
    best: list[tuple[float, float, str]] = [(np.inf, 0.0, "")] * len(calls)
    for _ in range(options.repeats):
        for at, call in enumerate(calls):
            indices, seconds, label = call()
            best[at] = min(best[at], (seconds, judges.recall(indices[judges.rows]), label))
            del indices
    for at, (seconds, recall, label) in enumerate(best):
        line(label, seconds, recall, seconds / best[0][0] if at else None)


def line(label: str, seconds: float, recall: float, ratio: float | None) -> None:
    times = "" if ratio is None else f"  {ratio:5.1f} x"
    print(f"  {label:60} {seconds:8.2f} s  recall {recall:.3f}{times}", flush=True)


def embeddings(name: str, X: np.ndarray, threads: int) -> None:
    """How long embeddings take beside the search that they begin with, and the residual of their eigenvectors."""
    from manifast import LTSA, LaplacianEigenmaps, LocallyLinearEmbedding, spectral

    residuals: list[float] = []
    measured = spectral._residual
    spectral._residual = lambda *given: residuals.append(measured(*given)) or residuals[-1]  # what `verbose=2` says
    search = timed(lambda: approximate_knn(X, K, n_threads=threads))[1]
    print(f"\n{name}: {len(X):,} x {FEATURES} float32, search for {K} neighbours {search:.2f} s")
    for kind in (LaplacianEigenmaps, LocallyLinearEmbedding, LTSA):
        model = kind(2, n_neighbors=K, neighbors="approximate")
        _, seconds = timed(lambda model=model: model.fit(X))
        values = ", ".join(f"{value:.2e}" for value in model.eigenvalues_)
        print(
            f"  {kind.__name__:24} {seconds:8.2f} s, {seconds / search:5.1f} times the search, recall "
            f"{model.graph_recall_:.3f}, eigenvalues {values}, relative residual {residuals[-1]:.1e}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--recall", type=float, default=0.98)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--data", choices=["roll", "groups"], help="one of the two sets; both where omitted")
    parser.add_argument("--hnsw", action="store_true", help="also faiss's HNSW index, which takes long to build")
    parser.add_argument("--embeddings", action="store_true", help="time embeddings instead of other searches")
    options = parser.parse_args()
    for module in ("faiss", "pynndescent"):
        peer(module)  # loaded now, so that the limit of threads reaches them
    with limited(options.threads):
        for make in (roll, groups):
            if options.data in (None, make.__name__):
                X = make(options.rows)
                if options.embeddings:
                    embeddings(make.__name__, X, options.threads)
                else:
                    compare(make.__name__, X, options)


if __name__ == "__main__":
    main()
