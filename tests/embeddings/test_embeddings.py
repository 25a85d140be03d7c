"""The unsupervised embeddings: oracles, scikit-learn, LGRM's identities, quality on new points, and odd inputs."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import oracles
import pytest
import scipy.linalg as la
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits, make_s_curve, make_swiss_roll
from sklearn.linear_model import LinearRegression
from sklearn.manifold import Isomap as SkIsomap
from sklearn.manifold import LocallyLinearEmbedding as SkLLE
from sklearn.manifold import SpectralEmbedding
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import manifast
from manifast import (
    LGRM,
    LPP,
    LTSA,
    Isomap,
    LaplacianEigenmaps,
    LocallyLinearEmbedding,
    LocalRegressionEmbedding,
    SpectralRegression,
    spectral,
)
from manifast._local import alignment_matrix
from manifast.extensions import Nystrom, Reconstruction
from manifast.smoothers.ridge import low_rank_factor

ALL = [
    LaplacianEigenmaps(),
    LaplacianEigenmaps(affinity="binary"),
    LaplacianEigenmaps(affinity="full"),
    LocallyLinearEmbedding(),
    LTSA(),
    LocalRegressionEmbedding(),
    Isomap(),
    Isomap(n_landmarks=40),
    LPP(),
    LPP(kernel="rbf", alpha=1e-3),
    SpectralRegression(),
    SpectralRegression(kernel="rbf"),
    LGRM(),
    LGRM(kernel="linear"),
    LGRM(kernel="poly", gamma=1e-2),
    LGRM(local="le"),
    LGRM(local="lle"),
    LGRM(local="ltsa"),
]
names = [str(e).replace("LocalRegressionEmbedding", "LocalRegression") for e in ALL]


def swiss_roll(n, seed=0):
    """Points and their true coordinates: arc length and height."""
    X, t = make_swiss_roll(n, random_state=seed)
    return X, np.column_stack([0.5 * (t * np.sqrt(1 + t * t) + np.arcsinh(t)), X[:, 1]])


def datasets():
    return {
        "swiss roll": make_swiss_roll(600, random_state=1)[0],
        "s-curve": make_s_curve(600, random_state=1)[0],
        # Integers tie; which of two neighbours at the same distance counts is nobody's definition.
        "digits": load_digits().data[:600] + 0.01 * np.random.default_rng(0).standard_normal((600, 64)),
    }


@pytest.fixture(scope="module", params=["swiss roll", "s-curve", "digits"])
def X(request):
    return datasets()[request.param]


# Oracles


@pytest.mark.parametrize("affinity", ["heat", "binary", "full", "l1"])
def test_laplacian_eigenmaps_oracle(rng, affinity):
    X = rng.standard_normal((70, 3)) * [3, 2, 1]
    model = LaplacianEigenmaps(3, n_neighbors=9, affinity=affinity).fit(X)
    beta = oracles.mean_sq_distance(X)
    if affinity == "full":
        W = np.exp(-oracles.sq_dist(X) / beta) * (1 - np.eye(70))
    elif affinity == "l1":
        W = model.affinity_matrix_.toarray()  # graphs.l1_graph has its own oracle
    else:
        W = oracles.heat_graph(X, 9, "local" if affinity == "heat" else np.inf)
    found = model.affinity_matrix_
    np.testing.assert_allclose(found.toarray() if sp.issparse(found) else found, W, atol=1e-12)
    values, Z = oracles.laplacian_eigenmaps(W, 3)
    np.testing.assert_allclose(model.eigenvalues_, values, atol=1e-10)
    oracles.same_columns(model.embedding_, Z, 1e-7)
    np.testing.assert_allclose(model.embedding_.T @ (W.sum(axis=1)[:, None] * model.embedding_), np.eye(3), atol=1e-9)


def test_nystrom_oracle(rng):
    X, new = rng.standard_normal((80, 4)), rng.standard_normal((15, 4))
    model = LaplacianEigenmaps(2, n_neighbors=7, beta="mean").fit(X)
    beta = oracles.mean_sq_distance(X)
    expected = [oracles.nystrom(x, X, model.embedding_, model.eigenvalues_, 7, beta) for x in new]
    np.testing.assert_allclose(model.transform(new), expected, rtol=1e-9, atol=1e-12)
    again = [oracles.nystrom(x, X, model.embedding_, model.eigenvalues_, 7, beta) for x in X]
    np.testing.assert_allclose(model.transform(X), again, rtol=1e-9, atol=1e-12)


def test_nystrom_with_local_widths(rng):
    X, new = rng.standard_normal((80, 4)), rng.standard_normal((15, 4))
    model = LaplacianEigenmaps(2, n_neighbors=7).fit(X)
    widths = oracles.local_widths(oracles.sq_dist(X))

    def mapped(x, left_out=None):
        squares = ((x - X) ** 2).sum(axis=1)
        if left_out is not None:
            squares[left_out] = np.inf
        near = np.argsort(squares)[: 7 if left_out is None else 6]  # the row itself is one of seven
        own = 0.25 * np.sort(squares)[:5].mean()
        w = np.exp(-squares[near] / np.sqrt(own * widths[near]))
        return w @ model.embedding_[near] / w.sum() / (1 - model.eigenvalues_)

    np.testing.assert_allclose(model.transform(new), [mapped(x) for x in new], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.transform(X), [mapped(x, i) for i, x in enumerate(X)], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.extension_.beta_, widths, rtol=1e-12)


@pytest.mark.parametrize("affinity", ["full", "precomputed"])
def test_nystrom_is_exact_for_the_training_rows_of_a_full_graph(rng, affinity):
    X = rng.standard_normal((60, 3))
    if affinity == "precomputed":
        X = np.exp(-oracles.sq_dist(X)) * (1 - np.eye(60))
    extension = Nystrom(formula="laplacian") if affinity == "full" else None
    model = LaplacianEigenmaps(2, affinity=affinity, extension=extension).fit(X)
    np.testing.assert_allclose(model.transform(X), model.embedding_, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_map_of_a_full_graph_counts_the_diagonal(rng, dtype):
    """z(x) = Σ k(x, x_i) z_i / (d(x) λ), λ = z'Kz / z'Dz of the kernel with k(x, x) = 1."""
    X, new = rng.standard_normal((60, 3)).astype(dtype), rng.standard_normal((9, 3)).astype(dtype)
    model = LaplacianEigenmaps(3, affinity="full").fit(X)
    Z, beta = model.embedding_.astype(np.float64), oracles.mean_sq_distance(X)
    K, k = np.exp(-oracles.sq_dist(X) / beta), np.exp(-oracles.sq_dist(new, X) / beta)
    values = np.diag(Z.T @ K @ Z) / (K.sum(axis=1) @ Z**2)
    expected = k @ Z / k.sum(axis=1)[:, None] / values
    tolerance = 1e-10 if dtype == np.float64 else 1e-5
    np.testing.assert_allclose(model.transform(new), expected, atol=tolerance * np.abs(expected).max())
    same = Nystrom().fit(X, model.embedding_)
    np.testing.assert_allclose(same.eigenvalues_, values, rtol=10 * tolerance)
    np.testing.assert_allclose(same.predict(new), expected, atol=tolerance * np.abs(expected).max())


def test_map_of_a_full_graph_of_many_dimensions():
    """Eigenvalues near 1 made new rows mere noise by the formula of the Laplacian."""
    X, y = load_digits(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(X))[:500]
    train, test = rows[:150], rows[150:]
    model = LaplacianEigenmaps(40, affinity="full").fit(X[train])
    nearest = KNeighborsClassifier(1).fit(model.embedding_, y[train])
    assert nearest.score(model.transform(X[test]), y[test]) > 0.8


def test_lle_oracle(rng):
    X, new = rng.standard_normal((90, 3)), rng.standard_normal((10, 3))
    model = LocallyLinearEmbedding(2, n_neighbors=8, reg=1e-2).fit(X)
    values, Y = oracles.smallest(oracles.lle_matrix(X, oracles.neighbors(X, 8), 1e-2), 2)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-8)
    oracles.same_columns(model.embedding_, Y, 1e-7)
    near = oracles.neighbors(X, 8, new)
    expected = [oracles.barycenter(x, X[N], 1e-2) @ model.embedding_[N] for x, N in zip(new, near, strict=True)]
    np.testing.assert_allclose(model.transform(new), expected, rtol=1e-8, atol=1e-11)


def test_ltsa_oracle(rng):
    X = make_swiss_roll(150, random_state=3)[0]
    model = LTSA(2, n_neighbors=9).fit(X)
    values, Y = oracles.smallest(oracles.alignment_matrix(X, oracles.neighbors(X, 9), 2, 0.0), 2)
    np.testing.assert_allclose(model.eigenvalues_, values, atol=1e-11)
    assert oracles.largest_angle(model.embedding_, Y) < 1e-6


@pytest.mark.parametrize(("gamma_local", "local_dim"), [(None, None), (0.3, None), (0.3, 3)])
def test_local_regression_oracle(gamma_local, local_dim):
    X = make_swiss_roll(150, random_state=3)[0]
    model = LocalRegressionEmbedding(2, n_neighbors=9, gamma_local=gamma_local, local_dim=local_dim).fit(X)
    cliques = np.column_stack([np.arange(150), oracles.neighbors(X, 8)])
    L = oracles.alignment_matrix(X, cliques, local_dim or 2, gamma_local or 0.0)
    values, Y = oracles.smallest(L, 2)
    np.testing.assert_allclose(model.eigenvalues_, values, atol=1e-11)
    assert oracles.largest_angle(model.embedding_, Y) < 1e-6


def test_isomap_oracle():
    X = make_swiss_roll(150, random_state=3)[0]
    new = make_swiss_roll(12, random_state=4)[0]
    model = Isomap(2, n_neighbors=9).fit(X)
    values, Y = oracles.isomap(X, 9, 2)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-10)
    oracles.same_columns(model.embedding_, Y, 1e-9)
    G = oracles.geodesics(X, 9)
    expected = [oracles.landmark_isomap(x, X, G, model.embedding_, 9) for x in new]
    np.testing.assert_allclose(model.transform(new), expected, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(model.transform(X), model.embedding_, atol=1e-8)


def test_landmark_isomap_oracle():
    X = make_swiss_roll(200, random_state=3)[0]
    model = Isomap(2, n_neighbors=9, n_landmarks=30).fit(X)
    marks = model.landmarks_
    assert len(np.unique(marks)) == 30
    G = oracles.geodesics(X, 9)
    squares = G[np.ix_(marks, marks)] ** 2
    H = np.eye(30) - 1 / 30
    values, vectors = np.linalg.eigh(-0.5 * H @ squares @ H)
    values, Y = values[::-1][:2], vectors[:, ::-1][:, :2] * np.sqrt(values[::-1][:2])
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-9)
    placed = -0.5 * (G[:, marks] ** 2 - squares.mean(axis=0)) @ (Y / values)
    oracles.same_columns(model.embedding_, placed, 1e-8)
    np.testing.assert_allclose(model.transform(X), model.embedding_, atol=1e-8)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "precomputed"])
def test_lgrm_oracle(rng, kernel):
    X, new = make_s_curve(120, random_state=0)[0], make_s_curve(20, random_state=1)[0]
    if kernel == "rbf":
        K, K_new = oracles.gaussian(X, X, 2.0), oracles.gaussian(new, X, 2.0)
    elif kernel == "poly":
        K, K_new = (X @ X.T + 1) ** 3, (new @ X.T + 1) ** 3
    else:
        K, K_new = X @ X.T, new @ X.T
    fit, query = (K, K_new) if kernel == "precomputed" else (X, new)
    model = LGRM(2, n_neighbors=8, mu=0.5, gamma=0.1, gamma_local=0.01, kernel=kernel, sigma=2.0).fit(fit)
    cliques = np.column_stack([np.arange(120), oracles.neighbors(X, 7)])
    values, Y, dual, intercept = oracles.lgrm(X, cliques, 2, 0.5, 0.1, 0.01, 2, K)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-7, atol=1e-10)
    oracles.same_columns(model.embedding_, Y, 1e-6)
    # Equation (22), from our own embedding.
    expected = oracles.lgrm_map(K_new, K, model.embedding_, 0.1)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(model.transform(query), expected, atol=1e-10 * max(scale, 1))
    signs = np.sign(np.sum(model.embedding_ * Y, axis=0))
    np.testing.assert_allclose(model.dual_coef_ * signs, dual, atol=1e-5 * np.abs(dual).max())
    np.testing.assert_allclose(model.intercept_ * signs, intercept, atol=1e-5)


@pytest.mark.parametrize("sigma", [20.0, 2.0])
def test_lgrm_with_a_kernel_of_low_rank(sigma):
    """A wide kernel takes the way of low rank, a narrow one the dense way; both give the dense oracle's map."""
    X, new = make_swiss_roll(1200, random_state=0)[0], make_swiss_roll(50, random_state=1)[0]
    K = manifast.kernels.gaussian(X, sigma=sigma)
    assert (low_rank_factor(K.copy(), 1e-4) is None) == (sigma == 2.0)
    model = LGRM(n_neighbors=10, sigma=sigma).fit(X)
    H = np.eye(1200) - 1 / 1200
    L_g = 1e-4 * H @ np.linalg.inv(H @ K @ H + 1e-4 * np.eye(1200)) @ H
    cliques = np.column_stack([np.arange(1200), manifast.kernels.knn(X, 9)[1]])
    A = alignment_matrix(X, cliques, dim=2).toarray() + 1e-3 * L_g
    values, Y = oracles.smallest(A, 2)
    np.testing.assert_allclose(model.eigenvalues_, values, atol=1e-10)
    oracles.same_columns(model.embedding_, Y, 1e-5)
    K_new = manifast.kernels.gaussian(new, X, sigma=sigma)
    expected = oracles.lgrm_map(K_new, K, model.embedding_, 1e-4)
    np.testing.assert_allclose(model.transform(new), expected, atol=1e-8 * np.abs(expected).max())


