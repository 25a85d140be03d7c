"""NSSE against its literal algorithm in plain NumPy, and what sharing saves in the choice of its weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg as la
from sklearn.model_selection import GridSearchCV, StratifiedShuffleSplit
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from benchmarks.measure import Row, image_file, race
from benchmarks.supervised import load
from manifast import NSSE, NSSECV
from manifast.kernels import gaussian


def literal(threads: int) -> list[Row]:
    """Extended Yale, 30 widths; the same σ, and objectives to 1e-9."""
    if image_file("yaleb") is None:
        return []
    X, y = load("yaleb", "unit")
    order = np.random.default_rng(0).permutation(len(X))
    rows = []
    for n, bar in ((600, 14.0), (840, 16.0), (1500, 20.0)):
        Xn, yn = X[order[:n]], y[order[:n]]
        median = float(np.median(np.sqrt(_squares(Xn))[np.triu_indices(n, 1)]))
        grid = median * np.geomspace(0.3, 6.0, 30)
        parameters: dict[str, Any] = {"mu1": 1.0, "mu2": 0.1, "mu3": 10.0 * median**2}
        model = NSSE(10, **parameters, sigma_grid=grid, sigma_init=1.5 * median, relative=False)

        def ours(model: Any = model, Xn: Any = Xn, yn: Any = yn) -> tuple[float, float]:
            fitted = model.fit(Xn, yn)
            return fitted.sigma_, fitted.objective_history_[-1]

        def theirs(p: Any = parameters, Xn: Any = Xn, yn: Any = yn, g: Any = grid, m: float = median) -> Any:
            return plain_nsse(Xn, yn, 10, **p, sigma=1.5 * m, grid=g)

        rows.append(
            race(
                f"NSSE, Extended Yale, N = {n}, d = 10, 30 widths",
                threads,
                ours,
                "literal Algorithm 1 in NumPy",
                theirs,
                bar=bar if threads == 1 else 12.0,
                difference=lambda a, b: max(abs(u - v) / abs(v) for u, v in zip(a, b, strict=True)),
                tolerance=1e-8,
                repeats=(2, 3) if n < 1000 else (1, 2),
            )
        )
    return rows


def _squares(X: Any) -> Any:
    norms = np.square(X).sum(axis=1)
    return np.maximum(norms[:, None] + norms - 2 * X @ X.T, 0.0)


def plain_nsse(X: Any, y: Any, d: int, mu1: float, mu2: float, mu3: float, sigma: float, grid: Any) -> Any:
    """Algorithm 1 as in the tests: Ψ^-2 for every candidate and step, a full eigendecomposition per step."""
    D, n = _squares(X), len(X)
    same = y[:, None] == y
    W_w = np.where(same, np.exp(-D / (D.sum() / (n * (n - 1)))), 0.0)
    np.fill_diagonal(W_w, 0.0)
    W_b = np.where(same, 0.0, 1.0)
    A = np.diag(W_w.sum(axis=1)) - W_w - mu1 * (np.diag(W_b.sum(axis=1)) - W_b)

    def inverse_square(s: float) -> Any:
        inverse = np.linalg.inv(np.exp(-D / s**2))
        return inverse @ inverse

    for _ in range(20):
        values, vectors = np.linalg.eigh(A + mu2 * inverse_square(sigma))
        Y = vectors[:, :d]
        candidates = [sigma, *grid]
        costs = [mu2 * float(np.trace(Y.T @ inverse_square(s) @ Y)) + mu3 / s**2 for s in candidates]
        best = candidates[int(np.argmin(costs))]
        if best == sigma:
            break
        sigma = best
    return sigma, float(values[:d].sum() + mu3 / sigma**2)


def large(threads: int) -> Row:
    """Standard normal classes, N = 5000, the default search: time per step of the width against a Cholesky factor."""
    rng = np.random.default_rng(0)
    y = np.arange(5000) % 20
    X = rng.standard_normal((20, 64))[y] + rng.standard_normal((5000, 64))
    K = gaussian(X, sigma=float(np.sqrt(2 * 64)))
    steps = [1]

    def ours() -> None:
        steps[0] = NSSE(10, max_iter=3).fit(X, y).n_iter_

    def cholesky() -> None:
        for _ in range(steps[0]):
            la.cholesky(np.array(K, order="F"), lower=True, overwrite_a=True, check_finite=False)

    return race(
        "NSSE, N = 5000, default search, per step",
        threads,
        ours,
        "one Cholesky per step",
        cholesky,
        bar=1 / 25,
        difference=lambda *_: 0.0,
        repeats=(1, 2),
    )


def validation(threads: int) -> Row:
    """5 splits and 20 candidates for the weights and the dimension."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    X, y = X[:500], y[:500]
    weights, dimensions = np.geomspace(0.03, 30, 16).tolist(), [3, 5, 7, 9]
    chosen = NSSECV(dimensions, mu2=weights, mu3=[30.0], n_splits=5)
    splits = StratifiedShuffleSplit(5, test_size=0.3, random_state=0)
    pipeline = make_pipeline(NSSE(7, mu3=30.0), KNeighborsClassifier(1))
    grid = [{"nsse__mu2": weights}, {"nsse__n_components": dimensions}]
    return race(
        "NSSECV, digits, n = 500, 5 splits and 20 candidates",
        threads,
        lambda: chosen.fit(X, y).best_score_,
        "the same through GridSearchCV",
        lambda: GridSearchCV(pipeline, grid, cv=splits).fit(X, y).best_score_,
        bar=2.0,
        difference=lambda a, b: abs(a - b),
        tolerance=0.02,
        repeats=(1, 2),
    )


COMPARISONS = (literal, large, validation)
