"""The file of a saved model: eight bytes of length, a JSON header, raw arrays. Nothing here knows what a model is.

The layout is that of safetensors, whose readers can open the arrays. The text of the model lies in `__metadata__`, with
a SHA-256 of every array; the digest at its beginning is the SHA-256 of length and header, the digest itself read as
zeros. Arrays follow in descending order of their item size, without gaps, from a multiple of 64 bytes on: all of them
are aligned. A reader allocates nothing that the size of the file has not paid for, and believes nothing that the
digests have not confirmed.
"""

from __future__ import annotations

import json
import mmap as _mmap
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np

from manifast._validation import Array

VERSION = 1
_PREFIX = b'{"__metadata__":{"digest":"'
_DIGEST = slice(len(_PREFIX), len(_PREFIX) + 64)
_ALIGNMENT = 64
_DTYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "BOOL": "|b1"}
_NAMES = {np.dtype(code): name for name, code in _DTYPES.items()}


def storable(array: Array) -> bool:
    """Whether the raw part of a file has a name for the dtype."""
    return array.dtype.newbyteorder("<") in _NAMES


def pack(text: dict[str, Any], arrays: dict[str, Array]) -> tuple[bytes, list[Array]]:
    """Length and header as bytes, and the arrays in the order in which they follow."""
    order = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))
    parts = [np.ascontiguousarray(arrays[name], dtype=arrays[name].dtype.newbyteorder("<")) for name in order]
    entries: dict[str, Any] = {}
    begin = 0
    for name, part in zip(order, parts, strict=True):
        offsets = [begin, begin + part.nbytes]
        entries[name] = {"dtype": _NAMES[part.dtype], "shape": list(part.shape), "data_offsets": offsets}
        begin = offsets[1]
    sums = {name: sha256(bytes_of(part)).hexdigest() for name, part in zip(order, parts, strict=True)}
    metadata = {
        "digest": "0" * 64,
        "format": "manifast",
        "version": str(VERSION),
        "sha256": _dumps(sums),
        "model": _dumps(text),
    }
    header = _dumps({"__metadata__": metadata, **entries}).encode()
    header += b" " * (-(8 + len(header)) % _ALIGNMENT)
    return _signed(len(header).to_bytes(8, "little"), header), parts


def digest_of(packed: bytes) -> str:
    """The digest of length and header, which stands for the whole model."""
    return packed[8:][_DIGEST].decode()


