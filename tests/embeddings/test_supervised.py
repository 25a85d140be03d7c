"""Embeddings by labels: the structure of class graphs, oracles, label encoding, theory of two classes, bad input."""

from __future__ import annotations

import warnings

import numpy as np
import oracles
import pytest
import scipy.linalg as la
from sklearn.base import clone
from sklearn.datasets import load_digits, make_blobs
from threadpoolctl import threadpool_limits

from manifast import LGRM, ComposedEmbedding, FisherEmbedding, LabelEncoding, SupervisedLaplacianEigenmaps
from manifast._labels import Labels
from manifast.extensions import RBF
from manifast.graphs import class_graphs, knn_graph
from manifast.kernels import knn, laplacian
from manifast.objectives.formulas import between_laplacian, laplacian_eigenmaps, supervised
from manifast.smoothers import Gaussian
from manifast.smoothers.ridge import KernelRidgeSmoother, LinearRidgeSmoother
from manifast.spectral import smallest_eigenvectors

ALL = [
    SupervisedLaplacianEigenmaps(),
    SupervisedLaplacianEigenmaps(n_neighbors_within=4, n_neighbors_between=3, mu=0.1),
    SupervisedLaplacianEigenmaps(normalized=True, n_neighbors_within=5),
    FisherEmbedding(),
    FisherEmbedding(n_neighbors_between=4),
    FisherEmbedding(regularization="pinv"),
    LabelEncoding(),
    LabelEncoding(extension="lvm"),
]

pytestmark = pytest.mark.filterwarnings("ignore:-1 in y is taken as a class")


@pytest.fixture
def classes():
    """Rows of four unbalanced classes in no order, labels that skip numbers."""
    X, y = make_blobs([14, 9, 11, 5], 3, cluster_std=2.0, random_state=3)
    order = np.random.default_rng(0).permutation(len(X))
    return X[order], np.array([7, -1, 30, 4])[y[order]]


def labels_of(y):
    return Labels(*np.unique(y, return_inverse=True))


@pytest.mark.parametrize("normalized", [False, True])
def test_the_complete_graph_between_classes_is_diagonal_plus_low_rank(classes, normalized):
    _, y = classes
    W = np.where(y[:, None] == y, 0.0, 1.0)
    L = between_laplacian(labels_of(y), normalized)
    np.testing.assert_allclose(L.toarray(), oracles.graph_laplacian(W, normalized), atol=1e-12)
    if not normalized:
        n, sizes = len(y), np.bincount(np.unique(y, return_inverse=True)[1])
        expected = np.concatenate([[0], np.full(3, n), *(np.full(size - 1, n - size) for size in sizes)])
        np.testing.assert_allclose(np.linalg.eigvalsh(L.toarray()), np.sort(expected), atol=1e-10)


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("k_between", [None, 3])
@pytest.mark.parametrize("k_within", [None, 4])
@pytest.mark.parametrize("mu", [0.05, 2.0])
@pytest.mark.filterwarnings("ignore:the complete graph between")
def test_supervised_laplacian_eigenmaps(classes, k_within, k_between, normalized, mu):
    X, y = classes
    W_w, W_b = oracles.class_graphs(X, y, oracles.mean_sq_distance(X), k_within, k_between)
    A = oracles.graph_laplacian(W_w, normalized) - mu * oracles.graph_laplacian(W_b, normalized)
    expected = np.linalg.eigh(A)
    for d in (1, 3, 8):
        model = SupervisedLaplacianEigenmaps(
            d, mu=mu, n_neighbors_within=k_within, n_neighbors_between=k_between, normalized=normalized
        ).fit(X, y)
        Y = model.embedding_
        np.testing.assert_allclose(model.eigenvalues_, expected[0][:d], atol=1e-9 * abs(expected[0][0]))
        np.testing.assert_allclose(Y.T @ Y, np.eye(d), atol=1e-9)
        np.testing.assert_allclose(A @ Y, Y * model.eigenvalues_, atol=1e-7 * abs(expected[0][0]))


def test_every_dimension_exists(classes):
    X, y = classes
    with pytest.warns(UserWarning, match="directions inside classes"):
        model = SupervisedLaplacianEigenmaps(len(X)).fit(X, y)
    np.testing.assert_allclose(model.embedding_.T @ model.embedding_, np.eye(len(X)), atol=1e-8)


