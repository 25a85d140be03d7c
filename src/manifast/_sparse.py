"""The one door for sparse input: its arrays are checked before SciPy or the core may index with them.

SciPy trusts the arrays of its matrices, which anybody may write to: an index out of range is read or written outside
of them. Flags such as `has_canonical_format` are not believed either, as they may be older than the arrays.
"""

from __future__ import annotations

from itertools import chain
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp

from manifast._validation import Array

__all__ = ["checked_sparse"]


def checked_sparse(
    value: Any, name: str, *, square: bool = False, finite: bool = False, dtype: Any = None
) -> sp.csr_array:
    """A CSR array whose columns ascend in every row, none twice, from a sparse matrix of any format.

    Parameters
    ----------
    value : scipy.sparse matrix or array
        It is not changed. The result is `value` itself where that is in order already.
    name : str
        Of the argument, for errors.
    square, finite : bool
        What else is required.
    dtype : float32 or float64, optional
        By default float32 for float32 and float16, else float64.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from manifast._sparse import checked_sparse
    >>> W = sp.csr_array([[0.0, 1.0], [1.0, 0.0]])
    >>> W.indices[0] = 7
    >>> checked_sparse(W, "W")
    Traceback (most recent call last):
    ValueError: W must be a valid CSR matrix. Got indices from 0 to 7 where 0 to 1 are allowed.
    """
    shape = tuple(int(size) for size in value.shape)
    if len(shape) != 2:
        raise ValueError(f"{name} must be a matrix with 2 dimensions. Got {len(shape)} instead.")
    if square and shape[0] != shape[1]:
        raise ValueError(f"{name} must be a square matrix. Got shape {shape} instead.")
    kind = str(value.format)
    if kind not in _READERS:
        raise ValueError(f"{name} must be a sparse matrix of a format of SciPy. Got {kind!r} instead.")
    if value.dtype.kind not in "fiub":
        raise ValueError(f"{name} must hold real numbers. Got dtype {value.dtype} instead.")
    matrix: Any = _READERS[kind](value, shape, f"{name} must be a valid {kind.upper()} matrix.")
    if dtype is None:
        dtype = np.float32 if matrix.dtype.kind == "f" and matrix.dtype.itemsize <= 4 else np.float64
    matrix = matrix.astype(dtype, copy=False)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    if finite and not np.isfinite(matrix.data).all():
        raise ValueError(f"{name} must be finite. Got NaN or infinity: remove or replace these entries.")
    made: sp.csr_array = value if type(value) is sp.csr_array and _same_arrays(value, matrix) else matrix
    return made


def _same_arrays(one: sp.csr_array, other: sp.csr_array) -> bool:
    parts = ((getattr(one, name), getattr(other, name)) for name in ("data", "indices", "indptr"))
    return all(a.__array_interface__ == b.__array_interface__ for a, b in parts)


def _refuse(must: str, got: str) -> NoReturn:
    raise ValueError(f"{must} Got {got}.")


def _read_csr(value: Any, shape: tuple[int, int], must: str) -> sp.csr_array:
    indptr, indices, data = _compressed(value, shape[0], shape[1], must)
    return sp.csr_array((data, indices, indptr), shape=shape)


def _read_csc(value: Any, shape: tuple[int, int], must: str) -> sp.csr_array:
    indptr, indices, data = _compressed(value, shape[1], shape[0], must)
    return sp.csr_array(sp.csc_array((data, indices, indptr), shape=shape))


