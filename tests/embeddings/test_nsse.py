"""NSSE: Algorithm 1 to the letter, structure, nearly singular kernels, the search for the width, validation."""

from __future__ import annotations

import pickle

import numpy as np
import oracles
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, make_blobs, make_swiss_roll
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

from manifast import NSSE, NSSECV, SupervisedLaplacianEigenmaps
from manifast.extensions import RBF
from manifast.kernels import knn


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:130], y[:130], X[130:400], y[130:400]


def blobs(sizes=(12, 7, 9), features=5, spread=2.0, seed=2):
    X, y = make_blobs(list(sizes), features, cluster_std=spread, random_state=seed)
    order = np.random.default_rng(0).permutation(len(X))
    return X[order], y[order]


def median(X):
    return float(np.median(np.sqrt(oracles.sq_dist(X))[np.triu_indices(len(X), 1)]))


@pytest.mark.parametrize("n_neighbors", [None, 4])
@pytest.mark.parametrize("weights", [(1.0, 0.3, 30.0), (100.0, 1e-3, 1.0), (1.0, 30.0, 1e3), (0.01, 0.1, 0.0)])
@pytest.mark.parametrize("d", [1, 2, 5])
def test_algorithm_1(d, weights, n_neighbors):
    X, y = blobs()
    mu1, mu2, mu3 = weights
    grid = median(X) * np.geomspace(0.3, 2.0, 12)
    start = 0.9 * median(X)
    Y, coef, sigma, objectives, sigmas, values = oracles.nsse(X, y, d, *weights, start, grid, n_neighbors=n_neighbors)
    model = NSSE(
        d, mu1=mu1, mu2=mu2, mu3=mu3, sigma_init=start, sigma_grid=grid, relative=False, n_neighbors=n_neighbors
    ).fit(X, y)
    assert model.sigma_ == pytest.approx(sigma, rel=1e-12)
    np.testing.assert_allclose(model.sigma_history_, sigmas, rtol=1e-12)
    np.testing.assert_allclose(model.objective_history_, objectives, rtol=1e-9)
    assert np.linalg.cond(oracles.gaussian(X, X, sigma)) < 1e8
    if values[d] - values[d - 1] > 1e-6 * mu1 * len(X):
        assert oracles.largest_angle(model.embedding_, Y) < 1e-6
        np.testing.assert_allclose(model.coef_ @ model.embedding_.T, coef @ Y.T, atol=1e-6 * np.abs(coef @ Y.T).max())
    np.testing.assert_allclose(model.embedding_.T @ model.embedding_, np.eye(d), atol=1e-10)
    np.testing.assert_allclose(model.transform(X), model.embedding_, atol=1e-8)


@pytest.mark.parametrize(
    ("d", "medians", "mu1", "mu2"),
    [(10, 1.5, 100.0, 1e-4), (20, 1.0, 100.0, 1e-4), (10, 1.5, 1.0, 0.3), (40, 1.0, 1.0, 0.1)],
)
def test_more_dimensions_than_contrasts(d, medians, mu1, mu2):
    """Beyond the classes less one eigenvalues are close together and far from the others."""
    X, y = load_digits(return_X_y=True)
    X, y = X[:250], y[:250]
    model = NSSE(d, mu1=mu1, mu2=mu2, sigma=medians).fit(X, y)
    W_w, W_b = oracles.class_graphs(X, y, oracles.mean_sq_distance(X))
    inverse = np.linalg.inv(oracles.gaussian(X, X, model.sigma_))
    A = oracles.graph_laplacian(W_w) - mu1 * oracles.graph_laplacian(W_b) + mu2 * inverse @ inverse
    values, vectors = np.linalg.eigh(A)
    assert values[d] - values[d - 1] > 1e-6 * mu1 * len(X)
    assert oracles.largest_angle(model.embedding_, vectors[:, :d]) < 1e-7
    with threadpool_limits(1):
        again = NSSE(d, mu1=mu1, mu2=mu2, sigma=medians).fit(X, y)
    assert oracles.largest_angle(model.embedding_, again.embedding_) < 1e-8


def test_says_how_many_dimensions_a_width_spans():
    X, y = np.linspace(0, 1, 30)[:, None], np.arange(30) % 3
    with pytest.raises(ValueError, match=r"n_components must be at most \d+ for this width"):
        NSSE(30, sigma=3.0, mu2=1e-6).fit(X, y)