def test_like_label_encoding_at_one_dimension_less_than_classes():
    X, y = load_digits(return_X_y=True)
    rows = np.concatenate([np.flatnonzero(y == c)[:30] for c in range(10)])  # balanced
    new = np.setdiff1d(np.arange(len(X)), rows)
    found = []
    for model in (SupervisedLaplacianEigenmaps(), LabelEncoding(), LabelEncoding(9)):
        model.fit(X[rows], y[rows])
        found.append(y[rows][knn(model.embedding_, 1, queries=model.transform(X[new]))[1][:, 0]])
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[2], found[1])


def test_fewer_dimensions_are_repeatable_and_tell_class_means_apart(classes):
    X, y = classes
    order = np.random.default_rng(5).permutation(len(X))
    with pytest.warns(UserWarning, match="3 leading directions, and n_components is 2: they are equally good"):
        Y = SupervisedLaplacianEigenmaps(2).fit(X, y).embedding_
        again = SupervisedLaplacianEigenmaps(2).fit(X[order], y[order]).embedding_
    oracles.same_columns(again, Y[order], 1e-8)
    # Weighted class means are told apart best by the leading left singular vectors of the scaled, centred means.
    codes = np.unique(y, return_inverse=True)[1]
    sizes = np.bincount(codes)
    means = np.stack([X[codes == c].mean(axis=0) for c in range(4)]) - X.mean(axis=0)
    left = np.linalg.svd(np.sqrt(sizes)[:, None] * means)[0][:, :2]
    oracles.same_columns(Y, (left / np.sqrt(sizes)[:, None])[codes], 1e-8)


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("mu", [1e-4, 0.1, 1.0, 30.0])
def test_two_classes_have_strict_signs(normalized, mu):
    """Lemma 13 of THEORY: each class connected and one edge between them is enough, for every mu."""
    X, y = make_blobs(60, 3, centers=2, cluster_std=3.0, random_state=1)
    model = SupervisedLaplacianEigenmaps(
        1, mu=mu, n_neighbors_within=5, n_neighbors_between=1, normalized=normalized
    ).fit(X, y)
    sides = np.sign(model.embedding_[:, 0])
    assert (sides[y == 0] == sides[y == 0][0]).all()
    assert (sides[y == 1] == -sides[y == 0][0]).all()


@pytest.mark.parametrize("seed", range(4))
def test_theorem_14_and_corollary_15(seed):
    from manifast.theory import origin_distance_bound, two_class_margin_bound

    X, y = make_blobs(40, 3, centers=2, cluster_std=3.0, random_state=seed)
    within, between = class_graphs(X, y, n_neighbors_within=39, n_neighbors_between=4)
    largest = two_class_margin_bound(within, between, y, 1e-9)
    assert largest.condition_holds
    for mu in (1e-6, 1e-4, 1e-2):
        bound = two_class_margin_bound(within, between, y, mu)
        model = SupervisedLaplacianEigenmaps(
            1, mu=mu, n_neighbors_within=39, n_neighbors_between=4, normalized=True
        ).fit(X, y)
        z = model.embedding_[:, 0] / np.sqrt(np.asarray(within.sum(axis=1)).ravel())
        z = z if z[y == 1].mean() > 0 else -z
        gap = z[y == 1].min() - z[y == 0].max()
        assert gap >= bound.margin
        nearest = origin_distance_bound(within, between, y, gap).margin
        assert min(np.abs(z[y == 0]).min(), np.abs(z[y == 1]).min()) >= nearest * (1 - 1e-9)


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("k_between", [None, 3])
def test_fisher(classes, normalized, k_between):
    X, y = classes
    W_w, W_b = oracles.class_graphs(X, y, oracles.mean_sq_distance(X), None, k_between)
    L_w, L_b = (oracles.graph_laplacian(W, normalized) for W in (W_w, W_b))
    options = {"n_neighbors_between": k_between, "normalized": normalized}
    ratios, vectors = la.eigh(L_b, L_w + 0.01 * np.eye(len(X)))
    model = FisherEmbedding(3, eps=0.01, **options).fit(X, y)
    np.testing.assert_allclose(model.eigenvalues_, ratios[::-1][:3], rtol=1e-7)
    np.testing.assert_allclose(np.linalg.norm(model.embedding_, axis=0), 1.0, rtol=1e-12)
    assert oracles.largest_angle(model.embedding_, vectors[:, ::-1][:, :3]) < 1e-6
    values, vectors = la.eig(la.pinvh(L_w) @ L_b)
    order = np.argsort(-values.real)[:3]
    model = FisherEmbedding(3, regularization="pinv", **options).fit(X, y)
    np.testing.assert_allclose(model.eigenvalues_, values.real[order], rtol=1e-6)
    oracles.same_columns(model.embedding_, vectors[:, order].real, 1e-5)


