"""`metric`: distances of every kind against plain NumPy, and estimators that give the same whatever they come from."""

from __future__ import annotations

import json
import warnings

import numpy as np
import oracles
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.manifold import Isomap as TheirIsomap
from sklearn.metrics.pairwise import cosine_distances, euclidean_distances
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import (
    KNeighborsClassifier,
    KNeighborsTransformer,
    NearestNeighbors,
    RadiusNeighborsTransformer,
    kneighbors_graph,
    radius_neighbors_graph,
)
from sklearn.pipeline import make_pipeline

from manifast import (
    LGRM,
    LLTSA,
    LPP,
    LTSA,
    NPE,
    ClassicalMDS,
    ComposedEmbedding,
    DiffusionMaps,
    Isomap,
    LaplacianEigenmaps,
    LocallyLinearEmbedding,
    LocalRegressionEmbedding,
    OutOfSample,
    SpectralRegression,
    objectives,
)
from manifast.extensions import LandmarkIsomap, LatentVariable, Nystrom, Reconstruction
from manifast.graphs import (
    connect_components,
    distances_of,
    full_graph,
    knn_graph,
    mean_sq_distance,
    n_components,
    radius_graph,
)
from manifast.maps import restore

DTYPES = [np.float32, np.float64]
METRICS = ["euclidean", "cosine", "precomputed", "sparse"]  # the last: precomputed, all distances in a sparse matrix


def rows_of(rng, n=60, p=5, dtype=np.float64):
    """Rows with a length of their own."""
    return (rng.standard_normal((n, p)) * rng.uniform(0.1, 3.0, (n, 1))).astype(dtype)


def awkward_rows(rng, n, dtype):
    """Two of them equal, and two of zeros."""
    X = rows_of(rng, n, dtype=dtype)
    X[7], X[9], X[12] = X[20], 0.0, 0.0
    return X


def all_distances(X, metric, Y=None):
    X, Y = (np.asarray(Z, dtype=np.float64) for Z in (X, X if Y is None else Y))
    if metric != "cosine":
        return np.sqrt(((X[:, None] - Y) ** 2).sum(axis=2))
    U, V = (Z / np.where(Z.any(axis=1), np.linalg.norm(Z, axis=1), 1.0)[:, None] for Z in (X, Y))
    D = np.clip(1.0 - U @ V.T, 0.0, None)
    D[np.ix_(~X.any(axis=1), ~Y.any(axis=1))] = 0.0
    return D


def stored(D):
    """A sparse matrix that holds every entry, zeros too."""
    m, n = D.shape
    indptr = np.arange(m + 1) * n
    return sp.csr_array((D.ravel().copy(), np.tile(np.arange(n), m), indptr), shape=D.shape)


def given(X, metric, Y=None):
    """What a `Distances` object, or its method for new rows, takes."""
    if metric not in ("precomputed", "sparse"):
        return X if Y is None else Y
    D = all_distances(X, "euclidean") if Y is None else all_distances(Y, "euclidean", X)
    D = D.astype(np.asarray(X).dtype)
    return stored(D) if metric == "sparse" else D


def name_of(metric):
    return "precomputed" if metric == "sparse" else metric


def plain_nearest(D, k):
    order = np.lexsort((np.broadcast_to(np.arange(D.shape[1]), D.shape), D), axis=1)[:, :k]
    return np.take_along_axis(D, order, axis=1), order


def tolerance(dtype):
    return {"rtol": 2e-5, "atol": 2e-6} if dtype == np.float32 else {"rtol": 1e-9, "atol": 1e-12}


def test_equal_given_distances_come_in_the_order_of_their_index(rng):
    D = rng.integers(1, 4, (30, 30)).astype(np.float64)
    D = np.triu(D, 1) + np.triu(D, 1).T
    for k in (1, 3, 4, 15, 29):  # few of the columns, and many
        order = [sorted((row[j], j) for j in range(30) if j != i)[:k] for i, row in enumerate(D)]
        found = distances_of(D, "precomputed").nearest(k)
        np.testing.assert_array_equal(found[1], [[j for _, j in each] for each in order])
        np.testing.assert_array_equal(found[0], [[d for d, _ in each] for each in order])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("metric", METRICS)
