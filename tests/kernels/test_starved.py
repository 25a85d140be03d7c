"""No memory: every allocation of the compiled parts fails once, one after another. The call raises MemoryError, leaves
nothing behind, and the next one gives the same bits.

`starve.c`, preloaded into a process of its own, counts the allocations of the package as it is installed. This file is
also what runs there.
"""

import ctypes
import gc
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

FOLDER = Path(__file__).parent


def grid(side):
    """The graph of a square grid."""
    path = sp.diags_array([np.ones(side - 1), np.ones(side - 1)], offsets=[-1, 1])
    one = sp.eye_array(side)
    return sp.csr_array(sp.kron(path, one) + sp.kron(one, path))


def calls():
    """Every kernel and handle by name, as a function of a number of threads; small, but past the sizes that need one
    thread only."""
    from manifast import _local, _paths
    from manifast._core import kdtree, knn, l1, multilevel
    from manifast._core.distances import Columns
    from manifast._core.rbf import Centers
    from manifast._kernels import affine_product, heat_mean
    from manifast._linalg.sparse_cholesky import SparseCholesky
    from manifast._ranks import RowSpace
    from manifast.kernels import (
        approximate_knn,
        gaussian,
        l1_code,
        laplacian,
        neighbor_graph,
        rbf_apply,
        sq_distances,
    )  # fmt: skip
    from manifast.kernels import knn as nearest

    rng = np.random.default_rng(0)
    X, wide, few = rng.standard_normal((700, 5)), rng.standard_normal((300, 40)), rng.standard_normal((60, 5))
    single = wide.astype(np.float32)
    distances, near = nearest(X, 8, n_threads=1)
    cliques, graph = near[:, :7], neighbor_graph(distances, near, weights="distance", n_threads=1)
    field = grid(40)
    matrix = sp.csr_array(laplacian(field)[0] + 0.1 * sp.eye_array(1600))
    rows, atoms = rng.standard_normal((12, 20)), rng.standard_normal((50, 20))

    def prepared(kind, x, q):
        def call(threads):
            made = kind(x, threads)
            out = np.empty((len(q), 4), x.dtype), np.empty((len(q), 4), np.int64)
            made.knn(q, *out, threads)
            return out
        return call  # fmt: skip

    def columns(threads):
        out = np.empty((60, 700))
        Columns(X, threads).sq_distances(few, 0.5, out, threads)
        return out

    def centers(threads):
        out = np.empty((60, 3))
        Centers(X, np.ascontiguousarray(X[:, :3]), threads).rbf_apply(few, 0.5, out, threads)
        return out

    def dictionary(threads):
        e = np.empty(rows.shape)
        return (*l1.Dictionary(atoms, 12, threads).code(rows, 0.1, 1e-9, None, e, threads)[:3], e)

    def hierarchy(threads):
        made = multilevel.Multilevel(field.indptr.astype(np.int64), field.indices.astype(np.int32), field.data, threads)
        return made.order()

    return {
        "sq_distances": lambda threads: sq_distances(wide, n_threads=threads),
        "sq_distances float32": lambda threads: sq_distances(single, single[:50], n_threads=threads),
        "gaussian": lambda threads: gaussian(wide, sigma=3.0, n_threads=threads),
        "rbf_apply": lambda threads: rbf_apply(wide, wide, wide[:, :4], sigma=6.0, n_threads=threads),
        "affine": lambda threads: affine_product(wide, np.ascontiguousarray(wide[:40, :6]), n_threads=threads),
        "heat_mean": lambda threads: heat_mean(distances, near, X, 1.0, others=False),
        "brute force": lambda threads: nearest(wide, 6, algorithm="brute", n_threads=threads),
        "brute force float32": lambda threads: nearest(single, 6, algorithm="brute", n_threads=threads),
        "one query": lambda threads: nearest(wide, 6, queries=wide[:1], algorithm="brute", n_threads=threads),
        "tree": lambda threads: nearest(X, 8, algorithm="tree", n_threads=threads),
        "clusters": lambda threads: approximate_knn(np.vstack([X, X + 3, X - 3, X + 9]), 5, n_threads=threads),
        "ranks": lambda threads: RowSpace(X, None, threads).ranks(near),
        "prepared rows": prepared(knn.Points, X, few),
        "prepared tree": prepared(kdtree.Tree, X, few),
        "prepared columns": columns,
        "prepared centers": centers,
        "l1_code": lambda threads: l1_code(rows, atoms, n_threads=threads),
        "l1_code without errors": lambda threads: l1_code(rows, atoms, errors=False, lam=0.1, n_threads=threads),
        "dictionary": dictionary,
        "neighbor_graph": lambda threads: neighbor_graph(distances, near, beta=1.0, n_threads=threads),
        "neighbor_graph mutual": lambda threads: neighbor_graph(distances, near, weights="binary", mode="mutual",
                                                                n_threads=threads),
        "laplacian": lambda threads: laplacian(graph, normalization="sym", n_threads=threads),
        "shortest_paths": lambda threads: _paths.shortest_paths(graph, np.arange(40), n_threads=threads),
        "landmark_map": lambda threads: _paths.landmark_map(
            distances, near, np.abs(rng_of(700, 30)), np.ones(30), rng_of(30, 2), np.zeros(2), n_threads=threads),
        "alignment_matrix": lambda threads: _local.alignment_matrix(X, cliques, dim=2, n_threads=threads),
        "hessian_matrix": lambda threads: _local.hessian_matrix(X, cliques, dim=2, n_threads=threads),
        "modified_lle_matrix": lambda threads: _local.modified_lle_matrix(X, cliques, dim=2, n_threads=threads),
        "lle_matrix": lambda threads: _local.lle_matrix(X, cliques, n_threads=threads),
        "barycenter_weights": lambda threads: _local.barycenter_weights(X, cliques, n_threads=threads),
        "sparse Cholesky": lambda threads: SparseCholesky(matrix, n_threads=threads).factor().solve(np.ones((1600, 2))),
        "multilevel": hierarchy,
    }  # fmt: skip


