import numpy as np
from numpy.typing import NDArray

class Cholesky:
    n: int
    entries: int
    flops: float
    feasible: bool
    symmetric: bool
    factored: bool
    def __init__(
        self, indptr: NDArray[np.int64], columns: NDArray[np.int32], max_flops: float, n_threads: int
    ) -> None: ...
    def factor(
        self, values: NDArray[np.float64], shift: float, shifts: NDArray[np.float64] | None, n_threads: int
    ) -> int: ...
    def solve(self, rhs: NDArray[np.float64], n_threads: int) -> NDArray[np.float64]: ...