def test_distances_are_those_of_numpy(rng, monkeypatch, metric, dtype):
    monkeypatch.setattr("manifast.graphs.distances.CHUNK", 700)
    X, new = awkward_rows(rng, 60, dtype), awkward_rows(rng, 23, dtype)
    among, D = distances_of(given(X, metric), name_of(metric)), all_distances(X, metric)
    E = all_distances(new, metric, X)
    others = D + np.diag(np.full(len(D), np.inf))
    for k in (1, 6, 59):
        d, i = among.nearest(k)
        assert d.dtype == dtype and i.dtype == np.int64
        np.testing.assert_allclose(d, plain_nearest(others, k)[0], **tolerance(dtype))
        np.testing.assert_allclose(np.take_along_axis(others, i, axis=1), d, **tolerance(dtype))
        d, i = among.nearest_to(given(X, metric, new), k)
        np.testing.assert_allclose(d, plain_nearest(E, k)[0], **tolerance(dtype))
        np.testing.assert_allclose(np.take_along_axis(E, i, axis=1), d, **tolerance(dtype))
    np.testing.assert_allclose(among.mean_square(), (D**2).sum() / (60 * 59), **tolerance(dtype))
    radius = float(np.median(D)) * 1.0001
    i, j, length = among.pairs_within(radius)
    assert (i < j).all()
    assert set(zip(i, j, strict=True)) == set(zip(*np.nonzero(np.triu(radius >= D, 1)), strict=True))
    np.testing.assert_allclose(length, D[i, j], **tolerance(dtype))
    lengths, lists = among.reach(given(X, metric, new), radius)
    for row in range(len(new)):
        inside = np.flatnonzero(radius >= E[row])
        assert set(lists[row]) == set(inside) if len(inside) else set(lists[row]) == {int(E[row].argmin())}
        np.testing.assert_allclose(lengths[row], E[row, lists[row]], **tolerance(dtype))
    if metric == "sparse":
        for needs_all in (lambda: among.complete("heat", 1.0), lambda: among.squares(np.arange(3))):
            with pytest.raises(ValueError, match=r"X must hold all distances for .* Got a sparse"):
                needs_all()
        with pytest.raises(ValueError, match="distances to all training rows"):
            among.to(given(X, metric, new))
        return
    np.testing.assert_allclose(among.to(given(X, metric, new)), E, **tolerance(dtype))
    some = np.array([3, 9, 40])
    np.testing.assert_allclose(among.squares(some), D[np.ix_(some, some)] ** 2, rtol=1e-4, atol=1e-12)
    W = among.complete("heat", 0.7)
    np.testing.assert_array_equal(W, W.T)
    np.testing.assert_allclose(W, np.exp(-(D**2) / 0.7) - np.eye(60), **tolerance(dtype))


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_distances_between_sparse_rows(rng, metric):
    X = rng.standard_normal((50, 8)) * (rng.random((50, 8)) < 0.4)
    X[5] = 0.0
    dense, sparse = distances_of(X, metric), distances_of(sp.csr_array(X), metric)
    np.testing.assert_allclose(sparse.nearest(7)[0], dense.nearest(7)[0], atol=1e-12)
    np.testing.assert_allclose(sparse.nearest_to(sp.csr_array(X[:9]), 7)[0], dense.nearest_to(X[:9], 7)[0], atol=1e-12)
    np.testing.assert_allclose(sparse.mean_square(), dense.mean_square(), rtol=1e-12)


def test_cosine_distances_of_nearly_parallel_rows_keep_their_digits(rng):
    X = 1.0 + 1e-7 * rng.standard_normal((40, 3))
    d, _ = distances_of(X, "cosine").nearest(3)
    wide = np.asarray(X, dtype=np.longdouble)
    U = wide / np.sqrt((wide**2).sum(axis=1))[:, None]
    D = 0.5 * ((U[:, None] - U) ** 2).sum(axis=2) + np.diag(np.full(40, np.inf))
    np.testing.assert_allclose(d, np.sort(D, axis=1)[:, :3].astype(float), rtol=1e-6)
    exact = np.where(np.isfinite(D), D, 0.0)
    np.testing.assert_allclose(mean_sq_distance(X, metric="cosine"), float((exact**2).sum() / (40 * 39)), rtol=1e-6)


def test_cosine_does_not_see_lengths(rng):
    X = rng.standard_normal((50, 4))
    scaled = X * 2.0 ** rng.integers(-400, 400, (50, 1))
    for model in (Isomap(metric="cosine"), LaplacianEigenmaps(metric="cosine"), ClassicalMDS(metric="cosine")):
        expected = clone(model).fit(X).embedding_
        np.testing.assert_allclose(model.fit(scaled).embedding_, expected, atol=1e-9)
        np.testing.assert_allclose(model.transform(X), model.transform(2.0**300 * X), atol=1e-12)


@pytest.mark.parametrize("weights", ["heat", "binary", "distance"])
@pytest.mark.parametrize("metric", METRICS)
def test_graphs_of_every_metric(rng, metric, weights):
    X = rows_of(rng)
    D, arguments = all_distances(X, metric), {"weights": weights, "beta": "mean", "metric": name_of(metric)}
    width = (D**2).sum() / (60 * 59)
    value = {"heat": np.exp(-(D**2) / width), "binary": np.ones_like(D), "distance": D}[weights]

    def check(W, pattern):
        W = W.toarray() if sp.issparse(W) else W
        np.testing.assert_allclose(W, np.where(pattern & ~np.eye(60, dtype=bool), value, 0.0), atol=1e-9)
        np.testing.assert_array_equal(W, W.T)

    lists = plain_nearest(D + np.diag(np.full(60, np.inf)), 6)[1]
    pattern = np.zeros((60, 60), dtype=bool)
    np.put_along_axis(pattern, lists, True, axis=1)
    check(knn_graph(given(X, metric), 6, **arguments), pattern | pattern.T)
    radius = 0.6 * np.median(D)
    check(radius_graph(given(X, metric), radius, **arguments), radius >= D)
    if metric != "sparse":
        check(full_graph(given(X, metric), **arguments), np.ones((60, 60), dtype=bool))
    apart = np.zeros((60, 60))
    apart[:30, :30] = apart[30:, 30:] = 1.0 - np.eye(30)
    joined = connect_components(apart, given(X, metric), **arguments).toarray()
    i, j = np.unravel_index(D[:30, 30:].argmin(), (30, 30))
    expected = value[i, j + 30] if weights == "distance" else max(value[i, j + 30], 1.0)
    assert n_components(joined) == 1 or expected == 0
    np.testing.assert_allclose(joined[:30, 30:].sum(), expected, atol=1e-12)


