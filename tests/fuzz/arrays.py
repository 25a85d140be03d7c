"""Arrays as users never make them: every shape, dtype, memory layout and size of numbers, and graphs that lie."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

PRIMES = (2, 3, 5, 7, 11, 13, 17, 23, 31, 61, 127)


class Rows(np.ndarray):
    """A subclass that adds nothing."""


class Offered:
    """No array, but what NumPy makes one of."""

    def __init__(self, held: np.ndarray) -> None:
        self.held, self.shape, self.ndim, self.dtype = held, held.shape, held.ndim, held.dtype

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.held, dtype=dtype, copy=copy)

    def __len__(self) -> int:
        return len(self.held)


@dataclass
class Draw:
    """The random numbers of one call, the size of its data, and whether an argument is beyond what is allowed."""

    rng: np.random.Generator
    most_rows: int = 60
    must_fail: bool = False  # an argument holds NaN, infinity or a dtype that is no number
    exotic: bool = False  # sizes of numbers where only a sentence or a finite answer is asked for
    n: int = 0  # rows of the first matrix
    thousands: bool = False  # of rows, now and then, in one matrix of the call

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def pick(self, *values: Any) -> Any:
        return values[self.rng.integers(len(values))]

    def count(self, most: int | None = None) -> int:
        """0, 1, a prime, or any number of rows; rarely thousands."""
        kind = self.rng.random()
        most = self.most_rows if most is None else most
        if self.thousands and self.chance(0.004):
            self.thousands = False
            return int(self.rng.integers(1000, 3000))
        if kind < 0.03:
            return 0
        if kind < 0.08:
            return 1
        if kind < 0.3:
            return int(min(self.pick(*PRIMES), most))
        return int(self.rng.integers(2, max(most, 2) + 1))

    def some_rows(self, n: int) -> np.ndarray:
        """Which rows an oracle looks at: all, or a few of thousands."""
        return np.arange(n) if n <= 200 else np.sort(self.rng.choice(n, 30, replace=False))


def values(draw: Draw, shape: tuple[int, ...], *, tame: bool = False) -> np.ndarray:
    """Numbers in float64: normal, tied, constant, of low rank, of all sizes, or not finite."""
    rng = draw.rng
    kind = rng.random()
    x = rng.standard_normal(shape)
    if kind < 0.45 or x.size == 0:
        return x
    if kind < 0.55:
        return rng.integers(-2, 3, shape).astype(float)
    if kind < 0.60:
        return np.full(shape, draw.pick(0.0, 1.0, -3.0, 1e-5))
    if kind < 0.65:
        return x[rng.integers(0, shape[0], shape[0])]  # copies of rows
    if kind < 0.70:
        return x + draw.pick(1e3, 1e6, 1e8, -1e10)
    if kind < 0.74:
        return rng.standard_normal((shape[0], 1)) * x[:1] if x.ndim == 2 else x
    if kind < 0.78:
        return x * draw.pick(1e-8, 1e-3, 1e4, 1e9)
    if kind < 0.80:
        x[..., 0] = 0.0
        return x
    if tame:
        return x
    draw.exotic = True
    if kind < 0.86:
        return x * 10.0 ** rng.uniform(-300, 300)
    if kind < 0.90:
        return x * 10.0 ** rng.integers(-300, 300, shape)
    if kind < 0.92:
        return x * 5e-324 * rng.integers(1, 1000)
    if kind < 0.94:
        return np.clip(x, -1, 1) * np.finfo(float).max
    if kind < 0.95:
        x *= 1e-170
        x.flat[0] = 1.0
        return x
    x.flat[rng.integers(x.size)] = draw.pick(np.nan, np.inf, -np.inf)
    return x


def dressed(draw: Draw, array: np.ndarray) -> Any:
    """The same numbers in another dtype, memory layout, byte order or class."""
    made = _laid_out(draw, _typed(draw, array))
    held = np.asarray(made)
    if held.size and (held.dtype.kind not in "fiubOU" or np.ma.is_masked(made) or not _finite(held)):
        draw.must_fail = True
    return made


def _finite(array: np.ndarray) -> bool:
    """As float64, which wider numbers become."""
    with np.errstate(all="ignore"):
        narrow = array.dtype.kind in "fiub" and array.dtype.itemsize < 8
        return bool(np.isfinite(array if narrow else array.astype(float)).all())


def _laid_out(draw: Draw, array: np.ndarray) -> Any:
    rng = draw.rng
    kind = rng.random()
    if kind < 0.5 or array.dtype.kind not in "fiub":
        return array
    if kind < 0.56:
        return np.asfortranarray(array)
    if kind < 0.62:
        held = np.zeros(tuple(2 * length for length in array.shape), array.dtype)
        view = held[tuple(slice(None, None, 2) for _ in array.shape)]
        view[...] = array
        return view
    if kind < 0.68:
        return array[::-1].copy()[::-1]
    if kind < 0.74:
        held = np.zeros(array.nbytes + 1, np.uint8)
        view = held[1:].view(np.uint8)[: array.nbytes].view(array.dtype).reshape(array.shape)
        view[...] = array
        return view
    if kind < 0.80:
        return array.astype(array.dtype.newbyteorder(">"))
    if kind < 0.84:
        return array.view(Rows)
    if kind < 0.87:
        array.flags.writeable = False
        return array
    if kind < 0.90:
        return array.tolist() if array.size < 2000 else array
    if kind < 0.91:
        return np.ma.masked_array(array, mask=False)
    if kind < 0.925 and array.size:
        mask = np.zeros(array.shape, bool)
        mask.flat[0] = True
        return np.ma.masked_array(array, mask=mask)
    if kind < 0.94:
        return np.broadcast_to(array[:1], array.shape) if len(array) else array
    if kind < 0.95 and array.ndim == 2:
        return np.matrix(array)
    if kind < 0.96 and array.size:
        return _mapped(array)
    if kind < 0.97:
        return Offered(array)
    return array


def _mapped(array: np.ndarray) -> np.ndarray:
    """A memory map of a file that has no name."""
    with tempfile.TemporaryFile() as file:
        view = np.memmap(file, dtype=array.dtype, mode="w+", offset=3, shape=array.shape)  # not aligned either
        view[...] = array
        return view


def _typed(draw: Draw, array: np.ndarray) -> np.ndarray:
    kind = draw.rng.random()
    with np.errstate(all="ignore"):
        if kind < 0.6:
            return array
        if kind < 0.85:
            return array.astype(np.float32)
        if kind < 0.89 and np.isfinite(array).all():
            return np.clip(array, -100, 100).astype(draw.pick(np.int8, np.int16, np.int32, np.int64))
        if kind < 0.91 and np.isfinite(array).all():
            return np.clip(array, 0, 100).astype(draw.pick(np.uint8, np.uint64))
        if kind < 0.93:
            return array > 0
        if kind < 0.95:
            return array.astype(np.float16)
        if kind < 0.97:
            return array.astype(np.longdouble)
        if kind < 0.98 and array.size:
            return array.astype(complex) + 1j
        if kind < 0.985 and array.size:
            return array.astype(str)
        if kind < 0.99 and array.size and np.isfinite(array).all():
            return array.astype("datetime64[s]")
        if kind < 0.995:
            return array.astype(object)
        return array


def matrix(
    draw: Draw, rows: int | None = None, columns: int | None = None, *, tame: bool = False, legal: Any = ()
) -> Any:
    """Rows of data; what a caller needs to know of them is in `draw`. `legal`: which of the wrong ones are not."""
    n = draw.count() if rows is None else rows
    p = int(draw.pick(1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33)) if columns is None else columns
    if draw.n == 0:
        draw.n = n
    if draw.chance(0.01):
        wrong = [np.zeros((n, 2, 2)), np.float64(1.0), "rows", object()]
        wrong += [] if "no columns" in legal else [np.zeros((n, 0))]
        wrong += [] if None in legal else [None]
        wrong += [] if "vector" in legal else [np.zeros(n)]
        draw.must_fail = True
        return draw.pick(*wrong)
    return dressed(draw, values(draw, (n, p), tame=tame))


def clean(draw: Draw, rows: int, columns: int) -> np.ndarray:
    """Finite numbers of ordinary size, C-contiguous, in float64 or float32."""
    x = draw.rng.standard_normal((rows, columns))
    kind = draw.rng.random()
    if kind < 0.2:
        x = np.round(x)
    elif kind < 0.3 and rows:
        x = x[draw.rng.integers(0, rows, rows)]
    elif kind < 0.35:
        x[:, :1] = 0
    return x.astype(np.float32) if draw.chance(0.3) else x


def labels(draw: Draw, n: int, *, some: bool = False) -> Any:
    """Labels of n rows in up to 5 classes; `some`: -1 where there is none. Now and then wrong ones."""
    rng = draw.rng
    y = rng.integers(0, rng.integers(1, 6), n)
    if some:
        y = np.where(rng.random(n) < draw.pick(0.0, 0.3, 0.8), -1, y)
    kind = rng.random()
    if kind < 0.75:
        return y
    if kind < 0.80:
        return np.array([f"class {label}" for label in y])
    if kind < 0.84:
        return y.astype(float)
    if kind < 0.87:
        return y.tolist()
    if kind < 0.89:
        return y.astype(object)
    if kind < 0.91:
        return y[:-1]
    if kind < 0.93:
        return y + 0.5
    if kind < 0.95 and n:
        made = y.astype(float)
        made[0] = draw.pick(np.nan, np.inf)
        return made
    if kind < 0.97:
        return y[:, None]
    return draw.pick(None, "labels", np.zeros((n, 2)), y > 0, np.full(n, 7), y.astype(np.uint8), y.astype(complex))


def graph(draw: Draw, n: int, *, lengths: bool = False) -> Any:
    """A symmetric graph of n nodes, sparse or dense; now and then one that lies about itself."""
    rng = draw.rng
    W = np.abs(rng.standard_normal((n, n))) * (rng.random((n, n)) < draw.pick(0.05, 0.3, 1.0))
    W = (W + W.T) / 2
    if not draw.chance(0.2) or lengths:
        np.fill_diagonal(W, 0)
    W *= draw.pick(1.0, 1.0, 1.0, 1e-9, 1e12, 1e-150, 1e150)
    kind = rng.random()
    if kind < 0.04 and n > 1:
        W[0, 1] += 1.0
    elif kind < 0.07 and n:
        W[0, -1] = W[-1, 0] = draw.pick(np.nan, np.inf)
        draw.must_fail = True
    elif kind < 0.10 and n > 1:
        W[0, 1] = W[1, 0] = -1.0
    elif kind < 0.13:
        W = W[:, : max(n - 1, 1)]
    if draw.chance(0.2):
        W = W.astype(np.float32)
        draw.must_fail |= not np.isfinite(W).all()
    if draw.chance(0.4):
        return W
    S = sp.csr_array(W)
    kind = rng.random()
    if kind < 0.5:
        return S
    if kind < 0.6:
        return S.tocoo()
    if kind < 0.65:
        return S.tocsc()
    if kind < 0.7:
        return sp.csr_matrix(S)
    if kind < 0.75:
        S.indices, S.indptr = S.indices.astype(np.int64), S.indptr.astype(np.int64)
        return S
    if kind < 0.8:
        draw.exotic |= draw.must_fail
        draw.must_fail = False  # NaN becomes some whole number
        return S.astype(draw.pick(np.int8, np.int32, bool))
    if kind < 0.85 and S.nnz:  # columns in descending order
        S.indices, S.data = S.indices[::-1].copy(), S.data[::-1].copy()
        S.indptr = S.nnz - S.indptr[::-1]
        S.has_sorted_indices = False
        return S
    return _lying(draw, S)


def _lying(draw: Draw, S: Any) -> Any:
    """CSR arrays that contradict each other."""
    if S.nnz < 2:
        return S
    at = int(draw.rng.integers(S.nnz))
    lie = draw.rng.integers(6)
    if lie == 0:
        S.indices[at] = draw.pick(S.shape[1], -1, 2**31 - 1)
    elif lie == 1:
        S.indptr[draw.rng.integers(len(S.indptr))] = draw.pick(-1, S.nnz + 1, 2**31 - 1)
    elif lie == 2:
        S.indptr[-1] = S.nnz + 7
    elif lie == 3:
        S.indices = S.indices[:-1]
    elif lie == 4:
        S.data = S.data[:-1]
    else:
        S.indices[at] = S.indices[at - 1]
    return S


def lists(draw: Draw, n: int, k: int) -> tuple[Any, Any]:
    """Distances and indices of neighbours; now and then lists that lie."""
    rng = draw.rng
    k = max(min(k, n - 1), 1)
    indices = np.array([np.sort(rng.permutation(max(n - 1, 1))[:k]) for _ in range(n)], dtype=np.int64).reshape(n, k)
    indices += indices >= np.arange(n)[:, None]
    distances = np.sort(np.abs(rng.standard_normal(indices.shape)), axis=1)
    kind = rng.random()
    if n and indices.size:
        if kind < 0.05:
            indices[rng.integers(n), 0] = draw.pick(-1, n, 2**40, -(2**62))
        elif kind < 0.08:
            distances[rng.integers(n), 0] = draw.pick(-1.0, np.nan, np.inf)
        elif kind < 0.12:
            indices[rng.integers(n)] = indices[0, 0]
        elif kind < 0.15:
            distances = distances[:, ::-1]
        elif kind < 0.17:
            indices = indices[:-1]
        elif kind < 0.20:
            indices = indices.astype(draw.pick(np.int32, np.uint64, np.float64, np.uint8))
        elif kind < 0.23:
            indices = np.asfortranarray(indices)
        elif kind < 0.26:
            distances = distances.astype(np.float32)
        elif kind < 0.28:
            indices[:, 0] = np.arange(n)
    return distances, indices
