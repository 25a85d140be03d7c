"""The matrices of Hessian eigenmaps and of modified LLE against plain NumPy and scikit-learn, and their objectives."""

import sys

import numpy as np
import pytest
import scipy.linalg as la
from helpers import X10, check_matrix, nearest, roll, same_bits

from manifast._local import alignment_matrix, hessian_matrix, lle_matrix, modified_lle_matrix
from manifast.objectives import formulas as objectives
from manifast.spectral import smallest_eigenvectors

DTYPES = [np.float32, np.float64]
NONE = np.empty((0, 2), np.int64)


def plain_hessian(X, lists, dim, economic=True):
    """The steps of the paper; with a full QR instead, what scikit-learn does."""
    M = np.zeros((len(X), len(X)))
    for near in lists:
        Z = X[near].astype(float)
        U = np.linalg.svd(Z - Z.mean(axis=0), full_matrices=False)[0][:, :dim]
        products = [U[:, i] * U[:, j] for i in range(dim) for j in range(i, dim)]
        Q = la.qr(np.column_stack([np.ones(len(near)), U, *products]), mode="economic" if economic else "full")[0]
        w = Q[:, dim + 1 :]
        assert np.abs(w.sum(axis=0)).max() < 1e-12  # so that hessian_tol has nothing to do
        M[np.ix_(near, near)] += w @ w.T
    return M


def plain_modified(X, lists, dim, reg=1e-3, centers=None):
    """All singular vectors, the Householder reflections and the residuals, one list at a time."""
    X, k = X.astype(float), lists.shape[1]
    centers = np.arange(len(X)) if centers is None else centers
    count = min(k, X.shape[1])
    parts = [np.linalg.svd(X[near] - X[i]) for i, near in zip(centers, lists, strict=True)]
    squares = np.array([s**2 for _, s, _ in parts])
    eta = np.median(squares[:, dim:].sum(axis=1) / squares[:, :dim].sum(axis=1))
    M = np.zeros((len(X), len(X)))
    for i, near, (V, _, _), values in zip(centers, lists, parts, squares, strict=True):
        small = sum(values[r:].sum() / values[:r].sum() < eta for r in range(1, count))
        s = k - count + small
        if s == 0:
            continue
        Z = X[near] - X[i]
        w = np.linalg.solve(Z @ Z.T + reg * values.sum() * np.eye(k), np.ones(k))
        w /= w.sum()
        V = V[:, k - s :]
        alpha = np.linalg.norm(V.sum(axis=0)) / np.sqrt(s)
        h = alpha - V.sum(axis=0)
        h /= np.linalg.norm(h) if np.linalg.norm(h) > 1e-12 else np.inf
        W = V @ (np.eye(s) - 2 * np.outer(h, h)) + (1 - alpha) * w[:, None]
        residuals = np.zeros((len(X), s))
        residuals[near] = W
        residuals[i] -= 1
        M += residuals @ residuals.T
    return M


# Hessian eigenmaps


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("n", "p", "k", "dim"),
    [(30, 1, 3, 1), (41, 3, 6, 2), (60, 3, 12, 2), (50, 4, 10, 3), (50, 30, 13, 2), (60, 8, 20, 4), (60, 40, 30, 5)],
)
def test_hessian(level, rng, n, p, k, dim, dtype):
    X = (rng.standard_normal((n, p)) * np.geomspace(3, 0.3, p) + 5).astype(dtype)
    lists = nearest(X, k)
    check_matrix(hessian_matrix(X, lists, dim=dim), plain_hessian(X, lists, dim), 1e-10)


def test_quadratics_without_second_order_are_annihilated(level, rng):
    """Affine functions of a flat patch have no Hessian; a product of coordinates has."""
    T = rng.uniform(-1, 1, (80, 2))
    X = T @ rng.standard_normal((2, 5)) + rng.standard_normal(5)
    M = hessian_matrix(X, nearest(T, 10), dim=2)
    assert abs(M @ T).max() <= 1e-12 * abs(M).max() * 10
    second = T[:, 0] * T[:, 1]
    assert second @ (M @ second) > 1e-3


def test_hessian_of_degenerate_cliques(level, rng):
    """Copies of one point add nothing; points on a line or on a circle what does not depend on earlier columns."""
    k = 9
    t = rng.uniform(0, 2 * np.pi, k)
    circle = np.column_stack([np.cos(t), np.sin(t), np.zeros(k)])
    line = rng.standard_normal((k, 1)) * rng.standard_normal(3)
    X = np.concatenate([np.ones((k, 3)), line, circle])
    lists = np.arange(3 * k).reshape(3, k)
    M = hessian_matrix(X, lists, dim=2).toarray()
    assert np.isfinite(M).all()
    assert [np.linalg.matrix_rank(M[a : a + k, a : a + k], tol=1e-6) for a in (0, k, 2 * k)] == [0, 1, 2]
    np.testing.assert_allclose(M @ M, M, atol=1e-13)
    np.testing.assert_allclose(M.sum(axis=1), 0, atol=1e-13)


