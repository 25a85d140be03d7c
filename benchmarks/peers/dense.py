"""Distances, Gaussian kernels and affine products against scikit-learn, SciPy and the BLAS."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel

from benchmarks.measure import Row, race
from manifast import kernels
from manifast._kernels import affine_product


def _normal(seed: int, *shape: int, dtype: str = "float64") -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def distances(threads: int) -> list[Row]:
    rows = []
    n = 3000
    for dtype, p, self_bar, bar in [
        ("float64", 64, 1.7, 1.7),
        ("float64", 1024, 1.0, 1.0),
        ("float32", 64, None, 2.5),
        ("float32", 1024, None, 2.0),
    ]:
        X, Y = _normal(0, n, p, dtype=dtype), _normal(1, n, p, dtype=dtype)
        tolerance = 1e-13 if dtype == "float64" else 1e-5
        for name, other, wanted in [("X, Y", Y, bar), ("X", None, self_bar)]:
            rows.append(
                race(
                    f"sq_distances({name}) {dtype} {n} x {n}, p = {p}",
                    threads,
                    lambda X=X, other=other: kernels.sq_distances(X, other, n_threads=threads),
                    "scikit-learn euclidean_distances",
                    lambda X=X, other=other: euclidean_distances(X, other, squared=True),
                    bar=wanted,
                    tolerance=tolerance,
                )
            )
    X, Y = _normal(0, n, 3), _normal(1, n, 3)
    ours, theirs = np.empty((n, n)), np.empty((n, n))
    rows.append(
        race(
            f"sq_distances(X, Y) float64 {n} x {n}, p = 3",
            threads,
            lambda: kernels.sq_distances(X, Y, n_threads=threads),
            "scipy cdist",
            lambda: cdist(X, Y, "sqeuclidean"),
            bar=1.7,
        )
    )
    rows.append(
        race(
            f"sq_distances(X, Y, out=) float64 {n} x {n}, p = 3",
            threads,
            lambda: kernels.sq_distances(X, Y, out=ours, n_threads=threads),
            "scipy cdist(out=)",
            lambda: cdist(X, Y, "sqeuclidean", out=theirs),
            bar=3.0,
        )
    )
    return rows


def gaussians(threads: int) -> list[Row]:
    X, Y = _normal(0, 3000, 64), _normal(1, 3000, 64)
    rows = [
        race(
            "gaussian(X, Y) float64 3000 x 3000, p = 64",
            threads,
            lambda: kernels.gaussian(X, Y, sigma=8.0, n_threads=threads),
            "scikit-learn rbf_kernel",
            lambda: rbf_kernel(X, Y, gamma=1 / 64),
        )
    ]
    for (m, n, p, d), bar in [
        ((20_000, 2000, 64, 10), 3.0),
        ((200_000, 1000, 3, 2), 6.5),
        ((20_000, 2000, 1024, 20), 1.2),
    ]:
        X, C, W = _normal(0, m, p), _normal(1, n, p), _normal(2, n, d)
        sigma = float(np.sqrt(2 * p))
        rows.append(
            race(
                f"rbf_apply float64 (m, n, p, d) = ({m}, {n}, {p}, {d})",
                threads,
                lambda X=X, C=C, W=W, sigma=sigma: kernels.rbf_apply(X, C, W, sigma=sigma, n_threads=threads),
                "scikit-learn rbf_kernel @ W",
                lambda X=X, C=C, W=W, sigma=sigma: rbf_kernel(X, C, gamma=1 / sigma**2) @ W,
                bar=bar,
                budget=6.0,
            )
        )
    return rows


def affine(threads: int) -> list[Row]:
    rows = []
    for dtype, tolerance in [("float64", 1e-13), ("float32", 1e-5)]:
        X, W, b = (_normal(i, *shape, dtype=dtype) for i, shape in enumerate([(10_000, 200), (200, 20), (20,)]))
        rows.append(
            race(
                f"affine product {dtype} 10,000 x 200 by 200 x 20",
                threads,
                lambda X=X, W=W, b=b: affine_product(X, W, b, n_threads=threads),
                "numpy X @ W + b",
                lambda X=X, W=W, b=b: X @ W + b,
                bar=1 / 1.3,
                tolerance=tolerance,
                repeats=(50, 200),
            )
        )
    return rows


COMPARISONS = (distances, gaussians, affine)
