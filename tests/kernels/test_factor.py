"""The sparse Cholesky factorisation against dense NumPy, on patterns that are kind and unkind to it."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from helpers import random_array
from numpy.testing import assert_allclose, assert_array_equal

from manifast._linalg.sparse_cholesky import SparseCholesky


def random_spd(n, density, seed):
    """G G' + I for a sparse G: positive definite, with a pattern that has cliques."""
    G = random_array(n, density, np.random.default_rng(seed))
    return sp.csr_array(G @ G.T + sp.eye_array(n))


def grid(*shape):
    """Laplacian of a grid graph, plus a small multiple of the identity."""
    total = sp.csr_array((1, 1))
    for size in shape:
        path = sp.diags_array([np.full(size - 1, -1.0), np.full(size - 1, -1.0)], offsets=[-1, 1])
        path = path + sp.diags_array(-np.asarray(path.sum(axis=1)).ravel())
        total = sp.kron(total, sp.eye_array(size)) + sp.kron(sp.eye_array(total.shape[0]), path)
    return sp.csr_array(total + 1e-3 * sp.eye_array(total.shape[0]))


def neighbor_laplacian(n, p, k=10):
    X = np.random.default_rng(n).random((n, p))
    order = np.argsort(((X[:, None] - X) ** 2).sum(-1), axis=1)[:, 1 : k + 1]
    W = sp.csr_array((np.ones(n * k), (np.repeat(np.arange(n), k), order.ravel())), shape=(n, n))
    W = W.maximum(W.T)
    return sp.csr_array(sp.diags_array(W.sum(axis=1) + 1e-6) - W)


def lle_like(n):
    """(I - W)' (I - W) + 1e-6 I: the pattern is a neighbour graph squared."""
    L = neighbor_laplacian(n, 3)
    W = sp.eye_array(n) - sp.diags_array(1 / L.diagonal()) @ L
    M = sp.eye_array(n) - W
    return sp.csr_array(M.T @ M + 1e-6 * sp.eye_array(n))


def arrow(n, head):
    """A diagonal and one full row; with the full row first a naive order fills everything."""
    A = sp.lil_array((n, n))
    A.setdiag(n)
    A[head, :] = 1.0
    A[:, head] = 1.0
    A[head, head] = n
    return sp.csr_array(A)


def dense(n):
    G = np.random.default_rng(n).standard_normal((n, n + 5))
    return sp.csr_array(G @ G.T)


def empty_rows(n):
    A = random_spd(n, 0.05, 3).tolil()
    for i in range(0, n, 3):
        A[i, :] = 0
        A[:, i] = 0
        A[i, i] = 1.0 + i
    A = sp.csr_array(A)
    A.eliminate_zeros()
    return A


CASES = {
    "random": lambda: random_spd(200, 0.01, 0),
    "random denser": lambda: random_spd(150, 0.05, 1),
    "grid 2d": lambda: grid(17, 15),
    "grid 3d": lambda: grid(7, 6, 6),
    "neighbours 2d": lambda: neighbor_laplacian(300, 2),
    "neighbours 3d": lambda: neighbor_laplacian(250, 3),
    "lle": lambda: lle_like(300),
    "blocks": lambda: sp.csr_array(sp.block_diag([random_spd(n, 0.1, n) for n in (1, 2, 7, 40, 90)])),
    "dense": lambda: dense(330),
    "one": lambda: sp.csr_array(np.array([[4.0]])),
    "diagonal": lambda: sp.csr_array(sp.diags_array(np.arange(1.0, 30.0))),
    "empty rows": lambda: empty_rows(80),
    "arrow first": lambda: arrow(300, 0),
    "arrow middle": lambda: arrow(300, 150),
    "tridiagonal": lambda: grid(400),
}


@pytest.fixture(params=CASES, scope="module")
def matrix(request):
    A = CASES[request.param]()
    A.sort_indices()
    return A


def relative_residual(A, X, B):
    return np.linalg.norm(A @ X - B) / (abs(A).sum(axis=0).max() * np.linalg.norm(X))


def test_solves_like_dense_numpy(matrix, level, rng):
    B = rng.standard_normal((matrix.shape[0], 6))
    X = SparseCholesky(matrix).factor().solve(B)
    full = matrix.toarray()
    spectrum = np.linalg.eigvalsh(full)
    assert relative_residual(matrix, X, B) < 1e-14
    assert_allclose(X, np.linalg.solve(full, B), rtol=0, atol=1e-13 * spectrum[-1] / spectrum[0] * np.abs(X).max())


@pytest.mark.parametrize("n", [*range(1, 40), 255, 256, 257, 300])
def test_dense_matrices_of_every_size(n, level, rng):
    A, B = dense(n), rng.standard_normal((n, 3))
    solver = SparseCholesky(A).factor()
    assert relative_residual(A, solver.solve(B), B) < 1e-14
    assert solver.entries == n * (n + 1) // 2
    assert solver.flops == pytest.approx(n * (n + 1) * (2 * n + 1) / 6)


