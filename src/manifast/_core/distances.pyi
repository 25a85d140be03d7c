from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from manifast._core.dispatch import Prepared
from manifast._validation import Array

_Real = TypeVar("_Real", np.float32, np.float64)

def sq_distances(
    x: NDArray[_Real], y: NDArray[_Real] | None, inv_sigma2: float, out: NDArray[_Real], n_threads: int
) -> None: ...

class Columns(Prepared):
    def __init__(self, rows: Array, n_threads: int) -> None: ...
    def sq_distances(self, x: Array, inv_sigma2: float, out: Array, n_threads: int) -> None: ...