def rng_of(*shape):
    return np.random.default_rng(1).standard_normal(shape)


def parts(result):
    if sp.issparse(result):
        return [result.data, result.indices, result.indptr]
    if result is None:
        return []
    return [result] if isinstance(result, np.ndarray | float) else [part for each in result for part in parts(each)]


def same(result, expected):
    return all(np.array_equal(one, other) for one, other in zip(result, expected, strict=True))


def starved(name, call, library):
    """How many allocations the call makes; stops with a sentence where a failed one was not dealt with."""
    expected, allocations = parts(call(1)), 0
    for threads in (1, 2):
        for number in range(100_000):
            gc.collect(0)
            before = library.starve_live()
            library.starve_at(number)
            try:
                result = parts(call(threads))
            except MemoryError:
                result = None
            made = library.starve_count()
            library.starve_at(-1)
            if made <= number:  # all went well before its turn came
                assert result is not None, f"{name}: MemoryError without one"
                allocations = max(allocations, made)
                break
            # Of two threads one may do all the work where the other has no memory.
            assert result is None or (threads > 1 and same(result, expected)), f"{name}: allocation {number} of {made}"
            result = None
            if library.starve_live() != before:
                gc.collect()
            left = library.starve_live() - before
            assert left == 0, f"{name}: {left} pieces of memory are lost after allocation {number} on {threads} threads"
        assert same(parts(call(threads)), expected), f"{name}: other bits"
    return allocations


COMPILER = next(filter(None, map(shutil.which, (os.environ.get("CC") or "cc", "gcc", "clang"))), None)


@pytest.mark.skipif(sys.platform != "linux", reason="preloads a library")
@pytest.mark.skipif(COMPILER is None, reason="needs a C compiler: CC, cc, gcc or clang")
def test_every_allocation_may_fail(tmp_path):
    """Also under AddressSanitizer, which is preloaded after the library and watches what that hands out."""
    library = tmp_path / "starve.so"
    plain = {name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD", "PYTHONMALLOC")}
    built = subprocess.run(
        [COMPILER, "-std=gnu11", "-O1", "-shared", "-fPIC", "-fno-builtin", FOLDER / "starve.c", "-o", library],
        capture_output=True, text=True, env=plain,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    environment = plain | {
        "LD_PRELOAD": " ".join(filter(None, [str(library), os.environ.get("LD_PRELOAD")])),
        "ASAN_OPTIONS": f"{os.environ.get('ASAN_OPTIONS', '')}:verify_asan_link_order=0:detect_leaks=0",
        "OMP_WAIT_POLICY": "passive",
        "OPENBLAS_NUM_THREADS": "1",
    }
    done = subprocess.run(
        [sys.executable, __file__, str(library)], capture_output=True, text=True, cwd=tmp_path, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    made = dict(line.rsplit(" ", 1) for line in done.stdout.splitlines())
    assert made.keys() == calls().keys()
    assert all(int(count) > 0 for name, count in made.items() if name not in ("heat_mean",)), made


if __name__ == "__main__":
    handle = ctypes.CDLL(sys.argv[1])
    handle.starve_count.restype = handle.starve_live.restype = ctypes.c_long
    handle.starve_at.argtypes = [ctypes.c_long]
    table = calls()
    assert handle.starve_watch() > 5
    for kernel in [name for name in table if len(sys.argv) < 3 or name in sys.argv[2:]]:
        print(kernel, starved(kernel, table[kernel], handle), flush=True)
