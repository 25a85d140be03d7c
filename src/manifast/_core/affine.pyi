from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

_Real = TypeVar("_Real", np.float32, np.float64)

def affine(
    x: NDArray[_Real], w: NDArray[_Real], b: NDArray[_Real] | None, out: NDArray[_Real], n_threads: int
) -> None: ...
