"""Label propagation: oracles with explicit inverses, scikit-learn, large systems, odd graphs, extremes and bits."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import oracles
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits, make_blobs, make_moons, make_swiss_roll
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelPropagation, LabelSpreading
from threadpoolctl import threadpool_limits

from manifast import FME, GFHF, LGC, RMGT, TPTSSR, LapRLS
from manifast._linalg import systems
from manifast._linalg.conjugate_gradients import GroundedLaplacian
from manifast._linalg.systems import grounded_solution
from manifast.classifiers.transduction import harmonic
from manifast.graphs import class_graphs, knn_graph

ON_GRAPHS = [
    GFHF(),
    GFHF(graph="binary"),
    GFHF(graph="full"),
    GFHF(graph="l1"),
    GFHF(extension="kernel_ridge"),
    LGC(),
    RMGT(),
    LapRLS(),
    LapRLS(kernel="rbf"),
    FME(),
    FME(kernel="rbf"),
]
ALL = [*ON_GRAPHS, TPTSSR()]


def few_labels(n=90, seed=0, per_class=4):
    """Three noisy clusters, a few labels of each in no particular order, and all labels."""
    X, y = make_blobs(n, 4, centers=3, cluster_std=2.5, center_box=(-4, 4), random_state=seed)
    some = np.full(n, -1)
    for c in range(3):
        some[np.flatnonzero(y == c)[3 : 3 + per_class]] = c
    return X, some, y


def labelled_matrix(some):
    return (some[:, None] == np.arange(some.max() + 1)).astype(float)


# The methods as they are defined, with explicit inverses


def gfhf(W, some):
    L = np.diag(W.sum(axis=1)) - W
    u, l = some < 0, some >= 0  # noqa: E741
    F = labelled_matrix(some)
    F[u] = -np.linalg.inv(L[np.ix_(u, u)]) @ L[np.ix_(u, l)] @ F[l]
    return F


def lgc(W, some, alpha):
    roots = np.diag(1 / np.sqrt(W.sum(axis=1)))
    return (1 - alpha) * np.linalg.inv(np.eye(len(W)) - alpha * roots @ W @ roots) @ labelled_matrix(some)


def of_equal_mass(F):
    return np.column_stack([column / sum(column) for column in F.T])


def rmgt(W, some, prior):
    L = np.diag(W.sum(axis=1)) - W
    u, l = some < 0, some >= 0  # noqa: E741
    inverse = np.linalg.inv(L[np.ix_(u, u)])
    F = gfhf(W, some)
    h = inverse @ np.ones(u.sum())
    F[u] += np.outer(h / h.sum(), len(W) * prior - F[l].sum(axis=0) - F[u].sum(axis=0))
    return F


def laprls_linear(X, W, some, gamma_A, gamma_I):
    """Normal equations in weights and bias at once; the bias has no penalty."""
    L, J = np.diag(W.sum(axis=1)) - W, np.diag((some >= 0).astype(float))
    wide = np.column_stack([X, np.ones(len(X))])
    cost = np.diag(np.append(np.full(X.shape[1], gamma_A), 0.0))
    both = np.linalg.inv(wide.T @ (J + gamma_I * L) @ wide + cost) @ wide.T @ labelled_matrix(some)
    return both[:-1], both[-1]


def laprls_kernel(K, W, some, gamma_A, gamma_I):
    L, J = np.diag(W.sum(axis=1)) - W, np.diag((some >= 0).astype(float))
    return np.linalg.inv(J @ K + gamma_A * np.eye(len(K)) + gamma_I * L @ K) @ labelled_matrix(some)


def fme_linear(X, W, some, mu, gamma, label_weight):
    """F, weights and bias from the three conditions for a minimum, and the penalty of SEE's equation (13)."""
    n, p = X.shape
    H, L = np.eye(n) - 1 / n, np.diag(W.sum(axis=1)) - W
    U = np.diag(label_weight * (some >= 0))
    R = mu * gamma * H @ np.linalg.inv(np.eye(n) + gamma * H @ X @ X.T @ H) @ H
    F = np.linalg.inv(U + L + R) @ U @ labelled_matrix(some)
    coef = gamma * np.linalg.inv(gamma * X.T @ H @ X + np.eye(p)) @ X.T @ H @ F
    return F, coef, (F - X @ coef).mean(axis=0)


def fme_kernel(K, W, some, mu, gamma, label_weight):
    n = len(K)
    L, U = np.diag(W.sum(axis=1)) - W, np.diag(label_weight * (some >= 0))
    F = np.linalg.inv(U + L + mu * gamma * np.linalg.inv(np.eye(n) + gamma * K)) @ U @ labelled_matrix(some)
    return F, gamma * np.linalg.inv(np.eye(n) + gamma * K) @ F


def tptssr(x, X, y, share, ridge):
    """Residual of every class that has a row among those kept."""
    n = len(X)
    code = np.linalg.inv(X @ X.T + ridge * np.eye(n)) @ X @ x
    alone = [np.linalg.norm(x - code[i] * X[i]) for i in range(n)]
    kept = np.argsort(alone, kind="stable")[: max(1, round(share * n))]
    S = X[kept]
    again = np.linalg.inv(S @ S.T + ridge * np.eye(len(kept))) @ S @ x
    return {c: np.linalg.norm(x - again[y[kept] == c] @ S[y[kept] == c]) for c in np.unique(y[kept])}


def heat(X, k=10):
    return oracles.heat_graph(X, k, "local")


@pytest.mark.parametrize("graph", ["heat", "binary", "full", "matrix", "sparse matrix", "precomputed"])
@pytest.mark.parametrize(
    ("model", "oracle"),
    [
        (GFHF(n_neighbors=7), gfhf),
        (LGC(n_neighbors=7, class_mass=False), lambda W, some: lgc(W, some, 0.99)),
        (LGC(n_neighbors=7, alpha=0.5, class_mass=False), lambda W, some: lgc(W, some, 0.5)),
        (LGC(n_neighbors=7), lambda W, some: of_equal_mass(lgc(W, some, 0.99))),
        (LGC(n_neighbors=7, alpha=0.5), lambda W, some: of_equal_mass(lgc(W, some, 0.5))),
        (RMGT(n_neighbors=7), lambda W, some: rmgt(W, some, np.full(3, 1 / 3))),
        (RMGT(n_neighbors=7, prior=[0.5, 0.2, 0.3]), lambda W, some: rmgt(W, some, np.array([0.5, 0.2, 0.3]))),
    ],
    ids=str,
)
def test_scores_on_the_graph(model, oracle, graph):
    X, some, _ = few_labels()
    W = heat(X, 7)
    if graph == "binary":
        W = (W > 0).astype(float)
    elif graph == "full":
        W = np.exp(-oracles.sq_dist(X) / oracles.mean_sq_distance(X)) * (1 - np.eye(len(X)))
    given = {"matrix": W + np.eye(90), "sparse matrix": sp.csr_array(W)}.get(graph, graph)
    model = clone(model).set_params(graph=given).fit(W if graph == "precomputed" else X, some)
    expected = oracle(W, some)
    np.testing.assert_allclose(model.scores_, expected, rtol=1e-8, atol=1e-10 * np.abs(expected).max())
    assert (model.transduction_ == expected.argmax(axis=1)).all()


