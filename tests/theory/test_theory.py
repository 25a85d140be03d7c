"""Theory: margins against solvers of another kind, every formula written out, the theorems on data, and the report."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import replace
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import oracles
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize, minimize_scalar
from scipy.stats import binom
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.svm import SVC

from manifast import (
    LDE,
    LFDA,
    LGRM,
    LPP,
    NSSE,
    SDA,
    SDE,
    TCA,
    ElasticEmbedding,
    LabelEncoding,
    LaplacianEigenmaps,
    OutOfSample,
    SpectralRegression,
)
from manifast._linalg.nearest_point import widest_slab
from manifast.extensions import RBF
from manifast.graphs import class_graphs
from manifast.theory import (
    Bound,
    ball_probability,
    balls,
    category_conditions,
    coefficient_bound,
    condition_parameter,
    covering_bound,
    generalization_report,
    linear_bound,
    linear_lipschitz,
    nearest_neighbor_bound,
    optimal_sigma,
    origin_distance_bound,
    q_mean_margin,
    rbf_linear_bound,
    rbf_lipschitz,
    rbf_nearest_neighbor_bound,
    separability,
    separation_margin,
    two_class_margin_bound,
    within_diameter,
)
from manifast.theory.verdicts import conclude


def clouds(rng, sizes, d, apart):
    """Gaussian clouds whose centres are far apart, and their labels in no order."""
    y = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    centers = apart * np.linalg.qr(rng.standard_normal((max(d, len(sizes)),) * 2))[0][: len(sizes), :d]
    return centers[y] + 0.4 * rng.standard_normal((len(y), d)), y


def hyperplane(A, B):
    """Unit normal and offset of the hard-margin hyperplane, by sequential quadratic programming."""
    signs = np.concatenate([np.ones(len(A)), -np.ones(len(B))])
    rows = np.vstack([A, B])
    svc = SVC(kernel="linear", C=1e10, tol=1e-8).fit(rows, signs)
    found = minimize(
        lambda v: 0.5 * v[:-1] @ v[:-1],
        np.append(svc.coef_, svc.intercept_),
        jac=lambda v: np.append(v[:-1], 0.0),
        constraints={
            "type": "ineq",
            "fun": lambda v: signs * (rows @ v[:-1] + v[-1]) - 1,
            "jac": lambda v: signs[:, None] * np.column_stack([rows, np.ones(len(rows))]),
        },
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    norm = np.linalg.norm(found.x[:-1])
    return found.x[:-1] / norm, found.x[-1] / norm, 2 / norm


def pairs(Y, y):
    return [(Y[y == k], Y[y == m]) for k, m in combinations(np.unique(y), 2)]


@pytest.mark.parametrize(("sizes", "d"), [((9, 14), 2), ((1, 20), 3), ((12, 8, 10), 3), ((6, 6, 6, 6), 5), ((1, 1), 4)])
def test_linear_margin_is_that_of_the_hard_margin_classifier(rng, sizes, d):
    Y, y = clouds(rng, sizes, d, 4.0)
    expected = min(hyperplane(A, B)[2] for A, B in pairs(Y, y))
    assert separation_margin(Y, y) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("d", [1, 2, 7, 30])
@pytest.mark.parametrize("apart", [0.0, 1.0, 6.0])
def test_linear_margin_is_certified(rng, d, apart):
    """The slab is empty, and no point of the hull of differences is nearer to the origin than it is wide."""
    for _ in range(20):
        A = rng.standard_normal((rng.integers(1, 30), d)) * rng.choice([1.0, 1e-4])
        B = np.round(rng.standard_normal((rng.integers(1, 30), d)), rng.integers(0, 3))
        B[:, 0] += apart
        width, normal = widest_slab(A, B)
        weights = dual_weights(A, B)
        distance = np.linalg.norm(weights[: len(A)] @ A - weights[len(A) :] @ B)
        if normal is None:
            assert distance < 1e-5
        else:
            assert np.linalg.norm(normal) == pytest.approx(1)
            assert (A @ normal).min() - (B @ normal).max() == pytest.approx(width, abs=1e-14)
            assert width <= distance + 1e-12
            assert width == pytest.approx(distance, abs=1e-5)


def dual_weights(A, B):
    """Nearest points of two hulls as non-negative least squares, both sums of weights held at 1 by a heavy row."""
    from scipy.optimize import nnls

    heavy = 1e4
    M = np.vstack([np.hstack([A.T, -B.T]), heavy * np.repeat(np.eye(2), [len(A), len(B)], axis=1)])
    found = nnls(M, np.append(np.zeros(A.shape[1]), [heavy, heavy]), maxiter=100 * M.shape[1])[0]
    found[: len(A)] /= found[: len(A)].sum()
    found[len(A) :] /= found[len(A) :].sum()
    return found


def test_margin_is_zero_where_nothing_separates(rng):
    y = np.repeat([0, 1], 30)
    assert separation_margin(rng.standard_normal((60, 2)), y) == 0
    square = np.array([[0.0, 0], [2, 0], [0, 2], [2, 2], [1, 1]])
    assert separation_margin(square, [0, 0, 0, 0, 1]) == 0
    assert separation_margin([[0.0], [1], [1], [2]], [0, 0, 1, 1]) == 0
    assert separation_margin(np.zeros((4, 2)), [0, 0, 1, 1]) == 0
    assert q_mean_margin(square, [0, 0, 0, 0, 1], 1) == 0
    # One pair that cannot be separated decides, however far the third class is.
    assert separation_margin([[0.0], [2], [1], [50]], ["a", "a", "b", "c"]) == 0


def test_distance_margin(rng):
    for sizes in [(1, 1), (40, 3), (35, 33, 34), (2, 50, 1, 1)]:
        Y, y = clouds(rng, sizes, 3, 2.0)
        expected = np.sqrt(min(oracles.sq_dist(A, B).min() for A, B in pairs(Y, y)))
        assert separation_margin(Y, y, kind="distance") == pytest.approx(expected, rel=1e-14)
    assert separation_margin([[0.0, 0], [3, 4], [0, 0]], [0, 1, 1], kind="distance") == 0


@pytest.mark.parametrize("kind", ["linear", "distance"])
def test_margin_moves_with_the_data(rng, kind):
    Y, y = clouds(rng, (10, 12, 9), 4, 4.0)
    margin = separation_margin(Y, y, kind=kind)
    assert margin > 0
    # Equal where the nearest points are also the closest of the hulls; the two ways round differently.
    assert separation_margin(Y, y) <= separation_margin(Y, y, kind="distance") * (1 + 1e-14)
    R = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    order = rng.permutation(len(y))
    names = np.array(["x", "y", "z"])[y]
    for moved in (Y @ R, Y + 100.0, np.column_stack([Y, np.ones(len(y))])):
        assert separation_margin(moved[order], names[order], kind=kind) == pytest.approx(margin, rel=1e-10)
    for scale in (1e-200, 1e-3, 1e200):
        assert separation_margin(scale * Y, y, kind=kind) == pytest.approx(scale * margin, rel=1e-12)
    assert separation_margin(np.vstack([Y, Y]), np.append(y, y), kind=kind) == pytest.approx(margin, rel=1e-12)
    assert separation_margin(Y.astype(np.float32), y, kind=kind) == pytest.approx(margin, rel=1e-5)
    assert separation_margin(Y[:, 0], (Y[:, 0] > 0).astype(int), kind=kind) == pytest.approx(
        Y[Y[:, 0] > 0, 0].min() - Y[Y[:, 0] <= 0, 0].max(), rel=1e-12
    )


@pytest.mark.parametrize("q", [1, 2, 3])
def test_q_mean_margin_over_all_choices(rng, q):
    """Definition 4 word for word: all subsets of Q rows, the hyperplanes of another solver."""
    Y, y = clouds(rng, (6, 7, 5), 2, 5.0)
    expected = np.inf
    for A, B in pairs(Y, y):
        normal, offset, _ = hyperplane(A, B)
        means = [[np.mean(rows[list(s)], axis=0) for s in combinations(range(len(rows)), q)] for rows in (A, B)]
        expected = min(expected, 2 * (means[0] @ normal + offset).min(), -2 * (means[1] @ normal + offset).max())
    assert q_mean_margin(Y, y, q) == pytest.approx(expected, rel=1e-5)


def test_q_mean_margin_grows_with_q(rng):
    Y, y = clouds(rng, (10, 12), 3, 4.0)
    margins = [q_mean_margin(Y, y, q) for q in range(1, 11)]
    assert margins[0] == pytest.approx(separation_margin(Y, y), rel=1e-12)
    assert (np.diff(margins) > 0).all()
    assert q_mean_margin(1e180 * Y, y, 4) == pytest.approx(1e180 * margins[3], rel=1e-12)
    with pytest.raises(ValueError, match="q must be an integer from 1 to 10, the size of the smallest class, 10"):
        q_mean_margin(Y, y, 11)


def test_constants_of_a_gaussian_map(rng):
    C, sigma = rng.standard_normal((20, 3)), 1.7
    slope = np.sqrt(2) * np.exp(-0.5) / sigma
    found = rbf_lipschitz(C, sigma)
    assert found.proposition == pytest.approx(np.sqrt(20) * slope * np.sqrt(np.sum(C**2)), rel=1e-14)
    assert found.tight == pytest.approx(slope * np.sqrt(sum(np.abs(C[:, k]).sum() ** 2 for k in range(3))), rel=1e-14)
    assert coefficient_bound(C) == pytest.approx(max(np.abs(C[:, k]).sum() for k in range(3)), rel=1e-14)
    assert found.tight <= np.sqrt(3) * coefficient_bound(C) * slope
    assert found.tight < found.proposition
    assert rbf_lipschitz(C[:, 0], sigma) == rbf_lipschitz(C[:, :1], sigma)
    # The slope is that of the Gaussian where it is steepest.
    r = np.linspace(0, 5, 100001)
    steepest = np.abs(np.diff(np.exp(-(r**2) / sigma**2)) / np.diff(r)).max()
    assert rbf_lipschitz([1.0], sigma).tight == pytest.approx(steepest, rel=1e-6)
    Y, y = clouds(rng, (10, 10), 3, 4.0)
    gamma = np.sqrt(oracles.sq_dist(Y[y == 0], Y[y == 1]).min())
    expected = np.sqrt(3) * coefficient_bound(C) / (sigma * gamma)
    assert condition_parameter(Y, y, C, sigma) == pytest.approx(expected, rel=1e-12)
    assert condition_parameter(np.zeros((4, 3)), [0, 0, 1, 1], C, sigma) == np.inf


def test_rbf_extension_has_these_constants(rng):
    X = rng.standard_normal((30, 3))
    X = np.vstack([X, X[:5]])
    model = RBF(sigma=1.0).fit(X, X[:, :2])
    assert model.lipschitz_ == rbf_lipschitz(model.coef_, model.sigma_)


@pytest.mark.parametrize(("n", "alpha", "a1", "a2"), [(1, 0.3, 1.0, 1.0), (5, 2.0, 1e-4, 3.0), (625, 1e-3, 7.0, 1e-5)])
def test_optimal_sigma(n, alpha, a1, a2):
    sigma = optimal_sigma(n, alpha, a1, a2)
    roots = np.roots([2 * alpha * a2, 2 * alpha * a1, -a2 * n, -a1 * (n + 1)])
    assert sigma == pytest.approx(roots[(np.abs(roots.imag) < 1e-9) & (roots.real > 0)].real[0], rel=1e-9)

    def log_cost(log_sigma):
        s = np.exp(log_sigma)
        return np.log(a1 / s + a2) - n * log_sigma + alpha * s**2

    best = minimize_scalar(log_cost, bracket=(np.log(sigma) - 1, np.log(sigma) + 1), options={"xtol": 1e-12})
    assert sigma == pytest.approx(np.exp(best.x), rel=1e-6)


def test_optimal_sigma_at_its_limits():
    assert optimal_sigma(4, 0.5, 1e300, 1e-300) == pytest.approx(np.sqrt(5))
    assert optimal_sigma(4, 0.5, 1e-300, 1e300) == pytest.approx(2)
    assert optimal_sigma(4, 5e-201, 1.0, 1.0) == pytest.approx(2e100, rel=1e-12)


SETTINGS = {"n_components": 3, "n_class": 900, "eta": 0.3, "q": 80, "delta": 0.2, "epsilon": 0.07}


def failure(L, count, factor, n_class, eta, q, delta, epsilon, **_):
    """What eqs. (9), (11), (15) and (17) subtract from 1."""
    few = np.exp(-2 * (n_class * eta - q) ** 2 / n_class)
    return few + factor * np.exp(-count * epsilon**2 / (2 * L**2 * delta**2))


def test_bounds_as_printed():
    root, slope = np.sqrt(3), np.sqrt(2) * np.exp(-0.5) / 1.5
    general = 1 - failure(1.4, 80, 2 * 3, **SETTINGS)
    needed = 1.4 * 0.2 + root * 0.07
    assert 0.5 < general < 1
    assert linear_bound(2.0, 1.4, **SETTINGS) == pytest.approx((general, True, 1 - needed), rel=1e-12)
    assert nearest_neighbor_bound(2.0, 1.4, 0.3, **SETTINGS) == pytest.approx((general, True, 0.7 - needed), rel=1e-12)
    assert nearest_neighbor_bound(2.0, 1.4, 0.7, **SETTINGS) == pytest.approx((0, False, 0.3 - needed), rel=1e-12)
    assert linear_bound(2 * needed * (1 + 1e-12), 1.4, **SETTINGS).condition_holds
    assert not linear_bound(2 * needed * (1 - 1e-12), 1.4, **SETTINGS).condition_holds
    assert linear_bound(2.0, 1.4, **SETTINGS | {"q": 270}) == pytest.approx((0, False, 1 - needed), rel=1e-12)

    gaussian = 1 - failure(slope, 79, 2 * 1800, **SETTINGS)
    needed = root * 2.5 * (slope * 0.2 + 0.07)
    settings = SETTINGS | {"n_samples": 1800}
    assert 0.5 < gaussian < 1
    assert rbf_linear_bound(2.0, 2.5, 1.5, **settings) == pytest.approx((gaussian, True, 1 - needed), rel=1e-12)
    found = rbf_nearest_neighbor_bound(2.0, 2.5, 1.5, 0.1, **settings)
    assert found == pytest.approx((gaussian, True, 0.9 - needed), rel=1e-12)
    assert not rbf_nearest_neighbor_bound(2.0, 2.5, 1.5, 0.5, **settings).condition_holds
    assert rbf_linear_bound(2.0, 2.5, 1.5, **settings | {"q": 1}).probability == 0

    assert covering_bound(1.0, 2.0, covering_number=40, n_class=50, epsilon=0.2) == pytest.approx((0.6, True, 0.1))
    assert covering_bound(1.0, 2.0, covering_number=51, n_class=50, epsilon=0.2) == pytest.approx((0, False, 0.1))
    assert covering_bound(1.0, 2.0, covering_number=40, n_class=50, epsilon=0.3) == pytest.approx((0, False, -0.1))


def test_bounds_tend_to_certainty():
    """With Q = N η / 2 the error falls exponentially in N, also against the union over N centres."""
    last = [0.0, 0.0, 0.0]
    for n in (1000, 3000, 10000, 100000):
        settings = {"n_components": 2, "n_class": n, "eta": 0.1, "q": n // 20, "delta": 0.05, "epsilon": 0.02}
        found = (
            linear_bound(1.0, 2.0, **settings),
            rbf_linear_bound(1.0, 3.0, 1.0, n_samples=2 * n, **settings),
            covering_bound(1.0, 2.0, covering_number=100, n_class=n, epsilon=0.2),
        )
        assert all(bound.condition_holds for bound in found)
        assert all(new.probability >= old for new, old in zip(found, last, strict=True))
        last = [bound.probability for bound in found]
    assert last[0] > 1 - 1e-12
    assert last[1] > 1 - 1e-12
    assert last[2] == pytest.approx(1 - 100 / 2e5)
    extreme = linear_bound(1e300, 1e-300, **SETTINGS | {"delta": 1e-300, "epsilon": 1e299})
    assert extreme == pytest.approx((1, True, 5e299 - np.sqrt(3) * 1e299))


def test_the_steps_of_the_bounds_hold(rng):
    """Too few rows in a ball (binomial tail), and nearest rows too far (covering), against what really happens."""
    for n, eta, q in [(50, 0.3, 5), (200, 0.1, 10), (1000, 0.02, 12), (30, 0.9, 20)]:
        bound = linear_bound(1.0, 1e-9, n_components=1, n_class=n, eta=eta, q=q, delta=1e-3, epsilon=0.4)
        assert bound.condition_holds
        assert binom.sf(q - 1, n, eta) >= bound.probability
    # Rows of one class uniform on [0, 1], f the identity: right for certain where a row is within epsilon.
    for n, epsilon in [(20, 0.1), (60, 0.04)]:
        train, test = rng.random((2000, n)), rng.random(2000)
        near = (np.abs(train - test[:, None]).min(axis=1) <= epsilon).mean()
        balls = np.floor(1 / epsilon) + 1  # open intervals of length epsilon
        bound = covering_bound(2 * epsilon, 1.0, covering_number=balls, n_class=n, epsilon=epsilon)
        assert bound.condition_holds
        assert near >= bound.probability > 0.5


def two_class_graphs(rng, n, k=3):
    y = np.repeat(["a", "b"], [n, n + 3])
    X = rng.standard_normal((len(y), 2)) + np.where(y == "b", 2.0, 0.0)[:, None]
    within, between = class_graphs(X, y, n_neighbors_within=k, n_neighbors_between=2)
    return within.toarray(), between.toarray(), y


def theorem_14(W_w, W_b, y):
    """The largest mu, and V_max: the constants by their definitions, with paths by Floyd and Warshall."""
    d_w, d_b = W_w.sum(axis=1), W_b.sum(axis=1)
    weakest = np.inf
    for c in np.unique(y):
        W = W_w[y == c][:, y == c]
        hops = np.where(W > 0, 1.0, np.inf)
        np.fill_diagonal(hops, 0)
        for k in range(len(W)):
            hops = np.minimum(hops, hops[:, [k]] + hops[[k]])
        weakest = min(weakest, W[W > 0].min() / hops.max())
    volume = max(d_w[y == c].sum() for c in np.unique(y))
    between = 2 * sum(W_b[i, j] for i, j in combinations(range(len(y)), 2))
    largest = weakest / ((d_w / d_b).max() * between)
    return largest, volume


def one_dimensional(W_w, W_b, mu):
    """z = D_w^(-1/2) y for the eigenvector y of the smallest eigenvalue of L_w - mu L_b."""
    root_w, root_b = (np.diag(1 / np.sqrt(W.sum(axis=1))) for W in (W_w, W_b))
    n = len(W_w)
    L = (np.eye(n) - root_w @ W_w @ root_w) - mu * (np.eye(n) - root_b @ W_b @ root_b)
    return root_w @ np.linalg.eigh(L)[1][:, 0]


@pytest.mark.parametrize("share", [1e-3, 0.1, 0.9])
def test_two_class_margin_bound_holds(rng, share):
    runs = 0
    while runs < 15:
        W_w, W_b, y = two_class_graphs(rng, int(rng.integers(6, 15)))
        largest, volume = theorem_14(W_w, W_b, y)
        if largest == 0:  # a class in several parts
            assert not two_class_margin_bound(W_w, W_b, y, 1e-9).condition_holds
            continue
        runs += 1
        mu = share * largest
        expected = (1 - np.sqrt(mu / largest)) / np.sqrt(volume)
        bound = two_class_margin_bound(sp.csr_array(W_w), W_b, y, mu)
        assert bound == pytest.approx((expected, True, largest - mu), rel=1e-10)
        z = one_dimensional(W_w, W_b, mu)
        z = z if z[y == "a"].mean() < 0 else -z
        separation = z[y == "b"].min() - z[y == "a"].max()
        assert separation >= bound.margin > 0
        nearest = min(-z[y == "a"].max(), z[y == "b"].min())
        found = origin_distance_bound(W_w, W_b, y, separation)
        beta = W_w.sum(axis=1) / W_b.sum(axis=1)
        assert found == pytest.approx((0.5 * beta.min() / beta.max() * separation, True, separation), rel=1e-10)
        assert nearest >= found.margin
        # A wished separation shortens the range of mu; at its end the bound is that separation.
        wished = 0.3 / np.sqrt(volume)
        end = largest * (1 - np.sqrt(volume) * wished) ** 2
        assert two_class_margin_bound(W_w, W_b, y, 0.999 * end, separation=wished).condition_holds
        assert not two_class_margin_bound(W_w, W_b, y, 1.001 * end, separation=wished).condition_holds
        assert two_class_margin_bound(W_w, W_b, y, end).margin == pytest.approx(wished, rel=1e-9)
        assert two_class_margin_bound(W_w, W_b, y, mu, separation=2 / np.sqrt(volume)).slack == pytest.approx(-mu)


def test_two_class_bound_beyond_its_assumptions(rng):
    W_w, W_b, y = two_class_graphs(rng, 8, k=10)
    largest = theorem_14(W_w, W_b, y)[0]
    assert two_class_margin_bound(W_w, W_b, y, 2 * largest) == pytest.approx((0, False, -largest), rel=1e-10)
    assert two_class_margin_bound(W_w + np.eye(len(y)), W_b, y, largest / 2).condition_holds  # loops count nowhere
    lonely = W_b.copy()
    lonely[0] = lonely[:, 0] = 0
    assert two_class_margin_bound(W_w, lonely, y, 1e-9) == (0, False, -1e-9)
    assert origin_distance_bound(W_w, lonely, y, 0.5) == (0, False, 0.5)
    assert origin_distance_bound(W_w, W_b, y, 0.0) == (0, False, 0)
    apart = W_w.copy()
    apart[0] = apart[:, 0] = 0
    assert two_class_margin_bound(apart, W_b, y, 1e-9) == (0, False, -1e-9)
    assert two_class_margin_bound(np.zeros_like(W_w), W_b, y, 1e-9) == (0, False, -1e-9)


def test_hop_diameter_in_chunks(rng, monkeypatch):
    W = np.diag(np.ones(9), 1)
    assert separability._hop_diameter(sp.csr_array(W + W.T)) == 9
    monkeypatch.setattr(separability, "_CHUNK", 30)
    assert separability._hop_diameter(sp.csr_array(W + W.T)) == 9


def test_category_conditions_hold(rng):
    """Two categories of two classes each: the whole embedding is as separable as the theorem says."""
    n, mu = 5, 0.5
    y, category = np.repeat([0, 1, 2, 3], n), np.repeat([0, 1], 2 * n)
    weights = rng.uniform(0.5, 1.5, (4 * n, 4 * n))
    weights = weights + weights.T
    np.fill_diagonal(weights, 0)
    same, inside = y[:, None] == y, category[:, None] == category

    def objective(W):
        parts = [np.where(mask, W, 0.0) for mask in (same, ~same)]
        roots = [np.diag(1 / np.sqrt(part.sum(axis=1))) for part in parts]
        L_w, L_b = (np.eye(4 * n) - root @ part @ root for part, root in zip(parts, roots, strict=True))
        return L_w - mu * L_b

    alone = objective(np.where(inside, weights, 0.0))
    values, vectors = np.linalg.eigh(alone)
    chosen = [int(np.flatnonzero([np.abs(v[category == c]).max() > 1e-8 for v in vectors.T])[0]) for c in (0, 1)]
    gamma = min(
        2 * np.abs(vectors[category == c][:, k]).min() for c, k in enumerate(chosen)
    )  # separable through the origin: each category's first eigenvector changes its sign with the class
    gap = np.diff(values).min()
    for size in (1e-12, 1e-9, 1e-3):
        L = objective(np.where(inside, weights, size * weights))
        found = category_conditions(sp.csr_array(L), alone, gamma)
        norm = np.linalg.norm(L - alone, 2)
        assert found.perturbation == pytest.approx(norm, rel=1e-3)
        assert found.eigenvalue_gap == pytest.approx(gap, rel=1e-6)
        if size < 1e-6:
            lost = 2 * norm / gap
            xi = np.sqrt(1 - lost**2)
            zeta = np.sqrt(2 - 2 * xi + 2 * np.sqrt(4 * n * lost**2))
            assert (found.xi, found.zeta) == pytest.approx((xi, zeta), rel=1e-3)
            assert found.condition_holds
            assert found.margin == pytest.approx(gamma / np.sqrt(2) - 2 * zeta, rel=1e-3)
            embedding = np.linalg.eigh(L)[1][:, chosen]
            assert separation_margin(embedding, y) >= found.margin > 0
        else:
            assert not found.condition_holds
            assert found.margin == 0 > found.slack
    assert not category_conditions(np.eye(3), np.eye(3), 1.0).condition_holds  # no gap between eigenvalues
    exact = category_conditions(np.diag([1.0, 2.0]), np.diag([1.0, 2.0]), 1.0)
    assert exact.margin == pytest.approx(1 / np.sqrt(2))


@pytest.mark.parametrize("chunk", [1 << 21, 40])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_balls_and_diameters(rng, monkeypatch, chunk, dtype):
    monkeypatch.setattr(balls, "_CHUNK", chunk)
    X, y = clouds(rng, (15, 8, 20), 3, 3.0)
    Y = rng.standard_normal((43, 2)).astype(dtype)
    X = X.astype(dtype)
    D, E = (np.sqrt(oracles.sq_dist(M.astype(np.float64))) for M in (X, Y))
    same = y[:, None] == y
    for delta in (1e-3, 0.4, 0.9, 50.0):
        eta = [(D[y == c][:, y == c] < delta).sum(axis=1).min() - 1 for c in range(3)] / (np.bincount(y) - 1.0)
        np.testing.assert_allclose(ball_probability(X, y, delta), eta, rtol=1e-14)
        assert within_diameter(X, Y, y, delta) == pytest.approx(E[same & (delta >= D)].max(), rel=1e-6)
    if dtype is np.float64:
        np.testing.assert_allclose(ball_probability(1e-190 * X, y, 0.9e-190), ball_probability(X, y, 0.9))
        assert within_diameter(1e190 * X, 1e200 * Y, y, 0.9e190) == pytest.approx(1e200 * within_diameter(X, Y, y, 0.9))


def tight_clusters(rng, n=150):
    y = np.repeat(["left", "right"], n)
    X = np.where(y == "left", 0.0, 10.0)[:, None] + 0.05 * rng.random((2 * n, 2))
    return OutOfSample(PCA(n_components=1), extension=RBF(sigma=5.0, ridge=1.0)).fit(X), X, y


def test_report_gives_guarantees_where_there_are_some(rng):
    model, X, y = tight_clusters(rng)
    fresh = np.array([[0.02, 0.03], [10.01, 10.04], [9.9, 10.0]])
    report = generalization_report(model, X, y, fresh, ["left", "right", "left"])
    assert report.interpolation_error > 1e-6  # a ridge: the theorems are applied to f(x_i)
    Y, extension = model.transform(X), model.extension_
    assert report.linear_margin == pytest.approx(separation_margin(Y, y))
    assert report.distance_margin == pytest.approx(separation_margin(Y, y, kind="distance"))
    assert report.lipschitz == rbf_lipschitz(extension.coef_, extension.sigma_)
    assert report.condition_parameter == pytest.approx(condition_parameter(Y, y, extension.coef_, extension.sigma_))
    assert report.diameter == pytest.approx(within_diameter(X, Y, y, 2 * report.spacing))
    assert report.test_error == pytest.approx(1 / 3)
    for verdict in report.verdicts:
        assert verdict.bound.condition_holds
        assert verdict.bound.probability > 0.9
        assert str(verdict).startswith("right with probability at least")
        assert str(verdict) in str(report)
    # The verdict can be had by hand, from its own parameters.
    first = report.verdicts[0]
    eta = ball_probability(X, y, first.delta)
    by_hand = min(
        linear_bound(
            q_mean_margin(Y, y, first.q), report.lipschitz.tight,
            n_components=1, n_class=150, eta=e, q=first.q, delta=first.delta, epsilon=first.epsilon,
        )
        for e in eta
    )  # fmt: skip
    assert first.bound == pytest.approx(by_hand, rel=1e-6, abs=1e-9)
    assert "classified correctly with probability at least" in report.conclusion
    assert "33.33%" in str(report)


@pytest.mark.parametrize(
    ("probabilities", "guarantee"),
    [
        ((0.5, 0.25, 0.75, 0.0), "0.7500 by the linear classifier and 0.2500 by the nearest neighbour"),
        ((0.5, 0.0, 0.0, 0.0), "0.5000 by the linear classifier"),
        ((0.0, 0.0, 0.0, 0.875), "0.8750 by the nearest neighbour"),
    ],
)
def test_report_says_for_which_classifier(rng, probabilities, guarantee):
    model, X, y = tight_clusters(rng, 20)
    found = [
        replace(verdict, bound=verdict.bound._replace(probability=p))
        for verdict, p in zip(generalization_report(model, X, y).verdicts, probabilities, strict=True)
    ]
    assert f"with probability at least {guarantee} (estimated)." in conclude(tuple(found), True, 1.0)


def test_report_says_what_is_vacuous():
    digits = load_digits()
    X, y = digits.data[:300], digits.target[:300]
    model = LaplacianEigenmaps(n_components=5, n_neighbors=15, extension="rbf").fit(X)
    report = generalization_report(model, X, y, digits.data[300:600], digits.target[300:600])
    assert len(report.verdicts) == 4
    for verdict in report.verdicts:
        assert not verdict.bound.condition_holds
        assert verdict.bound.probability == 0
        assert verdict.bound.slack < 0
        assert str(verdict).startswith("condition not met")
    assert report.conclusion.startswith("All bounds are vacuous here: no condition is met.")
    assert 0 < report.test_error < 0.5
    page = str(report)
    assert repr(report) == page
    assert page.startswith("Generalization of LaplacianEigenmaps: 300 rows, 10 classes, d = 5")
    assert all(verdict.theorem in page for verdict in report.verdicts)
    html = report._repr_html_()
    assert html.count("<tr>") == len(report._lines())
    assert "&lt;=" in html
    assert str(pickle.loads(pickle.dumps(report))) == page


def test_report_on_coil(data_dir):
    with np.load(data_dir / "coil20.npz") as stored:
        X, y = stored["images"], stored["labels"]
    rows = np.arange(len(y)) % 6 == 0
    X = X[rows].reshape(rows.sum(), -1)[:, ::4] / 255.0
    model = OutOfSample(PCA(n_components=10), extension=RBF(sigma="loo")).fit(X)
    report = generalization_report(model, X, y[rows])
    assert 0 < report.loo_error < 0.5
    assert "1-NN error of rows left out of the map" in str(report)
    assert not any(verdict.bound.condition_holds for verdict in report.verdicts)


@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_report_leaves_rows_out(rng, ridge):
    """The closed form against refits: each row mapped by the others, and its nearest embedding among those."""
    X, y = clouds(rng, (12, 15, 9), 3, 1.0)
    model = LabelEncoding(extension=RBF(sigma=1.5, ridge=ridge)).fit(X, y)
    wrong = 0
    for i in range(len(X)):
        others = np.arange(len(X)) != i
        image = RBF(sigma=1.5, ridge=ridge).fit(X[others], model.embedding_[others]).predict(X[i : i + 1])
        nearest = np.argmin(np.sum((model.embedding_[others] - image) ** 2, axis=1))
        wrong += y[others][nearest] != y[i]
    assert 0 < wrong < len(X)
    assert generalization_report(model, X, y).loo_error == pytest.approx(wrong / len(X), abs=1e-12)


@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_report_leaves_rows_out_with_their_copies(rng, ridge):
    X, y = clouds(rng, (12, 15, 9), 3, 1.0)
    kinds = np.concatenate([np.arange(36), [4, 4, 30]])
    X, y = X[kinds], y[kinds]
    model = LabelEncoding(extension=RBF(sigma=1.5, ridge=ridge)).fit(X, y)
    wrong = 0
    for i, kind in enumerate(kinds):
        others = kinds != kind
        image = RBF(sigma=1.5, ridge=ridge).fit(X[others], model.embedding_[others]).predict(X[i : i + 1])
        nearest = np.argmin(np.sum((model.embedding_[others] - image) ** 2, axis=1))
        wrong += y[others][nearest] != y[i]
    assert 0 < wrong < len(X)
    assert generalization_report(model, X, y).loo_error == pytest.approx(wrong / len(X), abs=1e-12)


def test_report_leaves_no_rows_out_of_a_map_with_other_centres(rng):
    X, y = clouds(rng, (30, 30), 3, 4.0)
    model = OutOfSample(PCA(n_components=2), extension=RBF(sigma=3.0), landmarks=15).fit(X)
    report = generalization_report(model, X, y)
    assert "15 centres" in report.map
    assert report.loo_error is None


def test_report_on_nsse(rng):
    X, y = clouds(rng, (12, 15, 9), 3, 4.0)
    report = generalization_report(NSSE(2).fit(X, y), X, y, X, y)
    assert report.test_error == 0
    assert report.loo_error is not None
    assert report.interpolation_error < 1e-6


def test_report_on_other_maps(rng):
    X, y = clouds(rng, (20, 25), 3, 4.0)
    other = LaplacianEigenmaps(n_components=2, affinity="full", extension="lvm").fit(X)
    report = generalization_report(other, X, y)
    assert (report.lipschitz, report.condition_parameter, report.sigma, report.verdicts) == (None, None, None, ())
    assert "LatentVariable: Lipschitz constant not known" in str(report)
    assert report.conclusion.startswith("No theorem was applied")
    assert report.distance_margin > 0
    kernel = LGRM(n_components=2, n_neighbors=25, kernel="rbf", sigma=2.0).fit(X)
    report = generalization_report(kernel, X, y)
    assert report.sigma == 2.0
    assert report.lipschitz == rbf_lipschitz(kernel.dual_coef_, 2.0)
    linear = LGRM(n_components=2, n_neighbors=25, kernel="linear").fit(X)
    norm = np.linalg.norm(X.T @ linear.dual_coef_, 2)
    assert generalization_report(linear, X, y).lipschitz == pytest.approx((norm, norm), rel=1e-6)
    assert generalization_report(LGRM(n_components=2, n_neighbors=25, kernel="poly").fit(X), X, y).lipschitz is None
    # An embedding that is its own map, as NSSE: coef_ and sigma_ on the estimator.
    inner = RBF(sigma=1.5).fit(X, X[:, :2])
    own = SimpleNamespace(embedding_=X[:, :2], coef_=inner.coef_, sigma_=1.5, transform=inner.predict)
    assert generalization_report(own, X, y).lipschitz == inner.lipschitz_
    # A class of one row leaves its balls without an estimate, and a constant map has nothing to judge.
    single = np.where(np.arange(45) == 7, "alone", np.array(["a", "b"])[y])
    assert "a class has a single row" in generalization_report(own, X, single).conclusion
    flat = SimpleNamespace(embedding_=0 * X[:, :1], coef_=0 * X[:, :1], sigma_=1.0, transform=lambda X: 0 * X[:, :1])
    assert "All bounds are vacuous" in generalization_report(flat, X, y).conclusion


def stretch(model, p):
    """The spectral norm of a linear map from its images alone: the root of the largest eigenvalue of J'J."""
    jacobian = model.transform(np.eye(p)) - model.transform(np.zeros((1, p)))
    return np.sqrt(np.linalg.eigvalsh(jacobian.T @ jacobian)[-1])


