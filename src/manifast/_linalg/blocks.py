"""Block-diagonal symmetric matrices: one block for every class, in the order of the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from manifast._validation import Array, is_sparse


@dataclass(frozen=True)
class BlockDiagonal:
    """Blocks, dense or sparse, on the rows and columns that `members` lists for each; zero elsewhere."""

    members: list[Array]
    blocks: list[Any]

    @property
    def n(self) -> int:
        return sum(map(len, self.members))

    @property
    def shape(self) -> tuple[int, int]:
        return self.n, self.n

    def __matmul__(self, columns: Array) -> Array:
        out = np.empty(columns.shape)
        for rows, block in zip(self.members, self.blocks, strict=True):
            out[rows] = block @ columns[rows]
        return out

    def sums(self) -> list[Array]:
        """Row sums of every block."""
        return [np.asarray(block.sum(axis=1)).ravel() for block in self.blocks]

    def diagonal(self) -> Array:
        out = np.empty(self.n)
        for rows, block in zip(self.members, self.blocks, strict=True):
            out[rows] = block.diagonal()
        return out

    def laplacian(self) -> BlockDiagonal:
        """D - W of every block, in float64; sparse blocks stay sparse."""
        made: list[Any] = []
        for block, degrees in zip(self.blocks, self.sums(), strict=True):
            if is_sparse(block):
                made.append(sp.csr_array(sp.diags_array(degrees.astype(np.float64)) - block.astype(np.float64)))
            else:
                made.append(np.diag(degrees.astype(np.float64)) - block)
        return BlockDiagonal(self.members, made)

    def raised(self, diagonal: Array) -> BlockDiagonal:
        """The same with a diagonal added."""
        made: list[Any] = []
        for rows, block in zip(self.members, self.blocks, strict=True):
            if is_sparse(block):
                made.append(sp.csr_array(block + sp.diags_array(diagonal[rows])))
            else:
                dense = block.copy()
                dense.flat[:: len(dense) + 1] += diagonal[rows]
                made.append(dense)
        return BlockDiagonal(self.members, made)

    def tocsr(self) -> sp.csr_array:
        order = np.argsort(np.concatenate(self.members))
        return sp.csr_array(sp.csr_array(sp.block_diag([sp.coo_array(b) for b in self.blocks]))[order][:, order])

    def toarray(self) -> Array:
        out = np.zeros(self.shape)
        for rows, block in zip(self.members, self.blocks, strict=True):
            out[np.ix_(rows, rows)] = block.toarray() if is_sparse(block) else block
        return out
