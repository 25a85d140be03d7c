"""OutOfSample: other people's embedders, landmarks, pipelines, and every estimator with every extension."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_digits, make_swiss_roll
from sklearn.decomposition import PCA
from sklearn.manifold import MDS, TSNE, SpectralEmbedding
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

import manifast
from manifast import OutOfSample
from manifast.extensions import EXTENSIONS, RBF, LatentVariable

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
        MDS(3, random_state=0, n_init=1, max_iter=20, init="random"),
        TSNE(2, random_state=0, max_iter=250, init="pca"),
        manifast.Isomap(3),
    ],
    ids=lambda e: type(e).__name__,
)
@pytest.mark.filterwarnings("ignore")
def test_embedders_without_transform(split, embedder):
    X, _, new, _ = split
    model = OutOfSample(embedder).fit(X)
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
    with pytest.raises(ValueError, match="extension must be None, one of"):
        OutOfSample(PCA(2), "magic").fit(X)
    with pytest.raises(ValueError, match="landmarks must be an integer from 1 to 400"):
        OutOfSample(PCA(2), landmarks=500).fit(X)
    with pytest.raises(ValueError, match="landmarks must be"):
        OutOfSample(PCA(2), landmarks=1.5).fit(X)
    with pytest.raises(ValueError, match="landmark_method must be"):
        OutOfSample(PCA(2), landmarks=50, landmark_method="best").fit(X)
