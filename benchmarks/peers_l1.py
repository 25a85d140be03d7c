"""l1_code side by side with SPAMS, scikit-learn and HiGHS: same data, same threads, accuracy checked in that run."""

from __future__ import annotations

import os
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np

from manifast.kernels import l1_code


class Row(NamedTuple):
    name: str
    ours_seconds: float
    peer: str
    peer_seconds: float
    ratio: float
    bar: float
    note: str


def faces():
    """Yale B labels 10-37, randomly projected to 200 dimensions, unit norm, 1241 atoms; low-rank data where missing."""
    folder = Path(os.environ.get("MANIFAST_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
    rng = np.random.default_rng(0)
    if (folder / "yaleb.npz").exists():
        with np.load(folder / "yaleb.npz") as file:
            images = file["images"][(file["labels"] >= 10) & (file["labels"] <= 37)]
        data = images.reshape(len(images), -1).astype(float)
        data = data @ np.linalg.qr(rng.standard_normal((data.shape[1], 200)))[0]
    else:
        data = (rng.standard_normal((1774, 30)) / np.arange(1, 31) + np.eye(1, 30)) @ rng.standard_normal((30, 200))
        data += 0.05 * np.abs(data).mean() * rng.standard_normal(data.shape)
    data /= np.linalg.norm(data, axis=1, keepdims=True)
    order = rng.permutation(len(data))
    return np.ascontiguousarray(data[order[:1241]]), np.ascontiguousarray(data[order[1241:]])


def best(call, repeat):
    seconds, result = np.inf, None
    for _ in range(repeat):
        start = perf_counter()
        result = call()
        seconds = min(seconds, perf_counter() - start)
    return seconds, result


def objective(codes, errors=None):
    return np.abs(codes).sum(axis=1) + (0 if errors is None else np.abs(errors).sum(axis=1))


def compare_l1(threads: int, samples: int = 100) -> list[Row]:
    """One row per bar. Peers that are not installed give no row."""
    D, X = faces()
    X = X[:samples]
    p, rows = X.shape[1], []
    both = np.vstack([D, np.eye(p)])
    n = len(X)
    ours, (codes, e) = best(lambda: l1_code(X, D, n_threads=threads), 3)
    plain, (plain_codes, _) = best(lambda: l1_code(X, D, errors=False, n_threads=threads), 2)
    residual = np.linalg.norm(X - codes @ D - e, axis=1).max()
    total = objective(codes, e)

    try:
        import spams
    except ImportError:
        spams = None
    if spams is not None:
        columns = np.asfortranarray(X.T)
        for name, atoms, seconds, bar, exact in (
            ("l1_code [D I]", both, ours, 3.5, total),
            ("l1_code plain", D, plain, 1.0, objective(plain_codes)),
        ):
            matrix = np.asfortranarray(atoms.T)

            def run(matrix=matrix):
                return spams.lasso(columns, D=matrix, mode=2, lambda1=1e-5, numThreads=threads)

            peer, result = best(run, 2)
            there = np.abs(result.toarray().T).sum(axis=1)
            left = np.linalg.norm(columns - matrix @ result.toarray(), axis=0).max()
            apart = np.max(np.abs(there / exact - 1))
            note = f"residual {residual:.0e} against {left:.0e}; objectives within {apart:.0e}"
            rows.append(Row(name, seconds / n, "SPAMS lasso 1e-5", peer / n, peer / seconds, bar, note))

    from threadpoolctl import threadpool_limits

    with threadpool_limits(threads):
        from sklearn.linear_model import lars_path

        few = X[:4]
        peer, paths = best(lambda: [lars_path(both.T, x, method="lasso", alpha_min=0)[2][:, -1] for x in few], 1)
        apart = max(abs(np.abs(w).sum() / t - 1) for w, t in zip(paths, total, strict=False))
        note = f"objectives within {apart:.0e}"
        each = peer / len(few)
        rows.append(Row("l1_code [D I]", ours / n, "lars_path", each, each * n / ours, 40.0, note))

        from scipy.optimize import linprog

        signed = np.hstack([both.T, -both.T])

        def programme():
            return [linprog(np.ones(signed.shape[1]), A_eq=signed, b_eq=x, method="highs").fun for x in few[:2]]

        peer, values = best(programme, 1)
        apart = max(abs(v / t - 1) for v, t in zip(values, total, strict=False))
        note = f"objectives within {apart:.0e}"
        rows.append(Row("l1_code [D I]", ours / n, "HiGHS", peer / 2, peer / 2 * n / ours, 150.0, note))

    if threads > 1:
        for name, seconds, with_errors in (("l1_code [D I]", ours, True), ("l1_code plain", plain, False)):
            alone, _ = best(lambda with_errors=with_errors: l1_code(X, D, errors=with_errors, n_threads=1), 2)
            rows.append(Row(name, seconds / n, "itself on 1 thread", alone / n, alone / seconds, 0.9 * threads, ""))
    return rows


if __name__ == "__main__":
    for count in (1, 2):
        for row in compare_l1(count):
            times = f"{row.ours_seconds * 1e3:8.2f} ms  {row.peer:20} {row.peer_seconds * 1e3:9.2f} ms"
            print(f"{count} threads  {row.name:14} {times}  {row.ratio:7.2f}x (bar {row.bar:g}x)  {row.note}")