def test_mean_square_of_neighbours_alone(rng):
    S = kneighbors_graph(rng.standard_normal((30, 3)), 4, mode="distance")
    np.testing.assert_allclose(mean_sq_distance(S, metric="precomputed"), np.mean(S.data**2))


ON_DISTANCES = [
    LaplacianEigenmaps(3),
    LaplacianEigenmaps(3, affinity="binary", n_neighbors=5),
    LaplacianEigenmaps(3, affinity="full"),
    LaplacianEigenmaps(3, constraint="identity"),
    DiffusionMaps(3),
    DiffusionMaps(3, n_neighbors=9),
    Isomap(3),
    Isomap(3, n_landmarks=30),
    Isomap(3, n_neighbors=None, radius=1.5),
    ClassicalMDS(3),
    ClassicalMDS(3, n_landmarks=30),
]


@pytest.mark.parametrize("model", ON_DISTANCES, ids=str)
def test_precomputed_is_the_same_as_rows(rng, model):
    X, new = rng.uniform(0, 2, (80, 3)), rng.uniform(0, 2, (17, 3))
    plain, other = clone(model).fit(X), clone(model).set_params(metric="precomputed")
    other.fit(euclidean_distances(X))
    assert other.n_features_in_ == 80
    np.testing.assert_allclose(other.embedding_, plain.embedding_, atol=1e-7)
    np.testing.assert_allclose(other.eigenvalues_, plain.eigenvalues_, rtol=1e-7)
    ways = euclidean_distances(new, X)
    np.testing.assert_allclose(other.transform(ways), plain.transform(new), atol=1e-6)
    np.testing.assert_array_equal(other.transform(ways)[3:4], other.transform(ways[3:4]))
    narrow = clone(other).fit(euclidean_distances(X).astype(np.float32))
    assert narrow.embedding_.dtype == narrow.transform(ways.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(narrow.embedding_, plain.embedding_, atol=3e-3)


@pytest.mark.parametrize("model", ON_DISTANCES, ids=str)
def test_cosine_is_the_same_as_its_distances(rng, model):
    X, new = rows_of(rng, 80), rows_of(rng, 17)
    if getattr(model, "radius", None):
        model = clone(model).set_params(radius=0.4)
    by_rows, by_distances = clone(model).set_params(metric="cosine"), clone(model).set_params(metric="precomputed")
    by_rows.fit(X), by_distances.fit(all_distances(X, "cosine"))
    np.testing.assert_allclose(by_rows.embedding_, by_distances.embedding_, atol=1e-6)
    images = by_rows.transform(new)
    np.testing.assert_allclose(images, by_distances.transform(all_distances(new, "cosine", X)), atol=1e-5)
    np.testing.assert_array_equal(images[4:6], by_rows.transform(np.asfortranarray(new[4:6])))
    if not getattr(model, "radius", None):
        assert np.abs(by_rows.embedding_ - clone(model).fit(X).embedding_).max() > 1e-2


@pytest.mark.parametrize("exponent", [-320, 320])
@pytest.mark.parametrize("model", [Isomap(2), ClassicalMDS(2), DiffusionMaps(2), LaplacianEigenmaps(2)], ids=str)
def test_precomputed_distances_of_any_size(rng, model, exponent):
    X, new = rng.standard_normal((50, 3)), rng.standard_normal((7, 3))
    D, E = euclidean_distances(X), euclidean_distances(new, X)
    model = clone(model).set_params(metric="precomputed")
    expected, size = clone(model).fit(D), 2.0**exponent if model.__class__ in (Isomap, ClassicalMDS) else 1.0
    model.fit(np.ldexp(D, exponent))
    np.testing.assert_allclose(model.embedding_ / size, expected.embedding_, atol=1e-9)
    np.testing.assert_allclose(model.transform(np.ldexp(E, exponent)) / size, expected.transform(E), atol=1e-9)
    if isinstance(model, Isomap):
        np.testing.assert_allclose(model.dist_matrix_ / size, expected.dist_matrix_, rtol=1e-12)


BY_NEIGHBOURS = [LocallyLinearEmbedding(2), LTSA(2), LocalRegressionEmbedding(2), NPE(2), LLTSA(2)]


@pytest.mark.parametrize("model", [*BY_NEIGHBOURS, LocallyLinearEmbedding(2, method="hessian")], ids=str)
def test_neighbours_by_cosine(rng, model):
    X = rng.uniform(0.5, 2.0, (90, 3))
    model = clone(model).set_params(metric="cosine", n_neighbors=20).fit(X)
    k = 20 - isinstance(model, LocalRegressionEmbedding)
    lists = plain_nearest(cosine_distances(X) + np.diag(np.full(90, np.inf)), k)
    expected = clone(model).set_params(metric="euclidean", neighbors=lists).fit(X)
    oracles.same_columns(model.embedding_, expected.embedding_, 1e-7)
    if isinstance(model, NPE | LLTSA):
        return
    new = X[:5] + 0.01
    near = plain_nearest(cosine_distances(new, X), model.extension_.n_neighbors)[1]
    for row, at, image in zip(new, near, model.transform(new), strict=True):
        G = (X[at] - row) @ (X[at] - row).T
        w = np.linalg.solve(G + 1e-3 * np.trace(G) * np.eye(len(G)), np.ones(len(G)))
        np.testing.assert_allclose(image, w @ model.embedding_[at] / w.sum(), atol=1e-9)


@pytest.mark.parametrize("kernel", [None, "rbf"])
@pytest.mark.parametrize("model", [LPP(2), SpectralRegression(2)], ids=str)
def test_projections_of_graphs_by_cosine(rng, model, kernel):
    X = rng.standard_normal((70, 4)) + 1.0
    D = cosine_distances(X)
    lists = plain_nearest(D + np.diag(np.full(70, np.inf)), 8)
    model = clone(model).set_params(kernel=kernel, metric="cosine").fit(X)
    expected = clone(model).set_params(metric="euclidean", neighbors=lists).fit(X)  # local widths of the lists
    oracles.same_columns(model.embedding_, expected.embedding_, 1e-7)
    np.testing.assert_allclose(model.transform(X[:9]), model.embedding_[:9], atol=1e-9)


def test_composed_embeddings_take_metrics(rng):
    X = rng.standard_normal((60, 3))
    D = euclidean_distances(X)
    model = ComposedEmbedding(objectives.Isomap(6, metric="precomputed")).fit(D)
    plain = Isomap(n_neighbors=6).fit(X)
    np.testing.assert_allclose(model.embedding_, plain.embedding_, atol=1e-8)
    np.testing.assert_allclose(model.transform(D[:4]), plain.transform(X[:4]), atol=1e-8)
    assert model.__sklearn_tags__().input_tags.pairwise
    with_map = ComposedEmbedding(objectives.Laplacian(metric="cosine"), "projection").fit(X)
    np.testing.assert_allclose(with_map.embedding_, LPP(metric="cosine").fit(X).embedding_, atol=1e-12)
    with pytest.raises(ValueError, match="metric must be 'euclidean' or 'cosine' where rows are mapped"):
        ComposedEmbedding(objectives.Laplacian(metric="precomputed"), "kernel_ridge").fit(D)
    assert LGRM(local="isomap").fit(X).embedding_.shape == (60, 2)


@pytest.mark.parametrize("k", [7, 12])
@pytest.mark.parametrize(
    "model", [Isomap(3), LaplacianEigenmaps(3, beta=0.8), LaplacianEigenmaps(3, affinity="binary")], ids=str
)
def test_pipeline_with_a_transformer_of_neighbours(rng, model, k):
    X, new = rng.standard_normal((150, 4)), rng.standard_normal((40, 4))
    plain = clone(model).set_params(n_neighbors=7).fit(X)
    chain = make_pipeline(KNeighborsTransformer(n_neighbors=k, mode="distance"), clone(plain))
    chain[-1].set_params(metric="precomputed")
    np.testing.assert_allclose(chain.fit_transform(X), plain.embedding_, atol=1e-8)
    np.testing.assert_allclose(chain.transform(new), plain.transform(new), atol=1e-8)
    np.testing.assert_allclose(chain.transform(X), plain.transform(X), atol=1e-8)


def test_pipeline_with_a_transformer_of_radius_neighbours(rng):
    X, new = rng.uniform(0, 1, (150, 2)), rng.uniform(0.1, 0.9, (30, 2))
    plain = Isomap(n_neighbors=None, radius=0.3).fit(X)
    chain = make_pipeline(
        RadiusNeighborsTransformer(radius=0.4, mode="distance"),
        Isomap(n_neighbors=None, radius=0.3, metric="precomputed"),
    )
    np.testing.assert_allclose(chain.fit_transform(X), plain.embedding_, atol=1e-8)
    np.testing.assert_allclose(chain.transform(new), plain.transform(new), atol=1e-8)


@pytest.mark.filterwarnings("ignore:the graph has")
def test_a_pipeline_of_neighbours_in_cross_validation(rng):
    X, y = rng.standard_normal((90, 3)), np.repeat([0, 1, 2], 30)
    X[:, 0] += 4.0 * y
    steps = KNeighborsTransformer(n_neighbors=45, mode="distance"), Isomap(n_neighbors=15, metric="precomputed")
    assert cross_val_score(make_pipeline(*steps, KNeighborsClassifier(3)), X, y, cv=3).mean() > 0.9
    distances_alone = make_pipeline(Isomap(n_neighbors=15, metric="precomputed"), KNeighborsClassifier(3))
    scores = cross_val_score(distances_alone, euclidean_distances(X), y, cv=3)  # rows and columns are split
    assert scores.mean() > 0.9


def test_graphs_from_an_approximate_search(rng):
    pynndescent = pytest.importorskip("pynndescent", reason="pynndescent is not installed")
    X, new = rng.standard_normal((400, 5)), rng.standard_normal((30, 5))
    chain = make_pipeline(
        pynndescent.PyNNDescentTransformer(n_neighbors=15, random_state=0), Isomap(n_neighbors=10, metric="precomputed")
    )
    plain = Isomap(n_neighbors=10).fit(X)
    oracles.same_columns(chain.fit_transform(X), plain.embedding_, 0.1 * np.abs(plain.embedding_).max())
    assert np.abs(chain.transform(new) - plain.transform(new)).max() < 0.2 * np.abs(plain.embedding_).max()


def test_sparse_distances_that_do_not_join_components():
    X = np.array([0, 1, 2, 5.5, 6, 7])[:, None]
    S = kneighbors_graph(X, 2, mode="distance")
    with pytest.raises(ValueError, match=r"X must hold distances that join .* leaves 2 connected components"):
        Isomap(1, n_neighbors=1, metric="precomputed").fit(S)
    with pytest.warns(UserWarning, match="2 connected components, left apart, as a sparse matrix has no distances"):
        LaplacianEigenmaps(1, n_neighbors=2, metric="precomputed").fit(S)
    more = kneighbors_graph(X, 3, mode="distance")
    with pytest.warns(UserWarning, match="connected components, joined by the shortest missing edges"):
        joined = Isomap(1, n_neighbors=1, metric="precomputed").fit(more)
    with pytest.warns(UserWarning, match="connected components, joined"):
        dense = Isomap(1, n_neighbors=1, metric="precomputed").fit(euclidean_distances(X))
    np.testing.assert_allclose(joined.dist_matrix_, dense.dist_matrix_)
    np.testing.assert_allclose(joined.dist_matrix_, np.abs(X - X.T))


def test_isomap_within_a_radius(rng):
    X = rng.uniform(0, 1, (100, 2))
    D = euclidean_distances(X)
    model = Isomap(n_neighbors=None, radius=0.3).fit(X)
    lists = [[j for j in range(100) if j != i and D[i, j] <= 0.3] for i in range(100)]
    geodesics = oracles.shortest_paths(D, lists)
    np.testing.assert_allclose(model.dist_matrix_, geodesics, rtol=1e-10)
    oracles.same_columns(model.embedding_, oracles.classical_scaling(geodesics, 2)[1], 1e-8)
    np.testing.assert_allclose(model.transform(X), model.embedding_, atol=1e-9)
    new = rng.uniform(0, 1, (20, 2))
    new[-1] = [5.0, 5.0]  # out of reach: by way of its nearest
    E = euclidean_distances(new, X)
    near = [np.flatnonzero(row <= 0.3) if row.min() <= 0.3 else [row.argmin()] for row in E]
    ways = np.array([(row[at, None] + geodesics[at]).min(axis=0) for row, at in zip(E, near, strict=True)])
    Y = model.embedding_
    placed = -0.5 * (ways**2 - (geodesics**2).mean(axis=0)) @ Y @ np.linalg.inv(Y.T @ Y)
    np.testing.assert_allclose(model.transform(new), placed, atol=1e-8)
    np.testing.assert_array_equal(model.transform(new)[5:6], model.transform(new[5:6]))
    everyone = Isomap(n_neighbors=None, radius=np.inf).fit(X)
    np.testing.assert_allclose(euclidean_distances(everyone.embedding_), D, atol=1e-8)
    landmarks = Isomap(n_neighbors=None, radius=0.3, n_landmarks=40).fit(X)
    np.testing.assert_allclose(landmarks.dist_matrix_, geodesics[landmarks.landmarks_], rtol=1e-10)


def test_isomap_of_rows_out_of_reach(rng):
    X = np.concatenate([rng.uniform(0, 1, (30, 2)), [[9.0, 9.0]]])
    with pytest.warns(UserWarning, match="2 connected components, joined"):
        model = Isomap(n_neighbors=None, radius=1.0).fit(X)
    assert np.isfinite(model.embedding_).all()
    with pytest.raises(ValueError, match="X must be a dense array"):
        ComposedEmbedding(objectives.Isomap(None, radius=1.0)).fit(sp.csr_array(X))
    with pytest.raises(TypeError, match="dense data is required"):
        Isomap(n_neighbors=None, radius=1.0).fit(sp.csr_array(X))


def test_isomap_agrees_with_scikit_learn(rng):
    manifold = pytest.importorskip("sklearn.manifold")
    X, new = rng.standard_normal((120, 3)), rng.standard_normal((20, 3))
    for arguments in ({"n_neighbors": 9}, {"n_neighbors": None, "radius": 2.5}, {"n_neighbors": 9, "metric": "cosine"}):
        theirs = manifold.Isomap(n_components=3, **arguments).fit(X)
        ours = Isomap(3, **arguments).fit(X)
        np.testing.assert_allclose(ours.dist_matrix_, theirs.dist_matrix_, atol=1e-9)
        np.testing.assert_allclose(ours.reconstruction_error(), theirs.reconstruction_error(), rtol=1e-8)
        signs = np.sign((ours.embedding_ * theirs.embedding_).sum(axis=0))
        np.testing.assert_allclose(ours.embedding_ * signs, theirs.embedding_, atol=1e-6)
        np.testing.assert_allclose(ours.transform(new) * signs, theirs.transform(new), atol=1e-6)


def test_isomap_attributes(rng):
    X = rng.standard_normal((40, 4)).astype(np.float32)
    with pytest.raises(AttributeError, match="after fit"):
        _ = Isomap().dist_matrix_
    model = Isomap(4, n_neighbors=39).fit(X)
    assert model.dist_matrix_.dtype == np.float32 and model.dist_matrix_.shape == (40, 40)
    assert model.reconstruction_error() < 1e-3 * model.eigenvalues_[0]  # all dimensions are there
    two = Isomap(2, n_neighbors=39).fit(X)
    B = -0.5 * oracles.sq_dist(X.astype(np.float64))
    B = B - B.mean(axis=0) - B.mean(axis=1)[:, None] + B.mean()
    Y = two.embedding_.astype(np.float64)
    np.testing.assert_allclose(two.reconstruction_error(), np.linalg.norm(B - Y @ Y.T) / 40, rtol=1e-4)
    some = Isomap(2, n_landmarks=12).fit(X)
    assert some.dist_matrix_.shape == (12, 40) and some.reconstruction_error() > 0
    scaled = Isomap(2, n_neighbors=39).fit(np.ldexp(X.astype(np.float64), 400))
    np.testing.assert_allclose(np.ldexp(scaled.reconstruction_error(), -800), two.reconstruction_error(), rtol=1e-4)


@pytest.mark.parametrize("method", ["standard", "modified", "ltsa"])
def test_reconstruction_error_of_lle(rng, method):
    manifold = pytest.importorskip("sklearn.manifold")
    X = rng.uniform(-1, 1, (100, 3))
    X[:, 2] = 0.3 * X[:, 0] * X[:, 1]
    ours = LocallyLinearEmbedding(2, n_neighbors=10, method=method).fit(X)
    theirs = manifold.LocallyLinearEmbedding(
        n_components=2, n_neighbors=10, method=method, eigen_solver="dense"
    ).fit(X)
    np.testing.assert_allclose(ours.reconstruction_error_, theirs.reconstruction_error_, rtol=1e-6)
    with pytest.raises(AttributeError, match="after fit"):
        _ = LocallyLinearEmbedding().reconstruction_error_


@pytest.mark.parametrize(
    ("d", "method", "k"),
    [(10, "ltsa", 15), (4, "hessian", 23), (12, "modified", 18), (2, "ltsa", 8), (2, "hessian", 9), (9, "standard", 8)],
)
@pytest.mark.filterwarnings("ignore:the graph has")
def test_default_neighbours_of_lle_follow_the_dimension(rng, d, method, k):
    model = LocallyLinearEmbedding(d, method=method).fit(rng.standard_normal((120, 14)))
    assert model.embedding_.shape == (120, d) and model.n_neighbors_ == k


@pytest.mark.parametrize("model", [LTSA(), LocallyLinearEmbedding(), Isomap(), LaplacianEigenmaps(), LPP()], ids=str)
def test_lists_that_name_a_row_twice(rng, model):
    X = rng.standard_normal((30, 3))
    distances, lists = (part.copy() for part in plain_nearest(euclidean_distances(X) + 100 * np.eye(30), 8))
    lists[4, 5] = lists[4, 2]
    with pytest.raises(ValueError, match=r"neighbors must not name a row twice. Got \[.*\] as neighbours of row 4"):
        clone(model).set_params(neighbors=(distances, lists)).fit(X)


def test_diffusion_maps_use_the_lists_for_new_rows(rng):
    X, new = rng.standard_normal((60, 3)), rng.standard_normal((8, 3))
    lists = plain_nearest(euclidean_distances(X) + 100 * np.eye(60), 9)
    given_lists, plain = DiffusionMaps(2, neighbors=lists).fit(X), DiffusionMaps(2, n_neighbors=9).fit(X)
    np.testing.assert_allclose(given_lists.transform(new), plain.transform(new), atol=1e-9)


SQUARE = np.abs(np.subtract.outer(np.arange(12.0), np.arange(12.0)))
ONE = np.ones((12, 12))


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (SQUARE[:, :9], "X must be a square matrix of distances for metric='precomputed'. Got shape"),
        (-SQUARE, "X must hold distances. Negative values in data"),
        (sp.csr_array(-SQUARE), "X must hold distances. Negative values in data"),
        (SQUARE + np.triu(ONE, 1), "X must be a symmetric matrix of distances. Got entries that differ by up to 1"),
        (np.exp(-SQUARE), "X must hold distances, 0 on the diagonal. Got up to 1 there"),
        (sp.csr_array(np.where(SQUARE <= 2, SQUARE, 0)), "n_neighbors must be at most 2, the fewest distances"),
    ],
)
@pytest.mark.parametrize("model", [Isomap(n_neighbors=5), LaplacianEigenmaps(n_neighbors=5)], ids=str)
def test_matrices_that_hold_no_distances(model, X, message):
    with pytest.raises(ValueError, match=message):
        clone(model).set_params(metric="precomputed").fit(X)


