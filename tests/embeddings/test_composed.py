"""Every embedding is an objective and a smoother: named estimators as such choices, the grid of pairs, one's own."""

from __future__ import annotations

import warnings

import numpy as np
import oracles
import pytest
import scipy.linalg as la
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine, make_swiss_roll
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from manifast import (
    LDE,
    LFDA,
    LGRM,
    LLTSA,
    LPP,
    LTSA,
    NPE,
    NSSE,
    SDA,
    SDE,
    TCA,
    ClassicalMDS,
    ComposedEmbedding,
    DiffusionMaps,
    ElasticEmbedding,
    FisherEmbedding,
    Isomap,
    LaplacianEigenmaps,
    LocallyLinearEmbedding,
    LocalRegressionEmbedding,
    SpectralRegression,
    SupervisedLaplacianEigenmaps,
    objectives,
    smoothers,
)
from manifast.graphs import full_graph, knn_graph
from manifast.kernels import knn, laplacian

pytestmark = pytest.mark.filterwarnings("ignore:the graph has", "ignore:the complete graph")


@pytest.fixture(scope="module")
def data():
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    order = np.random.default_rng(0).permutation(len(X))[:120]
    X, y = X[order], y[order]
    few = np.where(np.arange(len(y)) < 30, y, -1)
    return X, y, few


GIVEN = laplacian(knn_graph(np.random.default_rng(1).standard_normal((100, 2)), 6))[0]
NAMED = {
    "LPP": (LPP(), ComposedEmbedding("laplacian", "projection"), "none"),
    "KLPP": (LPP(kernel="rbf"), ComposedEmbedding("laplacian", "kernel_projection"), "none"),
    "NPE": (NPE(), ComposedEmbedding("lle", "projection"), "none"),
    "LLTSA": (LLTSA(), ComposedEmbedding("ltsa", "projection"), "none"),
    "LGRM": (LGRM(), ComposedEmbedding("local_regression", "kernel_ridge"), "none"),
    "LGRM le": (
        LGRM(local="le"),
        ComposedEmbedding(objectives.Laplacian(constraint="identity"), "kernel_ridge"),
        "none",
    ),
    "LGRM lle": (LGRM(local="lle"), ComposedEmbedding(objectives.CliqueLLE(), "kernel_ridge"), "none"),
    "LGRM ltsa": (LGRM(local="ltsa"), ComposedEmbedding(objectives.LocalRegression(), "kernel_ridge"), "none"),
    "LGRM matrix": (LGRM(local=GIVEN), ComposedEmbedding(GIVEN, "kernel_ridge"), "none"),
    "LGRM isomap": (LGRM(local="isomap", mu=0.1), ComposedEmbedding("isomap", smoothers.KernelRidge(0.1)), "none"),
    "NSSE": (
        NSSE(2, sigma=1.0),
        ComposedEmbedding("supervised", smoothers.Gaussian(sigma=1.0)),
        "all",
    ),
    "NSSE learnt": (NSSE(2), ComposedEmbedding("supervised", "gaussian"), "all"),
    "LDE": (LDE(), ComposedEmbedding("lde", "projection", n_components=None), "all"),
    "LFDA": (LFDA(), ComposedEmbedding("lfda", "projection", n_components=None), "all"),
    "KLFDA": (LFDA(kernel="rbf"), ComposedEmbedding("lfda", "kernel_projection", n_components=None), "all"),
    "SUPLAP": (
        SupervisedLaplacianEigenmaps(extension="rbf"),
        ComposedEmbedding("supervised", n_components=None, extension="rbf"),
        "all",
    ),
    "Fisher": (
        FisherEmbedding(extension="lvm"),
        ComposedEmbedding("fisher", n_components=None, extension="lvm"),
        "all",
    ),
    "Elastic": (
        ElasticEmbedding(4, lam=10.0, mu=2.0, gamma=5.0),
        ComposedEmbedding(objectives.Margin(10.0, graph="heat"), smoothers.Ridge(10.0, ridge=0.2), n_components=4),
        "some",
    ),
    "kernel Elastic": (
        ElasticEmbedding(4, lam=10.0, mu=2.0, gamma=5.0, kernel="rbf"),
        ComposedEmbedding(
            objectives.Margin(10.0, graph="heat"), smoothers.KernelRidge(10.0, ridge=0.2, bias=False), n_components=4
        ),
        "some",
    ),
    "SDA": (SDA(), ComposedEmbedding("sda", smoothers.Projection(0.1), n_components=None), "some"),
    "SDE": (SDE(), ComposedEmbedding("sde", smoothers.Projection(0.1), n_components=None), "some"),
    "TCA": (
        TCA(2),
        ComposedEmbedding(objectives.Margin(1.0, graph="heat", constraint="identity"), smoothers.Ridge(1.0, ridge=0.1)),
        "some",
    ),
    "KLDE": (LDE(kernel="rbf"), ComposedEmbedding("lde", "kernel_projection", n_components=None), "all"),
    "kernel NPE": (NPE(kernel="rbf"), ComposedEmbedding("lle", "kernel_projection"), "none"),
    "kernel LLTSA": (LLTSA(kernel="rbf"), ComposedEmbedding("ltsa", "kernel_projection"), "none"),
    "LE": (LaplacianEigenmaps(), ComposedEmbedding("laplacian"), "none"),
    "LLE": (LocallyLinearEmbedding(), ComposedEmbedding("lle"), "none"),
    "modified LLE": (LocallyLinearEmbedding(method="modified"), ComposedEmbedding("modified_lle"), "none"),
    "Hessian LLE": (LocallyLinearEmbedding(method="hessian"), ComposedEmbedding("hessian"), "none"),
    "LTSA": (LTSA(), ComposedEmbedding("ltsa"), "none"),
    "local regression": (LocalRegressionEmbedding(), ComposedEmbedding("local_regression"), "none"),
    "diffusion maps": (DiffusionMaps(), ComposedEmbedding("diffusion"), "none"),
    "classical MDS": (ClassicalMDS(), ComposedEmbedding("mds"), "none"),
    "Isomap": (Isomap(), ComposedEmbedding("isomap"), "none"),
    "Isomap landmarks": (Isomap(n_landmarks=40), ComposedEmbedding(objectives.Isomap(n_landmarks=40)), "none"),
}