@pytest.mark.filterwarnings("ignore:the kernel matrix is nearly singular")
def test_the_natural_map_takes_a_ridge_where_rows_have_few_features():
    """Interpolation through 300 rows of three features swings wildly; the ridge is what leave-one-out chooses."""
    X, y = make_blobs(300, 3, centers=4, cluster_std=3.0, random_state=0)
    model = SupervisedLaplacianEigenmaps().fit(X[::2], y[::2])
    plain = SupervisedLaplacianEigenmaps(extension=RBF()).fit(X[::2], y[::2])
    right = [
        np.mean(y[::2][knn(fitted.embedding_, 1, queries=fitted.transform(X[1::2]))[1][:, 0]] == y[1::2])
        for fitted in (model, plain)
    ]
    assert model.extension_.ridge_ >= 1e-3
    assert right[0] > right[1] + 0.15
    images = load_digits()
    assert LabelEncoding().fit(images.data[:300], images.target[:300]).extension_.ridge_ <= 1e-3


def test_wide_rows_take_no_square_of_their_features():
    X = np.random.default_rng(0).standard_normal((20, 60_000))
    assert SupervisedLaplacianEigenmaps().fit(X, np.arange(20) % 4).embedding_.shape == (20, 3)


def test_pinv_counts_the_rank_in_working_precision(classes):
    X, y = classes
    with pytest.raises(ValueError, match="n_components must be at most"):
        FisherEmbedding(30, regularization="pinv", beta=0.02).fit(X, y)
    far = X.copy()
    far[0] += 100.0
    assert FisherEmbedding(1, regularization="pinv").fit(far, y).eigenvalues_[0] < 1e13


def test_label_encoding(classes):
    X, y = classes
    model = LabelEncoding().fit(X, y)
    np.testing.assert_array_equal(model.embedding_, y[:, None] == np.unique(y))
    np.testing.assert_array_equal(model.classes_, np.unique(y))
    simplex = LabelEncoding(3).fit(X, y).embedding_
    np.testing.assert_allclose(oracles.sq_dist(simplex), oracles.sq_dist(model.embedding_), atol=1e-12)
    np.testing.assert_allclose(LabelEncoding(2).fit(X, y).embedding_, simplex[:, :2], atol=1e-12)
    means = np.stack([X[y == c].mean(axis=0) for c in np.unique(y)])
    spread = np.linalg.svd(means - means.mean(axis=0), compute_uv=False)
    turned = np.stack([simplex[y == c][0] for c in np.unique(y)]).T @ means
    np.testing.assert_allclose(np.linalg.norm(turned, axis=1), spread[:3], rtol=1e-9)
    with pytest.raises(ValueError, match="n_components must be an integer from 1 to 4, the number of classes"):
        LabelEncoding(5).fit(X, y)


@pytest.mark.parametrize("model", ALL, ids=str)
@pytest.mark.filterwarnings("ignore")
def test_same_answer_always(model):
    X, y = load_digits(return_X_y=True)
    new, model = X[300:360], clone(model).fit(X[:300], y[:300].astype(str))
    whole = model.transform(new)
    for rows in (slice(0, 1), slice(7, 30)):
        np.testing.assert_array_equal(model.transform(new[rows]), whole[rows])
    with threadpool_limits(1):
        again = clone(model).fit(X[:300], y[:300].astype(str))
    np.testing.assert_allclose(again.embedding_, model.embedding_, atol=1e-6)
    interpolated = clone(model).set_params(extension=RBF()).fit(X[:300], y[:300])
    np.testing.assert_allclose(interpolated.transform(X[:300]), interpolated.embedding_, atol=1e-6)
    narrow = clone(model).fit(X[:300].astype(np.float32), y[:300])
    assert narrow.embedding_.dtype == narrow.transform(new.astype(np.float32)).dtype == np.float32
    assert model.get_feature_names_out()[0].endswith("0")


