import numpy as np
from numpy.typing import NDArray

from manifast._core.dispatch import Prepared
from manifast._validation import Array

class Tree(Prepared):
    def __init__(self, rows: Array, n_threads: int) -> None: ...
    def knn(self, queries: Array | None, distances: Array, indices: NDArray[np.int64], n_threads: int) -> None: ...
