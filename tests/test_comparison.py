"""compare: honest folds, the table, the best method refitted, labels of every kind."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_iris
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from manifast import GFHF, LDE, LPP, LaplacianEigenmaps
from manifast.kernels import knn
from manifast.model_selection import LabeledSplit, compare


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def test_errors_are_those_of_cross_validation(iris):
    X, y = iris
    found = compare(X, y, {"lde": LDE(), "nearest": KNeighborsClassifier(1)}, cv=4, random_state=3)
    folds = StratifiedKFold(4, shuffle=True, random_state=3)
    by_name = {row.name: row for row in found.results}
    for name, model in (("lde", make_pipeline(LDE(), KNeighborsClassifier(1))), ("nearest", KNeighborsClassifier(1))):
        expected = 1 - cross_val_score(model, X, y, cv=folds)
        np.testing.assert_allclose(by_name[name].errors, expected, atol=1e-12)
        assert by_name[name].error == pytest.approx(expected.mean())
        assert by_name[name].standard_error == pytest.approx(expected.std(ddof=1) / 2)
        assert by_name[name].fit_seconds > 0
    assert [row.error for row in found.results] == sorted(row.error for row in found.results)
    assert found.best_name_ == found.results[0].name
    assert found.best_estimator_.score(X, y) > 0.95


class Peeking(ClassifierMixin, BaseEstimator):
    """Knows by heart every row it was ever fitted to; counts its fits."""

    seen: ClassVar[list] = []

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.rows_ = {tuple(row): label for row, label in zip(X.tolist(), y, strict=True)}
        Peeking.seen.append(len(X))
        return self

    def predict(self, X):
        return np.array([self.rows_.get(tuple(row), -7) for row in X.tolist()])


def test_held_out_rows_are_not_seen(iris):
    X = np.random.default_rng(0).standard_normal((60, 3))
    Peeking.seen.clear()
    found = compare(X, np.arange(60) % 3, [Peeking()], cv=3)
    assert found.results[0].error == 1.0
    assert Peeking.seen == [40, 40, 40, 60]  # three folds, then all rows


def test_repeats_and_shows_itself(iris, capsys):
    X, y = iris
    once, again = (compare(X, y, ["LDE", "1-NN"], cv=3, verbose=1) for _ in range(2))
    assert [row.errors for row in once.results] == [row.errors for row in again.results]
    assert "1-NN: error" in capsys.readouterr().err
    text, html = str(once), once._repr_html_()
    for name in ("LDE", "1-NN"):
        assert name in text and f">{name}</td>" in html
    assert once.to_dict()["name"] == [row.name for row in once.results]
    assert compare(X, y, ["LDE"], cv=3, refit=False).best_estimator_ is None
    assert "&lt;b&gt;" in compare(X, y, {"<b>": LDE()}, cv=2)._repr_html_()


def test_default_methods_run(iris):
    X, y = iris
    found = compare(X[::2], y[::2], cv=2)
    names = {row.name for row in found.results}
    assert names >= {"RBFDiscriminantCV", "NSSE", "LDA, shrinkage", "SVC, 3-fold grid", "1-NN"}
    assert all(row.failure is None for row in found.results), found


def test_some_labels(iris):
    X, y = iris
    some = np.where(np.arange(150) % 10 == 0, y, -1)
    found = compare(X, some, cv=5, refit=False)  # the graph of all rows has two components, with a warning
    assert all(row.failure is None for row in found.results), found
    by_name = {row.name: row for row in found.results}
    assert {"LabelSpreading", "SelfTraining(SVC)", "GFHF", "1-NN"} <= set(by_name)
    splits = LabeledSplit(StratifiedKFold(5, shuffle=True, random_state=0)).split(X, some)
    expected = [np.mean(GFHF().fit(X[a], some[a]).predict(X[b]) != y[b]) for a, b in splits]
    np.testing.assert_allclose(by_name["GFHF"].errors, expected)


def test_no_labels(iris):
    X = np.random.default_rng(1).standard_normal((90, 4)) * [3, 2, 1, 0.1]
    found = compare(X, cv=3)
    assert all(row.failure is None for row in found.results), found
    assert found.best_estimator_.transform(X).shape == (90, 2)
    flat = compare(X[:, :2], methods={"itself": LPP(2, n_neighbors=30)}, cv=3)
    assert flat.results[0].error < 0.5
    row = compare(X, methods=[LaplacianEigenmaps(2)], cv=2).results[0]
    from sklearn.model_selection import KFold

    expected = []
    for a, b in KFold(2, shuffle=True, random_state=0).split(X):
        model = LaplacianEigenmaps(2).fit(X[a])
        before = knn(X[a], 10, queries=X[b])[1]
        after = knn(model.embedding_, 10, queries=model.transform(X[b]))[1]
        expected.append(1 - np.mean([len(set(i) & set(j)) / 10 for i, j in zip(before, after, strict=True)]))
    np.testing.assert_allclose(row.errors, expected)


def test_a_method_that_fails_does_not_end_the_others(iris):
    X, y = iris
    found = compare(X, y, {"bad": LDE(n_neighbors=10_000), "good": LDE()}, cv=3)
    assert found.best_name_ == "good"
    assert "n_neighbors" in found.results[1].failure
    assert "failed" in str(found)
    with pytest.raises(ValueError, match="All failed"):
        compare(X, y, {"bad": LDE(n_neighbors=10_000)}, cv=3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"methods": ["nothing"]}, "methods must hold estimators or names among"),
        ({"methods": []}, "methods must be None, a sequence or a dict"),
        ({"methods": {"a": 3}}, "methods must be estimators with predict or transform"),
        ({"cv": 1}, "cv must be at least 2"),
        ({"y": [0, 1]}, "y must hold one label per row"),
        ({"y": [0] * 149 + [7]}, "at least 2 labelled rows of every class.* class 7"),
        ({"X": [[np.nan, 1.0]] * 150}, "X must be finite"),
    ],
)
def test_bad_input(iris, change, message):
    X, y = iris
    with pytest.raises(ValueError, match=message):
        compare(**({"X": X, "y": y} | change))


@pytest.mark.parametrize("without", [None, float("nan"), -1])
def test_baselines_take_partly_known_names(without):
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"], dtype=object)[y]
    names[np.arange(150) % 3 != 0] = without
    table = compare(X, names, ["LabelSpreading", "SelfTraining(SVC)", "GFHF"], cv=3)
    assert not any(result.failure for result in table.results)
    assert max(result.error for result in table.results) < 0.2
    assert set(table.best_estimator_.predict(X)) == {"setosa", "versicolor", "virginica"}


def test_fewer_folds_than_asked_for_are_named(iris):
    X, _ = iris
    with pytest.warns(UserWarning, match="cv = 5 folds became 3: class 1 has 3 labelled rows"):
        found = compare(X, [0] * 147 + [1] * 3, ["1-NN"], cv=5)
    assert found.n_folds == 3