@pytest.mark.parametrize("name", NAMED)
def test_named_estimators_are_choices(data, name):
    X, y, few = data
    named, composed, labels = NAMED[name]
    target = {"none": None, "all": y, "some": few}[labels]
    named, composed = clone(named).fit(X[:100], target if target is None else target[:100]), clone(composed).fit(
        X[:100], target if target is None else target[:100]
    )
    np.testing.assert_allclose(composed.embedding_, named.embedding_, atol=1e-10)
    np.testing.assert_allclose(composed.transform(X[100:]), named.transform(X[100:]), atol=1e-10)


OBJECTIVES = sorted(objectives.OBJECTIVES)
WITHOUT_MEANING = {
    # gaussian needs Y'Y = I
    **{
        (name, "gaussian"): "Y'Y = I"
        for name in ("laplacian", "diffusion", "fisher", "margin", "lde", "lfda", "sda", "sde")
    },
    # ratios of scatters are unbounded for a free Y
    **{(name, None): "no bound without a smoother" for name in ("lde", "lfda", "sda", "sde")},
}  # fmt: skip


@pytest.mark.parametrize("smoother", [None, *smoothers.SMOOTHERS])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_pair_works_or_says_why_not(data, objective, smoother):
    X, y, few = data
    builder = objectives.OBJECTIVES[objective]
    target = few if builder.unlabelled else y if builder.supervised else None
    if objective == "margin" and smoother is None:
        target = y  # margins alone say nothing of rows without a label
    model = ComposedEmbedding(objective, smoother)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if (objective, smoother) in WITHOUT_MEANING:
            with pytest.raises(ValueError, match=WITHOUT_MEANING[objective, smoother]):
                model.fit(X[:90], target if target is None else target[:90])
            assert not hasattr(model, "embedding_")
            return
        model.fit(X[:90], target if target is None else target[:90])
        new = model.transform(X[90:])
    assert model.embedding_.shape == (90, 2)
    assert new.shape == (30, 2)
    assert np.isfinite(new).all()
    assert model.embedding_.std(axis=0).min() > 0
    if smoother is not None and smoothers.SMOOTHERS[smoother].interpolates:
        scale = np.abs(model.embedding_).max()
        np.testing.assert_allclose(model.transform(X[:90]) / scale, model.embedding_ / scale, atol=1e-6)
    again = clone(model).fit(X[:90].astype(np.float32), target if target is None else target[:90])
    assert again.transform(X[90:].astype(np.float32)).dtype == np.float32
    given = ComposedEmbedding(builder(), smoother and smoothers.SMOOTHERS[smoother]())
    given.fit(X[:90], few[:90] if target is None else target[:90])  # labels, or -1, for no use where none are needed
    np.testing.assert_array_equal(given.embedding_, model.embedding_)
    np.testing.assert_array_equal(given.transform(X[90:]), new)


