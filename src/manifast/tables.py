"""Tables of the command line: rows, names of their columns, ids and labels, from and to npy, npz, csv and Parquet."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from manifast._validation import Array

__all__ = ["Table", "read_labels", "read_table", "write_table"]

_ENDINGS = ".npy, .npz, .csv, .tsv or .parquet"
_MISSING = {"", "na", "nan", "none", "null"}
_CHECKED = 1 << 20  # numbers that are looked at at once: files may be larger than memory


@dataclass(frozen=True)
class Table:
    """Rows of numbers, and what goes with them; `names` and `ids` are None where the file has none."""

    X: Array
    names: list[str] | None = None
    ids: Array | None = None
    id_name: str = "id"
    labels: Array | None = None


def read_table(
    file: Any, *, labels: str | None = None, ids: str | None = None, drop: Any = (), only: list[str] | None = None
) -> Table:
    """Read a table; `labels` and `ids` name columns (csv, Parquet) or arrays (npz), `drop` columns to leave out.

    `only`: the columns to take, in this order, where the file has names.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from manifast.tables import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "a.csv"
    ...     _ = file.write_text("id,width,height,kind\\na,1,2,x\\nb,3,4,y\\n")
    ...     table = read_table(file, labels="kind")
    >>> table.X, table.names, table.ids, table.labels
    (array([[1., 2.], [3., 4.]]), ['width', 'height'], array(['a', 'b'], dtype='<U1'), array(['x', 'y'], dtype='<U1'))
    """
    path = _existing(file)
    kind = path.suffix.lower()
    if kind == ".npy":
        if labels or ids or drop:
            raise ValueError(f"{path} has no columns with names. Give labels as a file of their own.")
        with _reading(path):
            return Table(_rows(np.load(path, mmap_mode="r", allow_pickle=False), path))
    if kind == ".npz":
        return _from_npz(path, labels, ids)
    columns = _columns(path)
    named = {str(name): values for name, values in columns}
    for name in filter(None, (labels, ids, *drop)):
        if name not in named:
            raise ValueError(f"{path} has no column {name!r}: its columns are {', '.join(map(repr, named))}.")
    if ids is None and "id" in (lowered := {name.lower(): name for name in named}) and lowered["id"] != labels:
        ids = lowered["id"]
    header = not all(isinstance(name, int) for name, _ in columns)
    kept = [name for name in named if name not in (labels, ids, *drop)]
    if only is not None and header:
        lacking = [name for name in only if name not in kept]
        if lacking:
            raise ValueError(f"{path} must have the columns of the model. It lacks {', '.join(lacking)}.")
        kept = only
    if not kept:
        raise ValueError(f"{path} has no columns of numbers.")
    numbers = []
    for name in kept:
        if (values := _numbers(named[name])) is None:
            raise ValueError(f"column {name!r} of {path} holds text: name it with --labels, --id or --drop.")
        numbers.append(values)
    rows = _rows(np.column_stack(numbers), path, kept if header else None)
    found = _typed(named[labels]) if labels else None
    return Table(rows, kept if header else None, _exact(named[ids]) if ids else None, ids or "id", found)


def read_labels(given: str, file: Any, *, ids: str | None = None, drop: Any = ()) -> Table:
    """The table with labels: `given` is one of its columns or arrays, or a file with one label per row.

    Empty cells and -1 beside text are None: rows without a label.
    """
    try:
        table = read_table(file, labels=given, ids=ids, drop=drop)
        return replace(table, labels=_or_none(table.labels))
    except ValueError as problem:
        path = Path(given)
        if not path.is_file():
            if "has no column" in str(problem) or "has no array" in str(problem) or "with names" in str(problem):
                raise ValueError(f"--labels must be a column of {file} or a file. Got {given!r}: {problem}") from None
            raise
    table = read_table(file, ids=ids, drop=drop)
    labels = _label_file(path)
    if len(labels) != len(table.X):
        header = " Its first line was taken for a header." if len(labels) == len(table.X) - 1 else ""
        raise ValueError(
            f"{path} must hold one label per row of {file}, {len(table.X)}. Got {len(labels)} instead.{header}"
        )
    return replace(table, labels=_or_none(labels))


def _or_none(labels: Array | None) -> Array | None:
    """Labels with None for text that means none: a file of text cannot hold None itself."""
    if labels is None or labels.dtype.kind not in "UO":
        return labels
    none = np.array([isinstance(label, str) and label.strip() in ("", "-1") for label in labels.tolist()], dtype=bool)
    if not none.any():
        return labels
    found = labels.astype(object)
    found[none] = None
    return found


def write_table(file: Any, table: Table) -> None:
    """Write rows with their names and ids; npy holds the rows alone."""
    path = Path(file)
    kind = path.suffix.lower()
    values = table.X if table.X.ndim == 2 else table.X[:, None]
    names = table.names or [f"column{i}" for i in range(values.shape[1])]
    if kind == ".npy":
        np.save(path, table.X)
    elif kind == ".npz":
        parts: dict[str, Any] = {"X": table.X, "columns": np.array(names)}
        np.savez(path, **parts if table.ids is None else parts | {table.id_name: table.ids})
    elif kind in (".csv", ".tsv"):
        with path.open("w", newline="") as stream:
            writer = csv.writer(stream, delimiter="\t" if kind == ".tsv" else ",", lineterminator="\n")
            writer.writerow(names if table.ids is None else [table.id_name, *names])
            for i, row in enumerate(values.tolist()):
                writer.writerow(row if table.ids is None else [table.ids[i], *row])
    elif kind == ".parquet":
        arrow, parquet = _arrow()
        columns = {} if table.ids is None else {table.id_name: arrow.array(table.ids.tolist())}
        columns |= {name: arrow.array(values[:, i]) for i, name in enumerate(names)}
        parquet.write_table(arrow.table(columns), path)
    else:
        raise ValueError(f"output must be a file ending in {_ENDINGS}. Got {str(file)!r} instead.")


def check_picture(file: Any) -> None:
    """Refuse a picture that could not be drawn, before any work is done."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ValueError("pictures need matplotlib: pip install matplotlib.") from None
    kinds = sorted(f".{kind}" for kind in Figure().canvas.get_supported_filetypes())
    check_output(file, ", ".join(kinds))


