"""Dense Cholesky factors, solves and inverses, in blocks of our own: the one place where large matrices are factored.

LAPACK's own routines are not used beyond some hundredths of a second: the threaded Cholesky of OpenBLAS 0.3.31 crashes
from about 16,000 rows on, and none of them can be interrupted. Nearly all work on larger matrices is in products of
blocks here, as long in all as LAPACK takes, and Python's signals are seen between them. BLAS stays on one thread, and
products of several parts run side by side in threads of our own: BLAS's threads spin while they wait for each other,
and are five times slower than one as soon as anything else runs. Factors are lower triangles; of symmetric matrices
only the lower triangle is read. Nothing but panels is copied.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from math import ceil
from typing import Any

import numpy as np
import scipy.linalg as la

from manifast._linalg import lapack
from manifast._threads import kernel_threads, one_blas_thread, one_thread
from manifast._validation import Array

_BLOCK = 256  # rows and columns that LAPACK factors at once where there are more than
_WHOLE = 2000  # rows, which take it 0.03 s; in blocks of our own 840 rows take 2.4 times as long, 2000 1.7 times;
# inverses of them 0.1 s, in blocks 1.4 times as long
_FLOPS = 1e9  # of one product: hundredths of a second, ten times that where others use the cores
_LITTLE = 2e7  # operations, below which a second thread is not worth its start
_NUMBERS = 1e6  # written at once: fresh memory takes a thousandth of a second per megabyte on some machines
_PIVOTS = 64  # columns that a pivoted factorisation brings up to date at once


def smallest_jitter(succeeds: Callable[[float], bool], size: float, n: int, what: str) -> float:
    """The smallest jitter with which a factorisation succeeds: 0, or rounding of a matrix (n, n) of that `size`.

    Rounding is n ε size and up to 10^7 times that. Beyond, LinAlgError says that `what` is not positive semidefinite.
    """
    jitter = 0.0
    for jitter in (0.0, *(n * float(np.finfo(float).eps) * size * 10.0**e for e in range(8))):
        if succeeds(jitter):
            return jitter
    raise la.LinAlgError(
        f"{what} must be positive semidefinite. Got one that is not, even with {jitter:.1g} added to its diagonal."
    )


def factor_jittered(matrix: Array, what: str, *, ridge: float = 0.0, size: float | None = None) -> tuple[Array, float]:
    """The Cholesky factor of matrix + (ridge + jitter) I as `factor` leaves it, and the jitter: see `smallest_jitter`.

    `size` is that of the largest diagonal entry unless it is given. The matrix is kept as it is.
    """
    raised = matrix

    def succeeds(jitter: float) -> bool:
        nonlocal raised
        raised = copied(matrix)
        raised.flat[:: len(raised) + 1] += ridge + jitter
        return factor(raised)

    size = float(matrix.diagonal().max(initial=0.0)) if size is None else size
    jitter = smallest_jitter(succeeds, size, len(matrix), what)
    return raised, jitter


def factor(matrix: Array, *, block: int | None = None) -> bool:
    """Overwrite the lower triangle of a symmetric matrix by its Cholesky factor L; False where it is not definite.

    float32 or float64, rows or columns contiguous. The upper triangle is left as it is. Where it fails, what has been
    written is of no use.
    """
    n = len(matrix)
    if _at_once(matrix, block):
        with one_blas_thread():
            return lapack.factor(matrix)
    block = block or _BLOCK
    potrf, trsm = _routines(matrix)
    for begin in range(0, n, block):
        end = min(begin + block, n)
        panel = np.ascontiguousarray(matrix[begin:, begin:end])

        def update(rows: slice, begin: int = begin, end: int = end, panel: Array = panel) -> None:
            done = slice(begin + rows.start, begin + rows.stop)
            panel[rows] -= matrix[done, :begin] @ matrix[begin:end, :begin].T

        _each(n - begin, 2.0 * begin * (end - begin), update)
        with one_blas_thread():  # for so little, threads cost more than they bring, and tenths of seconds on busy cores
            square, failed = potrf(panel[: end - begin], lower=1, clean=1)
        if failed or not np.isfinite(square[-1, -1]):
            return False
        panel[: end - begin] = square + np.triu(matrix[begin:end, begin:end], 1)
        below = panel[end - begin :]

        def eliminate(rows: slice, square: Array = square, below: Array = below) -> None:
            trsm(1.0, square, below[rows].T, lower=1, overwrite_b=1)  # in place: its columns are whole

        _each(n - end, float((end - begin) ** 2), eliminate)
        matrix[begin:, begin:end] = panel
    return True


def copied(matrix: Array) -> Array:
    """A copy in the same order, some rows at a time."""
    out = np.empty_like(matrix)
    source, target = (matrix, out) if out.flags.c_contiguous else (matrix.T, out.T)
    for rows in _parts(len(source), _NUMBERS / max(source.shape[1], 1)):
        target[rows] = source[rows]
    return out


def add(matrix: Array, other: Any) -> None:
    """Add a symmetric matrix, dense or sparse, to a dense one in place, some rows at a time."""
    for rows in _parts(len(matrix), _NUMBERS / max(len(matrix), 1)):
        part = other[rows]
        matrix[rows] += part if isinstance(part, np.ndarray) else part.toarray()


def low_rank(matrix: Array, tolerance: float, most: int) -> Array | None:
    """Z (n, r) with ZZ' = A but for at most `tolerance` per diagonal entry; None where r would be more than `most`.

    Cholesky factorisation of a positive semidefinite matrix with diagonal pivoting. Columns of the `_PIVOTS` rows with
    the largest remaining diagonal entries are brought up to date together, by one product. A row of these is the pivot
    while its entry is at least half of the largest of all rows.
    """
    n = len(matrix)
    factor, rank = np.zeros((n, min(n, 2 * _PIVOTS))), 0
    left = np.array(matrix.diagonal())  # of the diagonal
    while float(left.max(initial=0.0)) > tolerance:
        rows = np.argpartition(-left, min(_PIVOTS, n) - 1)[:_PIVOTS]
        columns = matrix[rows] - product(factor[rows, :rank], factor[:, :rank].T)
        begin = rank
        while True:
            at = int(left[rows].argmax())
            pivot, value = rows[at], float(left[rows[at]])
            if value <= tolerance or value < 0.5 * float(left.max()):
                break
            if rank == most:
                return None
            if rank == factor.shape[1]:
                factor = np.hstack([factor, np.zeros((n, min(n - rank, rank)))])
            column = columns[at] - factor[:, begin:rank] @ factor[pivot, begin:rank]
            column[left == -np.inf] = 0.0  # rows that were pivots before
            column /= np.sqrt(value)
            column[pivot] = np.sqrt(value)
            left -= column**2
            left[pivot] = -np.inf
            factor[:, rank] = column
            rank += 1
    return np.ascontiguousarray(factor[:, :rank])


def solve(triangle: Array, B: Array, *, block: int | None = None) -> Array:
    """(LL')^-1 B for the factor L that `factor` left; B is (n, m)."""
    if _at_once(triangle, block) and np.result_type(triangle, B) == triangle.dtype:
        X = np.array(B, dtype=triangle.dtype, order="F")
        with one_blas_thread():
            _each(X.shape[1], 2.0 * len(X) ** 2, lambda columns: lapack.solve(triangle, X[:, columns]))
        return X
    block = block or _BLOCK
    return solve_triangle(triangle, solve_triangle(triangle, B, block=block), transposed=True, block=block)


def solve_triangle(triangle: Array, B: Array, *, transposed: bool = False, block: int = _BLOCK) -> Array:
    """L^-1 B, or L^-T B."""
    n, m = B.shape
    X = np.array(B, dtype=np.result_type(triangle, B), order="F")
    _, trsm = _routines(triangle)
    starts = range(0, n, block)
    for begin in reversed(starts) if transposed else starts:
        end = min(begin + block, n)

        def substitute(columns: slice, begin: int = begin, end: int = end) -> None:
            if transposed:
                X[begin:end, columns] -= triangle[end:, begin:end].T @ X[end:, columns]
            else:
                X[begin:end, columns] -= triangle[begin:end, :begin] @ X[:begin, columns]
            X[begin:end, columns] = trsm(
                1.0, triangle[begin:end, begin:end], X[begin:end, columns], lower=1, trans_a=int(transposed)
            )

        _each(m, 2.0 * (n - begin if transposed else end) * (end - begin), substitute)
    return X


def invert_triangle(triangle: Array, *, block: int | None = None) -> None:
    """Overwrite L by its inverse, and what is above it by zeros."""
    n = len(triangle)
    if _in_place("trtri", triangle, block):
        for begin in range(0, n, _BLOCK):
            end = min(begin + _BLOCK, n)
            triangle[begin:end, end:] = 0.0
            triangle[begin:end, begin:end] = np.tril(triangle[begin:end, begin:end])
        return
    block = block or _BLOCK
    _, trsm = _routines(triangle)
    for begin in range(0, n, block):
        end = min(begin + block, n)
        square = np.tril(triangle[begin:end, begin:end])
        left = trsm(-1.0, square, triangle[begin:end, :begin], lower=1)

        def columns_of(part: slice, begin: int = begin, end: int = end, left: Array = left) -> None:
            # The inverse so far is a triangle, too: these columns are zero in the rows before the first.
            first = part.start
            triangle[begin:end, part] = left[:, first:] @ triangle[first:begin, part]

        _each(begin, float(begin * (end - begin)), columns_of)
        triangle[begin:end, begin:end] = np.tril(trsm(1.0, square, np.eye(end - begin, dtype=square.dtype), lower=1))
        triangle[begin:end, end:] = 0.0


def inverse(triangle: Array, *, block: int | None = None) -> Array:
    """Overwrite the factor L of a matrix by the inverse (LL')^-1, both triangles, and return it."""
    n = len(triangle)
    done = _in_place("potri", triangle, block)
    block = block or _BLOCK
    if not done:
        invert_triangle(triangle, block=block)
    for begin in range(0, 0 if done else n, block):
        end = min(begin + block, n)
        rows = np.empty((end - begin, end), triangle.dtype)

        def rows_of(columns: slice, begin: int = begin, end: int = end, rows: Array = rows) -> None:
            # The rows that follow need none of the rows before them.
            rows[:, columns] = triangle[begin:, begin:end].T @ triangle[begin:, columns]

        _each(end, 2.0 * (n - begin) * (end - begin), rows_of)
        triangle[begin:end, :end] = rows
    for begin in range(0, n, block):
        end = min(begin + block, n)
        triangle[begin:end, end:] = triangle[end:, begin:end].T
        square = triangle[begin:end, begin:end]
        square[:] = np.tril(square) + np.tril(square, -1).T
    return triangle


def _in_place(routine: str, triangle: Array, block: int | None) -> bool:
    """Let LAPACK overwrite a triangle that is small enough as a whole; False where it is not."""
    if block is not None or len(triangle) > _WHOLE or not triangle.flags.forc:
        return False
    columns_first = triangle.flags.f_contiguous
    call: Any = la.get_lapack_funcs(routine, (triangle,))
    with one_blas_thread():
        failed = call(triangle if columns_first else triangle.T, lower=int(columns_first), overwrite_c=1)[1]
    if failed:
        raise la.LinAlgError("the matrix is singular")
    return True


def _at_once(matrix: Array, block: int | None) -> bool:
    """Whether LAPACK is to take a matrix as a whole."""
    return block is None and len(matrix) <= _WHOLE and lapack.fits(matrix)


def _routines(matrix: Array) -> tuple[Any, Any]:
    return la.get_lapack_funcs("potrf", (matrix,)), la.get_blas_funcs("trsm", (matrix,))


def _parts(count: int, step: float) -> list[slice]:
    """Slices of `count` rows or columns, at most `step` of them each."""
    step = max(1, int(min(count, step)))
    return [slice(begin, min(begin + step, count)) for begin in range(0, count, step)]


def _each(count: int, flops: float, work: Callable[[slice], None]) -> None:
    """Call `work` for slices of `count` rows or columns, on all threads; a row or column takes `flops` operations."""
    with kernel_threads(None) as threads:
        if threads == 1 or count * flops <= _LITTLE:
            for part in _parts(count, _FLOPS / max(flops, 1.0)):
                work(part)
            return
        pieces = threads * ceil(count * flops / (threads * _FLOPS))
        running: list[Future[None]] = []
        with one_blas_thread():
            try:
                running.extend(_pool(threads).submit(work, part) for part in _parts(count, ceil(count / pieces)))
                wait(running)
            finally:  # also after Ctrl-C: nobody writes into the matrix once this is left
                for future in running:
                    future.cancel()
                wait(running)
        for future in running:
            future.result()


def side_by_side(call: Callable[[Any], Any], items: Sequence[Any], flops: float) -> list[Any]:
    """`call` of every item, which takes so many operations, on all threads; calls must not use threads themselves."""
    found: list[Any] = [None] * len(items)

    def some(part: slice) -> None:
        found[part] = map(call, items[part])

    _each(len(items), flops, some)
    return found


def factored(make: Callable[[Any], Array], items: Sequence[Any], n: int) -> list[Array | None]:
    """The factor of the matrix (n, n) that `make` gives for each item, None where it is not definite."""

    def one(item: Any) -> Array | None:
        matrix = make(item)
        return matrix if factor(matrix) else None

    return for_each_matrix(one, items, n, n**3 / 3.0)


def for_each_matrix(call: Callable[[Any], Any], items: Sequence[Any], n: int, flops: float) -> list[Any]:
    """`call` of every item, whose work on matrices (n, n) takes so many operations.

    Side by side, each on one thread, where LAPACK takes such matrices as a whole; else one after the other.
    """
    if n > _WHOLE:
        return [call(item) for item in items]

    def alone(item: Any) -> Any:
        with one_thread():
            return call(item)

    return side_by_side(alone, items, flops)


_pools: dict[int, ThreadPoolExecutor] = {}
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pools.clear)  # a child has none of the threads