@pytest.mark.parametrize("seed", range(25))
def test_random_patterns(seed, rng):
    local = np.random.default_rng(seed)
    n = int(local.integers(2, 120))
    A = random_spd(n, local.choice([0.005, 0.02, 0.1]), seed)
    B = rng.standard_normal((n, 2))
    assert relative_residual(A, SparseCholesky(A).factor().solve(B), B) < 1e-14


def test_the_bits_do_not_depend_on_threads(matrix, level, rng):
    B = rng.standard_normal((matrix.shape[0], 9))
    expected = SparseCholesky(matrix, n_threads=1).factor(shift=0.5).solve(B)
    for n_threads in (2, 3):
        solver = SparseCholesky(matrix, n_threads=n_threads).factor(shift=0.5)
        for m in (1, 4, 6, 9):  # threads share the tree where the columns are too few for all
            assert_array_equal(solver.solve(B[:, :m]), expected[:, :m])


def test_a_graph_large_enough_for_dissection(rng):
    A = grid(24, 24, 24)
    two = sp.csr_array(sp.block_diag([A, grid(3, 4), A]))
    two.sort_indices()
    solver, alone = SparseCholesky(two), SparseCholesky(A)
    assert alone.flops < 0.7e9  # 1.1e9 by minimum degree
    assert solver.flops == pytest.approx(2 * alone.flops, rel=0.3)
    B = rng.standard_normal((two.shape[0], 2))
    assert_allclose(two @ solver.factor().solve(B), B, rtol=0, atol=1e-10)


def test_the_bits_of_large_fronts_do_not_depend_on_threads(rng):
    A, B = grid(13, 13, 13), rng.standard_normal((13**3, 5))
    expected = SparseCholesky(A, n_threads=1).factor().solve(B)
    assert_array_equal(SparseCholesky(A, n_threads=3).factor().solve(B), expected)


def test_a_column_does_not_depend_on_the_others(matrix, level, rng):
    B = rng.standard_normal((matrix.shape[0], 11))
    solver = SparseCholesky(matrix).factor()
    together = solver.solve(B)
    for columns in (slice(0, 1), slice(3, 5), slice(2, 5), slice(5, 9), slice(4, 11)):
        assert_array_equal(solver.solve(B[:, columns]), together[:, columns])
    assert_array_equal(solver.solve(B[:, 7]), together[:, 7])


def test_the_levels_agree_to_rounding(on_every_level, rng):
    A, B = neighbor_laplacian(400, 2), rng.standard_normal((400, 3))
    results = on_every_level(lambda: SparseCholesky(A).factor(shift=0.1).solve(B))
    for result in results[1:]:
        assert_allclose(result, results[0], rtol=1e-10, atol=1e-12)


def test_a_solver_survives_a_change_of_level(on_every_level, rng):
    A, B = grid(12, 12), rng.standard_normal((144, 2))
    solver = SparseCholesky(A).factor()
    expected = solver.solve(B)
    for result in on_every_level(lambda: solver.factor().solve(B)):
        assert_array_equal(result, expected)


def test_shifts_and_other_values(rng):
    A, B = grid(15, 15), rng.standard_normal((225, 3))
    weights = rng.uniform(0.5, 2.0, 225)
    solver = SparseCholesky(A)
    for shift in (0.0, 3.0, 0.25):
        X = solver.factor(shift=shift).solve(B)
        assert_allclose((A + shift * sp.eye_array(225)) @ X, B, rtol=0, atol=1e-10)
        X = solver.factor(shift=shift, B=weights).solve(B)
        assert_allclose((A + shift * sp.diags_array(weights)) @ X, B, rtol=0, atol=1e-10)
    X = solver.factor(2 * A, 1.0).solve(B)
    assert_allclose((2 * A + sp.eye_array(225)) @ X, B, rtol=0, atol=1e-10)
    assert_array_equal(solver.factor().solve(B), SparseCholesky(A).factor().solve(B))


def test_a_diagonal_that_is_not_stored_gets_the_shift(rng):
    A = sp.csr_array(np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]))
    A.eliminate_zeros()
    B = rng.standard_normal((3, 2))
    assert_allclose(SparseCholesky(A).factor(shift=2.0).solve(B), np.linalg.solve(A.toarray() + 2 * np.eye(3), B))


def test_a_deep_tree(rng):
    n = 100_000
    A, b = grid(n), rng.standard_normal((n, 1))
    solver = SparseCholesky(A)
    assert solver.entries < 20 * n
    x = solver.factor().solve(b)
    assert np.abs(A @ x - b).max() < 1e-9 * np.abs(x).max()


def test_the_order_keeps_grids_and_arrows_sparse():
    assert SparseCholesky(grid(60, 60)).entries < 140_000  # 219,600 in the natural order
    assert SparseCholesky(arrow(3000, 0)).entries < 60_000
    assert SparseCholesky(arrow(100_000, 5)).entries < 2_000_000


