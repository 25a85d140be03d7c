from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from manifast._core.dispatch import Prepared
from manifast._validation import Array

_Real = TypeVar("_Real", np.float32, np.float64)

def rbf_apply(
    x: NDArray[_Real],
    centers: NDArray[_Real],
    coef: NDArray[_Real],
    inv_sigma2: float,
    out: NDArray[_Real],
    n_threads: int,
) -> None: ...
def heat_mean(
    distances: NDArray[np.float64],
    neighbors: NDArray[np.int64] | None,
    y: NDArray[_Real],
    beta: float,
    others: bool,
    out: NDArray[np.float64],
    n_threads: int,
) -> None: ...

class Centers(Prepared):
    def __init__(self, rows: Array, coef: Array, n_threads: int) -> None: ...
    def rbf_apply(self, x: Array, inv_sigma2: float, out: Array, n_threads: int) -> None: ...
