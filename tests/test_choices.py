"""Weights chosen by hidden labels: the searches against loops of fits, ties, edges, and too few labels."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.neighbors import KNeighborsClassifier

from manifast import FME, FMECV, SDA, SDACV, SDE, SDECV, TCA, TCACV, ElasticEmbeddingCV, LapRLS, LapRLSCV, _choices
from manifast._choices import central_best, warn_of_edges

GRIDS = {
    LapRLSCV: (LapRLS, {"gamma_A": (1e-3, 1.0, 100.0), "gamma_I": (1e-3, 1.0)}),
    FMECV: (FME, {"mu": (1e-3, 1.0), "gamma": (1e-5, 1e-3, 1.0)}),
    SDACV: (SDA, {"alpha": (1e-3, 1.0), "ridge": (1e-3, 1.0, 1e3)}),
    SDECV: (SDE, {"alpha": (1e-3, 1.0), "ridge": (1e-3, 1.0, 1e3)}),
    TCACV: (TCA, {"alpha": (1e-3, 1.0), "mu": (1e-3, 1.0)}),
}
CASES = [(kind, {}) for kind in GRIDS] + [(LapRLSCV, {"kernel": "rbf"}), (FMECV, {"kernel": "rbf"})]


@pytest.fixture
def rows():
    X, y = load_digits(return_X_y=True)
    X, y = X[:240], y[:240]
    some = np.full(len(y), -1)
    for c in range(10):
        some[np.flatnonzero(y == c)[: 3 + c % 2]] = c
    return X, some


def found_again(model, X, y, known, hidden):
    """Hidden labels found by `predict`, or by the nearest known row in the embedding."""
    some = y.copy()
    some[hidden] = -1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, some)
    if hasattr(model, "predict"):
        return np.sum(model.predict(X[hidden]) == y[hidden])
    nearest = KNeighborsClassifier(1).fit(model.embedding_[known], y[known])
    return np.sum(nearest.predict(model.transform(X[hidden])) == y[hidden])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("kind", "options", "scale"),
    [(*case, 1.0) for case in CASES] + [(kind, {}, 2.0**-300) for kind in (LapRLSCV, SDACV, SDECV)],
)
def test_search_is_the_loop_of_fits(rows, kind, options, scale):
    X, y = rows
    single, grid = GRIDS[kind]
    in_squares = {"gamma_A", "ridge"}  # of the units of the rows
    grid = {
        name: tuple(np.array(values) * (scale**2 if name in in_squares else 1.0)) for name, values in grid.items()
    }
    search = kind(**grid, **options, cv=3, n_repeats=2, random_state=5).fit(X * scale, y)
    first, second = grid
    known = np.flatnonzero(y != -1)
    results = search.cv_results_
    assert len(results["score"]) == len(grid[first]) * len(grid[second])
    splits = list(RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=5).split(known, y[known]))
    for a, b, score in zip(results[first], results[second], results["score"], strict=True):
        model = single(**{first: a, second: b}, **options)
        found = sum(found_again(clone(model), X * scale, y, known[k], known[h]) for k, h in splits)
        assert_allclose(score, found / (2 * len(known)), rtol=1e-12)
    assert search.best_score_ == results["score"].max()
    again = single(**search.best_params_, **options).fit(X * scale, y)
    for name in ("scores_", "embedding_"):
        if hasattr(again, name):
            assert_array_equal(getattr(search, name), getattr(again, name))
    apply = "predict" if hasattr(again, "predict") else "transform"
    assert_array_equal(getattr(search, apply)(X), getattr(again, apply)(X))


@pytest.mark.filterwarnings("ignore:the graph has")
@pytest.mark.parametrize("kind", GRIDS)
def test_graphs_are_chosen_too(rows, kind):
    X, y = rows
    single, grid = GRIDS[kind]
    one = {name: values[-1] for name, values in grid.items()}
    search = kind(**one, n_neighbors=[4, 9], beta=("local", "mean"), cv=2, n_repeats=1).fit(X, y)
    results = search.cv_results_
    assert len(results["score"]) == 4
    for k, beta, score in zip(results["n_neighbors"], results["beta"], results["score"], strict=True):
        alone = kind(**one, n_neighbors=int(k), beta=str(beta), cv=2, n_repeats=1).fit(X, y)
        assert alone.best_score_ == score
        assert list(alone.best_params_) == list(grid)
    assert search.best_score_ == results["score"].max()
    again = single(**search.best_params_).fit(X, y)
    apply = "predict" if hasattr(again, "predict") else "transform"
    assert_array_equal(getattr(search, apply)(X), getattr(again, apply)(X))
    assert_array_equal(getattr(kind(**one, n_neighbors=[9]).fit(X, y), apply)(X), getattr(
        single(**one, n_neighbors=9).fit(X, y), apply)(X))  # fmt: skip
    with pytest.raises(ValueError, match="n_neighbors must hold at least one candidate"):
        kind(n_neighbors=[]).fit(X, y)
    with pytest.raises(ValueError, match="n_neighbors must be an integer of at least 1"):
        kind(n_neighbors=[3, 0]).fit(X, y)


@pytest.mark.filterwarnings("ignore:the graph has")
@pytest.mark.parametrize("kind", GRIDS)
def test_one_label_per_class_takes_the_defaults(rows, kind):
    X, y = rows
    once = np.full(len(y), -1)
    for c in range(10):
        once[np.flatnonzero(y == c)[0]] = c
    with pytest.warns(UserWarning, match="no class has two labelled rows"):
        search = kind().fit(X, once)
    single = GRIDS[kind][0]()
    assert search.best_params_ == {name: getattr(single, name) for name in search.best_params_}
    assert np.isnan(search.best_score_)
    assert search.cv_results_ == {}
    apply = "predict" if hasattr(single, "predict") else "transform"
    assert_array_equal(getattr(search, apply)(X), getattr(single.fit(X, once), apply)(X))


@pytest.mark.filterwarnings("ignore:the graph has")
@pytest.mark.parametrize("kind", GRIDS)
def test_a_class_of_one_label_is_never_hidden(rows, kind):
    X, y = rows
    y[np.flatnonzero(y == 7)[1:]] = -1
    grid = GRIDS[kind][1]
    search = kind(**{name: values[:1] for name, values in grid.items()}, n_repeats=1, cv=2).fit(X, y)
    assert 0 <= search.best_score_ <= 1


@pytest.mark.filterwarnings("ignore:the graph has")
def test_ties_end_in_their_middle(rows):
    X, y = rows
    search = SDACV(alpha=(1e-30, 1e-29, 1e-28, 1e-27, 1e-26), ridge=1.0).fit(X, y)
    assert len(set(search.cv_results_["score"])) == 1  # a graph of so little weight changes nothing
    assert search.best_params_ == {"alpha": 1e-28, "ridge": 1.0}
    places = np.array([[0, 0], [0, 1], [0, 2], [4, 4]])
    assert central_best(places, np.array([1.0, 1.0, 1.0, 0.0])) == 1


@pytest.mark.filterwarnings("ignore:the graph has")
def test_edges_are_named(rows):
    X, y = rows
    with pytest.warns(UserWarning, match="ridge = 1e-06 is the best of its candidates and at their edge"):
        warn_of_edges(["ridge"], {"ridge": [1e-6, 1.0, 1e6]}, {"ridge": 1e-6}, {(1e-6,): 0.1, (1.0,): 0.2})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_edges(["ridge"], {"ridge": [1e-6, 1.0, 1e6]}, {"ridge": 1e-6}, {(1e-6,): 0.1, (1.0,): 0.1})
        warn_of_edges(["ridge"], {"ridge": [1e-6, 1.0, 1e6]}, {"ridge": 1.0}, {(1e-6,): 0.2, (1.0,): 0.1})
        warn_of_edges(["ridge"], {"ridge": [1e-6, 1.0]}, {"ridge": 1e-6}, {(1e-6,): 0.1, (1.0,): 0.2})
    with pytest.warns(UserWarning, match="gamma_A = 1 is the best of its candidates and at their edge"):
        # A ridge far beyond the rows leaves nothing but the shares of the classes.
        LapRLSCV(gamma_A=(1.0, 1e12, 1e13), gamma_I=1e-3).fit(X, y)


@pytest.mark.parametrize("kind", GRIDS)
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ((), "must be a positive number or a sequence"),
        (-1.0, "must be a positive"),
        ((1.0, 0.0), "every entry of"),
    ],
)
def test_bad_grids(rows, kind, bad, message):
    X, y = rows
    for name in GRIDS[kind][1]:
        with pytest.raises(ValueError, match=message):
            kind(**{name: bad}).fit(X, y)
    with pytest.raises(ValueError, match="cv must be at least 2"):
        kind(cv=1).fit(X, y)
    with pytest.raises(ValueError, match="n_repeats must be"):
        kind(n_repeats=0).fit(X, y)


@pytest.mark.parametrize(
    ("given", "found"),
    [(2, None), (np.array(1.0), None), (None, None), ("local", None), ([2, None], [2, None]), (range(2, 4), [2, 3])],
)
def test_one_value_or_a_sequence(given, found):
    assert _choices.listed(given, "n_neighbors") == found


@pytest.mark.parametrize(("given", "message"), [([], "at least one candidate"), ([[1.0]], "one value or a sequence")])
def test_sequences_that_hold_no_candidates(given, message):
    with pytest.raises(ValueError, match=f"beta must .*{message}"):
        _choices.listed(given, "beta")


def test_a_search_keeps_numbers_beside_names():
    X = np.random.default_rng(0).standard_normal((40, 3))
    y = np.where(np.arange(40) < 12, np.arange(40) % 2, -1)
    search = ElasticEmbeddingCV(1, lam=1.0, mu=1.0, gamma=1.0, beta=("mean", 20.0), n_repeats=1).fit(X, y)
    assert search.cv_results_["beta"].tolist() == ["mean", 20.0]
