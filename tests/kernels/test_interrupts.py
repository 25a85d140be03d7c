"""Ctrl-C inside kernels: how much work lies between two looks for signals, and what is left after an interrupt.

Nothing here is timed. Kernels are told to look whenever they could, and the looks are counted.
"""

import signal

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from manifast._core import dispatch
from manifast._linalg.multilevel import laplacian_eigenvectors
from manifast._linalg.sparse_cholesky import SparseCholesky
from manifast._local import alignment_matrix, barycenter_weights, hessian_matrix, lle_matrix, modified_lle_matrix
from manifast._paths import shortest_paths
from manifast._ranks import RowSpace
from manifast.kernels import (
    approximate_knn,
    gaussian,
    knn,
    l1_code,
    laplacian,
    neighbor_graph,
    rbf_apply,
    sq_distances,
)

RNG = np.random.default_rng(0)
X = RNG.standard_normal((1500, 200))
POINTS = RNG.standard_normal((20000, 6))
LISTS = (np.arange(1500)[:, None] + np.arange(1, 31)) % 1500
CLIQUES = (np.arange(2000)[:, None] + np.arange(1, 31)) % 2000
DISTANCES, NEIGHBORS = knn(RNG.random((3000, 3)), 12)
GRAPH = neighbor_graph(DISTANCES, NEIGHBORS, weights="distance")
ROWS, ATOMS = RNG.standard_normal((40, 60)), RNG.standard_normal((300, 60))


def grid(shape):
    """Laplacian of a grid plus a little on the diagonal."""
    A = sp.csr_array((1, 1))
    for n in shape:
        path = sp.diags_array([np.full(n - 1, -1.0), np.full(n, 2.1), np.full(n - 1, -1.0)], offsets=[-1, 0, 1])
        A = sp.kron(A, sp.eye_array(n)) + sp.kron(sp.eye_array(A.shape[0]), path)
    return sp.csr_array(A)


CUBE = SparseCholesky(grid((16, 16, 16)), n_threads=1)
CUBES = {threads: SparseCholesky(grid((16, 16, 16)), n_threads=threads) for threads in (1, 2)}
SQUARE = sp.csr_array(abs(grid((60, 60)) - sp.diags_array(grid((60, 60)).diagonal())))

# A call on so many threads, its work in units of its own, and the most of that between two looks: milliseconds.
KERNELS = {
    "sq_distances": (lambda threads: sq_distances(X, n_threads=threads), 1500**2 * 200, 1e7),
    "gaussian": (lambda threads: gaussian(X, sigma=9.0, n_threads=threads), 1500**2 * 200, 1e7),
    "rbf_apply": (lambda threads: rbf_apply(X, X, X[:, :4], sigma=9.0, n_threads=threads), 1500**2 * 200, 2e7),
    "brute force": (lambda threads: knn(X, 10, algorithm="brute", n_threads=threads)[1], 1500**2 * 200, 1e7),
    "ranks": (lambda threads: RowSpace(X, None, threads).ranks(LISTS), 1500**2 * 200, 1e7),
    "tree": (lambda threads: knn(POINTS, 10, algorithm="tree", n_threads=threads)[1], 20000, 100),
    "clusters": (lambda threads: approximate_knn(POINTS, 10, n_threads=threads)[1], 20000, 5),
    "l1_code": (lambda threads: l1_code(ROWS, ATOMS, n_threads=threads)[0].toarray(), 40, 1),
    "alignment_matrix": (lambda threads: alignment_matrix(POINTS[:2000], CLIQUES, dim=3,
                                                          n_threads=threads).toarray(), 2000, 50),
    "hessian_matrix": (lambda threads: hessian_matrix(POINTS[:2000], CLIQUES, dim=3,
                                                      n_threads=threads).toarray(), 2000, 50),
    "modified_lle_matrix": (lambda threads: modified_lle_matrix(POINTS[:2000], CLIQUES, dim=3,
                                                                n_threads=threads).toarray(), 2000, 50),
    "lle_matrix": (lambda threads: lle_matrix(POINTS[:2000], CLIQUES, n_threads=threads).toarray(), 2000, 50),
    "barycenter_weights": (lambda threads: barycenter_weights(POINTS[:2000], CLIQUES, n_threads=threads), 2000, 100),
    "neighbor_graph": (lambda threads: neighbor_graph(DISTANCES, NEIGHBORS, beta=1.0,
                                                      n_threads=threads).toarray(), 36000, 4e3),
    "laplacian": (lambda threads: laplacian(GRAPH, n_threads=threads)[0].toarray(), GRAPH.nnz, 1e4),
    "shortest_paths": (lambda threads: shortest_paths(GRAPH, np.arange(300), n_threads=threads), 300 * 3000, 1e4),
    "sparse Cholesky": (lambda threads: CUBES[threads].factor().solve(np.eye(4096, 3)), CUBE.flops, 1e6),
    "multilevel": (lambda threads: laplacian_eigenvectors(SQUARE, 4, n_threads=threads)[1], SQUARE.nnz, 1e3),
}  # fmt: skip


