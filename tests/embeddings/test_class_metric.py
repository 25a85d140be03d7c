"""metric="euclidean" | "within" | "auto" of methods by labels, and RBFDiscriminantCV."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.covariance import ledoit_wolf_shrinkage
from sklearn.datasets import load_digits

from manifast import (
    LDE,
    LFDA,
    NSSE,
    NSSECV,
    FisherEmbedding,
    LabelEncoding,
    RBFDiscriminant,
    RBFDiscriminantCV,
    SupervisedIsomap,
    SupervisedLaplacianEigenmaps,
    load,
    save,
)
from manifast._labels import Labels
from manifast._whitening import shrinkage, whitening
from manifast.kernels import knn
from manifast.theory import generalization_report

EMBEDDINGS = [
    NSSE(),
    NSSECV(n_components=[1, 2], mu2=[0.3], mu3=[30.0], n_splits=2),
    SupervisedLaplacianEigenmaps(),
    FisherEmbedding(),
    LabelEncoding(),
    LDE(),
    LDE(kernel="rbf"),
    LFDA(),
    SupervisedIsomap(),
]


def stretched(n=60, p=6, seed=0, size=8.0):
    """Three classes that differ along small directions, and vary inside along large ones, mixed by a rotation."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = rng.standard_normal((n, p)) * np.r_[np.full(p - 2, size), 0.3, 0.3]
    X[:, -2:] += 2.0 * np.eye(3)[y][:, :2]
    turn = np.linalg.qr(np.random.default_rng(7).standard_normal((p, p)))[0]
    return X @ turn, y


def test_features_that_never_vary_say_nothing():
    X, y = stretched()
    more = np.column_stack([X, np.full(60, 3.0)])
    model, plain = (RBFDiscriminantCV(metric="within").fit(rows, y) for rows in (more, X))
    new = np.column_stack([stretched(seed=5)[0], np.linspace(-50, 50, 60)])
    np.testing.assert_allclose(model.transform(new), plain.transform(new[:, :-1]), rtol=1e-9, atol=1e-9)


def metric_matrix(X, y):
    """The inverse of the shrunk covariance inside the classes, by the formulas."""
    inside = X - np.stack([X[y == c].mean(axis=0) for c in np.unique(y)])[y]
    scale = np.sqrt((inside**2).mean(axis=0))
    Z = inside / scale
    share = ledoit_wolf_shrinkage(Z, assume_centered=True)
    S = (1 - share) * Z.T @ Z / len(Z) + share * np.mean(Z**2) * np.eye(Z.shape[1])
    return np.linalg.inv(scale[:, None] * S * scale)