def exact_objective(X, y, Y, mu1, mu2, mu3, sigma):
    """(10) in fractions of 40 digits: Ψ C = Y by elimination."""
    from decimal import Decimal, localcontext

    with localcontext() as context:
        context.prec = 40
        wide = [[Decimal(float(v)) for v in row] for row in X]
        rows = [
            [(-sum((a - b) ** 2 for a, b in zip(u, v, strict=True)) / Decimal(sigma) ** 2).exp() for v in wide]
            + [Decimal(float(v)) for v in target]
            for u, target in zip(wide, Y, strict=True)
        ]
        n = len(rows)
        for i in range(n):  # positive definite: no pivoting
            rows[i] = [v / rows[i][i] for v in rows[i]]
            for k in range(n):
                if k != i:
                    factor = rows[k][i]
                    rows[k] = [v - factor * w for v, w in zip(rows[k], rows[i], strict=True)]
        penalty = sum(v**2 for row in rows for v in row[n:])
        smooth = float(Decimal(mu2) * penalty + Decimal(mu3) / Decimal(sigma) ** 2)
    W_w, W_b = oracles.class_graphs(X, y, oracles.mean_sq_distance(X))
    A = oracles.graph_laplacian(W_w) - mu1 * oracles.graph_laplacian(W_b)
    return float(np.trace(Y.T @ A @ Y)) + smooth


@pytest.mark.parametrize("mu2", [1e-6, 1e-3, 1.0])
@pytest.mark.parametrize("medians", [2.0, 2.5, 4.0])
def test_nearly_singular_kernels_do_no_worse_than_the_letter(medians, mu2):
    """Beyond a condition of 1e8 the literal inverse has lost its digits: the objective, exactly, is not above it."""
    X, y = blobs((6, 5, 5), features=2)
    width = medians * median(X)
    assert np.linalg.cond(oracles.gaussian(X, X, width)) > 1e8
    literal = oracles.nsse(X, y, 2, 1.0, mu2, 0.0, width, [])[0]
    model = NSSE(2, mu1=1.0, mu2=mu2, mu3=0.0, sigma=width, relative=False).fit(X, y)
    ours, theirs = (exact_objective(X, y, Y, 1.0, mu2, 0.0, width) for Y in (model.embedding_, literal))
    assert ours <= theirs + 1e-9 * abs(theirs)


def test_width_and_interpolator_belong_together(digits):
    X, y, new, _ = digits
    model = NSSE(6).fit(X, y)
    psi = oracles.gaussian(X, X, model.sigma_)
    np.testing.assert_allclose(psi @ model.coef_, model.embedding_, atol=1e-8)
    np.testing.assert_allclose(model.transform(new), oracles.gaussian(new, X, model.sigma_) @ model.coef_, atol=1e-7)
    assert model.sigma_history_[-1] == model.sigma_
    assert len(model.objective_history_) == len(model.sigma_history_) == model.n_iter_ + 1
    assert (np.diff(model.objective_history_) <= 1e-9 * abs(model.objective_history_[0])).all()
    again = NSSE(6, sigma=model.sigma_, relative=False, mu3=0.0).fit(X, y)
    assert oracles.largest_angle(again.embedding_, model.embedding_) < 1e-6


@pytest.mark.parametrize(("mu2", "mu3"), [(0.01, 1.0), (0.3, 30.0), (1.0, 10.0), (3.0, 1000.0)])
@pytest.mark.parametrize("d", [2, 7])
def test_refined_search_is_not_worse_than_the_grid(digits, d, mu2, mu3):
    X, y, _, _ = digits
    free = NSSE(d, mu2=mu2, mu3=mu3, tol=1e-3).fit(X, y)
    grid = NSSE(d, mu2=mu2, mu3=mu3, sigma_grid=np.geomspace(0.3, 6.0, 30), sigma_init=1.5).fit(X, y)
    assert free.objective_history_[-1] <= grid.objective_history_[-1] + 1e-9 * abs(grid.objective_history_[-1])


