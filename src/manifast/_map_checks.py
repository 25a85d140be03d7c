"""What the arrays and numbers of a map must be before the core may see them: the checks of maps from files.

A rule has the dimensions of every array, letters that must mean the same size wherever they stand, and a test of every
number of the header. Arrays are finite floats; "int" in front of the dimensions makes them whole numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import isfinite
from sys import float_info
from typing import Any

import numpy as np

from manifast._gram import KERNELS
from manifast._validation import Array, largest_magnitude
from manifast.graphs import METRICS

Sizes = dict[str, int]
_LARGEST = float_info.max  # a whole number may be larger than any float


def _count(value: Any) -> bool:
    return type(value) is int and 1 <= value < 2**62


def _up_to(letter: str, *, none: bool = False) -> Callable[[Any, Sizes], bool]:
    """A count of at most that size; or None."""
    return lambda value, sizes: (none and value is None) or (_count(value) and value <= sizes[letter])


def _number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) <= _LARGEST


def _positive(value: Any, sizes: Sizes) -> bool:
    return _number(value) and value > 0


def _at_least_0(value: Any, sizes: Sizes) -> bool:
    return _number(value) and value >= 0


def _bool(value: Any, sizes: Sizes) -> bool:
    return type(value) is bool


def _metric(value: Any, sizes: Sizes) -> bool:
    return isinstance(value, str) and value in METRICS


def _kernel(value: Any, sizes: Sizes) -> bool:
    return (
        isinstance(value, dict)
        and set(value) == {"name", "sigma", "degree", "coef0"}
        and isinstance(value["name"], str)
        and value["name"] in KERNELS
        and _positive(value["sigma"], sizes)
        and _count(value["degree"])
        and _at_least_0(value["coef0"], sizes)
    )


def _kernel_of_rows(value: Any, sizes: Sizes) -> bool:
    return _kernel(value, sizes) and value["name"] != "precomputed"


@dataclass(frozen=True)
class Rule:
    """Arrays and numbers of a kind of map."""

    arrays: dict[str, str]
    numbers: dict[str, Callable[[Any, Sizes], bool]] = field(default_factory=dict)
    optional: dict[str, str] = field(default_factory=dict)
    sparse: bool = False  # whether rows may be sparse


RULES = {
    "linear": Rule({"coef": "p d", "intercept": "d"}),
    "kernel": Rule({"dual": "n d", "intercept": "d"}, {"kernel": _kernel}, {"rows": "n p"}),
    "two_kernels": Rule(
        {"rows": "n p", "dual": "n d", "intercept": "d", "coef": "p q", "offset": "q", "turned_dual": "n d"},
        {"kernel": _kernel_of_rows, "turned_kernel": _kernel_of_rows},
    ),
    "neighbor_mean": Rule(
        {"images": "n d"},
        {
            "n_neighbors": _up_to("n", none=True),
            "beta": lambda value, sizes: value is None or _positive(value, sizes),
            "others": _bool,
            "metric": _metric,
        },
        {"rows": "n p", "factors": "d", "weights": "n", "roots": "n"},
        sparse=True,
    ),
    "barycenter": Rule(
        {"rows": "n p", "images": "n d"}, {"n_neighbors": _up_to("n"), "reg": _positive, "metric": _metric}
    ),
    "landmark": Rule(
        {"geodesics": "n l", "mean_sq": "l", "projection": "l d"},
        {
            "n_neighbors": _up_to("n", none=True),
            "radius": lambda value, sizes: value in (None, "inf") or _positive(value, sizes),
            "metric": _metric,
        },
        {"rows": "n p"},
        sparse=True,
    ),
    "triangulation": Rule(
        {"landmarks": "int l", "mean_sq": "l", "projection": "l d"}, {"metric": _metric}, {"rows": "l p"}
    ),
    "sparse_code": Rule(
        {"atoms": "n p", "images": "n d"},
        {
            "lam": _at_least_0,
            "errors": _bool,
            "power": _positive,
            "normalize": _bool,
            "top": lambda value, sizes: value is None or _count(value),
            "near": _up_to("n", none=True),
        },
        {"basis": "m p", "axes": "f p"},
    ),
    "affinity_mean": Rule({"images": "p d"}, optional={"factors": "d"}),
    "two_phase_code": Rule(
        {"rows": "n p", "coder": "p n", "codes": "int n"},
        {"ridge": _positive, "kept": _up_to("n"), "count": _up_to("n")},
    ),
}
_ROWS = ("rows", "atoms")  # arrays that are training rows, or made from them row by row


def holds_rows(arrays: Any) -> bool:
    """Whether training rows are among the arrays of a map."""
    return any(name in _ROWS or name.startswith("rows_") for name in arrays)


def check_map(header: Any, arrays: dict[str, Array]) -> tuple[range, int]:
    """How many features a map may take and numbers that it gives; a ValueError where its parts do not fit together."""
    kind = header.get("map") if isinstance(header, dict) else None
    if not isinstance(kind, str) or kind not in RULES:
        raise ValueError(f"a map must be one of {', '.join(map(repr, RULES))}. Got {kind!r} instead.")
    rule = RULES[kind]
    sizes: Sizes = {}
    shapes = dict(rule.arrays)
    if "shape" in header and rule.sparse:
        _check_csr(header["shape"], arrays, sizes)
        arrays = {name: array for name, array in arrays.items() if not name.startswith("rows_")}
        if "rows" in arrays:
            raise ValueError("rows must be dense or sparse. Got both.")
    if not set(shapes) <= set(arrays) <= set(shapes | rule.optional):
        raise ValueError(f"a map of kind {kind!r} must have the arrays {sorted(shapes)}. Got {sorted(arrays)} instead.")
    for name, array in arrays.items():
        _check_array(name, array, (shapes | rule.optional)[name], sizes)
    names = set(rule.numbers) | {"map"} | ({"shape"} if rule.sparse and "shape" in header else set())
    if set(header) != names:
        raise ValueError(f"a map of kind {kind!r} must have the numbers {sorted(names)}. Got {sorted(header)} instead.")
    for name, fits in rule.numbers.items():
        if not fits(header[name], sizes):
            raise ValueError(f"{name} must be what a map of kind {kind!r} can have. Got {header[name]!r} instead.")
    return _ends(kind, header, arrays, sizes)


def _ends(kind: str, header: Any, arrays: dict[str, Array], sizes: Sizes) -> tuple[range, int]:
    """Inputs and outputs, and what binds several parts of one kind."""
    inputs, outputs = sizes.get("p", 0), sizes.get("d", 0)
    if "metric" in header:
        given = header["metric"] == "precomputed"
        if given == ("p" in sizes):
            raise ValueError("a map must have rows, and one of given distances must have none. Got the opposite.")
        inputs = sizes.get("n", 0) if given else inputs
    if kind == "landmark" and (header["n_neighbors"] is None) == (header["radius"] is None):
        raise ValueError("one of n_neighbors and radius must be a number, and the other None. Got two of a kind.")
    if kind == "triangulation":
        least = int(arrays["landmarks"].min()), int(arrays["landmarks"].max()) + 1
        if least[0] < 0:
            raise ValueError(f"landmarks must be numbers of rows. Got {least[0]}.")
        if header["metric"] == "precomputed":  # of distances to all training rows, landmarks or not
            return range(least[1], 2**62), outputs
    if kind == "kernel":
        if (header["kernel"]["name"] == "precomputed") == ("rows" in arrays):
            raise ValueError("a kernel map must have rows, and a precomputed kernel must have none. Got the opposite.")
        inputs = sizes.get("p", sizes["n"])
    if kind == "sparse_code":
        inputs = sizes.get("f", inputs)
        if header["errors"] and "basis" in arrays:
            raise ValueError("a sparse code must have errors in a basis or one by one. Got both.")
    if kind == "neighbor_mean":
        if "shape" in header and header["n_neighbors"] is None:
            raise ValueError("n_neighbors must be a number where rows are sparse. Got None instead.")
        for name in {"weights", "roots"} & set(arrays):
            if not float(arrays[name].min()) > 0:
                raise ValueError(f"{name} must be more than 0. Got {float(arrays[name].min())!r} instead.")
        if "roots" in arrays and header["n_neighbors"] is None:
            raise ValueError("n_neighbors must be a number where every row has its own width. Got None instead.")
    if kind == "two_phase_code":
        if not (arrays["codes"].min() >= 0 and arrays["codes"].max() < header["count"]):
            raise ValueError(f"codes must name classes from 0 to {header['count'] - 1}. Got some outside.")
        outputs = int(header["count"])
    return range(inputs, inputs + 1), outputs


def _check_array(name: str, array: Array, dimensions: str, sizes: Sizes) -> None:
    whole = dimensions.startswith("int ")
    letters = dimensions.removeprefix("int ").split()
    allowed = (np.int64,) if whole else (np.float32, np.float64)
    if array.dtype not in allowed:
        raise ValueError(f"{name} must hold {'int64' if whole else 'float32 or float64'}. Got {array.dtype} instead.")
    if array.ndim != len(letters) or 0 in array.shape:
        raise ValueError(f"{name} must have {len(letters)} dimensions, none of them 0. Got shape {array.shape}.")
    for letter, size in zip(letters, array.shape, strict=True):
        if sizes.setdefault(letter, size) != size:
            raise ValueError(f"{name} must have {sizes[letter]} entries, as other arrays. Got shape {array.shape}.")
    _check_finite(name, array)


def _check_finite(name: str, array: Array) -> None:
    if array.dtype.kind == "f" and not isfinite(largest_magnitude(array)):
        raise ValueError(f"{name} must be finite. Got NaN or infinity.")


def _check_csr(shape: Any, arrays: dict[str, Array], sizes: Sizes) -> None:
    """Rows of a sparse matrix: pointers that ascend from 0 to the number of entries, columns in range."""
    names = [f"rows_{name}" for name in ("data", "indices", "indptr")]
    if not (isinstance(shape, list) and len(shape) == 2 and all(map(_count, shape)) and set(names) <= set(arrays)):
        raise ValueError(f"sparse rows must have a shape, data, indices and indptr. Got shape {shape!r}.")
    data, indices, indptr = (arrays[name] for name in names)
    whole = indices.dtype in (np.int32, np.int64) and indptr.dtype == indices.dtype
    if data.dtype not in (np.float32, np.float64) or not whole or not data.ndim == indices.ndim == indptr.ndim == 1:
        raise ValueError("sparse rows must have floats as data, integers as indices and indptr. Got other arrays.")
    if len(indptr) != shape[0] + 1 or len(data) != len(indices):
        raise ValueError(f"sparse rows must have {shape[0] + 1} pointers, and as many columns as entries. Got others.")
    if indptr[0] != 0 or indptr[-1] != len(data) or (indptr[1:] < indptr[:-1]).any():
        raise ValueError(f"pointers of sparse rows must ascend from 0 to {len(data)}. Got some that do not.")
    if len(indices) and not (indices.min() >= 0 and indices.max() < shape[1]):
        raise ValueError(f"columns of sparse rows must be from 0 to {shape[1] - 1}. Got some outside.")
    _check_finite("rows", data)
    sizes["n"], sizes["p"] = shape
