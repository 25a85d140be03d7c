from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

_Real = TypeVar("_Real", np.float32, np.float64)

def neighbor_ranks(
    y: NDArray[_Real],
    queries: NDArray[_Real] | None,
    neighbors: NDArray[np.int64],
    ranks: NDArray[np.int64],
    n_threads: int,
) -> None: ...