LINEAR = [
    LPP(),
    SpectralRegression(),
    LDE(),
    LFDA(),
    SDA(),
    SDE(),
    TCA(),
    ElasticEmbedding(),
    LaplacianEigenmaps(extension="linear"),
    OutOfSample(PCA(n_components=2), extension="linear"),
]


@pytest.mark.parametrize("model", LINEAR, ids=lambda model: type(model).__name__)
def test_report_on_linear_maps(rng, model):
    X, y = clouds(rng, (20, 25, 15), 6, 1.0)
    y = np.array(["a", "b", "c"])[y]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "all rows have labels")
        model = clone(model).fit(X, y)
    report = generalization_report(model, X, y)
    expected = stretch(model, 6)
    assert report.lipschitz == pytest.approx((expected, expected), rel=1e-9)
    image = model.transform(X)
    apart = np.sqrt(oracles.sq_dist(X)[np.triu_indices(60, 1)])
    images_apart = np.sqrt(oracles.sq_dist(image)[np.triu_indices(60, 1)])
    assert (images_apart <= report.lipschitz.tight * apart * (1 + 1e-9)).all()
    assert (report.sigma, report.coefficient_bound, report.condition_parameter, report.loo_error) == (None,) * 4
    assert [verdict.theorem[:9] for verdict in report.verdicts] == ["Theorem 5", "Theorem 6"]
    assert f"{expected:.4g} (the spectral norm of its matrix)" in str(report)


