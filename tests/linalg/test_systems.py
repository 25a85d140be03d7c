"""Linear systems of a graph and a smoother: every way to solve them against NumPy, at both ends of the weights."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.linalg as la
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from manifast._linalg import systems
from manifast._linalg.conjugate_gradients import UnitDiagonal, conjugate_gradients
from manifast._linalg.penalties import RidgePenalty
from manifast._linalg.systems import PenalizedSystem, spd_solver
from manifast.graphs import knn_graph
from manifast.kernels import laplacian
from manifast.smoothers.ridge import KernelRidgeSmoother, LinearRidgeSmoother


@pytest.fixture
def problem(rng):
    """Features, a graph's Laplacian with some rows held, and right-hand sides."""
    X = rng.standard_normal((300, 6))
    held = np.zeros(300)
    held[:20] = 1.0
    S = sp.csr_array(laplacian(knn_graph(X, 8))[0] + sp.diags_array(held, format="csr"))
    return X, S, rng.standard_normal((300, 5))


@pytest.fixture
def iterated(monkeypatch):
    monkeypatch.setattr(systems, "_DIRECT_FLOPS", 0.0)
    monkeypatch.setattr(systems, "_DENSE_ROWS", 0)


def test_sparse_dense_and_iterated_solvers_agree(problem, monkeypatch, capsys):
    _, S, B = problem
    expected = np.linalg.solve(S.toarray(), B)
    np.testing.assert_allclose(spd_solver(S, verbose=True)(B), expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(spd_solver(S.toarray())(B), expected, rtol=1e-10, atol=1e-12)
    monkeypatch.setattr(systems, "_DIRECT_FLOPS", 0.0)
    np.testing.assert_allclose(spd_solver(S, verbose=True)(B), expected, rtol=1e-10, atol=1e-12)
    monkeypatch.setattr(systems, "_DENSE_ROWS", 0)
    np.testing.assert_allclose(spd_solver(S, verbose=True)(np.tile(B, 7)), np.tile(expected, 7), atol=1e-7)
    said = capsys.readouterr().err
    assert all(word in said for word in ("sparse factor", "dense factor", "iteration", "35 of 35 columns"))


def test_iteration_reaches_its_residual_whatever_the_scale(problem, iterated):
    _, S, B = problem
    B = B * [1.0, 1e-100, 1e100, 0.0, 1.0]
    for scale in (1.0, 1e-9, 1e9):
        X = spd_solver(S * scale)(B)
        assert not X[:, 3].any()
        residual = np.linalg.norm((S * scale @ X - B) / B.max(axis=0, initial=1e-200), axis=0)
        assert residual.max() < 1e-7


def test_iteration_without_the_kernel_of_graphs(problem, iterated):
    _, S, B = problem
    S = S.toarray()
    S[0, 1] = S[1, 0] = 0.3  # not a Laplacian
    apart = sp.csr_array(la.block_diag(S, S))
    for matrix, right in ((sp.csr_array(S), B), (apart, np.vstack([B, B]))):
        np.testing.assert_allclose(spd_solver(matrix)(right), np.linalg.solve(matrix.toarray(), right), atol=1e-7)


def test_iteration_that_does_not_converge_says_so(problem, iterated, monkeypatch):
    monkeypatch.setattr(systems, "_MAX_ITER", 2)
    with pytest.warns(ConvergenceWarning, match="relative residuals"):
        spd_solver(problem[1])(problem[2])


@pytest.mark.parametrize("bad", [-1.0, 0.0, np.nan])
def test_a_column_whose_energy_is_lost_stays_where_it_is(problem, bad):
    """A preconditioner that rounding has made indefinite, or worse, after some steps and for one column."""
    S, B = problem[1].toarray(), problem[2]
    seen = []

    def precondition(r):
        seen.append(r)
        z = r / S.diagonal()[:, None]
        z[:, 1] *= bad if len(seen) == 6 else 1.0
        return z

    options = {"tol": 1e-10, "max_iter": 500}
    X, _, residuals, done = conjugate_gradients(lambda p: S @ p, B, precondition, S.diagonal()[:, None], **options)
    missed = np.linalg.norm(S @ X - B, axis=0) / np.linalg.norm(B, axis=0)
    np.testing.assert_allclose(residuals, missed, atol=1e-11)
    assert not done and 1e-3 < missed[1] < 10 and (missed[[0, 2, 3, 4]] < 1e-9).all()


def test_a_residual_that_is_no_number_is_not_solved(problem, iterated, monkeypatch):
    S = problem[1].toarray()
    S[0, 1] = S[1, 0] = 0.3  # not a Laplacian
    monkeypatch.setattr(UnitDiagonal, "solve", lambda self, B, **_: (B, 1, np.nan))
    with pytest.warns(ConvergenceWarning, match="residuals of nan"):
        spd_solver(sp.csr_array(S))(problem[2])


def test_a_component_that_nothing_holds(iterated):
    ring = np.roll(np.eye(6), 1, axis=0) + np.roll(np.eye(6), -1, axis=0)
    S = sp.csr_array(sp.block_diag([laplacian(ring)[0] + sp.diags_array([1.0, 0, 0, 0, 0, 0]), laplacian(ring)[0]]))
    B = np.zeros((12, 1))
    B[0] = 1.0
    with pytest.warns(UserWarning, match="singular to working precision"):
        X = spd_solver(S)(B)
    np.testing.assert_allclose(X.ravel(), [1.0] * 6 + [0.0] * 6, atol=1e-9)


def linear_penalty(X, mu, gamma):
    """R of SEE's (13), simplified: μγ (H - γ X_c (I + γ X_c'X_c)^-1 X_c')."""
    n = len(X)
    H = np.eye(n) - 1.0 / n
    Xc = H @ X
    return mu * gamma * (H - gamma * Xc @ np.linalg.inv(np.eye(X.shape[1]) + gamma * Xc.T @ Xc) @ Xc.T)


@pytest.mark.parametrize(("mu", "gamma"), [(1e-9, 1e-9), (1e-3, 1.0), (1.0, 1.0), (1e3, 1e-3), (1e-9, 1e9)])
def test_penalised_system_oracle(problem, mu, gamma):
    X, S, B = problem
    R = linear_penalty(X, mu, gamma)
    expected = np.linalg.solve(S.toarray() + R, B)
    linear = LinearRidgeSmoother(X, 1 / gamma).penalty(mu * gamma)
    np.testing.assert_allclose(linear.added_to(np.zeros((300, 300))), R, rtol=1e-9, atol=1e-12 * mu * gamma)
    penalties = [linear]
    if gamma < 1e6:  # rounding of K is not small against the smallest ridge
        penalties.append(KernelRidgeSmoother(X @ X.T, 1 / gamma).penalty(mu * gamma))
    for penalty in penalties:
        for held in (S, S.toarray()):
            found = PenalizedSystem(held, penalty).solve(B)
            np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9 * abs(expected).max())