def write(path: Path, packed: bytes, parts: list[Array]) -> None:
    """Put a file in its place at once: readers see the old one or the whole new one, also after a crash."""
    with replacing(path) as file:
        file.write(packed)
        for part in parts:
            file.write(bytes_of(part))


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A new file beside `path` that takes its place at the end: written, brought to disk, renamed.

    It gets the permissions of the file whose place it takes. Of a symbolic link it is the file that is replaced.
    """
    path = path.resolve()
    beside = path.parent / f".{secrets.token_hex(8)}.tmp"
    try:
        with open(beside, "xb") as file:
            with suppress(FileNotFoundError):
                os.chmod(beside, stat.S_IMODE(path.stat().st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise
    _sync_folder(path.parent)


def read(path: Path, mmap: bool) -> tuple[dict[str, Any], dict[str, Array]]:
    """The text and the arrays of a file, all checksums confirmed; with `mmap` arrays are read-only views of it."""
    with open(path, "rb") as file:
        text, entries, start = _read_header(file, path)
        whole: Any = None
        if mmap and any(count > 0 for _, _, _, count in entries):
            whole = _mmap.mmap(file.fileno(), 0, access=_mmap.ACCESS_READ)
        arrays: dict[str, Array] = {}
        for name, dtype, shape, count in entries:
            if whole is None:
                array = np.empty(count, dtype)
                if file.readinto(bytes_of(array)) != array.nbytes:
                    raise damaged(path, "it ends early")
            else:
                array = np.frombuffer(whole, dtype, count, start)
            start += array.nbytes
            if sha256(bytes_of(array)).hexdigest() != text["sha256"].get(name):
                raise damaged(path, f"the array {name!r} does not have its checksum")
            # The machine's own byte order is what the core takes.
            arrays[name] = array.astype(dtype.newbyteorder("="), copy=False).reshape(shape)
    return text["model"], arrays


def read_text(path: Path) -> dict[str, Any]:
    """The text of a model, its header confirmed, without its arrays."""
    with open(path, "rb") as file:
        model: dict[str, Any] = _read_header(file, path)[0]["model"]
        return model


def damaged(path: Any, why: str) -> ValueError:
    return ValueError(f"path must be a whole and unchanged file of manifast.save. Got {str(path)!r}: {why}.")


def _read_header(file: IO[bytes], path: Path) -> tuple[dict[str, Any], list[tuple[str, Any, Any, int]], int]:
    """The metadata, (name, dtype, shape, items) of all arrays as they follow, and where the first begins."""
    size = os.fstat(file.fileno()).st_size
    first = file.read(8)
    length = int.from_bytes(first, "little")
    if len(first) < 8 or length > size - 8:
        raise damaged(path, f"it has {size} bytes, fewer than its header needs, or is no model at all")
    header = file.read(length)
    if not header.startswith(_PREFIX):
        raise damaged(path, "it does not begin as such a file does")
    content = _loads(header, path)
    metadata = content.pop("__metadata__")
    if not isinstance(metadata, dict) or metadata.get("format") != "manifast":
        raise damaged(path, "it has another format")
    version = metadata.get("version")
    if not isinstance(version, str) or not version.isascii() or not version.isdigit() or len(version) > 9:
        raise damaged(path, f"it names the version {version!r}")
    if int(version) > VERSION:
        raise ValueError(
            f"path must be a file of format version {VERSION} or older. Got version {version} in {str(path)!r}: it was "
            "written by a newer manifast, which is needed to read it."
        )
    if int(version) < 1 or _signed(first, header) != first + header:
        raise damaged(path, "the header does not have its checksum")
    text = {name: _loads(metadata.get(name), path) for name in ("sha256", "model")}
    start = 8 + length
    entries, end = _layout(content, path)
    if start + end != size:
        raise damaged(path, f"it has {size} bytes where its header says {start + end}")
    return text, entries, start


def _layout(content: dict[str, Any], path: Path) -> tuple[list[tuple[str, Any, Any, int]], int]:
    """Entries of the header in the order of their offsets, and the bytes that they take."""
    entries, end = [], 0
    for name, entry in content.items():
        fits = isinstance(entry, dict) and set(entry) == {"dtype", "shape", "data_offsets"}
        if not fits or not isinstance(entry["dtype"], str) or entry["dtype"] not in _DTYPES:
            raise damaged(path, f"the array {name!r} has no dtype, shape and offsets that are known")
        shape, offsets = entry["shape"], entry["data_offsets"]
        if not (_counts(shape) and len(shape) <= 2 and _counts(offsets) and len(offsets) == 2):
            raise damaged(path, f"the array {name!r} has shape {shape!r} and offsets {offsets!r}")
        dtype, count = np.dtype(_DTYPES[entry["dtype"]]), prod(shape)
        if offsets != [end, end + count * dtype.itemsize] or end % dtype.itemsize:
            raise damaged(path, f"the array {name!r} of shape {shape!r} does not lie where the one before it ends")
        entries.append((name, dtype, tuple(shape), count))
        end = offsets[1]
    return entries, end


def _counts(value: Any) -> bool:
    return isinstance(value, list) and all(type(item) is int and 0 <= item < 2**62 for item in value)


def _signed(first: bytes, header: bytes) -> bytes:
    """Length and header with the digest that belongs to them."""
    blank = header[: _DIGEST.start] + b"0" * 64 + header[_DIGEST.stop :]
    digest = sha256(first + blank).hexdigest().encode()
    return first + header[: _DIGEST.start] + digest + header[_DIGEST.stop :]


def _dumps(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _loads(text: Any, path: Path) -> dict[str, Any]:
    """An object of strict JSON; anything else is a damaged file."""

    def refuse(constant: str) -> None:
        raise ValueError(constant)

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(made := dict(pairs)) < len(pairs):  # readers do not agree which of them counts
            raise ValueError("the same name twice")
        return made

    try:
        if not isinstance(text, str | bytes):
            raise ValueError("no text")
        value = json.loads(text, parse_constant=refuse, object_pairs_hook=once)
    except (ValueError, RecursionError):
        raise damaged(path, "its header is no JSON") from None
    if not isinstance(value, dict):
        raise damaged(path, "its header is no JSON object")
    return value


def bytes_of(array: Array) -> memoryview:
    """The memory of a contiguous array; of another one, that of a copy in the order of its rows."""
    return memoryview(np.ascontiguousarray(array).reshape(-1).view(np.uint8))  # type: ignore[arg-type]


def as_path(path: Any) -> Path:
    """The name of a file, whatever kind of path it came as."""
    try:
        return Path(os.fsdecode(path))
    except TypeError:
        raise ValueError(f"path must be the name of a file. Got {path!r} instead.") from None


def _sync_folder(folder: Path) -> None:
    """Bring a renaming to disk, where folders can be opened for that; the file is in its place in any case."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
