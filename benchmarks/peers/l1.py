"""l1_code side by side with SPAMS, scikit-learn and HiGHS: same data, same threads, accuracy checked in that run."""

from __future__ import annotations

from dataclasses import replace
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


def _lasso(codes: np.ndarray, X: np.ndarray, atoms: np.ndarray, lam: float) -> np.ndarray:
    return ((X - codes @ atoms) ** 2).sum(axis=1) / 2 + lam * np.abs(codes).sum(axis=1)


def _gaps(codes: np.ndarray, X: np.ndarray, atoms: np.ndarray, lam: float) -> np.ndarray:
    """How far each objective is from the optimum at most, relative to it: the gap to a point that the dual allows."""
    residuals = X - codes @ atoms
    most = np.abs(residuals @ atoms.T).max(axis=1)
    dual = residuals * np.minimum(1.0, lam / np.maximum(most, np.finfo(float).tiny))[:, None]
    best = _lasso(codes, X, atoms, lam)
    return (best - (dual * X).sum(axis=1) + (dual**2).sum(axis=1) / 2) / best


def _apart(ours: np.ndarray, theirs: np.ndarray, X: np.ndarray, atoms: np.ndarray, lam: float) -> tuple[float, int]:
    """Largest of: our own duality gap; by how much our objective is above theirs; by how much theirs is above ours
    where their own duality gap does not admit it. And the number of samples that their gap says are not solved to 1e-9
    and where ours is lower by that much."""
    mine, other = _lasso(ours, X, atoms, lam), _lasso(theirs, X, atoms, lam)
    above = other / mine - 1
    admitted = above <= _gaps(theirs, X, atoms, lam)
    worst = max(_gaps(ours, X, atoms, lam).max(), -above.min(), above[~admitted].max(initial=0.0))
    return float(worst), int((above > 1e-9).sum())


def batches(threads: int) -> list[Row]:
    """The whole batch at once. SPAMS stops at lam = 1e-5 where we go on to 0; both are compared at 1e-5.

    Certificates decide: an objective counts as theirs only as far as their own duality gap vouches for it.
    """
    D, X = faces()
    spams = peer("spams")
    lam = 1e-5
    rows = []
    for name, atoms, errors, samples, bar in [
        ("with errors", np.vstack([D, np.eye(X.shape[1])]), True, X, 3.5),
        ("plain dictionary", D, False, X[:PLAIN_SAMPLES], 1.0),
    ]:
        matrix, columns = np.asfortranarray(atoms.T), np.asfortranarray(samples.T)
        unsolved = [0]

        def theirs(matrix: np.ndarray = matrix, columns: np.ndarray = columns):
            return spams.lasso(columns, D=matrix, mode=2, lambda1=lam, numThreads=threads)

        def difference(_, found, X=samples, atoms=atoms, errors=errors, unsolved=unsolved) -> float:
            codes, e = l1_code(X, D, errors=errors, lam=lam)
            ours = codes.toarray() if e is None else np.hstack([codes.toarray(), e])
            worst, unsolved[0] = _apart(ours, found.toarray().T, X, atoms, lam)
            return worst

        row = race(
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
        note = f"{row.note}; theirs did not solve {unsolved[0]} of {len(samples)}" if unsolved[0] else row.note
        rows.append(replace(row, note=note))
    return rows


def exact_solvers(threads: int) -> list[Row]:
    """Solvers that take one sample at a time and go to 0: a few samples of theirs against our batch, per sample.

    The path of scikit-learn may end early: objectives are compared at the lam where it ends.
    """
    D, X = faces()
    both = np.vstack([D, np.eye(X.shape[1])])
    signed = np.hstack([both.T, -both.T])

    def path(x: np.ndarray) -> tuple[np.ndarray, float]:
        alphas, _, codes = lars_path(both.T, x, method="lasso", alpha_min=0)
        return codes[:, -1], len(x) * float(alphas[-1])  # its alpha is relative to the number of features

    def programme(x: np.ndarray) -> tuple[np.ndarray, float]:
        parts = linprog(np.ones(signed.shape[1]), A_eq=signed, b_eq=x, method="highs").x
        return parts[: len(both)] - parts[len(both) :], 0.0

    rows = []
    with limited(threads):
        ours = min(_seconds(lambda: l1_code(X, D, n_threads=threads)) for _ in range(5)) / len(X)
        for name, solve, few, bar in [
            ("scikit-learn lars_path", path, 6, 40.0),
            ("scipy linprog (HiGHS)", programme, 3, 150.0),
        ]:
            times, apart, short, last = [], 0.0, 0, 0.0
            for x in X[:few]:
                start = perf_counter()
                code, lam = solve(x)
                times.append(perf_counter() - start)
                if np.linalg.norm(x - code @ both) <= 1e-8:
                    lam = 0.0  # it represents the sample
                short, last = short + (lam > 0), max(last, lam)
                apart = max(apart, _behind(x, code, D, both, lam))
            ends = f"; theirs ends at lam > 0 (up to {last:.0e}) on {short} of {few}" if short else ""
            note = f"difference {apart:.0e}{ends}"
            work = f"l1_code with errors, per sample ({KIND})"
            rows.append(Row(work, threads, ours, name, float(np.mean(times)), bar, note, apart <= 1e-6))
    return rows


def _behind(x: np.ndarray, code: np.ndarray, D: np.ndarray, both: np.ndarray, lam: float) -> float:
    """Relative difference of the objectives at one lam, of the norms where that is 0."""
    codes, errors = l1_code(x[None], D, lam=lam)
    ours = np.hstack([codes.toarray(), errors])
    if lam == 0:
        return abs(float(np.abs(code).sum() / np.abs(ours).sum()) - 1)
    return abs(float(_lasso(code[None], x[None], both, lam)[0] / _lasso(ours, x[None], both, lam)[0]) - 1)


def _seconds(call) -> float:
    start = perf_counter()
    call()
    return perf_counter() - start


COMPARISONS = (batches, exact_solvers)
