"""The maps alone: oracles for any embedding Y, far-away points, bits, and bad input."""

from __future__ import annotations

import json
import pickle
import tracemalloc
import warnings

import numpy as np
import oracles
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from threadpoolctl import threadpool_limits

from manifast.extensions import (
    RBF,
    KernelRidge,
    LandmarkIsomap,
    LatentVariable,
    Linear,
    Nystrom,
    Reconstruction,
    SparseCode,
)
from manifast.kernels import l1_code
from manifast.maps import NeighborMean, restore

ALL = [
    Nystrom(),
    Nystrom(formula="laplacian"),
    Nystrom(n_neighbors=7),
    Nystrom(n_neighbors=7, weights="binary"),
    Nystrom(n_neighbors=7, formula="kernel"),
    Reconstruction(),
    LandmarkIsomap(n_neighbors=6),
    SparseCode(),
    SparseCode(errors=False, lam=0.01, power=2, normalize=False),
    SparseCode(projection=3, top=4),
    SparseCode(dictionary_size=20),
    SparseCode(dictionary_size=20, dictionary_method="nearest"),
    SparseCode(basis="identity", weights=np.square),
    LatentVariable(),
    Linear(),
    KernelRidge(),
    KernelRidge(kernel="poly", fit_intercept=False),
    KernelRidge(kernel="linear"),
    RBF(),
    RBF(sigma="loo", ridge=[1e-8, 1e-3]),
]


@pytest.fixture
def data(rng):
    """Rows, any embedding of them, and new rows."""
    X = rng.standard_normal((70, 4))
    return X, np.column_stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]]), rng.standard_normal((12, 4))


@pytest.mark.parametrize("k", [None, 9])
@pytest.mark.parametrize("beta", ["mean", 3.0])
def test_nystrom(data, k, beta):
    X, Y, new = data
    width = oracles.mean_sq_distance(X) if beta == "mean" else beta
    W = np.exp(-oracles.sq_dist(X) / width) * (1 - np.eye(70)) if k is None else oracles.heat_graph(X, k, width)
    D = np.diag(W.sum(axis=1))
    quotients = np.diag(Y.T @ (D - W) @ Y) / np.diag(Y.T @ D @ Y)
    model = Nystrom(n_neighbors=k, beta=beta, formula="laplacian").fit(X, Y)
    np.testing.assert_allclose(model.eigenvalues_, quotients, rtol=1e-10)
    expected = [oracles.nystrom(x, X, Y, quotients, k or 70, width) for x in np.vstack([new, X])]
    np.testing.assert_allclose(model.predict(np.vstack([new, X])), expected, rtol=1e-9, atol=1e-12)


def test_nystrom_refuses_eigenvalues_near_one(rng):
    X = rng.standard_normal((40, 2))
    Y = rng.choice([-1.0, 1.0], (40, 1))
    W = np.ones((40, 40)) - np.eye(40)
    D = W.sum(axis=1)
    # A column whose Rayleigh quotient is 1 exactly: y'Wy = 0.
    Y = np.linalg.eigh(W)[1]
    mixed = np.sqrt(1 / 40) * Y[:, -1] + np.sqrt(39 / 40) * Y[:, 0]
    assert mixed @ W @ mixed / (mixed @ (D * mixed)) == pytest.approx(0, abs=1e-12)
    with pytest.raises(ValueError, match=r"columns \[1\], whose eigenvalues are within 1e-3 of 1"):
        Nystrom(weights="binary", formula="laplacian").fit(X, np.column_stack([np.ones(40), mixed]))
    # The kernel has its diagonal, and a value there; not for a column that all-equal weights cancel.
    assert Nystrom(weights="binary").fit(X, mixed).eigenvalues_ == pytest.approx([1 / 40])
    with pytest.raises(ValueError, match=r"columns \[1\], whose eigenvalues with the kernel are within 1e-06 of 0"):
        Nystrom(weights="binary").fit(X, np.column_stack([np.ones(40), Y[:, 0]]))


