"""Bounds on the cost of a kernel's width, and the factors that serve again, against plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from manifast import _threads
from manifast._linalg import interpolation

WIDTHS = [0.3, 0.5, 0.8, 1.2, 2.0, 3.0]


@pytest.fixture(params=[False, True], ids=["distinct", "copies"])
def problem(request, rng):
    """Rows, the embedding Y'Y = I, and the cost of a width by an explicit pseudo-inverse."""
    X = rng.standard_normal((40, 3))
    if request.param:
        X = X[np.r_[0:40, 0:10, 5]]
    Y = np.linalg.qr(rng.standard_normal((len(X), 4)))[0]
    if request.param:  # copies have one image
        for i, j in [*zip(range(40, 50), range(10), strict=True), (50, 5)]:
            Y[i] = Y[j]
    squares = np.square(X[:, None] - X).sum(axis=2)

    def cost(sigma, mu2=0.3, mu3=2.0):
        coef = np.linalg.pinv(np.exp(-squares / sigma**2), rcond=1e-13, hermitian=True) @ Y
        return mu2 * np.square(coef).sum() + mu3 / sigma**2

    return X, Y, cost


def test_bounds_are_below_the_cost_and_reach_it(problem, rng):
    X, Y, cost = problem
    interpolator = interpolation.Interpolator(X)
    distinct = len(interpolator.roots)
    for width in WIDTHS:
        step = interpolation.Step(np.zeros(Y.shape[1]), np.empty(Y.shape), Y, {})
        step.keep(width, interpolator.coefficients(width, Y))
        assert_allclose(step.cost(0.3, 2.0, width), cost(width), rtol=1e-8)
        assert_allclose(step.first(2).cost(0.3, 0.0, width), 0.3 * step.energies[width][:2].sum())
        own = interpolator.direction(width, Y)
        for directions in (rng.standard_normal((distinct, 6)), Y[interpolator.unique], np.ones((distinct, 3))):
            assert interpolator.cost_bound(0.3, 2.0, width, Y, directions) <= cost(width)
            both = interpolator.cost_bound(0.3, 2.0, width, Y, np.hstack([directions, own]))
            assert 0.998 * cost(width) <= both <= cost(width)
        for other in WIDTHS:
            assert interpolator.cost_bound(0.3, 2.0, width, Y, interpolator.direction(other, Y)) <= cost(width)


def test_directions_of_another_embedding_bound_the_cost_as_well(problem, rng):
    X, Y, cost = problem
    interpolator = interpolation.Interpolator(X)
    other = Y[:, ::-1] + 0.1 * rng.standard_normal((len(X), 1))[interpolator.groups]
    for width in WIDTHS:
        assert interpolator.known_bound(0.3, 2.0, width, Y) == 2.0 / width**2  # nothing is known yet
        interpolator.direction(width, other)
        assert 2.0 / width**2 < interpolator.known_bound(0.3, 2.0, width, Y) <= cost(width)
        interpolator.direction(width, Y)
        assert 0.998 * cost(width) <= interpolator.known_bound(0.3, 2.0, width, Y) <= cost(width)


@pytest.mark.parametrize("copies", [False, True])
def test_eigenvectors_give_their_direction_without_a_factor(copies, rng):
    X = rng.standard_normal((40, 3))
    X = X[np.r_[0:40, 0:10, 5]] if copies else X
    A = rng.standard_normal((len(X), len(X)))
    interpolator = interpolation.Interpolator(X)
    problem = interpolation.SmoothProblem(interpolator, A + A.T, floor=None, drop_constant=False)
    step = problem.embed(0.3, 0.8, 4, problem.start)
    expected = interpolator.direction(0.8, step.Y, step.coef)
    assert_allclose(problem.direction(0.3, step.values, step.Y), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_best_width_is_that_of_trying_all(problem, monkeypatch, threads):
    X, Y, cost = problem
    monkeypatch.setattr(_threads, "available_threads", lambda: threads)
    monkeypatch.setattr(interpolation, "available_threads", lambda: threads)
    grid = np.geomspace(0.3, 3.0, 25)
    for sigma in (0.3, 0.7, 1.5):
        for mu3 in (0.1, 1.0, 10.0, 100.0):
            interpolator = interpolation.Interpolator(X)
            coef = interpolator.coefficients(sigma, Y)
            for _ in range(2):  # the second time some factors are at hand, and the memory of others is used again
                step = interpolation.Step(np.zeros(Y.shape[1]), coef, Y, {})
                width, found = interpolation.best_width(interpolator, 0.3, mu3, step, sigma, grid)
                again = interpolation.best_width(interpolator, 0.3, mu3, step, sigma, grid)  # costs are at hand
                assert again == (width, found)
                costs = [cost(s, mu3=mu3) for s in (sigma, *grid)]
                assert width == (sigma, *grid)[int(np.argmin(costs))]
                assert_allclose(found, min(costs), rtol=1e-8)


def test_embeddings_of_a_width_serve_again(rng):
    """Fewer columns are the first ones of more, and no weight of the width changes them."""
    from manifast._labels import Labels
    from manifast._rows import Rows
    from manifast.objectives import Supervised

    X, y = rng.standard_normal((60, 3)), np.arange(60) % 4
    rows, labels = Rows(X, 0), Labels(np.arange(4), y)
    objective = Supervised().build(rows, labels, 3)
    problem = interpolation.Interpolator(X).problem(objective)
    more = problem.embed(0.3, 1.0, 5, problem.start)
    fewer = problem.embed(0.3, 1.0, 3, problem.start)
    assert np.shares_memory(fewer.coef, more.coef)
    alone = interpolation.Interpolator(X).problem(objective).embed(0.3, 1.0, 3, problem.start)
    assert_allclose(fewer.values, alone.values, rtol=1e-9)
    for ours, theirs in ((fewer.Y, alone.Y), (fewer.coef, alone.coef)):
        signs = np.sign(np.sum(ours * theirs, axis=0))
        assert_allclose(ours * signs, theirs, atol=1e-7 * np.abs(theirs).max())
    assert problem.embed(0.3, 1.1, 3, problem.start).values[0] != fewer.values[0]
