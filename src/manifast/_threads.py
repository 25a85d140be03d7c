"""The one place that decides how many threads a kernel uses."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from math import ceil
from numbers import Integral
from pathlib import Path

from manifast._core import dispatch

_loaded_in = os.getpid()
_lock = threading.Lock()
_active = 0  # kernels running now, in all Python threads


@cache
def _cgroup_cpus() -> int:
    """CPUs that the cgroup's quota pays for, rounded up; a large number where there is no quota."""
    unlimited = 1 << 30
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
    except (OSError, ValueError):
        try:
            quota = Path("/sys/fs/cgroup/cpu/cpu.cfs_quota_us").read_text().strip()
            period = Path("/sys/fs/cgroup/cpu/cpu.cfs_period_us").read_text().strip()
        except OSError:
            return unlimited
    if quota == "max" or int(quota) <= 0:
        return unlimited
    return max(1, ceil(int(quota) / int(period)))


def available_threads() -> int:
    """Threads a kernel uses by default.

    An explicit OMP_NUM_THREADS or threadpoolctl limit is taken as it is; otherwise CPU affinity and the cgroup quota
    bound it. A process forked from one that had loaded the library gets one: OpenMP's threads do not survive a fork.
    """
    if os.getpid() != _loaded_in:
        return 1
    threads = dispatch.max_threads()
    if "OMP_NUM_THREADS" not in os.environ:
        threads = min(threads, _cgroup_cpus())
        if hasattr(os, "sched_getaffinity"):
            threads = min(threads, len(os.sched_getaffinity(0)))
    return max(1, threads)


@contextmanager
def kernel_threads(n_threads: int | None) -> Iterator[int]:
    """Threads for one kernel call; calls that run side by side in several Python threads share what there is."""
    global _active
    if n_threads is not None:
        if not isinstance(n_threads, Integral) or isinstance(n_threads, bool) or n_threads < 1:
            raise ValueError(f"n_threads must be None or an integer of at least 1. Got {n_threads!r} instead.")
        yield 1 if os.getpid() != _loaded_in else int(n_threads)
        return
    with _lock:
        _active += 1
        share = max(1, available_threads() // _active)
    try:
        yield share
    finally:
        with _lock:
            _active -= 1
