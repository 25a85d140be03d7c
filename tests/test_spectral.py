"""The eigensolver: every method against LAPACK, clustered and repeated eigenvalues, singular B, honest residuals."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg as la
import scipy.sparse as sp
from helpers import random_array
from oracles import largest_angle
from scipy.sparse.linalg import LinearOperator, aslinearoperator
from sklearn.exceptions import ConvergenceWarning

from manifast import graphs
from manifast.kernels import laplacian
from manifast.spectral import LowRankSum, fix_signs, smallest_eigenvectors


def random_sparse(n, rng, density=0.02):
    """Positive semidefinite with eigenvalues from tiny to large."""
    R = random_array(n, density, rng).tocsr()
    scales = sp.diags_array(np.logspace(-3, 0, n))
    A = scales @ (R @ R.T) @ scales + sp.diags_array(np.logspace(-8, 0, n))
    return sp.csr_array(A + A.T)


def grid_laplacian(rows, columns):
    path = [sp.diags_array([np.ones(m - 1), np.ones(m - 1)], offsets=[-1, 1]) for m in (rows, columns)]
    W = sp.kron(sp.eye_array(rows), path[1]) + sp.kron(path[0], sp.eye_array(columns))
    return laplacian(sp.csr_array(W))


def check(A, values, vectors, B=None, tolerance=1e-9):
    """Against the full LAPACK spectrum: values, B-orthonormality and residuals."""
    dense = A.toarray() if hasattr(A, "toarray") else np.asarray(A)
    gram = np.eye(len(dense)) if B is None else B
    scale = np.abs(dense).sum(axis=1).max()
    k = len(values)
    expected = la.eigh(dense, gram, eigvals_only=True)[:k]
    np.testing.assert_allclose(values, expected, atol=tolerance * scale)
    np.testing.assert_allclose(vectors.T @ gram @ vectors, np.eye(k), atol=1e-9)
    residual = np.abs(dense @ vectors - gram @ vectors * values).max()
    assert residual <= tolerance * scale * np.abs(vectors).max()


@pytest.mark.parametrize("method", ["dense", "direct"])
@pytest.mark.parametrize("k", [1, 3, 20])
def test_sparse_matrix(rng, method, k):
    A = random_sparse(600, rng)
    values, vectors = smallest_eigenvectors(A, k, method=method)
    check(A, values, vectors)


@pytest.mark.parametrize("method", ["dense", "direct"])
def test_dense_matrix(rng, method):
    A = random_sparse(500, rng).toarray()
    values, vectors = smallest_eigenvectors(A, 5, method=method)
    check(A, values, vectors)


@pytest.mark.parametrize("kind", ["vector", "sparse", "dense"])
@pytest.mark.parametrize("method", ["dense", "direct"])
def test_general_right_hand_side(rng, kind, method):
    A = random_sparse(450, rng)
    diagonal = rng.uniform(0.5, 2.0, 450)
    B = {"vector": diagonal, "sparse": sp.diags_array(diagonal, format="csr") + 0.1 * random_sparse(450, rng)}.get(kind)
    if kind == "dense":
        B = np.diag(diagonal) + 0.01 * np.ones((450, 450))
    values, vectors = smallest_eigenvectors(A, 4, B, method=method)
    gram = np.diag(B) if kind == "vector" else B.toarray() if kind == "sparse" else B
    check(A, values, vectors, gram)


@pytest.mark.parametrize("method", ["dense", "direct"])
@pytest.mark.parametrize("kind", ["vector", "dense"])
def test_singular_right_hand_side_gives_the_finite_part(rng, method, kind):
    n, rank = 420, 12
    A = random_sparse(n, rng).toarray() + 0.1 * np.eye(n)
    diagonal = np.zeros(n)
    diagonal[rng.choice(n, rank, replace=False)] = rng.uniform(1, 2, rank)
    B = diagonal if kind == "vector" else np.diag(diagonal)
    values, vectors = smallest_eigenvectors(A, rank, B, method=method)
    # Eliminating where B vanishes leaves the Schur complement, a problem of the size of B's rank.
    seen, unseen = diagonal > 0, diagonal == 0
    schur = A[np.ix_(seen, seen)] - A[np.ix_(seen, unseen)] @ np.linalg.solve(
        A[np.ix_(unseen, unseen)], A[np.ix_(unseen, seen)]
    )
    expected = la.eigh(schur, np.diag(diagonal[seen]), eigvals_only=True)
    np.testing.assert_allclose(values, expected, rtol=1e-8)
    np.testing.assert_allclose(vectors.T @ np.diag(diagonal) @ vectors, np.eye(rank), atol=1e-8)
    assert np.abs(A @ vectors - diagonal[:, None] * vectors * values).max() < 1e-7 * np.abs(vectors).max()
    with pytest.raises(ValueError, match=f"rank of B: {rank}"):
        smallest_eigenvectors(A, rank + 1, B, method=method)


def test_sparse_plus_low_rank(rng):
    n = 500
    S = random_sparse(n, rng) + sp.eye_array(n, format="csr")
    U = la.orth(rng.standard_normal((n, 7)))
    A = LowRankSum(S, U, -rng.uniform(0.1, 0.9, 7))
    values, vectors = smallest_eigenvectors(A, 6)
    check(A.toarray(), values, vectors)
    np.testing.assert_allclose(A @ vectors, A.toarray() @ vectors, atol=1e-12)


def test_low_rank_of_both_signs(rng):
    n = 500
    S = random_sparse(n, rng) + sp.eye_array(n, format="csr")
    U = la.orth(rng.standard_normal((n, 6)))
    for weights in ([-0.5, 2.0, -0.9, 1.0, 0.3, -0.1], [-4.0, 2.0, -0.9, 1.0, 0.3, -0.1]):
        A = LowRankSum(S, U, np.array(weights))
        values, vectors = smallest_eigenvectors(A, 1)
        check(A.toarray(), values, vectors)


def test_matrix_free(rng):
    Q = la.qr(rng.standard_normal((700, 700)))[0]
    spectrum = np.append([-9.0, -4.0, -1.0], rng.uniform(0, 0.1, 697))
    A = (Q * spectrum) @ Q.T
    operator = LinearOperator(A.shape, matvec=lambda v: A @ v, matmat=lambda V: A @ V, dtype=np.float64)
    values, vectors = smallest_eigenvectors(operator, 3)
    check(A, values, vectors)


def test_matrix_free_finds_eigenvalue_zero():
    for head in ([0.0, 1.0, 2.0, 3.0], [0.0, 0.0, 0.0, 1.0]):
        A = sp.diags_array(np.r_[head, np.linspace(5, 10, 800)])
        values, _ = smallest_eigenvectors(aslinearoperator(A), 4)
        np.testing.assert_allclose(values, head, atol=1e-9)


def test_indefinite_sum(rng):
    """The sparse part alone is positive definite; the smallest eigenvalue is not."""
    n = 900
    u = rng.standard_normal(n)
    A = LowRankSum(
        sp.diags_array(np.linspace(1, 2, n), format="csr"), (u / np.linalg.norm(u))[:, None], np.array([-5.0])
    )
    values, vectors = smallest_eigenvectors(A, 2)
    assert values[0] < -3
    check(A.toarray(), values, vectors)


@pytest.mark.parametrize("scale", [1e-160, 1e160])
def test_scale_of_the_matrix(rng, scale):
    A = random_sparse(500, rng)
    plain, scaled = smallest_eigenvectors(A, 3), smallest_eigenvectors(A * scale, 3)
    np.testing.assert_allclose(scaled[0] / scale, plain[0], rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(scaled[1], plain[1], atol=1e-6)


def test_multilevel_on_a_disconnected_graph():
    rolls = [grid_laplacian(a, b) for a, b in ((25, 24), (30, 20), (2, 1))]
    L, degrees = sp.csr_array(sp.block_diag([r[0] for r in rolls])), np.concatenate([r[1] for r in rolls])
    expected = la.eigh(L.toarray(), np.diag(degrees), eigvals_only=True)
    for null, first in ((None, 0), (np.ones(len(degrees)), 1)):
        values, vectors = smallest_eigenvectors(L, 8, degrees, null=null, method="multilevel")
        np.testing.assert_allclose(values, expected[first : first + 8], atol=1e-10)
        np.testing.assert_allclose(vectors.T @ (degrees[:, None] * vectors), np.eye(8), atol=1e-9)
        assert np.abs(L @ vectors - degrees[:, None] * vectors * values).max() < 1e-8
    with pytest.raises(ValueError, match="nothing but the constant"):
        smallest_eigenvectors(L, 2, degrees, null=vectors[:, 3], method="multilevel")


def test_unconverged_vectors_are_not_silent(rng):
    A = np.diag(np.linspace(1.0, 1.001, 800))
    operator = LinearOperator(A.shape, matvec=lambda v: A @ v, matmat=lambda V: A @ V, dtype=np.float64)
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        smallest_eigenvectors(operator, 3, max_iter=2, tol=1e-13)


@pytest.mark.parametrize("method", ["dense", "direct"])
def test_indefinite_matrix(rng, method):
    A = random_sparse(450, rng) - sp.diags_array(np.where(np.arange(450) < 5, np.arange(450) + 1.0, 0.0), format="csr")
    values, vectors = smallest_eigenvectors(A, 4, method=method)
    assert values[3] < -1
    check(A, values, vectors)


@pytest.mark.parametrize("method", ["direct", "multilevel"])
def test_repeated_eigenvalues_of_a_square_grid(method):
    L, degrees = grid_laplacian(30, 30)
    k = 9
    values, vectors = smallest_eigenvectors(L, k, degrees, method=method)
    expected, full = la.eigh(L.toarray(), np.diag(degrees))
    np.testing.assert_allclose(values, expected[:k], atol=1e-10)
    gaps = np.flatnonzero(np.diff(expected[: k + 1]) > 1e-6)
    last = gaps[-1] + 1
    roots = np.sqrt(degrees)[:, None]
    assert largest_angle(roots * vectors[:, :last], roots * full[:, :last]) < 1e-6


@pytest.mark.parametrize("method", ["dense", "direct"])
def test_disconnected_graph_gives_every_zero(method):
    blocks = [laplacian(np.ones((m, m)) - np.eye(m))[0] for m in (120, 150, 80, 60, 50)]
    L = sp.csr_array(sp.block_diag(blocks))
    values, vectors = smallest_eigenvectors(L, 6, method=method)
    np.testing.assert_allclose(values[:5], 0.0, atol=1e-9)
    assert values[5] > 1
    indicators = la.block_diag(*[np.ones((m, 1)) for m in (120, 150, 80, 60, 50)])
    assert largest_angle(vectors[:, :5], indicators) < 1e-7


def test_many_tight_clusters(rng):
    centres = rng.standard_normal((12, 3)) * 100
    X = np.concatenate([c + rng.standard_normal((60, 3)) for c in centres])
    W = graphs.connect_components(graphs.knn_graph(X, 8, beta=10.0), X, beta=10.0)
    L, degrees = laplacian(W)
    for method in ("direct", "multilevel", "auto"):
        values, vectors = smallest_eigenvectors(L, 12, degrees, method=method)
        expected, full = la.eigh(L.toarray(), np.diag(degrees))
        np.testing.assert_allclose(values, expected[:12], atol=1e-11)
        roots = np.sqrt(degrees)[:, None]
        assert largest_angle(roots * vectors, roots * full[:, :12]) < 1e-6


def test_known_eigenvectors_are_left_out(rng):
    L, degrees = grid_laplacian(24, 20)
    full, _ = smallest_eigenvectors(L, 5, degrees)
    for method in ("dense", "direct", "multilevel"):
        values, vectors = smallest_eigenvectors(L, 4, degrees, null=np.ones(480), method=method)
        np.testing.assert_allclose(values, full[1:], atol=1e-10)
        assert np.abs(degrees @ vectors).max() < 1e-8


def test_signs_are_fixed():
    vectors = np.array([[-3.0, 1.0, -1.0], [2.0, -2.0, 1.0 + 1e-9]])
    fixed = fix_signs(vectors)
    np.testing.assert_array_equal(fixed, [[3.0, -1.0, 1.0], [-2.0, 2.0, -1.0 - 1e-9]])


def test_same_bits_every_time(rng):
    A = random_sparse(600, rng)
    first, second = (smallest_eigenvectors(A, 4)[1] for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.eye(3), 0), "k must be an integer from 1 to 3"),
        ((np.eye(3), 4), "k must be an integer from 1 to 3"),
        ((np.ones((3, 2)), 1), "A must be a matrix that is square"),
        ((np.array([[1.0, 2.0], [0.0, 1.0]]), 1), "A must be symmetric"),
        ((np.array([[np.nan, 0.0], [0.0, 1.0]]), 1), "A must be finite"),
        ((np.eye(3), 1, np.eye(2)), r"B must be a matrix that is of shape \(3, 3\)"),
        ((np.eye(3), 1, np.array([1.0, -1.0, 1.0])), "B must hold finite numbers that are not negative"),
        ((np.eye(3), 0.5), "k must be an integer"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        smallest_eigenvectors(*arguments)


@pytest.mark.parametrize("null", [np.zeros(3), np.ones(4), np.full(3, np.nan)])
def test_bad_null(null):
    with pytest.raises(ValueError, match="null must be finite"):
        smallest_eigenvectors(np.eye(3), 1, null=null)


def test_bad_method():
    with pytest.raises(ValueError, match="method must be"):
        smallest_eigenvectors(np.eye(3), 1, method="magic")
    with pytest.raises(ValueError, match="Laplacian of a graph"):
        smallest_eigenvectors(np.eye(3), 1, method="multilevel")