def test_constant_of_a_linear_map(rng):
    W = rng.standard_normal((7, 3))
    expected = np.sqrt(np.linalg.eigvalsh(W.T @ W)[-1])
    assert linear_lipschitz(W) == pytest.approx(expected, rel=1e-12)
    assert linear_lipschitz(W.T) == pytest.approx(expected, rel=1e-12)
    assert linear_lipschitz(W[:, 0]) == pytest.approx(np.sqrt(np.sum(W[:, 0] ** 2)), rel=1e-14)
    assert linear_lipschitz(1e200 * W) == pytest.approx(1e200 * expected, rel=1e-12)
    assert linear_lipschitz(W.astype(np.float32)) == pytest.approx(expected, rel=1e-6)


def test_report_gives_guarantees_for_linear_maps(rng):
    _, X, y = tight_clusters(rng)
    model = OutOfSample(PCA(n_components=1), extension="linear").fit(X)
    report = generalization_report(model, X, y)
    Y, L = model.transform(X), linear_lipschitz(model.extension_.coef_)
    first, second = report.verdicts
    settings = {"n_components": 1, "n_class": 150}
    for verdict, margin, diameter in (
        (first, q_mean_margin(Y, y, first.q), 0.0),
        (second, separation_margin(Y, y, kind="distance"), within_diameter(X, Y, y, 2 * second.delta)),
    ):
        free = {"q": verdict.q, "delta": verdict.delta, "epsilon": verdict.epsilon}
        by_hand = min(
            nearest_neighbor_bound(margin, L, diameter, eta=e, **settings, **free)
            for e in ball_probability(X, y, verdict.delta)
        )
        assert verdict.bound == pytest.approx(by_hand, rel=1e-6, abs=1e-9)
        assert verdict.bound.condition_holds
        assert verdict.bound.probability > 0.9
    assert "classified correctly with probability at least" in report.conclusion


