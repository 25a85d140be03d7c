"""Rows from where they are: arrays, memory maps, Dask arrays, .npy and Parquet files, iterators, block by block.

A source gives its rows in order and in blocks, whose sizes mean nothing, from any row on.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from manifast._dask import is_dask_array
from manifast._validation import Array, is_sparse, refuse_masked

_BLOCK = 1 << 24  # bytes of a block that the source itself does not divide
_PARQUET = b"PAR1"  # how such a file begins


class Source:
    """Rows one after another. `n` is None where only the end will tell, `names` where columns have none."""

    n: int | None = None
    names: list[str] | None = None
    files: tuple[str, ...] = ()  # where the rows are
    again: bool = True  # whether the rows can be read more than once

    def blocks(self, start: int = 0) -> Iterator[Array]:
        """The rows from one on, in blocks of any size."""
        raise NotImplementedError

    def take(self, numbers: Array) -> Array | None:
        """The rows with these numbers, ascending; None where they can only be read one after another."""
        return None

    def head(self) -> Array:
        """The first block that has rows."""
        for block in self.blocks():
            if len(block):
                return block
        raise ValueError("X must have at least one row. Got none.")


def as_source(X: Any) -> Source:
    """The rows of anything that has some."""
    if isinstance(X, Source):
        return X
    if isinstance(X, str | os.PathLike):
        return _of_path(Path(os.fsdecode(X)))
    if is_dask_array(X):
        return DaskSource(X)
    if is_sparse(X):
        raise ValueError("X must have dense rows. Got a sparse matrix: give blocks of X.toarray().")
    if hasattr(X, "__array__") or isinstance(X, list | tuple):
        refuse_masked(X, "X")
        return ArraySource(X if isinstance(X, np.memmap) else np.asarray(X), _names_of(X))
    if isinstance(X, Iterable):
        return BlockSource(X)
    raise ValueError(
        "X must be an array, a Dask array, the path of a .npy or Parquet file or of a folder of Parquet files, or an "
        f"iterator of blocks of rows. Got {type(X).__name__} instead."
    )


class ArraySource(Source):
    """An array. Rows of a memory map are read from its file: mapped pages would count as memory of the process."""

    def __init__(self, X: Any, names: list[str] | None = None) -> None:
        if X.ndim not in (1, 2):
            raise ValueError(f"X must have rows: one or two dimensions. Got shape {X.shape} instead.")
        self._X, self.n, self.names = X, len(X), names
        self._file = _file_of(X)
        name = _name_of_map(X)
        self.files = () if name is None else (name,)

    def blocks(self, start: int = 0) -> Iterator[Array]:
        step = max(1, _BLOCK // max(1, self._X[:1].nbytes))
        for begin in range(start, len(self._X), step):
            end = min(begin + step, len(self._X))
            yield np.asarray(self._X[begin:end]) if self._file is None else self._read([(begin, end)])

    def take(self, numbers: Array) -> Array:
        if self._file is None:
            return np.array(self._X[numbers])
        return self._read([(row, row + 1) for row in numbers.tolist()])

    def _read(self, parts: list[tuple[int, int]]) -> Array:
        """Rows from the file, (first, behind the last) of every part."""
        assert self._file is not None
        name, offset = self._file
        row = self._X[:1].nbytes
        out = np.empty((sum(end - begin for begin, end in parts), *self._X.shape[1:]), self._X.dtype)
        view = memoryview(out.reshape(-1).view(np.uint8))  # type: ignore[arg-type]
        with open(name, "rb", buffering=0) as file:
            for begin, end in parts:
                file.seek(offset + begin * row)
                missing = (end - begin) * row
                while missing:
                    count = file.readinto(view[:missing]) or 0
                    if not count:
                        raise ValueError(f"X must be a whole memory map. Got {name!r}, which ends before its last row.")
                    view, missing = view[count:], missing - count
        return out


def _file_of(X: Any) -> tuple[str, int] | None:
    """The file and the offset of a contiguous memory map, or of a part of one; None for other arrays."""
    if not isinstance(X, np.memmap) or not X.flags.c_contiguous or not X.size or X.dtype.hasobject:
        return None
    root = _root_of(X)
    if root.filename is None or root.mode == "c":  # writes to a private copy are in no file
        return None
    return os.fspath(root.filename), int(root.offset + X.ctypes.data - root.ctypes.data)


def _root_of(X: Any) -> Any:
    """The memory map that an array is a part of; the array itself where it is of none."""
    while isinstance(getattr(X, "base", None), np.memmap):
        X = X.base
    return X


def _name_of_map(X: Any) -> str | None:
    """The file whose bytes an array shows, in whatever order."""
    name = getattr(_root_of(X), "filename", None)
    return None if name is None else os.fspath(name)


def _names_of(X: Any) -> list[str] | None:
    """Names of the columns of a data frame, where all are texts."""
    columns = getattr(X, "columns", None)
    names = [] if columns is None else list(columns)
    return names if names and all(isinstance(name, str) for name in names) else None


class DaskSource(Source):
    """A Dask array, computed block by block."""

    def __init__(self, X: Any) -> None:
        if X.ndim not in (1, 2):
            raise ValueError(f"X must have rows: one or two dimensions. Got a Dask array of shape {X.shape} instead.")
        self._X = X.rechunk({1: -1}) if X.ndim == 2 else X
        self.n = None if np.isnan(X.shape[0]) else int(X.shape[0])

    def blocks(self, start: int = 0) -> Iterator[Array]:
        skip = start
        for number, size in enumerate(self._X.chunks[0]):
            if skip >= size:  # never where it is not known
                skip -= int(size)
                continue
            block = np.asarray(self._X.blocks[number].compute())
            yield block[skip:]
            skip = max(0, skip - len(block))

    def take(self, numbers: Array) -> Array | None:
        return None if self.n is None else np.asarray(self._X[numbers].compute())


class ParquetSource(Source):
    """Parquet files, one after another in the order of their names: all columns, which must hold numbers."""

    def __init__(self, files: list[Path]) -> None:
        for file in files:
            _check_parquet(file)
        try:
            import pyarrow.parquet as parquet
        except ImportError:
            raise ImportError("Parquet files need the package pyarrow: pip install pyarrow") from None
        self._open, self._files = parquet.ParquetFile, files
        self.files = tuple(map(str, files))
        self.names, self.n = self._look(files[0])[0], 0
        for file in files:
            names, rows = self._look(file)
            if names != self.names:
                raise ValueError(
                    f"X must have the same columns in all files. Got {self.names} in {str(files[0])!r} and {names} in "
                    f"{str(file)!r}."
                )
            self.n += rows

    def _look(self, file: Path) -> tuple[list[str], int]:
        """Names of the columns and number of rows."""
        with self._open(file) as opened:
            return list(opened.schema_arrow.names), int(opened.metadata.num_rows)

    def blocks(self, start: int = 0) -> Iterator[Array]:
        skip = start
        for file in self._files:
            count = self._look(file)[1]
            if skip >= count:
                skip -= count
                continue
            with self._open(file) as opened:
                for batch in opened.iter_batches():
                    yield _matrix(batch)[skip:]
                    skip = max(0, skip - batch.num_rows)


def _matrix(batch: Any) -> Array:
    """Columns of numbers side by side; a column of lists of one length is a matrix of its own."""
    parts = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        values = column
        if hasattr(values, "flatten") and str(values.type).startswith(("list", "fixed_size_list", "large_list")):
            flat = values.flatten().to_numpy(zero_copy_only=False)
            width, left = divmod(len(flat), len(values)) if len(values) else (0, 0)
            if left or values.null_count:
                raise ValueError(f"X must have lists of one length in column {name!r}. Got several lengths.")
            parts.append(flat.reshape(len(values), width))
        else:
            parts.append(values.to_numpy(zero_copy_only=False)[:, None])
        if parts[-1].dtype.kind not in "fiub":
            raise ValueError(f"X must hold numbers in all columns. Got {values.type} in column {name!r}.")
    return np.ascontiguousarray(np.concatenate(parts, axis=1))


class BlockSource(Source):
    """An iterator of blocks of rows; it can be read once."""

    again = False

    def __init__(self, blocks: Iterable[Any]) -> None:
        self._blocks = map(self._copied, blocks)
        self._first: Array | None = None  # what was read to look at it
        self._like: tuple[Any, ...] | None = None  # the width and the names of columns of all blocks

    def head(self) -> Array:
        while self._first is None or not len(self._first):
            self._first = next(self._blocks, None)
            if self._first is None:
                raise ValueError("X must have at least one row. Got none.")
        return self._first

    def blocks(self, start: int = 0) -> Iterator[Array]:
        skip = start
        for rows in chain([] if self._first is None else [self._first], self._blocks):
            if skip < len(rows):
                yield rows[skip:]
            skip = max(0, skip - len(rows))

    def _copied(self, block: Any) -> Array:
        """The rows of a block, which its maker may overwrite when it is asked for the next."""
        refuse_masked(block, "X")
        rows = np.array(block)
        if rows.ndim not in (1, 2):
            raise ValueError(f"X must give blocks of one or two dimensions. Got shape {rows.shape} instead.")
        if self._like is None:
            self.names = _names_of(block)
            self._like = rows.shape[1:], self.names
        if (like := (rows.shape[1:], _names_of(block))) != self._like:
            raise ValueError(f"X must give blocks of one width and of the same columns. Got {self._like}, then {like}.")
        return rows


def _check_parquet(file: Path) -> None:
    """By the first bytes, whatever the name."""
    with open(file, "rb") as raw:
        if raw.read(len(_PARQUET)) != _PARQUET:
            raise ValueError(
                f"X must be a .npy or Parquet file, or a folder of *.parquet. Got {str(file)!r}, which is neither: "
                "give an iterator of blocks, such as pandas.read_csv(path, chunksize=100_000) of a CSV file."
            )


def _of_path(path: Path) -> Source:
    if path.suffix == ".npy":
        return ArraySource(np.load(path, mmap_mode="r", allow_pickle=False))
    if not path.exists():
        raise ValueError(f"X must be a .npy or Parquet file, or a folder of *.parquet. There is no {str(path)!r}.")
    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    if not files:
        raise ValueError(f"X must be a .npy or Parquet file, or a folder of *.parquet. Got {str(path)!r}.")
    return ParquetSource(files)