def test_new_rows_that_hold_no_distances():
    model = Isomap(1, n_neighbors=3, metric="precomputed").fit(SQUARE)
    with pytest.raises(ValueError, match="Negative values in data"):
        model.transform(-SQUARE[:2])
    with pytest.raises(ValueError, match="at least 3 training rows in every row"):
        model.transform(sp.csr_array(np.where(np.isin(SQUARE[:2], (1, 2)), SQUARE[:2], 0)))
    with pytest.raises(ValueError, match="12 features"):
        model.transform(SQUARE[:2, :9])


@pytest.mark.parametrize("model", [*BY_NEIGHBOURS, LPP(), SpectralRegression()], ids=str)
def test_methods_that_need_rows_refuse_distances(model):
    with pytest.raises(ValueError, match=r"metric must be 'euclidean' or 'cosine' .* give rows as X and"):
        clone(model).set_params(metric="precomputed").fit(SQUARE)


@pytest.mark.parametrize("model", [*BY_NEIGHBOURS, *ON_DISTANCES, LPP(), SpectralRegression()], ids=str)
@pytest.mark.parametrize("metric", ["manhattan", None, 3])
def test_no_other_metric(rng, model, metric):
    with pytest.raises(ValueError, match=rf"metric must be 'euclidean'.* 'cosine'.* Got {metric!r} instead"):
        clone(model).set_params(metric=metric).fit(rng.standard_normal((30, 3)))


