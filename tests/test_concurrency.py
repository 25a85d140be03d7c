"""The same bits as alone: from many threads at once, from processes started in every way, from joblib and Dask."""

from __future__ import annotations

import functools
import hashlib
import multiprocessing
import os
import signal
import sys
import threading
import time
import warnings
from concurrent.futures import ProcessPoolExecutor

import joblib
import numpy as np
import pytest
import scipy.sparse as sp

import manifast
from manifast import _threads
from manifast.extensions import RBF, SparseCode
from manifast.graphs import knn_graph
from manifast.kernels import approximate_knn, gaussian, knn, l1_code, laplacian, rbf_apply, sq_distances
from manifast.metrics import trustworthiness
from manifast.spectral import smallest_eigenvectors

pytestmark = pytest.mark.process
RNG = np.random.default_rng(0)
X = RNG.standard_normal((240, 6))
NEW = RNG.standard_normal((90, 6))
LABELS = np.arange(240) % 3
SINGLE = NEW.astype(np.float32)


@functools.cache
def models():
    """Fitted once, used by all threads of a process."""
    return [
        manifast.LPP().fit(X), manifast.Isomap(n_neighbors=7).fit(X), manifast.NSSE().fit(X, LABELS),
        manifast.LaplacianEigenmaps(extension=SparseCode()).fit(X), manifast.LocallyLinearEmbedding().fit(X),
        manifast.LGRM(kernel="rbf").fit(X), manifast.LaplacianEigenmaps(extension=RBF()).fit(X),
    ]  # fmt: skip


CALLS = {
    "sq_distances": lambda: sq_distances(X, NEW),
    "gaussian": lambda: gaussian(X, sigma=2.0),
    "rbf_apply": lambda: rbf_apply(NEW, X, X[:, :3], sigma=2.0),
    "brute force": lambda: knn(X, 9, queries=NEW, algorithm="brute"),
    "tree": lambda: knn(X, 9, algorithm="tree"),
    "clusters": lambda: approximate_knn(X, 5),
    "l1_code": lambda: l1_code(NEW[:20], X[:60]),
    "laplacian": lambda: laplacian(knn_graph(X, 8)),
    "trustworthiness": lambda: trustworthiness(X, X[:, :2]),
    "eigenvectors": lambda: smallest_eigenvectors(laplacian(knn_graph(X, 8))[0], 4),
    "fits": lambda: [model.embedding_ for model in (manifast.LPP().fit(X), manifast.NSSE().fit(X, LABELS),
                                                    manifast.LaplacianEigenmaps().fit(X), manifast.Isomap().fit(X))],
    "maps": lambda: [model.transform(rows) for model in models() for rows in (NEW, SINGLE, NEW[:1])],
}  # fmt: skip


def digest(result):
    if sp.issparse(result):
        return digest([result.data, result.indices, result.indptr])
    if isinstance(result, tuple | list):
        return hashlib.sha256("".join(map(digest, result)).encode()).hexdigest()
    return hashlib.sha256(b"" if result is None else np.ascontiguousarray(result).tobytes()).hexdigest()


def work(order=0):
    """What every call gives; each worker begins with another one."""
    names = list(CALLS)
    names = names[order % len(names) :] + names[: order % len(names)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: digest(CALLS[name]()) for name in names}


@pytest.fixture(scope="module")
def alone():
    return work()


def test_threads_that_share_models(alone):
    """As many at once as there are calls, so that different kernels and the same ones meet."""
    found, start = {}, threading.Barrier(len(CALLS))

    def run(order):
        start.wait()
        found[order] = work(order)

    threads = [threading.Thread(target=run, args=(order,)) for order in range(len(CALLS))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found.get(order) for order in range(len(CALLS))] == [alone] * len(CALLS)


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_processes(alone, method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} on this system")
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(method)) as pool:
        assert list(pool.map(work, range(3), timeout=300)) == [alone] * 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_forks_while_other_threads_fit_and_map(alone):
    """A child that waits for what a thread of its parent held is ended by the alarm, and seen by its status."""
    ended, running = threading.Event(), threading.Event()

    def busy():
        while not ended.is_set():
            work()
            running.set()

    threads = [threading.Thread(target=busy) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        running.wait()
        for order in range(6):
            child = os.fork()
            if child == 0:
                signal.alarm(120)
                os._exit(0 if work(order) == alone else 3)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    assert work() == alone


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_waits_while_a_thread_sets_those_of_blas():
    """OpenBLAS has a lock of its own there, which a child would find taken for ever."""
    inside, left = threading.Event(), []

    def sets():
        with _threads._blas_lock:
            inside.set()
            time.sleep(0.3)
            left.append(True)

    thread = threading.Thread(target=sets)
    thread.start()
    inside.wait()
    child = os.fork()
    if child == 0:
        os._exit(0 if left else 3)
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
    with _threads.one_blas_thread():  # the lock is free again
        pass


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_joblib(alone, backend):
    found = joblib.Parallel(n_jobs=2, backend=backend)(joblib.delayed(work)(order) for order in range(3))
    assert found == [alone] * 3


def test_dask_workers(alone):
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    folder = os.path.dirname(__file__)  # where the workers find this module
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=3, dashboard_address=None, worker_dashboard_address=None
    ) as cluster, distributed.Client(cluster) as client:
        client.run(sys.path.insert, 0, folder)
        assert client.gather(client.map(work, range(3), pure=False)) == [alone] * 3