def _pool(threads: int) -> ThreadPoolExecutor:
    if threads not in _pools:
        _pools[threads] = ThreadPoolExecutor(threads, thread_name_prefix="manifast")
    return _pools[threads]


def product(left: Array, right: Array) -> Array:
    """left @ right, some rows at a time."""
    if 2.0 * left.shape[0] * right.size <= _LITTLE:
        return np.asarray(left @ right)
    out = np.empty((left.shape[0], right.shape[1]), np.result_type(left, right))

    def rows_of(rows: slice) -> None:
        np.matmul(left[rows], right, out=out[rows])

    _each(left.shape[0], 2.0 * right.size, rows_of)
    return out


def solve_general(matrix: Array, B: Array, *, block: int = _BLOCK) -> Array:
    """A^-1 B for any square matrix A, which is overwritten by its LU factors; rows are exchanged for large pivots.

    Raises LinAlgError where A is singular.
    """
    n = len(matrix)
    getrf: Any = la.get_lapack_funcs("getrf", (matrix,))
    _, trsm = _routines(matrix)
    X = np.array(B, dtype=np.result_type(matrix, B), order="C")
    for begin in range(0, n, block):
        end = min(begin + block, n)
        panel, swaps, failed = getrf(np.asfortranarray(matrix[begin:, begin:end]))
        if failed:
            raise la.LinAlgError("the matrix is singular")
        order = np.arange(begin, n)
        for at, other in enumerate(swaps):
            order[[at, other]] = order[[other, at]]
        moved = np.flatnonzero(order != np.arange(begin, n))
        for part in (matrix[:, :begin], matrix[:, end:], X):
            part[begin + moved] = part[order[moved]]
        matrix[begin:, begin:end] = panel
        for right in (matrix[:, end:], X):

            def eliminate(
                columns: slice, begin: int = begin, end: int = end, panel: Array = panel, right: Array = right
            ) -> None:
                top = trsm(1.0, panel[: end - begin], right[begin:end, columns], lower=1, diag=1)
                right[begin:end, columns] = top
                right[end:, columns] -= panel[end - begin :] @ top

            _each(right.shape[1], 2.0 * (n - begin) * (end - begin), eliminate)
    for begin in reversed(range(0, n, block)):
        end = min(begin + block, n)

        def substitute(columns: slice, begin: int = begin, end: int = end) -> None:
            X[begin:end, columns] -= matrix[begin:end, end:] @ X[end:, columns]
            X[begin:end, columns] = trsm(1.0, matrix[begin:end, begin:end], X[begin:end, columns], lower=0)

        _each(X.shape[1], 2.0 * (n - begin) * (end - begin), substitute)
    return X
