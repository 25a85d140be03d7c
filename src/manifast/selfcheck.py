"""A self-check of every kernel against plain NumPy, on scikit-learn's digits."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple, TypeVar

import numpy as np

from manifast import kernels
from manifast._validation import Array

Result = TypeVar("Result")


class Outcome(NamedTuple):
    """How one check went: our time, the time of plain NumPy (None: a certificate instead), and error against bound."""

    work: str
    seconds: float
    reference: float | None
    error: float
    bound: float


def check_distances(X: Array) -> Outcome:
    """Squared distances. The digits are whole numbers, so that these are exact."""
    ours, seconds = _timed(lambda: kernels.sq_distances(X))
    plain, reference = _timed(lambda: _sq_distances(X, X))
    return Outcome(f"{X.shape[0]} x {X.shape[0]} squared distances", seconds, reference, _worst(ours, plain), 0.0)


def check_knn(X: Array, k: int = 10) -> Outcome:
    """Nearest neighbours. Equal distances are common in the digits; the smaller index comes first."""
    (distances, indices), seconds = _timed(lambda: kernels.knn(X, k))
    (plain, nearest), reference = _timed(lambda: _knn(X, k))
    error = _worst(distances, plain) if np.array_equal(indices, nearest) else np.inf
    return Outcome(f"{k} nearest neighbours of {X.shape[0]} rows", seconds, reference, error, 1e-12)


def check_graph(X: Array, k: int = 10) -> Outcome:
    """The heat-weighted neighbour graph, an edge where either end has the other as a neighbour."""
    distances, indices = _knn(X, k)
    beta = float(np.mean(distances**2))

    def plain() -> Array:
        W = np.zeros((X.shape[0], X.shape[0]))
        np.put_along_axis(W, indices, np.exp(-(distances**2) / beta), axis=1)
        return np.maximum(W, W.T)

    ours, seconds = _timed(lambda: kernels.neighbor_graph(distances, indices, weights="heat", beta=beta))
    expected, reference = _timed(plain)
    return Outcome(f"heat graph, {ours.nnz} weights", seconds, reference, _worst(ours.toarray(), expected), 1e-14)


def check_laplacian(X: Array, k: int = 10) -> Outcome:
    """The symmetric-normalised Laplacian I - D^(-1/2) W D^(-1/2) of that graph."""
    distances, indices = _knn(X, k)
    W = kernels.neighbor_graph(distances, indices, weights="heat", beta=float(np.mean(distances**2)))
    dense = W.toarray()

    def plain() -> tuple[Array, Array]:
        degrees = dense.sum(axis=1)
        root = 1 / np.sqrt(degrees)
        return np.eye(X.shape[0]) - root[:, None] * dense * root, degrees

    (laplacian, degrees), seconds = _timed(lambda: kernels.laplacian(W, normalization="sym"))
    (expected, expected_degrees), reference = _timed(plain)
    error = max(_worst(laplacian.toarray(), expected), _worst(degrees, expected_degrees))
    return Outcome("normalised Laplacian", seconds, reference, error, 1e-13)


def check_rbf(X: Array, sigma: float = 25.0) -> Outcome:
    """A Gaussian RBF map: kernel matrix times coefficients."""
    centers = X[::3]
    coef = np.random.default_rng(0).standard_normal((centers.shape[0], 10))
    ours, seconds = _timed(lambda: kernels.rbf_apply(X, centers, coef, sigma=sigma))
    plain, reference = _timed(lambda: np.exp(_sq_distances(X, centers) / -(sigma**2)) @ coef)
    work = f"RBF map, {centers.shape[0]} centers, {coef.shape[1]} outputs"
    return Outcome(work, seconds, reference, _worst(ours, plain) / float(np.abs(plain).max()), 1e-12)


def check_l1(X: Array, samples: int = 100, lam: float = 1e-7) -> Outcome:
    """Exact L1 codes over [digits, identity], by certificate.

    With r the residual at a small lam, r / lam is a dual point. Scaled until NumPy finds it feasible, it bounds the
    smallest |a|_1 + |e|_1 from below; the exact code must reach that bound, and rebuild its sample.
    """
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    new, dictionary = unit[:samples], unit[samples : samples + 600]
    (codes, errors), seconds = _timed(lambda: kernels.l1_code(new, dictionary, errors=True, lam=0.0))
    a, e = codes.toarray(), np.asarray(errors)
    near_codes, near_errors = kernels.l1_code(new, dictionary, errors=True, lam=lam)
    dual = (new - near_codes.toarray() @ dictionary - near_errors) / lam
    dual /= np.maximum(1, np.maximum(np.abs(dual).max(axis=1), np.abs(dual @ dictionary.T).max(axis=1)))[:, None]
    length = np.abs(a).sum(axis=1) + np.abs(e).sum(axis=1)
    gap = np.abs(length - np.sum(new * dual, axis=1)) / length
    residual = np.linalg.norm(new - a @ dictionary - e, axis=1)
    error = max(float(gap.max()), float(residual.max()))
    return Outcome(f"L1 codes of {samples} rows, {dictionary.shape[0]} atoms", seconds, None, error, 1e-6)


CHECKS: dict[str, Callable[[Array], Outcome]] = {
    "distances": check_distances,
    "knn": check_knn,
    "graph": check_graph,
    "laplacian": check_laplacian,
    "rbf": check_rbf,
    "l1": check_l1,
}


def self_check() -> bool:
    """Run all checks on scikit-learn's digits and print a line for each; True where all are OK."""
    from sklearn.datasets import load_digits

    X = np.asarray(load_digits().data, dtype=np.float64)
    print(f"{'check':<10} {'work':<38} {'manifast':>10} {'NumPy':>10} {'error':>9} {'bound':>9}")
    passed = 0
    for name, check in CHECKS.items():
        try:
            outcome = check(X)
        except Exception as error:  # a check that breaks is a failed check; the others still run
            print(f"{name:<10} {type(error).__name__}: {error}  FAILED")
            continue
        ok = outcome.error <= outcome.bound
        passed += ok
        ours, plain = _milliseconds(outcome.seconds), _milliseconds(outcome.reference)
        print(
            f"{name:<10} {outcome.work:<38} {ours:>10} {plain:>10} {outcome.error:>9.1e} {outcome.bound:>9.0e}"
            f"  {'OK' if ok else 'FAILED'}"
        )
    print(f"{passed} of {len(CHECKS)} checks passed")
    return passed == len(CHECKS)


def _timed(call: Callable[[], Result]) -> tuple[Result, float]:
    """The result and the time of a second call: the first one also pays for fresh memory and waking threads."""
    call()
    start = perf_counter()
    result = call()
    return result, perf_counter() - start


def _worst(ours: Any, expected: Any) -> float:
    return float(np.max(np.abs(ours - expected)))


def _milliseconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{1000 * seconds:.1f} ms"


def _sq_distances(X: Array, Y: Array) -> Array:
    """From differences, a few rows at a time."""
    out = np.empty((X.shape[0], Y.shape[0]))
    for i in range(0, X.shape[0], 16):
        out[i : i + 16] = np.sum((X[i : i + 16, None] - Y) ** 2, axis=2)
    return out


def _knn(X: Array, k: int) -> tuple[Array, Array]:
    squared = _sq_distances(X, X)
    np.fill_diagonal(squared, np.inf)
    nearest = np.argsort(squared, axis=1, kind="stable")[:, :k]
    return np.sqrt(np.take_along_axis(squared, nearest, axis=1)), nearest