@pytest.mark.parametrize("model", ALL, ids=str)
@pytest.mark.filterwarnings("ignore")
def test_two_classes_and_single_members(model):
    X = np.random.default_rng(0).standard_normal((9, 2))
    for y in ([0] * 5 + [1] * 4, [0] * 8 + [1], [0] * 6 + [1, 2, 2]):
        smaller = clone(model)
        if getattr(model, "n_neighbors_within", None):
            smaller.set_params(n_neighbors_within=3)
        assert np.isfinite(smaller.fit(X, y).transform(X + 0.1)).all()


def test_equal_rows_and_large_scales(classes):
    X, y = classes
    Y = SupervisedLaplacianEigenmaps().fit(X, y).embedding_
    for scale in (1e-200, 1e200):
        np.testing.assert_allclose(SupervisedLaplacianEigenmaps().fit(scale * X, y).embedding_, Y, atol=1e-6)
    assert np.isfinite(SupervisedLaplacianEigenmaps(extension="lvm").fit(np.ones((8, 2)), [0, 1] * 4).embedding_).all()


BAD = [
    (SupervisedLaplacianEigenmaps(mu=0.0), "mu must be a positive"),
    (SupervisedLaplacianEigenmaps(40), "n_components must be an integer from 1 to 39"),
    (SupervisedLaplacianEigenmaps(n_neighbors_within=39), "n_neighbors_within must be an integer from 1 to 38"),
    (SupervisedLaplacianEigenmaps(n_neighbors_between=0), "n_neighbors_between must be an integer from 1 to 38"),
    (SupervisedLaplacianEigenmaps(extension="spline"), "extension must be"),
    (FisherEmbedding(regularization="none"), "regularization must be 'ridge' or 'pinv'"),
    (FisherEmbedding(eps=-1), "eps must be a positive"),
    (FisherEmbedding(36, regularization="pinv"), "from 1 to 35, the rows less the classes"),
]


@pytest.mark.parametrize(("model", "message"), BAD, ids=[str(m) for m, _ in BAD])
def test_bad_parameters(classes, model, message):
    X, y = classes
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert not hasattr(model, "embedding_")


def test_bad_labels(classes):
    X, y = classes
    for labels, message in ((None, "requires y"), (np.ones(39), "more than one class"), (y[:-1], "one label per row")):
        with pytest.raises(ValueError, match=message):
            SupervisedLaplacianEigenmaps().fit(X, labels)


def test_a_supervised_objective_with_a_kernel_ridge_smoother(classes):
    """The joint form by hand: objective and smoother of two papers, one solve, one map."""
    X, y = classes
    K = oracles.gaussian(X, X, 3.0)
    W_w, W_b = oracles.class_graphs(X, y, oracles.mean_sq_distance(X), None, 4)
    A = oracles.graph_laplacian(W_w) - 0.5 * oracles.graph_laplacian(W_b)
    H = np.eye(len(X)) - 1 / len(X)
    R = 0.1 * H @ np.linalg.inv(H @ K @ H + 0.1 * np.eye(len(X))) @ H
    within, between = class_graphs(X, y, n_neighbors_between=4)
    objective = supervised(within, between, y, mu=0.5)
    smoother = KernelRidgeSmoother(K.copy(), 0.1)
    values, Y = smallest_eigenvectors(smoother.add_penalty(objective.A, 2.0), 3)
    expected = np.linalg.eigh(A + 2.0 * R)
    np.testing.assert_allclose(values, expected[0][:3], atol=1e-8)
    assert oracles.largest_angle(Y, expected[1][:, :3]) < 1e-6
    dual, intercept = smoother.fit(Y)
    model = LGRM(3, local=A, mu=2.0, gamma=0.1, sigma=3.0).fit(X)  # the same as an estimator
    np.testing.assert_allclose(K @ dual + intercept, model.transform(X), atol=1e-7)


