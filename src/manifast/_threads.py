"""The one place that decides how many threads a kernel uses."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from math import ceil
from numbers import Integral
from pathlib import Path
from typing import Any, Generic, TypeVar, overload

from manifast._core import dispatch
from manifast._validation import shown

_T = TypeVar("_T")
_UNLIMITED = 1 << 30
_home = os.getpid()
_told = bool(os.environ.get("OMP_NUM_THREADS"))  # read now, as OpenMP does: it never looks again
# Kernels running now with n_threads=None, in all Python threads. References, so that a call whose end was itself
# interrupted leaves with its traceback; and a set, whose methods no signal and no fork can cut in two: no lock.
_active: set[weakref.ref[kernel_threads]] = set()


def _after_fork() -> None:
    """The child has no other thread: nobody there will release the lock, end a running kernel or lift BLAS's limit."""
    global _blas_lock
    _blas_lock = threading.RLock()
    _active.clear()
    for user in [user for user in _blas_users if user.thread != threading.get_ident()]:
        _blas_users.discard(user)


def _before_fork() -> None:
    """No thread is inside BLAS's own lock, which the child would find taken for ever, while it sets BLAS's threads."""
    _blas_lock.acquire()


def _after_fork_in_parent() -> None:
    with suppress(RuntimeError):  # a signal came while the lock was waited for
        _blas_lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork, after_in_parent=_after_fork_in_parent)


class lazy(Generic[_T]):
    """A property that is computed on first use and kept in the instance's dictionary.

    That of functools in Python 3.11 holds a lock meanwhile, for all instances together: a fork beside it would leave
    the child waiting for ever.
    """

    def __init__(self, function: Callable[[Any], _T]) -> None:
        self._function = function
        self.__doc__ = function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> lazy[_T]: ...

    @overload
    def __get__(self, instance: object, owner: type | None = None) -> _T: ...

    def __get__(self, instance: object | None, owner: type | None = None) -> lazy[_T] | _T:
        if instance is None:
            return self
        value = self._function(instance)
        instance.__dict__[self._name] = value
        return value


def _quota(directory: Path) -> int:
    """CPUs that the quota of one cgroup pays for, rounded up; version 2 has one file for it, version 1 has two."""
    try:
        try:
            quota, period = (directory / "cpu.max").read_text().split()
        except FileNotFoundError:
            quota = (directory / "cpu.cfs_quota_us").read_text()
            period = (directory / "cpu.cfs_period_us").read_text()
        return ceil(int(quota) / int(period)) if int(quota) > 0 else _UNLIMITED
    except (OSError, ValueError):  # no such cgroup, or "max": no quota
        return _UNLIMITED


@cache
def cgroup_cpus(root: str = "/") -> int:
    """CPUs that the quotas of this process's cgroup and of those around it pay for; a large number without quota."""
    return max(1, min(_quota(directory) for directory in cgroup_directories("cpu", root)))


def cgroup_directories(controller: str, root: str = "/") -> set[Path]:
    """Where the limits of this process's cgroup and of those around it would be.

    Inside a container the cgroup's own directory is the mounted one, and the path in /proc/self/cgroup may not exist.
    """
    mount = Path(root, "sys/fs/cgroup")
    try:
        lines = Path(root, "proc/self/cgroup").read_text().splitlines()
    except OSError:
        lines = []
    directories = {mount, mount / controller}
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        group = (mount / controller if controllers else mount) / path.lstrip("/")
        directories.update(parent for parent in (group, *group.parents) if parent.is_relative_to(mount))
    return directories


@cache
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


class _BlasUser:
    """One block that wants BLAS on one thread."""

    __slots__ = ("thread",)

    def __init__(self) -> None:
        self.thread = threading.get_ident()


_blas_lock = threading.RLock()  # one that lets a signal handler in, which may fit a model too
_blas_users: set[_BlasUser] = set()
_blas_before: list[tuple[Any, int]] = []  # what the last user gives back; empty where BLAS has no limit of ours