def test_lgrm_with_a_matrix_of_the_users_own():
    X = make_s_curve(150, random_state=0)[0]
    cliques = np.column_stack([np.arange(150), oracles.neighbors(X, 7)])
    L = oracles.alignment_matrix(X, cliques, 2, 0.0)
    expected = LGRM(n_neighbors=8).fit(X)
    for local in (L, sp.csr_array(L)):
        model = LGRM(n_neighbors=8, local=local).fit(X)
        oracles.same_columns(model.embedding_, expected.embedding_, 1e-6)
    with pytest.raises(ValueError, match="local must be a matrix of shape"):
        LGRM(local=np.eye(3)).fit(X)
    with pytest.raises(ValueError, match="rows sum to zero"):
        LGRM(local=np.eye(150)).fit(X)
    with pytest.raises(ValueError, match="symmetric"):
        LGRM(local=np.triu(np.ones((150, 150)))).fit(X)


def test_lpp_oracle(rng):
    X = rng.standard_normal((90, 5)) * [5, 4, 3, 2, 1]
    model = LPP(3, n_neighbors=8).fit(X)
    W = oracles.heat_graph(X, 8, "local")
    values, vectors = oracles.lpp(X, W, 3)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-9)
    oracles.same_columns(model.components_.T, vectors, 1e-8)
    np.testing.assert_allclose(model.transform(X), X @ model.components_.T, atol=1e-12)


