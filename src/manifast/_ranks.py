"""Which place neighbours of one space take in the order of another: exact ranks, without a matrix of all pairs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from manifast._core import ranks as _core
from manifast._kernels import LITTLE_WORK, outlying, search
from manifast._threads import kernel_threads
from manifast._validation import Array, contiguous, largest_magnitude


class RowSpace:
    """Rows, and new rows seen from which they are ordered by Euclidean distance; without new rows, from each other.

    Equal distances come in the order of the indices, as in `manifast.kernels.knn`; distances are taken in double.
    """

    def __init__(self, rows: Array, new: Array | None, n_threads: int | None) -> None:
        self._rows, self._new, self._threads = rows, new, n_threads

    def neighbors(self, k: int) -> Array:
        """The k nearest rows of each new row, or the k nearest others of each row."""
        return search(self._rows, self._new, k, n_threads=self._threads)[1]

    def ranks(self, neighbors: Array) -> Array:
        """The places, from 1 on, that the rows `neighbors` (m, k) take in the order seen from each of m rows."""
        rows, new = self._rows, self._new
        widest = max((rows, rows if new is None else new), key=largest_magnitude)
        exponent = outlying(widest) if rows.dtype == np.float64 else 0
        if exponent:
            with np.errstate(under="ignore"):
                rows, new = np.ldexp(rows, -exponent), None if new is None else np.ldexp(new, -exponent)
        made = np.empty(neighbors.shape, dtype=np.int64)
        little = self._threads is None and len(neighbors) * rows.size < LITTLE_WORK
        with kernel_threads(1 if little else self._threads) as threads:
            _core.neighbor_ranks(rows, new, contiguous(neighbors, np.int64), made, threads)
        return made


class GivenDistances:
    """The same for a matrix of distances: between the rows, or from new rows (matrix rows) to the rows."""

    def __init__(self, distances: Array, new: bool) -> None:
        self._distances, self._new = distances, new

    def neighbors(self, k: int) -> Array:
        return np.concatenate([order[:, :k] for _, order in self._orders()])

    def ranks(self, neighbors: Array) -> Array:
        made = np.empty(neighbors.shape, dtype=np.int64)
        for begin, order in self._orders():
            places = np.empty_like(order)
            np.put_along_axis(places, order, np.arange(1, order.shape[1] + 1)[None], axis=1)
            block = slice(begin, begin + len(order))
            made[block] = np.take_along_axis(places, neighbors[block], axis=1)
        return made

    def _orders(self) -> Iterator[tuple[int, Array]]:
        """Blocks of rows: their first, and the columns in ascending order, the row itself last."""
        step = max(1, 2**22 // self._distances.shape[1])
        for begin in range(0, len(self._distances), step):
            block = self._distances[begin : begin + step]
            if not self._new:
                block = block.copy()
                at = np.arange(len(block))
                block[at, begin + at] = np.inf
            yield begin, np.argsort(block, axis=1, kind="stable")