@pytest.mark.parametrize("gamma", [1e-3, 1.0, 1e3])
def test_kernel_penalty_without_bias(problem, gamma):
    X, S, B = problem
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 8)
    R = 0.1 * gamma * np.linalg.inv(np.eye(300) + gamma * K)
    smoother = KernelRidgeSmoother(K.copy(), 1 / gamma, bias=False)
    np.testing.assert_allclose(smoother.penalty(0.1 * gamma), R, rtol=1e-8, atol=1e-12 * gamma)
    found = PenalizedSystem(S, smoother.penalty(0.1 * gamma)).solve(B)
    np.testing.assert_allclose(found, np.linalg.solve(S.toarray() + R, B), rtol=1e-9, atol=1e-11)
    dual, intercept = smoother.fit(B)
    np.testing.assert_allclose(dual, gamma * np.linalg.inv(np.eye(300) + gamma * K) @ B, rtol=1e-8, atol=1e-10 * gamma)
    assert not intercept.any()


@pytest.mark.parametrize("bias", [True, False])
def test_low_rank_kernel_is_the_dense_one(rng, bias):
    X = rng.uniform(-1, 1, (1100, 2))
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 4)
    smoother = KernelRidgeSmoother(K.copy(), 0.1, bias=bias)
    penalty = smoother.penalty(0.3)
    assert isinstance(penalty, RidgePenalty) and penalty.factor.shape[1] < 200
    H = np.eye(1100) - 1.0 / 1100 if bias else np.eye(1100)
    R = 0.3 * 0.1 * H @ np.linalg.solve(H @ K @ H + 0.1 * np.eye(1100), H)
    np.testing.assert_allclose(penalty.added_to(np.zeros((1100, 1100))), R, atol=1e-8)


def test_nothing_cancels_when_the_regression_is_nearly_a_constraint(problem):
    # μγ = 1e18: the solution lies in the span of Φ = [X, 1], where it solves (μ diag(1, …, 1, 0) + Φ'SΦ) V = Φ'B.
    X, S, B = problem
    mu = 1e9
    Phi = np.column_stack([X - X.mean(axis=0), np.ones(300)])
    inside = mu * np.diag([1.0] * 6 + [0.0]) + Phi.T @ (S @ Phi)
    expected = Phi @ np.linalg.solve(inside, Phi.T @ B)
    found = PenalizedSystem(S, LinearRidgeSmoother(X, 1e-9).penalty(mu * 1e9)).solve(B)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9 * abs(expected).max())


def test_constant_features_and_more_features_than_rows(rng):
    X = np.hstack([rng.standard_normal((30, 50)), np.ones((30, 2))])
    S = sp.diags_array(np.linspace(1, 2, 30), format="csr")
    B = rng.standard_normal((30, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = PenalizedSystem(S, LinearRidgeSmoother(X, 1.0).penalty(1.0)).solve(B)
        flat = PenalizedSystem(S, LinearRidgeSmoother(np.ones((30, 3)), 1.0).penalty(1.0)).solve(B)
        sparse = LinearRidgeSmoother(sp.csr_array(X), 1.0).penalty(1.0)
    np.testing.assert_allclose(found, np.linalg.solve(S.toarray() + linear_penalty(X, 1.0, 1.0), B), rtol=1e-9)
    np.testing.assert_allclose(sparse.added_to(np.zeros((30, 30))), linear_penalty(X, 1.0, 1.0), atol=1e-10)
    np.testing.assert_allclose(flat, np.linalg.solve(S.toarray() + np.eye(30) - 1 / 30, B), rtol=1e-9)