def _read_bsr(value: Any, shape: tuple[int, int], must: str) -> sp.csr_array:
    size = np.shape(value.data)
    if len(size) != 3 or 0 in size[1:] or shape[0] % size[1] or shape[1] % size[2]:
        _refuse(must, f"blocks of shape {size[1:]} for a matrix of shape {shape}")
    indptr, indices, data = _compressed(value, shape[0] // size[1], shape[1] // size[2], must)
    return sp.csr_array(sp.bsr_array((data, indices, indptr), shape=shape))


def _read_coo(value: Any, shape: tuple[int, int], must: str) -> sp.csr_array:
    return _from_pairs(value.row, value.col, np.asarray(value.data), shape, must)


def _read_dia(value: Any, shape: tuple[int, int], must: str) -> sp.csr_array:
    data, offsets = np.asarray(value.data), _integers(value.offsets, must)
    if data.ndim != 2 or len(data) != len(offsets):
        _refuse(must, f"{len(offsets)} offsets for diagonals of shape {data.shape}")
    _within(offsets, -shape[0], shape[1], must)
    columns = np.arange(min(data.shape[1], shape[1]))
    rows = columns - offsets[:, None].astype(np.int64)
    inside = (rows >= 0) & (rows < shape[0]) & (data[:, : len(columns)] != 0)
    return _from_pairs(
        rows[inside],
        np.broadcast_to(columns, rows.shape)[inside],
        data[:, : len(columns)][inside],
        shape,
        must,
    )


def _read_lil(value: Any, shape: tuple[int, int], must: str) -> sp.csr_array:
    lists, values = list(value.rows), list(value.data)
    counts = [len(row) for row in lists]
    if len(lists) != shape[0] or counts != [len(row) for row in values]:
        _refuse(must, "lists of columns and of values that differ in length")
    columns = np.array(list(chain.from_iterable(lists)), dtype=None if any(counts) else np.int64)
    data = np.array(list(chain.from_iterable(values)), dtype=value.dtype)
    return _from_pairs(np.repeat(np.arange(shape[0]), counts), columns, data, shape, must)


def _read_dok(value: Any, shape: tuple[int, int], must: str) -> sp.csr_array:
    keys = np.array(list(value.keys()), dtype=None if value.nnz else np.int64).reshape(-1, 2)
    data = np.array(list(value.values()), dtype=value.dtype)
    return _from_pairs(keys[:, 0], keys[:, 1], data, shape, must)


_READERS = {
    "csr": _read_csr,
    "csc": _read_csc,
    "bsr": _read_bsr,
    "coo": _read_coo,
    "dia": _read_dia,
    "lil": _read_lil,
    "dok": _read_dok,
}


def _compressed(value: Any, major: int, minor: int, must: str) -> tuple[Array, Array, Array]:
    """Pointers, indices and data that fit one another, without what is stored beyond the last pointer."""
    indptr, indices = _integers(value.indptr, must), _integers(value.indices, must)
    data = np.asarray(value.data)
    if len(indptr) != major + 1:
        _refuse(must, f"{len(indptr)} pointers where {major + 1} are needed")
    if len(indices) != len(data):
        _refuse(must, f"{len(indices)} indices for {len(data)} entries")
    if indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():
        _refuse(must, "pointers that do not ascend from 0")
    if indptr[-1] > len(indices):
        _refuse(must, f"pointers up to {indptr[-1]} for {len(indices)} entries")
    stored = int(indptr[-1])
    if stored < len(indices):
        indices, data = indices[:stored], data[:stored]
    _within(indices, 0, minor, must)
    return _native(indptr), _native(indices), _usable(data)


def _from_pairs(rows: Any, columns: Any, data: Array, shape: tuple[int, int], must: str) -> sp.csr_array:
    pairs = _integers(rows, must), _integers(columns, must)
    if data.ndim != 1 or not len(pairs[0]) == len(pairs[1]) == len(data):
        _refuse(must, f"{len(pairs[0])} rows and {len(pairs[1])} columns for {data.size} entries")
    for indices, size in zip(pairs, shape, strict=True):
        _within(indices, 0, size, must)
    both = _native(pairs[0]), _native(pairs[1])
    return sp.csr_array(sp.coo_array((_usable(data), both), shape=shape))


def _integers(value: Any, must: str) -> Array:
    array = np.asarray(value)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        _refuse(must, f"indices of dtype {array.dtype} and shape {array.shape}, not a vector of integers")
    return array


def _within(indices: Array, low: int, high: int, must: str) -> None:
    if len(indices):
        least, most = int(indices.min()), int(indices.max())
        if least < low or most >= high:
            _refuse(must, f"indices from {least} to {most} where {low} to {high - 1} are allowed")


def _native(indices: Array) -> Array:
    """Indices in range, as SciPy takes them."""
    if indices.dtype not in (np.int32, np.int64):
        indices = indices.astype(np.int64)
    return _usable(indices)


def _usable(array: Array) -> Array:
    """A contiguous, aligned array in native byte order, in a precision that SciPy's own code has."""
    dtype = array.dtype.newbyteorder("=")
    if dtype.kind == "f" and dtype not in (np.float32, np.float64):
        dtype = np.dtype(np.float32 if dtype.itemsize < 4 else np.float64)
    return np.require(array, dtype, ["C", "A"])
