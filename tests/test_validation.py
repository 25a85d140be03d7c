"""Checks at the door that all estimators share: numbers too large for any machine, parts given by name, sparse rows."""

import sys
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import PCA
from sklearn.exceptions import DataConversionWarning

from manifast import (
    GFHF,
    LDE,
    LFDA,
    LGRM,
    LPP,
    LTSA,
    NPE,
    NSSE,
    NSSECV,
    RMGT,
    TPTSSR,
    ComposedEmbedding,
    ElasticEmbeddingCV,
    LabelEncoding,
    LaplacianEigenmaps,
    OutOfSample,
    SpectralRegression,
    _progress,
)
from manifast._validation import as_count, shown, whole_or_not_at_all
from manifast.extensions import RBF, LatentVariable
from manifast.smoothers import Ridge
from manifast.theory import optimal_sigma

X = np.random.default_rng(0).standard_normal((60, 5))
Y = np.arange(60) % 3


# Integers that no machine can count to


@pytest.mark.parametrize("huge", [2**31, 10**400, 10**5000], ids=["2^31", "10^400", "10^5000"])
@pytest.mark.parametrize(
    ("fit", "name"),
    [
        (lambda n: NSSE(max_iter=n).fit(X, Y), "max_iter"),
        (lambda n: NSSECV(n_splits=n).fit(X, Y), "n_splits"),
        (lambda n: NSSECV(n_rounds=n).fit(X, Y), "n_rounds"),
        (lambda n: ElasticEmbeddingCV(2, n_repeats=n).fit(X, Y), "n_repeats"),
        (lambda n: LFDA(n_neighbors=n).fit(X, Y), "n_neighbors"),
        (lambda n: LPP(kernel="poly", degree=n).fit(X), "degree"),
        (lambda n: LGRM(local_dim=n).fit(X), "local_dim"),
        (lambda n: LatentVariable(n_neighbors=n).fit(X, X[:, :2]), "n_neighbors"),
        (lambda n: optimal_sigma(n, 1.0, 1.0, 1.0), "n"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_huge_integers_are_refused_by_name(fit, name, huge):
    with pytest.raises(ValueError, match=rf"^{name} must be an integer from 1 to \d+.* Got .* instead\.$") as refused:
        fit(huge)
    assert len(str(refused.value)) < 200


def test_counts():
    assert as_count(np.int16(3), "k") == 3
    assert as_count(0, "k", minimum=0) == 0
    for value in (0, True, 2.0, "2"):
        with pytest.raises(ValueError, match=rf"k must be an integer of at least 1\. Got {value!r} instead"):
            as_count(value, "k")
    assert shown(10**400) == "an integer of 1329 bits"
    with pytest.raises(ValueError, match=r"sigma must be a positive number\. Got an integer of 16610 bits instead"):
        RBF(sigma=10**5000).fit(X, X)
    with pytest.raises(ValueError, match=r"prior must be 3 shares, .* Got an integer of 1329 bits"):
        RMGT(prior=10**400).fit(X, Y)


# Parts that are given by name have no parameters to set


@pytest.mark.parametrize(
    ("model", "key", "where"),
    [
        (ComposedEmbedding("laplacian", "ridge"), "smoother__weight", "smoothers"),
        (ComposedEmbedding("laplacian", "ridge"), "objective__n_neighbors", "objectives"),
        (ComposedEmbedding("laplacian"), "smoother__weight", "smoothers"),
        (LaplacianEigenmaps(extension="rbf"), "extension__sigma", "extensions"),
        (OutOfSample(PCA(2), "rbf"), "extension__sigma", "extensions"),
    ],
)
def test_parameters_of_a_name(model, key, where):
    part = key.split("__")[0]
    with pytest.raises(ValueError, match=rf"^{part} must be an object .* to set {key}\. Got .*manifast\.{where}\.$"):
        model.set_params(**{key: 1})


def test_parameters_of_an_object():
    model = ComposedEmbedding("laplacian", "ridge").set_params(smoother=Ridge(), smoother__weight=0.5)
    assert model.smoother.weight == 0.5
    assert OutOfSample(PCA(2)).set_params(embedder__n_components=3).embedder.n_components == 3
    with pytest.raises(ValueError, match="Invalid parameter 'nothing'"):
        model.set_params(nothing__weight=1)


# Labels


@pytest.mark.parametrize("objective", ["supervised", "fisher", "lde", "margin"])
def test_labels_of_minus_one_and_one(objective):
    with pytest.raises(ValueError, match=r"Got 1 class, 1, beside -1, which means unlabelled here.*recode"):
        ComposedEmbedding(objective).fit(X, np.where(Y > 0, 1, -1))


def test_labels_of_minus_one_beside_others():
    with pytest.raises(ValueError, match=r"Got 20 rows marked -1 .* or recode the labels if -1 is a class"):
        ComposedEmbedding("supervised").fit(X, Y - 1)


def test_warnings_of_scikit_learn_point_at_the_user():
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed") as said:
        LabelEncoding().fit(X, Y[:, None])
    assert {each.filename for each in said} == {__file__}
    with pytest.warns(UserWarning, match="number of unique classes is greater than 50%") as said:
        LabelEncoding().fit(X, np.arange(60) // 1.4)
    assert {each.filename for each in said} == {__file__}


# Sparse rows of any scale


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("model", [LPP(2), SpectralRegression(2)], ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("power", [-1, 1])
def test_sparse_rows_of_extreme_scales(model, dtype, power, rng):
    dense = rng.standard_normal((80, 6)) * (rng.random((80, 6)) < 0.6)
    plain, huge = dense.astype(dtype), np.ldexp(dense.astype(dtype), power * (660 if dtype == np.float64 else 90))
    assert np.isfinite(huge).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        found = model.fit(sp.csr_array(huge))
        same = type(model)(2).fit(huge)
    np.testing.assert_allclose(found.embedding_, same.embedding_, rtol=1e-3 if dtype == np.float32 else 1e-9, atol=1e-6)
    assert np.isfinite(found.transform(sp.csr_array(huge))).all()
    assert np.isfinite(found.transform(sp.csr_array(plain))).all()


# Sentences


@pytest.mark.parametrize("model", [LPP(2), NPE(2)], ids=lambda model: type(model).__name__)
def test_rows_far_from_the_origin(model):
    with pytest.raises(ValueError, match=r"stand out from rounding beside the mean of X.*subtract X\.mean\(axis=0\)"):
        model.fit(X + 1e9)
    model.fit((X + 1e9) - (X + 1e9).mean(axis=0))


def test_rows_in_nobodys_neighbourhood_are_no_components(rng):
    """One row lies far out: it has neighbours, but is none."""
    rows = np.vstack([rng.standard_normal((60, 2)) @ rng.standard_normal((2, 4)), np.full((1, 4), 40.0)])
    with pytest.warns(UserWarning) as said:
        LTSA(2, n_neighbors=12).fit(rows)
    messages = [str(each.message) for each in said]
    assert any("1 of 61 rows that no other row has as a neighbour, joined" in each for each in messages)
    assert not any("connected components" in each for each in messages)


@pytest.mark.parametrize("model", [LDE(), LFDA(), LabelEncoding(), TPTSSR(), GFHF()], ids=lambda m: type(m).__name__)
def test_every_estimator_can_speak(model, capsys):
    model.set_params(verbose=1).fit(X, Y)
    assert f"{type(model).__name__}: fit to 60 rows of 5 features" in capsys.readouterr().err


# A fit is whole or not at all


def test_a_failed_fit_is_undone_wherever_a_signal_comes():
    """An exception before each line of what undoes it."""

    def interrupted_at(number):
        model, seen = LPP(3), 0
        before = dict(model.__dict__)

        def trace(frame, event, _):
            nonlocal seen
            if frame.f_code.co_name != "whole_or_not_at_all":
                return None
            seen += event == "line"
            if seen == number and event == "line":
                sys.settrace(None)
                raise KeyboardInterrupt
            return trace

        held = sys.gettrace()
        sys.settrace(trace)
        try:
            with whole_or_not_at_all(model):
                model.embedding_, model.n_components = X, None
                raise ValueError("a failed fit")
        except (ValueError, KeyboardInterrupt):
            pass
        finally:
            sys.settrace(held)
        assert model.__dict__ == before
        return seen >= number

    assert interrupted_at(5)
    number = 1
    while interrupted_at(number):
        number += 1


@pytest.mark.parametrize("place", ["held", "verbosity"])
def test_what_is_shown_is_undone_wherever_a_signal_comes(place):
    """An exception before each line of what sets it and takes it back."""

    def interrupted_at(number):
        seen = 0

        def trace(frame, event, _):
            nonlocal seen
            if frame.f_code.co_name != place:
                return None
            seen += event == "line"
            if seen == number and event == "line":
                sys.settrace(None)
                raise KeyboardInterrupt
            return trace

        traced = sys.gettrace()
        sys.settrace(trace)
        try:
            with _progress.verbosity(2, "Some"):
                pass
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(traced)
        assert _progress._state.get() == (0, "")
        return seen >= number

    assert interrupted_at(4)
    number = 1
    while interrupted_at(number):
        number += 1