def test_what_has_no_meaning(rng):
    X = rng.standard_normal((30, 3))
    D = euclidean_distances(X)
    for affinity in ("l1", "precomputed"):
        with pytest.raises(ValueError, match="metric must be 'euclidean' for affinity="):
            LaplacianEigenmaps(affinity=affinity, metric="cosine").fit(np.abs(X) if affinity == "l1" else D)
    for extension in ("rbf", "reconstruction", LatentVariable(), Reconstruction()):
        with pytest.raises(ValueError, match="extension must be a map of distances for metric='precomputed'"):
            Isomap(metric="precomputed", extension=extension).fit(D)
        with pytest.raises(ValueError, match="extension must be a map of distances for metric='precomputed'"):
            OutOfSample(Isomap(metric="precomputed"), extension).fit(D)
    with pytest.raises(ValueError, match="landmarks must be None where X holds distances"):
        OutOfSample(Isomap(metric="precomputed"), landmarks=20).fit(D)
    for model in (ClassicalMDS(), DiffusionMaps(), LaplacianEigenmaps(affinity="full")):
        with pytest.raises(TypeError, match="dense data is required"):
            clone(model).set_params(metric="precomputed").fit(sp.csr_array(D))
    with pytest.raises(ValueError, match="X must hold all distances for classical scaling"):
        ComposedEmbedding(objectives.MDS(metric="precomputed")).fit(stored(D))
    for arguments in ({"n_neighbors": 5, "radius": 1.0}, {"radius": 1.0}):
        with pytest.raises(ValueError, match="Both n_neighbors and radius are provided: one of them must be None"):
            Isomap(**arguments).fit(X)
    with pytest.raises(ValueError, match="n_neighbors must be an integer, or None with a radius"):
        Isomap(n_neighbors=None).fit(X)
    with pytest.raises(ValueError, match="radius must be a positive"):
        Isomap(n_neighbors=None, radius=-1.0).fit(X)
    with pytest.raises(ValueError, match="neighbors must be None with a radius"):
        Isomap(n_neighbors=None, radius=1.0, neighbors=plain_nearest(D, 5)).fit(X)


