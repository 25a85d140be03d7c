"""LAPACK's Cholesky factor and its solve for whole matrices, called without Python's lock: several run side by side.

The routines are those of SciPy's own LAPACK, as `scipy.linalg.cython_lapack` hands them out. They work in place, on
rows or columns that are contiguous, also inside a larger matrix.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy.linalg import cython_lapack

from manifast._validation import Array

_LETTER = {"f": b"s", "d": b"d"}


@cache
def _routine(name: str, arguments: int) -> Callable[..., None]:
    """A routine whose arguments are all pointers. A call of ctypes lets other threads run."""
    table: Any = cython_lapack.__pyx_capi__
    capsule = table[name]
    api = ctypes.pythonapi
    name_of: Any = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", api))
    pointer_of: Any = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", api)
    )
    made: Callable[..., None] = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * arguments)(
        pointer_of(capsule, name_of(capsule))
    )
    return made


def _triangle(matrix: Array) -> tuple[Array, ctypes.Array[ctypes.c_char], Array]:
    """Rows and the distance of columns as LAPACK counts them, and the letter of the lower triangle in that order."""
    columns = matrix.strides[0] == matrix.itemsize
    step = matrix.strides[1 if columns else 0] // matrix.itemsize
    size = np.array([len(matrix)], np.intc)
    return size, ctypes.create_string_buffer(b"L" if columns else b"U"), np.array([max(step, len(matrix), 1)], np.intc)


def fits(matrix: Array) -> bool:
    """Whether a matrix has the dtype and the order that the routines here take."""
    return matrix.dtype.char in _LETTER and matrix.itemsize in matrix.strides and len(matrix) > 1


def factor(matrix: Array) -> bool:
    """Overwrite the lower triangle of a symmetric matrix by its Cholesky factor; False where it is not definite."""
    size, triangle, step = _triangle(matrix)
    info = np.zeros(1, np.intc)
    name = _LETTER[matrix.dtype.char].decode() + "potrf"
    _routine(name, 5)(triangle, size.ctypes.data, matrix.ctypes.data, step.ctypes.data, info.ctypes.data)
    return not info[0] and bool(np.isfinite(matrix[-1, -1]))


def solve(triangle: Array, X: Array) -> None:
    """Overwrite X, of contiguous columns and the dtype of the factor, by (LL')^-1 X."""
    size, letter, step = _triangle(triangle)
    rows = max(X.strides[1] // X.itemsize, len(X))
    count, step_of_columns, info = (np.array([value], np.intc) for value in (X.shape[1], rows, 0))
    name = _LETTER[triangle.dtype.char].decode() + "potrs"
    _routine(name, 8)(
        letter, size.ctypes.data, count.ctypes.data, triangle.ctypes.data, step.ctypes.data, X.ctypes.data,
        step_of_columns.ctypes.data, info.ctypes.data,
    )  # fmt: skip
