"""The multilevel eigen solver for graph Laplacians, against dense and shift-invert solvers and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse.linalg import eigsh

from manifast._core import multilevel as core
from manifast._linalg.multilevel import laplacian_eigenvectors
from manifast.kernels import knn, neighbor_graph


def edges(i, j, weights, n):
    half = sp.coo_array((np.broadcast_to(weights, np.shape(i)).astype(float), (i, j)), shape=(n, n)).tocsr()
    return sp.csr_array(half + half.T)


def path(n):
    return edges(np.arange(n - 1), np.arange(1, n), 1.0, n)


def ring(n):
    return edges(np.arange(n), np.roll(np.arange(n), -1), 1.0, n)


def grid(m):
    nodes = np.arange(m * m).reshape(m, m)
    i = np.concatenate([nodes[:-1].ravel(), nodes[:, :-1].ravel()])
    j = np.concatenate([nodes[1:].ravel(), nodes[:, 1:].ravel()])
    return edges(i, j, 1.0, m * m)


def star(n):
    return edges(np.zeros(n - 1, dtype=int), np.arange(1, n), 1.0, n)


def complete(n):
    return sp.csr_array(np.ones((n, n)) - np.eye(n))


def clusters(rng, count, size, bridge):
    """Random graphs, each joined to the next by one edge."""
    i, j = rng.integers(0, size, (2, 6 * size))
    base = edges(i[i != j], j[i != j], 1.0, size) + path(size)
    first = np.arange(count) * size
    bridges = edges(first, np.roll(first, -1) + 3, bridge * rng.uniform(1, 2, count), count * size)
    return sp.csr_array(sp.block_diag([base] * count) + bridges)


def reweighted(W, rng, low):
    upper = sp.triu(W, 1).tocoo()
    return edges(upper.row, upper.col, 10 ** rng.uniform(low, 0, upper.nnz), W.shape[0])


def swiss_roll(n):
    rng = np.random.default_rng(0)
    t = 1.5 * np.pi * (1 + 2 * rng.random(n))
    X = np.column_stack([t * np.cos(t), 21 * rng.random(n), t * np.sin(t)])
    beta = 2 * np.var(X, axis=0, ddof=1).sum()
    return neighbor_graph(*knn(X, 10), beta=beta)


def degrees(W):
    return np.asarray(W.sum(axis=1)).ravel()


def normalised(W):
    """I - D^-1/2 W D^-1/2, with L = D - W in the middle."""
    d = degrees(W)
    root = sp.diags_array(1 / np.sqrt(d))
    return sp.csc_array(root @ (sp.diags_array(d) - W) @ root)


def check(W, k, result, *, orthogonality=1e-12):
    """What holds for any result: normalised, orthogonal to constants, residuals as the definition says."""
    values, Z, residuals, n_iter = result
    d = degrees(W)
    assert values.shape == residuals.shape == (k,) and Z.shape == (W.shape[0], k)
    assert all(np.isfinite(a).all() for a in (values, Z, residuals)) and n_iter >= 0
    assert (values > 0).all()
    assert (np.diff(values) >= -1e-12 * values[1:]).all()
    assert_allclose(Z.T @ (d[:, None] * Z), np.eye(k), atol=orthogonality)
    assert_allclose(d @ Z / np.sqrt(d.sum()), 0, atol=orthogonality)
    R = d[:, None] * Z - W @ Z - d[:, None] * Z * values
    assert_allclose(residuals, np.sqrt(np.sum(R**2 / d[:, None], axis=0)) / 2, atol=1e-14, rtol=1e-3)


def angle(W, Z, U):
    """Sine of the largest angle between the columns of D^1/2 Z and the span of U."""
    Q = np.sqrt(degrees(W))[:, None] * Z
    return np.linalg.norm(Q - U @ (U.T @ Q), 2)


# Accuracy


def test_swiss_roll_matches_shift_invert():
    W, k = swiss_roll(5000), 6
    result = laplacian_eigenvectors(W, k)
    check(W, k, result)
    reference, U = eigsh(normalised(W), k + 2, sigma=-1e-4, tol=0)
    order = np.argsort(reference)
    reference, U = reference[order][1 : k + 1], U[:, order][:, 1 : k + 1]
    assert_allclose(result[0], reference, rtol=1e-9)
    assert np.diff(reference).min() > 1e-2 * reference[0]
    for c in range(k):
        assert angle(W, result[1][:, [c]], U[:, [c]]) < 1e-6


def test_digits_match_shift_invert(digits):
    W, most = neighbor_graph(*knn(digits, 10), beta=2 * np.var(digits, axis=0, ddof=1).sum()), 40
    reference, U = eigsh(normalised(W), most + 1, sigma=-1e-2, tol=0)
    order = np.argsort(reference)[1:]
    for k in (2, 10, most):
        result = laplacian_eigenvectors(W, k)
        check(W, k, result)
        assert_allclose(result[0], reference[order[:k]], rtol=1e-10)
        assert angle(W, result[1], U[:, order[:k]]) < 1e-6


def test_a_larger_tolerance_is_met_sooner_and_still_holds():
    W = swiss_roll(3000)
    loose, tight = laplacian_eigenvectors(W, 3, tol=1e-4), laplacian_eigenvectors(W, 3)
    assert loose[3] < tight[3]
    assert_allclose(loose[0], tight[0], rtol=1e-4)


def test_it_stops_at_max_iter_with_honest_residuals():
    W = swiss_roll(3000)
    for max_iter in (0, 2):
        result = laplacian_eigenvectors(W, 3, max_iter=max_iter)
        assert result[3] == max_iter
        check(W, 3, result)
        assert result[2].max() > 1e-8


def test_float32_and_matrix_types_are_taken(rng):
    W = reweighted(grid(30), rng, -1)
    narrow = W.astype(np.float32)
    expected = laplacian_eigenvectors(narrow.astype(np.float64), 3)
    for same in (narrow, sp.csr_matrix(narrow), narrow.tocoo(), narrow.toarray()):
        result = laplacian_eigenvectors(same, 3)
        assert all(np.array_equal(a, b) for a, b in zip(result, expected, strict=True))


@pytest.mark.parametrize("factor", [1e-200, 1e-20, 3.0, 1e200])
def test_the_scale_of_the_weights_only_scales_the_vectors(rng, factor):
    W = reweighted(grid(30), rng, -1)
    values, Z, _, _ = laplacian_eigenvectors(W, 3)
    scaled_values, scaled_Z, residuals, _ = laplacian_eigenvectors(W * factor, 3)
    assert_allclose(scaled_values, values, rtol=1e-9)
    assert_allclose(np.abs(scaled_Z) * np.sqrt(factor), np.abs(Z), atol=1e-6 * np.abs(Z).max())
    assert residuals.max() < 1e-8


def test_self_loops_and_stored_zeros_count_nowhere(rng):
    W = reweighted(grid(30), rng, -1)
    padded = (W + sp.diags_array(rng.random(900))).tocoo()
    zero = np.zeros(2)
    more = sp.coo_array((np.r_[padded.data, zero], (np.r_[padded.row, 0, 899], np.r_[padded.col, 899, 0])))
    for expected, result in zip(laplacian_eigenvectors(W, 3), laplacian_eigenvectors(more, 3), strict=True):
        assert_array_equal(result, expected)


# Graphs with closed forms, repeated eigenvalues, and bad ones


@pytest.mark.parametrize("n", [2000, 3001])
def test_ring(n):
    """1 - cos(2 pi j / n), each twice."""
    result = laplacian_eigenvectors(ring(n), 5)
    check(ring(n), 5, result)
    assert_allclose(result[0], 2 * np.sin(np.pi * np.array([1, 1, 2, 2, 3]) / n) ** 2, rtol=1e-9)


def test_path():
    """1 - cos(pi j / (n - 1)): a path is half a ring, by its degrees too."""
    result = laplacian_eigenvectors(path(3000), 4)
    check(path(3000), 4, result)
    assert_allclose(result[0], 2 * np.sin(np.pi * np.arange(1, 5) / 2 / 2999) ** 2, rtol=1e-9)


def test_grid_has_pairs_of_eigenvalues():
    W = grid(30)
    result = laplacian_eigenvectors(W, 7)
    check(W, 7, result)
    reference = scipy.linalg.eigh(normalised(W).toarray(), eigvals_only=True, subset_by_index=[1, 7])
    assert_allclose(result[0], reference, rtol=1e-11)


def test_star():
    result = laplacian_eigenvectors(star(2000), 3)
    check(star(2000), 3, result)
    assert_allclose(result[0], 1, rtol=1e-12)


def test_complete_graph():
    result = laplacian_eigenvectors(complete(1200), 5)
    check(complete(1200), 5, result)
    assert_allclose(result[0], 1200 / 1199, rtol=1e-12)


def test_clusters_that_hardly_touch(rng):
    """The eigenvalues are those of the bridges between clusters, to first order."""
    count, size, bridge = 8, 200, 1e-8
    W = clusters(rng, count, size, bridge)
    k = count - 1
    result = laplacian_eigenvectors(W, k)
    check(W, k, result)
    d = degrees(W)
    B = np.kron(np.eye(count), np.ones((size, 1)))
    weak = W.tocoo()
    between = weak.row // size != weak.col // size
    coarse = np.zeros((count, count))
    np.add.at(coarse, (weak.row[between] // size, weak.col[between] // size), weak.data[between])
    L = np.diag(coarse.sum(axis=1)) - coarse
    reference = scipy.linalg.eigh(L, np.diag(B.T @ d), eigvals_only=True)[1:]
    assert_allclose(result[0], reference, rtol=1e-6)
    assert result[2].max() < 1e-14


@pytest.mark.parametrize("low", [-4, -12])
def test_weights_over_many_orders(rng, low):
    W = reweighted(swiss_roll(800), rng, low)
    result = laplacian_eigenvectors(W, 3)
    check(W, 3, result)
    reference = scipy.linalg.eigh(normalised(W).toarray(), eigvals_only=True, subset_by_index=[1, 3])
    assert_allclose(result[0], reference, rtol=1e-9, atol=1e-15)


def test_a_hard_graph_ends_and_says_how_well(rng):
    W = reweighted(grid(40), rng, -12)
    result = laplacian_eigenvectors(W, 3, max_iter=30)
    check(W, 3, result)
    assert result[3] <= 30


@pytest.mark.parametrize(("n", "k"), [(2, 1), (3, 1), (3, 2), (7, 6), (120, 119), (520, 140)])
def test_small_graphs_and_nearly_all_vectors(n, k):
    W = path(n)
    result = laplacian_eigenvectors(W, k)
    check(W, k, result, orthogonality=1e-11)
    assert_allclose(result[0], 2 * np.sin(np.pi * np.arange(1, k + 1) / 2 / (n - 1)) ** 2, rtol=1e-9)


# Kernels


def blocks(rng, n, *widths):
    return tuple(rng.standard_normal((n, width)) for width in widths)


def hierarchy(W, threads=1):
    return core.Multilevel(W.indptr.astype(np.int64), W.indices.astype(np.int32), W.data, threads)


@pytest.mark.parametrize("n", [1, 5, 130, 5000])
def test_gram_update_residual_and_center(rng, level, n):
    x, p, w, aw = blocks(rng, n, 8, 4, 12, 12)
    mass = rng.random(n) + 0.5
    stacked = np.hstack([x, p, w])
    assert_allclose(core.gram((x, p, w), w, aw, mass, 1), stacked.T @ np.hstack([mass[:, None] * w, aw]), atol=1e-10)
    coef = rng.standard_normal((24, 12))
    expected = stacked @ coef
    core.update((x, p, w), coef, (x, p), 1)
    assert_allclose(np.hstack([x, p]), expected, atol=1e-12)
    values = rng.random(12)
    r, norms = core.residual(w, aw, mass, values, 1)
    assert_allclose(r, aw - mass[:, None] * w * values, atol=1e-13)
    assert_allclose(norms, np.sqrt(np.sum(r**2 / mass[:, None], axis=0)), rtol=1e-12)
    core.center(w, mass, 1)
    assert_allclose(mass @ w, 0, atol=1e-11)


@pytest.mark.parametrize("width", [4, 8, 12, 16, 20, 36])
def test_products_on_every_level(rng, level, width):
    h = hierarchy(swiss_roll(2000))
    assert len(h.sizes) >= 3
    W = swiss_roll(2000)[h.order()][:, h.order()]
    L = (sp.diags_array(degrees(W)) - W).toarray() * h.scale**2
    for at, size in enumerate(h.sizes):
        assert_allclose(h.product(at, np.eye(size, -(-size // 4) * 4))[:, :size], L, atol=1e-12)
        x = rng.standard_normal((size, width))
        assert_allclose(h.product(at, x), L @ x, atol=1e-11)
        assert_array_equal(h.product(at, np.ones((size, 4))), 0)
        if at + 1 < len(h.sizes):
            coarse = h.sizes[at + 1]
            P = h.prolong(at, np.eye(coarse, -(-coarse // 4) * 4))[:, :coarse]
            assert_allclose(P.sum(axis=1), 1, atol=1e-14)
            assert_allclose(P.T @ h.masses[at], h.masses[at + 1], rtol=1e-12)
            L = P.T @ L @ P


@pytest.mark.parametrize("precise", [False, True])
def test_the_v_cycle_is_close_to_the_pseudo_inverse(level, precise):
    """Eigenvalues of the preconditioned Laplacian lie near 1, apart from the 0 of the constants."""
    h = hierarchy(swiss_roll(400))
    n = h.sizes[0]
    L = h.product(0, np.eye(n))
    M = h.precondition(0, np.ascontiguousarray(np.eye(n) - 1 / n), np.ones(n), precise)
    assert_allclose(h.masses[0] @ M, 0, atol=1e-5 if not precise else 1e-10)
    ratios = np.sort(np.linalg.eigvals(M @ L).real)
    assert abs(ratios[0]) < 1e-4
    assert ratios[1] > 0.4 and ratios[-1] < 1.3
    twice = h.precondition(0, np.ascontiguousarray(np.eye(n) - 1 / n), np.full(n, 2.0), precise)
    assert_allclose(twice, 2 * M, rtol=1e-3, atol=1e-4 * np.abs(M).max())


def test_every_instruction_set_agrees(on_every_level):
    W = swiss_roll(2000)
    first, *others = on_every_level(lambda: laplacian_eigenvectors(W, 3))
    for other in others:
        assert_allclose(other[0], first[0], rtol=1e-10)


# Threads, repeatability, signals


@pytest.mark.parametrize("make", [lambda: swiss_roll(20000), lambda: grid(120)])
def test_same_bits_for_any_number_of_threads(make):
    W = make()
    first = laplacian_eigenvectors(W, 3, n_threads=1)
    for threads in (2, 3):
        for expected, result in zip(first, laplacian_eigenvectors(W, 3, n_threads=threads), strict=True):
            assert_array_equal(result, expected)


def test_verbose_prints(capsys):
    laplacian_eigenvectors(grid(30), 2, verbose=True)
    assert "iteration 1: smallest value" in capsys.readouterr().err


# What is refused


@pytest.mark.parametrize("k", [0, 10, -1, 2.0, True, None])
def test_wrong_k(k):
    with pytest.raises(ValueError, match=r"k must be an integer from 1 to 9 for 10 nodes\. Got"):
        laplacian_eigenvectors(path(10), k)


@pytest.mark.parametrize("tol", [0, -1, np.nan, "x"])
def test_wrong_tol(tol):
    with pytest.raises(ValueError, match=r"tol must be a positive"):
        laplacian_eigenvectors(path(10), 2, tol=tol)


@pytest.mark.parametrize("max_iter", [-1, 2.5, True])
def test_wrong_max_iter(max_iter):
    with pytest.raises(ValueError, match=r"max_iter must be an integer of at least 0\. Got"):
        laplacian_eigenvectors(path(10), 2, max_iter=max_iter)


def test_wrong_graphs():
    asymmetric = np.eye(5, k=1) + 2 * np.eye(5, k=-1)
    negative = -path(5)
    with pytest.raises(ValueError, match="W must be symmetric"):
        laplacian_eigenvectors(asymmetric, 1)
    with pytest.raises(ValueError, match="finite weights that are not negative"):
        laplacian_eigenvectors(negative, 1)
    with pytest.raises(ValueError, match="W must be a square matrix"):
        laplacian_eigenvectors(np.ones((3, 4)), 1)
    outside = path(5)
    outside.indices[0] = 77
    with pytest.raises(ValueError, match="valid CSR matrix"):
        laplacian_eigenvectors(outside, 1)


@pytest.mark.parametrize("n", [4, 1000])
def test_graphs_in_pieces_are_refused(n):
    pieces = sp.csr_array(sp.block_diag([path(n // 2), path(n // 2)]))
    for W in (pieces, sp.csr_array((n, n)), edges(np.array([n // 2 - 1]), np.array([n // 2]), 0.0, n) + pieces):
        with pytest.raises(ValueError, match=r"W must be a connected graph\. Got one of"):
            laplacian_eigenvectors(W, 1)
