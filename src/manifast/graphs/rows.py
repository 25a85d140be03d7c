"""Rows as the graphs take them: checked, scaled to unit norm or to a range where squares are safe, in chunks."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from manifast._kernels import outlying
from manifast._progress import Progress
from manifast._sparse import checked_sparse
from manifast._validation import Array, as_matrix, is_sparse, largest_magnitude

CHUNK = 1 << 22  # entries of the largest dense block


def as_rows(X: Any, name: str = "X", *, min_rows: int = 1, columns: int | None = None) -> Any:
    """A dense matrix, or a canonical CSR array with finite entries."""
    if not is_sparse(X):
        return as_matrix(X, name, min_rows=min_rows, columns=columns)
    if len(X.shape) != 2 or X.shape[0] < min_rows or X.shape[1] == 0:
        raise ValueError(f"{name} must have at least {min_rows} row(s) and 1 column. Got shape {X.shape} instead.")
    if columns is not None and X.shape[1] != columns:
        raise ValueError(f"{name} must have {columns} columns to match. Got shape {X.shape} instead.")
    return checked_sparse(X, name, finite=True)


def unit_rows(x: Array) -> Array:
    """Rows of unit norm; zero rows stay zero."""
    largest = np.abs(x).max(axis=1, keepdims=True)
    scaled = x / np.where(largest > 0, largest, 1)
    norms = np.sqrt(np.sum(scaled.astype(np.float64) ** 2, axis=1, keepdims=True))
    unit: Array = (scaled / np.where(norms > 0, norms, 1)).astype(x.dtype)
    return unit


def on_sphere(x: Any) -> Any:
    """Rows of unit norm, dense or sparse, with a column more that is 1 for zero rows: orthogonal to all others."""
    if not is_sparse(x):
        rows = unit_rows(x)
        return np.column_stack([rows, ~rows.any(axis=1)]).astype(x.dtype, copy=False)
    at = np.repeat(np.arange(x.shape[0]), np.diff(x.indptr))
    largest = np.zeros(x.shape[0])
    np.maximum.at(largest, at, np.abs(x.data))
    zero = largest == 0
    scaled = x.data / np.where(zero, 1.0, largest)[at]
    norms = np.sqrt(np.bincount(at, scaled * scaled, x.shape[0]))
    values = (scaled / np.where(zero, 1.0, norms)[at]).astype(x.dtype)
    unit: Any = sp.csr_array((values, x.indices, x.indptr), shape=x.shape)
    made: Any = sp.hstack([unit, sp.csr_array(zero[:, None].astype(x.dtype))], format="csr")
    return sp.csr_array(made)


def chunks(n: int, verbose: bool, label: str) -> Iterator[slice]:
    """All rows at once, or, where progress is to be shown, about a hundred slices of them."""
    if not verbose:
        yield slice(0, n)
        return
    step = max(1, -(-n // 100))
    slices = [slice(begin, min(begin + step, n)) for begin in range(0, n, step)]
    try:
        bar = importlib.import_module("tqdm").tqdm
    except ImportError:
        report = Progress(label, n, "rows")
        for rows in slices:
            yield rows
            report(rows.stop)
    else:
        yield from bar(slices, desc=label)


def as_neighbor_count(value: Any, name: str, most: int, of: str) -> int:
    if not isinstance(value, Integral) or isinstance(value, bool) or not 1 <= int(value) <= most:
        raise ValueError(f"{name} must be an integer from 1 to {most} for {of}. Got {value!r} instead.")
    return int(value)


def scale_of(x: Array) -> int:
    """The power of two to divide data by where squares of their entries would leave the range of their dtype."""
    if x.dtype == np.float64:
        return outlying(x)
    largest = float(np.abs(x).max())
    return 0 if largest == 0 or 1e-12 < largest < 1e15 else int(np.frexp(largest)[1])


def in_reach(x: Any, metric: str, weights: str, beta: Any) -> tuple[Any, int]:
    """Rows divided by a power of two where their distances might leave the range of their dtype, and that power.

    Where heat weights take their width from the rows, also where squares of distances might.
    """
    if metric != "euclidean":
        return x, 0
    entries = x.data if is_sparse(x) else x
    exponent = scale_of(entries) if weights == "heat" and isinstance(beta, str) and entries.size else 0
    longest = 2.0 * float(np.sqrt(x.shape[1]))  # of distances, in units of the largest entry
    if not exponent and largest_magnitude(entries) >= float(np.finfo(x.dtype).max) / longest:
        exponent = int(np.frexp(longest)[1])
    if not exponent:
        return x, 0
    scaled = np.ldexp(entries, -exponent)
    return (sp.csr_array((scaled, x.indices, x.indptr), shape=x.shape) if is_sparse(x) else scaled), exponent


def in_units(lengths: Any, exponent: int, dtype: Any = None) -> Any:
    """Distances of such rows, or a graph of them, in their own units; refused where one leaves the range of a dtype."""
    if not exponent and (dtype is None or dtype == lengths.dtype):
        return lengths
    entries = lengths.data if is_sparse(lengths) else lengths
    with np.errstate(over="ignore"):
        entries = np.ldexp(entries, exponent).astype(dtype or entries.dtype)
    if not np.isfinite(entries).all():
        raise ValueError(
            f"X must be rows whose distances are in the range of {entries.dtype} for weights='distance': scale them, "
            "or use 'heat' or 'binary'. Got distances beyond it."
        )
    if not is_sparse(lengths):
        return entries
    lengths.data = entries
    return lengths


def pair_distances(x: Array, i: Array, j: Array) -> Array:
    """Euclidean distances, in double, of pairs of rows."""
    out = np.empty(len(i))
    step = max(1, CHUNK // x.shape[1])
    for begin in range(0, len(i), step):
        part = slice(begin, begin + step)
        difference = x[i[part]].astype(np.float64) - x[j[part]]
        out[part] = np.sqrt(np.einsum("ij,ij->i", difference, difference))
    return out