@pytest.mark.parametrize("k", [None, 9])
def test_nystrom_of_the_kernel(data, k):
    """NSSE, sec. 2.3: λ^-1 Σ K(x, x_i) y_i with the kernel, its diagonal included, divided by the degree of x."""
    X, Y, new = data
    width = oracles.mean_sq_distance(X)
    K = np.exp(-oracles.sq_dist(X) / width) if k is None else oracles.heat_graph(X, k, width) + np.eye(70)
    degrees = K.sum(axis=1)
    quotients = np.diag(Y.T @ K @ Y) / np.diag(Y.T @ (degrees[:, None] * Y))
    model = Nystrom(n_neighbors=k, formula="auto" if k is None else "kernel").fit(X, Y)
    np.testing.assert_allclose(model.eigenvalues_, quotients, rtol=1e-10)
    rows = np.vstack([new, X])
    weights = np.exp(-oracles.sq_dist(rows, X) / width)
    if k is not None:
        weights[np.argsort(np.argsort(-weights, axis=1), axis=1) >= k] = 0
    expected = weights @ Y / weights.sum(axis=1)[:, None] / quotients
    np.testing.assert_allclose(model.predict(rows), expected, rtol=1e-9, atol=1e-12)


def test_nystrom_of_the_kernel_is_exact_for_its_eigenvectors(data):
    X, _, new = data
    K = np.exp(-oracles.sq_dist(X) / oracles.mean_sq_distance(X))
    degrees = K.sum(axis=1)
    normalised = K / np.sqrt(np.outer(degrees, degrees))
    values, vectors = np.linalg.eigh(normalised)
    V, values = vectors[:, -4:-1], values[-4:-1]
    Z = V / np.sqrt(degrees)[:, None]
    model = Nystrom().fit(X, Z)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-10)
    np.testing.assert_allclose(model.predict(X), Z, atol=1e-12)
    # The same as the formula of the paper for the eigenvectors of the symmetric kernel.
    k = np.exp(-oracles.sq_dist(new, X) / oracles.mean_sq_distance(X))
    d = k.sum(axis=1)
    paper = (k / np.sqrt(np.outer(d, degrees))) @ V / values
    np.testing.assert_allclose(model.predict(new) * np.sqrt(d)[:, None], paper, atol=1e-12)


