"""SupervisedIsomap: against its definition, also where the graph falls apart, and what it makes of odd labels."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
from helpers import split_classes
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse.csgraph import connected_components
from sklearn.base import clone

from manifast import SupervisedIsomap
from manifast.extensions import RBF, KernelRidge
from manifast.graphs import connect_components, n_components
from manifast.kernels import knn, neighbor_graph


def blobs(seed=0, sizes=(12, 5, 9, 4), p=4, apart=1.0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    return apart * rng.standard_normal((len(sizes), p))[y] + rng.standard_normal((len(y), p)), y


def lists_of(D, k):
    others = D + np.diag(np.full(len(D), np.inf))
    return [sorted(range(len(D)), key=lambda j: (others[i, j], j))[:k] for i in range(len(D))]


@pytest.mark.parametrize(("k", "alpha"), [(12, 0.0), (12, 0.5), (12, 1.0), (None, 0.5)])
def test_oracle(k, alpha):
    X, y = blobs()
    model = SupervisedIsomap(n_neighbors=k, alpha=alpha).fit(X, y)
    D = oracles.class_distances(X, y, alpha)
    values, Y = oracles.classical_scaling(oracles.shortest_paths(D, lists_of(D, k or 29)), 3)
    assert_allclose(model.eigenvalues_, values, rtol=1e-9)
    oracles.same_columns(model.embedding_, Y, 1e-8)
    new = blobs(1)[0]
    expected = KernelRidge().fit(X, model.embedding_).predict(new)
    assert_array_equal(model.transform(new), expected)


def test_beta_is_the_squared_mean_distance_by_default():
    X, y = blobs()
    D = np.sqrt(oracles.sq_dist(X))
    mean = D.sum() / (30 * 29)
    given = SupervisedIsomap(beta=mean**2).fit(X, y)
    assert_allclose(given.embedding_, SupervisedIsomap().fit(X, y).embedding_, rtol=1e-9, atol=1e-12)


def test_components_are_joined_by_the_shortest_edges_of_the_method():
    X, y = blobs(sizes=(9, 9, 9), apart=4.0)
    D = oracles.class_distances(X, y)
    lists = [list(near) for near in lists_of(D, 3)]
    joined = np.zeros(D.shape)
    for i, near in enumerate(lists):
        joined[i, near] = 1
    count = connected_components(joined, directed=False)[0]
    assert count >= 3
    pairs = sorted((D[i, j], i, j) for i in range(27) for j in range(i))
    for _, i, j in pairs:  # Kruskal
        part = connected_components(joined, directed=False)[1]
        if part[i] != part[j]:
            joined[i, j] = 1
            lists[i].append(j)
    with pytest.warns(UserWarning, match=f"{count} connected components, joined"):
        model = SupervisedIsomap(n_neighbors=3).fit(X, y)
    values, Y = oracles.classical_scaling(oracles.shortest_paths(D, lists), 2)
    assert_allclose(model.eigenvalues_, values, rtol=1e-9)
    oracles.same_columns(model.embedding_, Y, 1e-8)


def test_components_are_joined_by_lengths_of_zero():
    D = np.array([[0.0, 0.0, 5.0, 2.0], [0.0, 0.0, 4.0, 3.0], [5.0, 4.0, 0.0, 0.0], [2.0, 3.0, 0.0, 0.0]])
    W = neighbor_graph(np.zeros((4, 1)), np.array([[1], [0], [3], [2]]), weights="distance")
    joined = connect_components(W, D, weights="distance", metric="precomputed")
    assert n_components(joined, weights="distance") == 1
    assert joined.nnz == W.nnz + 2 and joined[0, 3] == joined[3, 0] == 2.0
    assert (connect_components(joined, D, weights="distance", metric="precomputed") != joined).nnz == 0


def test_classes_move_apart():
    X, y = blobs(sizes=(25, 25), apart=1.0)
    Y = SupervisedIsomap(n_components=2, n_neighbors=20).fit_transform(X, y)

    def ratio(Z):
        D = oracles.sq_dist(Z)
        return D[y[:, None] != y].mean() / D[y[:, None] == y].mean()

    assert ratio(Y) > 1.3 * ratio(X)


@pytest.mark.filterwarnings("ignore:-1 in y is taken as a class")
@pytest.mark.parametrize("names", [[3, 7, -1, 20], ["d", "b", "a", "c"]])
def test_what_classes_are_called_does_not_matter(names):
    X, y = blobs()
    named = SupervisedIsomap(n_neighbors=12).fit(X, np.array(names)[y])
    assert named.classes_.tolist() == sorted(names)
    assert_array_equal(named.embedding_, SupervisedIsomap(n_neighbors=12).fit(X, y).embedding_)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_odd_data():
    X, y = blobs()
    for labels in (np.arange(30), np.where(y == 3, np.arange(30) + 9, 0), y > 1):  # single members; two classes
        model = SupervisedIsomap(n_neighbors=5).fit(X, labels)
        assert model.embedding_.shape == (30, len(np.unique(labels)) - 1)
        assert np.isfinite(model.transform(X)).all()
    for rows in (np.ones((30, 4)), np.repeat(X[:3], 10, axis=0), 1e120 * X, 1e-120 * X):
        model = SupervisedIsomap().fit(rows, y)
        assert np.isfinite(model.embedding_).all() and np.isfinite(model.transform(rows)).all()
    far = np.where(y[:, None] == 0, X + 1e8, X)  # exp(d²/β) would overflow without a bound
    assert np.isfinite(SupervisedIsomap(n_neighbors=5, beta=1.0).fit(far, y).embedding_).all()


def test_scale_does_not_matter():
    X, y = blobs()
    expected = SupervisedIsomap(n_neighbors=12).fit(X, y)
    scaled = SupervisedIsomap(n_neighbors=12).fit(1e100 * X, y)
    oracles.same_columns(scaled.embedding_, expected.embedding_, 1e-9)
    assert_allclose(scaled.transform(1e100 * X), expected.transform(X), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("extension", [None, "rbf", RBF(scale=2.0), "lvm"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_bits_and_dtype_of_transform(extension, dtype):
    X, y = blobs()
    new = blobs(3, sizes=(40, 40))[0].astype(dtype)
    model = SupervisedIsomap(n_neighbors=12, extension=extension).fit(X.astype(dtype), y)
    mapped = model.transform(new)
    assert mapped.dtype == model.embedding_.dtype == dtype
    assert_array_equal(np.vstack([model.transform(row[None]) for row in new]), mapped)
    assert_array_equal(model.transform(np.asfortranarray(new)), mapped)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (SupervisedIsomap(n_components=30), "n_components must be an integer from 1 to 29"),
        (SupervisedIsomap(n_neighbors=30), "n_neighbors must be an integer from 1 to 29"),
        (SupervisedIsomap(alpha=1.5), "alpha must be a number from 0 to 1. Got 1.5"),
        (SupervisedIsomap(alpha=-0.1), "alpha must be"),
        (SupervisedIsomap(beta="median"), "beta must be 'mean' or a positive number. Got 'median'"),
        (SupervisedIsomap(beta=-1.0), "beta must be"),
        (SupervisedIsomap(extension="spline"), "extension must be"),
    ],
)
def test_bad_parameters(model, message):
    X, y = blobs()
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert not hasattr(model, "embedding_")
    with pytest.raises(ValueError, match="at least 2 classes"):
        clone(model).set_params(**SupervisedIsomap().get_params()).fit(X, np.zeros(30))


def test_images_of_objects(small_images):
    """About as good as the paper's IsoKRR on COIL-20, 11.2 % with 7 images per object."""
    X, y = small_images("coil20")
    errors = []
    for seed in range(4):
        train, new = split_classes(y, 7, seed)
        model = SupervisedIsomap().fit(X[train], y[train])
        errors.append(np.mean(y[train][knn(model.embedding_, 1, queries=model.transform(X[new]))[1][:, 0]] != y[new]))
    assert np.mean(errors) < 0.12