def test_only_ratios_matter_but_for_the_weak_within_graph():
    X, y = blobs()
    one = NSSE(2, mu1=1e4, mu2=3e3, mu3=1e5).fit(X, y)
    two = NSSE(2, mu1=1e6, mu2=3e5, mu3=1e7).fit(X, y)
    assert one.sigma_ == pytest.approx(two.sigma_, rel=1e-3)
    assert oracles.largest_angle(one.embedding_, two.embedding_) < 1e-3


def test_scale_of_the_features_does_not_matter(digits):
    X, y, _, _ = digits
    model = NSSE(5).fit(X, y)
    for scale in (1e-120, 1e-3, 1e5, 1e150):
        scaled = NSSE(5).fit(scale * X, y)
        assert scaled.sigma_ == pytest.approx(scale * model.sigma_, rel=1e-6)
        assert oracles.largest_angle(scaled.embedding_, model.embedding_) < 1e-5


def test_repeated_rows(digits):
    X, y, new, _ = digits
    rows = np.append(np.arange(len(X)), [3, 3, 40])
    model = NSSE(5, sigma=0.8).fit(X[rows], y[rows])
    assert np.isfinite(model.coef_).all()
    np.testing.assert_allclose(model.coef_[-1], model.coef_[40])
    np.testing.assert_allclose(model.transform(X[rows]), model.embedding_, atol=1e-7)
    assert np.isfinite(model.transform(new)).all()


def test_swiss_rolls_do_not_fail():
    """In three dimensions Ψ is singular to working precision long before the roll is smooth."""
    X, t = make_swiss_roll(300, random_state=0)
    model = NSSE(4).fit(X, (t > t.mean()).astype(int))
    assert np.isfinite(model.embedding_).all()
    np.testing.assert_allclose(model.transform(X), model.embedding_, atol=1e-4)


def test_accuracy_on_objects(data_dir):
    """COIL-20, 10 views per class, 25 × 25, unit norm; the figure over ten splits is in benchmarks/supervised.py."""
    data = np.load(data_dir / "coil20.npz")
    edges = np.arange(26) * 32 / 25
    overlap = np.minimum(edges[1:, None], np.arange(1, 33)) - np.maximum(edges[:-1, None], np.arange(32))
    area = np.maximum(overlap, 0.0) * 25 / 32
    X = (area @ data["images"].astype(float) @ area.T).reshape(len(data["images"]), -1)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y, errors = data["labels"], []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        train = np.concatenate([rng.permutation(np.flatnonzero(y == c))[:10] for c in range(20)])
        new = np.setdiff1d(np.arange(len(y)), train)
        model = NSSE(10).fit(X[train], y[train])
        nearest = knn(model.embedding_, 1, queries=model.transform(X[new]))[1][:, 0]
        errors.append(np.mean(y[train][nearest] != y[new]))
    assert np.mean(errors) < 0.07  # 1-NN on pixels: 0.10


def test_same_answer_always(digits):
    X, y, new, _ = digits
    model = NSSE(5).fit(X, y)
    whole = model.transform(new)
    np.testing.assert_array_equal(model.transform(new[9:10]), whole[9:10])
    with threadpool_limits(1):
        np.testing.assert_array_equal(model.transform(np.asfortranarray(new)), whole)
        one = NSSE(5).fit(X, y)
    assert oracles.largest_angle(one.embedding_, model.embedding_) < 1e-6
    order = np.random.default_rng(1).permutation(len(X))
    turned = NSSE(5).fit(X[order], np.array(list("abcdefghij"))[y[order]])
    assert turned.sigma_ == pytest.approx(model.sigma_, rel=1e-6)
    oracles.same_columns(turned.embedding_, model.embedding_[order], 1e-5)
    narrow = NSSE(5).fit(X.astype(np.float32), y)
    assert narrow.embedding_.dtype == narrow.transform(new.astype(np.float32)).dtype == np.float32
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.transform(new), whole)
    assert len(pickle.dumps(model)) < 1.2 * (X.nbytes + 2 * model.embedding_.nbytes) + 20_000


def test_says_when_the_width_still_moves(digits):
    X, y, _, _ = digits
    with pytest.warns(ConvergenceWarning, match="sigma still changes after 1 steps"):
        model = NSSE(5, max_iter=1, tol=1e-6).fit(X, y)
    assert len(model.sigma_history_) == 2
    psi = oracles.gaussian(X, X, model.sigma_)
    np.testing.assert_allclose(psi @ model.coef_, model.embedding_, atol=1e-8)


