"""OutOfSample: other people's embedders, landmarks, pipelines, and every estimator with every extension."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_digits, make_swiss_roll
from sklearn.decomposition import PCA
from sklearn.manifold import MDS, TSNE, SpectralEmbedding
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags

import manifast
from manifast import OutOfSample
from manifast.extensions import EXTENSIONS, RBF, LandmarkIsomap, LatentVariable, Nystrom, Reconstruction

ESTIMATORS = [
    manifast.LaplacianEigenmaps(8, affinity="full"),
    manifast.LaplacianEigenmaps(8),
    manifast.LocallyLinearEmbedding(8, n_neighbors=12),
    manifast.LTSA(8, n_neighbors=12),
    manifast.LocalRegressionEmbedding(8, n_neighbors=12),
    manifast.Isomap(8),
    manifast.SupervisedLaplacianEigenmaps(8),
    manifast.FisherEmbedding(8, n_neighbors_between=10),
    manifast.LabelEncoding(),
]


@pytest.fixture(scope="module")
def split():
    X, y = load_digits(return_X_y=True)
    return X[:400], y[:400], X[400:600], y[400:600]


@pytest.mark.parametrize(
    "embedder",
    [
        SpectralEmbedding(3, random_state=0),
        MDS(3, random_state=0, n_init=1, max_iter=20),  # `init` is younger than the lowest scikit-learn
        TSNE(2, random_state=0, max_iter=250, init="pca"),
        manifast.Isomap(3),
    ],
    ids=lambda e: type(e).__name__,
)
@pytest.mark.filterwarnings("ignore")
def test_embedders_without_transform(split, embedder):
    X, _, new, _ = split
    model = OutOfSample(embedder, "rbf").fit(X)
    Y = clone(embedder).fit_transform(X)
    np.testing.assert_allclose(model.embedding_, Y, atol=1e-4 * np.abs(Y).max())
    np.testing.assert_allclose(model.transform(X), model.embedding_, atol=1e-5 * np.abs(Y).max())
    whole = model.transform(new)
    np.testing.assert_array_equal(model.transform(new[7:8]), whole[7:8])
    expected = RBF().fit(X, model.embedding_).predict(new)
    np.testing.assert_array_equal(whole, expected)


@pytest.mark.parametrize("extension", list(EXTENSIONS))
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__ + "-" + getattr(e, "affinity", ""))
def test_every_estimator_with_every_extension(split, estimator, extension, request):
    """Held-out digits keep most of their neighbours. With -s the accuracies are printed."""
    X, y, new, y_new = split
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = clone(estimator).set_params(extension=extension).fit(X, y)
        mapped = model.transform(new)
    assert mapped.shape == (200, model.embedding_.shape[1])
    # Triangulation brings embeddings other than Isomap's back turned and stretched, training rows as well as new ones.
    known = model.transform(X) if extension == "landmark_isomap" else model.embedding_
    accuracy = KNeighborsClassifier(1).fit(known, y).score(mapped, y_new)
    print(f"{type(estimator).__name__:<28} {extension:<16} {100 * accuracy:5.1f} %")
    assert accuracy > 0.4  # chance is 0.1


def test_landmarks():
    X = make_swiss_roll(3000, random_state=0)[0]
    for landmarks, count in ((300, 300), (0.1, 300)):
        model = OutOfSample(manifast.LTSA(n_neighbors=8), RBF(scale=0.3), landmarks=landmarks).fit(X)
        assert len(model.landmarks_) == count
        assert model.embedding_.shape == (3000, 2)
        direct = clone(model.embedder).fit_transform(X[model.landmarks_])
        np.testing.assert_allclose(model.embedding_[model.landmarks_], direct, atol=1e-8)
        others = np.setdiff1d(np.arange(3000), model.landmarks_)
        np.testing.assert_array_equal(model.embedding_[others], model.transform(X[others]))
    spread = OutOfSample(manifast.LTSA(n_neighbors=8), RBF(scale=0.3), landmarks=300, landmark_method="kmeans").fit(X)
    assert 250 < len(spread.landmarks_) <= 300

    def widest_gap(rows):
        return manifast.kernels.knn(X[rows], 1, queries=X)[0].max()

    assert widest_gap(spread.landmarks_) < widest_gap(model.landmarks_)


def test_pipeline_and_grid_search(split):
    X, y, new, y_new = split
    pipeline = make_pipeline(OutOfSample(PCA(10), LatentVariable()), KNeighborsClassifier(1))
    search = GridSearchCV(
        pipeline, {"outofsample__embedder__n_components": [2, 10], "outofsample__extension": ["linear", "rbf"]}, cv=3
    )
    search.fit(X, y)
    assert search.best_params_["outofsample__embedder__n_components"] == 10
    assert search.score(new, y_new) > 0.85


def accuracy(model, split):
    X, y, new, y_new = split
    return KNeighborsClassifier(1).fit(model.fit(X).embedding_, y).score(model.transform(new), y_new)


@pytest.mark.filterwarnings("ignore:the graph has")
def test_the_default_map():
    """The mean of few neighbours beats the interpolation where an embedding keeps little but neighbours."""
    X, y = load_digits(return_X_y=True)
    split = X[:1000], y[:1000], X[1000:], y[1000:]
    model = OutOfSample(manifast.LaplacianEigenmaps(10))
    assert accuracy(model, split) > 0.01 + accuracy(OutOfSample(manifast.LaplacianEigenmaps(10), "rbf"), split)
    assert isinstance(model.extension_, LatentVariable)


@pytest.mark.filterwarnings("ignore:the graph has")
@pytest.mark.parametrize(
    "embedder, name",
    [
        (manifast.LaplacianEigenmaps(10), "nystrom"),
        (manifast.LaplacianEigenmaps(10, n_neighbors=12, affinity="binary", extension="rbf"), "nystrom"),
        (manifast.LaplacianEigenmaps(3, affinity="full", beta=300.0), "nystrom"),
        (manifast.LocallyLinearEmbedding(5, n_neighbors=15, reg=1e-2), "reconstruction"),
        (manifast.Isomap(5, n_neighbors=6), "landmark_isomap"),
    ],
)
def test_named_maps_inherit_the_graph(split, embedder, name):
    X, _, new, _ = split
    own = clone(embedder).set_params(extension=None).fit(X)
    model = OutOfSample(embedder, name).fit(X)
    np.testing.assert_array_equal(model.transform(new), own.transform(new))
    np.testing.assert_array_equal(model.embedding_, own.embedding_)
    # An instance is taken as it is.
    plain = OutOfSample(embedder, EXTENSIONS[name]()).fit(X)
    assert {type(plain.extension_)} <= {Nystrom, Reconstruction, LandmarkIsomap}
    np.testing.assert_array_equal(plain.transform(new), EXTENSIONS[name]().fit(X, own.embedding_).predict(new))


@pytest.mark.filterwarnings("ignore")
def test_nystrom_takes_the_graph_of_spectral_embedding(split):
    for embedder in (
        SpectralEmbedding(5, n_neighbors=15, random_state=0),
        SpectralEmbedding(5, affinity="rbf", gamma=2e-3, random_state=0),
    ):
        assert accuracy(OutOfSample(embedder, "nystrom"), split) > accuracy(OutOfSample(embedder, Nystrom()), split)
    # The full graph is the embedder's own, so that the map gives training rows back what they had.
    model = OutOfSample(embedder, "nystrom").fit(split[0])
    np.testing.assert_allclose(model.transform(split[0]), model.embedding_, atol=1e-3 * np.abs(model.embedding_).max())


@pytest.mark.filterwarnings("ignore:the graph has")
@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array, sp.csr_matrix])
@pytest.mark.filterwarnings("ignore:60 landmarks are too few")
@pytest.mark.parametrize("options", [{}, {"landmarks": 0.5}, {"landmarks": 60, "landmark_method": "kmeans"}], ids=str)
@pytest.mark.parametrize(
    "embedder, extension",
    [
        (manifast.LaplacianEigenmaps(3), "lvm"),
        (manifast.LaplacianEigenmaps(3), "nystrom"),
        (manifast.Isomap(3), "landmark_isomap"),
        (PCA(3, svd_solver="arpack", random_state=0), LatentVariable(2)),
    ],
)
def test_sparse_rows(split, embedder, extension, options, form):
    if not get_tags(embedder).input_tags.sparse:
        pytest.skip("this scikit-learn does not say that its embedder takes sparse rows")
    X, _, new, _ = split
    dense = OutOfSample(embedder, extension, **options).fit(X)
    model = OutOfSample(embedder, extension, **options).fit(form(X))
    np.testing.assert_array_equal(model.landmarks_, dense.landmarks_)
    scale = np.abs(dense.embedding_).max()
    np.testing.assert_allclose(np.abs(model.embedding_), np.abs(dense.embedding_), atol=1e-6 * scale)
    np.testing.assert_allclose(np.abs(model.transform(form(new))), np.abs(dense.transform(new)), atol=1e-6 * scale)


def test_sparse_rows_refused(split):
    X = sp.csr_array(split[0])
    with pytest.raises(ValueError, match=r"X must be dense for the map 'rbf': use X.toarray\(\), or one of 'lvm'"):
        OutOfSample(PCA(2), "rbf").fit(X)
    with pytest.raises(ValueError, match="X must be dense for the embedder LTSA, which takes no sparse rows"):
        OutOfSample(manifast.LTSA()).fit(X)
    model = OutOfSample(PCA(2), "rbf").fit(split[0])
    with pytest.raises(ValueError, match="X must be dense for the map"):
        model.transform(X)

    class Dense(BaseEstimator):
        def fit_transform(self, X):
            return X.toarray()[:, :2]

    assert OutOfSample(Dense()).fit(X).transform(X[:3]).shape == (3, 2)


@pytest.mark.filterwarnings("ignore:.*landmarks are too few")
def test_labels_reach_the_embedder(split):
    class ByLabel(BaseEstimator):
        def fit_transform(self, X, y):
            return np.column_stack([y, X[:, 0]]).astype(float)

    X, y, _, _ = split
    model = OutOfSample(ByLabel(), landmarks=100).fit(X, y)
    np.testing.assert_array_equal(model.embedding_[model.landmarks_, 0], y[model.landmarks_])


def test_bad_input(split):
    X = split[0]
    with pytest.raises(ValueError, match="embedder must have fit_transform"):
        OutOfSample(KNeighborsClassifier()).fit(X)
    for extension in ("magic", None):
        with pytest.raises(ValueError, match=f"extension must be one of .* Got {extension!r} instead"):
            OutOfSample(PCA(2), extension).fit(X)
    with pytest.raises(ValueError, match="landmarks must be an integer from 1 to 400"):
        OutOfSample(PCA(2), landmarks=500).fit(X)
    with pytest.raises(ValueError, match="landmarks must be"):
        OutOfSample(PCA(2), landmarks=1.5).fit(X)
    with pytest.raises(ValueError, match="landmark_method must be"):
        OutOfSample(PCA(2), landmarks=50, landmark_method="best").fit(X)


def test_the_farthest_rows(rng):
    X = rng.standard_normal((400, 3))
    model = OutOfSample(manifast.ClassicalMDS(2), "linear", landmarks=60, landmark_method="farthest").fit(X)
    # Greedy, by the plain definition.
    distances = np.linalg.norm(X[:, None] - X, axis=2)
    chosen = [int(np.argmax(np.linalg.norm(X - X.mean(axis=0), axis=1)))]
    while len(chosen) < 60:
        chosen.append(int(np.argmax(distances[chosen].min(axis=0))))
    np.testing.assert_array_equal(model.landmarks_, np.sort(chosen))
    copies = np.repeat(X[:5], 20, axis=0)
    model = OutOfSample(manifast.ClassicalMDS(2), "linear", landmarks=40, landmark_method="farthest").fit(copies)
    assert len(np.unique(model.landmarks_)) == 40 and len(np.unique(copies[model.landmarks_], axis=0)) == 5


def test_the_error_on_held_out_landmarks(rng):
    X, _ = make_swiss_roll(1500, random_state=0)
    errors = []
    for count in (80, 300, 1000):
        model = OutOfSample(manifast.Isomap(2), landmarks=count).fit(X)
        errors.append(model.landmark_error_)
        rows, Y = X[model.landmarks_], model.embedding_[model.landmarks_]
        held = np.arange(count) % 5 == 4
        missed = LatentVariable().fit(rows[~held], Y[~held]).predict(rows[held]) - Y[held]
        np.testing.assert_allclose(errors[-1], np.linalg.norm(missed) / np.linalg.norm(Y[held] - Y[held].mean(axis=0)))
    assert errors[0] > 1.5 * errors[1] > 1.5 * 1.5 * errors[2] and errors[2] < 0.05
    assert not hasattr(OutOfSample(manifast.Isomap(2)).fit(X[:200]), "landmark_error_")
    assert np.isnan(OutOfSample(manifast.ClassicalMDS(2), landmarks=8).fit(X).landmark_error_)
    noise = rng.standard_normal((500, 20))
    with pytest.warns(UserWarning, match="40 landmarks are too few for this map: .* Use more of them"):
        OutOfSample(manifast.ClassicalMDS(5), landmarks=40).fit(noise)
