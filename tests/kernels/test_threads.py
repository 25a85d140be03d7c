"""How many threads a kernel uses, and that it behaves among other threads, processes and signals."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
import time
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from manifast import _threads
from manifast._core import dispatch
from manifast._threads import available_threads, cgroup_cpus, kernel_threads
from manifast.kernels import rbf_apply, sq_distances

needs_openmp = pytest.mark.skipif(not dispatch.build()["openmp"], reason="built without OpenMP: always one thread")
needs_affinity = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no CPU affinity on this system")
needs_fork = pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork on this system")
UNLIMITED = cgroup_cpus("/there is nothing here")
SHOW = "from manifast._threads import available_threads; print(available_threads())"
RNG = np.random.default_rng(0)


# What decides the number


@needs_openmp
@pytest.mark.process
@pytest.mark.parametrize("threads", [1, 3])
def test_omp_num_threads_is_taken_as_it_is(run_python, threads):
    assert int(run_python(SHOW, OMP_NUM_THREADS=str(threads))) == threads


@pytest.mark.process
def test_an_empty_omp_num_threads_says_nothing(run_python):
    assert int(run_python(SHOW, OMP_NUM_THREADS="")) == int(run_python(SHOW))


@needs_openmp
@pytest.mark.process
def test_omp_num_threads_set_too_late_does_not_lift_the_bounds(run_python):
    code = f"import os, manifast.kernels; os.environ['OMP_NUM_THREADS'] = '64'; {SHOW}"
    assert int(run_python(code)) == int(run_python(SHOW))


@needs_affinity
@pytest.mark.process
@pytest.mark.parametrize("when", ["before", "after"])
def test_cpu_affinity_bounds_the_number(run_python, when):
    pin = "import os; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])"
    load = "import manifast.kernels"
    assert int(run_python(f"{pin}; {load}; {SHOW}" if when == "before" else f"{load}; {pin}; {SHOW}")) == 1


def test_threadpoolctl_limits_the_number():
    from threadpoolctl import threadpool_limits

    before = available_threads()
    with threadpool_limits(1):
        assert available_threads() == 1
        with kernel_threads(None) as threads:
            assert threads == 1
    assert available_threads() == before


@needs_openmp
def test_an_explicit_number_is_taken_as_it_is():
    with kernel_threads(np.int64(3)) as threads:
        assert threads == 3


@pytest.mark.parametrize("n_threads", [10**6, 2**62])
def test_an_absurd_number_is_harmless(n_threads):
    X = RNG.standard_normal((300, 3))
    assert_array_equal(sq_distances(X, n_threads=n_threads), sq_distances(X, n_threads=1))


@pytest.mark.parametrize("n_threads", [0, -1, 1.5, True, "2"])
def test_wrong_numbers_are_refused(n_threads):
    with pytest.raises(ValueError, match=r"n_threads must be None or an integer of at least 1\. Got"):
        sq_distances(np.zeros((2, 2)), n_threads=n_threads)


# Quotas of cgroups


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(root)


@pytest.mark.parametrize(
    ("files", "cpus"),
    [
        ({}, UNLIMITED),
        ({"sys/fs/cgroup/cpu.max": "max 100000\n"}, UNLIMITED),
        ({"sys/fs/cgroup/cpu.max": "nonsense"}, UNLIMITED),
        ({"sys/fs/cgroup/cpu.max": "200000 100000\n"}, 2),
        ({"sys/fs/cgroup/cpu.max": "150000 100000\n"}, 2),
        ({"sys/fs/cgroup/cpu.max": "1000 100000\n"}, 1),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "300000 100000\n"}, 3),
        ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max": "300000 100000\n"}, 3),
        (
            {
                "proc/self/cgroup": "0::/a/b\n",
                "sys/fs/cgroup/a/b/cpu.max": "max 100000\n",
                "sys/fs/cgroup/a/cpu.max": "200000 100000\n",
                "sys/fs/cgroup/c/cpu.max": "100000 100000\n",
            },
            2,
        ),
    ],
)
def test_quota_of_version_2(tmp_path, files, cpus):
    assert cgroup_cpus(write(tmp_path, files)) == cpus


@pytest.mark.parametrize(
    ("membership", "folder", "quota", "cpus"),
    [
        (None, "cpu", "-1", UNLIMITED),
        (None, "cpu", "250000", 3),
        ("4:memory:/a\n3:cpu,cpuacct:/a/b\n", "cpu/a", "200000", 2),
        ("4:memory:/a\n3:cpu,cpuacct:/a/b\n", "memory/a", "100000", UNLIMITED),
        ("3:cpu,cpuacct:/not/visible/here\n", "cpu", "400000", 4),
    ],
)
def test_quota_of_version_1(tmp_path, membership, folder, quota, cpus):
    files = {
        f"sys/fs/cgroup/{folder}/cpu.cfs_quota_us": f"{quota}\n",
        f"sys/fs/cgroup/{folder}/cpu.cfs_period_us": "100000\n",
    }
    if membership:
        files["proc/self/cgroup"] = membership
    assert cgroup_cpus(write(tmp_path, files)) == cpus


@needs_openmp
@pytest.mark.process
def test_quota_bounds_the_number(monkeypatch):
    monkeypatch.setattr(_threads, "_told", False)
    monkeypatch.setattr(_threads, "cgroup_cpus", lambda: 1)
    assert available_threads() == 1


# Python threads side by side


def test_calls_side_by_side_share(monkeypatch):
    monkeypatch.setattr(_threads, "available_threads", lambda: 4)
    with kernel_threads(None) as first:
        with kernel_threads(None) as second, kernel_threads(None) as third:
            assert (first, second, third) == (4, 2, 1)
        with kernel_threads(2) as explicit, kernel_threads(None) as again:
            assert (explicit, again) == (min(2, 4 * os.cpu_count()), 2)
    with pytest.raises(KeyError), kernel_threads(None):
        raise KeyError
    with kernel_threads(None) as alone:
        assert alone == 4


def test_many_python_threads_get_the_same_bits():
    X = RNG.standard_normal((400, 17))
    expected = sq_distances(X, n_threads=1)
    with ThreadPoolExecutor(6) as pool:
        for result in pool.map(lambda _: sq_distances(X), range(60)):
            assert_array_equal(result, expected)
    assert not _threads._active


def test_other_python_threads_run_during_a_call():
    """No thread is made to give up Python's lock here: the other one runs only if a call gives it up by itself."""
    X = RNG.standard_normal((1000, 200))
    ticks, done = [0], threading.Event()

    def tick():
        while not done.is_set():
            ticks[0] += 1
            time.sleep(0)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e6)
    ticker = threading.Thread(target=tick)
    ticker.start()
    try:
        before, calls = ticks[0], 0
        while ticks[0] == before and calls < 2000:  # a busy machine may need more than one
            sq_distances(X, n_threads=1)
            calls += 1
        during = ticks[0] - before
    finally:
        sys.setswitchinterval(interval)
        done.set()
        ticker.join()
    assert during > 0


