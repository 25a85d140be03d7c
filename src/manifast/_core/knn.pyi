from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from manifast._core.dispatch import Prepared
from manifast._validation import Array

_Real = TypeVar("_Real", np.float32, np.float64)

def knn(
    y: NDArray[_Real],
    queries: NDArray[_Real] | None,
    distances: NDArray[_Real],
    indices: NDArray[np.int64],
    n_threads: int,
) -> None: ...

class Points(Prepared):
    def __init__(self, rows: Array, n_threads: int) -> None: ...
    def knn(self, queries: Array, distances: Array, indices: NDArray[np.int64], n_threads: int) -> None: ...
