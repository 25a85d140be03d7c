"""One call and the checks that every call gets, and the arithmetic that oracles share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tests.fuzz.arrays import Draw
from tests.fuzz.judge import Failure, check_exception, check_unchanged, snapshot

WIDE = np.longdouble


class Trial:
    """One call: its arguments, whether it returned, and the checks that every call gets."""

    def __init__(self, draw: Draw, name: str) -> None:
        self.draw, self.name = draw, name
        self.returned = False
        self.shown: dict[str, Any] = {}

    def run(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """The result, or None where the call was refused in words."""
        self.shown = {"arguments": arguments, "options": options}
        held = snapshot([*arguments, *(value for name, value in options.items() if name != "out")])
        try:
            result = function(*arguments, **options)
        except Exception as error:
            check_exception(error)
            check_unchanged(held)
            return None
        self.returned = True
        check_unchanged(held)
        if self.draw.must_fail:
            raise Failure("NaN, infinity, masked entries or no numbers were taken without a word")
        return result


def plain(value: Any) -> Any:
    """The numbers of an argument as the library reads them: C-contiguous, aligned, native float32 or float64."""
    array = np.asarray(value)
    narrow = array.dtype.kind == "f" and array.dtype.itemsize <= 4
    return np.array(array, dtype=np.float32 if narrow else np.float64, order="C")


def same_dtype(*arrays: np.ndarray) -> list[np.ndarray]:
    dtype = np.result_type(*arrays)
    return [array.astype(dtype, copy=False) for array in arrays]


def exact_squares(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Squared distances in long doubles, whose range no square leaves."""
    difference = x[:, None, :].astype(WIDE) - y[None, :, :].astype(WIDE)
    return np.square(difference).sum(axis=2)


def tolerance_of(squares: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """What a squared distance may be off.

    p roundings of the squared norms, |x|² + |y|² - 2x·y about the mean, as long as these are at most 1000 times the
    distance (float32: 100 times), which is summed from differences beyond; and what is below the range.
    """
    info = np.finfo(x.dtype)
    both = np.concatenate([x, y]).astype(WIDE)
    extent = np.square(both - both.mean(axis=0)).sum(axis=1).max() if len(both) else WIDE(0)
    norms = np.minimum(4 * extent, (100 if info.bits == 32 else 1000) * squares)
    p = x.shape[1]
    return 8 * (p + 8) * WIDE(info.eps) * (squares + norms) + 4 * p * WIDE(info.tiny)
