"""The semi-supervised embeddings: SEE's matrices as printed, QZ on the singular pencil, FME, the search, odd inputs."""

from __future__ import annotations

import pickle
import warnings
from decimal import Decimal, localcontext
from itertools import product

import numpy as np
import oracles
import pytest
import scipy.linalg as la
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from manifast import FME, SDA, SDE, TCA, ElasticEmbedding, ElasticEmbeddingCV
from manifast._linalg import systems
from manifast.graphs import full_graph, knn_graph
from manifast.objectives import formulas as objectives
from manifast.smoothers.ridge import KernelRidgeSmoother, LinearRidgeSmoother

ONES = {"lam": 1.0, "mu": 1.0, "gamma": 1.0}
SMALL = {"lam": (1e-3, 1.0), "mu": (1e-3, 1.0), "gamma": (1e-3, 1.0)}
ALL = [
    ElasticEmbedding(5),
    ElasticEmbedding(kernel="rbf"),
    ElasticEmbedding(4, kernel="poly", gamma=1e-3),
    ElasticEmbedding(4, kernel="linear"),
    ElasticEmbedding(graph="full"),
    ElasticEmbeddingCV(**SMALL),
    ElasticEmbeddingCV(3, kernel="rbf", sigma=(1.0, 3.0), **SMALL),
    SDA(),
    SDE(3),
    TCA(3),
]
names = [str(estimator) for estimator in ALL]


@pytest.fixture
def rows(rng):
    """Three overlapping classes of different sizes, some rows with labels: X, y with -1, and new rows."""
    truth = np.repeat([0, 1, 2], [30, 20, 15])
    X = rng.standard_normal((65, 5)) + 1.5 * rng.standard_normal((3, 5))[truth]
    y = np.full(65, -1)
    y[[0, 3, 7, 9, 31, 35, 40, 52, 55]] = truth[[0, 3, 7, 9, 31, 35, 40, 52, 55]]
    return X, y, rng.standard_normal((12, 5))


def graph_of(X, k=10):
    return oracles.unit_graph(X, k)


def constraint(y):
    rows = np.flatnonzero(y != -1)
    D = np.zeros(len(y))
    D[rows] = oracles.margin_matrices(y[rows])[1].diagonal()
    return D


def assert_constrained(model, y, tolerance=1e-8):
    Z = model.embedding_.astype(float)
    assert np.isfinite(Z).all()
    np.testing.assert_allclose(Z.T @ (constraint(y)[:, None] * Z), np.eye(Z.shape[1]), atol=tolerance)
    assert (np.diff(model.eigenvalues_) >= -1e-9 * abs(model.eigenvalues_[-1])).all()


# The paper's matrices


def test_margins_as_printed(rng):
    y = np.array([0, 2, 1, 0, 0, 2, 0])
    M, D = objectives.margins(y, 3)
    M_printed, D_printed = oracles.margin_matrices(y)
    np.testing.assert_allclose(M, M_printed, atol=1e-14)
    np.testing.assert_allclose(np.diag(D), D_printed, atol=1e-14)
    # Eq. 1, averaged: the margin is what D and M are made from.
    z = rng.standard_normal(7)
    margin = 0.0
    for i in range(7):
        other, same = y != y[i], y == y[i]
        margin += np.mean((z[i] - z[other]) ** 2) - np.mean((z[i] - z[same]) ** 2)
    np.testing.assert_allclose(2 * z @ (D * z) - z @ M @ z, margin, rtol=1e-12)


@pytest.mark.parametrize(("mu", "gamma"), [(1.0, 1.0), (0.3, 20.0), (5.0, 0.01)])
def test_penalties_as_printed(rows, mu, gamma):
    X, _, _ = rows
    linear = LinearRidgeSmoother(X, 1 / gamma).penalty(mu * gamma).added_to(np.zeros((65, 65)))
    np.testing.assert_allclose(linear, oracles.elastic_linear_penalty(X, mu, gamma), atol=1e-10)
    K = oracles.gaussian(X, X, 2.0)
    kernel = KernelRidgeSmoother(K.copy(), 1 / gamma, bias=False).penalty(mu * gamma)
    np.testing.assert_allclose(kernel, oracles.elastic_kernel_penalty(K, mu, gamma), atol=1e-10)


@pytest.mark.parametrize(("lam", "mu", "gamma"), [(1.0, 1.0, 1.0), (0.01, 2.0, 0.1), (10.0, 0.05, 3.0)])
def test_linear_oracle(rows, lam, mu, gamma):
    X, y, new = rows
    model = ElasticEmbedding(lam=lam, mu=mu, gamma=gamma).fit(X, y)
    values, Z = oracles.elastic(graph_of(X), y, lam, oracles.elastic_linear_penalty(X, mu, gamma))
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-8)
    oracles.same_columns(model.embedding_, Z, 1e-8)
    assert_constrained(model, y, 1e-12)
    coef, intercept = oracles.ridge(X, model.embedding_, 1 / gamma)  # eqs. 11 and 12
    np.testing.assert_allclose(model.coef_, coef, atol=1e-11)
    np.testing.assert_allclose(model.intercept_, intercept, atol=1e-11)
    np.testing.assert_allclose(model.transform(new), new @ coef + intercept, atol=1e-11)
    few = ElasticEmbedding(3, lam=lam, mu=mu, gamma=gamma).fit(X, y)
    np.testing.assert_allclose(few.embedding_, model.embedding_[:, :3], atol=1e-9)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear", "precomputed"])