def _limit_blas(user: _BlasUser) -> None:
    with _blas_lock:
        _blas_users.add(user)
        if not _blas_before:
            _blas_before.extend([(library, library.num_threads) for library in _blas().lib_controllers])
        for library, _ in _blas_before:
            _set_blas_threads(library, 1)


def _release_blas(user: _BlasUser) -> None:
    with _blas_lock:
        _blas_users.discard(user)
        if not _blas_users:
            for library, threads in _blas_before:
                _set_blas_threads(library, threads)
            _blas_before.clear()


def _set_blas_threads(library: Any, threads: int) -> None:
    """From whichever Python thread: threadpoolctl from 3.7 on listens to the first one only, unless it is told not to.

    Under our lock: users side by side are counted here.
    """
    forget = getattr(library, "clear_controlling_thread", None)
    if forget is not None:
        forget(force=True)
    library.set_num_threads(threads)
    if forget is not None:
        forget(force=True)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS on one thread: for many small products its threads cost more than they bring.

    BLAS has one limit for the whole process: the first of several blocks side by side sets it, the last one lifts it.
    """
    user = _BlasUser()
    try:
        _limit_blas(user)
        yield
    finally:
        try:
            _release_blas(user)
        except BaseException:  # interrupted: the limit must not stay
            _release_blas(user)
            raise


def available_threads() -> int:
    """Threads a kernel uses by default.

    OpenMP's own number, which knows OMP_NUM_THREADS and threadpoolctl's limits; unless OMP_NUM_THREADS was set, CPU
    affinity and the cgroup's quota bound it. A forked process gets one: OpenMP's threads do not survive a fork.
    """
    if os.getpid() != _home:
        return 1
    threads = dispatch.max_threads()
    if not _told:
        threads = min(threads, cgroup_cpus())
        if hasattr(os, "sched_getaffinity"):
            threads = min(threads, len(os.sched_getaffinity(0)))
    return max(1, threads)


_one = ContextVar("manifast_one_thread", default=False)


@contextmanager
def held(variable: ContextVar[_T], value: _T) -> Iterator[None]:
    """A context variable with this value inside and its old one after that, wherever a signal comes."""
    before = variable.get()
    try:
        try:
            variable.set(value)
            yield
        finally:
            variable.set(before)
    finally:
        variable.set(before)


@contextmanager
def one_thread() -> Iterator[None]:
    """Kernels of this Python thread on one thread each: inside a task of an engine that runs many of them."""
    with held(_one, True):
        yield


class kernel_threads:
    """Threads for one kernel call; calls that run side by side in several Python threads share what there is.

    An explicit number is taken as it is, up to four per CPU: OpenMP ends the process when it cannot start a thread.
    A class, because a call may be shorter than what a generator costs as a context.
    """

    __slots__ = ("__weakref__", "_asked", "_own")

    _own: weakref.ref[kernel_threads] | None

    def __init__(self, n_threads: int | None) -> None:
        whole = type(n_threads) is int or (isinstance(n_threads, Integral) and not isinstance(n_threads, bool))
        if n_threads is not None and not (whole and n_threads >= 1):
            raise ValueError(f"n_threads must be None or an integer of at least 1. Got {shown(n_threads)} instead.")
        self._asked = n_threads

    def __enter__(self) -> int:
        if self._asked is not None:
            if self._asked == 1 or os.getpid() != _home:
                return 1
            return int(min(self._asked, 4 * (os.cpu_count() or 1)))
        if _one.get():
            self._own = None
            return 1
        # Made and added at once: the set keeps the hash that `discard` needs when this object is gone.
        _active.add(own := weakref.ref(self, _active.discard))
        self._own = own
        return max(1, available_threads() // max(1, len(_active)))

    def __exit__(self, *_: object) -> None:
        if self._asked is None and self._own is not None:
            _active.discard(self._own)