def test_extensions_of_distances(rng):
    X, new = rng.standard_normal((60, 3)), rng.standard_normal((9, 3))
    Y = Isomap(2).fit(X).embedding_
    D, E = euclidean_distances(X), euclidean_distances(new, X)
    for extension in (LatentVariable(4), Nystrom(6), Nystrom(), LandmarkIsomap(6), LandmarkIsomap(None, radius=1.5)):
        plain, other = clone(extension).fit(X, Y), clone(extension).set_params(metric="precomputed").fit(D, Y)
        np.testing.assert_allclose(other.predict(E), plain.predict(new), atol=1e-7)
        assert other.X_ is None
        mapped = Isomap(2, metric="precomputed", extension=clone(other)).fit(D)
        np.testing.assert_allclose(mapped.transform(E), other.predict(E), atol=1e-7)
    with pytest.raises(ValueError, match=r"metric must be 'euclidean' or 'cosine'\. Got 'precomputed'"):
        Reconstruction(metric="precomputed").fit(D, Y)


@pytest.mark.parametrize("metric", ["cosine", "precomputed"])
@pytest.mark.parametrize(
    "model",
    [LaplacianEigenmaps(), Isomap(), Isomap(n_neighbors=None, radius=np.inf), ClassicalMDS(n_landmarks=9)],
    ids=str,
)
def test_maps_are_restored(rng, model, metric):
    X = rng.standard_normal((40, 3))
    rows = X if metric == "cosine" else euclidean_distances(X)
    extension = clone(model).set_params(metric=metric).fit(rows).extension_
    fitted = getattr(extension, "map_", extension)
    again = restore(json.loads(json.dumps(fitted.header())), fitted.arrays())
    np.testing.assert_array_equal(again.predict(rows[:7]), fitted.predict(rows[:7]))
    assert metric == "cosine" or "rows" not in fitted.arrays()


