"""Reading labels: any kind, in order, with and without rows that have none."""

from __future__ import annotations

import numpy as np
import pytest

from manifast._labels import read_labels


class Method:
    pass


def read(y, **options):
    return read_labels(Method(), y, len(y), **options)


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


@pytest.mark.parametrize("missing", [None, np.nan])
def test_missing_labels_are_no_class(missing):
    with pytest.raises(ValueError, match="y must not hold missing labels"):
        read(np.array(["a", missing, "b"], dtype=object))


def test_labels_are_of_one_kind():
    with pytest.raises(ValueError, match="y must hold labels of one kind"):
        read(np.array([3, "a", 3], dtype=object))


def test_minus_one_is_a_class_elsewhere():
    assert read(np.array([-1, 1, -1])).classes.tolist() == [-1, 1]


@pytest.mark.parametrize(
    ("y", "options", "message"),
    [
        (np.array([1, 1, 1]), {}, "at least 2 classes"),
        (np.array([-1, -1]), {"unlabelled": True}, "at least one label"),
        (np.array([0.0, np.nan]), {}, "NaN"),
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