@pytest.mark.parametrize("smoother", [None, *smoothers.SMOOTHERS])
def test_matrices_and_functions_with_every_smoother(data, smoother):
    X, _, few = data
    L, degrees = laplacian(knn_graph(X, 8))
    expected = ComposedEmbedding(objectives.Laplacian(8, constraint="identity"), smoother).fit(X)
    for given in (L, L.toarray(), objectives.Objective(L), lambda rows, codes: L):
        found = ComposedEmbedding(given, smoother).fit(X, few)
        np.testing.assert_allclose(found.embedding_, expected.embedding_, atol=1e-8)
        if smoother is not None:  # without one the map is another: the matrix says nothing of new rows
            np.testing.assert_allclose(found.transform(X[:9] + 0.1), expected.transform(X[:9] + 0.1), atol=1e-7)
    weighted = ComposedEmbedding(lambda rows, codes: objectives.Objective(L, degrees), smoother)
    if smoother == "gaussian":
        with pytest.raises(ValueError, match="Y'Y = I"):
            weighted.fit(X)
        return
    expected = ComposedEmbedding(objectives.Laplacian(8), smoother).fit(X)
    np.testing.assert_allclose(weighted.fit(X).embedding_, expected.embedding_, atol=1e-8)


def test_functions_are_given_the_codes_of_labels(data):
    """-1 is a row without a label."""
    X, _, few = data
    L, seen = laplacian(knn_graph(X, 8))[0], []

    def by_labels(rows, codes):
        seen.append(codes)
        return L

    ComposedEmbedding(by_labels).fit(X, few)
    np.testing.assert_array_equal(seen[0], few)


def test_supervised_with_kernel_ridge_is_the_joint_problem(data):
    """A + R written out, for a pair that no paper has."""
    X, y, _ = data
    smoother = smoothers.KernelRidge(2.0, ridge=0.1, sigma=3.0)
    model = ComposedEmbedding(objectives.Supervised(0.5, n_neighbors_between=4), smoother, n_components=3).fit(X, y)
    W_w, W_b = oracles.class_graphs(X, y, oracles.mean_sq_distance(X), None, 4)
    A = oracles.graph_laplacian(W_w) - 0.5 * oracles.graph_laplacian(W_b)
    K, n = oracles.gaussian(X, X, 3.0), len(X)
    H = np.eye(n) - 1 / n
    R = 0.1 * H @ np.linalg.inv(H @ K @ H + 0.1 * np.eye(n)) @ H
    values, vectors = np.linalg.eigh(A + 2.0 * R)
    np.testing.assert_allclose(model.eigenvalues_, values[:3], atol=1e-8)
    assert oracles.largest_angle(model.embedding_, vectors[:, :3]) < 1e-6


@pytest.mark.parametrize("smoother", [None, "projection"])
def test_margins_alone(data, smoother):
    """SEE eqs. 5 and 6: min z'M_l z with z'D_l z = 1, free or z = X w, for labelled rows."""
    X, y, _ = data
    model = ComposedEmbedding("margin", smoother).fit(X, y)
    M, D = objectives.formulas.margins(np.unique(y, return_inverse=True)[1], 3)
    F = np.eye(len(X)) if smoother is None else X
    values = la.eigh(F.T @ M @ F, F.T @ (D[:, None] * F), subset_by_index=(0, 1), eigvals_only=True)
    np.testing.assert_allclose(model.eigenvalues_, values, atol=1e-8)
    Z = model.embedding_
    np.testing.assert_allclose(Z.T @ (D[:, None] * Z), np.eye(2), atol=1e-8)
    np.testing.assert_allclose(np.diag(Z.T @ M @ Z), values, atol=1e-8)
    if smoother is None:
        # (5): the mean margin of a column is (2 - λ) / l
        means = [objectives.sample_margins(column[:, None], y).mean() for column in Z.T]
        np.testing.assert_allclose(means, (2 - values) / len(X), atol=1e-10)


def test_margins_of_unlabelled_rows_are_refused_without_a_graph(data):
    X, _, few = data
    with pytest.raises(ValueError, match="margins alone say nothing of rows without a label"):
        ComposedEmbedding("margin").fit(X, few)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"objective": "magic"}, "objective must be one of"),
        ({"smoother": "magic"}, "smoother must be None, one of"),
        ({"smoother": "ridge", "extension": "lvm"}, "extension must be None where a smoother"),
        ({"objective": np.eye(3)}, "objective must be a matrix of shape"),
        ({"n_components": 0}, "n_components must be"),
        ({"objective": objectives.Fisher("pinv"), "smoother": "ridge"}, "regularization='ridge'"),
        ({"objective": objectives.Isomap(n_landmarks=20), "smoother": "ridge"}, "n_landmarks must be None"),
    ],
)
def test_bad_choices(data, parameters, message):
    X, y, _ = data
    with pytest.raises(ValueError, match=message):
        ComposedEmbedding(**parameters).fit(X, y)


