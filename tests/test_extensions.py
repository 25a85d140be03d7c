"""The maps alone: oracles for any embedding Y, far-away points, bits, and bad input."""

from __future__ import annotations

import pickle

import numpy as np
import oracles
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

from manifast.extensions import LandmarkIsomap, Nystrom, Reconstruction, SparseCode

ALL = [
    Nystrom(),
    Nystrom(n_neighbors=7),
    Nystrom(n_neighbors=7, weights="binary"),
    Reconstruction(),
    LandmarkIsomap(n_neighbors=6),
    SparseCode(),
    SparseCode(errors=False, lam=0.01, power=2, normalize=False),
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
    model = Nystrom(n_neighbors=k, beta=beta).fit(X, Y)
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
        Nystrom(weights="binary").fit(X, np.column_stack([np.ones(40), mixed]))


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
    for scale in (1e3, 1e8, 1e120):
        assert np.isfinite(model.predict(scale * np.ones((2, 4)))).all()


@pytest.mark.parametrize("model", ALL, ids=str)
def test_float32(model, data):
    X, Y, new = (part.astype(np.float32) for part in data)
    out = clone(model).fit(X, Y).predict(new)
    assert out.dtype == np.float32
    wide = clone(model).fit(X.astype(float), Y.astype(float)).predict(new.astype(float))
    np.testing.assert_allclose(out, wide, atol=2e-3 * np.abs(wide).max())


@pytest.mark.parametrize("model", [Nystrom(n_neighbors=7), LandmarkIsomap(n_neighbors=6)], ids=str)
def test_sparse_rows(model, data):
    X, Y, new = data
    dense = clone(model).fit(X, Y).predict(new)
    sparse = clone(model).fit(sp.csr_matrix(X), Y).predict(sp.csr_matrix(new))
    np.testing.assert_allclose(sparse, dense, rtol=1e-9)


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
