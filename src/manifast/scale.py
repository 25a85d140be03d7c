"""Rows past memory and past one machine: a sample to fit to, maps from file to file, and models for other engines.

The way of a large set of rows: `sample_rows`, `fit` to the sample, `manifast.save`; then `transform_to` on one machine,
`transform` of a Dask array on many, or a `Mapper` in any other engine. A Dask data frame goes by its array:

    frame = dask.dataframe.read_parquet("rows/")
    model.transform(frame.to_dask_array())                      # lazy; row chunks may be unknown

A `Mapper` opens the saved model on first use, in every process of an engine once:

    mapper = Mapper("model.manifast")
    joblib.Parallel(n_jobs=8)(joblib.delayed(mapper)(block) for block in blocks)
    polars.DataFrame(mapper(frame.to_numpy()), schema=["y0", "y1"])
    lazy_frame.map_batches(lambda frame: polars.DataFrame(mapper(frame.to_numpy()), schema=["y0", "y1"]))
    dataset.map_batches(lambda batch: {"y": mapper(batch["x"])})                                                # Ray
    spark_frame.mapInPandas(lambda frames: (pandas.DataFrame(mapper(f), columns=["y0", "y1"]) for f in frames),
                            schema="y0 double, y1 double")                                                      # Spark
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

import numpy as np

from manifast._model_file import replacing
from manifast._progress import Progress, log, stages, verbosity
from manifast._sources import Source, as_source
from manifast._threads import one_thread
from manifast._validation import Array, as_count
from manifast.persistence import load, model_digest

__all__ = ["Mapper", "sample_rows", "transform_to"]

_HASHED = 1 << 20  # row numbers that are hashed at once
_BATCH_BYTES = 1 << 24  # of rows and of images that are held at once, about
_SYNC_BYTES = 1 << 26  # of images between two entries of the journal
_HEADER = 128  # bytes of the header of a .npy file, with room for any number of rows


def sample_rows(X: Any, n_rows: int, *, random_state: int = 0) -> Array:
    """A uniform sample of rows without replacement, in their order, in one pass and in memory of its own size.

    Which rows are drawn depends on their numbers, how many there are, and the seed, not on where they are or how they
    are divided: every row number has a hash, and those with the smallest are drawn. Labels drawn by the same call are
    those of the same rows.

    Parameters
    ----------
    X : array, memory map, Dask array, path, or iterator of blocks
        The path of a .npy file, of a Parquet file, or of a folder of Parquet files in the order of their names. One
        dimension is labels. An iterator is read to its end.
    n_rows : int
        At most as many as there are.
    random_state : int, default 0
        The seed, at least 0.

    Returns
    -------
    array of shape (n_rows, p), or (n_rows,)

    Examples
    --------
    >>> import numpy as np
    >>> from manifast.scale import sample_rows
    >>> X = np.arange(20.0).reshape(10, 2)
    >>> sample_rows(X, 3)
    array([[ 6.,  7.],
           [12., 13.],
           [16., 17.]])
    >>> np.array_equal(sample_rows(iter([X[:4], X[4:]]), 3), sample_rows(X, 3))
    True
    """
    count = as_count(n_rows, "n_rows")
    seed = as_count(random_state, "random_state", minimum=0)
    source = as_source(X)
    if source.n is not None:
        _check_enough(source.n, count)
        chosen = _Smallest(count, seed)
        for begin in range(0, source.n, _HASHED):
            chosen.add(min(_HASHED, source.n - begin))
        rows = source.take(chosen.numbers())
        if rows is not None:
            return rows
    kept = _Smallest(count, seed)
    for block in source.blocks():
        kept.add(len(block), block)
    _check_enough(kept.seen, count)
    return kept.rows()


def _check_enough(n: int, count: int) -> None:
    if count > n:
        raise ValueError(f"n_rows must be at most the number of rows, {n}. Got {count} instead.")


def row_hashes(first: int, count: int, seed: int) -> Array:
    """64-bit hashes of row numbers (splitmix64 of a counter that begins where the seed says)."""
    with np.errstate(over="ignore"):
        state = _mixed(np.full(1, seed % 2**64, np.uint64) + _GOLDEN)
        return _mixed(state + np.arange(first, first + count, dtype=np.uint64) * _GOLDEN)


_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def _mixed(z: Array) -> Array:
    """The finaliser of splitmix64 (Steele, Lea and Flood 2014)."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