def test_lpp_leaves_the_constant_out_where_the_features_hold_it(rng):
    X = rng.dirichlet(np.ones(5), 90)  # rows sum to one
    model = LPP(2, n_neighbors=8).fit(X)
    degrees = model_degrees = oracles.heat_graph(X, 8, "local").sum(axis=1)
    assert np.abs(degrees @ model.embedding_).max() < 1e-8 * model_degrees.sum()
    assert model.eigenvalues_[0] > 1e-3


@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_ridge_of_lpp(rng, kernel):
    """The largest of F'WF against F'DF + ridge, with alpha I or, for a kernel, alpha K as the ridge."""
    X = rng.standard_normal((60, 4))
    model = LPP(2, n_neighbors=8, kernel=kernel, sigma=1.0, alpha=0.7).fit(X)
    W = oracles.heat_graph(X, 8, "local")
    F = X if kernel is None else oracles.gaussian(X, X, 1.0)
    ridge = 0.7 * (np.eye(4) if kernel is None else F)
    values, V = la.eigh(F.T @ W @ F, F.T @ np.diag(W.sum(axis=1)) @ F + ridge)
    first = 1 if kernel == "rbf" else 0  # the constant
    order = slice(-1 - first, -3 - first, -1)
    if kernel is None:
        np.testing.assert_allclose(model.eigenvalues_, 1 - values[order], rtol=1e-9)
        oracles.same_columns(model.embedding_, F @ V[:, order], 1e-8)
    else:
        assert model.eigenvalues_[0] >= 1 - values[-1]


def test_kernel_lpp_oracle(rng):
    """KLK against KDK in the range of K, here with a kernel of full rank and good condition."""
    X = rng.standard_normal((60, 4))
    model = LPP(2, n_neighbors=8, kernel="rbf", sigma=0.8).fit(X)
    K = oracles.gaussian(X, X, 0.8)
    W = oracles.heat_graph(X, 8, "local")
    D = np.diag(W.sum(axis=1))
    values, V = la.eigh(K @ (D - W) @ K, K @ D @ K)
    np.testing.assert_allclose(model.eigenvalues_, values[1:3], rtol=1e-7)  # the first is the constant
    oracles.same_columns(model.embedding_, K @ V[:, 1:3], 1e-6)


