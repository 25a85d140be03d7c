"""Metrics: exact on constructed cases, invariant where they should be."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import orthogonal_procrustes
from scipy.spatial import procrustes

from manifast.metrics import (
    alignment_error,
    continuity,
    embedding_error,
    misclassification_rate,
    neighborhood_preservation,
    residual_variance,
    subspace_distance,
    trustworthiness,
)


def test_embedding_error_by_hand(rng):
    Y = rng.standard_normal((40, 3))
    R = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    moved = 0.2 * Y @ R + [1.0, 2.0, 3.0]
    noise = 0.1 * rng.standard_normal((10, 3))
    test = moved[30:] + 0.2 * noise @ R
    target = Y[30:] - Y[:30].mean(axis=0)
    expected = np.sum(noise**2) / np.sum(target**2)
    assert embedding_error(Y[:30], Y[30:], moved[:30], test) == pytest.approx(expected, rel=1e-10)


def test_alignment_error_is_procrustes(rng):
    A, B = rng.standard_normal((25, 4)), rng.standard_normal((25, 4))
    assert alignment_error(A, B) == pytest.approx(procrustes(B, A)[2], rel=1e-10)
    assert alignment_error(A, B, squared=False) == pytest.approx(np.sqrt(procrustes(B, A)[2]), rel=1e-10)
    Ac, Bc = A - A.mean(axis=0), B - B.mean(axis=0)
    R, _ = orthogonal_procrustes(Ac, Bc)
    expected = np.sum((Ac @ R - Bc) ** 2) / np.sum(Bc**2)
    assert alignment_error(A, B, scale=False) == pytest.approx(expected, rel=1e-10)


def test_misclassification_rate():
    assert misclassification_rate(["a", "b", "c"], ["a", "c", "c"]) == pytest.approx(1 / 3)
    with pytest.raises(ValueError, match="y_pred must have the shape"):
        misclassification_rate([1, 2], [1])


def test_bad_shapes():
    with pytest.raises(ValueError, match="train must have the shape of ref_train"):
        embedding_error(np.ones((3, 2)), np.ones((2, 2)), np.ones((4, 2)), np.ones((2, 2)))
    with pytest.raises(ValueError, match="Y must have the shape of Y_batch"):
        alignment_error(np.ones((3, 2)), np.ones((3, 1)))


def by_definition(X, Y, k, X_new=None, Y_new=None):
    """Trustworthiness and the share of kept neighbours, from sorts of all distances."""
    one, other = (X, Y) if X_new is None else (X_new, Y_new)
    judged, n = len(one), len(X) - (X_new is None)
    penalty = shared = 0
    for i in range(judged):
        orders = []
        for rows, seen in ((X, one), (Y, other)):
            order = np.argsort(np.linalg.norm(rows - seen[i], axis=1), kind="stable")
            orders.append(list(order[order != i] if X_new is None else order))
        penalty += sum(max(0, orders[0].index(j) + 1 - k) for j in orders[1][:k])
        shared += len(set(orders[0][:k]) & set(orders[1][:k]))
    return 1 - 2 * penalty / (judged * k * (2 * n - 3 * k + 1)), shared / (judged * k)


@pytest.fixture
def embedded(rng):
    X = rng.standard_normal((120, 8)) * np.linspace(3, 0.5, 8)
    return X, X[:, :2] + 0.3 * rng.standard_normal((120, 2))


@pytest.mark.parametrize("k", [1, 5, 20, 59])
def test_neighbours_by_definition(embedded, k):
    X, Y = embedded
    trust, shared = by_definition(X, Y, k)
    assert trustworthiness(X, Y, k) == pytest.approx(trust, abs=1e-13)
    assert continuity(X, Y, k) == pytest.approx(by_definition(Y, X, k)[0], abs=1e-13)
    assert neighborhood_preservation(X, Y, k) == pytest.approx(shared, abs=1e-13)
    assert neighborhood_preservation(Y, X, k) == pytest.approx(shared, abs=1e-13)


@pytest.mark.parametrize("k", [1, 7, 40])
def test_mapped_rows_by_definition(embedded, k):
    X, Y = embedded
    known, new = slice(0, 90), slice(90, 120)
    trust, shared = by_definition(X[known], Y[known], k, X[new], Y[new])
    rows = {"X_new": X[new], "Y_new": Y[new]}
    assert trustworthiness(X[known], Y[known], k, **rows) == pytest.approx(trust, abs=1e-13)
    assert neighborhood_preservation(X[known], Y[known], k, **rows) == pytest.approx(shared, abs=1e-13)
    swapped = by_definition(Y[known], X[known], k, Y[new], X[new])[0]
    assert continuity(X[known], Y[known], k, **rows) == pytest.approx(swapped, abs=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_trustworthiness_of_scikit_learn(dtype):
    from sklearn.datasets import load_digits
    from sklearn.decomposition import PCA
    from sklearn.manifold import trustworthiness as theirs

    rng = np.random.default_rng(0)
    X = (load_digits().data[:600] + 0.01 * rng.standard_normal((600, 64))).astype(dtype)  # no ties
    Y = PCA(2).fit_transform(X)
    wide = X.astype(np.float64), Y.astype(np.float64)
    for k in (1, 5, 12, 100, 299):
        assert trustworthiness(X, Y, k) == pytest.approx(theirs(*wide, n_neighbors=k), abs=1e-12)
        assert continuity(X, Y, k) == pytest.approx(theirs(*wide[::-1], n_neighbors=k), abs=1e-12)
    cosine = theirs(*wide, n_neighbors=10, metric="cosine")
    assert trustworthiness(*wide, 10, metric="cosine") == pytest.approx(cosine, abs=1e-12)
    between = np.linalg.norm(wide[0][:, None] - wide[0], axis=2)
    given = trustworthiness(between, Y, 10, metric="precomputed")
    assert given == pytest.approx(theirs(*wide, n_neighbors=10), abs=1e-12)


def test_many_k_are_those_of_each_alone(embedded):
    X, Y = embedded
    for metric in (trustworthiness, continuity, neighborhood_preservation):
        assert np.array_equal(metric(X, Y, range(1, 60)), [metric(X, Y, k) for k in range(1, 60)])
        assert np.array_equal(metric(X, Y, [30, 2]), [metric(X, Y, 30), metric(X, Y, 2)])
        assert np.array_equal(metric(X, Y, range(1, 60), n_threads=1), metric(X, Y, range(1, 60), n_threads=3))
    assert neighborhood_preservation(X, Y, 119) == 1.0


def test_perfect_and_hopeless():
    X = np.random.default_rng(1).standard_normal((200, 5))
    assert trustworthiness(X, 3 * X + 1, 10) == continuity(X, 3 * X + 1, 10) == 1.0
    other = np.random.default_rng(2).standard_normal((200, 2))
    assert neighborhood_preservation(X, other, 10) == pytest.approx(10 / 199, abs=0.02)


@pytest.mark.process
def test_no_matrix_of_all_pairs(grown_memory):
    prepare = "import numpy as np; from manifast.metrics import trustworthiness; X = np.random.rand(12_000, 20)"
    assert grown_memory(prepare, "trustworthiness(X, X[:, :2], 20)") < 60  # all pairs: 1152 MB


def test_residual_variance(rng):
    X, Y = rng.standard_normal((80, 4)), rng.standard_normal((80, 2))
    between = [np.linalg.norm(Z[:, None] - Z, axis=2) for Z in (X, Y)]
    above = np.triu_indices(80, 1)
    expected = 1 - np.corrcoef(between[0][above], between[1][above])[0, 1] ** 2
    assert residual_variance(X, Y) == pytest.approx(expected, rel=1e-11)
    assert residual_variance(between[0], Y, metric="precomputed") == pytest.approx(expected, rel=1e-11)
    assert residual_variance(X, X[:, :3]) < residual_variance(X, X[:, :2])
    assert residual_variance(X, np.zeros((80, 1))) == 1.0
    assert residual_variance(np.eye(3), 2 * np.eye(3)) == 0.0


def test_subspace_distance(rng):
    from scipy.linalg import subspace_angles

    U, V = rng.standard_normal((30, 4)), rng.standard_normal((30, 4))
    assert subspace_distance(U, V) == pytest.approx(np.sin(subspace_angles(U, V)).max() ** 2, rel=1e-10)
    assert subspace_distance(U, 1e5 * U @ rng.standard_normal((4, 4))) < 1e-25
    small = U + 1e-9 * V
    assert 1e-19 < subspace_distance(U, small) < 1e-16  # squares of angles far below rounding of cosines
    assert subspace_distance(np.eye(4)[:, :2], np.eye(4)[:, 1:3]) == 1.0
    with pytest.raises(ValueError, match="V must have independent columns"):
        subspace_distance(U, np.ones((30, 4)))


def test_bad_neighbours_are_refused():
    X = np.random.default_rng(0).random((20, 3))
    for metric in (trustworthiness, continuity):
        for k in (0, 10, 2.5, True, "3", None):
            with pytest.raises(ValueError, match="n_neighbors must be an integer from 1 to 9 below half of 20 rows"):
                metric(X, X, k)
    with pytest.raises(ValueError, match="n_neighbors must be an integer from 1 to 19 for 19 other rows"):
        neighborhood_preservation(X, X, [3, 20])
    with pytest.raises(ValueError, match="n_neighbors must be an integer or several"):
        trustworthiness(X, X, [])
    with pytest.raises(ValueError, match=r"Y must have one row per row of X, 20\. Got 19"):
        trustworthiness(X, X[1:])
    with pytest.raises(ValueError, match="X_new and Y_new must be given together"):
        trustworthiness(X, X, X_new=X)
    with pytest.raises(ValueError, match="X_new must have 3 columns"):
        trustworthiness(X, X, X_new=X[:, :2], Y_new=X)
    with pytest.raises(ValueError, match="metric must be 'euclidean', 'cosine' or 'precomputed'"):
        trustworthiness(X, X, metric="manhattan")
    with pytest.raises(ValueError, match="X must be a square matrix of distances"):
        trustworthiness(X, X, metric="precomputed")
    with pytest.raises(ValueError, match="X must hold distances, none below 0"):
        trustworthiness(-np.ones((20, 20)), X, metric="precomputed")
    with pytest.raises(ValueError, match="X must be finite"):
        trustworthiness(X * np.nan, X)


def test_alignment_error_at_the_ends_of_the_range():
    A, B = np.array([[0.0, 1.0], [2.0, 0.5], [1.0, 3.0]]), np.array([[1.0, 0.0], [0.0, 2.0], [2.5, 1.0]])
    for unit in (1e-300, 1e300):
        assert alignment_error(unit * A, B) == pytest.approx(alignment_error(A, B), rel=1e-10)
        assert alignment_error(A, unit * B) == pytest.approx(alignment_error(A, B), rel=1e-10)
        stiff = alignment_error(unit * A, unit * B, scale=False)
        assert stiff == pytest.approx(alignment_error(A, B, scale=False), rel=1e-10)
    for constant in (np.ones((3, 2)), np.empty((0, 2))):
        with pytest.raises(ValueError, match="Y_batch must have rows that differ"):
            alignment_error(A[: len(constant)], constant)
