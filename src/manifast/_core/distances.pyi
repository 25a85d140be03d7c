from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

_Real = TypeVar("_Real", np.float32, np.float64)

def sq_distances(
    x: NDArray[_Real], y: NDArray[_Real] | None, inv_sigma2: float, out: NDArray[_Real], n_threads: int
) -> None: ...