def test_kernel_oracle(rows, kernel):
    X, y, new = rows
    both = {
        "rbf": lambda A: oracles.gaussian(A, X, 2.0),
        "poly": lambda A: (A @ X.T + 1.0) ** 2,
        "linear": lambda A: A @ X.T,
        "precomputed": lambda A: oracles.gaussian(A, X, 2.0),
    }[kernel]
    K, K_new = both(X), both(new)
    given, given_new = (K, K_new) if kernel == "precomputed" else (X, new)
    W = graph_of(X)
    model = ElasticEmbedding(lam=0.5, mu=2.0, gamma=0.3, kernel=kernel, sigma=2.0, degree=2, graph=W).fit(given, y)
    values, Z = oracles.elastic(W, y, 0.5, oracles.elastic_kernel_penalty(K, 2.0, 0.3))
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-8)
    oracles.same_columns(model.embedding_, Z, 1e-8)
    V = 0.3 * np.linalg.inv(np.eye(65) + 0.3 * K) @ model.embedding_
    np.testing.assert_allclose(model.dual_coef_, V, atol=1e-9)
    np.testing.assert_allclose(model.transform(given_new), K_new @ V, atol=1e-8)


def test_precomputed_kernel_makes_its_own_graph(rows):
    X, y, new = rows
    K, K_new = X @ X.T, new @ X.T  # distances of the linear kernel are those of the rows
    one = ElasticEmbedding(kernel="precomputed").fit(K, y)
    other = ElasticEmbedding(kernel="linear").fit(X, y)
    np.testing.assert_allclose(one.embedding_, other.embedding_, atol=1e-8)
    np.testing.assert_allclose(one.transform(K_new), other.transform(new), atol=1e-8)


def test_graphs(rows):
    X, y, _ = rows
    beta = oracles.mean_sq_distance(X)
    graphs = {"heat": graph_of(X), "binary": oracles.heat_graph(X, 10, np.inf), "full": full_graph(X, beta=beta)}
    R = oracles.elastic_linear_penalty(X, 1.0, 1.0)
    for name, W in graphs.items():
        expected = oracles.elastic(W, y, 1.0, R)[0]
        loops = W + np.diag(np.arange(65.0))  # count nowhere
        for given in (name, W, sp.csr_array(W), loops):
            model = ElasticEmbedding(graph=given, **ONES).fit(X, y)
            np.testing.assert_allclose(model.eigenvalues_, expected, rtol=1e-8)
    assert np.isfinite(ElasticEmbedding(graph="l1").fit(X, y).embedding_).all()


def test_iterated_and_direct_systems_agree(rows, monkeypatch):
    X, y, new = rows
    direct = ElasticEmbedding(mu=1e-3).fit(X, y)
    monkeypatch.setattr(systems, "_DIRECT_FLOPS", 0.0)
    monkeypatch.setattr(systems, "_DENSE_ROWS", 0)
    iterated = ElasticEmbedding(mu=1e-3).fit(X, y)
    np.testing.assert_allclose(iterated.eigenvalues_, direct.eigenvalues_, rtol=1e-7)
    np.testing.assert_allclose(iterated.transform(new), direct.transform(new), atol=1e-6)


# What the method is


@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_one_label_per_class_is_flexible_manifold_embedding(rows, kernel):
    X, _, _ = rows
    y = np.full(65, -1)
    y[[4, 33, 60]] = [0, 1, 2]
    if kernel is None:
        R = oracles.elastic_linear_penalty(X, 0.5, 2.0)
    else:
        R = oracles.elastic_kernel_penalty(oracles.gaussian(X, X, 2.0), 0.5, 2.0)
    F = oracles.fme(graph_of(X), y[:, None] == np.arange(3), R)
    for lam in (1e-3, 10.0):
        Z = ElasticEmbedding(lam=lam, mu=0.5, gamma=2.0, kernel=kernel, sigma=2.0).fit(X, y).embedding_
        np.testing.assert_allclose(Z, F @ Z[[4, 33, 60]], atol=1e-10)
        nearest = KNeighborsClassifier(1).fit(Z[[4, 33, 60]], [0, 1, 2]).predict(Z)
        np.testing.assert_array_equal(nearest, F.argmax(axis=1))


def test_margins_act_below_all_dimensions_only(rows):
    X, y, _ = rows
    one, other = (ElasticEmbedding(lam=lam, gamma=1.0).fit(X, y).embedding_ for lam in (0.01, 100.0))
    np.testing.assert_allclose(oracles.sq_dist(one), oracles.sq_dist(other), atol=1e-9)
    assert abs(oracles.sq_dist(one[:, :3]) - oracles.sq_dist(other[:, :3])).max() > 0.1


def test_harmonic_limit(rows):
    # μγ = 1e-18: the graph alone, whatever the regression says.
    X, y, _ = rows
    model = ElasticEmbedding(lam=1.0, mu=1e-9, gamma=1e-9).fit(X, y)
    values, Z = oracles.elastic(graph_of(X), y, 1.0, np.zeros((65, 65)))
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-8)
    oracles.same_columns(model.embedding_, Z, 1e-8)