def test_unlabelled_rows_where_the_objective_has_no_use_for_them(data):
    X, _, few = data
    with pytest.raises(ValueError, match="has no use for rows without one"):
        ComposedEmbedding("supervised").fit(X, few)


def test_parameters_of_the_parts_in_a_grid_search(data):
    X, y, _ = data
    pipeline = make_pipeline(
        ComposedEmbedding(objectives.LDE(), smoothers.Projection(0.1, relative=True)), KNeighborsClassifier(1)
    )
    grid = {
        "composedembedding__objective__n_neighbors": [3, 7],
        "composedembedding__smoother__ridge": [0.01, 1.0],
        "composedembedding__n_components": [1, 2],
    }
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    assert search.best_score_ > 0.9
    best = search.best_estimator_[0]
    assert best.objective_.n_neighbors == search.best_params_["composedembedding__objective__n_neighbors"]


def test_propositions_of_lgrm(data):
    """1 and 2: LGRM with the Laplacian of eigenmaps tends to LPP and KLPP for μ → ∞, μγ → 0; 3 and 4: to SR and KSR for
    μ → 0."""
    X, _, _ = data
    X = X - X.mean(axis=0)
    common = {"local": "le", "n_neighbors": 8}
    for kernel in ("linear", "rbf"):
        named = {"kernel": None if kernel == "linear" else kernel, "constraint": "identity", "n_neighbors": 8}
        regression = SpectralRegression(2, alpha=1e-4, **named).fit(X)
        small = LGRM(2, mu=1e-12, gamma=1e-4, kernel=kernel, **common).fit(X)
        assert oracles.largest_angle(small.transform(X), regression.embedding_) < 1e-4
    projection = LPP(2, constraint="identity", n_neighbors=8).fit(X)
    large = LGRM(2, mu=1e5, gamma=1e-12, kernel="linear", **common).fit(X)
    assert oracles.largest_angle(large.embedding_, projection.embedding_) < 1e-3


def test_lgrm_without_weight_is_the_plain_method():
    X, _ = make_swiss_roll(300, random_state=0)
    plain = ComposedEmbedding("local_regression").fit(X)
    np.testing.assert_allclose(LGRM(mu=0).fit(X).embedding_, plain.embedding_, atol=1e-8)


