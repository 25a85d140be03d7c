from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

_Real = TypeVar("_Real", np.float32, np.float64)

def barycenter_weights(
    x: NDArray[_Real],
    queries: NDArray[_Real] | None,
    neighbors: NDArray[np.int64],
    reg: float,
    out: NDArray[_Real],
    n_threads: int,
) -> None: ...
def reconstruct(
    x: NDArray[_Real],
    y: NDArray[_Real],
    queries: NDArray[_Real],
    neighbors: NDArray[np.int64],
    reg: float,
    out: NDArray[_Real],
    n_threads: int,
) -> None: ...
def lle_matrix(
    x: NDArray[_Real], neighbors: NDArray[np.int64], reg: float, n_threads: int
) -> int | tuple[NDArray[Any], NDArray[Any], NDArray[np.float64]]: ...
def alignment_matrix(
    x: NDArray[_Real], cliques: NDArray[np.int64], dim: int, gamma: float, n_threads: int
) -> int | tuple[NDArray[Any], NDArray[Any], NDArray[np.float64]]: ...
def hessian_matrix(
    x: NDArray[_Real], cliques: NDArray[np.int64], dim: int, n_threads: int
) -> int | tuple[NDArray[Any], NDArray[Any], NDArray[np.float64]]: ...
def modified_lle_matrix(
    x: NDArray[_Real],
    neighbors: NDArray[np.int64],
    centers: NDArray[np.int64],
    dim: int,
    reg: float,
    tol: float,
    n_threads: int,
) -> int | tuple[NDArray[Any], NDArray[Any], NDArray[np.float64]]: ...