def test_scikit_learn_has_ltsa_under_the_name_of_hessian(rng):
    """Its full QR keeps all columns after the tangent ones, the complement of 1 and U: the alignment matrix."""
    X = roll(rng, 80)
    lists = nearest(X, 9)
    np.testing.assert_allclose(plain_hessian(X, lists, 2, economic=False), alignment_matrix(X, lists, dim=2).toarray(),
                               atol=1e-11)  # fmt: skip


# Modified LLE


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("reg", [1e-3, 0.1])
@pytest.mark.parametrize(
    ("n", "p", "k", "dim"),
    [(30, 1, 3, 1), (40, 3, 6, 2), (60, 3, 12, 2), (50, 4, 4, 2), (50, 30, 13, 2), (60, 8, 20, 4), (60, 40, 30, 5)],
)
def test_modified(level, rng, n, p, k, dim, reg, dtype):
    X = (rng.standard_normal((n, p)) * np.geomspace(3, 0.3, p) + 5).astype(dtype)
    lists = nearest(X, k)
    check_matrix(modified_lle_matrix(X, lists, dim=dim, reg=reg), plain_modified(X, lists, dim, reg), 1e-10)


def test_lists_of_other_rows(level, rng):
    X = rng.standard_normal((40, 3))
    lists, centers = nearest(X, 7)[[3, 3, 8, 20]], np.array([3, 3, 8, 20])
    lists[1, -1] = np.setdiff1d(np.arange(40), np.append(lists[0], 3))[0]
    found = modified_lle_matrix(X, lists, dim=2, centers=centers)
    check_matrix(found, plain_modified(X, lists, 2, centers=centers))
    assert modified_lle_matrix(X, lists[:0], dim=2, centers=centers[:0]).nnz == 0


def test_affine_images_are_annihilated_by_modified_lle(level, rng):
    """Flat data: the null vectors alone would do, and neither they nor w move the rows of X."""
    T = rng.standard_normal((70, 2))
    X = T @ rng.standard_normal((2, 5))
    M = modified_lle_matrix(X, nearest(T, 9), dim=2, reg=1e-10)
    assert abs(M @ T).max() <= 1e-6 * abs(M).max()


def test_modified_of_degenerate_lists(level, rng):
    """Copies of a row, points on a line, copies of two rows: finite, sums of zero, no negative value."""
    k = 8
    line = np.linspace(0, 1, k + 1)[:, None] * rng.standard_normal(3)
    X = np.concatenate([np.ones((k + 1, 3)), line, np.repeat(rng.standard_normal((2, 3)), [4, k - 3], axis=0)])
    lists = np.array([[j for j in range(i - i % (k + 1), i - i % (k + 1) + k + 1) if j != i] for i in range(len(X))])
    for dim in (1, 2, 3):
        M = modified_lle_matrix(X, lists, dim=dim).toarray()
        check_matrix(modified_lle_matrix(X, lists, dim=dim), M)


def test_constants_in_the_leading_vectors(level):
    """The ones are a leading vector of neighbours on one side: any null vector will do, and the sums stay zero."""
    side = np.array([[0.0, 1, 0], [0.0, -1, 0], [0.0, 0, 1], [0.0, 0, -1]]) + np.array([5.0, 0, 0])
    X = np.concatenate([np.zeros((1, 3)), side, side + np.array([0.1, 0.2, 0.3])])
    lists = np.array([[j for j in range(9) if j != i][:4] for i in range(9)])
    for tol in (0.0, 1e-12):
        M = modified_lle_matrix(X, lists, dim=1, tol=tol)
        check_matrix(M, M.toarray())


def test_as_many_neighbors_as_dimensions(level, rng):
    """No singular value is left over: nothing is added, as in scikit-learn."""
    X = rng.standard_normal((20, 4))
    for tol in (0.0, 1e-12):
        assert abs(modified_lle_matrix(X, nearest(X, 3), dim=3, tol=tol)).max() < 1e-13


# Both


MAKERS = {
    "hessian": lambda X, lists, **k: hessian_matrix(X, lists, dim=2, **k),
    "modified": lambda X, lists, **k: modified_lle_matrix(X, lists, dim=2, **k),
}