def test_regression_limit(rows):
    # μγ = 1e18: Z = [X 1]V, and V solves a problem of p + 1 dimensions that holds no large number.
    X, y, _ = rows
    mu, D = 1e9, constraint(y)
    Phi = np.column_stack([X - X.mean(axis=0), np.ones(65)])
    W, known = graph_of(X), np.flatnonzero(y != -1)
    A = np.diag(W.sum(axis=1)) - W
    A[np.ix_(known, known)] += oracles.margin_matrices(y[known])[0]
    upper = Phi.T @ A @ Phi + mu * np.diag([1.0] * 5 + [0.0])
    values, V = la.eigh(upper, Phi.T @ (D[:, None] * Phi))
    model = ElasticEmbedding(lam=1.0, mu=mu, gamma=1e9).fit(X, y)
    np.testing.assert_allclose(model.eigenvalues_[:6], values, rtol=1e-6)
    oracles.same_columns(model.embedding_[:, :6], Phi @ V, 1e-6)
    np.testing.assert_allclose(model.transform(X)[:, :6], model.embedding_[:, :6], atol=1e-6)
    assert_constrained(model, y)


@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_ends_of_the_grid(rows, kernel):
    X, y, new = rows
    for lam, mu, gamma in product((1e-9, 1.0, 1e9), repeat=3):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = ElasticEmbedding(lam=lam, mu=mu, gamma=gamma, kernel=kernel).fit(X, y)
        assert_constrained(model, y)
        assert np.isfinite(model.transform(new)).all()


def decimals(A):
    return np.frompyfunc(lambda value: Decimal(float(value)), 1, 1)(A)


def solved(A, B):
    """A^-1 B by plain elimination; for a positive definite A of decimals."""
    both = np.hstack([A, B])
    for i in range(len(A)):
        both[i] = both[i] / both[i, i]
        others = np.arange(len(A)) != i
        both[others] = both[others] - both[others, i][:, None] * both[i]
    return both[:, len(A) :]


@pytest.mark.parametrize("p", [2, 11])
def test_all_columns_over_the_grid(rng, p):
    # In 80 digits: Z = F Z_l with F_u = -A_uu^-1 A_ul, and Z_l diagonalises the Schur complement with the margins.
    n, known = 24, np.arange(8)
    X, y = rng.standard_normal((n, p)), np.where(np.arange(n) < 8, np.arange(n), -1)
    W = oracles.unit_graph(X, 5)
    M, _ = oracles.margin_matrices(y[known])
    for mu, gamma in [(1.0, 1.0), (1e3, 1e3), (1e6, 1e6), (1e6, 1e9), (1e9, 1e6), (1e9, 1e9), (1e-9, 1e9), (1e9, 1e-9)]:
        with localcontext() as context:
            context.prec = 80
            weights, rows = decimals(W), decimals(X)
            A = np.diag(weights.sum(axis=1)) - weights
            centred = rows - rows.sum(axis=0) / n
            inside = centred.T @ centred + np.diag(decimals(np.full(p, 1.0))) / Decimal(gamma)
            hat = centred @ solved(inside, centred.T)
            A = A + Decimal(mu) * Decimal(gamma) * (decimals(np.eye(n)) - Decimal(1) / n - hat)
            F = -solved(A[8:, 8:], A[8:, :8])
            schur = A[:8, :8] + A[:8, 8:] @ F
            for lam in (1e-9, 1.0, 1e9):
                model = ElasticEmbedding(lam=lam, mu=mu, gamma=gamma, graph=W).fit(X, y)
                Z = decimals(model.embedding_)
                np.testing.assert_allclose((F @ Z[:8]).astype(float), model.embedding_[8:], atol=1e-8)
                energy = (Z[:8].T @ (schur + Decimal(lam) * decimals(M)) @ Z[:8]).astype(float)
                scale = 1.0 / np.sqrt(model.eigenvalues_ + 1.0)
                diagonal = scale**2 * model.eigenvalues_
                # Eigenvalues of 2e-9, 2.7e8 and 5e14 together: a rounding of the last is 7e-6 in units of the others.
                np.testing.assert_allclose(energy * scale * scale[:, None], np.diag(diagonal), atol=4e-5)
                assert_constrained(model, y, 1e-12)


# Odd inputs


def test_all_rows_labelled(rows):
    X, _, _ = rows
    y = np.repeat([0, 1, 2], [30, 20, 15])
    model = ElasticEmbedding(len(y), **ONES).fit(X, y)
    values, _ = oracles.elastic(graph_of(X), y, 1.0, oracles.elastic_linear_penalty(X, 1.0, 1.0))
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-8)
    assert_constrained(model, y)
    with pytest.warns(UserWarning, match="all rows have labels: n_components=None keeps 2 dimensions"):
        few = ElasticEmbedding(**ONES).fit(X, y)
    np.testing.assert_allclose(few.eigenvalues_, values[:2], rtol=1e-8)


def test_all_rows_labelled_keep_the_classes_apart():
    """One dimension for every labelled row repeats the rows: 1-NN of new rows had 0.42 on wine."""
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    with pytest.warns(UserWarning, match="all rows have labels"):
        model = ElasticEmbedding().fit(X[::2], y[::2])
    assert KNeighborsClassifier(1).fit(model.embedding_, y[::2]).score(model.transform(X[1::2]), y[1::2]) > 0.9