@pytest.mark.parametrize("k", [None, 9])
def test_nystrom_keeps_a_column_of_zeros(data, k):
    X, Y, new = data
    both = Nystrom(n_neighbors=k).fit(X, np.column_stack([Y[:, 0], np.zeros(70)]))
    assert both.eigenvalues_[1] == (1 if k is None else 0)
    out = both.predict(np.vstack([new, X]))
    np.testing.assert_array_equal(out[:, 1], 0)
    alone = Nystrom(n_neighbors=k).fit(X, Y[:, :1]).predict(np.vstack([new, X]))
    np.testing.assert_allclose(out[:, :1], alone, rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_nystrom_for_embeddings_of_any_size(data, scale):
    X, Y, new = data
    expected = Nystrom().fit(X, Y)
    model = Nystrom().fit(X, scale * Y)
    np.testing.assert_allclose(model.eigenvalues_, expected.eigenvalues_, rtol=1e-10)
    np.testing.assert_allclose(model.predict(new), scale * expected.predict(new), rtol=1e-9)


@pytest.mark.parametrize("k", [None, 9])
def test_nystrom_refuses_what_has_no_weights(data, k):
    X, Y, _ = data
    with pytest.raises(ValueError, match=r"beta must be so large .* Got 1e-30, at which columns \[0, 1\]"):
        Nystrom(n_neighbors=k, beta=1e-30).fit(X, Y)
    with pytest.raises(ValueError, match="X must have at least 2 rows for the Nyström map"):
        Nystrom(n_neighbors=k).fit(X[:1], Y[:1])


def test_reconstruction(data):
    X, Y, new = data
    model = Reconstruction(n_neighbors=6, reg=1e-2).fit(X, Y)
    near = oracles.neighbors(X, 6, new)
    expected = [oracles.barycenter(x, X[N], 1e-2) @ Y[N] for x, N in zip(new, near, strict=True)]
    np.testing.assert_allclose(model.predict(new), expected, rtol=1e-9, atol=1e-12)


def test_landmark_isomap(data):
    X, Y, new = data
    model = LandmarkIsomap(n_neighbors=8).fit(X, Y)
    G = oracles.geodesics(X, 8)
    expected = [oracles.landmark_isomap(x, X, G, Y, 8) for x in new]
    np.testing.assert_allclose(model.predict(new), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("power", [1, 2])
def test_sparse_code(data, power):
    X, Y, new = data
    model = SparseCode(power=power).fit(X, Y)
    codes = model.codes(new)
    assert codes.shape == (12, 70)
    weights = np.abs(codes.toarray()) ** power
    np.testing.assert_allclose(model.predict(new), weights @ Y / weights.sum(axis=1)[:, None], rtol=1e-10)
    # A training row is coded by itself alone, and gets its own coordinates.
    np.testing.assert_allclose(model.predict(X), Y, atol=1e-8)


def test_an_empty_code_falls_back_to_the_nearest_row(data):
    X, Y, _ = data
    model = SparseCode(lam=100.0).fit(X, Y)
    new = 2 * X[[5, 40]] + 1e-3
    assert model.codes(new).nnz == 0
    np.testing.assert_array_equal(model.predict(new), Y[[5, 40]])
    assert np.isfinite(model.predict(np.zeros((1, 4)))).all()


def test_latent_variable(data):
    X, Y, new = data
    model = LatentVariable(n_neighbors=5, beta=0.7).fit(X, Y)
    squares = oracles.sq_dist(new, X)
    for x, expected in zip(squares, model.predict(new), strict=True):
        near = np.argsort(x)[:5]
        weights = np.exp(-x[near] / 0.7)
        np.testing.assert_allclose(weights @ Y[near] / weights.sum(), expected, rtol=1e-9)
    # Far away every weight underflows, but for the nearest.
    far = 1e4 * np.ones((1, 4))
    np.testing.assert_allclose(model.predict(far), Y[np.argmin(oracles.sq_dist(far, X))][None], rtol=1e-6)


@pytest.mark.parametrize("alpha", [None, 0, 0.5])
@pytest.mark.parametrize("intercept", [True, False])
def test_linear(data, alpha, intercept):
    X, Y, new = data
    model = Linear(alpha=alpha, fit_intercept=intercept).fit(X, Y)
    mean, target = (X.mean(axis=0), Y.mean(axis=0)) if intercept else (np.zeros(4), np.zeros(2))
    S = (X - mean).T @ (X - mean)
    ridge = 1e-3 * np.trace(S) / 4 if alpha is None else alpha
    coef = np.linalg.solve(S + ridge * np.eye(4), (X - mean).T @ (Y - target))
    np.testing.assert_allclose(model.predict(new), (new - mean) @ coef + target, rtol=1e-9, atol=1e-12)
    assert model.lipschitz_ == pytest.approx(np.linalg.svd(coef)[1][0], rel=1e-9)


def test_linear_does_not_explode_where_rows_and_features_are_as_many(rng):
    X, Y = rng.standard_normal((51, 50)), rng.standard_normal((51, 3))
    assert np.abs(Linear().fit(X, Y).predict(rng.standard_normal((20, 50)))).max() < 20
    assert np.isfinite(Linear(alpha=0).fit(np.hstack([X, X]), Y).predict(np.ones((1, 100)))).all()


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "precomputed"])
def test_kernel_ridge(data, kernel, intercept):
    X, Y, new = data
    functions = {
        "rbf": lambda A: oracles.gaussian(A, X, 1.5),
        "linear": lambda A: A @ X.T,
        "poly": lambda A: (A @ X.T + 0.5) ** 2,
        "precomputed": lambda A: A @ X.T,
    }
    K, K_new = functions[kernel](X), functions[kernel](new)
    given = (K, K_new) if kernel == "precomputed" else (X, new)
    model = KernelRidge(kernel, alpha=0.2, sigma=1.5, fit_intercept=intercept, degree=2, coef0=0.5).fit(given[0], Y)
    expected = oracles.lgrm_map(K_new, K, Y, 0.2) if intercept else K_new @ np.linalg.solve(K + 0.2 * np.eye(70), Y)
    np.testing.assert_allclose(model.predict(given[1]), expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("sigma", ["median", 0.9])
@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_rbf(data, sigma, ridge):
    X, Y, new = data
    model = RBF(sigma=sigma, scale=0.7, ridge=ridge).fit(X, Y)
    width = sigma
    if sigma == "median":
        width = 0.7 * np.median(np.sqrt(oracles.sq_dist(X)[np.triu_indices(70, 1)]))
    assert model.sigma_ == pytest.approx(width, rel=1e-12)
    coef = np.linalg.solve(oracles.gaussian(X, X, width) + ridge * np.eye(70), Y)
    np.testing.assert_allclose(model.predict(new), oracles.gaussian(new, X, width) @ coef, rtol=1e-8, atol=1e-9)
    if ridge == 0:
        np.testing.assert_allclose(model.predict(X), Y, atol=1e-9)
    sums = np.abs(coef).sum(axis=0)
    slope = np.sqrt(2) * np.exp(-0.5) / width
    expected = (np.sqrt(70) * np.linalg.norm(coef) * slope, np.linalg.norm(sums) * slope)
    assert model.lipschitz_ == pytest.approx(expected, rel=1e-6)


def test_rbf_lipschitz_constants_hold(data, rng):
    X, Y, _ = data
    model = RBF(sigma=1.0).fit(X, Y)
    A = rng.standard_normal((300, 4))
    B = A + 1e-3 * rng.standard_normal((300, 4))
    slopes = np.linalg.norm(model.predict(A) - model.predict(B), axis=1) / np.linalg.norm(A - B, axis=1)
    assert slopes.max() <= model.lipschitz_[1] <= model.lipschitz_[0]


@pytest.mark.parametrize("ridge", [0.0, [0.0, 1e-6, 1e-2]])
def test_rbf_leave_one_out(data, ridge):
    """The choice equals that of refits without each row in turn."""
    X, Y, _ = data
    grid = [0.2, 0.5, 1.0, 2.0]
    model = RBF(sigma="loo", sigma_grid=grid, ridge=ridge).fit(X, Y)
    median = np.median(np.sqrt(oracles.sq_dist(X)[np.triu_indices(70, 1)]))
    errors = {}
    for scale in grid:
        K = oracles.gaussian(X, X, scale * median)
        for r in np.atleast_1d(ridge):
            left = []
            for i in range(70):
                others = np.arange(70) != i
                coef = np.linalg.solve(K[np.ix_(others, others)] + r * np.eye(69), Y[others])
                left.append(K[i, others] @ coef - Y[i])
            errors[scale * median, r] = np.linalg.norm(left) / np.linalg.norm(Y - Y.mean(axis=0))
    sigma, best = min(errors, key=errors.get)
    assert (model.sigma_, model.ridge_) == (pytest.approx(sigma), best)
    assert model.loo_error_ == pytest.approx(errors[sigma, best], rel=1e-6)


def test_rbf_with_repeated_rows(data):
    X, Y, new = data
    twice = RBF(sigma=0.9).fit(np.vstack([X, X[:30]]), np.vstack([Y, Y[:30]]))
    once = RBF(sigma=0.9).fit(X, Y)
    np.testing.assert_allclose(twice.predict(new), once.predict(new), rtol=1e-9)
    np.testing.assert_allclose(twice.coef_[:30], twice.coef_[70:])
    # Rows that repeat with different embeddings get the mean.
    torn = RBF(sigma=0.9).fit(np.vstack([X, X[:1]]), np.vstack([Y, Y[:1] + 1]))
    np.testing.assert_allclose(torn.predict(X[:1]), Y[:1] + 0.5, atol=1e-9)


@pytest.mark.parametrize("ridge", [0.5, [0.5] * 6])  # few by Cholesky, more by an eigendecomposition
def test_ridge_with_repeated_rows(data, ridge):
    """The map of the whole system, copies and all, and errors of rows left out with their copies."""
    X, Y, new = data
    kinds = np.concatenate([np.arange(70), np.arange(30), [3, 3, 3]])
    X, Y = X[kinds], Y[kinds]
    Y[70:] += 0.3
    K = oracles.gaussian(X, X, 0.9) + 0.5 * np.eye(103)
    model = RBF(sigma=0.9, ridge=ridge).fit(X, Y)
    expected = oracles.gaussian(new, X, 0.9) @ np.linalg.solve(K, Y)
    np.testing.assert_allclose(model.predict(new), expected, rtol=1e-9, atol=1e-12)
    if np.ndim(ridge):
        mean, left = np.empty((70, 2)), np.empty((70, 2))
        for kind in range(70):
            others = kinds != kind
            mean[kind] = Y[~others].mean(axis=0)
            left[kind] = K[kind, others] @ np.linalg.solve(K[np.ix_(others, others)], Y[others])
        error = np.linalg.norm(left - mean) / np.linalg.norm(mean - mean.mean(axis=0))
        assert model.loo_error_ == pytest.approx(error, rel=1e-9)


def test_rbf_takes_the_smallest_width_where_all_are_singular():
    X = np.linspace(0, 1, 500)[:, None]
    with pytest.warns(UserWarning, match=r"singular at every sigma: the smallest, .* Use a smaller sigma") as said:
        model = RBF(sigma="loo").fit(X, np.sin(3 * X))
    assert said[0].filename == __file__
    assert model.sigma_ == pytest.approx(0.3 * np.median(np.sqrt(oracles.sq_dist(X)[np.triu_indices(500, 1)])))
    np.testing.assert_allclose(model.predict(X), np.sin(3 * X), atol=1e-6)
    assert model.loo_error_ < 1e-6


def test_rbf_says_when_it_cannot_interpolate(rng):
    X = np.linspace(0, 1, 200)[:, None]
    with pytest.warns(UserWarning, match=r"nearly singular at sigma = 10 .* reproduced only to"):
        model = RBF(sigma=10.0).fit(X, rng.standard_normal((200, 2)))
    assert np.isfinite(model.predict(X)).all()


def test_sparse_code_options(data):
    X, Y, new = data
    codes = SparseCode().fit(X, Y).codes(new).toarray()
    kept = SparseCode(top=2).fit(X, Y).codes(new).toarray()
    for full, few in zip(codes, kept, strict=True):
        assert np.count_nonzero(few) == min(2, np.count_nonzero(full))
        np.testing.assert_array_equal(few[few != 0], full[few != 0])
        assert np.abs(few[few != 0]).min() >= np.sort(np.abs(full))[-2]
    near = SparseCode(dictionary_size=8, dictionary_method="nearest").fit(X, Y).codes(new)
    unit = X / np.linalg.norm(X, axis=1)[:, None]
    unit_new = new / np.linalg.norm(new, axis=1)[:, None]
    allowed = oracles.neighbors(unit, 8, unit_new)
    for i in range(len(new)):
        assert set(near[[i]].indices) <= set(allowed[i])
    means = SparseCode(dictionary_size=12).fit(X, Y)
    assert 0 < len(means.X_) <= 12
    assert means.codes(new).shape == (12, 70)
    # All axes, turned: orthonormal projections keep the codes of a plain dictionary.
    turned = SparseCode(projection=4, errors=False, lam=0.05).fit(X, Y).codes(new).toarray()
    plain = SparseCode(errors=False, lam=0.05).fit(X, Y).codes(new).toarray()
    np.testing.assert_allclose(turned, plain, atol=1e-7)


def test_sparse_code_shows_progress(data, capsys):
    X, Y, new = data
    SparseCode(verbose=True).fit(X, Y).predict(new)
    assert "sparse codes" in capsys.readouterr().err


def test_sparse_code_in_another_basis(data, rng):
    """The dictionary with the basis appended; the axes themselves are the errors of every feature."""
    X, Y, new = data
    unit, unit_new = (part / np.linalg.norm(part, axis=1)[:, None] for part in (X, new))
    basis = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    model = SparseCode(basis=3 * basis).fit(X, Y)
    expected = l1_code(unit_new, np.vstack([unit, basis]), errors=False)[0].toarray()[:, :70]
    np.testing.assert_allclose(model.codes(new).toarray(), expected, atol=1e-9)
    weights = np.abs(expected)
    np.testing.assert_allclose(model.predict(new), weights @ Y / weights.sum(axis=1)[:, None], rtol=1e-7)
    plain = SparseCode().fit(X, Y).codes(new).toarray()
    np.testing.assert_array_equal(SparseCode(basis="identity").fit(X, Y).codes(new).toarray(), plain)
    np.testing.assert_allclose(SparseCode(basis=np.eye(4)).fit(X, Y).codes(new).toarray(), plain, atol=1e-9)
    near = SparseCode(basis=basis, dictionary_size=70, dictionary_method="nearest").fit(X, Y)
    np.testing.assert_allclose(near.codes(new).toarray(), expected, atol=1e-9)
    for wrong, message in (
        ({"basis": "haar"}, "basis must be None, 'identity' or a matrix"),
        ({"basis": np.eye(3)}, "basis must have 4 columns"),
        ({"basis": np.eye(4), "errors": False}, "basis must be None with errors=False"),
        ({"weights": "heat"}, "weights must be None, 'power' or a function"),
    ):
        with pytest.raises(ValueError, match=message):
            SparseCode(**wrong).fit(X, Y)


def test_sparse_code_with_own_weights(data):
    X, Y, new = data
    positive = SparseCode(weights=lambda a: np.maximum(a, 0)).fit(X, Y)
    weights = np.maximum(positive.codes(new).toarray(), 0)
    filled = weights.sum(axis=1) > 0
    expected = weights[filled] @ Y / weights[filled].sum(axis=1)[:, None]
    np.testing.assert_allclose(positive.predict(new)[filled], expected, rtol=1e-10)
    squares = SparseCode(weights=np.square).fit(X, Y).predict(new)
    np.testing.assert_allclose(squares, SparseCode(power=2, weights="power").fit(X, Y).predict(new), rtol=1e-12)
    for wrong in (lambda a: -np.abs(a), lambda a: a[:-1], lambda a: np.full_like(a, np.nan)):
        with pytest.raises(ValueError, match="weights must return one finite number of at least 0"):
            SparseCode(weights=wrong).fit(X, Y).predict(new)


@pytest.mark.parametrize("options", [{}, {"verbose": True}, {"dictionary_size": 9, "dictionary_method": "nearest"}])
def test_codes_of_no_rows_and_before_fit(data, options):
    X, Y, new = data
    with pytest.raises(NotFittedError, match="this SparseCode is not fitted"):
        SparseCode(**options).codes(new)
    none = SparseCode(**options).fit(X, Y).codes(new[:0])
    assert (none.shape, none.dtype) == ((0, 70), np.float64)


def test_sparse_code_copies_no_whole_embedding(rng):
    X, Y = rng.standard_normal((300, 4)), rng.standard_normal((300, 4000))
    model = SparseCode().fit(X, Y)
    model.predict(X[:1] + 0.1)
    tracemalloc.start()
    model.predict(X[:1] + 0.1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < Y.nbytes / 4


@pytest.mark.parametrize("model", ALL, ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_maps_restored_from_header_and_arrays(model, dtype, data):
    X, Y, new = (part.astype(dtype) for part in data)
    fitted = clone(model).fit(X, Y).map_
    if getattr(fitted, "weights", None) is not None:
        with pytest.raises(ValueError, match="weights must be None in a map that is written to a file"):
            fitted.header()
        return
    header = json.loads(json.dumps(fitted.header()))
    again = restore(header, {name: array.copy() for name, array in fitted.arrays().items()})
    assert type(again) is type(fitted)
    np.testing.assert_array_equal(again.predict(new), fitted.predict(new))


@pytest.mark.parametrize("model", [LatentVariable(), LandmarkIsomap(n_neighbors=6)], ids=str)
def test_maps_of_sparse_rows_restored(model, data):
    X, Y, new = data
    fitted = clone(model).fit(sp.csr_array(X), Y).map_
    again = restore(json.loads(json.dumps(fitted.header())), fitted.arrays())
    np.testing.assert_array_equal(again.predict(sp.csr_array(new)), fitted.predict(sp.csr_array(new)))
    with pytest.raises(ValueError, match="header must name a map"):
        restore({"map": "none"}, {})


def test_a_neighbor_mean_with_weights_of_rows(data, rng):
    X, Y, new = data
    weights = rng.uniform(0.5, 2, 70)
    heat = np.exp(-oracles.sq_dist(new, X) / 0.7) * weights
    expected = heat @ Y / heat.sum(axis=1)[:, None] * [2, 3]
    made = NeighborMean(X, Y, None, 0.7, factors=np.array([2.0, 3.0]), weights=weights)
    np.testing.assert_allclose(made.predict(new), expected, rtol=1e-9)
    again = restore(made.header(), made.arrays())
    np.testing.assert_array_equal(again.predict(new), made.predict(new))


def test_weighted_means_of_neighbors_in_any_batch(rng):
    """Few rows gather the images they need, many take them all: the same bits."""
    X, Y, weights = rng.standard_normal((60, 4)), rng.standard_normal((60, 2)), rng.uniform(1, 2, 60)
    made = NeighborMean(X, Y, 5, 0.7, weights=weights)
    new = rng.standard_normal((40, 4))
    whole = made.predict(new)
    distances = np.linalg.norm(new[:, None] - X, axis=2)
    near = np.argsort(distances, axis=1)[:, :5]
    kernel = np.exp(-np.square(np.take_along_axis(distances, near, axis=1)) / 0.7) * weights[near]
    expected = np.einsum("ij,ijk->ik", kernel, Y[near]) / kernel.sum(axis=1)[:, None]
    np.testing.assert_allclose(whole, expected, rtol=1e-10)
    for size in (1, 11, 12, 13):
        np.testing.assert_array_equal(made.predict(new[:size]), whole[:size])


@pytest.mark.parametrize("model", ALL, ids=str)
def test_the_result_has_the_dtype_of_the_new_rows(model, data):
    X, Y, new = data
    wide = clone(model).fit(X, Y)
    assert wide.predict(new.astype(np.float32)).dtype == np.float32
    assert clone(model).fit(X.astype(np.float32), Y.astype(np.float32)).predict(new).dtype == np.float64


def test_theory_and_extensions_import_no_circle(run_python):
    run_python("import sys, manifast.extensions; assert 'manifast.theory' not in sys.modules")


@pytest.mark.parametrize("model", ALL, ids=str)
def test_what_is_pickled(model, rng):
    """Rows, embedding or coefficients, geodesics where they are the map, and little else."""
    X, Y = rng.standard_normal((400, 30)), rng.uniform(1, 2, (400, 5))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = clone(model).fit(X, Y)
    needed = 400 * 35 * 8
    if isinstance(model, LandmarkIsomap):
        needed += 400 * 400 * 8
    elif isinstance(model, Linear):
        needed = 30 * 5 * 8
    assert len(pickle.dumps(model)) < 1.05 * needed + 12_000


@pytest.mark.parametrize("model", ALL, ids=str)
def test_memory_mapped_and_read_only_arrays(model, data, tmp_path):
    joblib = pytest.importorskip("joblib")
    X, Y, new = data
    model = clone(model).fit(X, Y)
    joblib.dump((model, new), tmp_path / "model")
    loaded, mapped = joblib.load(tmp_path / "model", mmap_mode="r")
    np.testing.assert_array_equal(loaded.predict(mapped), model.predict(new))


@pytest.mark.parametrize("model", ALL, ids=str)
def test_same_bits_in_any_batch(model):
    X, new = load_digits().data[:200], load_digits().data[200:260]
    Y = np.column_stack([X.mean(axis=1), X[:, 20] - X[:, 40]])
    model = clone(model).fit(X, Y)
    whole = model.predict(new)
    with threadpool_limits(1):
        np.testing.assert_array_equal(model.predict(new), whole)
    for rows in (slice(0, 1), slice(17, 18), slice(10, 45)):
        np.testing.assert_array_equal(model.predict(new[rows]), whole[rows])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(new), whole)
    before = pickle.dumps(model)
    model.predict(new)
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("model", ALL, ids=str)
def test_far_away_points_get_finite_values(model, data):
    X, Y, _ = data
    model = clone(model).fit(X, Y)
    for scale in (1e3, 1e8, 1e100):
        assert np.isfinite(model.predict(scale * np.ones((2, 4)))).all()


@pytest.mark.parametrize("model", ALL, ids=str)
def test_float32(model, data):
    X, Y, new = (part.astype(np.float32) for part in data)
    out = clone(model).fit(X, Y).predict(new)
    assert out.dtype == np.float32
    wide = clone(model).fit(X.astype(float), Y.astype(float)).predict(new.astype(float))
    if not isinstance(model, SparseCode):  # codes jump, and so do centres of clusters
        np.testing.assert_allclose(out, wide, atol=1e-3 * np.abs(wide).max())


@pytest.mark.parametrize("model", [Nystrom(n_neighbors=7), LandmarkIsomap(n_neighbors=6)], ids=str)
def test_sparse_rows(model, data):
    X, Y, new = data
    dense = clone(model).fit(X, Y).predict(new)
    sparse = clone(model).fit(sp.csr_matrix(X), Y).predict(sp.csr_matrix(new))
    np.testing.assert_allclose(sparse, dense, rtol=1e-9)


@pytest.mark.parametrize("model", ALL, ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_no_rows(model, data, dtype):
    X, Y, new = (part.astype(dtype) for part in data)
    with pytest.raises(ValueError, match=r"X must have at least 1 row\(s\)"):
        clone(model).fit(X[:0], Y[:0])
    model = clone(model).fit(X, Y)
    none = model.predict(new[:0])
    assert (none.shape, none.dtype) == ((0, 2), model.predict(new).dtype)
    if model._sparse and model.n_neighbors is not None:
        assert model.predict(sp.csr_matrix(new[:0])).shape == (0, 2)


@pytest.mark.parametrize(
    ("model", "wrong"),
    [
        (RBF(sigma="loo", ridge=[1e-8, 1e-3]), {"sigma": 0.5, "ridge": -1.0}),
        (SparseCode(), {"lam": 0.5, "projection": 99}),
        (Reconstruction(), {"n_neighbors": 3, "reg": 0.0}),
        (LatentVariable(), {"n_neighbors": 7, "beta": -1.0}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_fit_that_fails_changes_nothing(model, wrong, data):
    X, Y, _ = data
    model = clone(model).fit(X, Y)
    learned = {name: value for name, value in vars(model).items() if name not in model.get_params()}
    with pytest.raises(ValueError, match="must be"):
        model.set_params(**wrong).fit(X[:, :3], 2 * Y)
    after = {name: value for name, value in vars(model).items() if name not in model.get_params()}
    assert after.keys() == learned.keys()
    assert all(after[name] is learned[name] for name in learned)


def test_a_fit_that_fails_late_changes_nothing(data, monkeypatch):
    X, Y, new = data
    model = RBF().fit(X, Y)
    before = model.predict(new)

    def fail(*_):
        raise MemoryError

    monkeypatch.setattr("manifast.extensions.gaussian.interpolate", fail)
    with pytest.raises(MemoryError):
        model.set_params(sigma=9.0).fit(X, Y)
    np.testing.assert_array_equal(model.predict(new), before)


def test_a_fit_forgets_the_one_before(data):
    X, Y, _ = data
    model = RBF(sigma="loo", ridge=1e-3).fit(X, Y)
    assert model.loo_error_ > 0
    assert vars(model.set_params(sigma=0.9).fit(X, Y)).keys() == vars(RBF(sigma=0.9).fit(X, Y)).keys()


def test_bad_input(data):
    X, Y, new = data
    with pytest.raises(ValueError, match="Y must have one row per row of X, 70"):
        Reconstruction().fit(X, Y[:-1])
    with pytest.raises(ValueError, match="X must be finite"):
        Reconstruction().fit(np.full((3, 2), np.nan), np.ones(3))
    with pytest.raises(ValueError, match="this Reconstruction is not fitted"):
        Reconstruction().predict(new)
    with pytest.raises(ValueError, match="X must have 4 columns"):
        Reconstruction().fit(X, Y).predict(new[:, :3])
    with pytest.raises(ValueError, match="n_neighbors must be an integer of at least 1"):
        Nystrom(n_neighbors=0).fit(X, Y)
    with pytest.raises(ValueError, match="beta must be"):
        Nystrom(beta=-2.0).fit(X, Y)
    with pytest.raises(ValueError, match="weights must be 'heat' or 'binary'"):
        Nystrom(weights="distance").fit(X, Y)
    with pytest.raises(ValueError, match="reg must be a positive"):
        Reconstruction(reg=0).fit(X, Y)
    with pytest.raises(ValueError, match="power must be a positive"):
        SparseCode(power=0).fit(X, Y)
    with pytest.raises(ValueError, match="sigma must be 'median', 'loo' or a positive number"):
        RBF(sigma="wide").fit(X, Y)
    with pytest.raises(ValueError, match="ridge must be"):
        RBF(ridge=[0.1, -1]).fit(X, Y)
    with pytest.raises(ValueError, match="alpha must be a positive"):
        KernelRidge(alpha=0).fit(X, Y)
    with pytest.raises(ValueError, match="X must be a square"):
        KernelRidge("precomputed").fit(X, Y)
    with pytest.raises(ValueError, match="dictionary_size must be an integer from 1 to 70"):
        SparseCode(dictionary_size=71).fit(X, Y)
    with pytest.raises(ValueError, match="dictionary_method must be"):
        SparseCode(dictionary_method="best").fit(X, Y)


@pytest.mark.parametrize(
    ("model", "name"),
    [(RBF(sigma=-1.0), "sigma"), (KernelRidge("nonsense"), "kernel"), (Reconstruction(n_neighbors=0), "n_neighbors")],
    ids=["RBF", "KernelRidge", "Reconstruction"],
)
def test_what_is_wrong_with_a_parameter_is_said_of_huge_rows_too(model, name):
    X = np.random.default_rng(0).standard_normal((20, 3))
    for rows in (X, 1e200 * X):
        with pytest.raises(ValueError, match=f"^{name} must"):
            model.fit(rows, X)