@pytest.mark.parametrize("method", MAKERS)
@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e-100, 1e100, 1e200, 5e307])
@pytest.mark.parametrize("p", [3, 20])
def test_no_scale(level, rng, method, scale, p):
    X = rng.uniform(-2, 2, (30, p))
    lists, make = nearest(X, 9), MAKERS[method]
    check_matrix(make(X * scale, lists), make(X, lists).toarray(), 1e-8 if scale < 1e-300 else 1e-11)


@pytest.mark.parametrize("method", MAKERS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("p", [3, 20])
def test_threads_and_layout_change_no_bit(level, rng, method, dtype, p):
    X = np.c_[roll(rng, 500), rng.standard_normal((500, p - 3))].astype(dtype)
    lists, make = nearest(X, 9), MAKERS[method]
    alone = make(X, lists, n_threads=1)
    for threads in (2, 3):
        same_bits(make(X, lists, n_threads=threads), alone)
    strange = np.repeat(np.asfortranarray(X), 2, axis=1)[:, ::2], np.asfortranarray(lists.astype(np.uint16))
    same_bits(make(*strange), alone)


def subspace_gap(A, B):
    """The sine of the largest angle between two spaces."""
    A, B = np.linalg.qr(A)[0], np.linalg.qr(B)[0]
    return np.linalg.norm(A - B @ (B.T @ A), 2)


def datasets():
    from sklearn.datasets import load_digits, make_s_curve, make_swiss_roll

    rng = np.random.default_rng(0)
    digits = load_digits().data[:500]
    digits = digits + 0.01 * rng.standard_normal(digits.shape)
    while len(named := np.unique(nearest(digits, 12))) < len(digits):
        # A row in no list would be a null vector of its own. An even number, as scikit-learn compares the row that the
        # median belongs to with itself, up to rounding.
        digits = digits[named[: len(named) // 2 * 2]]
    yield "roll", make_swiss_roll(600, random_state=0)[0]
    yield "curve", make_s_curve(600, random_state=0)[0]
    yield "digits", digits


@pytest.mark.parametrize("method", ["hessian", "modified", "ltsa"])
@pytest.mark.parametrize("name", ["roll", "curve", "digits"])
def test_spaces_of_scikit_learn(monkeypatch, method, name):
    """Its embeddings, the Hessian one with the QR that the paper needs; as it comes, that one is the space of LTSA."""
    from sklearn.manifold import _locally_linear, locally_linear_embedding

    X = dict(datasets())[name]
    k, lists = 12, nearest(X, 12)
    options = {"n_neighbors": k, "n_components": 2, "eigen_solver": "dense"}
    if method == "ltsa":
        M, method = alignment_matrix(X, lists, dim=2), "hessian"
    else:
        M = MAKERS[method](X, lists)
        monkeypatch.setattr(_locally_linear, "qr", lambda Y: la.qr(Y, mode="economic"))
    theirs, _ = locally_linear_embedding(X, method=method, **options)
    values = np.linalg.eigvalsh(M.toarray())[:4]
    assert values[1] > 1e-10 and values[3] > 1.01 * values[2]  # which two eigenvectors is not in doubt
    ours = smallest_eigenvectors(M, 2, null=np.ones(len(X)))[1]
    assert subspace_gap(ours, theirs) < 1e-6


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: hessian_matrix(X10, [[1, 2, 3, 4, 5]] * 10, dim=2), r"neighbors must have more than .* = 5 columns"),
        (lambda: hessian_matrix(X10, [[1, 2, 3]], dim=4), "dim must be an integer from 1 to 3, the number of features"),
        (lambda: hessian_matrix(X10, [[1, 2, 3]], dim=0), "dim must be"),
        (lambda: hessian_matrix(X10, [[1, 2, 3]], dim=True), "dim must be"),
        (lambda: hessian_matrix(X10, [[1, 2, 10]], dim=1), "neighbors must be between"),
        (lambda: hessian_matrix(X10, [[1, 2, 3], [1, 2, 1]], dim=1), "neighbors must not name a point twice.*in row 1"),
        (lambda: hessian_matrix(X10 * np.nan, [[1, 2, 3]], dim=1), "X must be finite"),
        (lambda: hessian_matrix(X10, [[1, 2, 3]], dim=1, n_threads=0), "n_threads must be"),
        (lambda: modified_lle_matrix(X10, [[1]] * 10, dim=2), r"dim must be an integer from 1 to 1, min\(k, p\)"),
        (lambda: modified_lle_matrix(X10, [[1, 2, 3, 4]] * 10, dim=4), r"from 1 to 3, min\(k, p\)"),
        (lambda: modified_lle_matrix(X10, [[1, 2]] * 9, dim=1), "neighbors must have 10 rows"),
        (lambda: modified_lle_matrix(X10, [[1, 2]] * 10, dim=1), "neighbors must not name a row itself.*in row 1"),
        (lambda: modified_lle_matrix(X10, [[1, -2]] * 10, dim=1), "neighbors must be between"),
        (lambda: modified_lle_matrix(X10, [[1, 2]], dim=1, centers=[10]), "centers must be between"),
        (lambda: modified_lle_matrix(X10, [[1, 2]], dim=1, centers=[0, 3]), "neighbors must have 2 rows"),
        (lambda: modified_lle_matrix(X10, [[1, 2]], dim=1, centers=[0.0]), "centers must hold integers"),
        (lambda: modified_lle_matrix(X10, [[1, 2]], dim=1, centers=[[0]]), "centers must be a vector"),
        (lambda: modified_lle_matrix(X10, [[1, 2]], dim=1, centers=[0], reg=0), "reg must be a positive"),
        (lambda: modified_lle_matrix(X10, [[1, 2]], dim=1, centers=[0], tol=-1), "tol must be"),
    ],
)  # fmt: skip
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space")
@pytest.mark.parametrize("method", ["hessian_matrix", "modified_lle_matrix"])
def test_no_memory(run_python, method):
    """Factors of many gigabytes under a limit of half of one more than is in use."""
    code = f"""
import resource
import numpy as np
from manifast._local import {method} as make
X = np.random.default_rng(0).standard_normal((200000, 6))
lists = (np.arange(200000)[:, None] + np.arange(1, 41)) % 200000
make(X[:100], lists[:100] % 100 if {method!r} == "modified_lle_matrix" else lists[:50], dim=6, n_threads=1)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 2**29,) * 2)
try:
    make(X, lists, dim=6, n_threads=1)
except MemoryError:
    print("refused")
"""
    assert run_python(code).strip() == "refused"


