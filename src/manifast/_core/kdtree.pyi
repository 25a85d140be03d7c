from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

_Real = TypeVar("_Real", np.float32, np.float64)

def kdtree_knn(
    x: NDArray[_Real],
    queries: NDArray[_Real] | None,
    distances: NDArray[_Real],
    indices: NDArray[np.int64],
    n_threads: int,
) -> None: ...