class _Smallest:
    """The rows with the smallest hashes so far; equal hashes by row number."""

    def __init__(self, count: int, seed: int) -> None:
        self._count, self._seed, self.seen = count, seed, 0
        self._hashes, self._numbers = np.empty(0, np.uint64), np.empty(0, np.int64)
        self._rows: Array | None = None

    def add(self, count: int, rows: Array | None = None) -> None:
        """The next so many rows, with the rows themselves where they cannot be asked for later."""
        hashes = row_hashes(self.seen, count, self._seed)
        full = len(self._hashes) == self._count
        new = np.flatnonzero(hashes < self._hashes.max()) if full else np.arange(count)
        first, self.seen = self.seen, self.seen + count
        if not len(new) and self._rows is not None:
            return
        all_hashes = np.concatenate([self._hashes, hashes[new]])
        all_numbers = np.concatenate([self._numbers, first + new])
        kept = np.sort(np.lexsort((all_numbers, all_hashes))[: self._count])
        if rows is not None:
            if self._rows is None:
                self._rows = rows[:0]
            if rows.shape[1:] != self._rows.shape[1:]:
                raise ValueError(f"X must give blocks of one width. Got {self._rows.shape[1:]}, then {rows.shape[1:]}.")
            self._rows = np.concatenate([self._rows, rows[new]])[kept]
        self._hashes, self._numbers = all_hashes[kept], all_numbers[kept]

    def numbers(self) -> Array:
        return self._numbers

    def rows(self) -> Array:
        assert self._rows is not None
        return self._rows


def transform_to(model: Any, X: Any, path: Any, *, batch_rows: int | None = None, verbose: bool = False) -> None:
    """Map all rows of X into a .npy file, in bounded memory; a run that was stopped goes on where it was.

    Parameters
    ----------
    model : fitted embedding, classifier or extension of this library, or the path of a saved one
        Embeddings write `transform`, extensions and classifiers `predict`.
    X : array, memory map, Dask array, path, or iterator of blocks
        As in `sample_rows`. An iterator is read from its beginning when a run goes on.
    path : path of the .npy file
        It is written in place. Beside it, `path` + ".journal" says how many rows are on disk, until all are. Started
        again with the same model and rows, a run goes on from there and ends with the same bytes; with others it begins
        anew.
    batch_rows : int or None, default None
        Rows that are mapped at once; None is as many as fill about 16 MB. Results do not depend on it.
    verbose : bool, default False
        Show progress.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from manifast import LPP
    >>> from manifast.scale import transform_to
    >>> X = np.random.default_rng(0).standard_normal((500, 4))
    >>> model = LPP().fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "images.npy")
    ...     transform_to(model, X, path, batch_rows=100)
    ...     np.array_equal(np.load(path), model.transform(X))
    True
    """
    if isinstance(model, str | os.PathLike):
        model = load(model)
    place = Path(os.fsdecode(path))
    step = None if batch_rows is None else as_count(batch_rows, "batch_rows")
    digest = model_digest(model)
    source = as_source(X)
    with verbosity(verbose, "transform_to"):
        _Run(model, digest, source, place, step).finish()


class _Run:
    """One run of `transform_to`: what goes where, and how far it is."""

    def __init__(self, model: Any, digest: str, source: Source, path: Path, step: int | None) -> None:
        self._call = model.transform if hasattr(model, "transform") else model.predict
        self._width = int(model.n_features_in_)
        self._source, self._path, self._journal = source, path, path.with_name(path.name + ".journal")
        first = next((block for block in source.blocks() if len(block)), None) if source.n != 0 else None
        if first is None:
            raise ValueError("X must have at least one row. Got none.")
        if isinstance(first, np.ndarray) and (first.ndim != 2 or first.shape[1] != self._width):
            raise ValueError(f"X must have {self._width} features, as the model has. Got blocks of shape {first.shape}.")
        one = self._images(first[:1])
        self._dtype, self._shape = one.dtype, one.shape[1:]
        if self._dtype.hasobject:
            raise ValueError(f"model must have classes of a fixed size for a .npy file. Got labels of {self._dtype}.")
        self._step = step or max(1, _BATCH_BYTES // max(first[:1].nbytes, one.nbytes))
        head = first[:1000]
        self._entry = {
            "model": digest,
            "rows": source.n,
            "dtype": str(head.dtype),
            "first_rows": sha256(np.ascontiguousarray(head[: min(len(head), 16)]).tobytes()).hexdigest(),
            "output": [str(self._dtype), list(self._shape)],
        }
