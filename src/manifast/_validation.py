"""Checks at the door. Every message names the argument, what came and what is allowed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import isfinite
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from manifast._core.dispatch import largest

Array = NDArray[Any]


def is_sparse(value: Any) -> bool:
    """Whether a value is a SciPy sparse matrix or array."""
    return bool(sp.issparse(value))


@contextmanager
def whole_or_not_at_all(estimator: Any) -> Iterator[None]:
    """A fit that fails leaves the estimator as it was, also where a signal comes while that is done."""
    before, done = dict(estimator.__dict__), False
    try:
        try:
            yield
            done = True
        finally:
            if not done:
                estimator.__dict__ = before
    finally:
        if not done:
            estimator.__dict__ = before


def own(array: Any, given: Any) -> Any:
    """A checked array or CSR matrix that stays as it is: a copy where it shares memory with what the caller gave.

    The caller may write to that later. Read-only memory maps are kept: they may be larger than memory.
    """
    if is_sparse(array):
        names = ("data", "indices", "indptr")
        kept = [getattr(array, name) for name in names]
        owned = [own(part, getattr(given, name, None)) for part, name in zip(kept, names, strict=True)]
        if all(one is other for one, other in zip(kept, owned, strict=True)):
            return array
        return sp.csr_array(tuple(owned), shape=array.shape)
    if given is None or isinstance(given, list | tuple):
        return array
    # What else has rows, such as a data frame, may hand out its own memory.
    if not np.may_share_memory(array, np.asarray(given)) or read_only_map(array):
        return array
    return array.copy()


def read_only_map(array: Any) -> bool:
    """Whether an array lies in a file that is mapped read-only."""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap):
            return bool(array.mode == "r")
        array = array.base
    return False


def as_matrix(value: Any, name: str, *, dtype: Any = None, min_rows: int = 0, columns: int | None = None) -> Array:
    """A finite, C-contiguous, native float32 or float64 matrix; a copy only where the input is not one already.

    Integers and booleans become float64, float16 becomes float32; `dtype` forces one of the two.
    """
    if dtype is None and is_plain(value, columns) and value.shape[0] >= min_rows and isfinite(largest(value)):
        return value  # type: ignore[no-any-return]
    if hasattr(value, "toarray"):
        raise ValueError(f"{name} must be a dense array. Got a sparse {type(value).__name__}: use {name}.toarray().")
    refuse_masked(value, name)
    array = np.asarray(value)
    if array.ndim != 2:
        hint = f" Use {name}.reshape(1, -1) for a single row." if array.ndim == 1 else ""
        raise ValueError(f"{name} must be a matrix with 2 dimensions. Got {array.ndim} instead.{hint}")
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} must hold real numbers. Got dtype {array.dtype} instead.")
    if array.shape[1] == 0:
        raise ValueError(f"{name} must have at least 1 column. Got shape {array.shape} instead.")
    if array.shape[0] < min_rows:
        raise ValueError(f"{name} must have at least {min_rows} row(s). Got shape {array.shape} instead.")
    if columns is not None and array.shape[1] != columns:
        raise ValueError(f"{name} must have {columns} columns to match. Got shape {array.shape} instead.")
    if dtype is None:
        dtype = np.float32 if array.dtype.kind == "f" and array.dtype.itemsize <= 4 else np.float64
    array = contiguous(array, dtype)
    if not isfinite(largest(array)):
        raise ValueError(f"{name} must be finite. Got NaN or infinity: remove or impute those rows.")
    return array


def in_other_units(value: Any, power: int, exponent: int) -> Any:
    """A number in (units of the data)^power, in units 2^exponent times as large; what is no number as it is."""
    number = _as_float(value) if isinstance(value, Real) and not isinstance(value, bool) and exponent else None
    if number is None:
        return value
    with np.errstate(over="ignore", under="ignore"):
        return float(np.ldexp(number, -power * exponent))


def finite_images(images: Array) -> Array:
    """What a map made of rows, refused where it left the range of its dtype."""
    if images.dtype in _FLOATS and images.size and not isfinite(largest(contiguous(images))):
        raise ValueError(
            f"X must be rows whose images stay in the range of {images.dtype}: scale them, or use float64. Got others."
        )
    return images


def is_plain(value: Any, columns: int | None = None) -> bool:
    """Whether a value is a matrix as the core takes it, of the class of NumPy itself, with as many columns."""
    if type(value) is not np.ndarray or value.ndim != 2 or value.dtype not in _FLOATS:
        return False
    flags = value.flags
    width = value.shape[1]
    return bool(flags.c_contiguous and flags.aligned and (width == columns if columns is not None else width > 0))


_FLOATS = np.dtype(np.float64), np.dtype(np.float32)


def as_columns(value: Any, name: str) -> Array:
    """The same, where a vector is taken as a matrix of one column."""
    return as_matrix(np.asarray(value)[:, None] if np.ndim(value) == 1 else value, name)


def contiguous(array: Any, dtype: Any = None) -> Array:
    """A C-contiguous array as the core reads it, its numbers where the processor wants them; a copy only if need be."""
    made = np.ascontiguousarray(array, dtype=dtype)
    return made if made.flags.aligned else made.copy()


def refuse_masked(value: Any, name: str) -> None:
    """Masks are not looked at: an array that has masked entries is refused."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        count = int(np.count_nonzero(np.ma.getmaskarray(value)))
        raise ValueError(f"{name} must have no masked entries. Got {count} of them: fill them or remove their rows.")