def test_component_without_a_label(rows):
    X, y, _ = rows
    W = graph_of(X)
    W[:12, 12:] = W[12:, :12] = 0.0  # joined to the others by the regression alone
    y[:12] = -1
    with pytest.warns(UserWarning, match="connected components"):
        model = ElasticEmbedding(graph=W, **ONES).fit(X, y)
    values, Z = oracles.elastic(W, y, 1.0, oracles.elastic_linear_penalty(X, 1.0, 1.0))
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-8)
    oracles.same_columns(model.embedding_, Z, 1e-8)
    with pytest.warns(UserWarning, match="singular to working precision|connected components"):
        model = ElasticEmbedding(graph=W, mu=1e-9, gamma=1e-9).fit(X, y)
    assert_constrained(model, y)


def test_far_groups_are_joined_with_a_warning(rows):
    X, y, _ = rows
    X = np.vstack([X, X + 1e3])
    y = np.append(y, np.full(65, -1))
    with pytest.warns(UserWarning, match="2 connected components, joined"):
        model = ElasticEmbedding().fit(X, y)
    assert_constrained(model, y)


def test_duplicates_with_different_labels(rows):
    X, y, _ = rows
    X[3] = X[31] = X[55]
    X[10:20] = X[20]
    for kernel in (None, "rbf"):
        for gamma in (1.0, 1e9):
            model = ElasticEmbedding(kernel=kernel, gamma=gamma).fit(X, y)
            assert_constrained(model, y)
            assert np.isfinite(model.transform(X)).all()


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e-150, 1e-3, 1e150, 1e160])
def test_scales(rows, scale):
    X, y, _ = rows
    model = ElasticEmbedding(gamma=1e-3).fit(X * scale, y)
    assert_constrained(model, y)
    assert np.isfinite(model.transform(X * scale)).all()
    for other in (SDA(), SDE(), TCA()):
        assert np.isfinite(other.fit(X * scale, y).transform(X * scale)).all()


def ridge_of_scaled_features(X, Y, ridge):
    """Coefficients of ridge regression and its hat matrix, from features of unit length."""
    X = X - X.mean(axis=0)
    sizes = np.sqrt((X**2).sum(axis=0))
    inverse = np.linalg.inv((X / sizes).T @ (X / sizes) + np.diag(ridge / sizes**2))
    return inverse @ ((X / sizes).T @ (Y - Y.mean(axis=0))) / sizes[:, None], X / sizes @ inverse @ (X / sizes).T


@pytest.mark.parametrize("size", [1e3, 3e7, 1e9, 1e11])
def test_features_of_different_scales(rng, size):
    X, Y = rng.standard_normal((40, 3)) * [1.0, size, 1e-3], rng.standard_normal((40, 2))
    coef, hat = ridge_of_scaled_features(X, Y, 1e-7)
    smoother = LinearRidgeSmoother(X, 1e-7)
    np.testing.assert_allclose(smoother.fit(Y)[0], coef, rtol=1e-15 * max(1e6, size * 1e3))
    np.testing.assert_allclose(smoother.hat(np.arange(40)), hat + 1 / 40, atol=1e-15 * max(1e6, size * 1e3))
    penalty = smoother.penalty(1.0).added_to(np.zeros((40, 40)))
    np.testing.assert_allclose(penalty, np.eye(40) - hat - 1 / 40, atol=1e-15 * max(1e6, size * 1e3))
    wide = np.hstack([rng.standard_normal((8, 20)), size * rng.standard_normal((8, 1))])
    coef, _ = ridge_of_scaled_features(wide, Y[:8], 0.5)
    np.testing.assert_allclose(LinearRidgeSmoother(wide, 0.5).fit(Y[:8])[0], coef, atol=1e-15 * max(1e3, size))


def test_a_useful_feature_beside_large_noise(rng):
    truth = np.arange(80) % 2
    X = np.column_stack([2.0 * truth - 1.0 + 0.1 * rng.standard_normal(80), 1e9 * rng.standard_normal(80)])
    y = np.where(np.arange(80) < 20, truth, -1)
    assert FME(mu=1e6, gamma=1e3).fit(X, y).score(X, truth) == 1.0
    for model in (ElasticEmbedding(mu=1e6, gamma=1e3), TCA(3, mu=1e6)):
        Z = model.fit(X, y).transform(X)
        nearest = KNeighborsClassifier(1).fit(Z[:20], y[:20])
        assert nearest.score(Z, truth) == 1.0, model


def test_polynomials_out_of_range(rows):
    X, y, _ = rows
    model = ElasticEmbedding(kernel="poly", gamma=1e-33).fit((1e6 * X).astype(np.float32), y)
    expected = ElasticEmbedding(kernel="poly", gamma=1e-33).fit((1e6 * X).astype(np.float32).astype(float), y)
    mapped = model.transform((1e6 * X).astype(np.float32))
    assert mapped.dtype == np.float32
    np.testing.assert_allclose(mapped, expected.transform((1e6 * X).astype(np.float32).astype(float)), atol=1e-4)
    for scale, degree in ((1e52, 3), (1e10, 20)):
        with pytest.raises(ValueError, match=r"degree and coef0 must keep .* Got degree = .* scale the data down"):
            ElasticEmbedding(kernel="poly", degree=degree).fit(scale * X, y)