def check_output(file: Any, endings: str = _ENDINGS) -> None:
    """Refuse an output that could not be written, before any work is done."""
    path = Path(file)
    if path.is_dir():
        raise ValueError(f"output must be a file. Got the folder {str(file)!r}.")
    if path.suffix.lower() not in endings.replace(" or ", ", ").split(", "):
        raise ValueError(f"output must be a file ending in {endings}. Got {str(file)!r} instead.")
    if not path.parent.is_dir():
        raise ValueError(f"output must be in a folder that exists. Got {str(file)!r} instead.")
    if path.suffix.lower() == ".parquet":
        _arrow()


def _existing(file: Any) -> Path:
    path = Path(file)
    if not path.is_file():
        raise ValueError(f"{path} must be a file. There is none.")
    if path.suffix.lower() not in (".npy", ".npz", ".csv", ".tsv", ".parquet"):
        raise ValueError(f"{path} must end in {_ENDINGS}.")
    return path


def _rows(values: Array, path: Path, names: list[str] | None = None) -> Array:
    if values.ndim > 2:
        values = values.reshape(len(values), -1)
    if values.ndim != 2 or values.dtype.kind not in "fiub":
        raise ValueError(f"{path} must hold rows of numbers. Got {values.dtype} of shape {values.shape}.")
    if not len(values):
        raise ValueError(f"{path} must have at least 1 row. It has none.")
    step = max(1, _CHECKED // max(1, values.shape[1]))
    for begin in range(0, len(values) if values.dtype.kind == "f" else 0, step):
        finite = np.isfinite(values[begin : begin + step])
        if not finite.all():
            row, column = (int(place) for place in np.argwhere(~finite)[0])
            what = "an infinite" if np.isinf(values[begin + row, column]) else "a missing"
            where = f"row {begin + row + 1}, column {names[column] if names else column + 1}"
            raise ValueError(f"{path} has {what} value in {where}: remove or impute such rows.")
    return values


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Whatever NumPy says about a file that is none of its own becomes one sentence."""
    try:
        yield
    except (EOFError, BadZipFile, ValueError, KeyError) as problem:
        if str(problem).startswith(str(path)):
            raise
        kind = "an .npy file" if path.suffix.lower() == ".npy" else "an .npz file"
        raise ValueError(f"{path} must be {kind} of numbers or text, as numpy.save writes it. It is not.") from None


def _from_npz(path: Path, labels: str | None, ids: str | None) -> Table:
    with _reading(path), np.load(path, allow_pickle=False) as stored:
        for name in filter(None, (labels, ids)):
            if name not in stored:
                raise ValueError(f"{path} has no array {name!r}: its arrays are {', '.join(stored.files)}.")
        rest = [name for name in stored.files if name not in (labels, ids)]
        main = next((name for name in ("X", "data", "images") if name in rest), None)
        if main is None:
            wide = [name for name in rest if stored[name].ndim >= 2]
            if len(wide) != 1:
                raise ValueError(f"{path} must hold one matrix, or one called X. Got {', '.join(stored.files)}.")
            main = wide[0]
        found = stored[labels] if labels else None
        return Table(_rows(stored[main], path), None, stored[ids] if ids else None, ids or "id", found)


def _columns(path: Path) -> list[tuple[Any, Array]]:
    """Names and values; numbers in place of names where a csv file has no header."""
    if path.suffix.lower() == ".parquet":
        _, parquet = _arrow()
        try:
            stored = parquet.read_table(path)
        except Exception as problem:  # pyarrow's own exceptions
            raise ValueError(f"{path} must be a Parquet file. {str(problem).splitlines()[0]}") from None
        return [(name, np.asarray(stored.column(name).to_numpy())) for name in stored.column_names]
    separator = "\t" if path.suffix.lower() == ".tsv" else ","
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            lines = [line for line in csv.reader(stream, delimiter=separator) if line]
    except (UnicodeDecodeError, csv.Error) as problem:
        raise ValueError(f"{path} must be text in UTF-8 with cells between {separator!r}. Got: {problem}.") from None
    if not lines:
        raise ValueError(f"{path} must have at least 1 row. It is empty.")
    width = len(lines[0])
    for number, line in enumerate(lines, 1):
        if len(line) != width:
            raise ValueError(f"{path} must have {width} cells in every line. Line {number} has {len(line)}.")
    if width == 1 and all(";" in line[0] for line in lines):
        raise ValueError(f"{path} must have commas between its cells. It has semicolons.")
    header = not any(_is_number(cell) for cell in lines[0])
    body = lines[header:]
    if not body:
        raise ValueError(f"{path} must have at least 1 row. It has a header alone.")
    names: list[Any] = [name.strip() or "id" for name in lines[0]] if header else list(range(width))
    if len(set(names)) < width:
        raise ValueError(f"{path} must have a different name for every column. Got {', '.join(map(str, names))}.")
    return [(name, np.array([line[i].strip() for line in body])) for i, name in enumerate(names)]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _numbers(column: Array) -> Array | None:
    """A column as floats, missing values as NaN; None where it holds anything else."""
    if column.dtype.kind in "fiub":
        return column.astype(np.float64)
    if column.dtype.kind != "U":
        return None
    cells = column.tolist()
    known = [cell for cell in cells if cell.lower() not in _MISSING]
    if not known or not all(map(_is_number, known)):
        return None
    return np.array([float(cell) if cell.lower() not in _MISSING else np.nan for cell in cells])


def _exact(column: Array) -> Array:
    """A column as integers where those are written in the same way again, and else as it stands."""
    cells = column.tolist() if column.dtype.kind == "U" else []
    whole = [int(cell) for cell in cells if len(cell) < 20 and cell.lstrip("-").isdecimal()]
    fits = cells and [str(cell) for cell in whole] == cells and min(whole) >= -(2**63) and max(whole) < 2**63
    return np.array(whole, dtype=np.int64) if fits else column


def _typed(column: Array) -> Array:
    """Labels: integers, floats (missing values are NaN), or text; 007 is text."""
    exact = _exact(column)
    if exact.dtype.kind != "U" or any(cell[:1] == "0" and cell[1:2].isdecimal() for cell in exact.tolist()):
        return exact
    numbers = _numbers(exact)
    return exact if numbers is None else numbers


def _label_file(path: Path) -> Array:
    kind = _existing(path).suffix.lower()
    if kind == ".npy":
        with _reading(path):
            found = np.load(path, allow_pickle=False)
    elif kind == ".npz":
        with _reading(path), np.load(path, allow_pickle=False) as stored:
            name = next((name for name in ("labels", "y") if name in stored), stored.files[0])
            found = stored[name]
    else:
        columns = _columns(path)
        if len(columns) > 1:
            raise ValueError(f"{path} must hold one column of labels. Got {len(columns)}.")
        found = _typed(columns[0][1])
    return np.ravel(found)


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ValueError("Parquet files need pyarrow: pip install pyarrow.") from None
    return pyarrow, pyarrow.parquet