def test_a_complete_between_graph_with_a_linear_smoother(classes):
    """Both are sparse plus low rank, and so is their sum; the constant is left out, where H counts."""
    X, y = classes
    W_w, W_b = oracles.class_graphs(X, y, oracles.mean_sq_distance(X), 4)
    A = oracles.graph_laplacian(W_w) - 0.01 * oracles.graph_laplacian(W_b)
    centred = X - X.mean(axis=0)
    R = np.eye(len(X)) - centred @ np.linalg.inv(centred.T @ centred + 0.5 * np.eye(3)) @ centred.T
    within, _ = class_graphs(X, y, n_neighbors_within=4)
    objective = supervised(within, None, labels_of(y), mu=0.01)
    summed = LinearRidgeSmoother(X, 0.5).add_penalty(objective.A, 0.3)
    np.testing.assert_allclose(summed.toarray(), A + 0.3 * R, atol=1e-10)
    values, _ = smallest_eigenvectors(summed, 3, null=np.ones(len(X)))
    H = np.eye(len(X)) - 1 / len(X)
    expected = np.linalg.eigvalsh(H @ (A + 0.3 * R) @ H + 1e3 * (np.eye(len(X)) - H))
    np.testing.assert_allclose(values, expected[:3], atol=1e-8)


@pytest.mark.parametrize("labelled", [False, True])
def test_the_smoother_of_nsse_with_other_objectives(classes, labelled):
    """Without labels the constant is left out: the smallest eigenvectors orthogonal to it."""
    X, y = classes
    W = knn_graph(X, 6)
    objective = laplacian_eigenmaps(W, "identity")
    if labelled:
        objective = supervised(*class_graphs(X, y, n_neighbors_between=3), labels_of(y), mu=0.5)
    smoother = Gaussian(0.05, sigma=2.0, relative=False)
    model = ComposedEmbedding(objective, smoother, n_components=3).fit(X)
    values, Y, coef = model.eigenvalues_, model.embedding_, model.dual_coef_
    psi = oracles.gaussian(X, X, 2.0)
    inverse = np.linalg.inv(psi)
    H = np.eye(len(X)) - (0.0 if labelled else 1.0) / len(X)
    A = H @ (objective.A.toarray() + 0.05 * inverse @ inverse) @ H + 1e3 * (np.eye(len(X)) - H)
    expected = np.linalg.eigh(A)
    np.testing.assert_allclose(values, expected[0][:3], rtol=1e-5)
    assert oracles.largest_angle(Y, expected[1][:, :3]) < 1e-4
    np.testing.assert_allclose(psi @ coef, Y, atol=1e-9)


@pytest.mark.process
@pytest.mark.parametrize("n", [16_000, pytest.param(50_000, marks=pytest.mark.heavy)])
@pytest.mark.parametrize("normalized", [False, True])
def test_memory_is_linear_in_the_number_of_rows(grown_memory, normalized, n):
    """In megabytes; the complete graph between 20 classes of 16,000 rows would have 2.4e8 edges."""
    prepare = (
        "import warnings; warnings.simplefilter('ignore')\n"
        "from sklearn.datasets import make_blobs\n"
        "import manifast\n"
        f"X, y = make_blobs({n}, 3, centers=20, random_state=0)\n"
        f"model = manifast.SupervisedLaplacianEigenmaps(n_neighbors_within=8, normalized={normalized})\n"
        "model.set_params(extension='lvm').fit(X[:1000], y[:1000])"
    )
    assert grown_memory(prepare, "model.fit(X, y)") < n / 200


def test_warns_where_the_interpolator_does_not_fit(monkeypatch):
    from manifast.embeddings import classes as module

    monkeypatch.setattr(module, "_RBF_ROWS", 30)
    X, y = make_blobs(40, 2, random_state=0)
    with pytest.warns(UserWarning, match="more than 30 rows new ones are mapped by extension='lvm'"):
        LabelEncoding().fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LabelEncoding(extension="lvm").fit(X, y)


def test_plain_graphs_of_the_public_function_agree(classes):
    X, y = classes
    within, between = class_graphs(X, y)
    A = (laplacian(within)[0] - 0.7 * laplacian(between)[0]).toarray()
    values = SupervisedLaplacianEigenmaps(mu=0.7).fit(X, y).eigenvalues_
    np.testing.assert_allclose(values, np.linalg.eigvalsh(A)[:3], atol=1e-9 * len(X))