def test_entries_and_flops_count_at_least_those_of_the_factor():
    A = neighbor_laplacian(300, 2)
    solver = SparseCholesky(A)
    assert A.nnz // 2 <= solver.entries <= 300 * 301 / 2
    assert solver.flops >= solver.entries


def test_no_rows():
    solver = SparseCholesky(sp.csr_array((0, 0))).factor()
    assert solver.solve(np.empty((0, 3))).shape == (0, 3)
    assert (solver.n, solver.entries, solver.flops) == (0, 0, 0)


def test_a_ceiling_on_flops():
    A = grid(12, 12, 12)
    needed = SparseCholesky(A).flops
    assert SparseCholesky(A, max_flops=2 * needed).feasible
    solver = SparseCholesky(A, max_flops=needed / 100)
    assert not solver.feasible
    assert solver.flops > needed / 100
    with pytest.raises(ValueError, match="raise max_flops"):
        solver.factor()


@pytest.mark.parametrize("n_threads", [1, 3])
def test_not_positive_definite(n_threads):
    A = grid(20, 20)
    solver = SparseCholesky(A, n_threads=n_threads)
    with pytest.raises(np.linalg.LinAlgError, match=r"the pivot of row \d+ is not positive"):
        solver.factor(shift=-1.0)
    with pytest.raises(ValueError, match="solve needs a factor"):
        solver.solve(np.ones((400, 1)))
    b = np.ones((400, 1))
    assert_allclose(A @ solver.factor().solve(b), b)


def test_the_pivot_that_fails_is_named():
    diagonal = np.ones(50)
    diagonal[17] = -1.0
    for n_threads in (1, 2, 3):
        with pytest.raises(np.linalg.LinAlgError, match="row 17 "):
            SparseCholesky(sp.csr_array(sp.diags_array(diagonal)), n_threads=n_threads).factor()
    A = grid(30, 30)
    A[400, 400] = np.nan
    with pytest.raises(np.linalg.LinAlgError):
        SparseCholesky(A).factor()


def test_index_types_and_formats(rng):
    A, b = grid(9, 9), rng.standard_normal((81, 1))
    expected = SparseCholesky(A).factor().solve(b)
    wide = A.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    shuffled = sp.csr_array(sp.coo_array(A.tocoo()))
    for i in range(81):
        part = slice(A.indptr[i], A.indptr[i + 1])
        shuffled.indices[part], shuffled.data[part] = A.indices[part][::-1], A.data[part][::-1]
    shuffled.has_sorted_indices = shuffled.has_canonical_format = False
    for other in (wide, A.tocsc(), sp.csr_matrix(A), shuffled):
        assert_array_equal(SparseCholesky(other).factor().solve(b), expected)
    assert_array_equal(SparseCholesky(A).factor().solve(np.asfortranarray(b)), expected)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda A: SparseCholesky(np.eye(3)), "A must be a square sparse matrix. Got ndarray"),
        (lambda A: SparseCholesky(A[:5]), "A must be a square sparse matrix. Got shape"),
        (lambda A: SparseCholesky(A.astype(complex)), "A must hold real numbers"),
        (lambda A: SparseCholesky(sp.csr_array(sp.triu(A))), "A must have a symmetric pattern"),
        (lambda A: SparseCholesky(A, max_flops=-1), "max_flops must be None or a number of at least 0. Got -1"),
        (lambda A: SparseCholesky(A, n_threads=0), "n_threads must be None"),
        (lambda A: SparseCholesky(A).factor(sp.csr_array(sp.eye_array(81))), "A must have the pattern"),
        (lambda A: SparseCholesky(A).factor(shift=np.nan), "shift must be a finite number"),
        (lambda A: SparseCholesky(A).factor(B=np.ones(80)), "B must be 81 finite numbers"),
        (lambda A: SparseCholesky(A).factor().solve(np.ones((80, 1))), "rhs must have 81 rows"),
        (lambda A: SparseCholesky(A).factor().solve(np.full((81, 1), np.nan)), "rhs must be finite"),
        (lambda A: SparseCholesky(A).solve(np.ones((81, 1))), "solve needs a factor"),
    ],
)
def test_wrong_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(grid(9, 9))


def test_broken_patterns_are_refused():
    for change in (("indices", 3, 99), ("indices", 0, -1), ("indptr", 2, 400), ("indptr", 4, 0), ("indices", 1, 0)):
        A = grid(9, 9)
        name, at, value = change
        getattr(A, name)[at] = value
        with pytest.raises(ValueError, match=r"A must (be a valid CSR matrix|have a symmetric pattern)"):
            SparseCholesky(A)
        with pytest.raises(ValueError, match=r"A must (be a valid CSR matrix|have the pattern)"):
            SparseCholesky(grid(9, 9)).factor(A)