@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_spectral_regression_oracle(rng, kernel):
    X, new = rng.standard_normal((80, 4)), rng.standard_normal((9, 4))
    model = SpectralRegression(2, n_neighbors=8, alpha=0.3, kernel=kernel, sigma=2.0).fit(X)
    _, Y = oracles.laplacian_eigenmaps(oracles.heat_graph(X, 8, "local"), 2)
    if kernel is None:
        coef, intercept = oracles.ridge(X, Y, 0.3)
        expected = new @ coef + intercept
    else:
        expected = oracles.lgrm_map(oracles.gaussian(new, X, 2.0), oracles.gaussian(X, X, 2.0), Y, 0.3)
    oracles.same_columns(model.transform(new), expected, 1e-7)
    np.testing.assert_array_equal(model.transform(X), model.embedding_)


# scikit-learn's versions of the same methods


def test_like_scikit_learn_spectral_embedding(X):
    model = LaplacianEigenmaps(3, n_neighbors=12).fit(X)
    W = model.affinity_matrix_
    theirs = SpectralEmbedding(3, affinity="precomputed", eigen_solver="arpack", random_state=0)
    theirs = theirs.fit_transform(sp.csr_matrix(W))
    roots = np.sqrt(W.sum(axis=1))[:, None]
    assert oracles.largest_angle(roots * model.embedding_, roots * theirs) < 1e-5
    oracles.same_columns(model.embedding_, theirs, 1e-5)


@pytest.mark.parametrize("method", ["standard", "ltsa"])
def test_like_scikit_learn_lle(X, method):
    ours = (LocallyLinearEmbedding if method == "standard" else LTSA)(2, n_neighbors=12).fit(X)
    theirs = SkLLE(n_components=2, n_neighbors=12, method=method, eigen_solver="dense").fit(X)
    assert ours.eigenvalues_.sum() == pytest.approx(theirs.reconstruction_error_, rel=1e-6, abs=1e-10)
    assert oracles.largest_angle(ours.embedding_, theirs.embedding_) < 1e-5
    new = X[:50] + 0.01
    signs = np.sign(np.sum(ours.embedding_ * theirs.embedding_, axis=0))
    np.testing.assert_allclose(ours.transform(new) * signs, theirs.transform(new), atol=1e-5)


def test_like_scikit_learn_isomap(X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = Isomap(3, n_neighbors=8).fit(X)
        theirs = SkIsomap(n_components=3, n_neighbors=8, eigen_solver="dense").fit(X)
    oracles.same_columns(ours.embedding_, theirs.embedding_, 1e-7)
    new = X[:50] + 0.01
    oracles.same_columns(ours.transform(new), theirs.transform(new), 1e-7)


# LGRM's identities


def centred_le(n=150):
    X = make_s_curve(n, random_state=0)[0]
    X = X - X.mean(axis=0)
    W = oracles.heat_graph(X, 9, oracles.mean_sq_distance(X))
    return X, np.diag(W.sum(axis=1)) - W


def degrees_between(A, B):
    return np.degrees(oracles.largest_angle(A, B))


def test_alignment_of_ltsa_is_local_regression_without_ridge():
    X = make_swiss_roll(300, random_state=2)[0]
    plain = LGRM(n_neighbors=9, local="ltsa").fit(X)
    for gamma_local in (None, 0.0, 1e-12):
        ridge = LGRM(n_neighbors=9, gamma_local=gamma_local).fit(X)
        oracles.same_columns(ridge.embedding_, plain.embedding_, 1e-5)


def test_proposition_1_linear_lpp():
    """μ → ∞, μγ → 0 with a linear kernel: Y = XW with the smallest of X'LX against X'X."""
    X, L = centred_le()
    model = LGRM(n_neighbors=9, local="le", beta="mean", kernel="linear", mu=1e7, gamma=1e-12).fit(X)
    _, W = la.eigh(X.T @ L @ X, X.T @ X)
    assert degrees_between(model.embedding_, X @ W[:, :2]) < 1e-3


def test_proposition_2_kernel_lpp():
    """The same with a kernel: KLK against KK, for a kernel whose range is not everything."""
    X, L = centred_le()
    model = LGRM(n_neighbors=9, local="le", beta="mean", kernel="poly", degree=2, mu=1e7, gamma=1e-12).fit(X)
    K = (X @ X.T + 1) ** 2
    H = np.eye(len(X)) - 1 / len(X)
    basis = la.orth(H @ K @ H, rcond=1e-10)
    _, C = np.linalg.eigh(basis.T @ L @ basis)
    assert degrees_between(model.embedding_, basis @ C[:, :2]) < 1e-3


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_propositions_3_and_4_spectral_regression(kernel):
    """μ → 0: the embedding is that of L alone with B = I, and the map its ridge regression."""
    X, L = centred_le()
    model = LGRM(n_neighbors=9, local="le", beta="mean", kernel=kernel, sigma=2.0, mu=1e-12, gamma=0.1).fit(X)
    _, Y = oracles.smallest(L, 2)
    assert degrees_between(model.embedding_, Y) < 1e-3
    K = X @ X.T if kernel == "linear" else oracles.gaussian(X, X, 2.0)
    oracles.same_columns(model.transform(X), oracles.lgrm_map(K, K, Y, 0.1), 1e-5)


# What the papers promise


def r2(model, X, truth, new, new_truth):
    """Of a linear map from the embedding to the true coordinates, fitted on the training rows."""
    fitted = LinearRegression().fit(model.embedding_, truth)
    return fitted.score(model.transform(new), new_truth)


@pytest.mark.parametrize(
    ("model", "bar"),
    [(LGRM(n_neighbors=8, sigma=10.0), 0.999), (LTSA(n_neighbors=8), 0.999), (Isomap(n_neighbors=8), 0.98)],
)
def test_swiss_roll_unrolls_for_new_points(model, bar):
    X, truth = swiss_roll(1000, 0)
    new, new_truth = swiss_roll(1000, 1)
    assert r2(clone(model).fit(X), X, truth, new, new_truth) >= bar


@pytest.mark.parametrize("k", range(6, 13))
def test_lgrm_does_not_collapse(k):
    X, truth = swiss_roll(1000, 0)
    new, new_truth = swiss_roll(300, 1)
    assert r2(LGRM(n_neighbors=k).fit(X), X, truth, new, new_truth) >= 0.9


def test_landmarks_are_nearly_as_good_as_all():
    X, truth = swiss_roll(1500, 0)
    new, new_truth = swiss_roll(500, 1)
    exact, marks = (r2(Isomap(n_landmarks=m).fit(X), X, truth, new, new_truth) for m in (None, 150))
    assert marks > exact - 0.01


# Same answer always


@pytest.mark.parametrize("model", ALL, ids=names)
def test_same_transform_in_any_batch_and_with_any_threads(model):
    X, new = load_digits().data[:300], load_digits().data[300:420]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = clone(model).set_params(n_components=3).fit(X)
    whole = model.transform(new)
    with threadpool_limits(1):
        np.testing.assert_array_equal(model.transform(new), whole)
    np.testing.assert_array_equal(model.transform(np.asfortranarray(new)), whole)
    np.testing.assert_array_equal(model.transform(new[::-1])[::-1], whole)
    for rows in (slice(0, 1), slice(5, 12), slice(60, 120)):
        np.testing.assert_array_equal(model.transform(new[rows]), whole[rows])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).transform(new), whole)


