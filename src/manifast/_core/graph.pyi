from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

_Real = TypeVar("_Real", np.float32, np.float64)

def neighbor_graph(
    distances: NDArray[_Real],
    neighbors: NDArray[np.int64],
    mutual: bool,
    weights: int,
    beta: float,
    wide: bool,
    n_threads: int,
) -> int | tuple[NDArray[Any], NDArray[Any], NDArray[_Real]]: ...
def laplacian(
    indptr: NDArray[Any],
    columns: NDArray[Any],
    weights: NDArray[_Real],
    normalization: int,
    ignore: int,
    n_threads: int,
) -> int | tuple[NDArray[Any], NDArray[Any], NDArray[_Real], NDArray[np.float64]]: ...
