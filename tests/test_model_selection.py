"""Folds, scores and pipelines where only some rows have a label."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_score,
)
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import check_estimator

from manifast import GFHF, SDA, ElasticEmbedding, expected_failed_checks
from manifast.model_selection import LabeledRows, LabeledSplit, labeled_scorer

pytestmark = pytest.mark.filterwarnings("ignore:the graph has .* connected components")


@pytest.fixture(scope="module")
def few():
    """300 digits of three classes, 30 of which have a label; and their classes."""
    X, y = load_digits(n_class=3, return_X_y=True)
    X, y = X[:300], y[:300]
    some = np.full(300, -1)
    for c in range(3):
        some[np.flatnonzero(y == c)[5:15]] = c
    return X, some, y


def marks(some):
    """The same labels with every mark of a row without one."""
    words = np.array(["a", "b", "c", None], dtype=object)[some]
    return [some, np.where(some < 0, np.nan, some), np.where(some < 0, None, some.astype(object)), words, list(words)]


def test_folds_of_the_labelled_rows(few):
    X, some, _ = few
    known = np.flatnonzero(some >= 0)
    expected = [known[test] for _, test in StratifiedKFold(5).split(known, some[known])]
    for y in marks(some):
        splitter = LabeledSplit()
        found = list(splitter.split(X, y))
        assert splitter.get_n_splits(X, y) == len(found) == 5
        for (train, test), hidden in zip(found, expected, strict=True):
            assert (test == hidden).all()
            assert (train == np.setdiff1d(np.arange(300), hidden)).all()
    assert repr(LabeledSplit(3)) == "LabeledSplit(cv=3)"


def test_folds_by_another_splitter(few):
    X, some, _ = few
    known = np.flatnonzero(some >= 0)
    chosen = ShuffleSplit(4, test_size=7, random_state=0)
    splitter = LabeledSplit(chosen)
    assert splitter.get_n_splits(X, some) == 4
    for (_, test), (_, inner) in zip(splitter.split(X, some), chosen.split(known), strict=True):
        assert (test == known[inner]).all()
    groups = np.arange(300) % 4
    folds = list(LabeledSplit(GroupKFold(4)).split(X, some, groups))
    assert sorted(np.concatenate([test for _, test in folds])) == known.tolist()
    assert all(len(set(groups[test])) == 1 for _, test in folds)


def test_no_more_folds_than_the_smallest_class_has_labels():
    y = np.array([0, 0, 0, 1, 1, 1, 1, -1])
    assert LabeledSplit(5).get_n_splits(y, y) == len(list(LabeledSplit(5).split(y, y))) == 3
    for cv, labels in ((5, [0, 0, 1, -1]), (1, [0, 0, 1, 1])):
        with pytest.raises(ValueError, match=r"at least 2 labelled rows .* -1, NaN or None .* Got cv ="):
            LabeledSplit(cv).get_n_splits(labels, labels)
    with pytest.raises(ValueError, match="cv must be an integer"):
        list(LabeledSplit("five").split(y, y))
    with pytest.raises(ValueError, match="at least one label"):
        list(LabeledSplit(2).split(y, np.full(8, -1)))
    with pytest.raises(ValueError, match="requires y"):
        LabeledSplit(2).get_n_splits(y)


def test_scores_of_the_labelled_rows(few):
    X, some, _ = few
    rows = some >= 0
    for labels in marks(some):
        model = LabeledRows(KNeighborsClassifier(15)).fit(X, labels)
        found = model.predict(X)[rows]
        truth = model.classes_[some[rows]]
        assert labeled_scorer()(model, X, labels) == accuracy_score(truth, found)
        assert labeled_scorer("f1_macro")(model, X, labels) == f1_score(truth, found, average="macro")
        assert labeled_scorer(None)(model, X, labels) == model.score(X, labels) == accuracy_score(truth, found)
    scorer = labeled_scorer(lambda estimator, X, y: float(len(y)))
    assert scorer(model, X, some) == 30
    assert pickle.loads(pickle.dumps(labeled_scorer("f1_macro"))).scoring == "f1_macro"
    assert repr(labeled_scorer("f1_macro")) == "labeled_scorer('f1_macro')"
    weights = np.arange(300.0)
    model = LabeledRows(KNeighborsClassifier(15)).fit(X, some)
    right = model.predict(X)[rows] == some[rows]
    found = labeled_scorer()(model, X, some, sample_weight=weights)
    assert found == pytest.approx(np.average(right, weights=weights[rows]))
    with pytest.raises(ValueError, match=r"at least one label\. Got only -1, NaN or None"):
        labeled_scorer()(model, X[:3], [-1, -1, -1])


@pytest.mark.parametrize("scoring", [None, labeled_scorer(), {"a": labeled_scorer(), "f": labeled_scorer("f1_macro")}])
@pytest.mark.parametrize("cv", [LabeledSplit(5), LabeledSplit(StratifiedKFold(5, shuffle=True, random_state=0))])
def test_grid_search_of_a_classifier(few, scoring, cv):
    """As by hand: hide some labels, learn from the other rows and find them."""
    X, some, _ = few
    refit = "a" if isinstance(scoring, dict) else True
    search = GridSearchCV(GFHF(), {"n_neighbors": [3, 30]}, scoring=scoring, cv=cv, refit=refit).fit(X, some)
    score = search.cv_results_["mean_test_a" if isinstance(scoring, dict) else "mean_test_score"]
    for n_neighbors, mean in zip([3, 30], score, strict=True):
        by_hand = []
        for train, test in cv.split(X, some):
            assert (some[test] >= 0).all() and (some[train] < 0).sum() == 270
            by_hand.append((GFHF(n_neighbors).fit(X[train], some[train]).predict(X[test]) == some[test]).mean())
        assert mean == pytest.approx(np.mean(by_hand))
    assert score.max() > 0.8


def test_grid_search_without_anything_special(few):
    """Folds that hold unlabelled rows too: the estimators' own score leaves them out."""
    X, some, _ = few
    search = GridSearchCV(GFHF(), {"n_neighbors": [3, 30]}, cv=3).fit(X, some)
    assert search.best_score_ > 0.8