@pytest.mark.parametrize("model", ALL, ids=names)
def test_fits_agree_across_threads(model):
    X = make_swiss_roll(500, random_state=0)[0]
    many = clone(model).fit(X).embedding_
    with threadpool_limits(1):
        one = clone(model).fit(X).embedding_
        np.testing.assert_array_equal(clone(model).fit(X).embedding_, one)
    assert oracles.largest_angle(one, many) < 1e-6
    np.testing.assert_allclose(one, many, atol=1e-6 * np.abs(one).max())


@pytest.mark.parametrize("model", ALL, ids=names)
def test_float32_stays_float32(model):
    X = make_s_curve(400, random_state=0)[0]
    wide = clone(model).fit(X)
    narrow = clone(model).fit(X.astype(np.float32))
    assert narrow.embedding_.dtype == narrow.transform(X[:5].astype(np.float32)).dtype == np.float32
    assert oracles.largest_angle(narrow.embedding_.astype(float), wide.embedding_) < 0.02
    new = make_s_curve(30, random_state=1)[0]
    signs = np.sign(np.sum(narrow.embedding_ * wide.embedding_, axis=0))
    mapped, expected = narrow.transform(new.astype(np.float32)) * signs, wide.transform(new)
    np.testing.assert_allclose(mapped, expected, atol=0.05 * np.abs(wide.embedding_).max())


@pytest.mark.parametrize("model", ALL, ids=names)
def test_transform_of_training_rows_is_near_the_embedding(model):
    X = make_s_curve(500, random_state=0)[0]
    model = clone(model).fit(X)
    error = np.linalg.norm(model.transform(X) - model.embedding_) / np.linalg.norm(model.embedding_)
    if model._interpolates:
        assert error < 1e-8
    elif isinstance(model, LGRM) and model.kernel != "rbf":
        assert error < 1  # a plane or a cubic cannot follow every local Laplacian
    else:
        assert error < 0.15


# Inputs that are odd but right