# Objectives


def two_patches(rng):
    X = np.concatenate([rng.uniform(0, 1, (30, 3)), rng.uniform(0, 1, (30, 3)) + np.array([5.0, 0, 0])])
    return X, np.concatenate([nearest(X[:30], 8), nearest(X[30:], 8) + 30]), np.array([[3, 41], [7, 50]])


@pytest.mark.parametrize("method", ["hessian", "modified_reconstruction"])
def test_objectives_without_bridges(rng, method):
    X, lists, _ = two_patches(rng)
    if method == "hessian":
        found, wanted = objectives.hessian(X, lists, NONE, dim=2), hessian_matrix(X, lists, dim=2)
    else:
        found = objectives.modified_reconstruction(X, lists, NONE, dim=2, reg=1e-2)
        wanted = modified_lle_matrix(X, lists, dim=2, reg=1e-2)
    same_bits(found.A, wanted)
    assert found.B is None and found.drop_constant


def test_bridges_join_components(rng):
    """As many zero eigenvalues as a connected graph has, and the sums of the same blocks with bridges."""
    X, lists, bridges = two_patches(rng)
    joint = np.array([[i, j, *np.c_[lists[i], lists[j]].ravel()][:8] for i, j in bridges])
    ends, others = np.array([3, 7, 41, 50]), np.array([41, 50, 3, 7])
    near = np.c_[lists[ends][:, :7], others]
    M = objectives.hessian(X, lists, bridges, dim=2).A
    check_matrix(M, plain_hessian(X, np.r_[lists, joint], 2), 1e-10)
    M = objectives.modified_reconstruction(X, lists, bridges, dim=2, reg=1e-3).A
    check_matrix(M, plain_modified(X, np.r_[lists, near], 2, centers=np.r_[np.arange(60), ends]), 1e-10)
    one_null = (np.linalg.eigvalsh(M.toarray()) < 1e-10).sum()
    assert one_null == 1


def test_other_objectives_treat_bridges_as_before(rng):
    X, lists, bridges = two_patches(rng)
    joint = np.array([[i, j, *np.c_[lists[i], lists[j]].ravel()][:8] for i, j in bridges])
    same_bits(objectives.alignment(X, lists, bridges, dim=2).A, alignment_matrix(X, np.r_[lists, joint], dim=2))
    M = objectives.reconstruction(X, lists, bridges, reg=1e-3).A - lle_matrix(X, lists)
    assert np.linalg.matrix_rank(M.toarray(), tol=1e-8) == 4