@pytest.mark.parametrize("at", range(5))
def test_pipeline(few, at):
    X, some, y = few
    labels = marks(some)[at]
    pipeline = make_pipeline(StandardScaler(), ElasticEmbedding(2, kernel="rbf"), LabeledRows(KNeighborsClassifier(1)))
    pipeline.fit(X, labels)
    truth = pipeline.classes_[y]
    embedding, scaled = ElasticEmbedding(2, kernel="rbf"), StandardScaler().fit_transform(X)
    Z = embedding.fit_transform(scaled, some)
    plain = KNeighborsClassifier(1).fit(Z[some >= 0], some[some >= 0])
    found = plain.predict(embedding.transform(scaled))
    assert (pipeline.predict(X) == pipeline.classes_[found]).all()
    assert pipeline.score(X, truth) == (found == y).mean() > 0.8
    assert pipeline.score(X, labels) == (found == y)[some >= 0].mean()
    grid = {"elasticembedding__mu": [1e-3, 1.0], "labeledrows__estimator__n_neighbors": [1, 3]}
    for scoring in (labeled_scorer(), labeled_scorer("balanced_accuracy")):
        search = GridSearchCV(pipeline, grid, scoring=scoring, cv=LabeledSplit(3), error_score="raise").fit(X, labels)
        assert search.best_score_ > 0.8 and search.predict(X).dtype == truth.dtype
        assert labeled_scorer()(search, X, labels) > 0.8


def test_cross_validation_of_a_pipeline(few):
    X, some, _ = few
    pipeline = make_pipeline(SDA(), LabeledRows(KNeighborsClassifier(1)))
    scores = cross_val_score(pipeline, X, some, cv=LabeledSplit(3), scoring=labeled_scorer())
    assert len(scores) == 3 and scores.min() > 0.5


@pytest.mark.filterwarnings("ignore")
def test_check_estimator():
    model = LabeledRows(LogisticRegression())
    assert set(expected_failed_checks(model)) == {"check_classifiers_classes"}
    results = check_estimator(model, expected_failed_checks=expected_failed_checks(model), on_fail=None)
    failed = {r["check_name"]: repr(r["exception"]) for r in results if r["status"] == "failed"}
    assert not failed
    assert len(results) > 40


def test_labeled_rows_is_what_is_inside(few):
    X, some, _ = few
    rows = some >= 0
    inner = LogisticRegression(max_iter=5000)
    model = LabeledRows(inner).fit(X, some)
    plain = clone(inner).fit(X[rows], some[rows])
    assert (model.predict_proba(X) == plain.predict_proba(X)).all()
    assert (model.decision_function(X) == plain.decision_function(X)).all()
    assert model.n_features_in_ == 64 and not hasattr(model, "feature_names_in_") and not hasattr(inner, "coef_")
    assert not hasattr(LabeledRows(LinearSVC()), "predict_proba") and hasattr(LabeledRows(LinearSVC()), "predict")
    assert not hasattr(LabeledRows(KNeighborsClassifier()), "decision_function")
    sparse = LabeledRows(inner).fit(sp.csr_array(X), some)
    assert (sparse.predict(sp.csr_array(X)) == plain.predict(X)).mean() > 0.99
    assert (LabeledRows(KNeighborsClassifier(1)).fit(X.tolist(), some.tolist()).predict(X[rows]) == some[rows]).all()
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict(X) == model.predict(X)).all()
    with pytest.raises(NotFittedError):
        clone(model).predict(X)
    with pytest.raises(ValueError, match="-1, which means unlabelled here"):
        model.fit(X, np.where(some == 0, 1, -1))
    assert model.classes_.tolist() == [0, 1, 2]  # the failed fit changed nothing
    with pytest.raises(ValueError, match=r"one label per row of X, 300\. Got 2"):
        model.fit(X, [0, 1])


def test_data_frames(few):
    pandas = pytest.importorskip("pandas", reason="data frames need pandas")
    X, some, y = few
    frame = pandas.DataFrame(X, columns=[f"pixel {i}" for i in range(64)], index=np.arange(300)[::-1])
    labels = pandas.Series(np.array(["a", "b", "c", None], dtype=object)[some], index=frame.index)
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), LabeledRows(KNeighborsClassifier(3)))
    for given in (labels, labels.astype("string"), labels.astype("category")):
        search = GridSearchCV(
            pipeline,
            {"labeledrows__estimator__n_neighbors": [1, 3]},
            scoring=labeled_scorer(),
            cv=LabeledSplit(3),
            error_score="raise",
        ).fit(frame, given)
        assert search.best_estimator_[-1].feature_names_in_.tolist() == frame.columns.tolist()
        assert search.score(frame, np.array(["a", "b", "c"])[y]) > 0.8
    numbers = pandas.Series(some).replace(-1, pandas.NA).astype("Int64")
    assert GridSearchCV(GFHF(), {"n_neighbors": [5]}, cv=LabeledSplit(3)).fit(frame, numbers).best_score_ > 0.8