@pytest.fixture
def looks():
    """Runs a call that looks for signals whenever it could, as if Ctrl-C came at one look; how often it looked."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def count(call, interrupt_at=0):
        dispatch.watch_polls(-1.0, interrupt_at)
        if interrupt_at:
            with pytest.raises(KeyboardInterrupt):
                call()
        else:
            call()
        return dispatch.polls()

    yield count
    dispatch.watch_polls()
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("name", KERNELS)
def test_little_work_between_two_looks(level, looks, name):
    call, work, most = KERNELS[name]
    found = looks(lambda: call(1))
    assert found > 0
    assert work / found <= most


@pytest.mark.parametrize("name", KERNELS)
def test_an_interrupt_ends_the_call_at_once_and_leaves_nothing(looks, name):
    call = KERNELS[name][0]
    expected = call(1)
    whole = looks(lambda: call(1))
    for at in sorted({1, whole // 2, whole} - {0}):
        assert looks(lambda: call(1), interrupt_at=at) == at  # no look after it: nothing went on
    assert_array_equal(call(1), expected)


@pytest.mark.parametrize("name", KERNELS)
def test_an_interrupt_ends_all_threads(looks, name):
    call = KERNELS[name][0]
    expected = call(2)
    dispatch.watch_polls(-1.0, 1)
    try:
        call(2)
    except KeyboardInterrupt:
        assert dispatch.polls() == 1
    else:
        assert dispatch.polls() == 0  # the other thread had done it all
    dispatch.watch_polls()
    assert_array_equal(call(2), expected)


def test_a_short_call_does_not_look(looks):
    dispatch.watch_polls(3600.0)
    sq_distances(X[:50])
    assert dispatch.polls() == 0


REAL = """
import signal, sys, time
import numpy as np
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job starts with SIGINT ignored
from manifast.kernels import l1_code, sq_distances
rng = np.random.default_rng(0)
normal = rng.standard_normal
threads = {threads}
if {kernel!r} == "sq_distances":
    X = normal((12000, 2000)); out = np.empty((12000, 12000))
    call = lambda: sq_distances(X, out=out, n_threads=threads)
else:  # the second row takes minutes; the thread that hears of Ctrl-C may have the first, which is short
    D = normal((600, 300)) @ normal((300, 600)) + 1e-8 * normal((600, 600))
    X = np.vstack([normal(600) * (rng.random(600) < 0.1) @ D, normal(600)])
    call = lambda: l1_code(X, D, errors=False, n_threads=threads)
print("ready", flush=True)
try:
    call()
except KeyboardInterrupt as error:
    where = error.__traceback__
    while where.tb_next is not None:
        where = where.tb_next
    # Without a look inside the kernel it would come after it, in Python.
    assert where.tb_frame.f_code.co_filename.endswith(".pyx"), where.tb_frame
    print(time.time(), flush=True)
else:
    sys.exit("the call was not interrupted")
assert np.array_equal(sq_distances(X[:40], n_threads=1), sq_distances(X[:40], n_threads=2))
"""


@pytest.mark.process
@pytest.mark.parametrize("kernel", ["sq_distances", "l1_code"])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_signal_ends_a_long_call(seconds_to_interrupt, kernel, threads):
    """The last line of the child is when it ended; how long that took is not judged."""
    seconds_to_interrupt(REAL.format(kernel=kernel, threads=threads), wait=0.5)
