"""What is a failure: a wrong kind of exception, one that speaks of the inside, numbers that are not finite, a result
that differs from the oracle or from the same call on plain copies of its arguments, arguments that were changed."""

from __future__ import annotations

import traceback
from typing import Any

import numpy as np
import scipy.sparse as sp


class Failure(Exception):
    """A broken promise."""


def check_exception(error: Exception) -> None:
    """Only sentences of this library or of scikit-learn's own checks, or no memory."""
    if isinstance(error, MemoryError):
        return
    if not isinstance(error, ValueError | TypeError):
        raise Failure(f"{type(error).__name__}: {str(error)[:200]}") from error
    where = traceback.extract_tb(error.__traceback__)[-1]
    ours = "/manifast/" in where.filename or where.filename.endswith(".pyx") or "/sklearn/" in where.filename
    if not ours:
        raise Failure(
            f"{type(error).__name__} from {where.filename}:{where.lineno}, not in words of ours: {str(error)[:200]}"
        ) from error


def parts(result: Any) -> list[np.ndarray]:
    """The arrays of a result."""
    if result is None:
        return []
    if sp.issparse(result):
        return [result.data, result.indices, result.indptr]
    if isinstance(result, tuple | list):
        return [part for each in result for part in parts(each)]
    if isinstance(result, dict):
        return [part for each in result.values() for part in parts(each)]
    return [np.asarray(result)]


def check_finite(result: Any) -> None:
    for part in parts(result):
        if part.dtype.kind in "fc" and not np.isfinite(part).all():
            raise Failure(f"a result of shape {part.shape} is not finite")


def check_same(first: Any, second: Any, what: str) -> None:
    """The same bits."""
    for one, other in zip(parts(first), parts(second), strict=True):
        if (
            one.shape != other.shape
            or one.dtype != other.dtype
            or not np.array_equal(one, other, equal_nan=one.dtype.kind in "fcmM")
        ):
            raise Failure(f"other bits {what}: {_difference(one, other)}")


def check_close(result: Any, expected: Any, tolerance: Any, what: str) -> None:
    """|result - expected| <= tolerance, entry by entry, in the widest precision there is; infinite where that is."""
    result, expected = np.asarray(result), np.asarray(expected)
    if result.shape != expected.shape:
        raise Failure(f"{what} has shape {result.shape} instead of {expected.shape}")
    with np.errstate(all="ignore"):
        difference = np.abs(result.astype(np.longdouble) - expected)
        near = (difference <= tolerance) | (np.isinf(result) & (expected >= 0.999 * np.finfo(result.dtype).max))
    if not near.all():
        at = tuple(int(i) for i in np.argwhere(~near)[0])
        raise Failure(f"{what}{list(at)} is {result[at]!r} instead of {expected[at]!r}")


def _difference(one: np.ndarray, other: np.ndarray) -> str:
    if one.shape != other.shape or one.dtype != other.dtype:
        return f"{one.dtype} {one.shape} and {other.dtype} {other.shape}"
    with np.errstate(all="ignore"):
        at = tuple(int(i) for i in np.argwhere(one != other)[0])
    return f"{one[at]!r} and {other[at]!r} at {at}"


def snapshot(arguments: Any) -> list[Any]:
    """Copies of the arrays among the arguments, to see later whether a call wrote to them."""
    held = []
    for value in arguments:
        if isinstance(value, np.ndarray) and value.dtype != object:
            held.append((value, value.copy()))
        elif sp.issparse(value) and hasattr(value, "data") and isinstance(value.data, np.ndarray):
            held.append((value.data, value.data.copy()))
        elif isinstance(value, tuple):
            held.extend(snapshot(value))
    return held


def check_unchanged(held: list[Any]) -> None:
    for value, before in held:
        if value.shape != before.shape or value.tobytes() != before.tobytes():
            raise Failure(f"an argument of shape {value.shape} was changed by the call")