def test_report_on_kernel_maps(rng):
    """A kernel map is not linear, also where an earlier fit of the same estimator was."""
    X, y = clouds(rng, (20, 25), 3, 1.0)
    model = LPP().fit(X)
    assert generalization_report(model, X, y).sigma is None
    assert generalization_report(model.set_params(kernel="poly").fit(X), X, y).lipschitz is None
    gaussian = generalization_report(model.set_params(kernel="rbf", sigma=3.0).fit(X), X, y)
    assert gaussian.lipschitz == rbf_lipschitz(model.dual_coef_, 3.0)
    assert len(gaussian.verdicts) == 4


@pytest.mark.parametrize("scale", [2.0**-350, 2.0**350])
@pytest.mark.parametrize("model", [LDE(), LaplacianEigenmaps(extension="linear")])
def test_report_on_linear_maps_in_the_units_of_the_data(rng, model, scale):
    X, y = clouds(rng, (20, 25), 3, 1.0)
    model = clone(model).fit(scale * X, y)
    apart = scale * X[:, None] - scale * X
    images = model.transform(scale * X)
    ratio = np.sqrt(oracles.sq_dist(images)) / (np.sqrt(np.sum((apart / scale) ** 2, axis=2)) * scale + np.eye(45))
    report = generalization_report(model, scale * X, y)
    assert 0.2 * report.lipschitz.tight < ratio.max() <= report.lipschitz.tight * (1 + 1e-9)


