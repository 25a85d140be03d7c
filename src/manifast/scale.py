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
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from copy import copy
from hashlib import sha256
from itertools import chain
from numbers import Integral
from pathlib import Path
from typing import IO, Any

import numpy as np

from manifast._dask import image_of_no_rows
from manifast._model_file import as_path, bytes_of, replacing
from manifast._progress import Progress, log, stages, verbosity
from manifast._sources import Source, as_source
from manifast._threads import one_thread
from manifast._validation import Array, as_count
from manifast.persistence import load, model_digest

__all__ = ["Mapper", "sample_rows", "transform_to"]

_HASHED = 1 << 20  # row numbers that are hashed at once
_BATCH_BYTES = 1 << 24  # of rows and of images that are held at once, about
_SYNC_BYTES = 1 << 26  # of images between two entries of the journal
_SYNC_SECONDS = 5.0  # between them at most, while batches end
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
        dimension is labels. An iterator is read to its end; of a CSV file, `pandas.read_csv(path, chunksize=100_000)`.
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
    array([[ 0.,  1.],
           [12., 13.],
           [16., 17.]])
    >>> np.array_equal(sample_rows(iter([X[:4], X[4:]]), 3), sample_rows(X, 3))
    True
    """
    count = as_count(n_rows, "n_rows")
    if not isinstance(random_state, Integral) or isinstance(random_state, bool) or random_state < 0:
        raise ValueError(f"random_state must be an integer of at least 0. Got {random_state!r} instead.")
    seed = int(random_state)
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
            before = rows[:0] if self._rows is None else self._rows
            self._rows = np.concatenate([before, rows[new]])[kept]
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
        As in `sample_rows`. Names of columns, of a data frame or a Parquet file, must be those that the model knows.
    path : path of the .npy file
        It is written in place. Beside it, `path` + ".journal" says how many rows are on disk, until all are. Started
        again with the same model and rows, a run goes on from there and ends with the same bytes. The rows that were
        mapped are read once more for that, and they and their images are compared by checksums: after any change the
        run begins anew (of an iterator, which cannot, it is a ValueError).
    batch_rows : int or None, default None
        Rows that are mapped at once; None is as many as fill about 16 MB. Results do not depend on it.
    verbose : bool, default False
        Show progress.

    Raises
    ------
    ValueError
        Also where rows far behind the first cannot be mapped, because of NaN for example. Then the file holds the
        images of the rows before them, and a run with mended rows goes on from there.

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
    place = as_path(path)
    if place.suffix.lower() in (".csv", ".tsv", ".npz", ".parquet", ".txt"):
        raise ValueError(
            f"path must end in .npy, the format that is written. Got {str(place)!r}: the command `manifast transform` "
            "writes csv, tsv, npz and Parquet."
        )
    files: tuple[Any, ...] = ()
    if isinstance(model, str | os.PathLike):
        model, files = load(model), (model,)
    step = None if batch_rows is None else as_count(batch_rows, "batch_rows")
    digest = model_digest(model)
    source = as_source(X)
    if place.exists() and any(os.path.samefile(place, file) for file in (*files, *source.files)):
        raise ValueError(f"path must be another file than those of X and the model. Got {str(place)!r} for both.")
    with verbosity(verbose, "transform_to"):
        _Run(model, digest, source, place, step).finish()


class _Run:
    """One run of `transform_to`: what goes where, and how far it is."""

    def __init__(self, model: Any, digest: str, source: Source, path: Path, step: int | None) -> None:
        nameless = copy(model)  # names of columns are looked at once, here
        vars(nameless).pop("feature_names_in_", None)
        self._call = getattr(nameless, _method_of(model))
        self._source, self._path, self._journal = source, path, path.with_name(path.name + ".journal")
        first = source.head()
        features = int(model.n_features_in_)
        if first.ndim != 2 or first.shape[1] != features:
            raise ValueError(f"X must have {features} features, as the model has. Got blocks of shape {first.shape}.")
        if first.dtype.hasobject:
            raise ValueError("X must hold numbers, not references to objects: use X.astype(float). Got dtype object.")
        known = list(getattr(model, "feature_names_in_", ()))
        named = source.names is not None and len(source.names) == len(known)  # one column may hold lists of features
        if named and source.names != known:
            raise ValueError(f"X must have the columns that the model was fitted to, {known}. Got {source.names}.")
        one = np.asarray(self._call(first[:1]) if named else getattr(model, _method_of(model))(first[:1]))
        self._source_dtype, self._dtype, self._shape = first.dtype, one.dtype, one.shape[1:]
        if self._dtype.hasobject:
            raise ValueError(f"model must have classes of a fixed size for a .npy file. Got labels of {self._dtype}.")
        self._row_bytes = one.nbytes
        self._step = step or max(1, _BATCH_BYTES // max(first[:1].nbytes, one.nbytes))
        self._identity = {
            "format": 2,
            "model": digest,
            "source_rows": source.n,
            "source_dtype": str(first.dtype),
            "source_start": sha256(first[:1].tobytes()).hexdigest(),
            "images": [str(self._dtype), *self._shape],
        }
        self._done = 0
        self._seen, self._made = sha256(), sha256()  # of the rows that are mapped, and of their images

    def finish(self) -> None:
        """Map the rows that are not on disk yet."""
        batches = self._remaining()
        if stages() and self._done:
            log(f"goes on after {self._done} rows")
        with open(self._path, "r+b" if self._done else "wb") as file:
            # Until all rows are there the file is none that can be read, and nobody takes it for whole.
            file.write(bytes(_HEADER) if self._source.n is None else self._header(self._source.n))
            file.seek(_HEADER + self._done * self._row_bytes)
            try:
                self._map(file, batches)
            except BaseException:
                with suppress(OSError):  # of a full disk, say: what went wrong first is what counts
                    self._leave(file)
                raise
            self._end(file)
        with suppress(FileNotFoundError):
            self._journal.unlink()

    def _remaining(self) -> Iterator[Array]:
        """Batches of the rows that are not on disk, behind those that are and were found to be the same."""
        noted = self._noted()
        rows = _batches(self._source.blocks(), self._step)
        if noted is None:
            return rows
        done, seen, made = noted
        if self._sum_of_images(done) != made:
            self._made = sha256()
            return rows
        passed, left = sha256(), done
        for batch in rows:
            part = batch[:left]
            passed.update(bytes_of(part))
            left -= len(part)
            if not left:
                if passed.hexdigest() != seen:
                    break
                self._done, self._seen = done, passed
                return chain([batch[len(part) :]] if len(part) < len(batch) else [], rows)
        if not self._source.again:
            raise ValueError(
                f"X must be the rows that the run began with, or {str(self._journal)!r} must be deleted. Got others "
                f"among the first {done}, and an iterator cannot be read once more."
            )
        self._made = sha256()
        return _batches(self._source.blocks(), self._step)

    def _map(self, file: IO[bytes], batches: Iterator[Array]) -> None:
        """Write the images of all rows that are left."""
        progress = Progress("rows", self._source.n or 0) if stages() and self._source.n else None
        told, since = time.monotonic(), 0
        for rows, seen in _ahead(batches, self._seen):
            images = bytes_of(self._images(rows))
            file.write(images)
            made = self._made.copy()
            made.update(images)
            self._seen, self._made, self._done = seen, made, self._done + len(rows)
            since += images.nbytes
            if since >= _SYNC_BYTES or time.monotonic() - told >= _SYNC_SECONDS:
                self._note(file)
                told, since = time.monotonic(), 0
            if progress is not None:
                progress(self._done)
        if self._source.n is not None and self._done != self._source.n:
            raise ValueError(f"X must have the {self._source.n} rows that it said. Got {self._done} instead.")

    def _images(self, rows: Array) -> Array:
        if rows.dtype != self._source_dtype:
            raise ValueError(f"X must have rows of one dtype. Got {self._source_dtype}, then {rows.dtype}.")
        try:
            return np.asarray(self._call(rows))
        except ValueError as error:
            wrong = np.flatnonzero(~np.isfinite(rows).all(axis=1)) if rows.dtype.kind == "f" else np.empty(0, int)
            if len(wrong):
                got = f"NaN or infinity in row {self._done + int(wrong[0])}."
            else:  # the first line of it: advice may follow that is not for here
                got = f"in rows {self._done} to {self._done + len(rows) - 1}: {str(error).splitlines()[0]}"
            kept = f" A run with mended rows goes on after the {self._done} that are on disk." if self._done else ""
            raise ValueError(f"X must have rows that the model can map. Got {got}{kept}") from error

    def _leave(self, file: IO[bytes]) -> None:
        """After an error: a file of the rows that are mapped, for the next run to go on from; none of no rows."""
        self._end(file)
        if self._done:
            self._write_journal()
        else:
            self._journal.unlink(missing_ok=True)
            self._path.unlink()

    def _end(self, file: IO[bytes]) -> None:
        """The header of the rows that are there, nothing behind them, and all of it on disk."""
        file.truncate(_HEADER + self._done * self._row_bytes)
        file.seek(0)
        file.write(self._header(self._done))
        file.flush()
        os.fsync(file.fileno())

    def _note(self, file: IO[bytes]) -> None:
        """Rows first, then the journal that speaks of them: at no moment does it promise what is not on disk."""
        file.flush()
        os.fsync(file.fileno())
        self._write_journal()

    def _write_journal(self) -> None:
        sums = {"source_sha256": self._seen.hexdigest(), "images_sha256": self._made.hexdigest()}
        with replacing(self._journal) as journal:
            journal.write(json.dumps({**self._identity, **sums, "rows_on_disk": self._done}).encode())

    def _noted(self) -> tuple[int, str, str] | None:
        """Rows of an earlier run of the same model, and the sums of them and of their images."""
        try:
            noted = json.loads(self._journal.read_bytes())
            size = self._path.stat().st_size
        except (OSError, ValueError):
            return None
        if not isinstance(noted, dict):
            return None
        done, seen, made = (noted.pop(name, None) for name in ("rows_on_disk", "source_sha256", "images_sha256"))
        if noted != self._identity or type(done) is not int or not 0 < done <= (self._source.n or done):
            return None
        return (done, seen, made) if size >= _HEADER + done * self._row_bytes else None

    def _sum_of_images(self, done: int) -> str:
        """The sum of images that are on disk, which is gone on with."""
        left = done * self._row_bytes
        with open(self._path, "rb") as file:
            file.seek(_HEADER)
            while left and (part := file.read(min(left, _BATCH_BYTES))):
                self._made.update(part)
                left -= len(part)
        return self._made.hexdigest()

    def _header(self, rows: int) -> bytes:
        """The header of a .npy file of version 1, as long for any number of rows."""
        shape = (rows, *self._shape)
        described = {"descr": np.lib.format.dtype_to_descr(self._dtype), "fortran_order": False, "shape": shape}
        text = repr(described).encode("latin1")
        return b"\x93NUMPY\x01\x00" + (_HEADER - 10).to_bytes(2, "little") + text.ljust(_HEADER - 11) + b"\n"


def _batches(blocks: Iterator[Array], step: int) -> Iterator[Array]:
    """The same rows in batches of one size, but for the last."""
    held: list[Array] = []
    count = 0
    for block in blocks:
        held.append(block)
        count += len(block)
        if count < step:
            continue
        rows = held[0] if len(held) == 1 else np.concatenate(held)
        whole = count - count % step
        for begin in range(0, whole, step):
            yield rows[begin : begin + step]
        held, count = [rows[whole:]], count - whole
    if count:
        yield np.concatenate(held)


def _ahead(batches: Iterator[Array], seen: Any) -> Iterator[tuple[Array, Any]]:
    """The same with the sum of all rows so far; the next is read by a thread of its own while this is worked on."""

    def following(seen: Any) -> tuple[Array, Any] | None:
        rows = next(batches, None)
        if rows is None:
            return None
        rows, seen = np.ascontiguousarray(rows), seen.copy()
        seen.update(bytes_of(rows))
        return rows, seen

    with ThreadPoolExecutor(1, thread_name_prefix="manifast-read") as reader:
        coming = reader.submit(following, seen)
        while (batch := coming.result()) is not None:
            coming = reader.submit(following, batch[1])
            yield batch


def _method_of(model: Any) -> str:
    return "transform" if hasattr(model, "transform") else "predict"


class Mapper:
    """A saved model as a function of rows, for engines that carry functions to their workers.

    It holds a path, pickles to a few bytes, and opens the model on first use, mapped from its file: processes of a
    machine share it. Kernels run on one thread, as the engine runs many. No rows give an image of no rows.

    Parameters
    ----------
    path : path of a file of `manifast.save`, the same on all machines
    method : {None, "transform", "predict", "decision_function", "predict_proba"}, default None
        None is `transform` of embeddings, `predict` of all others.

    Examples
    --------
    The module's own text has lines for joblib, Polars, Ray and Spark.

    >>> import os, tempfile
    >>> import numpy as np
    >>> import manifast
    >>> from manifast.scale import Mapper
    >>> X = np.random.default_rng(0).standard_normal((60, 4))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "lpp.manifast")
    ...     manifast.save(manifast.LPP().fit(X), path)
    ...     Mapper(path)(X).shape
    (60, 2)
    """

    def __init__(self, path: Any, method: str | None = None) -> None:
        methods = (None, "transform", "predict", "decision_function", "predict_proba")
        if method not in methods:
            raise ValueError(f"method must be one of {', '.join(map(repr, methods))}. Got {method!r} instead.")
        self.path, self.method = str(as_path(path)), method
        self._model: Any = None

    def __call__(self, rows: Any) -> Array:
        """Images of rows: an array, a data frame, or what else has rows."""
        if self._model is None:
            self._model = load(self.path, mmap=True)
        name = self.method or _method_of(self._model)
        if not hasattr(self._model, name):
            raise ValueError(f"method must be one that the model has. Got {name!r} for {type(self._model).__name__}.")
        if not len(rows):
            return image_of_no_rows(self._model, name, np.asarray(rows).dtype)
        with one_thread():
            return np.asarray(getattr(self._model, name)(rows))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_model": None}

    def __repr__(self) -> str:
        return f"Mapper({self.path!r}{'' if self.method is None else f', {self.method!r}'})"