def test_refitting_with_another_kernel_leaves_nothing_behind(rows):
    X, y, _ = rows
    for model in (ElasticEmbedding(3), ElasticEmbeddingCV(3, sigma=2.0, **SMALL)):
        for kernel in (None, "rbf", None):
            model.set_params(kernel=kernel).fit(X, y)
            assert hasattr(model, "coef_") == hasattr(model, "intercept_") == (kernel is None)
            assert hasattr(model, "dual_coef_") == (kernel is not None)


def test_constant_rows():
    X, y = np.ones((20, 3)), np.array([0, 1] * 3 + [-1] * 14)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_constrained(ElasticEmbedding().fit(X, y), y)
        assert np.isfinite(SDA().fit(X, y).embedding_).all()


def test_more_features_than_rows(rng):
    X, new = rng.standard_normal((40, 90)), rng.standard_normal((5, 90))
    y = np.array([0, 1, 2, 0, 1, 2] + [-1] * 34)
    W = graph_of(X)
    model = ElasticEmbedding(lam=1.0, gamma=0.01).fit(X, y)
    values, _ = oracles.elastic(W, y, 1.0, oracles.elastic_linear_penalty(X, 1.0, 0.01))
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-8)
    np.testing.assert_allclose(model.coef_, oracles.ridge(X, model.embedding_, 100.0)[0], atol=1e-10)
    model = SDA(alpha=0.2, ridge=0.3).fit(X, y)
    S_b, S_t = oracles.sda_matrices(X[:6], y[:6])
    within = S_t + 0.2 * X.T @ (np.diag(W.sum(axis=1)) - W) @ X + 0.3 * np.eye(90)
    values, vectors = la.eigh(S_b, within)
    np.testing.assert_allclose(model.eigenvalues_, values[::-1][:2], rtol=1e-9)
    oracles.same_columns(model.transform(new), new @ vectors[:, ::-1][:, :2], 1e-7)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 10}, "n_components must be an integer from 1 to 9, the number of labelled rows"),
        ({"n_components": 0}, "n_components"),
        ({"lam": 0.0}, "lam must be a positive"),
        ({"mu": -1.0}, "mu must be a positive"),
        ({"gamma": np.nan}, "gamma must be a positive"),
        ({"kernel": "cubic"}, "kernel must be one of"),
        ({"kernel": "rbf", "sigma": 0.0}, "sigma must be a positive"),
        ({"graph": "knn"}, "graph must be one of 'heat', 'binary', 'full', 'l1' or a matrix. Got 'knn'"),
        ({"graph": np.eye(3)}, "graph must be a matrix of shape .65, 65."),
        ({"graph": np.triu(np.ones((65, 65)))}, "graph must be symmetric"),
        ({"graph": -np.ones((65, 65))}, "graph must have finite weights"),
        ({"n_neighbors": 65}, "n_neighbors must be an integer from 1 to 64"),
    ],
)
def test_bad_parameters(rows, parameters, message):
    X, y, _ = rows
    model = ElasticEmbedding(**parameters)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert not hasattr(model, "embedding_") and not hasattr(model, "classes_")


@pytest.mark.parametrize("estimator", ALL, ids=names)
def test_bad_labels(rows, estimator):
    X, y, _ = rows
    for labels, message in (
        (np.full(65, -1), "at least one label"),
        (np.where(y == 0, 0, -1), "at least 2 classes"),
        (y[:50], "one label per row of X, 65"),
        (None, "requires y"),
    ):
        with pytest.raises(ValueError, match=message):
            clone(estimator).fit(X, labels)


# The search


@pytest.mark.parametrize("target", ["transform", "embedding"])
@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_search_is_the_loop_of_fits(rows, kernel, target, capsys):
    X, y, new = rows
    # Not a small λ: the first column would be the constant, where all rows are equally near.
    grid = {"lam": (30.0, 1e3), "mu": (1e-6, 1.0), "gamma": (1e-3, 1e3)}
    options = {"kernel": kernel, "sigma": (2.0,), "target": target, "cv": 2, "n_repeats": 2, "random_state": 3}
    search = ElasticEmbeddingCV(verbose=True, **options, **grid).fit(X, y)
    assert "8 of 8" in capsys.readouterr().err
    known = np.flatnonzero(y != -1)
    results = search.cv_results_
    assert len(results["score"]) == 8
    columns = [results[name] for name in ("lam", "mu", "gamma", "n_components", "score")]
    for lam, mu, gamma, d, score in zip(*columns, strict=True):
        curve = np.zeros(4)
        splitter = RepeatedStratifiedKFold(n_splits=2, n_repeats=2, random_state=3)
        for kept, hidden in splitter.split(known, y[known]):
            some = y.copy()
            some[known[hidden]] = -1
            model = ElasticEmbedding(lam=lam, mu=mu, gamma=gamma, kernel=kernel, sigma=2.0).fit(X, some)
            where = model.transform(X) if target == "transform" else model.embedding_
            for size in range(4):
                nearest = KNeighborsClassifier(1).fit(model.embedding_[known[kept], : size + 1], y[known[kept]])
                curve[size] += np.sum(nearest.predict(where[known[hidden], : size + 1]) == y[known[hidden]])
        np.testing.assert_allclose(score, curve.max() / 18)
        assert curve[d - 1] == curve.max()
    assert search.best_score_ == results["score"].max()
    again = ElasticEmbedding(kernel=kernel, **search.best_params_).fit(X, y)
    np.testing.assert_array_equal(search.transform(new), again.transform(new))
    np.testing.assert_array_equal(search.embedding_, again.embedding_)