# Other processes


def _in_child(X, queue):
    with kernel_threads(None) as default, kernel_threads(2) as explicit:
        pass
    queue.put((default, explicit, sq_distances(X), rbf_apply(X, X[:50], X[:50], sigma=2.0, n_threads=2)))


@needs_fork
@pytest.mark.process
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_works_and_gets_the_same_bits():
    X = RNG.standard_normal((500, 20))
    distances, applied = sq_distances(X, n_threads=2), rbf_apply(X, X[:50], X[:50], sigma=2.0, n_threads=2)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(X, queue))
    child.start()
    default, explicit, child_distances, child_applied = queue.get(timeout=60)
    child.join(60)
    assert child.exitcode == 0
    assert (default, explicit) == (1, 1)
    assert_array_equal(child_distances, distances)
    assert_array_equal(child_applied, applied)
    assert_array_equal(sq_distances(X, n_threads=2), distances)


@needs_fork
@pytest.mark.process
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_while_a_kernel_runs_leaves_nothing_locked():
    context = multiprocessing.get_context("fork")
    with _threads._blas_lock, kernel_threads(None), kernel_threads(3):
        queue = context.Queue()
        child = context.Process(target=_in_child, args=(np.eye(50), queue))
        child.start()
        queue.get(timeout=60)
        child.join(60)
        assert child.exitcode == 0


FORKS = """
import os, signal, threading, warnings
import numpy as np
from manifast.kernels import knn, laplacian, neighbor_graph, sq_distances
warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside other threads, which is what is tried here
rng = np.random.default_rng(0)
X = rng.standard_normal((3000, 20))
W = neighbor_graph(*knn(X, 10), weights="binary")
calls = (
    lambda: knn(X, 5, queries=X[:3], n_threads=2),  # few rows: every thread searches a part, and they agree at the end
    lambda: laplacian(W, n_threads=2),
    lambda: sq_distances(X[:500], n_threads=2),
)
ended, running = threading.Event(), threading.Event()
def work():
    while not ended.is_set():
        for call in calls:
            call()
        running.set()
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
running.wait()
try:
    for _ in range(120):
        child = os.fork()
        if child == 0:
            signal.alarm(60)  # a child that waits for a lock is ended by that, and seen by its status
            for call in calls:
                call()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
finally:
    ended.set()
    for thread in threads:
        thread.join()
"""


