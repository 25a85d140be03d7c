"""Kernel functions K(x, y) by name: their matrix on the training rows, and kernel maps of new rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as la

from manifast._kernels import affine_product
from manifast._linalg.dense import product
from manifast._linalg.memory import LANDMARKS, check_room
from manifast._prepared import PreparedCenters
from manifast._validation import Array, as_count, as_number, as_positive, is_sparse, largest_magnitude
from manifast.kernels import gaussian, sq_distances

KERNELS = ("linear", "rbf", "poly", "polynomial", "precomputed")
_CHUNK = 1 << 22  # kernel values held at once
_LARGEST = 1e140  # of kernel values, so that their squares stay in range
_SMALLEST = 1e-25  # largest coefficient beside which others are still in the range of float32
_FLOAT64 = np.dtype(np.float64)
_SAMPLE = 2000  # rows that are looked at for the median distance


@dataclass(frozen=True)
class Kernel:
    """One of the named kernels with its parameters settled.

    "rbf": exp(-|x - y|² / sigma²); "linear": x·y; "poly": (x·y + coef0)^degree; "precomputed": rows are rows of K.
    """

    name: str
    sigma: float = 1.0
    degree: int = 3
    coef0: float = 1.0

    @classmethod
    def of(
        cls, name: str, X: Array, *, sigma: Any = None, degree: int = 3, coef0: float = 1.0, matrices: int = 3
    ) -> Kernel:
        """The kernel for these training rows: `sigma=None` is the median distance between them.

        `matrices` is the number of n × n matrices that will be held at once: they must fit into memory.
        """
        check_kernel(name, X, degree, coef0, matrices=matrices)
        name = "poly" if name == "polynomial" else name
        width = 1.0
        if name == "rbf":
            width = median_distance(X) if sigma is None else as_positive(sigma, "sigma")
        return cls(name, width, as_count(degree, "degree"), as_number(coef0, "coef0", minimum=0.0))

    def matrix(self, X: Array) -> Array:
        """K on the training rows, exactly symmetric, in float64."""
        X = np.asarray(X, dtype=np.float64)
        if self.name == "rbf":
            return gaussian(X, sigma=self.sigma)
        if self.name == "precomputed":
            _check_kernel(X)
            return 0.5 * (X + X.T)
        with np.errstate(over="ignore", invalid="ignore"):
            products: Array = product(X, X.T)
            if self.name == "linear":
                products = 0.5 * (products + products.T)
                if not np.isfinite(largest_magnitude(products)):
                    raise ValueError("X must be rows whose products x·y are finite. Got larger ones: scale them down.")
                return products
            values = power(products + self.coef0, self.degree)
        if not largest_magnitude(values) < _LARGEST:
            raise ValueError(
                f"degree and coef0 must keep (x·y + coef0)^degree below {_LARGEST:.0e}. Got degree = {self.degree} and "
                f"coef0 = {self.coef0:.3g} for rows with x·y up to {largest_magnitude(products):.3g}: scale the data "
                "down."
            )
        return values

    def size(self, X: Array) -> float:
        """The largest magnitude of K on the training rows, which is on its diagonal."""
        if self.name == "rbf":
            return 1.0
        if self.name == "precomputed":
            return largest_magnitude(X)
        squares = float(np.einsum("ij,ij->i", X, X, dtype=np.float64).max())
        return squares if self.name == "linear" else (squares + self.coef0) ** self.degree


class KernelSum:
    """K(x, rows) @ dual + intercept, row by row the same for any batch; without rows, x holds the values of the kernel.

    What depends on rows and coefficients alone is made on first use and kept (`manifast._prepared`), and not pickled.
    """

    def __init__(self, kernel: Kernel, rows: Array | None, dual: Array, intercept: Array) -> None:
        self._given = kernel, rows, dual, intercept
        self._centers = None if rows is None or kernel.name != "rbf" else PreparedCenters(rows, dual)
        self._turned: dict[Any, Array] = {}

    def __getstate__(self) -> Any:
        return self._given

    def __setstate__(self, given: Any) -> None:
        self.__init__(*given)  # type: ignore[misc]

    def __call__(self, X: Array) -> Array:
        """In the wider dtype of X and the coefficients."""
        kernel, rows, dual, intercept = self._given
        dtype = np.result_type(X, dual)
        if X.dtype != dtype:
            X = X.astype(dtype)
        if self._centers is not None:
            sums = self._centers.product(X, kernel.sigma)
            sums += intercept.astype(dtype, copy=False)
            return sums
        if rows is None or kernel.name == "linear":
            coef = dual.astype(dtype, copy=False) if rows is None else self._made(dtype, self._collapsed)
            return affine_product(X, coef, np.ascontiguousarray(intercept, dtype=dtype))
        return self._powers(X, kernel, dual, intercept)

    def _made(self, dtype: Any, make: Callable[[Any], Array]) -> Array:
        found = self._turned.get(dtype)
        if found is None:
            found = self._turned[dtype] = make(dtype)
        return found

    def _columns(self, dtype: Any) -> Array:
        """Rows as columns."""
        return np.ascontiguousarray(self._given[1].T, dtype=dtype)  # type: ignore[union-attr]

    def _collapsed(self, dtype: Any) -> Array:
        """Coefficients of the features that give the same map as the dual ones of a linear kernel."""
        return affine_product(self._columns(dtype), self._given[2].astype(dtype, copy=False))

    def _powers(self, X: Array, kernel: Kernel, dual: Array, intercept: Array) -> Array:
        """In float64: powers leave the range of float32 soon."""
        columns = self._made(_FLOAT64, self._columns)
        out = np.empty((len(X), dual.shape[1]), X.dtype)
        dual, intercept = dual.astype(np.float64, copy=False), np.ascontiguousarray(intercept, np.float64)
        step = max(1, _CHUNK // columns.shape[1])
        for begin in range(0, len(X), step):
            with np.errstate(over="ignore", invalid="ignore"):
                products = affine_product(X[begin : begin + step].astype(np.float64, copy=False), columns)
                powers = power(products + kernel.coef0, kernel.degree)
                out[begin : begin + step] = affine_product(powers, dual, intercept)
        finite = np.isfinite(out).all(axis=1)
        if not finite.all():
            raise ValueError(
                f"X must be rows whose image under the polynomial kernel is finite. Got row {int(np.argmin(finite))}, "
                f"for which (x·y + coef0)^{kernel.degree} leaves the range: scale the data down, before fit as well."
            )
        return out


def power(base: Array, degree: int) -> Array:
    """base^degree, degree at least 1, by products alone: NumPy's powers round differently from version to version."""
    result = None
    while True:
        if degree & 1:
            result = base if result is None else result * base
        degree >>= 1
        if not degree:
            return np.asarray(result)
        base = base * base