@pytest.mark.filterwarnings("ignore:the graph has")
@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_search_chooses_the_graph_too(rows, kernel):
    X, y, new = rows
    options = {"lam": (30.0, 1e3), "mu": (1e-6, 1.0), "gamma": (1e-3, 1e3), "kernel": kernel, "sigma": (2.0, 3.0)}
    options |= {"cv": 2, "n_repeats": 1}
    search = ElasticEmbeddingCV(n_neighbors=[3, 9], beta=("local", "mean"), **options).fit(X, y)
    results = search.cv_results_
    for k, beta in product((3, 9), ("local", "mean")):
        alone = ElasticEmbeddingCV(n_neighbors=k, beta=beta, **options).fit(X, y)
        own = (results["n_neighbors"] == k) & (results["beta"] == beta)
        for name, values in alone.cv_results_.items():
            order = [np.lexsort([r[n] for n in ("lam", "mu", "gamma", "sigma")]) for r in (results, alone.cv_results_)]
            order[0] = order[0][own[order[0]]]
            np.testing.assert_array_equal(results[name][order[0]], values[order[1]])
        assert not {"n_neighbors", "beta"} & {*alone.best_params_, *alone.cv_results_}
    assert search.best_score_ == results["score"].max()
    assert {"n_neighbors", "beta"} <= set(search.best_params_)
    again = ElasticEmbedding(kernel=kernel, **search.best_params_).fit(X, y)
    np.testing.assert_array_equal(search.transform(new), again.transform(new))


def test_search_at_the_upper_end(rng):
    # Beyond the first p + 1 columns the labelled rows' own problem is singular to rounding there, FME's is not.
    truth = np.repeat(np.arange(4), 15)
    X = 2.0 * rng.standard_normal((4, 2))[truth] + rng.standard_normal((60, 2))
    y = np.where(np.arange(60) % 5 < 2, truth, -1)
    known = np.flatnonzero(y != -1)
    search = ElasticEmbeddingCV(
        lam=1.0, mu=1e9, gamma=1e9, target="embedding", cv=2, n_repeats=3, n_components=12, random_state=0
    ).fit(X, y)
    found = 0
    for kept, hidden in RepeatedStratifiedKFold(n_splits=2, n_repeats=3, random_state=0).split(known, y[known]):
        some = y.copy()
        some[known[hidden]] = -1
        Z = ElasticEmbedding(lam=1.0, mu=1e9, gamma=1e9).fit(X, some).embedding_[known]
        found += np.sum(KNeighborsClassifier(1).fit(Z[kept], y[known[kept]]).predict(Z[hidden]) == y[known[hidden]])
    np.testing.assert_allclose(search.best_score_, found / (3 * len(known)))


def test_search_takes_single_weights(rows):
    X, y, new = rows
    search = ElasticEmbeddingCV(3, lam=2.0, mu=0.5, gamma=3.0, kernel="rbf", sigma=2.0).fit(X, y)
    assert search.best_params_ == {"lam": 2.0, "mu": 0.5, "gamma": 3.0, "sigma": 2.0, "n_components": 3}
    one = ElasticEmbedding(**search.best_params_, kernel="rbf").fit(X, y)
    np.testing.assert_array_equal(search.transform(new), one.transform(new))


def test_ties_of_the_search_end_in_their_middle(rows):
    X, y, _ = rows
    search = ElasticEmbeddingCV(3, lam=1.0, mu=(1e-13, 1e-12, 1e-11, 1e-10, 1e-9), gamma=1e-6).fit(X, y)
    assert len(set(search.cv_results_["score"])) == 1  # a regression of so little weight changes nothing
    assert search.best_params_["mu"] == 1e-11


def test_search_over_the_papers_grid(rows):
    X, y, new = rows
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search = ElasticEmbeddingCV(cv=2, n_repeats=1).fit(X, y)
        assert ElasticEmbeddingCV(2, cv=2, n_repeats=1).fit(X, y).transform(new).shape == (12, 2)
    assert len(search.cv_results_["score"]) == 343
    assert 1 / 3 < search.best_score_ <= 1