@needs_fork
@pytest.mark.process
def test_many_forks_while_other_threads_are_inside_kernels(run_python):
    run_python(FORKS, timeout=300)


@needs_openmp
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the symbols of an ELF library")
def test_no_kernel_takes_a_lock_of_openmp_that_a_fork_could_leave_locked():
    library = Path(dispatch.__file__).read_bytes()
    for name in (b"GOMP_critical_start", b"GOMP_atomic_start", b"__kmpc_critical"):
        assert name not in library


# Signals and BLAS


def test_interrupts_leave_no_kernel_counted(monkeypatch):
    """An exception wherever a signal handler could raise one: before each line, inside the entry and exit as well."""
    monkeypatch.setattr(_threads, "available_threads", lambda: 4)

    def interrupted_at(line):
        seen = 0

        def trace(frame, event, argument):
            nonlocal seen
            if frame.f_code.co_filename != _threads.__file__:
                return None
            seen += event in ("call", "line")
            if seen == line and event in ("call", "line"):
                sys.settrace(None)
                raise KeyboardInterrupt
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            with kernel_threads(None):
                pass
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(before)
        return False

    line = 1
    while interrupted_at(line):
        line += 1
    assert line > 5
    assert not _threads._active
    with kernel_threads(None) as threads:
        assert threads == 4


@pytest.mark.process
@pytest.mark.skipif(not hasattr(os, "kill") or sys.platform == "win32", reason="no signals of this kind")
def test_a_signal_handler_may_call_kernels_and_fit(run_python):
    run_python("""
import signal
import numpy as np
from manifast import _threads
from manifast._threads import one_blas_thread
from manifast.kernels import sq_distances
def handler(*_):
    with one_blas_thread():
        sq_distances(np.eye(3))
signal.signal(signal.SIGALRM, handler)
before = [library.num_threads for library in _threads._blas().lib_controllers]
with _threads._blas_lock, _threads.kernel_threads(None):
    signal.raise_signal(signal.SIGALRM)
with one_blas_thread():
    signal.raise_signal(signal.SIGALRM)
    assert all(library.num_threads == 1 for library in _threads._blas().lib_controllers)
assert [library.num_threads for library in _threads._blas().lib_controllers] == before
assert not _threads._active
""")


class Library:
    """A BLAS library as threadpoolctl shows it."""

    def __init__(self):
        self.num_threads = 7

    def set_num_threads(self, threads):
        self.num_threads = threads


@pytest.fixture
def library(monkeypatch):
    only = Library()
    monkeypatch.setattr(_threads, "_blas", lambda: types.SimpleNamespace(lib_controllers=[only]))
    return only


def test_blocks_side_by_side_give_blas_its_threads_back(library):
    """The first to come is the first to go: what the second found must not be what is left."""
    first, second = _threads.one_blas_thread(), _threads.one_blas_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert library.num_threads == 1
    second.__exit__(None, None, None)
    assert library.num_threads == 7


def test_many_threads_give_blas_its_threads_back(library):
    def work(_):
        for _ in range(50):
            with _threads.one_blas_thread():
                assert library.num_threads == 1

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(32)))
    assert library.num_threads == 7


def test_an_interrupted_block_gives_blas_its_threads_back(library, monkeypatch):
    original, calls = _threads._release_blas, []

    def interrupted(user):
        calls.append(user)
        if len(calls) == 1:
            raise KeyboardInterrupt
        original(user)

    monkeypatch.setattr(_threads, "_release_blas", interrupted)
    with pytest.raises(KeyboardInterrupt), _threads.one_blas_thread():
        pass
    assert library.num_threads == 7


@needs_openmp
@pytest.mark.process
def test_joblib_workers_do_not_oversubscribe(run_python):
    code = f"""
import os
from joblib import Parallel, delayed
from manifast._threads import available_threads
if __name__ == "__main__":
    print(max(Parallel(n_jobs=2, backend="loky")(delayed(available_threads)() for _ in range(4))))
    print(max(1, {os.cpu_count()} // 2))
"""
    seen, fair = map(int, run_python(code).split())
    assert seen <= fair
