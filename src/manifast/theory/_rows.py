"""Rows and labels as the functions of this package take them: checked, and scaled so that squares stay in range."""

from __future__ import annotations

from typing import Any

import numpy as np

from manifast._labels import Labels, read_labels
from manifast._validation import Array, as_columns, as_matrix, largest_magnitude


def labelled_rows(function: str, name: str, rows: Any, y: Any, least_members: int = 1) -> tuple[Array, Labels]:
    """Checked rows, and labels of at least two classes; a vector Y is an embedding of one column."""
    matrix = as_columns(rows, name) if name == "Y" else as_matrix(rows, name)
    return matrix, read_labels(function, y, len(matrix), least_members=least_members)


def in_range(x: Array) -> tuple[Array, int]:
    """Rows whose squared distances stay in the range of their dtype, and the power of two they were divided by.

    A quarter of the exponents leaves room for squares, for their sums and for small differences.
    """
    exponent = int(np.frexp(largest_magnitude(x))[1])
    if abs(exponent) <= np.finfo(x.dtype).maxexp // 4:
        return x, 0
    return np.ldexp(x, -exponent), exponent