def test_kernel_widths_of_the_search(rows):
    X, y, _ = rows
    search = ElasticEmbeddingCV(kernel="rbf", lam=(1.0,), mu=(1.0,), gamma=(1.0,)).fit(X, y)
    expected = 2.0 ** np.arange(1, 7) * oracles.mean_sq_distance(X)
    np.testing.assert_allclose(search.cv_results_["sigma"] ** 2, expected, rtol=1e-12)
    assert search.best_params_["sigma"] in search.cv_results_["sigma"]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"lam": ()}, "lam must be a positive number or a sequence of them"),
        ({"mu": -1.0}, "mu must be a positive"),
        ({"gamma": (1.0, -1.0)}, "every entry of gamma must be a positive"),
        ({"kernel": "rbf", "sigma": (0.0,)}, "every entry of sigma"),
        ({"cv": 1}, "cv must be at least 2"),
        ({"n_repeats": 0}, "n_repeats must be an integer of at least 1"),
        ({"target": "both"}, "target must be 'transform' or 'embedding'"),
        ({"n_components": 10}, "n_components must be an integer from 1 to 9"),
        ({"n_neighbors": []}, "n_neighbors must hold at least one candidate"),
        ({"n_neighbors": [3, 0]}, "n_neighbors must be an integer of at least 1"),
        ({"beta": ("local", -1.0)}, "beta must be"),
    ],
)
def test_bad_searches(rows, parameters, message):
    X, y, _ = rows
    with pytest.raises(ValueError, match=message):
        ElasticEmbeddingCV(**parameters).fit(X, y)


def test_search_with_one_label_in_a_class_hides_the_others(rows):
    X, y, _ = rows
    y[[52, 55]] = [2, -1]
    assert (np.bincount(y[y >= 0]) == 1).any()
    model = ElasticEmbeddingCV(3, **SMALL).fit(X, y)
    assert 0 <= model.best_score_ <= 1


def test_search_with_one_label_per_class_takes_the_defaults(rows):
    X, y, _ = rows
    once = np.full(len(y), -1)
    for c in np.unique(y[y >= 0]):
        once[np.flatnonzero(y == c)[0]] = c
    with pytest.warns(UserWarning, match="no class has two labelled rows"):
        model = ElasticEmbeddingCV(2, **SMALL).fit(X, once)
    expected = ElasticEmbedding(2).fit(X, once)
    np.testing.assert_allclose(model.embedding_, expected.embedding_, atol=1e-10)


# Discriminant projections and TCA


@pytest.mark.parametrize(("alpha", "beta"), [(0.1, 0.1), (0.0, 2.0), (30.0, 1e-3)])
def test_sda_and_sde_oracles(rows, alpha, beta):
    X, y, new = rows
    known = y != -1
    W = graph_of(X)
    for model, matrices in (
        (SDA(2, alpha=alpha, ridge=beta), oracles.sda_matrices),
        (SDE(4, alpha=alpha, ridge=beta), oracles.sde_matrices),
    ):
        model.fit(X, y)
        between, within = matrices(X[known], y[known])
        within = within + alpha * X.T @ (np.diag(W.sum(axis=1)) - W) @ X + beta * np.eye(5)
        values, vectors = la.eigh(between, within)
        d = len(model.eigenvalues_)
        np.testing.assert_allclose(model.eigenvalues_, values[::-1][:d], rtol=1e-9)
        oracles.same_columns(model.components_.T, vectors[:, ::-1][:, :d], 1e-8)
        np.testing.assert_allclose(model.transform(new), new @ model.components_.T, atol=1e-12)
        np.testing.assert_allclose(model.embedding_, X @ model.components_.T, atol=1e-12)
        assert (np.abs(model.components_).max(axis=1) == model.components_.max(axis=1)).all()


def test_sda_without_a_graph_is_linear_discriminant_analysis(rows):
    X, _, _ = rows
    y = np.repeat([0, 1, 2], [30, 20, 15])
    model = SDA(alpha=0.0, ridge=1e-9).fit(X, y)
    expected = LinearDiscriminantAnalysis(solver="eigen").fit(X, y).scalings_[:, :2]
    assert oracles.largest_angle(model.components_.T, expected) < 1e-6


def test_projections_of_singular_scatters(rows):
    X, y, _ = rows
    X = 1e9 * np.hstack([X, X[:, :2], np.ones((65, 1))])  # beta is nothing beside rounding
    for model in (SDA(alpha=0.0), SDE(4, alpha=0.0), SDA(), SDE(4)):
        with pytest.warns(UserWarning, match="singular"):
            model.fit(X, y)
        assert np.isfinite(model.embedding_).all()
        known = np.flatnonzero(y != -1)
        nearest = KNeighborsClassifier(1).fit(model.embedding_[known], y[known])
        assert nearest.score(model.embedding_, np.repeat([0, 1, 2], [30, 20, 15])) > 0.5


@pytest.mark.parametrize(("alpha", "beta", "mu"), [(1.0, 0.1, 1.0), (0.2, 5.0, 0.01), (0.5, 1.0, 0.0)])
def test_tca_oracle(rows, alpha, beta, mu):
    X, y, new = rows
    known = np.flatnonzero(y != -1)
    W = graph_of(X)
    A = np.diag(W.sum(axis=1)) - W + oracles.elastic_linear_penalty(X, mu * beta, 1 / beta)
    A[np.ix_(known, known)] += alpha * oracles.margin_matrices(y[known])[0]
    values, vectors = np.linalg.eigh(A)
    for graph in ("heat", W):
        model = TCA(4, alpha=alpha, ridge=beta, mu=mu, graph=graph).fit(X, y)
        np.testing.assert_allclose(model.eigenvalues_, values[:4], rtol=1e-8)
        oracles.same_columns(model.embedding_, vectors[:, :4], 1e-8)
        coef, intercept = oracles.ridge(X, model.embedding_, beta)
        np.testing.assert_allclose(model.transform(new), new @ coef + intercept, atol=1e-10)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (SDA(3), "n_components must be an integer from 1 to 2"),
        (SDE(6), "n_components must be an integer from 1 to 5"),
        (TCA(66), "n_components must be an integer from 1 to 65"),
        (SDA(alpha=-1.0), "alpha must be"),
        (SDE(ridge=0.0), "ridge must be"),
        (TCA(mu=-1.0), "mu must be"),
    ],
    ids=str,
)
def test_bad_projections(rows, estimator, message):
    X, y, _ = rows
    with pytest.raises(ValueError, match=message):
        estimator.fit(X, y)