def test_models_of_distances_do_not_keep_the_matrix(rng):
    import pickle

    D = euclidean_distances(rng.standard_normal((400, 3)))
    model = LaplacianEigenmaps(metric="precomputed").fit(D)
    assert len(pickle.dumps(model)) < D.nbytes / 4


def test_radius_neighbours_graph_as_input(rng):
    X = rng.uniform(0, 1, (80, 2))
    g = radius_neighbors_graph(X, 0.4, mode="distance")
    model = Isomap(n_neighbors=None, radius=0.4, metric="precomputed").fit(g)
    np.testing.assert_allclose(model.embedding_, Isomap(n_neighbors=None, radius=0.4).fit(X).embedding_, atol=1e-8)


NAMED = [("lvm", LatentVariable), ("reconstruction", Reconstruction), ("landmark_isomap", LandmarkIsomap)]


@pytest.mark.parametrize(("name", "kind"), NAMED)
@pytest.mark.parametrize("model", [LaplacianEigenmaps(2), LocallyLinearEmbedding(2), ClassicalMDS(2)], ids=str)
def test_a_named_extension_has_the_metric_of_the_embedding(rng, model, name, kind):
    X, new = rows_of(rng) + 1.0, rows_of(rng, 9) + 1.0
    fitted = clone(model).set_params(metric="cosine", extension=name).fit(X)
    expected = kind(metric="cosine").fit(X, fitted.embedding_)
    if (type(model), name) != (LocallyLinearEmbedding, "reconstruction"):  # whose natural map has its own neighbours
        np.testing.assert_array_equal(fitted.transform(new), expected.predict(new))
    around = OutOfSample(clone(model).set_params(metric="cosine"), name).fit(X)
    np.testing.assert_array_equal(around.transform(new), fitted.transform(new))
    # Lengths of rows do not count, but for the weights of a reconstruction.
    if name != "reconstruction":
        np.testing.assert_allclose(fitted.transform(3.0 * new), fitted.transform(new), atol=1e-9)


