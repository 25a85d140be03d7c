"""Reading labels: any kind, in order, with and without rows that have none."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from manifast import (
    FME,
    FMECV,
    GFHF,
    LDE,
    LFDA,
    LGC,
    NSSE,
    NSSECV,
    RMGT,
    SDA,
    SDACV,
    SDE,
    SDECV,
    TCA,
    TCACV,
    TPTSSR,
    ElasticEmbedding,
    ElasticEmbeddingCV,
    FisherEmbedding,
    LabelEncoding,
    LapRLS,
    LapRLSCV,
    OutOfSample,
    RBFDiscriminant,
    SupervisedIsomap,
    SupervisedLaplacianEigenmaps,
)
from manifast._labels import labelled_part, read_labels

SEMI_SUPERVISED = [
    ElasticEmbedding(2),
    ElasticEmbeddingCV(lam=(1.0,), mu=(1.0,), gamma=(1.0,), cv=2, n_repeats=1),
    SDA(),
    SDACV(),
    SDE(),
    SDECV(),
    TCA(),
    TCACV(),
    GFHF(),
    LGC(),
    RMGT(),
    LapRLS(),
    LapRLSCV(),
    FME(),
    FMECV(),
]
SUPERVISED = [
    SupervisedLaplacianEigenmaps(),
    FisherEmbedding(),
    LabelEncoding(),
    NSSE(n_components=2),
    NSSECV(n_components=[2], mu2=[0.3], mu3=[30.0], n_splits=2),
    LDE(),
    LFDA(),
    SupervisedIsomap(),
    RBFDiscriminant(),
    TPTSSR(share=0.5),
]


class Method:
    pass


def read(y, **options):
    return read_labels(Method(), y, len(y), **options)


def blobs():
    """Three groups of 20 rows, their classes, and the same with two thirds of the labels gone."""
    X, y = make_blobs(60, 3, centers=3, cluster_std=4.0, random_state=0)
    return X, y, np.where(np.arange(60) % 3 == 0, y, -1)


@pytest.mark.parametrize("y", [[5, 2, 9, 2], ["b", "a", "c", "a"], [True, False, True, False], [1.0, 0.0, 7.0, 0.0]])
def test_classes_are_sorted_and_codes_point_at_them(y):
    labels = read(np.array(y))
    assert labels.classes[labels.codes].tolist() == y
    assert labels.classes.tolist() == sorted(set(y))
    assert labels.sizes.sum() == 4 and [len(rows) for rows in labels.members] == labels.sizes.tolist()
    assert all((labels.codes[rows] == c).all() for c, rows in enumerate(labels.members))
    assert labels.indicators.tolist() == [[float(v == c) for c in sorted(set(y))] for v in y]


@pytest.mark.parametrize("y", [[-1, 3, -1, 8], np.array([-1, "x", -1, "y"], dtype=object)])
def test_minus_one_is_unlabelled_where_asked(y):
    labels = read(np.array(y), unlabelled=True)
    assert labels.codes.tolist() == [-1, 0, -1, 1]
    assert labels.labelled.tolist() == [1, 3]
    assert [rows.tolist() for rows in labels.members] == [[1], [3]]
    assert labels.indicators.sum() == 2


def test_a_list_of_strings_may_hold_minus_one():
    labels = read(["b", -1, "a"], unlabelled=True)
    assert labels.classes.tolist() == ["a", "b"]
    assert labels.codes.tolist() == [1, -1, 0]


@pytest.mark.parametrize("missing", [None, np.nan, np.float32("nan")])
def test_missing_labels_are_no_class(missing):
    for kind in (np.array, list):
        y = kind(np.array(["a", missing, "b"], dtype=object))
        with pytest.raises(ValueError, match=r"y must not hold missing labels .* -1 .* GFHF"):
            read(y)


@pytest.mark.parametrize(
    "y",
    [
        np.array([np.nan, 3.0, np.nan, 8.0]),
        np.array([-1.0, 3.0, np.nan, 8.0], dtype=np.float32),
        np.array([None, 3, -1, 8], dtype=object),
        np.array([np.nan, "x", None, "y"], dtype=object),
        np.ma.array([0, 3, 5, 8], mask=[True, False, True, False]),
        np.ma.array([0.0, 3.0, np.nan, 8.0], mask=[True, False, False, False]),
        [None, 3, -1, 8],
        [float("nan"), 3, -1, 8],
        [None, "x", float("nan"), "y"],
        (-1, "x", None, "y"),
        [None, True, np.float64("nan"), False],
    ],
    ids=repr,
)
def test_missing_labels_are_unlabelled_where_asked(y):
    labels = read(y, unlabelled=True)
    assert np.flatnonzero(labels.codes < 0).tolist() == [0, 2]
    given = [label for label in list(y) if label is np.ma.masked or label in (3, 8, "x", "y", True, False)]
    assert labels.classes[labels.codes[[1, 3]]].tolist() == [label for label in given if label is not np.ma.masked]
    assert labels.classes.dtype.kind in "ifUb"
    rows, known = labelled_part(y)
    assert rows.tolist() == [1, 3] and known.tolist() == labels.classes[labels.codes[[1, 3]]].tolist()


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([None, 3, None, 8], "Int64"),
        ([None, 3, None, 8], None),  # float64 with NaN
        ([None, "x", None, "y"], None),
        ([None, "x", None, "y"], object),
        ([None, "x", None, "y"], "string"),
        ([None, "x", None, "y"], "category"),
        ([None, 3, None, 8], "category"),
        ([None, True, None, False], "boolean"),
    ],
    ids=str,
)
def test_missing_values_of_pandas(values, dtype):
    pandas = pytest.importorskip("pandas", reason="labels of pandas need pandas")
    y = pandas.Series(values, dtype=dtype, index=[9, 8, 7, 6])
    labels = read(y, unlabelled=True)
    assert np.flatnonzero(labels.codes < 0).tolist() == [0, 2]
    assert labels.classes[labels.codes[[1, 3]]].tolist() == [values[1], values[3]]
    assert labels.classes.dtype.kind in "ifUb"
    with pytest.raises(ValueError, match=r"y must not hold missing labels .* -1 .* GFHF"):
        read(y)
    held = np.array([pandas.NA, values[1], pandas.NA, values[3]], dtype=object)
    assert read(held, unlabelled=True).codes.tolist() == labels.codes.tolist()
    with pytest.raises(ValueError, match=r"NaT: use -1 or None"):
        read(np.array([pandas.NaT, "x", "y"], dtype=object), unlabelled=True)


@pytest.mark.parametrize("model", SEMI_SUPERVISED, ids=lambda model: type(model).__name__)
def test_every_mark_of_an_unlabelled_row_gives_the_same_fit(model):
    X, _, few = blobs()
    words = np.array(["a", "b", "c", None], dtype=object)[few]
    expected = _outcome(model.fit(X, few))
    for y in (np.where(few < 0, np.nan, few), np.where(few < 0, None, few.astype(object)), words, words.tolist()):
        np.testing.assert_array_equal(_outcome(model.fit(X, y)), expected)
        assert len(model.classes_) == 3
    pandas = sys.modules.get("pandas")
    if pandas is not None:
        np.testing.assert_array_equal(_outcome(model.fit(X, pandas.Series(words, dtype="string"))), expected)


def _outcome(model):
    return model.embedding_ if hasattr(model, "embedding_") else model.scores_


@pytest.mark.parametrize("mark", ["", "-1", "-1.0", "nan", "<NA>"])
def test_strings_that_mark_no_label_are_no_class(mark):
    y = np.array(["a", mark, "b", mark])
    for given in (y, y.tolist(), y.astype(object)):
        with pytest.raises(ValueError, match=f"y must not hold '{mark}' as a class .* use -1 or None for unlabelled"):
            read(given, unlabelled=True)
        with pytest.warns(UserWarning, match=f"'{mark}' in y is taken as a class by Method"):
            assert read(given).count == 3


def test_a_string_of_numpy_that_was_minus_one():
    X, _, few = blobs()
    with pytest.raises(ValueError, match="use -1 or None for unlabelled rows"):
        GFHF().fit(X, few.astype(str))


@pytest.mark.parametrize("model", SEMI_SUPERVISED, ids=lambda model: type(model).__name__)
def test_minus_one_and_one_are_not_two_classes(model):
    X, y, _ = blobs()
    with pytest.raises(ValueError, match=r"-1, which means unlabelled here: .* recode the labels, .* to 0 and 1"):
        model.fit(X, np.where(y == 0, -1, 1))
    with pytest.raises(ValueError, match=r"more than one class\. Got 1 class instead\.$"):
        model.fit(X, np.where(y == 0, np.nan, 1.0))
    with pytest.raises(ValueError, match=r"at least one label\. Got only -1, NaN or None"):
        model.fit(X, np.full(60, np.nan))


@pytest.mark.parametrize("model", SUPERVISED, ids=lambda model: type(model).__name__)
def test_supervised_estimators_say_that_minus_one_is_a_class(model):
    X, y, _ = blobs()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.fit(X, y - 1)
    said = [warning for warning in said if "-1 in y is taken as a class" in str(warning.message)]
    assert len(said) == 1 and said[0].filename == __file__ and said[0].category is UserWarning
    assert type(model).__name__ in str(said[0].message) and "GFHF" in str(said[0].message)
    assert model.classes_.tolist() == [-1, 0, 1]
    for some in (np.where(y == 0, np.nan, y), np.where(y == 0, None, y.astype(object))):
        with pytest.raises(ValueError, match=r"y must not hold missing labels .* 20 of them: .* -1 .* GFHF"):
            model.fit(X, some)


def test_the_warning_is_at_the_users_line_through_other_packages():
    X, y, _ = blobs()
    y = y - 1
    for fit in (
        lambda: make_pipeline(LDE()).fit(X, y),
        lambda: OutOfSample(LDE(), "linear").fit(X, y),
        lambda: GridSearchCV(RBFDiscriminant(), {"ridge": [0.0]}, cv=2).fit(X, y),
    ):
        with pytest.warns(UserWarning, match="-1 in y is taken as a class") as said:
            fit()
        assert {warning.filename for warning in said} == {__file__}


def test_minus_one_beside_strings_is_refused_where_it_is_no_mark():
    with pytest.raises(ValueError, match=r"one kind.* -1 does not mean unlabelled here: .* GFHF"):
        read(["a", -1, "b"])


def test_labels_are_of_one_kind():
    with pytest.raises(ValueError, match="y must hold labels of one kind"):
        read(np.array([3, "a", 3], dtype=object))


def test_minus_one_is_a_class_elsewhere():
    for y in (np.array([-1, 1, -1]), np.array([-1, 1, -1], dtype=object), [-1.0, 1.0, -1.0]):
        with pytest.warns(UserWarning, match="-1 in y is taken as a class by Method"):
            assert read(y).classes.tolist() == [-1, 1]
    assert read_labels("a function", [-1, 1, -1], 3).classes.tolist() == [-1, 1]


@pytest.mark.parametrize(
    ("y", "options", "message"),
    [
        (np.array([1, 1, 1]), {}, "at least 2 classes"),
        (np.array([-1, -1]), {"unlabelled": True}, "at least one label"),
        (np.array([0.0, np.nan]), {}, "NaN"),
        (np.array([0.0, np.inf]), {}, "infinity"),
        (np.array([0.0, np.inf, np.nan]), {"unlabelled": True}, "infinity"),
        (np.array([0.5, 0.25, 0.125]), {}, "continuous"),
        (np.array([0, 0, 1]), {"least_members": 2}, "class .*1.* with 1"),
    ],
)
def test_bad_labels(y, options, message):
    with pytest.raises(ValueError, match=message):
        read(y, **options)


def test_lengths_and_none():
    with pytest.raises(ValueError, match=r"one label per row of X, 3\. Got 2"):
        read_labels(Method(), [0, 1], 3)
    with pytest.raises(ValueError, match="requires y to be passed"):
        read_labels(Method(), None, 3)
