from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

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