def test_report_in_the_units_of_the_data(rng):
    """Rows that fit scales by a power of two: sigma and the Lipschitz constant are those of the data given."""
    model, X, y = tight_clusters(rng, 40)
    usual = generalization_report(model, X, y)
    scaled = model.set_params(extension=RBF(sigma=0.5, ridge=1.0)).fit(2.0**320 * X)
    huge = generalization_report(scaled, 2.0**320 * X, y)
    assert huge.sigma == 0.5 * 2.0**324  # the largest entry, 10.05, is brought below 1
    assert huge.spacing == pytest.approx(2.0**320 * usual.spacing)


@pytest.mark.parametrize("scale", [2.0**-350, 2.0**350])
def test_report_on_nsse_in_the_units_of_the_data(rng, scale):
    X, y = clouds(rng, (12, 15, 9), 3, 4.0)
    usual = generalization_report(NSSE(2).fit(X, y), X, y)
    model = NSSE(2).fit(scale * X, y)
    report = generalization_report(model, scale * X, y)
    assert report.sigma == model.sigma_ == pytest.approx(scale * usual.sigma, rel=1e-6)
    assert report.lipschitz == pytest.approx(model.lipschitz_)
    assert report.loo_error == usual.loo_error


def test_a_vector_is_an_embedding_of_one_column():
    X, Y, y = [[0.0], [1.0], [5.0], [6.0]], np.array([0.0, 0.5, 9.0, 9.25]), [0, 0, 1, 1]
    for function in (
        lambda Y: separation_margin(Y, y),
        lambda Y: q_mean_margin(Y, y, 2),
        lambda Y: condition_parameter(Y, y, [1.0, 2.0], 1.0),
        lambda Y: within_diameter(X, Y, y, 1.0),
    ):
        assert function(Y) == function(Y[:, None])


