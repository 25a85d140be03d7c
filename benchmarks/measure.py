"""How ours and a peer are timed side by side, and the row of the table that comes out."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Row:
    """One comparison. `ratio` is how many times faster ours is; `bar` is what it should reach, None for information.

    `equal` is False where the results differ by more than the comparison allows; `peer_seconds` is None, and the
    note says so, where the peer is not installed.
    """

    name: str
    threads: int
    ours_seconds: float
    peer_name: str
    peer_seconds: float | None
    bar: float | None
    note: str = ""
    equal: bool = True

    @property
    def ratio(self) -> float | None:
        return None if self.peer_seconds is None else self.peer_seconds / self.ours_seconds

    @property
    def missed(self) -> bool:
        return self.bar is not None and (self.ratio is None or self.ratio < self.bar or not self.equal)


def peer(module: str) -> Any:
    """A peer's module, None where it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError:
        return None


def image_file(name: str) -> Path | None:
    """The file of an image set in the folder MANIFAST_DATA, None where it is not there."""
    folder = os.environ.get("MANIFAST_DATA")
    file = Path(folder or ".") / f"{name}.npz"
    return file if folder and file.exists() else None


@contextmanager
def limited(threads: int) -> Iterator[None]:
    """All libraries loaded so far on that many threads."""
    from threadpoolctl import threadpool_limits

    if "faiss" in sys.modules:
        sys.modules["faiss"].omp_set_num_threads(threads)
    with threadpool_limits(threads):
        yield


def race(
    name: str,
    threads: int,
    ours: Callable[[], Any],
    peer_name: str,
    theirs: Callable[[], Any] | None,
    *,
    bar: float | None = None,
    difference: Callable[[Any, Any], float] | None = None,
    tolerance: float = 1e-12,
    budget: float = 4.0,
    repeats: tuple[int, int] = (3, 25),
) -> Row:
    """Time ours and theirs in turn and keep the best of each, so that a busy moment hits both.

    The first call of each warms up and gives the results to compare: `difference` of the two (by default the largest
    difference relative to the largest value) must not exceed `tolerance`. At least and at most `repeats`, in between
    as many as fit in `budget` seconds. `theirs=None` says that the peer is not installed.
    """
    with limited(threads):
        result = ours()
        if theirs is None:
            best = min(_seconds(ours) for _ in range(repeats[0]))
            return Row(name, threads, best, peer_name, None, bar, "peer not installed", equal=False)
        error = (difference or relative_difference)(result, theirs())
        del result
        best, peer_best, spent, count = np.inf, np.inf, 0.0, 0
        while count < repeats[0] or (count < repeats[1] and spent < budget):
            one, two = _seconds(ours), _seconds(theirs)
            best, peer_best, spent, count = min(best, one), min(peer_best, two), spent + one + two, count + 1
    equal = bool(error <= tolerance)
    note = f"difference {error:.0e}" + ("" if equal else f", allowed {tolerance:.0e}")
    return Row(name, threads, float(best), peer_name, float(peer_best), bar, note, equal)


def relative_difference(ours: Any, theirs: Any) -> float:
    """Largest difference relative to the largest value."""
    return float(np.max(np.abs(ours - theirs)) / np.max(np.abs(theirs)))


def _seconds(call: Callable[[], Any]) -> float:
    start = perf_counter()
    call()
    return perf_counter() - start
