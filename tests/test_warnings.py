"""Warnings point at the line of the user, whatever way led into the library, and say what to do."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_blobs
from sklearn.model_selection import cross_val_predict
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import manifast
from manifast import LTSA, NSSE, Isomap, LaplacianEigenmaps, OutOfSample, SupervisedLaplacianEigenmaps
from manifast._warnings import warn
from manifast.classifiers import GFHF
from manifast.extensions import RBF
from manifast.kernels import l1_code

BLOBS, LABELS = make_blobs(90, n_features=3, centers=[[0, 0, 0], [50, 0, 0], [0, 50, 0]], random_state=0)
DIGITS, CLASSES = load_digits(return_X_y=True)


def files_of_warnings(call):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        call()
    return [Path(each.filename).name for each in said if issubclass(each.category, UserWarning | RuntimeWarning)]


WAYS = {
    "components": lambda: LaplacianEigenmaps().fit(BLOBS),
    "components of cliques": lambda: LTSA().fit(BLOBS),
    "components of paths": lambda: Isomap().fit(BLOBS),
    "through fit_transform": lambda: LaplacianEigenmaps().fit_transform(BLOBS),
    "through a pipeline": lambda: make_pipeline(StandardScaler(), LaplacianEigenmaps()).fit_transform(BLOBS),
    "through a pipeline's fit": lambda: make_pipeline(Isomap(), KNeighborsClassifier()).fit(BLOBS, LABELS),
    "through cross validation": lambda: cross_val_predict(
        make_pipeline(LaplacianEigenmaps(), KNeighborsClassifier()), BLOBS, LABELS, cv=2
    ),
    "through OutOfSample": lambda: OutOfSample(LaplacianEigenmaps()).fit(BLOBS),
    "a map alone": lambda: RBF(sigma=1e4).fit(DIGITS[:100], DIGITS[100:200, :8]),
    "a map of an estimator": lambda: LaplacianEigenmaps(extension=RBF(sigma=1e5)).fit(DIGITS[:100]),
    "a kernel": lambda: l1_code([[1.0, 0.0]], [[0.0, 1.0]], errors=False),
    "steps": lambda: NSSE(2, max_iter=1, tol=0).fit(DIGITS[:60], CLASSES[:60]),
    "dimensions": lambda: SupervisedLaplacianEigenmaps(3).fit(DIGITS[:100], CLASSES[:100]),
    "labels": lambda: GFHF(connect=False).fit(BLOBS, np.where(LABELS == 0, -1, LABELS)),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_line_is_the_user_s(way):
    found = files_of_warnings(WAYS[way])
    assert found
    assert set(found) == {Path(__file__).name}


def test_no_stack_levels_left():
    for path in Path(manifast.__file__).parent.rglob("*.py"):
        if path.name != "_warnings.py":
            assert not re.search(r"warnings\.warn\(|stacklevel", path.read_text()), path


def test_category_and_once_per_line():
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("default")
        for _ in range(3):
            warn("that", RuntimeWarning)
    assert [each.category for each in said] == [RuntimeWarning]
    with warnings.catch_warnings(), pytest.raises(UserWarning, match="this"):
        warnings.simplefilter("error")
        warn("this")


def test_components_say_what_they_do_to_dimensions():
    with pytest.warns(UserWarning, match="3 connected components, joined .* first 2 dimensions do little but tell"):
        LaplacianEigenmaps().fit(BLOBS)
    with pytest.warns(UserWarning, match="larger n_neighbors .* every component on its own.* another map"):
        LTSA(connect=False).fit(BLOBS)
    with pytest.warns(UserWarning, match="2 connected components, joined .* first dimension does little"):
        LaplacianEigenmaps().fit(BLOBS[LABELS != 1])
    with pytest.warns(UserWarning, match="Distances between components then run through single edges"):
        Isomap().fit(BLOBS)
