from manifast._validation import Array

def l1_code(
    x: Array, dictionary: Array, lam: float, tol: float, exclude: Array | None, errors: Array | None, n_threads: int
) -> tuple[Array, Array, Array, Array]: ...