@pytest.mark.parametrize(("n", "p"), [(60, 6), (40, 90)])
def test_whitening_is_the_shrunk_mahalanobis_metric(n, p):
    X, y = stretched(n, p)
    inside = X - np.stack([X[y == c].mean(axis=0) for c in range(3)])[y]
    assert shrinkage(inside) == pytest.approx(ledoit_wolf_shrinkage(inside, assume_centered=True), rel=1e-9)
    found = whitening(X, Labels(np.arange(3), y)).predict(X)
    M = metric_matrix(X, y)
    expected = [[(a - b) @ M @ (a - b) for b in X] for a in X[:9]]
    ours = ((found[:9, None] - found[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(ours, expected, rtol=1e-6, atol=1e-8 * np.max(expected))


@pytest.mark.parametrize("model", EMBEDDINGS, ids=str)
def test_within_is_the_method_on_whitened_rows(model):
    X, y = stretched()
    new = stretched(seed=5)[0]
    turned = whitening(X, Labels(np.arange(3), y))
    measured = clone(model).set_params(metric="within").fit(X, y)
    plain = clone(model).fit(turned.predict(X), y)
    np.testing.assert_allclose(measured.embedding_, plain.embedding_, atol=1e-12)
    np.testing.assert_allclose(measured.transform(new), plain.transform(turned.predict(new)), atol=1e-12)
    assert measured.metric_ == "within"
    batch = measured.transform(new)
    assert all((measured.transform(new[i : i + 1]) == batch[i]).all() for i in range(len(new)))
    single = clone(measured).fit(X.astype(np.float32), y)
    assert single.transform(new.astype(np.float32)).dtype == np.float32
    if hasattr(measured, "components_"):
        linear = new @ measured.components_.T + measured.intercept_
        np.testing.assert_allclose(linear, measured.transform(new), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("model", [SupervisedLaplacianEigenmaps(), LabelEncoding(), RBFDiscriminant()], ids=str)
def test_auto_takes_the_better_metric(model):
    X, y = stretched(90, size=30.0)
    assert clone(model).set_params(metric="auto").fit(X, y).metric_ == "within"
    rng = np.random.default_rng(1)
    rings = rng.integers(1, 3, 120)
    angles = rng.uniform(0, 2 * np.pi, 120)
    circles = rings[:, None] * np.column_stack([np.cos(angles), np.sin(angles)])
    circles = np.column_stack([circles, 0.01 * rng.standard_normal((120, 8))])
    assert clone(model).set_params(metric="auto").fit(circles, rings).metric_ == "euclidean"


def test_labels_without_meaning_gain_nothing():
    """Whitening that had seen held-out labels would separate noise with more features than rows."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((80, 200)), np.arange(80) % 2
    for metric in ("within", "auto"):
        model = RBFDiscriminant(metric=metric).fit(X, y)
        assert model.loo_error_ > 0.3


@pytest.mark.parametrize("model", [*EMBEDDINGS, RBFDiscriminantCV()], ids=str)
def test_saved_models_keep_the_metric(model, tmp_path):
    X, y = stretched()
    new = stretched(seed=5)[0]
    fitted = clone(model).set_params(metric="within").fit(X, y)
    save(fitted, tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.transform(new), fitted.transform(new))
    if hasattr(fitted, "predict"):
        np.testing.assert_array_equal(again.predict_proba(new), fitted.predict_proba(new))


def test_reports_measure_in_the_metric():
    X, y = stretched()
    turned = whitening(X, Labels(np.arange(3), y))
    for model in (LabelEncoding(extension="rbf"), NSSE()):
        found = generalization_report(clone(model).set_params(metric="within").fit(X, y), X, y)
        plain = generalization_report(clone(model).fit(turned.predict(X), y), turned.predict(X), y)
        assert str(found) == str(plain)


def test_scale_of_the_rows_does_not_matter():
    X, y = stretched()
    new = stretched(seed=5)[0]
    for model in (SupervisedLaplacianEigenmaps(metric="within"), RBFDiscriminantCV(metric="within")):
        expected = model.fit(X, y).transform(new)
        for scale in (1e-150, 1e150):
            np.testing.assert_allclose(clone(model).fit(X * scale, y).transform(new * scale), expected, atol=1e-6)


def test_rows_of_a_class_that_do_not_differ():
    X = np.repeat(np.arange(3.0)[:, None], 4, axis=0)
    y = np.repeat([0, 1, 2], 4)
    with pytest.warns(UserWarning, match="not defined, as rows of one class do not differ"):
        model = LabelEncoding(metric="within").fit(X, y)
    assert model.metric_ == "euclidean"


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (NSSE(metric="cosine"), "metric must be one of 'euclidean', 'within', 'auto'. Got 'cosine' instead"),
        (RBFDiscriminant(metric=3), "metric must be one of"),
        (LDE(kernel="precomputed", metric="within"), "metric must be 'euclidean' where X holds kernel values"),
        (RBFDiscriminantCV(9), "n_components must be"),
    ],
)
def test_bad_input(model, message):
    X, y = stretched()
    K = X @ X.T
    with pytest.raises(ValueError, match=message):
        model.fit(K if getattr(model, "kernel", None) else X, y)


# RBFDiscriminantCV


@pytest.mark.parametrize("metric", ["auto", "euclidean", "within"])
def test_the_embedding_decides_as_predict_does(metric):
    X, y = load_digits(return_X_y=True)
    model = RBFDiscriminantCV(metric=metric).fit(X[:200], y[:200])
    mapped = model.transform(X[200:])
    nearest = knn(model.embedding_, 1, queries=mapped)[1][:, 0]
    scores = model.decision_function(X[200:])
    decided = np.ptp(scores, axis=1) > 1e-9  # rows far from all others have equal scores
    assert decided.mean() > 0.9
    np.testing.assert_array_equal(y[:200][nearest][decided], model.predict(X[200:])[decided])
    assert mapped.shape[1] == 9 and model.rule_ in ("gaussian", "label")
    assert len(np.unique(model.embedding_.round(9), axis=0)) == 10
    np.testing.assert_array_equal(RBFDiscriminantCV(metric=metric).fit_transform(X[:200], y[:200]), model.embedding_)
    three = RBFDiscriminantCV(3, metric=metric).fit(X[:200], y[:200])
    np.testing.assert_allclose(three.transform(X[200:]), mapped[:, :3], atol=1e-9)
    assert list(three.get_feature_names_out()) == [f"rbfdiscriminantcv{i}" for i in range(3)]


def both_metrics(dtype=np.float64):
    """Rows that neither metric classifies clearly better, new rows, and the model of the former."""
    X, y = load_digits(return_X_y=True)
    rows = np.concatenate([np.flatnonzero(y == c)[:10] for c in range(10)])
    new = np.setdiff1d(np.arange(len(y)), rows)[:300]
    X = X.astype(dtype)
    model = RBFDiscriminantCV().fit(X[rows], y[rows])
    assert model.metric_ == "both"
    return X[rows], y[rows], X[new], model


def test_scores_of_both_metrics_are_added():
    X, y, new, model = both_metrics()
    plain = RBFDiscriminantCV(metric="euclidean").fit(X, y)
    within = RBFDiscriminantCV(metric="within").fit(X, y)
    expected = plain.decision_function(new) + within.decision_function(new)
    scores = model.decision_function(new)
    np.testing.assert_allclose(scores - scores[:, :1], expected - expected[:, :1], rtol=1e-6, atol=1e-6)
    assert (model.sigma_, model.ridge_, model.rule_) == (plain.sigma_, plain.ridge_, plain.rule_)
    nearest = knn(model.embedding_, 1, queries=model.transform(new))[1][:, 0]
    decided = np.ptp(scores, axis=1) > 1e-9
    np.testing.assert_array_equal(y[nearest][decided], model.predict(new)[decided])
    np.testing.assert_allclose(model.predict_proba(new).sum(axis=1), 1)


def test_whitenings_of_both_shrinkages():
    """Distances of the second are those of scikit-learn's shrunk discriminant, up to the scaling by all classes."""
    from manifast._labels import Labels
    from manifast._whitening import shrinkage, whitening, whitenings

    X, y = load_digits(return_X_y=True)
    X, labels = X[:150, [2, 3, 4, 10, 11, 20, 28]], Labels(np.arange(10), y[:150])
    means = np.stack([X[y[:150] == c].mean(axis=0) for c in range(10)])
    inside = X - means[labels.codes]
    scale = np.maximum(np.sqrt((inside**2).mean(axis=0)), 0.05 * X.std(axis=0))
    inside /= scale
    shares = [shrinkage(inside), np.mean([shrinkage(inside[labels.codes == c]) for c in range(10)])]
    found = whitenings(X, labels)
    assert shares[1] > shares[0]
    for share, made in zip(shares, found, strict=True):
        covariance = (1 - share) * inside.T @ inside / 150 + share * (inside**2).mean() * np.eye(7)
        Z, scaled = made.predict(X), X / scale
        difference = scaled[:40] - scaled[40:80]
        expected = np.einsum("ij,ij->i", difference @ np.linalg.inv(covariance), difference)
        np.testing.assert_allclose(np.square(Z[:40] - Z[40:80]).sum(axis=1), expected, rtol=1e-9)
    np.testing.assert_array_equal(whitening(X, labels).predict(X), found[0].predict(X))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_bits_of_both_metrics(dtype):
    _, _, new, model = both_metrics(dtype)
    for method in (model.transform, model.decision_function):
        whole = method(new)
        assert whole.dtype == dtype
        np.testing.assert_array_equal(np.concatenate([method(row[None]) for row in new[:40]]), whole[:40])
        np.testing.assert_array_equal(method(np.asfortranarray(new)), whole)


def test_the_rule_does_not_learn_the_mark_of_left_out_rows(rng):
    # Outputs of rows left out of balanced classes, where rows say nothing: lower in the own class, and equal elsewhere.
    from manifast._labels import Labels
    from manifast.classifiers.discriminant import rule_error

    labels = Labels(np.arange(8), np.repeat(np.arange(8), 6))
    outputs = np.full((48, 8), 6 / 47)
    outputs[np.arange(48), labels.codes] = 5 / 47
    outputs += 1e-4 * rng.standard_normal(outputs.shape)
    assert rule_error(outputs, labels) == 1.0
    assert rule_error(labels.indicators + 1e-2 * rng.standard_normal(outputs.shape), labels) == 0.0


def test_the_search_of_nsse_whitens_without_the_labels_held_out(monkeypatch):
    rng, seen = np.random.default_rng(0), []
    X, y = rng.standard_normal((90, 6)), np.arange(90) % 3

    def spy(rows, labels):
        seen.append((len(rows), len(labels.codes)))
        return whitening(rows, labels)

    monkeypatch.setattr("manifast.embeddings.nsse.whitening", spy)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a choice at the edge of its grid says nothing here
        model = NSSECV(metric="within", mu2=(0.01, 1.0), mu3=(1.0,), n_components=(2,), n_splits=3).fit(X, y)
    assert model.metric_ == "within" and "_unwhitened" not in vars(model)
    assert seen == [(63, 63)] * 3
