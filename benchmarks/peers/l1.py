"""l1_code side by side with SPAMS, scikit-learn and HiGHS: same data, same threads, accuracy checked in that run."""

from __future__ import annotations

from time import perf_counter

import numpy as np
from scipy.optimize import linprog
from sklearn.linear_model import lars_path

from benchmarks.measure import Row, image_file, limited, peer, race
from manifast.kernels import l1_code

PLAIN_SAMPLES = 100  # a plain dictionary takes ten times as long


YALE = image_file("yaleb")
KIND = "low-rank samples" if YALE is None else "faces"


def faces():
    """Yale B labels 10-37, randomly projected to 200 dimensions, unit norm, 1241 atoms; low-rank data where missing."""
    rng = np.random.default_rng(0)
    if YALE is not None:
        with np.load(YALE) as file:
            images = file["images"][(file["labels"] >= 10) & (file["labels"] <= 37)]
        data = images.reshape(len(images), -1).astype(float)
        data = data @ np.linalg.qr(rng.standard_normal((data.shape[1], 200)))[0]
    else:
        data = (rng.standard_normal((1774, 30)) / np.arange(1, 31) + np.eye(1, 30)) @ rng.standard_normal((30, 200))
        data += 0.05 * np.abs(data).mean() * rng.standard_normal(data.shape)
    data /= np.linalg.norm(data, axis=1, keepdims=True)
    order = rng.permutation(len(data))
    return np.ascontiguousarray(data[order[:1241]]), np.ascontiguousarray(data[order[1241:]])


def _total(codes, errors=None) -> np.ndarray:
    return np.abs(codes).sum(axis=1) + (0 if errors is None else np.abs(errors).sum(axis=1))


def _lasso(codes: np.ndarray, X: np.ndarray, atoms: np.ndarray, lam: float = 1e-5) -> np.ndarray:
    return ((X - codes @ atoms) ** 2).sum(axis=1) / 2 + lam * np.abs(codes).sum(axis=1)


def batches(threads: int) -> list[Row]:
    """The whole batch at once. SPAMS stops at lam = 1e-5 where we go on to 0; the objectives compared are at 1e-5."""
    D, X = faces()
    spams = peer("spams")
    rows = []
    for name, atoms, errors, samples, bar in [
        ("with errors", np.vstack([D, np.eye(X.shape[1])]), True, X, 3.5),
        ("plain dictionary", D, False, X[:PLAIN_SAMPLES], 1.0),
    ]:
        matrix, columns = np.asfortranarray(atoms.T), np.asfortranarray(samples.T)

        def theirs(matrix: np.ndarray = matrix, columns: np.ndarray = columns):
            return spams.lasso(columns, D=matrix, mode=2, lambda1=1e-5, numThreads=threads)

        def difference(_, found, X: np.ndarray = samples, atoms: np.ndarray = atoms, errors: bool = errors) -> float:
            codes, e = l1_code(X, D, errors=errors, lam=1e-5)
            ours = codes.toarray() if e is None else np.hstack([codes.toarray(), e])
            return float(np.max(np.abs(_lasso(found.toarray().T, X, atoms) / _lasso(ours, X, atoms) - 1)))

        rows.append(
            race(
                f"l1_code {name}, {len(samples)} {KIND}, {len(D)} atoms, p = {X.shape[1]}",
                threads,
                lambda X=samples, errors=errors: l1_code(X, D, errors=errors, n_threads=threads),
                "SPAMS lasso, stops at lam = 1e-5",
                theirs if spams else None,
                bar=bar,
                difference=difference,
                tolerance=1e-9,
                budget=20.0,
                repeats=(3, 6),
            )
        )
    return rows


def exact_solvers(threads: int) -> list[Row]:
    """Solvers that take one sample at a time and go to 0: a few samples of theirs against our batch, per sample."""
    D, X = faces()
    both = np.vstack([D, np.eye(X.shape[1])])
    signed = np.hstack([both.T, -both.T])

    def path(x: np.ndarray) -> np.ndarray:
        return lars_path(both.T, x, method="lasso", alpha_min=0)[2][:, -1]

    def programme(x: np.ndarray) -> np.ndarray:
        parts = linprog(np.ones(signed.shape[1]), A_eq=signed, b_eq=x, method="highs").x
        return parts[: len(both)] - parts[len(both) :]

    rows = []
    with limited(threads):
        ours = min(_seconds(lambda: l1_code(X, D, n_threads=threads)) for _ in range(5)) / len(X)
        exact = _total(*l1_code(X, D, n_threads=threads))
        for name, solve, few, bar in [
            ("scikit-learn lars_path", path, 6, 40.0),
            ("scipy linprog (HiGHS)", programme, 3, 150.0),
        ]:
            times, apart, short = [], 0.0, 0
            for x, total in zip(X[:few], exact, strict=False):
                start = perf_counter()
                code = solve(x)
                times.append(perf_counter() - start)
                if np.linalg.norm(x - code @ both) > 1e-8:
                    short += 1  # the peer's path ended before it represents the sample: nothing to compare
                else:
                    apart = max(apart, abs(float(np.abs(code).sum()) / total - 1))
            note = f"difference {apart:.0e}" + (f"; theirs stops short on {short} of {few}" if short else "")
            work = f"l1_code with errors, per sample ({KIND})"
            rows.append(
                Row(work, threads, ours, name, float(np.mean(times)), bar, note, apart <= 1e-6 and 2 * short <= few)
            )
    return rows


def _seconds(call) -> float:
    start = perf_counter()
    call()
    return perf_counter() - start


COMPARISONS = (batches, exact_solvers)