def test_out_of_sample_follows_the_metric_of_any_embedder(rng):
    X, new = rows_of(rng), rows_of(rng, 9)
    theirs = TheirIsomap(n_neighbors=8, metric="cosine")
    model = OutOfSample(theirs).fit(X)
    expected = LatentVariable(metric="cosine").fit(X, model.embedding_)
    np.testing.assert_array_equal(model.transform(new), expected.predict(new))
    D, E = euclidean_distances(X), euclidean_distances(new, X)
    for embedder in (Isomap(), TheirIsomap(n_neighbors=8), LaplacianEigenmaps()):
        for name in ("lvm", "landmark_isomap"):
            plain = OutOfSample(clone(embedder), name).fit(X)
            given = OutOfSample(clone(embedder).set_params(metric="precomputed"), name).fit(D)
            np.testing.assert_allclose(given.transform(E), plain.transform(new), atol=1e-6)
            assert given.__sklearn_tags__().input_tags.pairwise


@pytest.mark.parametrize("stored", [1, 3, 9])
def test_local_widths_of_few_stored_distances(rng, stored):
    """Widths are from the five nearest that a row stores, or from as many as there are."""
    X, new = rng.standard_normal((40, 3)), rng.standard_normal((7, 3))
    D, Y = euclidean_distances(X), X[:, :2]
    S, T = kneighbors_graph(X, stored, mode="distance"), NearestNeighbors(n_neighbors=stored).fit(X)
    near = np.sort(np.where(np.eye(40, dtype=bool), np.inf, D), axis=1)[:, : min(stored, 5)]
    beta = np.square(near).mean(axis=1) / 4
    edges = np.minimum(*(np.where(M > 0, M, np.inf) for M in (S.toarray(), S.toarray().T)))
    radius = 0.9
    with np.errstate(over="ignore"):
        heat = np.exp(-np.minimum(np.square(edges) / np.sqrt(np.outer(beta, beta)), 30.0))
    expected = np.where(edges <= radius, heat, 0.0)
    np.testing.assert_allclose(radius_graph(S, radius, metric="precomputed").toarray(), expected, atol=1e-12)

    E = T.kneighbors_graph(new, mode="distance")
    for extension in (LatentVariable(1, "local", "precomputed"), Nystrom(1, "local", metric="precomputed")):
        mapped = extension.fit(S, Y)
        np.testing.assert_allclose(mapped.beta_, beta, rtol=1e-12)
        assert np.isfinite(mapped.predict(E)).all()


@pytest.mark.parametrize("k", [1, 2, 3])
def test_local_widths_are_the_same_however_distances_come(rng, k):
    X, new = rng.standard_normal((60, 3)), rng.standard_normal((9, 3))
    D, E = euclidean_distances(X), euclidean_distances(new, X)
    stored = kneighbors_graph(X, 7, mode="distance")
    new_stored = NearestNeighbors(n_neighbors=8).fit(X).kneighbors_graph(new, mode="distance")
    plain = knn_graph(X, k).toarray()
    for other in (D, stored):
        np.testing.assert_allclose(knn_graph(other, k, metric="precomputed").toarray(), plain, atol=1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the graph falls apart
        for kind in (LaplacianEigenmaps, DiffusionMaps):
            model = kind(2, n_neighbors=k, connect=False)
            rows = clone(model).fit(X)
            for at_fit, at_transform in ((D, E), (stored, new_stored)):
                given = clone(model).set_params(metric="precomputed").fit(at_fit)
                width, own = (m._source.width for m in (given, rows))
                np.testing.assert_allclose(width, own, rtol=1e-12)
                assert given.transform(at_transform).shape == (9, 2)
        Y = X[:, :2]
        means = LatentVariable(k, "local").fit(X, Y).predict(new)
        for at_fit, at_transform in ((D, E), (stored, new_stored)):
            given = LatentVariable(k, "local", "precomputed").fit(at_fit, Y)
            np.testing.assert_allclose(given.predict(at_transform), means, atol=1e-12)