FINE = ([[0.0], [1.0], [5.0], [6.0]], [0, 0, 1, 1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: separation_margin(*FINE, kind="round"), "kind must be 'linear', 'origin' or 'distance'. Got 'round'"),
        (lambda: separation_margin([[0.0], [np.nan]], [0, 1]), "Y must be finite"),
        (lambda: separation_margin([[0.0], [1.0]], [0, 0]), "at least 2 classes"),
        (lambda: separation_margin([[0.0], [1.0]], [0, 1, 1]), "y must hold one label per row"),
        (lambda: separation_margin([[0.0], [1.0]], None), "requires y"),
        (lambda: separation_margin([["a"], ["b"]], [0, 1]), "Y must hold real numbers"),
        (lambda: q_mean_margin(*FINE, 0), "q must be an integer from 1 to 2"),
        (lambda: rbf_lipschitz([1.0], 0.0), "sigma must be a positive"),
        (lambda: rbf_lipschitz(np.empty((0, 2)), 1.0), "coef must have at least 1 row"),
        (lambda: linear_lipschitz(np.empty((0, 2))), "coef must have at least 1 row"),
        (lambda: linear_lipschitz([[np.nan]]), "coef must be finite"),
        (lambda: coefficient_bound([[np.inf]]), "coef must be finite"),
        (lambda: condition_parameter(*FINE, [[1.0, 2.0]], 1.0), "coef must have one column per column of Y, 1. Got 2"),
        (lambda: condition_parameter([0.0, 2.0], [0, 1], np.ones((2, 2)), 4.0), "one column per column of Y, 1. Got 2"),
        (lambda: optimal_sigma(2.5, 1.0, 1.0, 1.0), "n must be an integer"),
        (lambda: optimal_sigma(2, -1.0, 1.0, 1.0), "alpha must be a positive"),
        (lambda: linear_bound(-1.0, 1.0, **SETTINGS), "margin must be a finite number of at least 0"),
        (lambda: linear_bound(1.0, 0.0, **SETTINGS), "lipschitz must be a positive"),
        (lambda: linear_bound(1.0, 1.0, **SETTINGS | {"eta": 1.5}), "eta must be a probability, from 0 to 1. Got 1.5"),
        (lambda: linear_bound(1.0, 1.0, **SETTINGS | {"q": 0}), "q must be an integer"),
        (lambda: linear_bound(1.0, 1.0, **SETTINGS | {"delta": 0}), "delta must be a positive"),
        (lambda: rbf_linear_bound(1.0, -1.0, 1.0, n_samples=9, **SETTINGS), "coef_bound must be"),
        (lambda: covering_bound(1.0, 1.0, covering_number=0, n_class=5, epsilon=0.1), "covering_number must be"),
        (lambda: ball_probability([[0.0], [1.0], [2.0]], [0, 0, 1], 1.0), "at least 2 members"),
        (lambda: ball_probability(FINE[0], FINE[1], -1.0), "delta must be a positive"),
        (lambda: within_diameter(FINE[0], FINE[0][:3], FINE[1], 1.0), "Y must have one row per row of X, 4. Got 3"),
        (lambda: two_class_margin_bound(np.ones((3, 4)), np.eye(4), FINE[1], 1.0), "W_within must be a square matrix"),
        (lambda: two_class_margin_bound(-np.ones((4, 4)), np.eye(4), FINE[1], 1.0), "W_within must have finite"),
        (lambda: two_class_margin_bound(np.eye(4), np.tri(4), FINE[1], 1.0), "W_between must be symmetric"),
        (lambda: two_class_margin_bound(np.eye(4), np.eye(3), FINE[1], 1.0), "W_between must have the shape of"),
        (lambda: two_class_margin_bound(np.ones((4, 4)), np.eye(4), FINE[1], 1.0), "W_within must join only rows"),
        (lambda: two_class_margin_bound(np.eye(4), np.ones((4, 4)), FINE[1], 1.0), "W_between must join only rows of"),
        (lambda: two_class_margin_bound(np.eye(6), np.eye(6), [0, 0, 1, 1, 2, 2], 1.0), "y must hold 2 classes. Got 3"),
        (lambda: two_class_margin_bound(np.eye(4), np.eye(4), [0, 1, 1, 1], 1.0), "at least 2 members"),
        (lambda: two_class_margin_bound(np.eye(4), np.eye(4), FINE[1], 0.0), "mu must be a positive"),
        (lambda: category_conditions(np.eye(3), np.eye(2), 1.0), "L must be a square matrix of 2 rows"),
        (lambda: category_conditions(np.tri(3), np.eye(3), 1.0), "L must be symmetric"),
        (lambda: generalization_report(RBF(), *FINE), "estimator must be a fitted embedding. Got RBF"),
    ],
)  # fmt: skip
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_report_refuses_other_rows(rng):
    model, X, y = tight_clusters(rng, 20)
    with pytest.raises(ValueError, match="X must hold the rows the estimator was fitted to, 40"):
        generalization_report(model, X[1:], y[1:])
    with pytest.raises(ValueError, match="X_test and y_test must be given together"):
        generalization_report(model, X, y, X)
    with pytest.raises(ValueError, match="y_test must hold one label per row of X_test, 40"):
        generalization_report(model, X, y, X, y[1:])


def test_bounds_are_named():
    assert Bound._fields == ("probability", "condition_holds", "slack")
    assert isinstance(linear_bound(1.0, 1.0, **SETTINGS), Bound)


@pytest.mark.process
def test_theory_imports_no_scikit_learn(run_python):
    assert run_python("import manifast.theory, sys; print('sklearn' in sys.modules)") == "False\n"