# Conventions


@pytest.mark.parametrize("estimator", ALL, ids=names)
def test_same_bits_in_any_batch(rows, estimator):
    X, y, new = rows
    model = clone(estimator).fit(X, y)
    expected = model.transform(new)
    assert expected.shape == (12, model.embedding_.shape[1])
    np.testing.assert_array_equal(model.transform(np.asfortranarray(new)), expected)
    np.testing.assert_array_equal(np.vstack([model.transform(row[None]) for row in new]), expected)
    with threadpool_limits(1):
        np.testing.assert_array_equal(model.transform(new), expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).transform(new), expected)
    np.testing.assert_array_equal(clone(estimator).fit_transform(X, y), model.embedding_)


@pytest.mark.parametrize("estimator", ALL, ids=names)
def test_float32_and_strings(rows, estimator):
    X, y, new = rows
    wide, narrow = clone(estimator).fit(X, y), clone(estimator).fit(X.astype(np.float32), y)
    assert narrow.embedding_.dtype == narrow.transform(new.astype(np.float32)).dtype == np.float32
    assert wide.embedding_.dtype == np.float64
    named = np.array([-1 if label == -1 else "abc"[label] for label in y], dtype=object)
    model = clone(estimator).fit(X, named)
    assert model.classes_.tolist() == ["a", "b", "c"] and wide.classes_.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(model.transform(new), wide.transform(new))


def test_pipeline_and_names(rows):
    X, y, new = rows
    pipeline = make_pipeline(StandardScaler(), ElasticEmbedding(3)).fit(X, y)
    assert pipeline.transform(new).shape == (12, 3)
    assert pipeline.get_feature_names_out().tolist() == [f"elasticembedding{i}" for i in range(3)]


# Real data


def test_faces(data_dir):
    data = np.load(data_dir / "yaleb.npz")
    kept = (data["labels"] >= 10) & (data["labels"] <= 37)
    X, truth = data["images"][kept].reshape(kept.sum(), -1) / 255.0, data["labels"][kept]
    rng = np.random.default_rng(0)
    order = rng.permutation(len(X))
    train, new = order[: len(X) // 2], order[len(X) // 2 :]
    mean = X[train].mean(axis=0)
    _, size, axes = la.svd(X[train] - mean, full_matrices=False)
    X = (X - mean) @ axes[: np.searchsorted(np.cumsum(size**2), 0.98 * np.sum(size**2)) + 1].T
    known = np.concatenate([np.flatnonzero(truth[train] == c)[:3] for c in np.unique(truth)])
    y = np.full(len(train), -1)
    y[known] = truth[train][known]
    accuracy = {}
    for model in (ElasticEmbedding(lam=1e-9, mu=1e3, gamma=1.0), SDA(alpha=1e-3, ridge=1.0)):
        model.fit(X[train], y)
        nearest = KNeighborsClassifier(1).fit(model.embedding_[known], y[known])
        accuracy[type(model).__name__] = nearest.score(model.transform(X[new]), truth[new])
    assert accuracy["ElasticEmbedding"] > 0.6
    assert accuracy["ElasticEmbedding"] > accuracy["SDA"] + 0.03


def test_swiss_roll_needs_no_dense_matrix():
    from sklearn.datasets import make_swiss_roll

    X, t = make_swiss_roll(3000, random_state=0)
    y = np.where(np.arange(3000) < 40, np.digitize(t, [7.0, 10.0]), -1)
    model = ElasticEmbedding(3, mu=1e-3).fit(X, y)
    nearest = KNeighborsClassifier(1).fit(model.embedding_[:40], y[:40])
    assert nearest.score(model.embedding_[40:], np.digitize(t[40:], [7.0, 10.0])) > 0.9
    W = knn_graph(X, 10)
    W.data /= np.median(W.data)
    np.testing.assert_allclose(ElasticEmbedding(3, mu=1e-3, graph=W).fit(X, y).embedding_, model.embedding_, atol=1e-12)


@pytest.mark.process
def test_memory_is_linear_in_the_number_of_rows(grown_memory):
    prepare = """
import numpy as np
from manifast import ElasticEmbedding
rng = np.random.default_rng(0)
X = rng.standard_normal((12000, 60))
y = np.full(12000, -1)
y[:40] = np.arange(40) % 5
ElasticEmbedding().fit(X[:200], y[:200])
"""
    # X is 6 MB, the response to 40 labelled rows 4 MB; a square matrix would be 1150.
    assert grown_memory(prepare, "ElasticEmbedding().fit(X, y)") < 100