def test_tiny_data_in_their_own_units(digits):
    X, y, _, _ = digits
    expected = NSSE(3, relative=False, mu3=0.0, sigma=40.0).fit(X, y)
    model = NSSE(3, relative=False, mu3=0.0, sigma=40e-200).fit(X * 1e-200, y)
    assert oracles.largest_angle(model.embedding_, expected.embedding_) < 1e-5


def test_progress(digits, capsys):
    NSSE(3, verbose=2).fit(*digits[:2])
    assert "NSSE: step 1, sigma" in capsys.readouterr().err


@pytest.mark.parametrize("y", [[0] * 8 + [1], [0] * 5 + [1] * 4, ["b", "a", "c"] * 3])
def test_odd_classes(y):
    X = np.random.default_rng(0).standard_normal((9, 3))
    assert np.isfinite(NSSE(2).fit(X, y).transform(X + 0.1)).all()


BAD = [
    (NSSE(mu1=0), "mu1 must be a positive"),
    (NSSE(mu2=-1.0), "mu2 must be a positive"),
    (NSSE(mu3=-1.0), "mu3 must be a finite number of at least 0"),
    (NSSE(sigma=0), "sigma must be a positive"),
    (NSSE(sigma_grid=[1.0, -1.0]), "sigma_grid must be a positive"),
    (NSSE(sigma_grid=[]), "sigma_grid must be None or hold"),
    (NSSE(n_components=29), "n_components must be an integer from 1 to 28, the number of rows"),
    (NSSE(n_components=2, n_neighbors=0), "n_neighbors must be an integer"),
    (NSSECV(mu2=[1.0, 0.0]), "mu2 must be a positive"),
    (NSSECV(n_neighbors="few"), "n_neighbors must be an integer"),
    (NSSECV(sigma=-1.0, n_components=2), "sigma must be a positive"),
    (NSSECV(n_components=[2, 25]), "n_components must be an integer from 1 to"),
    (NSSECV(validation_size=1.5), "validation_size must be a share"),
    (NSSECV(mu3=[]), "mu3 must be a number or hold at least one"),
    (NSSECV(sigma=[]), "sigma must hold at least one candidate"),
    (NSSECV(sigma=[None, 0.0]), "sigma must be a positive"),
    (NSSECV(n_neighbors=[]), "n_neighbors must hold at least one candidate"),
    (NSSECV(n_neighbors=[3, 0]), "n_neighbors must be an integer"),
    (NSSECV(n_components=1, mu2=1.0, mu3=1.0, beta=("mean", -1.0)), "beta must be"),
]


@pytest.mark.parametrize(("model", "message"), BAD, ids=[str(m) for m, _ in BAD])
def test_bad_parameters(model, message):
    X, y = blobs()
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert not hasattr(model, "embedding_")


def test_validation_chooses_one_parameter_after_the_other(digits):
    X, y, new, truth = digits
    model = NSSECV(n_components=[3, 9], mu2=[0.3, 1.0], mu3=[30.0], n_splits=2).fit(X, y)
    tried = model.cv_results_["params"]
    assert tried[0] == {"mu1": 1.0, "mu2": 0.3, "mu3": 30.0, "n_components": 9}
    assert [trial["n_components"] for trial in tried[:2]] == [9, 9]
    best = int(np.argmax(model.cv_results_["mean_test_score"]))
    assert model.best_params_ == tried[best]
    assert model.best_score_ == model.cv_results_["mean_test_score"][best]
    expected = NSSE(**model.best_params_).fit(X, y)
    np.testing.assert_allclose(model.embedding_, expected.embedding_, atol=1e-9)
    assert KNeighborsClassifier(1).fit(model.embedding_, y).score(model.transform(new), truth) > 0.85


