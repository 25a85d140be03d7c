"""What `verbose` shows: stages and their times, the progress of loops, and, from 2 on, what the solvers do.

All lines go through the logger "manifast", whose handler writes them to stderr. An estimator opens `verbosity` around
its fit; what is called inside names its stages without being handed a parameter. Loops also tell their steps to whoever
follows the fit, such as scikit-learn's callbacks, who may end them.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from numbers import Integral
from typing import Any, Protocol

from manifast._threads import held

_SECONDS = 2.0  # between two lines about the progress of a loop
_follower: ContextVar[Follower | None] = ContextVar("manifast_follower", default=None)
_state: ContextVar[tuple[int, str]] = ContextVar("manifast_verbosity", default=(0, ""))  # level, name of the estimator


class Follower(Protocol):
    """Who is told of the steps of the outermost loop."""

    def begin(self, name: str, total: int) -> None: ...

    def step(self) -> bool:
        """A step is done; True where the loop is to end."""
        ...

    def end(self) -> None: ...


class _Stderr(logging.Handler):
    """Writes to what sys.stderr is at that moment, so that redirected output gets the lines, too."""

    def emit(self, record: logging.LogRecord) -> None:
        print(self.format(record), file=sys.stderr, flush=True)


_logger = logging.getLogger("manifast")
if not _logger.handlers:
    _logger.addHandler(_Stderr())
    _logger.setLevel(logging.INFO)
    _logger.propagate = False  # a handler of the root logger would write every line twice


@contextmanager
def verbosity(verbose: Any, name: str) -> Iterator[None]:
    """What is shown inside, under the name of an estimator; never less than around it."""
    if not isinstance(verbose, Integral) or verbose < 0:
        raise ValueError(f"verbose must be False, True, 0, 1 or 2. Got {verbose!r} instead.")
    outer, prefix = _state.get()
    with held(_state, (max(outer, int(verbose)), f"{prefix} > {name}" if prefix else name)):
        yield


def stages() -> bool:
    """Whether stages are shown."""
    return _state.get()[0] >= 1


def details() -> bool:
    """Whether solvers say what they do."""
    return _state.get()[0] >= 2


def log(message: str) -> None:
    """One line, under the name of the estimator at work."""
    name = _state.get()[1]
    _logger.info("%s", f"{name}: {message}" if name else message)


@contextmanager
def stage(name: str) -> Iterator[None]:
    """A part of a fit: a line when it begins, and one with its seconds when it ends."""
    if not stages():
        yield
        return
    log(f"{name} ...")
    begin = time.perf_counter()
    yield
    log(f"{name}: {time.perf_counter() - begin:.2f} s")


@contextmanager
def following(follower: Follower) -> Iterator[None]:
    """Loops inside tell their steps to the follower."""
    with held(_follower, follower):
        yield


class Steps:
    """The steps of a loop, told to whoever follows the fit; loops inside it are not told."""

    def __init__(self, name: str, total: int) -> None:
        self._told = _follower.get()
        self._left = total
        if self._told is not None:
            self._token = _follower.set(None)
            self._told.begin(name, total)

    def done(self, count: int = 1) -> bool:
        """`count` more steps are done; True where the follower wants the loop to end."""
        stop = False
        for _ in range(min(count, self._left) if self._told is not None else 0):
            self._left -= 1
            stop |= self._told.step()  # type: ignore[union-attr]
        return stop

    def close(self) -> None:
        """The loop is over."""
        if self._told is not None:
            self._told.end()
            _follower.reset(self._token)
            self._told = None


class Progress:
    """How far a loop is: a bar on a terminal where tqdm is installed, else a line every few seconds; one at its end."""

    def __init__(self, name: str, total: int, unit: str = "") -> None:
        self._name, self._total, self._unit = name, total, f" {unit}" if unit else ""
        self._begin = self._said = time.perf_counter()
        self._bar = _bar(name, total)

    def __call__(self, done: int, note: str = "") -> None:
        """So many are done; a note is put at the end of the line."""
        now = time.perf_counter()
        if self._bar is not None:
            self._bar.set_postfix_str(note.lstrip(", "), refresh=False)
            self._bar.update(done - self._bar.n)
            if done < self._total:
                return
            self._bar.close()
        if done < self._total and now - self._said < _SECONDS:
            return
        self._said, taken = now, now - self._begin
        left = f", about {taken * (self._total - done) / done:.0f} s to go" if done < self._total else ""
        log(f"{self._name}: {done} of {self._total}{self._unit}, {taken:.1f} s{left}{note}")


def _bar(name: str, total: int) -> Any:
    """A bar of tqdm's on stderr, None where that is no terminal or tqdm is not installed."""
    if not stages() or not getattr(sys.stderr, "isatty", bool)():
        return None
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    return tqdm(total=total, desc=f"{_state.get()[1]}: {name}", file=sys.stderr, leave=False, mininterval=0.2)
