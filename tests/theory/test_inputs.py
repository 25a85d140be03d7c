"""What the theorems are fed with: covering numbers, growth of the inverse, the classifier (4), Theorem 16."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize

from manifast import LabelEncoding, LaplacianEigenmaps
from manifast.extensions import RBF
from manifast.graphs import class_graphs
from manifast.kernels import gaussian
from manifast.theory import (
    category_conditions,
    category_margin,
    category_objectives,
    covering_bound,
    covering_number,
    generalization_report,
    inverse_growth,
    linear_classifier,
    optimal_sigma,
    separation_margin,
)


def intervals(points, radius):
    """The covering number of points on a line by open intervals of half-length `radius`, by a sweep from the left."""
    count, end = 0, -np.inf
    for x in np.sort(points):
        if x >= end:  # the farthest reach of an open interval that holds x
            count, end = count + 1, x + 2 * radius
    return count


@pytest.mark.parametrize("radius", [1e-3, 0.02, 0.1, 0.7])
def test_covering_number_on_a_line(rng, radius):
    y = np.repeat([0, 1, 2], (50, 9, 120))
    x = rng.uniform(0, 1 + y)
    found = covering_number(x[:, None], y, radius, unseen=False)
    for c, count in enumerate(found):
        assert intervals(x[y == c], radius) <= count <= intervals(x[y == c], radius / 2)
    assert (covering_number(x[:, None], y, radius) >= found).all()


@pytest.mark.parametrize("scale", [1.0, 2.0**-300, 2.0**300])
def test_covering_number_in_any_units(rng, scale):
    X, y = rng.standard_normal((60, 4)), np.arange(60) % 2
    np.testing.assert_array_equal(covering_number(scale * X, y, scale), covering_number(X, y, 1.0))


def test_covering_number_where_rows_are_few():
    """Twenty cells, drawn at random: what was not seen yet is estimated, and nothing is added once all was seen."""
    rng, cells = np.random.default_rng(0), 10.0 * np.arange(20)
    guesses = []
    for _ in range(200):
        x = rng.choice(cells, 25)[:, None]
        guesses.append(
            [covering_number(np.vstack([x, x]), np.repeat([0, 1], 25), 1.0, unseen=u)[0] for u in (True, False)]
        )
    estimated, seen = np.mean(guesses, axis=0)
    assert seen < 15.5 and abs(estimated - 20) < 2
    many = np.repeat(cells, 5)[:, None]
    assert covering_number(np.vstack([many, many]), np.repeat([0, 1], 100), 1.0).tolist() == [20.0, 20.0]
    # Rows that are all alone say nothing about the class, and Theorem 2 does not apply.
    alone = covering_number(np.arange(20.0)[:, None], np.repeat([0, 1], 10), 0.5)
    assert (alone > 10).all()


@pytest.mark.parametrize("p", [1, 2, 3, 6])
def test_growth_of_the_inverse(rng, p):
    X = rng.uniform(size=(25, p))
    spacing = np.sqrt(((X[:, None] - X) ** 2).sum(axis=-1))[~np.eye(25, dtype=bool)].min()
    bound, measured = inverse_growth(X, kind="bound"), inverse_growth(X)
    assert bound.n == measured.n == p
    for sigma in np.geomspace(0.01, 3.0, 12) * spacing:
        assert -np.log(np.linalg.eigvalsh(gaussian(X, sigma=sigma))[0]) <= bound.log_bound(sigma)
    nearest = np.median(np.sort(np.sqrt(((X[:, None] - X) ** 2).sum(axis=-1)), axis=1)[:, 1])
    gaps = []
    for sigma in np.geomspace(0.5, 8.0, 9) * nearest:
        smallest = np.linalg.eigvalsh(gaussian(X, sigma=sigma))[0]
        if smallest > 1e-11:
            gaps.append(measured.log_bound(sigma) + np.log(smallest))
    assert min(gaps) > -1e-3 and np.sum(np.array(gaps) < 1e-3) >= 2  # above all, and touching two of them
    assert bound.alpha > measured.alpha > 0


def test_constants_of_the_bound_in_one_dimension():
    """M_1 = 12 √(π Γ(3/2)² / 9) = 2π, C_1 = M_1 / (√8 · 2Γ(3/2))."""
    found = inverse_growth([[0.0], [2.0], [5.0]], kind="bound")  # separation radius 1
    assert found.alpha == pytest.approx(4 * np.pi**2)
    assert found.log_beta == pytest.approx(np.log(np.sqrt(2) * np.sqrt(8) * np.sqrt(np.pi) / (2 * np.pi)))


def test_growth_moves_with_the_data(rng):
    X = rng.standard_normal((30, 3))
    for kind in ("measured", "bound"):
        small, large = (inverse_growth(scale * X, kind=kind) for scale in (1.0, 8.0))
        assert large.alpha == pytest.approx(small.alpha / 64)
        assert large.log_bound(8 * 0.7) == pytest.approx(small.log_bound(0.7))
    growth = inverse_growth(X, n=2)
    a = np.sqrt(2) * np.exp(-0.5)
    assert growth.optimal_sigma(0.3, 0.7) == optimal_sigma(2, growth.alpha, a * 0.3, 0.7)


def test_linear_classifier_by_hand(rng):
    """Every pair of classes by sequential quadratic programming, and (4) as it is written."""
    y = np.repeat([5, 7, 9], (8, 6, 7))
    Y = 4 * np.array([[0, 0], [1, 0], [0, 1.2]])[(y - 5) // 2] + rng.uniform(-1, 1, (21, 2)) + 100.0
    found = linear_classifier(Y, y)
    assert found.margin == pytest.approx(separation_margin(Y, y), rel=1e-9)
    queries = rng.uniform(97, 108, (300, 2))
    won = {c: np.ones(300, dtype=bool) for c in (5, 7, 9)}
    for k, m in combinations((5, 7, 9), 2):
        signs = np.where(y == k, 1, -1)[np.isin(y, (k, m))]
        rows = Y[np.isin(y, (k, m))] - 100
        start = np.append(rows[signs > 0].mean(axis=0) - rows[signs < 0].mean(axis=0), 0.0)
        solved = minimize(
            lambda v: 0.5 * v[:2] @ v[:2], start, method="SLSQP", options={"ftol": 1e-15, "maxiter": 500},
            constraints={"type": "ineq", "fun": lambda v, rows=rows, signs=signs: signs * (rows @ v[:2] + v[2]) - 1},
        ).x  # fmt: skip
        side = (queries - 100) @ solved[:2] + solved[2]
        won[k] &= side > 0
        won[m] &= side < 0
    predicted = found.predict(queries)
    claimed = np.ma.getmaskarray(predicted)
    assert 0 < claimed.sum() < 50  # the three hyperplanes leave a triangle to nobody
    np.testing.assert_array_equal(claimed, ~np.any(list(won.values()), axis=0))
    for c, mine in won.items():
        np.testing.assert_array_equal((predicted == c).filled(False), mine)
    truth = np.where(won[7], 7, 5)
    assert found.error(queries, truth) == pytest.approx(1 - np.mean(won[7] | won[5]))
    assert found.error(Y, y) == 0


def test_linear_classifier_in_any_units(rng):
    y = np.array(["a", "b"])[np.arange(20) % 2]
    Y = rng.standard_normal((20, 3)) + 8.0 * (y == "b")[:, None]
    plain, tiny = linear_classifier(Y, y), linear_classifier(np.ldexp(Y, -400), y)
    assert tiny.margin == np.ldexp(plain.margin, -400)
    queries = rng.standard_normal((50, 3)) + 4
    assert plain.predict(queries).tolist() == tiny.predict(np.ldexp(queries, -400)).tolist()


@pytest.mark.parametrize("d", [1, 2, 5])
def test_margin_through_the_origin(rng, d):
    """The largest γ with ω·a >= γ/2 and ω·b <= -γ/2: a quadratic program in another form."""
    y = np.repeat([0, 1, 2], 7)
    centers = np.vstack([np.eye(d)[0], -np.eye(d)[0], np.eye(d)[-1]])
    Y = (3 * centers[y] + 0.5 * rng.standard_normal((21, d)))[: 14 if d == 1 else 21]
    y = y[: len(Y)]
    smallest = np.inf
    for k, m in combinations(np.unique(y), 2):
        sides = np.vstack([Y[y == k], -Y[y == m]])
        solved = minimize(
            lambda w: 0.5 * w @ w, sides.mean(axis=0), jac=lambda w: w, method="SLSQP",
            constraints={"type": "ineq", "fun": lambda w, sides=sides: sides @ w - 1},
            options={"ftol": 1e-15, "maxiter": 500},
        ).x  # fmt: skip
        smallest = min(smallest, 2 / np.linalg.norm(solved))
    found = separation_margin(Y, y, kind="origin")
    assert found == pytest.approx(smallest, rel=1e-6)
    assert found <= separation_margin(Y, y) * (1 + 1e-9)
    assert separation_margin(np.ldexp(Y, 300), y, kind="origin") == np.ldexp(found, 300)
    shifted = Y + 100 * np.eye(d)[0]
    assert separation_margin(shifted, y, kind="origin") < 1  # separable still, but not through the origin
    assert separation_margin(shifted, y) == pytest.approx(separation_margin(Y, y), rel=1e-6)


def test_theorem_16_from_graphs(rng):
    """Two far categories of two classes each: the conditions hold, and the whole embedding has the margin promised."""
    y, categories = np.repeat([0, 1, 2, 3], 5), np.repeat(["near", "far"], 10)
    X = np.array([0.0, 1.0, 9.0, 10.0])[y][:, None] + 0.3 * rng.random((20, 2))
    within, between = class_graphs(X, y, beta=3.0)
    weights = np.exp(-((X[:, None] - X) ** 2).sum(axis=-1) / 3.0)
    between = np.where(y[:, None] != y, weights, 0.0)  # heat weights: next to nothing between the categories
    L, inside = category_objectives(within, between, categories, mu=0.5)
    for found, keep in ((L, np.ones((20, 20))), (inside, categories[:, None] == categories)):
        parts = []
        for W in (within.toarray(), between):
            W = W * keep
            roots = 1 / np.sqrt(W.sum(axis=1))
            parts.append(np.eye(20) - roots[:, None] * W * roots)
        np.testing.assert_allclose(found, parts[0] - 0.5 * parts[1], atol=1e-14)
    margin = category_margin(inside, y, categories)
    by_hand = []
    for category in np.unique(categories):
        rows = categories == category
        first = np.linalg.eigh(inside[np.ix_(rows, rows)])[1][:, 0]
        one, two = first[y[rows] == y[rows][0]], first[y[rows] != y[rows][0]]
        by_hand.append(2 * max(min(one.min(), -two.max()), min(-one.max(), two.min())))
    assert margin == pytest.approx(min(by_hand), rel=1e-9) and margin > 0
    promised = category_conditions(L, inside, margin)
    assert promised.condition_holds
    lowest = np.linalg.eigh(L)[1][:, :2]
    assert separation_margin(lowest, y) >= promised.margin > 0


def test_a_category_of_one_class():
    """Its first eigenvector is the root of the degrees, on one side of the origin."""
    within = np.ones((3, 3)) - np.eye(3)
    _, inside = category_objectives(within, np.zeros((3, 3)), [0, 0, 0], mu=1.0)
    assert category_margin(inside, [0, 0, 0], [0, 0, 0]) == pytest.approx(2 / np.sqrt(3))
    assert category_margin(inside, [0, 0, 1], [0, 0, 0]) == 0  # not two classes


def test_report_counts_balls_and_errs_linearly(rng):
    y = np.repeat(["left", "right"], 150)
    X = np.where(y == "left", 0.0, 10.0)[:, None] + 0.05 * rng.random((300, 2))
    model = LabelEncoding(extension=RBF(sigma=5.0, ridge=1.0)).fit(X, y)
    new, truth = np.array([[0.02, 0.03], [10.01, 10.04], [9.9, 10.0]]), np.array(["left", "right", "left"])
    report = generalization_report(model, X, y, new, truth)
    Y = model.transform(X)
    assert (
        report.linear_test_error == linear_classifier(Y, y).error(model.transform(new), truth) == pytest.approx(1 / 3)
    )
    balls = covering_number(X, y, report.covering.epsilon / 2)
    assert report.covering.balls == balls.max() == 1  # tight clusters: one ball covers each
    assert report.covering.bound.probability == pytest.approx(1 - 1 / 300)
    asked = covering_bound(
        report.linear_margin, report.lipschitz.tight,
        covering_number=1, n_class=150, epsilon=report.covering.epsilon * (1 - 1e-9),
    )  # fmt: skip
    assert asked.condition_holds and report.covering.epsilon == report.linear_margin / (2 * report.lipschitz.tight)
    assert str(report.covering) in str(report) and "error of the linear classifier (4) there" in str(report)


def test_report_counts_too_many_balls(rng):
    """Rows far from each other: every ball holds one, and nothing is promised although classes are separable."""
    X, y = rng.standard_normal((40, 30)), np.arange(40) % 2
    report = generalization_report(LabelEncoding(extension="rbf").fit(X, y), X, y, X[:3], y[:3])
    assert report.linear_margin > 0 and not report.covering.bound.condition_holds
    assert "balls for 20 rows" in str(report.covering) and report.conclusion.startswith("All bounds are vacuous")
    mixed = generalization_report(LaplacianEigenmaps(1, extension="rbf").fit(X), X, y, X[:3], y[:3])
    assert mixed.linear_margin == 0 and mixed.linear_test_error is None
    assert str(mixed.covering) == "condition not met: as the margin is 0"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: covering_number([[0.0], [1.0]], [0, 1], 0.0), "radius must be a positive"),
        (lambda: inverse_growth([[0.0], [1.0]], kind="guess"), "kind must be 'measured' or 'bound'. Got 'guess'"),
        (lambda: inverse_growth([[0.0], [0.0], [1.0]]), "X must hold different rows"),
        (lambda: inverse_growth([[0.0], [1.0]], kind="bound", n=2), "n must be the number of columns of X, 1"),
        (lambda: linear_classifier([[0.0], [1.0], [2.0]], [0, 1, 0]), "Got none between 0 and 1"),
        (lambda: linear_classifier([[0.0], [1.0]], [0, 1]).predict([[0.0, 1.0]]), "Y must have 1 columns. Got 2"),
        (lambda: linear_classifier([[0.0], [1.0]], [0, 1]).error([[0.0]], [0, 1]), "y must hold one label per row"),
        (lambda: category_objectives(np.eye(3), np.eye(2), [0, 0, 1], 1.0), "W_between must have the shape of"),
        (lambda: category_margin(np.ones((2, 2)), [0, 1], [0, 1]), "no entries between categories"),
        (lambda: category_margin(np.eye(2), [0, 0], [0, 1]), "categories must hold whole classes"),
        (lambda: category_margin(np.eye(2), [0, 1], [0, 0], 3), "n_components must be an integer from 1 to 2"),
    ],
)  # fmt: skip
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