@pytest.mark.parametrize(("gamma_A", "gamma_I"), [(0.01, 0.01), (1.0, 1e-3), (1e-3, 0.0)])
@pytest.mark.parametrize("p", [4, 130])
def test_laprls_linear(gamma_A, gamma_I, p, rng):
    X, some, _ = few_labels()
    new = rng.standard_normal((20, p)) + 3
    X = X if p == 4 else np.column_stack([X, rng.standard_normal((90, p - 4))])
    model = LapRLS(gamma_A=gamma_A, gamma_I=gamma_I).fit(X, some)
    coef, intercept = laprls_linear(X, oracles.unit_graph(X, 10), some, gamma_A, gamma_I)
    np.testing.assert_allclose(model.coef_, coef.T, rtol=1e-8, atol=1e-9 * np.abs(coef).max())
    np.testing.assert_allclose(model.intercept_, intercept, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(model.decision_function(new), new @ coef + intercept, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(model.scores_, X @ coef + intercept, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "precomputed"])
def test_laprls_kernel(kernel, rng):
    X, some, _ = few_labels()
    new = rng.standard_normal((20, 4))
    K, K_new = {
        "rbf": (oracles.gaussian(X, X, 3.0), oracles.gaussian(new, X, 3.0)),
        "poly": ((X @ X.T + 1) ** 2, (new @ X.T + 1) ** 2),
    }.get(kernel, (X @ X.T, new @ X.T))
    model = LapRLS(gamma_A=0.1, gamma_I=0.02, kernel=kernel, sigma=3.0, degree=2)
    model.fit(K if kernel == "precomputed" else X, some)
    dual = laprls_kernel(K, oracles.unit_graph(X, 10), some, 0.1, 0.02)
    np.testing.assert_allclose(model.dual_coef_, dual, rtol=1e-7, atol=1e-8 * np.abs(dual).max())
    found = model.decision_function(K_new if kernel == "precomputed" else new)
    np.testing.assert_allclose(found, K_new @ dual, rtol=1e-8, atol=1e-8)


def test_laprls_with_all_labels_and_the_graph_inside_classes_is_mreg():
    """NSSE's MReg: (K + γ_A I + γ_I L_w K) α = Y, all rows labelled."""
    X, _, y = few_labels(60)
    within, _ = class_graphs(X, y)
    model = LapRLS(gamma_A=0.3, gamma_I=0.7, kernel="rbf", sigma=2.0, graph=within).fit(X, y)
    K, W = oracles.gaussian(X, X, 2.0), within.toarray()
    L = np.diag(W.sum(axis=1)) - W
    dual = np.linalg.inv(K + 0.3 * np.eye(60) + 0.7 * L @ K) @ labelled_matrix(y)
    np.testing.assert_allclose(model.dual_coef_, dual, rtol=1e-8, atol=1e-10)
    # Its stationary point: the gradient of the objective vanishes.
    f = K @ model.dual_coef_
    gradient = K @ (f - labelled_matrix(y)) + 0.3 * f + 0.7 * K @ L @ f
    assert np.abs(gradient).max() < 1e-10


@pytest.mark.parametrize(("mu", "gamma", "weight"), [(1.0, 1.0, 1e9), (0.1, 10.0, 1e3), (5.0, 1e-2, 1.0)])
@pytest.mark.parametrize("p", [4, 130])
def test_fme_linear(mu, gamma, weight, p, rng):
    X, some, _ = few_labels()
    new = rng.standard_normal((20, p)) + 3
    X = X if p == 4 else np.column_stack([X, rng.standard_normal((90, p - 4))])
    model = FME(mu=mu, gamma=gamma, label_weight=weight).fit(X, some)
    F, coef, intercept = fme_linear(X, oracles.unit_graph(X, 10), some, mu, gamma, weight)
    np.testing.assert_allclose(model.scores_, F, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(model.coef_, coef.T, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(model.decision_function(new), new @ coef + intercept, rtol=1e-7, atol=1e-7)
    assert (model.transduction_ == F.argmax(axis=1)).all()


@pytest.mark.parametrize("graph", ["heat", "full"])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "precomputed"])
def test_fme_kernel(kernel, graph, rng):
    X, some, _ = few_labels()
    new = rng.standard_normal((20, 4))
    K, K_new = X @ X.T, new @ X.T
    if kernel == "rbf":
        K, K_new = oracles.gaussian(X, X, 3.0), oracles.gaussian(new, X, 3.0)
    model = FME(mu=0.5, gamma=20.0, kernel=kernel, sigma=3.0, graph=graph)
    model.fit(K if kernel == "precomputed" else X, some)
    W = oracles.unit_graph(X, 10)
    if graph == "full":
        W = np.exp(-oracles.sq_dist(X) / oracles.mean_sq_distance(X)) * (1 - np.eye(len(X)))
    F, dual = fme_kernel(K, W, some, 0.5, 20.0, 1e9)
    np.testing.assert_allclose(model.scores_, F, rtol=1e-7, atol=1e-7)
    found = model.decision_function(K_new if kernel == "precomputed" else new)
    np.testing.assert_allclose(found, K_new @ dual, rtol=1e-6, atol=1e-7)


def test_fme_is_a_minimum():
    X, some, _ = few_labels()
    model = FME(mu=0.4, gamma=0.6, label_weight=3.0).fit(X, some)
    L = np.diag(oracles.unit_graph(X, 10).sum(axis=1)) - oracles.unit_graph(X, 10)
    U, Y = np.diag(3.0 * (some >= 0)), labelled_matrix(some)

    def cost(F, W, b):
        misfit = np.sum(W**2) + 0.6 * np.sum((X @ W + b - F) ** 2)
        return np.trace((F - Y).T @ U @ (F - Y)) + np.trace(F.T @ L @ F) + 0.4 * misfit

    F, W, b = model.scores_, model.coef_.T, model.intercept_
    least, rng = cost(F, W, b), np.random.default_rng(0)
    for _ in range(5):
        steps = [1e-3 * rng.standard_normal(part.shape) for part in (F, W, b)]
        assert cost(F + steps[0], W + steps[1], b + steps[2]) > least
        assert abs(cost(F + 1e-3 * steps[0], W, b) - cost(F - 1e-3 * steps[0], W, b)) < 1e-9


@pytest.mark.parametrize(("n", "p"), [(60, 5), (40, 60)])
@pytest.mark.parametrize(("share", "ridge"), [(0.05, 0.01), (0.3, 0.1), (1.0, 1.0)])
def test_tptssr(n, p, share, ridge, rng):
    X, y = rng.standard_normal((n, p)) + 1, np.array(["a", "b", "c", "d"])[rng.integers(0, 4, n)]
    new = rng.standard_normal((15, p)) + 1
    model = TPTSSR(share, ridge).fit(X, y)
    found = model.decision_function(new)
    for x, row, label in zip(new, found, model.predict(new), strict=True):
        expected = tptssr(x, X, y, share, ridge)
        for c, name in enumerate(model.classes_):
            last = max(expected.values()) + np.linalg.norm(x)  # where no row of a class is kept
            assert row[c] == pytest.approx(-expected.get(name, last), rel=1e-8)
        assert label == min(expected, key=expected.get)


def test_tptssr_of_two_classes_is_finite(rng):
    X, y = rng.standard_normal((60, 5)) + 1, np.arange(60) % 2
    new = np.vstack([np.zeros(5), rng.standard_normal((40, 5)) + 1])
    for dtype in (np.float64, np.float32):
        model = TPTSSR().fit(X.astype(dtype), y)
        values = model.decision_function(new.astype(dtype))
        assert np.isfinite(values).all() and ((values > 0) == model.predict(new.astype(dtype))).all()


def test_tptssr_says_once_that_its_ridge_is_lost(rng):
    X, y = rng.standard_normal((30, 3)) + 1, np.arange(30) % 3
    model = TPTSSR(share=0.5, ridge=1e-18)
    with pytest.warns(UserWarning, match="ridge = 1e-18 is less than the rounding .* Use a larger ridge") as said:
        model.fit(X, y)
    assert len(said) == 1
    assert np.isfinite(model.decision_function(X)).all()  # no warning


@pytest.mark.parametrize("model", ALL, ids=str)
def test_single_precision_costs_little(model):
    """Also where all rows are far from the origin."""
    X, some, y = few_labels()
    X = (X + 100).astype(np.float32)
    y = y if isinstance(model, TPTSSR) else some
    double, single = (clone(model).fit(rows, y).decision_function(rows) for rows in (X.astype(np.float64), X))
    finite = np.isfinite(double)
    np.testing.assert_allclose(single[finite], double[finite], atol=1e-3 * np.abs(double[finite]).max())


# New rows


def test_new_rows_get_the_mean_of_the_rows_they_would_be_joined_to(rng):
    X, some, _ = few_labels()
    new, beta = rng.standard_normal((12, 4)), oracles.mean_sq_distance(X)
    squares = oracles.sq_dist(new, X)
    near = np.argsort(squares, axis=1)[:, :7]
    for graph in ("heat", "binary", "full", heat(X, 7)):
        model = GFHF(n_neighbors=7, graph=graph, beta="mean").fit(X, some)
        weights = np.exp(-squares / beta)
        if not isinstance(graph, str) or graph != "full":
            kept = np.zeros_like(weights)
            np.put_along_axis(kept, near, 1.0, axis=1)
            weights = kept if isinstance(graph, str) and graph == "binary" else kept * weights
        expected = weights @ model.scores_ / weights.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(model.decision_function(new), expected, rtol=1e-9)
        np.testing.assert_allclose(model.predict_proba(new), expected, rtol=1e-9)
    W = np.exp(-oracles.sq_dist(X))
    weights = np.exp(-squares)
    for given in (weights, sp.csr_array(weights)):
        model = LGC(graph="precomputed").fit(W, some)
        expected = weights @ model.scores_
        expected /= expected.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(model.predict_proba(given), expected, rtol=1e-9)


def test_precomputed_weights_are_features_or_kernel_of_the_maps(rng):
    X, some, _ = few_labels()
    K, K_new = oracles.gaussian(X, X, 2.0), oracles.gaussian(rng.standard_normal((9, 4)), X, 2.0)
    off = K * (1 - np.eye(90))
    model = LapRLS(graph="precomputed", kernel="precomputed").fit(K, some)
    dual = laprls_kernel(K, off, some, 0.01, 0.01)
    np.testing.assert_allclose(model.decision_function(K_new), K_new @ dual, rtol=1e-7, atol=1e-9)
    model = FME(graph="precomputed").fit(K, some)
    _, coef, intercept = fme_linear(K, off, some, 1.0, 1.0, 1e9)
    np.testing.assert_allclose(model.decision_function(K_new), K_new @ coef + intercept, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("model", ALL, ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_predictions_do_not_depend_on_batch_threads_or_layout(model, dtype):
    X, some, y = few_labels()
    X, new = X.astype(dtype), make_blobs(37, 4, centers=3, random_state=5)[0].astype(dtype)
    model = clone(model).fit(X, y if isinstance(model, TPTSSR) else some)
    whole = model.decision_function(new)
    assert whole.dtype == dtype and whole.shape == (37, 3)
    with threadpool_limits(1):
        single = np.vstack([model.decision_function(new[i : i + 1]) for i in range(37)])
    assert (single == whole).all()
    assert (model.decision_function(np.asfortranarray(new)) == whole).all()
    assert (model.decision_function(np.repeat(new, 2, axis=1)[:, ::2]) == whole).all()
    assert (model.predict(new) == model.classes_[whole.argmax(axis=1)]).all()
    if hasattr(model, "scores_"):
        assert model.scores_.dtype == dtype


# Other libraries


@pytest.mark.parametrize("seed", range(2))
def test_same_as_scikit_learn_on_the_full_graph(seed):
    """Its LabelPropagation keeps self-loops, which cancel in L_uu; its LabelSpreading has none."""
    X, some, _ = few_labels(seed=seed)
    theirs = LabelPropagation(kernel="rbf", gamma=0.2, max_iter=100_000, tol=1e-12).fit(X, some)
    ours = GFHF(graph="full", beta=5.0).fit(X, some)
    np.testing.assert_allclose(ours.scores_, theirs.label_distributions_, atol=1e-6)
    assert (ours.transduction_ == theirs.transduction_).all()
    spreading = LabelSpreading(kernel="rbf", gamma=0.2, alpha=0.9, max_iter=10_000, tol=1e-12).fit(X, some)
    ours = LGC(graph="full", beta=5.0, alpha=0.9, class_mass=False).fit(X, some)
    shares = ours.scores_ / ours.scores_.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(shares, spreading.label_distributions_, atol=1e-6)
    new = np.random.default_rng(seed).standard_normal((30, 4))
    assert (ours.predict(new) == spreading.predict(new)).mean() > 0.9


# Large systems


def swiss_roll(n, labels, seed=0):
    X, t = make_swiss_roll(n, random_state=seed)
    y = np.digitize(t, np.quantile(t, [0.25, 0.5, 0.75]))
    some = np.full(n, -1)
    some[np.random.default_rng(seed).choice(n, labels, replace=False)] = 0
    return X, np.where(some == 0, y, -1), y


@pytest.mark.parametrize("labels", [12, 300])
@pytest.mark.parametrize("model", [GFHF(), RMGT(), LGC(), LGC(alpha=1 - 1e-6), FME(), FME(mu=1e-8)], ids=str)
def test_iteration_finds_what_factors_find(model, labels, monkeypatch):
    X, some, _ = swiss_roll(1500, labels)
    direct = clone(model).fit(X, some).scores_
    for name in ("_LAPLACIAN_ROWS", "_DENSE_ROWS", "_DIRECT_FLOPS"):
        monkeypatch.setattr(systems, name, 0)
    iterated = clone(model).fit(X, some).scores_
    np.testing.assert_allclose(iterated, direct, atol=2e-7 * np.abs(direct).max())


@pytest.mark.parametrize("scale", [1e-250, 1e-160, 1e160, 1e250])
@pytest.mark.parametrize("iterate", [False, True])
def test_weights_of_any_size(scale, iterate, monkeypatch):
    X, some, _ = swiss_roll(500, 12)
    W = knn_graph(X, 8)
    if iterate:
        for name in ("_LAPLACIAN_ROWS", "_DENSE_ROWS", "_DIRECT_FLOPS"):
            monkeypatch.setattr(systems, name, 0)
    for model in (GFHF(graph="precomputed"), LGC(graph="precomputed"), RMGT(graph="precomputed")):
        expected = clone(model).fit(W, some).scores_
        np.testing.assert_allclose(model.fit(W * scale, some).scores_, expected, atol=1e-7 * np.abs(expected).max())


def test_grounded_laplacian_converges_at_any_ground(rng):
    X, some, _ = swiss_roll(3000, 5)
    W = knn_graph(X, 8)
    degrees = np.asarray(W.sum(axis=1)).ravel()
    B = rng.standard_normal((3000, 3))
    one = (some >= 0).astype(float)
    for ground in (1e-3 * one, 1e9 * one, 1e9 * one + 1e-6, 1e-6 * degrees, degrees):
        found, n_iter, residual = GroundedLaplacian(W, ground).solve(B, tol=1e-10, max_iter=200)
        missed = (sp.diags_array(degrees + ground) - W) @ found - B
        assert residual < 1e-10 and n_iter < 100
        assert (np.linalg.norm(missed, axis=0) <= 1e-9 * np.linalg.norm(B, axis=0)).all()


@pytest.mark.process
@pytest.mark.parametrize("n", [16_000, pytest.param(40_000, marks=pytest.mark.heavy)])
def test_gfhf_takes_linear_memory(grown_memory, n):
    """In megabytes; a matrix of all pairs of 16,000 rows would take 2000."""
    prepare = (
        "import numpy as np, manifast\n"
        "from sklearn.datasets import make_swiss_roll\n"
        "manifast.GFHF(n_neighbors=3).fit(np.random.default_rng(0).random((40, 3)), np.arange(40) % 3 - 1)\n"
        f"X, t = make_swiss_roll({n}, random_state=0)\n"
        f"y = np.where(np.arange({n}) % {n // 100} == 0, (t > 9).astype(int), -1)\n"
    )
    work = "model = manifast.GFHF().fit(X, y)\nassert np.mean(model.transduction_ == (t > 9)) > 0.98"
    assert grown_memory(prepare, work) < n / 200


# Odd graphs and extremes


def test_components_without_a_label_are_joined(rng):
    X = np.vstack([rng.standard_normal((20, 2)), rng.standard_normal((20, 2)) + 40, rng.standard_normal((20, 2)) - 60])
    some = np.full(60, -1)
    some[[0, 1]], some[[20, 21]] = 0, 1  # nothing in the third
    for model in (GFHF(5), LGC(5), RMGT(5)):
        with pytest.warns(UserWarning, match="3 connected components, joined"):
            model.fit(X, some)
        assert np.isfinite(model.scores_).all()
        assert (model.transduction_[:20] == 0).mean() > 0.9 and (model.transduction_[20:40] == 1).mean() > 0.9
    with pytest.warns(UserWarning, match="joined"):
        assert (GFHF(5).fit(X, some).transduction_[40:] == 0).all()  # the cluster that is closer
    for model in (GFHF(5, connect=False), LGC(5, connect=False), RMGT(5, prior=[0.5, 0.5], connect=False)):
        with pytest.warns(UserWarning, match="20 rows have no path to a label"):
            model.fit(X, some)
        assert (model.scores_[40:] == 0.5).all()
        alone = clone(model).fit(X[:40], some[:40])
        if not isinstance(model, RMGT):
            np.testing.assert_allclose(model.scores_[:40], alone.scores_, rtol=1e-9)
    for model in (LapRLS(5), FME(5), LapRLS(5, kernel="rbf"), FME(5, kernel="rbf")):
        assert np.isfinite(model.fit(X, some).decision_function(X)).all()


def test_components_with_labels_stay_apart():
    X = np.vstack([np.arange(8.0), 100 + np.arange(8.0)]).reshape(-1, 1)
    some = np.full(16, -1)
    some[[0, 7, 8, 15]] = [0, 1, 1, 2]
    model = GFHF(2).fit(X, some)  # no warning
    assert (model.scores_[:8, 2] == 0).all() and (model.scores_[8:, 0] == 0).all()


@pytest.mark.parametrize("weak", [1e-8, 1e-14, 1e-40, 1e-200])
def test_weights_of_any_range(weak):
    """Three tight groups in a row that hang together by hardly anything: each takes one value."""
    W = np.zeros((12, 12))
    for begin in (0, 4, 8):
        W[begin : begin + 4, begin : begin + 4] = 1.0
    W[3, 4] = W[4, 3] = W[7, 8] = W[8, 7] = weak
    np.fill_diagonal(W, 0.0)
    some = np.full(12, -1)
    some[0], some[11] = 0, 1
    for given in (W, sp.csr_array(W)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = GFHF(graph="precomputed").fit(given, some)
        np.testing.assert_allclose(model.scores_[4:8], 0.5, rtol=1e-6)
        np.testing.assert_allclose(model.scores_[:4, 0], 1.0, rtol=1e-6)
        np.testing.assert_allclose(model.scores_.sum(axis=1), 1.0, rtol=1e-6)
    # The middle group again, this time with one edge to the left twice as strong.
    W[3, 4] = W[4, 3] = 2 * weak
    found = GFHF(graph="precomputed").fit(W, some).scores_
    np.testing.assert_allclose(found[4:8, 0], 2 / 3, rtol=1e-6)


def chain(links, size):
    """Cliques in a row, each joined to the next by a link."""
    count = len(links) + 1
    blocks = sp.block_diag([sp.coo_array(np.ones((size, size)) - np.eye(size))] * count, format="coo")
    out = np.arange(count - 1) * size
    into = out + size + 1
    ends = np.r_[blocks.row, out, into], np.r_[blocks.col, into, out]
    return sp.csr_array((np.r_[blocks.data, links, links], ends), shape=blocks.shape)


@pytest.mark.parametrize("iterate", [False, True])
@pytest.mark.parametrize("spread", [0.0, 2.0])
@pytest.mark.parametrize("weak", [1e-7, 1e-8, 1e-9, 1e-10, 1e-11])
def test_chain_of_groups(weak, spread, iterate, monkeypatch, rng):
    """Links that rounding of the diagonals is not small beside, on both sides of what counts as weak: potentials."""
    if iterate:
        for name in ("_LAPLACIAN_ROWS", "_DENSE_ROWS", "_DIRECT_FLOPS"):
            monkeypatch.setattr(systems, name, 0)
    links = weak * 10 ** rng.uniform(-spread, spread, 59)
    W = chain(links, 20)
    some = np.full(W.shape[0], -1)
    some[0], some[-1] = 0, 1
    drop = np.r_[0.0, np.cumsum(1 / links)]
    found = GFHF(graph="precomputed").fit(W, some).scores_
    np.testing.assert_allclose(found[10::20, 0], 1 - drop / drop[-1], atol=1e-7)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-7)


@pytest.mark.parametrize("beta", [0.3, 0.1])
def test_narrow_heat_widths(beta):
    """Weights far apart: labels go to the nearest, and classes still have their sizes."""
    X = 3 * np.random.default_rng(2).standard_normal((18, 2))
    W = np.exp(-oracles.sq_dist(X) / beta) * (1 - np.eye(18))
    some = np.full(18, -1)
    some[:4] = [0, 1, 0, 1]
    u = np.flatnonzero(some < 0)
    F, h = exact_harmonic(W, some)
    np.testing.assert_allclose(GFHF(graph="precomputed").fit(W, some).scores_, F, atol=1e-12)
    F[u] += np.outer(h, 9 - F.sum(axis=0))
    np.testing.assert_allclose(RMGT(graph="precomputed").fit(W, some).scores_, F, atol=1e-12)


def test_rmgt_where_the_correction_would_overflow():
    W = chain(np.array([2e-308, 1e-308]), 40)
    some = np.full(120, -1)
    some[0], some[-1] = 0, 1
    scores = RMGT(graph="precomputed", prior=[0.4, 0.6]).fit(W, some).scores_
    np.testing.assert_allclose(scores.sum(axis=0), [48, 72], rtol=1e-9)
    np.testing.assert_allclose(scores.sum(axis=1), 1.0, rtol=1e-9)
    assert np.ptp(scores[40:80], axis=0).max() < 1e-9  # all of the correction is where h is infinite beside the rest
    np.testing.assert_allclose(scores[40], [8 / 40, 32 / 40], rtol=1e-9)


def exact_harmonic(W, some):
    """F and h / 1'h in rationals, two classes."""
    from fractions import Fraction

    u = np.flatnonzero(some < 0)
    rows = []
    for i in u:
        known = [sum((Fraction(W[i, k]) for k in np.flatnonzero(some == c)), Fraction(0)) for c in (0, 1)]
        rows.append([Fraction(-W[i, j]) for j in u] + known + [Fraction(1)])
        rows[-1][len(rows) - 1] = sum((Fraction(w) for w in W[i]), Fraction(0))
    for i, row in enumerate(rows):  # Gauss and Jordan
        rows[i] = row = [value / row[i] for value in row]
        for j, other in enumerate(rows):
            if j != i and other[i]:
                rows[j] = [a - other[i] * b for a, b in zip(other, row, strict=True)]
    F, total = labelled_matrix(some), sum(row[-1] for row in rows)
    F[u] = [[float(value) for value in row[-3:-1]] for row in rows]
    return F, np.array([float(row[-1] / total) for row in rows])


@pytest.mark.parametrize(("mu", "gamma"), [(1e-9, 1e-9), (1e-9, 1e-6), (1e-6, 1e-6), (1e-3, 1e-3), (1.0, 1.0)])
def test_fme_on_a_component_without_a_label(mu, gamma, rng):
    """The regression alone says what its scores are, however small its weight: against rational arithmetic."""
    W = np.kron(np.eye(3), np.ones((6, 6))) * rng.uniform(0.5, 1.0, (18, 18))
    W = (W + W.T) * (1 - np.eye(18))
    X, some = rng.standard_normal((18, 2)), np.full(18, -1)
    some[[0, 1, 6, 7]] = [0, 0, 1, 1]
    expected = exact_fme(X, W, some, mu, gamma, 1e9, None)
    for graph in (W, sp.csr_array(W)):
        model = FME(mu=mu, gamma=gamma, graph=graph).fit(X, some)  # no warning
        np.testing.assert_allclose(model.scores_, expected, atol=1e-12)
        kernel = FME(mu=mu, gamma=gamma, graph=graph, kernel="rbf", sigma=2.0)
        if mu * gamma < 1e-11:
            with pytest.warns(UserWarning, match="singular to working precision.* Use larger mu or gamma"):
                kernel.fit(X, some)
        else:
            exact = exact_fme(X, W, some, mu, gamma, 1e9, oracles.gaussian(X, X, 2.0))
            np.testing.assert_allclose(kernel.fit(X, some).scores_, exact, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_lgc_far_from_any_label(dtype, monkeypatch):
    n = 3000
    X, y = np.arange(n, dtype=dtype)[:, None], np.arange(n) // (n // 2)
    some = np.full(n, -1)
    some[[0, -1]] = 0, 1
    model = LGC(graph="binary").fit(X, some)  # factors keep the digits of numbers however small
    assert (model.transduction_ == y).all() and (model.scores_.argmax(axis=1) == y).all()
    assert (model.predict(X) == y).mean() > 0.999
    for name in ("_LAPLACIAN_ROWS", "_DENSE_ROWS", "_DIRECT_FLOPS"):
        monkeypatch.setattr(systems, name, 0)
    with pytest.warns(UserWarning, match="no label reaches 1... rows"):
        model.fit(X, some)
    equal = model.scores_[:, 0] == model.scores_[:, 1]
    assert 1000 < equal.sum() < 2500 and (model.scores_ >= 0).all() and (model.scores_.max(axis=1) > 0).all()
    assert (model.transduction_ == y)[~equal].all()


def test_grounded_solution_of_nested_groups(rng):
    """Groups that hang on groups by ever smaller weights, against plain inverses of rationals."""
    from fractions import Fraction

    n = 9
    W = np.zeros((n, n))
    chain = [1, 1e-13, 1, 1e-26, 1, 1e-13, 3, 1e-3]
    W[np.arange(8), np.arange(1, 9)] = W[np.arange(1, 9), np.arange(8)] = chain
    ground, B = np.zeros(n), rng.random((n, 2))
    ground[0] = 1e-5
    exact = [[Fraction(-W[i, j]) for j in range(n)] + [Fraction(b) for b in B[i]] for i in range(n)]
    for i in range(n):
        exact[i][i] = sum((Fraction(w) for w in W[i]), Fraction(ground[i]))
    for i in range(n):  # Gauss and Jordan
        exact[i] = [value / exact[i][i] for value in exact[i]]
        for j in range(n):
            if j != i:
                exact[j] = [a - exact[j][i] * b for a, b in zip(exact[j], exact[i], strict=True)]
    found, reached = grounded_solution(sp.csr_array(W), ground, B)
    np.testing.assert_allclose(found, [[float(v) for v in row[n:]] for row in exact], rtol=1e-7)
    assert reached.all()


@pytest.mark.parametrize("model", ON_GRAPHS, ids=str)
def test_every_row_labelled(model):
    X, _, y = few_labels()
    model = clone(model).fit(X, y)
    if isinstance(model, GFHF | RMGT | FME):
        assert (model.transduction_ == y).all()
    assert (model.transduction_ == y).mean() > 0.6


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("model", ON_GRAPHS, ids=str)
def test_duplicate_rows_with_different_labels(model):
    X, some, _ = few_labels()
    X = np.vstack([X, X, X[:1].repeat(15, axis=0)])
    some = np.concatenate([some, np.where(some < 0, -1, (some + 1) % 3), np.arange(15) % 4 - 1])
    model = clone(model).fit(X, some)
    assert np.isfinite(model.scores_).all() and np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize("mu", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("gamma", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_fme_at_the_ends_of_its_parameters(mu, gamma, kernel):
    """Against rational arithmetic, which knows no rounding."""
    X, _, y = few_labels(11)
    some = np.where(np.arange(11) < 6, y, -1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = FME(4, mu=mu, gamma=gamma, kernel=kernel, sigma=2.0).fit(X, some)
    assert np.isfinite(model.decision_function(X)).all()
    F = exact_fme(X, oracles.unit_graph(X, 4), some, mu, gamma, 1e9, oracles.gaussian(X, X, 2.0) if kernel else None)
    np.testing.assert_allclose(model.scores_, F, atol=1e-6)


def exact_fme(X, W, some, mu, gamma, weight, K):
    """F = (U + L + R)^-1 UY in rationals."""
    from fractions import Fraction

    def exact(A):
        return np.array([[Fraction(float(value)) for value in row] for row in A], dtype=object)

    def solve(A, B):
        A, B = A.copy(), B.copy()
        for i in range(len(A)):
            pivot = A[i, i]
            A[i], B[i] = A[i] / pivot, B[i] / pivot
            for j in range(len(A)):
                if j != i and A[j, i]:
                    B[j], A[j] = B[j] - A[j, i] * B[i], A[j] - A[j, i] * A[i]
        return B

    n = len(X)
    eye = exact(np.eye(n))
    mu, gamma, one = Fraction(mu), Fraction(gamma), np.array([[Fraction(1, n)] * n] * n, dtype=object)
    if K is None:
        H, x = eye - one, exact(X)
        R = mu * gamma * H.dot(solve(eye + gamma * H.dot(x).dot(x.T).dot(H), H))
    else:
        R = mu * gamma * solve(eye + gamma * exact(K), eye)
    w = exact(W)
    L = np.diag(w.sum(axis=1)) - w
    U = exact(np.diag(weight * (some >= 0)))
    return solve(U + L + R, U.dot(exact(labelled_matrix(some)))).astype(float)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_laprls_at_the_ends_of_its_parameters(kernel):
    X, some, _ = few_labels()
    for gamma_A in (1e-9, 1.0, 1e9):
        for gamma_I in (1e-9, 1.0, 1e9):
            model = LapRLS(gamma_A=gamma_A, gamma_I=gamma_I, kernel=kernel).fit(X, some)
            assert np.isfinite(model.decision_function(X)).all()
    # Hardly any penalty: the labels themselves. All weight on the graph: one value, the shares of the labels.
    model = LapRLS(gamma_A=1e-9, gamma_I=1e-9, kernel="rbf").fit(X, some)
    np.testing.assert_allclose(model.scores_[some >= 0], labelled_matrix(some)[some >= 0], atol=1e-3)
    flat = LapRLS(gamma_A=1e-9, gamma_I=1e9).fit(X, some)
    np.testing.assert_allclose(flat.scores_, 1 / 3, atol=1e-5)


@pytest.mark.parametrize("scale", [1e-160, 1e-20, 1e20, 1e160])
@pytest.mark.parametrize("model", ALL, ids=str)
def test_scales(model, scale):
    """Huge and tiny data are not errors; what has no units of its own does not see them."""
    X, some, y = few_labels()
    y = y if isinstance(model, TPTSSR) else some
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = clone(model).fit(X * scale, y)
        values = found.decision_function(X * scale)
    assert not np.isnan(values).any()
    if isinstance(model, GFHF | LGC | RMGT) and model.extension is None:
        np.testing.assert_allclose(values, clone(model).fit(X, y).decision_function(X), rtol=1e-6, atol=1e-9)


# Quality


def test_two_moons():
    X, y = make_moons(400, noise=0.06, random_state=0)
    some = np.full(400, -1)
    for c in (0, 1):
        some[np.flatnonzero(y == c)[:2]] = c
    for model in (GFHF(beta=0.05), LGC(beta=0.05), RMGT(beta=0.05), FME(beta=0.05, kernel="rbf", sigma=0.3, mu=0.01)):
        assert (model.fit(X, some).transduction_ == y).mean() > 0.97, model


def test_digits():
    X, y = load_digits(return_X_y=True)
    some = np.where(np.arange(1000) < 60, y[:1000], -1)
    least = {GFHF(): 0.85, LGC(): 0.85, RMGT(): 0.85, LapRLS(kernel="rbf"): 0.85, FME(): 0.8, LapRLS(): 0.73}
    for model, bar in least.items():
        model.fit(X[:1000], some)
        assert (model.transduction_ == y[:1000])[60:].mean() > bar, model
        assert model.score(X[1000:], y[1000:]) > bar, model
    assert TPTSSR().fit(X[:1000] / 16, y[:1000]).score(X[1000:] / 16, y[1000:]) > 0.85


def test_class_mass_keeps_lgc_from_collapsing():
    """The first 40 labels, and 40 in which two classes have few: the degrees of labelled rows must not decide."""
    X, y = load_digits(return_X_y=True)
    X, y = X[:1000], y[:1000]
    unequal = np.full(1000, -1)
    for c in range(10):
        unequal[np.flatnonzero(y == c)[: 2 if c < 2 else 5 if c < 6 else 4]] = c
    for some in (np.where(np.arange(1000) < 40, y, -1), unequal):
        found = {}
        for model in (GFHF(beta="mean"), LGC(beta="mean"), LGC(beta="mean", class_mass=False)):
            found[str(model)] = (model.fit(X, some).transduction_ == y)[some < 0].mean()
        harmonic, normalized, plain = found.values()
        assert normalized > harmonic - 0.02 > plain, found
    np.testing.assert_allclose(LGC().fit(X, some).scores_.sum(axis=0), 1, rtol=1e-12)


def test_scores_count_labelled_rows_only():
    X, some, y = few_labels()
    words = np.array(["a", "b", "c"])
    for model in (GFHF(), LapRLS()):
        right = (model.fit(X, some).predict(X) == y)[some >= 0]
        assert model.score(X, some) == right.mean()
        assert model.score(X, np.where(some < 0, np.nan, some)) == right.mean()
        weights = np.arange(90.0)
        assert model.score(X, some, weights) == pytest.approx(np.average(right, weights=weights[some >= 0]))
        model.fit(X, np.where(some < 0, None, words[some].astype(object)))
        assert model.score(X, np.where(some < 0, None, words[some].astype(object))) == right.mean()
        with pytest.raises(ValueError, match=r"at least one label\. Got only -1, NaN or None"):
            model.score(X, np.full(90, -1))


def test_faces(data_dir):
    """SEE's Extended Yale at three labels per class: the linear map beats propagation alone by far (Table 2)."""
    data = np.load(data_dir / "yaleb.npz")
    kept = (data["labels"] >= 10) & (data["labels"] <= 37)
    X, y = data["images"][kept].reshape(kept.sum(), -1) / 255.0, data["labels"][kept]
    order = np.random.default_rng(0).permutation(len(X))
    X, y = X[order], y[order]
    pca = PCA(0.98).fit(X[:887])
    X, new, y_new, y = pca.transform(X[:887]), pca.transform(X[887:]), y[887:], y[:887]
    some = np.full(887, -1)
    for c in np.unique(y):
        some[np.flatnonzero(y == c)[:3]] = c
    found = {}
    for model in (GFHF(), LapRLS(gamma_A=1.0, gamma_I=1e-3), FME(mu=1e3)):
        model.fit(X, some)
        unlabelled = (model.transduction_ == y)[some < 0].mean()
        found[type(model).__name__] = min(unlabelled, model.score(new, y_new))
    assert found["FME"] > 0.5 and found["LapRLS"] > 0.5 and found["GFHF"] < 0.5


# scikit-learn's manners, and bad input


@pytest.mark.parametrize("model", ON_GRAPHS, ids=str)
def test_strings_beside_minus_one(model):
    X, some, _ = few_labels()
    words = np.array(["red", "green", "blue"])
    mixed = np.array([words[c] if c >= 0 else -1 for c in some], dtype=object)
    model = clone(model).fit(X, mixed)
    assert model.classes_.tolist() == ["blue", "green", "red"]
    numbers = clone(model).fit(X, np.where(some < 0, -1, 2 - some))
    assert (model.predict(X) == words[::-1][numbers.predict(X)]).all()
    assert set(model.transduction_) <= set(words)


def test_pickle_clone_and_pipelines():
    X, some, y = few_labels()
    for model in ALL:
        fitted = clone(model).fit(X, y if isinstance(model, TPTSSR) else some)
        again = pickle.loads(pickle.dumps(fitted))
        assert (again.decision_function(X) == fitted.decision_function(X)).all()
    assert make_pipeline(StandardScaler(), FME()).fit(X, some).score(X, y) > 0.6
    assert cross_val_score(GFHF(graph="precomputed"), np.exp(-oracles.sq_dist(X) / 9), y, cv=3).mean() > 0.6
    W = heat(X)
    assert (clone(LGC(graph=W)).graph == W).all()


def test_sparse_rows():
    X, some, _ = few_labels()
    X = np.where(np.abs(X) > 2, X, 0.0)
    for model in (GFHF(), LGC(graph="binary"), RMGT()):
        dense, sparse = clone(model).fit(X, some), clone(model).fit(sp.csr_array(X), some)
        np.testing.assert_allclose(sparse.scores_, dense.scores_, atol=1e-9)
        np.testing.assert_allclose(sparse.decision_function(sp.csr_array(X)), dense.decision_function(X), atol=1e-9)


@pytest.mark.filterwarnings("ignore:-1 in y is taken as a class")
@pytest.mark.parametrize(
    ("model", "message"),
    [
        (GFHF(n_neighbors=90), "n_neighbors must be an integer from 1 to 89"),
        (GFHF(beta=-1.0), "beta must be a positive"),
        (GFHF(graph="wrong"), "graph must be one of 'heat'"),
        (GFHF(graph=np.ones((3, 3))), r"graph must be a matrix of shape \(90, 90\)"),
        (GFHF(graph=np.triu(np.ones((90, 90)))), "must be symmetric"),
        (GFHF(graph=-np.ones((90, 90))), "not negative"),
        (GFHF(graph=np.full((90, 90), np.nan)), "finite"),
        (GFHF(graph="precomputed"), "X must be a square"),
        (GFHF(extension="wrong"), "extension must be None"),
        (LGC(alpha=1.0), "alpha must be more than 0 and less than 1. Got 1.0"),
        (LGC(alpha=0.0), "alpha must be a positive"),
        (RMGT(prior=[0.5, 0.5]), "prior must be 3 shares"),
        (RMGT(prior=[0.5, 0.6, -0.1]), "prior must be 3 shares"),
        (RMGT(prior=[0.5, 0.2, 0.2]), "prior must be 3 shares"),
        (LapRLS(gamma_A=0.0), "gamma_A must be a positive"),
        (LapRLS(gamma_I=-1.0), "gamma_I must be a finite number of at least 0"),
        (LapRLS(kernel="wrong"), "kernel must be one of"),
        (LapRLS(kernel="rbf", sigma=0.0), "sigma must be a positive"),
        (FME(mu=0.0), "mu must be a positive"),
        (FME(gamma=np.inf), "gamma must be a positive"),
        (FME(label_weight=-1.0), "label_weight must be a positive"),
        (TPTSSR(share=0.0), "share must be a positive"),
        (TPTSSR(share=1.5), "share must be more than 0 and at most 1"),
        (TPTSSR(ridge=0.0), "ridge must be a positive"),
    ],
    ids=str,
)
def test_bad_parameters(model, message):
    X, some, _ = few_labels()
    with pytest.raises(ValueError, match=message):
        model.fit(X, some)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_indefinite_kernels_are_refused():
    X, some, _ = few_labels()
    K = X @ X.T
    K[0, 0] -= 500.0
    for graph in ("heat", heat(X), sp.csr_array(heat(X))):
        for model in (LapRLS(kernel="precomputed", graph=graph), FME(kernel="precomputed", graph=graph)):
            with pytest.raises(ValueError, match="positive semidefinite kernel matrix"):
                model.fit(K, some)


def test_sparse_weights_are_no_features():
    X, some, _ = few_labels()
    for model in (LapRLS(graph="precomputed"), FME(graph="precomputed")):
        with pytest.raises(ValueError, match="X must be dense"):
            model.fit(sp.csr_array(heat(X)), some)


@pytest.mark.parametrize("model", [LapRLS(), FME()], ids=str)
def test_nothing_is_left_of_a_fit_with_another_kernel(model):
    X, some, _ = few_labels()
    for kernel in (None, "rbf", None):
        model.set_params(kernel=kernel).fit(X, some)
        assert hasattr(model, "coef_") == (kernel is None) != hasattr(model, "dual_coef_")


@pytest.mark.parametrize("model", ON_GRAPHS, ids=str)
def test_bad_labels(model):
    X, some, _ = few_labels()
    for y, message in (
        (np.full(90, -1), "at least one label"),
        (np.where(some == 0, 0, -1), "more than one class"),
        (some[:50], "one label per row"),
        (None, "requires y"),
    ):
        with pytest.raises(ValueError, match=message):
            clone(model).fit(X, y)


def test_a_failed_fit_leaves_the_model_as_it_was():
    X, some, _ = few_labels()
    model = RMGT().fit(X, some)
    before = model.decision_function(X)
    with pytest.raises(ValueError, match="prior"):
        model.set_params(prior=[1.0]).fit(X[:, :2], some)
    assert (model.decision_function(X) == before).all()


def test_a_new_row_without_affinities_is_refused():
    X, some, _ = few_labels()
    model = GFHF(graph="precomputed").fit(np.exp(-oracles.sq_dist(X)), some)
    with pytest.raises(ValueError, match="must link every new row"):
        model.predict(np.zeros((1, 90)))


def test_harmonic_scores_are_means_of_their_neighbours():
    X, some, _ = few_labels()
    W = heat(X)
    model = GFHF().fit(X, some)
    mean = W @ model.scores_ / W.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.scores_[some < 0], mean[some < 0], rtol=1e-10)
    assert model.scores_.min() >= 0 and model.scores_.max() <= 1
    totals = RMGT(prior=[0.6, 0.3, 0.1]).fit(X, some).scores_
    np.testing.assert_allclose(totals.sum(axis=0), [54, 27, 9], rtol=1e-10)
    np.testing.assert_allclose(totals.sum(axis=1), 1, rtol=1e-10)
    assert harmonic(W, read(some), np.ones((90, 1)))[1].min() >= 0


def read(some):
    from manifast._labels import read_labels

    return read_labels(GFHF(), some, len(some), unlabelled=True)


def test_the_default_number_of_neighbours_is_cut_on_few_rows():
    X, y = np.random.default_rng(0).standard_normal((6, 2)), np.array([0, 1, -1, -1, -1, -1])
    with pytest.warns(UserWarning, match="n_neighbors is cut from its default, 10, to 5"):
        few = GFHF().fit(X, y)
    np.testing.assert_array_equal(few.scores_, GFHF(n_neighbors=5).fit(X, y).scores_)
    for chosen in (6, 10):  # the default's number is no default where it is given
        with pytest.raises(ValueError, match="n_neighbors must be an integer from 1 to 5"):
            GFHF(n_neighbors=chosen).fit(X, y)
