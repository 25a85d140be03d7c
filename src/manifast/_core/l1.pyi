from manifast._core.dispatch import Prepared
from manifast._validation import Array

class Dictionary(Prepared):
    def __init__(self, rows: Array, samples: int, n_threads: int) -> None: ...
    def code(
        self, x: Array, lam: float, tol: float, exclude: Array | None, errors: Array | None, n_threads: int
    ) -> tuple[Array, Array, Array, Array]: ...