def largest_magnitude(array: Array) -> float:
    """The largest |entry|, 0 without entries; NaN where an entry is NaN or infinite."""
    if is_plain(array):
        return largest(array)
    with np.errstate(invalid="ignore"):
        found = max(float(array.max(initial=0.0)), -float(array.min(initial=0.0)))
    return found if isfinite(found) else float("nan")


def as_pair(x: Any, y: Any, names: tuple[str, str]) -> tuple[Array, Array]:
    """Two matrices of one dtype with the same number of columns."""
    first = as_matrix(x, names[0])
    second = as_matrix(y, names[1], columns=first.shape[1])
    if first.dtype != second.dtype:
        first, second = first.astype(np.float64, copy=False), second.astype(np.float64, copy=False)
    return first, second


def _as_float(value: Any) -> float | None:
    """A number as a float; None for what is none, such as True, a string, or an integer beyond all floats."""
    if isinstance(value, (bool, np.bool_, str, bytes, bytearray)):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def shown(value: Any) -> str:
    """A value as it stands in a message; integers of hundreds of digits by their length."""
    if isinstance(value, int) and value.bit_length() > 128:
        return f"an integer of {value.bit_length()} bits"
    return repr(value)


def as_positive(value: Any, name: str) -> float:
    """A finite number above zero."""
    number = _as_float(value)
    if number is None:
        raise ValueError(f"{name} must be a positive number. Got {shown(value)} instead.")
    if not (np.isfinite(number) and number > 0):
        raise ValueError(f"{name} must be a positive, finite number. Got {shown(value)} instead.")
    return number


def as_number(value: Any, name: str, *, minimum: float) -> float:
    """A finite number of at least `minimum`."""
    number = _as_float(value)
    if number is None:
        raise ValueError(f"{name} must be a number of at least {minimum:g}. Got {shown(value)} instead.")
    if not (np.isfinite(number) and number >= minimum):
        raise ValueError(f"{name} must be a finite number of at least {minimum:g}. Got {shown(value)} instead.")
    return number


_MOST = 2**31 - 1  # rounds, splits, neighbours: nobody means more


def as_count(value: Any, name: str, *, minimum: int = 1, maximum: int | None = None, why: str = "") -> int:
    """An integer of at least `minimum`; `why` says what the maximum comes from."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if whole and minimum <= value <= (_MOST if maximum is None else maximum):
        return int(value)
    limits = f"an integer of at least {minimum}" if maximum is None else f"an integer from {minimum} to {maximum}{why}"
    if maximum is None and whole and value > _MOST:
        limits = f"an integer from {minimum} to {_MOST}"
    raise ValueError(f"{name} must be {limits}. Got {shown(value)} instead.")