def test_validation_starts_from_supervised_eigenmaps(digits):
    """A small mu2, all dimensions and a width of one median; other starts must be clearly better."""
    from manifast.embeddings.nsse import starting_points

    X, y, new, _ = digits
    grid = {"mu1": [1.0], "mu2": [1e-4, 1e-3, 0.1, 0.3], "mu3": [3.0, 30.0, 100.0], "n_components": [5, 9]}
    learnt = [(1.0, 0.3, 30.0, 9), (1.0, 1e-3, 100.0, 9), (1.0, 0.1, 3.0, 9)]
    assert [tuple(point.values()) for point in starting_points(10, grid)] == learnt
    plain = (1.0, 1e-4, 30.0, 9, 1.0)
    found = [tuple(point.values()) for point in starting_points(10, grid | {"sigma": [None, 1.0]})]
    assert found == [plain, *((*point, None) for point in learnt)]
    assert [p["mu2"] for p in starting_points(40, grid)] == [1e-3, 0.3, 0.1]
    assert len(starting_points(10, grid | {"mu2": [1.0], "mu3": [1.0]})) == 1
    model = NSSECV(n_components=9, mu2=grid["mu2"], mu3=grid["mu3"], n_splits=3, n_rounds=1).fit(X, y)
    assert [tuple(trial.values()) for trial in model.cv_results_["params"][:4]] == found
    expected = NSSE(**model.best_params_).fit(X, y)
    np.testing.assert_allclose(model.transform(new), expected.transform(new), atol=1e-6)
    close = NSSE(9, mu2=1e-4, sigma=1.0).fit(X, y)
    nearest = [
        knn(m.embedding_, 1, queries=m.transform(new))[1][:, 0]
        for m in (close, SupervisedLaplacianEigenmaps(extension=RBF(scale=1.0)).fit(X, y))
    ]
    assert np.mean(y[nearest[0]] == y[nearest[1]]) > 0.99


def test_widths_to_choose_from(digits):
    X, y, _, _ = digits
    one = {"n_components": 5, "mu2": 0.3, "mu3": 30.0, "n_splits": 2, "n_rounds": 1}
    model = NSSECV(sigma=[0.5, None, 1.5], **one).fit(X, y)
    tried = model.cv_results_["params"]
    assert {trial["sigma"] for trial in tried} == {0.5, None, 1.5}
    for trial, score in zip(tried, model.cv_results_["mean_test_score"], strict=True):
        assert NSSECV(**one, sigma=trial["sigma"]).fit(X, y).best_score_ == score
    # Where the weights are given, or how the width is learnt, it is learnt.
    several = {"mu2": [0.1, 0.3], "mu3": [10.0, 30.0], "n_components": 5, "n_splits": 1, "n_rounds": 1}
    for given in ({"sigma_init": 1.0}, {"sigma_grid": [0.5, 1.0]}, {"relative": False}, {"mu3": 30.0}, {"sigma": 0.7}):
        assert "sigma" not in NSSECV(**several | given).fit(X, y).best_params_


def test_validation_chooses_the_graph_too(digits):
    X, y, _, _ = digits
    one = {"n_components": 5, "mu2": 1e-3, "mu3": 30.0, "n_splits": 2, "n_rounds": 1}
    model = NSSECV(n_neighbors=[2, None], beta=("mean", 20.0), **one).fit(X, y)
    tried, scores = model.cv_results_["params"], model.cv_results_["mean_test_score"]
    assert (tried[0]["n_neighbors"], tried[0]["beta"]) == (2, "mean")
    assert {"n_neighbors", "beta"} <= set(model.best_params_)
    for trial, score in zip(tried, scores, strict=True):
        graph = {name: trial[name] for name in ("n_neighbors", "beta")}
        alone = NSSECV(**graph, **one).fit(X, y)
        assert alone.best_score_ == score
        assert list(alone.best_params_) == ["mu1", "mu2", "mu3", "n_components"]
    expected = NSSECV(**one, **{name: model.best_params_[name] for name in ("n_neighbors", "beta")}).fit(X, y)
    np.testing.assert_array_equal(model.embedding_, expected.embedding_)


def test_validation_errors_are_those_of_plain_fits(digits):
    """Sharing changes nothing: the score of one candidate on one split, done by hand."""
    X, y, _, _ = digits
    grid = np.geomspace(0.3, 6.0, 24)
    model = NSSECV(4, mu2=0.5, mu3=20.0, n_splits=1, sigma_grid=grid, random_state=3).fit(X, y)
    from manifast._labels import Labels

    part, held = model._splits(Labels(*np.unique(y, return_inverse=True)))[0]
    assert all((y[held] == c).any() and (y[part] == c).any() for c in range(10))
    plain = NSSE(4, mu2=0.5, mu3=20.0, sigma_grid=grid).fit(X[part], y[part])
    nearest = knn(plain.embedding_, 1, queries=plain.transform(X[held]))[1][:, 0]
    assert model.best_score_ == pytest.approx(np.mean(y[part][nearest] == y[held]), abs=1e-12)


