from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

_Real = TypeVar("_Real", np.float32, np.float64)

def shortest_paths(
    starts: NDArray[np.int64],
    columns: NDArray[np.int32],
    lengths: NDArray[np.float64],
    sources: NDArray[np.int64],
    out: NDArray[np.float64],
    n_threads: int,
) -> None: ...
def geodesic_rows(
    distances: NDArray[np.float64],
    neighbors: NDArray[np.int64],
    geodesics: NDArray[_Real],
    out: NDArray[Any],
    n_threads: int,
) -> None: ...
def landmark_map(
    distances: NDArray[np.float64],
    neighbors: NDArray[np.int64],
    geodesics: NDArray[_Real],
    mean_sq: NDArray[np.float64],
    projection: NDArray[np.float64],
    offset: NDArray[np.float64],
    out: NDArray[np.float64],
    n_threads: int,
) -> None: ...