def test_duplicated_points():
    X = np.repeat(make_swiss_roll(150, random_state=0)[0], 2, axis=0)
    for model in (LaplacianEigenmaps(), LocallyLinearEmbedding(), LTSA(), LocalRegressionEmbedding(), Isomap(), LGRM()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            model.set_params(n_neighbors=12).fit(X)
        assert np.isfinite(model.embedding_).all()
        assert np.isfinite(model.transform(X)).all()
    isomap = Isomap(n_neighbors=12).fit(X)
    np.testing.assert_allclose(isomap.embedding_[::2], isomap.embedding_[1::2], atol=1e-9)


def test_all_points_equal():
    X = np.ones((20, 3))
    for model in (LocallyLinearEmbedding(), Isomap(), LGRM()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            model.set_params(n_neighbors=5).fit(X)
        assert np.isfinite(model.embedding_).all()
        assert np.isfinite(model.transform(X)).all()


def test_constant_features_change_nothing():
    X = make_swiss_roll(300, random_state=0)[0]
    wide = np.column_stack([X, np.full(300, 7.0)])
    for model in (LaplacianEigenmaps(), LocallyLinearEmbedding(), LTSA(), Isomap(), LGRM()):
        with_constant, without = clone(model).fit(wide), clone(model).fit(X)
        oracles.same_columns(with_constant.embedding_, without.embedding_, 1e-6)


@pytest.mark.parametrize("scale", [1e-200, 1e-100, 1e-6, 1e6, 1e100, 1e200])
def test_scale_of_the_data(scale):
    X, new = make_s_curve(300, random_state=0)[0], make_s_curve(20, random_state=1)[0]
    for model in (LaplacianEigenmaps(), LocallyLinearEmbedding(), LTSA(), LGRM(), SpectralRegression(kernel="rbf")):
        scaled, plain = clone(model).fit(X * scale), clone(model).fit(X)
        oracles.same_columns(scaled.embedding_, plain.embedding_, 1e-5)
        np.testing.assert_allclose(scaled.transform(new * scale), plain.transform(new), atol=1e-5)
    scaled, plain = LaplacianEigenmaps(beta=2.0 * scale * scale if 1e-150 < scale < 1e150 else "mean"), Isomap()
    assert np.isfinite(scaled.fit(X * scale).transform(new * scale)).all()
    scaled = clone(plain).fit(X * scale)
    oracles.same_columns(scaled.embedding_ / scale, plain.fit(X).embedding_, 1e-9)
    np.testing.assert_allclose(scaled.transform(new * scale) / scale, plain.transform(new), atol=1e-9)


@pytest.mark.parametrize("model", [m for m in ALL if getattr(m, "kernel", "") != "poly"], ids=str)
def test_far_away_rows_get_finite_values(model):
    X = make_s_curve(300, random_state=0)[0]
    for dtype, scales in ((np.float64, (1e8, 1e100, 1e300)), (np.float32, (1e8, 1e30))):
        fitted = clone(model).fit(X.astype(dtype))
        for scale in scales:
            with np.errstate(all="ignore"):
                assert not np.isnan(fitted.transform(np.full((2, 3), scale, dtype))).any()


def test_lgrm_maps_linearly_with_an_offset():
    """Equation (22) does not lose digits to an offset that all rows share."""
    X, new = make_swiss_roll(300, random_state=0)[0], make_swiss_roll(30, random_state=1)[0]
    plain = LGRM(n_neighbors=10, kernel="linear").fit(X)
    mean = X.mean(axis=0)  # which (22) is free of, but for rounding
    expected = oracles.lgrm_map((new - mean) @ (X - mean).T, (X - mean) @ (X - mean).T, plain.embedding_, 1e-4)
    np.testing.assert_allclose(plain.transform(new), expected, atol=1e-7)
    moved = LGRM(n_neighbors=10, kernel="linear").fit(X + 1000)
    np.testing.assert_allclose(moved.transform(new + 1000), plain.transform(new), atol=1e-7)


@pytest.mark.parametrize("kernel", ["poly", "polynomial"])
def test_polynomial_kernel_on_wide_ranges(kernel):
    X = load_digits().data[:500]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = LGRM(kernel=kernel).fit(X)
    assert np.isfinite(model.transform(X)).all()


def test_rows_on_a_line_have_one_dimension():
    X = np.arange(30.0)[:, None] * [1.0, 2.0]
    with pytest.warns(UserWarning, match="only 1 of 2 dimensions"):
        model = Isomap(2, n_neighbors=3).fit(X)
    np.testing.assert_allclose(model.transform(X + 0.1)[:, 1], 0.0, atol=1e-9)
    np.testing.assert_array_equal(model.embedding_[:, 1], 0.0)


def test_a_row_in_nobodys_neighbourhood():
    X, truth = swiss_roll(3000, 38)
    listed = np.bincount(manifast.kernels.knn(X, 8)[1].ravel(), minlength=3000)
    assert (listed == 0).any()
    with pytest.warns(UserWarning, match=r"has \d+ of 3000 rows that no other row has as a neighbour, joined by"):
        model = LTSA(n_neighbors=8).fit(X)
    assert np.abs(model.embedding_).max() < 0.5
    assert LinearRegression().fit(model.embedding_, truth).score(model.embedding_, truth) > 0.99


def test_constant_rows_with_a_kernel_of_no_rank():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for model, n in ((LGRM(), 1200), (LGRM(kernel="linear"), 500), (Isomap(), 500)):
            assert np.isfinite(model.fit(np.ones((n, 3))).transform(np.ones((2, 3)))).all()


def test_a_fit_that_fails_leaves_nothing(rng):
    X = rng.standard_normal((60, 3))
    model = LaplacianEigenmaps(extension=Reconstruction(reg=-1))
    with pytest.raises(ValueError, match="reg must be"):
        model.fit(X)
    assert not [name for name in vars(model) if name.endswith("_") or name.startswith("_")]
    model = LaplacianEigenmaps().fit(X)
    before = model.transform(X)
    with pytest.raises(ValueError, match="n_neighbors must be"):
        model.fit(X[:4, :2])
    np.testing.assert_array_equal(model.transform(X), before)


def test_a_number_of_neighbours_is_needed(rng):
    """None was ten neighbours in the graph and all rows in the map for new ones."""
    X = rng.standard_normal((60, 3))
    for model in (LaplacianEigenmaps(n_neighbors=None), LPP(n_neighbors=None)):
        with pytest.raises(ValueError, match="n_neighbors must be an integer"):
            model.fit(X)


@pytest.mark.parametrize("model", [SpectralRegression(alpha=0.5), LPP(alpha=0.5), LPP()], ids=str)
def test_more_features_than_rows(model, rng):
    X = np.hstack([rng.standard_normal((50, 20)), np.zeros((50, 60))]) @ np.linalg.qr(rng.standard_normal((80, 80)))[0]
    small = np.hstack([X @ np.linalg.svd(X)[2][:20].T])
    wide, narrow = clone(model).fit(X), clone(model).fit(small)
    oracles.same_columns(wide.embedding_, narrow.embedding_, 1e-7)
    for inside in (sp.csr_matrix(X),):
        oracles.same_columns(clone(model).fit(inside).embedding_, narrow.embedding_, 1e-7)


def test_float32_takes_the_same_way(rng, monkeypatch):
    """The Laplacian of a float32 graph is still recognised as one, whatever its factorisation would cost."""
    chosen = []
    right = spectral._Problem.multilevel
    monkeypatch.setattr(spectral._Problem, "multilevel", lambda *a: chosen.append(1) or right(*a))
    monkeypatch.setattr(spectral, "_DIRECT_FLOPS", 1e5)
    X = rng.standard_normal((2000, 8))
    for dtype in (np.float64, np.float32):
        LaplacianEigenmaps().fit(X.astype(dtype))
    assert len(chosen) == 2


def test_disconnected_data_is_joined_with_a_warning(rng):
    X = np.concatenate([rng.standard_normal((60, 3)) + 40 * i for i in range(3)])
    for model in (LaplacianEigenmaps(), LocallyLinearEmbedding(), LTSA(), LocalRegressionEmbedding(), Isomap(), LGRM()):
        with pytest.warns(UserWarning, match="3 connected components"):
            model.fit(X)
        assert np.isfinite(model.embedding_).all()
        assert np.isfinite(model.transform(X + 0.1)).all()
        assert model.eigenvalues_[0] > -1e-10
    with pytest.warns(UserWarning, match="3 connected components, left apart"):
        apart = LaplacianEigenmaps(connect=False).fit(X)
    np.testing.assert_allclose(apart.eigenvalues_, 0, atol=1e-10)


def test_a_full_graph_whose_weights_fade_is_joined(rng):
    X = np.concatenate([rng.standard_normal((30, 2)), rng.standard_normal((30, 2)) + 1000])
    with pytest.warns(UserWarning, match="2 connected components"):
        model = LaplacianEigenmaps(affinity="full", beta=1.0).fit(X)
    assert manifast.graphs.n_components(model.affinity_matrix_) == 1
    assert np.isfinite(model.embedding_).all()


def test_neighbors_larger_than_a_component(rng):
    X = np.concatenate([rng.standard_normal((8, 2)), rng.standard_normal((50, 2)) + 100])
    for model in (LaplacianEigenmaps(), LocallyLinearEmbedding(), LTSA(), Isomap(), LGRM()):
        model.set_params(n_neighbors=12).fit(X)
        assert np.isfinite(model.transform(X)).all()


def test_two_points():
    X = np.array([[0.0, 0.0], [1.0, 0.0]])
    model = LaplacianEigenmaps(1, n_neighbors=1).fit(X)
    np.testing.assert_allclose(np.abs(model.embedding_), np.sqrt(0.5 / model.affinity_matrix_[0, 1]), rtol=1e-12)
    np.testing.assert_allclose(np.ptp(Isomap(1, n_neighbors=1).fit(X).embedding_), 1.0, rtol=1e-12)
    np.testing.assert_allclose(np.abs(LocallyLinearEmbedding(1, n_neighbors=1).fit(X).embedding_), np.sqrt(0.5))
    with pytest.raises(ValueError, match="n_neighbors must be an integer from 1 to 1"):
        LaplacianEigenmaps(1, n_neighbors=2).fit(X)
    with pytest.raises(ValueError, match="n_components must be an integer from 1 to 1"):
        LaplacianEigenmaps(2, n_neighbors=1).fit(X)


def test_sparse_rows():
    X = load_digits().data[:600]
    for model in (LaplacianEigenmaps(), Isomap(), LPP(alpha=1.0), SpectralRegression()):
        model.set_params(n_neighbors=10)
        dense, sparse = clone(model).fit(X), clone(model).fit(sp.csr_matrix(X))
        oracles.same_columns(sparse.embedding_, dense.embedding_, 1e-6)
        new = load_digits().data[600:620]
        actual = sparse.transform(sp.csr_matrix(new))
        np.testing.assert_allclose(actual, dense.transform(new), atol=1e-6 * np.abs(dense.embedding_).max())
        np.testing.assert_array_equal(sparse.transform(sp.csr_matrix(new[3:4])), actual[3:4])


def test_precomputed_neighbors():
    X = make_swiss_roll(300, random_state=0)[0]
    listed = manifast.kernels.knn(X, 10)
    for model in (LaplacianEigenmaps(), LocallyLinearEmbedding(), LTSA(), Isomap()):
        with_lists, without = clone(model).set_params(neighbors=listed).fit(X), model.set_params(n_neighbors=10).fit(X)
        np.testing.assert_array_equal(with_lists.embedding_, without.embedding_)


def test_precomputed_neighbors_that_list_the_row_itself():
    X = make_swiss_roll(300, random_state=0)[0]
    with_self = manifast.kernels.knn(X, 11, queries=X)
    for model in (LaplacianEigenmaps(), LocallyLinearEmbedding(), LTSA(), Isomap(), LPP(), SpectralRegression()):
        model.set_params(n_neighbors=10)
        expected = clone(model).fit(X).embedding_
        np.testing.assert_array_equal(model.set_params(neighbors=with_self).fit(X).embedding_, expected)
        with pytest.raises(ValueError, match="integer indices"):
            model.set_params(neighbors=with_self[::-1]).fit(X)
        with pytest.raises(ValueError, match="neighbors must be"):
            model.set_params(neighbors="all").fit(X)


def test_sparse_rows_need_a_map_that_takes_them():
    X = sp.csr_matrix(load_digits().data[:100])
    assert LaplacianEigenmaps().__sklearn_tags__().input_tags.sparse
    model = LaplacianEigenmaps(extension="reconstruction")
    assert not model.__sklearn_tags__().input_tags.sparse
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        model.fit(X)


def test_the_natural_map_by_its_name():
    X = make_swiss_roll(300, random_state=0)[0]
    for model, name in ((LaplacianEigenmaps(), "nystrom"), (Isomap(), "landmark_isomap"), (LTSA(), "reconstruction")):
        expected = clone(model).fit(X).transform(X[:20])
        np.testing.assert_array_equal(clone(model).set_params(extension=name).fit(X).transform(X[:20]), expected)


def test_precomputed_affinities_of_new_rows(rng):
    X, new = rng.standard_normal((80, 3)), rng.standard_normal((7, 3))
    W = oracles.heat_graph(X, 9, 4.0)
    W_new = np.exp(-oracles.sq_dist(new, X) / 4.0)
    model = LaplacianEigenmaps(2, affinity="precomputed").fit(W)
    expected = W_new @ model.embedding_ / (W_new.sum(axis=1)[:, None] * (1 - model.eigenvalues_))
    np.testing.assert_allclose(model.transform(W_new), expected, rtol=1e-10)
    sparse = LaplacianEigenmaps(2, affinity="precomputed").fit(sp.csr_array(W))
    np.testing.assert_allclose(sparse.transform(sp.csr_array(W_new)), expected, rtol=1e-7)


@pytest.mark.parametrize("extension", ["nystrom", "reconstruction", "landmark_isomap", "sparse"])
def test_any_extension_by_name(extension):
    X = load_digits().data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = LocallyLinearEmbedding(3, n_neighbors=10, extension=extension).fit(X[:200])
    assert np.isfinite(model.transform(X[200:230])).all()


# scikit-learn's conventions


def test_pipeline_clone_and_feature_names():
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(make_swiss_roll(200, random_state=0)[0], columns=["x", "y", "z"])
    pipeline = make_pipeline(StandardScaler(), LaplacianEigenmaps()).set_output(transform="pandas")
    out = pipeline.fit(X).transform(X)
    assert list(out.columns) == ["laplacianeigenmaps0", "laplacianeigenmaps1"]
    assert list(pipeline[-1].feature_names_in_) == ["x", "y", "z"]
    clone(pipeline).fit(X)


BAD = [
    (LocallyLinearEmbedding(extension="magic"), "extension must be None, one of"),
    (Isomap(neighbors=(np.ones((3, 2)), np.ones((3, 2), int))), "neighbors must be .distances, indices."),
    (LaplacianEigenmaps(affinity="magic"), "affinity must be one of"),
    (LaplacianEigenmaps(beta=-1.0), "beta must be"),
    (LaplacianEigenmaps(n_neighbors=50), "n_neighbors must be an integer from 1 to 49"),
    (LaplacianEigenmaps(n_components=50), "n_components must be an integer from 1 to 49"),
    (LaplacianEigenmaps(n_components=0), "n_components must be an integer from 1"),
    (LocallyLinearEmbedding(reg=-1), "reg must be"),
    (LTSA(n_components=3, n_neighbors=3), "n_neighbors must be more than n_components"),
    (LocalRegressionEmbedding(n_neighbors=1), "n_neighbors must be at least 2"),
    (LocalRegressionEmbedding(local_dim=7), "local_dim must be an integer from 1 to 3"),
    (LocalRegressionEmbedding(gamma_local=-1.0), "gamma_local must be"),
    (Isomap(n_landmarks=99), "n_landmarks must be an integer from 1 to 50"),
    (LGRM(mu=-1), "mu must be a finite number of at least 0"),
    (LGRM(gamma=-1), "gamma must be a positive"),
    (LGRM(kernel="magic"), "kernel must be one of"),
    (LGRM(sigma=0), "sigma must be a positive"),
    (LGRM(local="magic"), "local must be one of 'regression'"),
    (LPP(n_components=4), "n_components must be at most 3"),
    (LPP(alpha=-1), "alpha must be"),
    (SpectralRegression(kernel="rbf", alpha=0), "alpha must be a positive"),
]


@pytest.mark.parametrize(("model", "message"), BAD, ids=[str(m) for m, _ in BAD])
def test_bad_parameters_are_named_before_anything_is_fitted(rng, model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(rng.standard_normal((50, 3)))
    assert not hasattr(model, "embedding_")


def test_bad_rows(rng):
    X = rng.standard_normal((50, 3))
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        LaplacianEigenmaps().fit(X)
    model = LaplacianEigenmaps().fit(rng.standard_normal((50, 3)))
    with pytest.raises(ValueError, match="NaN"):
        model.transform(X)
    with pytest.raises(ValueError, match="4 features"):
        model.transform(np.ones((2, 4)))


@pytest.mark.process
@pytest.mark.parametrize("rows", [16_000, pytest.param(50_000, marks=pytest.mark.heavy)])
@pytest.mark.parametrize("name", ["LaplacianEigenmaps", "LocallyLinearEmbedding", "LTSA"])
def test_memory_is_linear_in_the_number_of_rows(grown_memory, name, rows):
    """Peak beyond that of a small fit, in megabytes; a matrix of all pairs of 16,000 rows would take 2000."""
    prepare = (
        "from sklearn.datasets import make_swiss_roll\n"
        "import manifast\n"
        "X = make_swiss_roll({}, random_state=0)[0]\n"
        f"model = manifast.{name}(n_neighbors=10).fit(X[:2000])"
    )
    small, large = (grown_memory(prepare.format(n), "model.fit(X)") for n in (rows // 2, rows))
    assert 10 < large < 2.6 * small + 10
    assert large < rows / 250


@pytest.mark.filterwarnings("ignore:the graph has")
@pytest.mark.parametrize("estimator", [LTSA, LGRM, LocalRegressionEmbedding])
def test_default_neighborhoods_span_the_dimensions(rng, estimator):
    X = rng.standard_normal((60, 12))
    for d, k in ((2, 8), (5, 8), (10, 15), (11, 17)):
        model = estimator(d).fit(X)
        assert model.n_neighbors_ == k
        np.testing.assert_array_equal(model.embedding_, estimator(d, n_neighbors=k).fit(X).embedding_)
    assert estimator(4).fit(X[:7]).n_neighbors_ == 6  # there are no more
    with pytest.raises(ValueError, match="n_neighbors must be more than n_components = 10"):
        estimator(10, n_neighbors=8).fit(X)
    if estimator is not LTSA:
        assert estimator(2, local_dim=8).fit(X).n_neighbors_ == 12


@pytest.mark.parametrize("affinity", ["heat", "binary", "full", "precomputed"])
def test_copies_of_one_row(affinity):
    """Their eigenvalues are 1 or close to it, where the Nyström formula has no value; new rows get the mean."""
    X = np.ones((30, 30 if affinity == "precomputed" else 3))
    if affinity == "precomputed":  # a star of stars: what neighbours say of the outer rows cancels
        X = np.zeros((30, 30))
        X[:8, 8:] = X[8:, :8] = 1.0
    model = LaplacianEigenmaps(affinity=affinity)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.fit(X)
    assert np.isfinite(model.embedding_).all()
    lost = np.abs(model.eigenvalues_ - 1) < 1e-3
    assert any("the mean of their neighbours" in str(each.message) for each in said) == lost.any()
    assert lost.any() or affinity == "full"
    mapped = model.transform(X[:5])
    assert np.isfinite(mapped).all() and np.abs(mapped).max() <= 2 * np.abs(model.embedding_).max()
    if affinity in ("heat", "binary"):
        assert np.isfinite(model.transform(np.zeros((2, 3)))).all()
        assert (mapped == mapped[0]).all()


@pytest.mark.parametrize("affinity", ["heat", "binary", "full"])
def test_copies_of_one_row_have_coordinates_with_a_warning(affinity):
    """A choice is made for new rows, which the formula has no value for."""
    copies = np.ones((30, 3))
    with pytest.warns(UserWarning, match=r"columns \[0, 1\].*Nyström formula divides by"):
        model = LaplacianEigenmaps(2, affinity=affinity).fit(copies)
    assert np.isfinite(model.embedding_).all() and np.isfinite(model.transform(copies)).all()
