"""Rows that many calls work against, in the form that kernels read: packed on first use, and kept.

A fitted map holds its training rows in one of these. What is packed is never pickled or copied: it is made again on
first use, also where another instruction set is chosen. It takes about as much memory as the rows: for distances to all
rows as much, for sums of Gaussians the size of rows and coefficients, for nearest rows half of it (float64) or as much
(float32), for a kd-tree 1.25 times as much and 5 bytes per row, for a dictionary 1.5 times (float64) or 3 times
(float32). New rows of a wider dtype than the training rows have a second one, with a copy of the rows. Rows in a
read-only memory map are not packed: they may be larger than memory.

Several threads may use one at once, without a lock: where two make it at the same time, one of the two stays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from manifast._core.dispatch import Prepared
from manifast._core.distances import Columns
from manifast._core.kdtree import Tree
from manifast._core.knn import Points
from manifast._core.l1 import Dictionary
from manifast._core.rbf import Centers
from manifast._kernels import (
    by_brute_force,
    by_tree,
    distances_between,
    in_range,
    l1_codes,
    rbf_product,
    scaled_search,
    search,
    search_exponent,
    team,
    tree_pays,
)
from manifast._threads import kernel_threads
from manifast._validation import Array, contiguous, read_only_map

_Handle = TypeVar("_Handle", bound=Prepared)
_FLOAT64 = np.dtype(np.float64)


class Operand:
    """Arrays of float32 or float64, and what was made of them."""

    def __init__(self, *arrays: Array) -> None:
        self._arrays = tuple(contiguous(array) for array in arrays)
        self._kept = not read_only_map(arrays[0])
        self._made: dict[tuple[type[Prepared], Any], tuple[Any, Any]] = {}

    def __getstate__(self) -> Any:
        return self._arrays

    def __setstate__(self, arrays: Any) -> None:
        Operand.__init__(self, *arrays)

    @property
    def nbytes(self) -> int:
        """Bytes of what is packed now, and of copies of the arrays in another dtype."""
        copies = {id(array): array.nbytes for arrays, _ in self._made.values() for array in arrays}
        own = {id(array) for array in self._arrays}
        packed = sum(handle.nbytes for _, handle in self._made.values())
        return int(packed + sum(size for key, size in copies.items() if key not in own))

    def _in(self, dtype: Any) -> tuple[Array, ...]:
        """The arrays in a dtype, themselves where they have it."""
        return tuple(array if array.dtype == dtype else array.astype(dtype) for array in self._arrays)

    def _widest(self, dtype: Any) -> Any:
        for array in self._arrays:
            if array.dtype != dtype:
                return _FLOAT64
        return dtype

    def _handle(
        self, kind: type[_Handle], dtype: Any, make: Callable[..., _Handle]
    ) -> tuple[tuple[Array, ...], _Handle]:
        """The arrays in a dtype and what `make` makes of them, made once for the instruction set in use."""
        found = self._made.get((kind, dtype))
        if found is None or not found[1].current:
            arrays = self._in(dtype) if found is None else found[0]
            found = arrays, make(*arrays)
            self._made[kind, dtype] = found
        return found


class PreparedRows(Operand):
    """Rows that others are compared with: the nearest of them, and distances to all."""

    def __init__(self, rows: Array) -> None:
        super().__init__(rows)

    @property
    def rows(self) -> Array:
        return self._arrays[0]

    def nearest(self, queries: Array, k: int) -> tuple[Array, Array]:
        """Distances and indices of the k nearest rows, as `kernels.knn` finds them, in the wider dtype."""
        dtype = self._widest(queries.dtype)
        if queries.dtype != dtype:
            queries = queries.astype(dtype)
        if not self._kept:
            return search(self._in(dtype)[0], queries, k)
        if "_plan" not in self.__dict__:
            self._plan = tree_pays(self.rows), search_exponent(self.rows)
        tree, exponent = self._plan
        kind: Any = Tree if tree else Points
        with kernel_threads(team(None, self.rows.size)) as threads:
            (rows,), handle = self._handle(kind, dtype, lambda rows: kind(rows, threads))
        plain = by_tree if tree else by_brute_force

        def find(x: Array, q: Array, distances: Array, indices: Array, threads: int) -> None:
            if x is rows:
                handle.knn(q, distances, indices, threads)
            else:  # at another scale
                plain(x, q, distances, indices, threads)

        return scaled_search(find, rows, queries, k, exponent, None)

    def sq_distances(self, X: Array) -> Array:
        """Squared distances of other rows to all of these, in the wider dtype."""
        dtype = self._widest(X.dtype)
        if X.dtype != dtype:
            X = X.astype(dtype)
        if not self._kept:
            return distances_between(X, self._in(dtype)[0], 1.0, False)
        with kernel_threads(team(None, X.shape[0] * self.rows.size)) as threads:
            _, handle = self._handle(Columns, dtype, lambda rows: Columns(rows, threads))
            out = np.empty((X.shape[0], self.rows.shape[0]), dtype)
            handle.sq_distances(X, 0.0, out, threads)
        return out


class PreparedCenters(Operand):
    """Centers (m, p) of Gaussians, with coefficients (m, d)."""

    def __init__(self, centers: Array, coef: Array) -> None:
        super().__init__(centers, coef)

    def product(self, X: Array, sigma: float) -> Array:
        """Σ_i exp(-|x - c_i|²/sigma²) coef_i, in the widest dtype of the three."""
        dtype = self._widest(X.dtype)
        centers, coef = self._arrays
        if not (self._kept and in_range(sigma, dtype) and coef.size):
            return rbf_product(X, centers, coef, sigma)
        if X.dtype != dtype:
            X = X.astype(dtype)
        work = X.shape[0] * centers.shape[0] * (centers.shape[1] + coef.shape[1])
        with kernel_threads(team(None, work)) as threads:
            _, handle = self._handle(Centers, dtype, lambda centers, coef: Centers(centers, coef, threads))
            out = np.empty((X.shape[0], coef.shape[1]), dtype)
            handle.rbf_apply(X, 1.0 / (sigma * sigma), out, threads)
        return out


class PreparedAtoms(Operand):
    """A dictionary (atoms, p) for sparse codes."""

    def __init__(self, atoms: Array) -> None:
        super().__init__(atoms)

    def codes(self, X: Array, *, errors: bool, lam: float) -> sp.csr_array:
        """Sparse codes of rows, as `kernels.l1_code` gives them."""
        dtype = self._widest(X.dtype)
        if X.dtype != dtype:
            X = X.astype(dtype)
        if not self._kept:
            return l1_codes(X, self._in(dtype)[0], errors=errors, lam=lam)[0]
        with kernel_threads(None) as threads:
            (atoms,), made = self._handle(Dictionary, dtype, lambda atoms: Dictionary(atoms, _MANY, threads))
        return l1_codes(X, atoms, errors=errors, lam=lam, dictionary=made)[0]


_MANY = 1 << 30  # samples: everything that speeds up coding is worth its time