def check_kernel(name: Any, X: Any, degree: Any = 3, coef0: Any = 1.0, *, matrices: int = 3) -> None:
    """Refuse a kernel that is not known, or `matrices` n × n matrices that do not fit into memory, before any work."""
    if name not in KERNELS:
        raise ValueError(f"kernel must be one of {', '.join(map(repr, KERNELS))}. Got {name!r} instead.")
    if name == "precomputed" and X.shape[0] != X.shape[1]:
        raise ValueError(f"X must be a square kernel matrix for kernel='precomputed'. Got shape {X.shape} instead.")
    as_count(degree, "degree")
    as_number(coef0, "coef0", minimum=0.0)
    check_room(X.shape[0], matrices, f"{LANDMARKS}, or no kernel")


def linear_map(X: Any, coef: Array, intercept: Array) -> Array:
    """X @ coef + intercept in the dtype of X, dense or sparse, row by row the same for any batch."""
    coef, intercept = (np.ascontiguousarray(part, dtype=X.dtype) for part in (coef, intercept))
    return np.asarray(X @ coef + intercept) if is_sparse(X) else affine_product(X, coef, intercept)


def settle(coef: Array, image: Array, dtype: Any, size: float = 1.0) -> Array:
    """Coefficients in the data's dtype; in float64 where rounding or range of float32 would show in their image.

    `size` is the largest magnitude of what they multiply: features, or values of a kernel.
    """
    largest = max(float(np.abs(image).max(initial=0.0)), float(np.finfo(np.float64).tiny))
    blown_up = size * float(np.abs(coef).sum(axis=0).max(initial=0.0)) / largest
    size = float(np.abs(coef).max(initial=0.0))
    return np.ascontiguousarray(coef, dtype=np.float64 if blown_up > 1e2 or 0 < size < _SMALLEST else dtype)


def median_distance(X: Array) -> float:
    """Median distance between rows, over at most two thousand of them taken at even steps; 1 where it would be 0."""
    return median_of_squares(sq_distances(np.asarray(X[_sample(X.shape[0])], dtype=np.float64)))


def median_of_squares(squares: Array) -> float:
    """The same from the squared distances of all rows."""
    n = len(squares)
    if n > _SAMPLE:
        squares = squares[np.ix_(_sample(n), _sample(n))]
        n = len(squares)
    if n < 2:
        return 1.0
    # Every pair is there twice, after the zeros of the diagonal: the median of the pairs is that of the rest.
    middle = n + n * (n - 1) // 2
    halves = np.partition(squares, middle, axis=None)  # one place: for two NumPy takes six times as long
    median = float(np.sqrt([halves[:middle].max(), halves[middle]]).mean())
    if median == 0:
        positive = squares[squares > 0]
        median = float(np.median(np.sqrt(positive))) if len(positive) else 1.0
    return median


def _sample(n: int) -> Array:
    return np.unique(np.linspace(0, n - 1, min(n, _SAMPLE)).astype(int))


def kernel_features(K: Array) -> Array:
    """Rows whose inner products are K: cliques and distances in the kernel's space without its features."""
    _check_kernel(K)
    values, vectors = la.eigh(np.asarray(0.5 * (K + K.T), dtype=np.float64))
    kept = values > 1e-12 * max(float(values[-1]), np.finfo(float).tiny)
    if values[0] < -(1e-4 if K.dtype == np.float32 else 1e-8) * values[-1]:
        raise ValueError(f"X must be a positive semidefinite kernel matrix. Got an eigenvalue of {values[0]:.3g}.")
    return np.ascontiguousarray(vectors[:, kept] * np.sqrt(values[kept]))


def _check_kernel(K: Array) -> None:
    """Refuse a kernel matrix that is not symmetric to rounding."""
    asymmetry = float(np.abs(K - K.T).max())
    if asymmetry > (1e-4 if K.dtype == np.float32 else 1e-8) * float(np.abs(K).max()):
        raise ValueError(f"X must be a symmetric kernel matrix. Got entries that differ by up to {asymmetry:.3g}.")