def test_lgrm_with_a_dense_local_and_a_smooth_kernel_converges():
    """A dense matrix was made sparse, and iterations on it did not converge."""
    X, _ = make_swiss_roll(1050, random_state=0)
    L = laplacian(knn_graph(X, 10))[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dense, sparse = (LGRM(local=A, sigma=20.0, mu=1.0).fit(X) for A in (L.toarray(), L))
    assert oracles.largest_angle(dense.embedding_, sparse.embedding_) < 1e-5


def test_labels_may_be_strings():
    X, y = load_iris(return_X_y=True)
    names = np.array(["a", "b", "c"])[y]
    numbers = ComposedEmbedding("lde", "projection").fit(X, y)
    np.testing.assert_array_equal(ComposedEmbedding("lde", "projection").fit(X, names).embedding_, numbers.embedding_)


def test_given_neighbors_set_the_links_of_new_rows():
    """The map took n_neighbors where other lists were given."""
    X, _ = make_swiss_roll(200, random_state=0)
    lists = knn(X, 5)
    given, plain = LaplacianEigenmaps(neighbors=lists).fit(X), LaplacianEigenmaps(n_neighbors=5).fit(X)
    np.testing.assert_allclose(given.embedding_, plain.embedding_, atol=1e-10)
    np.testing.assert_array_equal(given.transform(X[:20] + 0.1), plain.transform(X[:20] + 0.1))
    given, plain = LGRM(local="le", neighbors=lists).fit(X), LGRM(local="le", n_neighbors=5).fit(X)
    np.testing.assert_allclose(given.embedding_, plain.embedding_, atol=1e-10)
    assert not np.allclose(LGRM(local="le").fit(X).embedding_, plain.embedding_, atol=1e-3)


@pytest.mark.parametrize("scale", [2.0**400, 2.0**-400])
def test_ridges_and_components_in_the_units_of_the_data(scale):
    """Rows beyond 1e90 are scaled inside: ridges in squared units of the rows, and coefficients, must follow."""
    X = np.random.default_rng(0).standard_normal((60, 4))
    for model, ridge in ((LPP(), "alpha"), (SpectralRegression(), "alpha"), (LGRM(kernel="linear"), "gamma")):
        small = clone(model).set_params(**{ridge: 0.5}).fit(X)
        with np.errstate(over="ignore"):
            value = 0.5 * scale * scale
        if not 0 < value < np.inf:
            continue
        large = clone(model).set_params(**{ridge: value}).fit(X * scale)
        np.testing.assert_allclose(large.embedding_, small.embedding_, atol=1e-8)
        np.testing.assert_allclose(large.components_ * scale, small.components_, rtol=1e-6)
    for model in (LocalRegressionEmbedding(), LGRM(), LGRM(mu=0)):
        small, large = (clone(model).set_params(gamma_local=0.5 * s * s).fit(X * s) for s in (1.0, scale))
        np.testing.assert_allclose(large.embedding_, small.embedding_, atol=1e-8)


@pytest.mark.process
@pytest.mark.parametrize("smoother", [None, "ridge", "projection"])
def test_damaged_objectives_are_refused(run_python, smoother):
    """In a process of its own: an index out of range read anywhere in memory."""
    run_python(
        "import numpy as np, pytest\n"
        "from manifast import ComposedEmbedding\n"
        "from manifast.graphs import knn_graph\n"
        "from manifast.objectives import Objective\n"
        "X = np.random.default_rng(0).standard_normal((60, 4))\n"
        "W = knn_graph(X, 5); W.indices[3] = 10**8\n"
        "for A in (W, np.triu(np.ones((60, 60))), np.full((60, 60), np.nan)):\n"
        "    with pytest.raises(ValueError, match='A of the objective'):\n"
        f"        ComposedEmbedding(Objective(A), {smoother!r}).fit(X)\n"
    )


@pytest.mark.parametrize("pair", [("ltsa", "gaussian"), ("lfda", "ridge"), ("lde", "ridge")])
def test_pairs_without_room_are_refused_at_once(pair):
    X = np.random.default_rng(0).standard_normal((100_000, 3))
    with pytest.raises(ValueError, match="Got 100000 rows"):
        ComposedEmbedding(*pair).fit(X, np.arange(len(X)) % 2)


@pytest.mark.parametrize("model", [Isomap(), ClassicalMDS(), ClassicalMDS(n_landmarks=20), ComposedEmbedding("isomap")])
def test_lengths_are_in_the_units_of_the_data(data, model):
    X, _, _ = data
    small, large = clone(model).fit(X), clone(model).fit(X * 2.0**450)
    np.testing.assert_allclose(large.embedding_ * 2.0**-450, small.embedding_, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(
        large.transform(X[:9] * 2.0**450) * 2.0**-450, small.transform(X[:9]), rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(large.eigenvalues_ * 2.0**-900, small.eigenvalues_, rtol=1e-9)


def test_neighbors_out_of_range_are_refused(data):
    X, _, _ = data
    with pytest.raises(ValueError, match="neighbors must name rows from 0 to 119"):
        LocallyLinearEmbedding(neighbors=(np.ones((120, 8)), np.full((120, 8), 120))).fit(X)


@pytest.mark.parametrize("smoother", ["ridge", "kernel_ridge", "projection"])
@pytest.mark.parametrize("objective", [objectives.SDA, objectives.SDE], ids=lambda one: one.__name__)
def test_a_full_graph_is_a_graph_like_any_other(data, objective, smoother):
    X, _, few = data
    W = full_graph(X)
    dense, sparse = (
        ComposedEmbedding(objective(graph=graph), smoother, n_components=2).fit(X, few)
        for graph in ("full", sp.csr_array(W))
    )
    np.testing.assert_allclose(dense.eigenvalues_, sparse.eigenvalues_, rtol=1e-8)
    np.testing.assert_allclose(dense.transform(X), sparse.transform(X), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("exponent", [296, -296])
def test_projections_of_huge_and_tiny_rows(data, exponent):
    """Squared distances times two such rows leave the range of numbers."""
    X = data[0]
    plain, scaled = (ComposedEmbedding("mds", "projection").fit(rows) for rows in (X, np.ldexp(X, exponent)))
    np.testing.assert_allclose(scaled.embedding_, plain.embedding_, rtol=1e-9)
