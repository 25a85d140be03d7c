"""Whether dense matrices of the size of all pairs can be had: asked before any work, not after a minute of it."""

from __future__ import annotations

import os
from math import inf, isqrt
from pathlib import Path

from manifast._threads import cgroup_directories

LANDMARKS = "use OutOfSample(embedder, landmarks=...), which embeds some of the rows and carries the others over"

_LAPACK_ROWS = 46_340  # beyond, n² entries are more than a 32-bit LAPACK can count
_SMALL = 1 << 27  # bytes up to which free memory is not looked up


def check_room(n: int, matrices: int, remedy: str, *, columns: int | None = None, lapack: bool = True) -> None:
    """Refuse n rows where that many float64 matrices of n × n, or n × columns, cannot be held at once.

    Parameters
    ----------
    n : int
    matrices : int
        Held at the same time, at the peak.
    remedy : str
        What to do instead, as the end of a sentence.
    columns : int, optional
    lapack : bool
        Whether LAPACK sees one of them.
    """
    needed = 8 * matrices * n * (n if columns is None else columns)
    if needed <= _SMALL:
        return
    room = available_bytes()
    if lapack and columns is None and n > _LAPACK_ROWS:
        raise ValueError(
            f"X must have at most {_LAPACK_ROWS} rows for this method, which solves for a dense n × n matrix. Got {n} "
            f"rows: {remedy}."
        )
    if needed > room:
        most = isqrt(int(room) // (8 * matrices)) if columns is None else int(room) // (8 * matrices * columns)
        size = "n × n" if columns is None else f"n × {columns}"
        raise ValueError(
            f"X must have at most about {most} rows for this method, which holds {matrices} dense {size} matrices, and "
            f"{room / 2**30:.1f} GiB of memory are free. Got {n} rows, which take {needed / 2**30:.1f} GiB: {remedy}."
        )


def available_bytes(root: str = "/") -> float:
    """Memory that can be had now: what the system says is free, and what the cgroups around the process leave.

    On systems that do not say, all physical memory; infinity where even that is unknown.
    """
    return min(_system(root), *(_left(directory) for directory in cgroup_directories("memory", root)))


def _system(root: str) -> float:
    try:
        for line in Path(root, "proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024.0 * int(line.split()[1])
    except (OSError, ValueError, IndexError):
        pass
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return inf


def _left(directory: Path) -> float:
    """What one cgroup leaves of its limit; cached files count as free, as they give way."""
    for limit, used, cached in (
        ("memory.max", "memory.current", ("active_file", "inactive_file")),
        ("memory.limit_in_bytes", "memory.usage_in_bytes", ("total_active_file", "total_inactive_file")),
    ):
        try:
            most, now = int((directory / limit).read_text()), int((directory / used).read_text())
            entries = (line.split() for line in (directory / "memory.stat").read_text().splitlines())
            files = sum(int(entry[1]) for entry in entries if len(entry) == 2 and entry[0] in cached)
        except (OSError, ValueError):  # no such cgroup, or "max": no limit
            continue
        return float(max(0, most - now + files))
    return inf
