"""Estimators on neighbours found by clusters: `neighbors="approximate"`, "auto", `graph_recall_`, what a fit says."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from manifast import (
    GFHF,
    LGRM,
    LPP,
    LTSA,
    DiffusionMaps,
    ElasticEmbedding,
    Isomap,
    LaplacianEigenmaps,
    LocallyLinearEmbedding,
    _neighbors,
)
from manifast.graphs import full_graph
from manifast.graphs.distances import Euclidean
from manifast.kernels import approximate_knn, knn


def roll(n=3000, p=12):
    rng = np.random.default_rng(0)
    t, height = 1.5 * np.pi * (1 + 2 * rng.random(n)), 21 * rng.random(n)
    turn = np.linalg.qr(rng.standard_normal((p, 3)))[0]
    return np.column_stack([t * np.cos(t), height, t * np.sin(t)]) @ turn.T + 0.01 * rng.standard_normal((n, p))


@pytest.mark.parametrize(
    "model",
    [
        LaplacianEigenmaps(2, n_neighbors=10),
        LaplacianEigenmaps(2, n_neighbors=10, affinity="binary", constraint="identity"),
        DiffusionMaps(2, n_neighbors=10),
        LocallyLinearEmbedding(2, n_neighbors=10),
        LocallyLinearEmbedding(2, n_neighbors=10, method="modified"),
        LTSA(2),
        Isomap(2, n_neighbors=10, n_landmarks=50),
        LPP(2, n_neighbors=10),
    ],
    ids=lambda model: f"{type(model).__name__}-{getattr(model, 'method', '')}{getattr(model, 'constraint', '')}",
)
def test_same_as_lists_given(model):
    """The embedding is the one of the lists, the recall theirs, and new rows have an image."""
    X = roll()
    found = model.set_params(neighbors="approximate").fit(X)
    embedding, recall = found.embedding_, found.graph_recall_
    assert found.transform(X[:5]).shape == (5, 2)
    k = found.n_neighbors or 8
    distances, indices, estimate = approximate_knn(X, k)
    assert recall == estimate >= 0.95
    lists = model.set_params(neighbors=(distances, indices)).fit(X)
    assert np.array_equal(lists.embedding_, embedding)
    assert not hasattr(lists, "graph_recall_")


def test_embedding_close_to_the_exact_one():
    X = roll()
    exact = LaplacianEigenmaps(2, n_neighbors=10).fit(X)
    close = LaplacianEigenmaps(2, n_neighbors=10, neighbors="approximate").fit(X)
    assert not hasattr(exact, "graph_recall_")
    for one, other in zip(exact.embedding_.T, close.embedding_.T, strict=True):
        assert abs(np.corrcoef(one, other)[0, 1]) > 0.999


def test_auto_is_exact_for_few_rows_and_few_features(monkeypatch):
    X = roll(2500)
    auto = LaplacianEigenmaps(2, neighbors="auto").fit(X)
    assert auto.graph_recall_ == 1.0
    assert np.array_equal(auto.embedding_, LaplacianEigenmaps(2).fit(X).embedding_)
    monkeypatch.setattr(_neighbors, "_MANY", 2500)
    called = []
    by_clusters = Euclidean.nearest_by_clusters
    monkeypatch.setattr(Euclidean, "nearest_by_clusters", lambda *given: called.append(1) or by_clusters(*given))
    LaplacianEigenmaps(2, neighbors="auto").fit(X[:, :8])
    assert not called
    LaplacianEigenmaps(2, neighbors="auto").fit(X)
    assert called


def test_recall_of_another_fit_is_forgotten():
    X = roll(500)
    model = LaplacianEigenmaps(2, neighbors="auto").fit(X)
    assert model.graph_recall_ == 1.0
    assert not hasattr(model.set_params(neighbors=None).fit(X), "graph_recall_")


def test_by_some_labels():
    X = roll()
    y = np.where(np.arange(len(X)) % 10 == 0, (X[:, 0] > 0).astype(int), -1)
    for model in (GFHF(neighbors="approximate"), ElasticEmbedding(neighbors="approximate", gamma=1e-3)):
        assert model.fit(X, y).graph_recall_ >= 0.95
    model = GFHF(neighbors="auto").fit(X, y)
    assert model.graph_recall_ == 1.0
    assert not hasattr(model.set_params(neighbors=None).fit(X, y), "graph_recall_")


def test_cliques():
    X = roll()[:, :5]
    assert LGRM(2, neighbors="auto", sigma=10.0).fit(X[:400]).graph_recall_ == 1.0


def test_bad_choice():
    X = roll(50)
    for model in (LaplacianEigenmaps(neighbors="fast"), LTSA(neighbors="fast"), Isomap(neighbors="fast")):
        with pytest.raises(ValueError, match=r"neighbors must be None, 'approximate', 'auto' or a pair .*Got 'fast'"):
            model.fit(X)


@pytest.mark.parametrize("neighbors", ["approximate", "lists"])
def test_graphs_without_neighbours(neighbors):
    """Neighbours are refused where a graph would not use them; "auto" leaves the choice to the method."""
    X = roll(60)
    y = np.where(np.arange(60) < 10, np.arange(60) % 2, -1)
    lists = knn(X, 5)
    given = {"neighbors": lists if neighbors == "lists" else neighbors}
    W = full_graph(X)
    cases = [
        (LaplacianEigenmaps(affinity="full", **given), X, None, "a full graph, which joins all rows"),
        (LaplacianEigenmaps(affinity="l1", **given), X, None, "the graph of sparse codes"),
        (LaplacianEigenmaps(affinity="precomputed", **given), W, None, "a graph that is given"),
        (GFHF(graph="full", **given), X, y, "a full graph"),
        (GFHF(graph="precomputed", **given), W, y, "a graph that is given"),
        (ElasticEmbedding(graph="full", **given), X, y, "a full graph"),
        (ElasticEmbedding(graph=W, **given), X, y, "a graph that is given"),
    ]
    if neighbors == "approximate":  # lists make a graph of neighbours
        cases.append((DiffusionMaps(**given), X, None, "a full graph"))
    for model, rows, labels, graph in cases:
        with pytest.raises(ValueError, match=f"neighbors must be None or 'auto' for {graph}.*a graph of neighbours"):
            model.fit(rows, labels)
    assert not hasattr(DiffusionMaps(neighbors="auto").fit(X), "graph_recall_")


def test_sparse_rows():
    X = sp.csr_array(np.round(np.abs(roll(300)), 1))
    with pytest.raises(ValueError, match="neighbors must not be 'approximate' for a sparse X or a matrix"):
        LaplacianEigenmaps(neighbors="approximate").fit(X)
    assert LaplacianEigenmaps(neighbors="auto").fit(X).graph_recall_ == 1.0


def test_angles():
    """Neighbours by cosine are those of unit rows."""
    X = roll() + 20.0
    angles = LaplacianEigenmaps(2, n_neighbors=10, metric="cosine")
    close = angles.set_params(neighbors="approximate").fit(X)
    embedding = close.embedding_
    assert close.graph_recall_ >= 0.95
    exact = angles.set_params(neighbors=None).fit(X).embedding_
    assert abs(np.corrcoef(embedding[:, 0], exact[:, 0])[0, 1]) > 0.99


def test_distances_instead_of_rows():
    D = np.linalg.norm(roll(80)[:, None] - roll(80), axis=2)
    with pytest.raises(ValueError, match="neighbors must not be 'approximate' for a sparse X or a matrix"):
        LaplacianEigenmaps(metric="precomputed", neighbors="approximate").fit(D)
    assert LaplacianEigenmaps(metric="precomputed", neighbors="auto").fit(D).graph_recall_ == 1.0


def test_a_long_exact_search_says_so(monkeypatch):
    X = roll(1200)
    assert (_neighbors._MANY, _neighbors._FEATURES) == (50_000, 9)
    LaplacianEigenmaps(2).fit(X)
    monkeypatch.setattr(_neighbors, "_MANY", 1200)
    said = r"the exact search for 8 neighbours of 1200 rows will take about [\d.]+ s: neighbors='approximate' is far"
    with pytest.warns(UserWarning, match=said):
        LaplacianEigenmaps(2).fit(X)
    for model in (LaplacianEigenmaps(2, neighbors="auto"), LaplacianEigenmaps(2, neighbors="approximate")):
        model.fit(X)  # warnings are errors
    LaplacianEigenmaps(2).fit(X[:1199])
    LaplacianEigenmaps(2).fit(X[:, :8])


def test_durations():
    assert [_neighbors._duration(seconds) for seconds in (2.34, 59.6, 600)] == ["2.3 s", "60 s", "10 min"]


def test_few_approximate_neighbours_have_the_widths_of_five(rng):
    """Five are searched for the widths of rows, but only the edges to `n_neighbors` of them are kept."""
    X = rng.standard_normal((300, 12))
    exact = LaplacianEigenmaps(1, n_neighbors=3).fit(X)
    close = LaplacianEigenmaps(1, n_neighbors=3, neighbors="approximate").fit(X)
    assert close.graph_recall_ == 1.0
    np.testing.assert_array_equal(close.affinity_matrix_.toarray(), exact.affinity_matrix_.toarray())
