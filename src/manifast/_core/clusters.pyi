from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

_Real = TypeVar("_Real", np.float32, np.float64)

def cluster_candidates(
    x: NDArray[_Real],
    starts: NDArray[np.int64],
    known: NDArray[np.int64],
    members: NDArray[np.int32],
    keys: NDArray[np.float64],
    candidates: NDArray[np.int32],
    n_threads: int,
) -> None: ...
def rank_candidates(
    x: NDArray[_Real],
    order: NDArray[np.int32],
    places: NDArray[np.int64],
    candidates: NDArray[np.int32],
    keys: NDArray[np.float64],
    near: NDArray[np.int32],
    n_threads: int,
) -> None: ...
def join_neighbors(
    x: NDArray[_Real],
    order: NDArray[np.int32],
    clusters: NDArray[np.int32],
    keys: NDArray[np.float64],
    near: NDArray[np.int32],
    new_keys: NDArray[np.float64],
    new_near: NDArray[np.int32],
    n_threads: int,
) -> None: ...