def test_a_choice_at_the_edge_of_its_candidates_is_told(digits):
    X, y, _, _ = digits
    with pytest.warns(UserWarning, match=r"mu2 = 0\.3 is the best of its candidates and at their edge"):
        NSSECV(5, mu2=[0.3, 1e4, 1e5], mu3=30.0, n_splits=1).fit(X, y)


def test_validated_fits_learn_the_width_from_two_starts(digits):
    """From 1.5 medians alone the width may stay at a worse value of the objective."""
    X, y, _, _ = digits
    model = NSSECV(5, mu2=0.5, mu3=20.0, n_splits=1).fit(X, y)
    ends = {start: NSSE(5, mu2=0.5, mu3=20.0, sigma_init=start).fit(X, y) for start in (1.5, 0.5)}
    best = min(ends.values(), key=lambda fit: fit.objective_history_[-1])
    np.testing.assert_allclose(model.sigma_, best.sigma_, rtol=1e-6)
    alone = NSSECV(5, mu2=0.5, mu3=20.0, n_splits=1, sigma_init=0.5).fit(X, y)
    np.testing.assert_allclose(alone.sigma_, ends[0.5].sigma_, rtol=1e-6)


def test_default_weights_follow_the_number_of_classes():
    X = np.random.default_rng(0).standard_normal((66, 4))
    for classes, weights in ((3, {"mu2": 0.3, "mu3": 30.0}), (22, {"mu2": 0.001, "mu3": 100.0})):
        y = np.arange(66) % classes
        same = NSSE(2).fit(X, y), NSSE(2, **weights).fit(X, y)
        np.testing.assert_array_equal(same[0].embedding_, same[1].embedding_)


def test_validation_stays_at_the_defaults_unless_others_are_clearly_better(digits):
    from types import SimpleNamespace

    from manifast.embeddings.nsse import clearly_fewer, nearest_to

    assert nearest_to(0.3, [0.001, 0.2, 0.5, 1.0]) == 0.2
    assert nearest_to(30.0, [0.0, 1000.0]) == 1000.0
    splits = [SimpleNamespace(truth=np.zeros(50)), SimpleNamespace(truth=np.zeros(50))]
    assert clearly_fewer(np.array([0.1, 0.1]), np.array([0.14, 0.14]), splits)  # 10 against 14 errors
    assert not clearly_fewer(np.array([0.1, 0.1]), np.array([0.12, 0.12]), splits)  # 10 against 12
    X, y, _, _ = digits
    search = NSSECV(9, mu2=(0.3, 0.31, 0.32), mu3=30.0, n_splits=2).fit(X, y)
    assert search.best_params_["mu2"] == 0.3  # so little changes nothing


def test_grid_search_on_the_plain_estimator(digits):
    X, y, _, _ = digits
    pipeline = make_pipeline(NSSE(), KNeighborsClassifier(1))
    search = GridSearchCV(pipeline, {"nsse__n_components": [4, 9], "nsse__mu2": [0.3]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.8
    assert clone(search.best_estimator_[0]).get_params()["mu2"] == 0.3


def test_default_dimensions(digits):
    """As many as tell the classes apart, of up to 20 classes at most ten."""
    X, y = digits[:2]
    for classes in (2, 3, 10):
        kept = y < classes
        assert NSSE().fit(X[kept], y[kept]).embedding_.shape[1] == classes - 1
    X = np.random.default_rng(0).standard_normal((60, 4))
    assert NSSE().fit(X, np.arange(60) // 4).embedding_.shape[1] == 10
    assert NSSE().fit(X, np.arange(60) % 25).embedding_.shape[1] == 24
    assert NSSE().fit(np.repeat(X[:4], 2, axis=0), [0, 0, 1, 1, 2, 2, 3, 3]).embedding_.shape[1] == 3
    assert NSSE(10).fit(X, np.arange(60) % 2).embedding_.shape[1] == 10
