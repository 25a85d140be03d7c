"""What docs/promises.md says of every estimator, and that the tests it names exist."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator, clone
from sklearn.manifold import SpectralEmbedding

import manifast

PAGE = Path(__file__).resolve().parent.parent / "docs" / "promises.md"
NAMES = sorted(
    name
    for name in manifast.__all__
    if isinstance(getattr(manifast, name), type) and issubclass(getattr(manifast, name), BaseEstimator)
)


def _estimator(name):
    kind = getattr(manifast, name)
    return kind(SpectralEmbedding(random_state=0)) if name == "OutOfSample" else kind()


def _data(dtype=np.float64):
    rng = np.random.default_rng(0)
    y = np.arange(66) % 3
    return (rng.normal(size=(66, 4)) + 3 * y[:, None]).astype(dtype), y


def _fit(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


def _apply(model, X):
    return model.transform(X) if hasattr(model, "transform") else model.predict(X)


def _fitted(model):
    return {key for key in vars(model) if key not in model.get_params(deep=False)}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("bad", [np.nan, np.inf, "labels"])
def test_a_refused_fit_changes_nothing(name, bad):
    """A fresh estimator stays unfitted, and a fitted one keeps its fit to the bit."""
    X, y = _data()
    model, wrong, labels = _estimator(name), X.copy(), y
    if bad == "labels":
        labels = y[:-1]
    else:
        wrong[-1, -1] = bad
    fresh = clone(model)
    unsupervised = bad == "labels" and not model.__sklearn_tags__().target_tags.required
    if unsupervised:
        pytest.skip("labels are optional or not looked at")
    with pytest.raises(ValueError, match=r"\b(X|y|NaN|infinity|labels|samples)\b"):
        _fit(fresh, wrong, labels)
    assert _fitted(fresh) == set()
    before = _apply(_fit(model, X, y), X[:7])
    held = _fitted(model)
    with pytest.raises(ValueError, match=r"\b(X|y|NaN|infinity|labels|samples)\b"):
        _fit(model, wrong, labels)
    assert _fitted(model) == held
    assert_array_equal(_apply(model, X[:7]), before)


@pytest.mark.parametrize("name", [name for name in NAMES if hasattr(getattr(manifast, name), "transform")])
def test_float32_stays_float32(name):
    X, y = _data(np.float32)
    model = _fit(_estimator(name), X, y)
    assert model.transform(X).dtype == np.float32
    if name != "OutOfSample":  # the embedding is the embedder's
        assert model.embedding_.dtype == np.float32


@pytest.mark.skipif(not PAGE.exists(), reason="the documentation is not beside the tests")
def test_the_page_names_tests_that_exist():
    text = PAGE.read_text(encoding="utf-8")
    named = re.findall(r"`(tests/[\w/]+(?:\.py)?|\.ci/\w+)(?:::(\w+))?`", text)
    assert len(named) > 20
    root = PAGE.parent.parent
    for path, test in named:
        if path.startswith(".ci") and not (root / ".ci").exists():
            continue  # an sdist
        assert (root / path).exists(), path
        assert not test or re.search(rf"def {test}\b", (root / path).read_text(encoding="utf-8")), f"{path}::{test}"
