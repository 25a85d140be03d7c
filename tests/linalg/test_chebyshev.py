"""Smallest eigenvalues by polynomials of a sparse matrix: against LAPACK, and where LLE and LTSA take them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

from manifast import LTSA, LocallyLinearEmbedding, spectral
from manifast._linalg import chebyshev
from manifast._linalg.chebyshev import smallest_filtered
from manifast.spectral import matrix_norm, smallest_eigenvectors


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def turned(values, rng, n):
    """A sparse matrix with these smallest eigenvalues, and others from 1 to 5."""
    rest = np.linspace(1.0, 5.0, n - len(values))
    A = sp.csr_array(sp.diags_array(np.concatenate([values, rest])[rng.permutation(n)]))
    for _ in range(3):  # rotations in planes keep it sparse
        pairs, angles = rng.permutation(n - n % 2).reshape(-1, 2), rng.uniform(0, np.pi, n // 2)
        Q = sp.lil_array(sp.eye_array(n))
        for (i, j), angle in zip(pairs.tolist(), angles, strict=True):
            Q[i, i] = Q[j, j] = np.cos(angle)
            Q[i, j], Q[j, i] = -np.sin(angle), np.sin(angle)
        Q = sp.csr_array(Q)
        A = sp.csr_array(Q @ A @ Q.T)
    return sp.csr_array((A + A.T) / 2)


@pytest.mark.parametrize("k", [1, 3, 8])
def test_against_lapack(k, rng):
    A = turned([1e-4, 2e-4, 1e-3, 5e-3, 6e-3, 0.01, 0.02, 0.05, 0.1], rng, 300)
    expected, expected_vectors = np.linalg.eigh(A.toarray())
    values, vectors = smallest_filtered(A, k, np.empty((300, 0)), matrix_norm(A), 1e-12)
    assert_allclose(values, expected[:k], rtol=0, atol=1e-11)
    assert_allclose(np.abs(np.einsum("ij,ij->j", vectors, expected_vectors[:, :k])), 1.0, rtol=0, atol=1e-10)
    assert_allclose(vectors.T @ vectors, np.eye(k), rtol=0, atol=1e-13)


def test_known_vectors_are_left_out(rng):
    A = turned([0.0, 1e-3, 2e-3, 0.1], rng, 200)
    expected, known = np.linalg.eigh(A.toarray())
    values, vectors = smallest_filtered(A, 2, known[:, :1], matrix_norm(A), 1e-12)
    assert_allclose(values, expected[1:3], rtol=0, atol=1e-12)
    assert np.abs(known[:, 0] @ vectors).max() < 1e-13


def test_repeated_eigenvalues(rng):
    A = turned([0.01] * 4 + [0.02] * 2, rng, 250)
    values, vectors = smallest_eigenvectors(A, 6, method="filtered")
    assert_allclose(values, [0.01] * 4 + [0.02] * 2, rtol=0, atol=1e-10)
    assert np.abs(A @ vectors - vectors * values).max() < 1e-8


def test_a_vector_for_b(rng):
    A, B = turned([0.01, 0.02, 0.3], rng, 150), rng.uniform(1.0, 2.0, 150)
    expected = smallest_eigenvectors(A, 2, B, method="dense")
    found = smallest_eigenvectors(A, 2, B, method="filtered")
    for one, other in zip(found, expected, strict=True):
        assert_allclose(one, other, rtol=0, atol=1e-7)


def test_what_polynomials_cannot_tell_apart(rng):
    stiff = sp.csr_array(sp.diags_array(np.linspace(1e-4, 1.0, 3000) ** 3))
    assert smallest_filtered(stiff, 2, np.empty((3000, 0)), matrix_norm(stiff), 1e-14) is None
    with pytest.raises(ValueError, match="use method 'direct'"):
        smallest_eigenvectors(stiff, 2, method="filtered")


@pytest.mark.parametrize("call", [lambda A: (A.toarray(), None), lambda A: (A, sp.eye_array(len(A.indptr) - 1))])
def test_only_sparse_matrices(call, rng):
    A, B = call(turned([0.1], rng, 20))
    with pytest.raises(ValueError, match="A must be sparse and B None or a vector"):
        smallest_eigenvectors(A, 1, B, method="filtered")


@pytest.mark.parametrize("model", [LocallyLinearEmbedding(2, n_neighbors=12), LTSA(2, n_neighbors=12)])
def test_embeddings_take_it_where_the_factor_would_be_too_large(model, rng, monkeypatch):
    X = rng.uniform(size=(900, 6))
    expected = model.fit(X).embedding_
    taken = []
    monkeypatch.setattr(spectral, "_FACTOR_FLOPS", 1e3)
    monkeypatch.setattr(spectral, "_FILTER_ROWS", 500)
    monkeypatch.setattr(
        spectral, "smallest_filtered", lambda *a, **o: taken.append(1) or chebyshev.smallest_filtered(*a, **o)
    )
    found = model.fit(X).embedding_
    assert taken == [1]
    assert_allclose(found, expected, rtol=0, atol=1e-6 * np.abs(expected).max())
    with threadpool_limits(1):
        assert_array_equal(model.fit(X).embedding_, found)


@pytest.mark.parametrize(
    "diagonal", [np.zeros(50), -np.arange(1.0, 201), -np.arange(200.0), np.linspace(-1.0, 1.0, 200)]
)
def test_matrices_without_positive_eigenvalues(diagonal):
    A = sp.csr_array(sp.diags_array(diagonal))
    values, vectors = smallest_eigenvectors(A, 2, method="filtered")
    assert_allclose(values, np.sort(diagonal)[:2], rtol=0, atol=1e-8)
    assert np.abs(A @ vectors - vectors * values).max() <= 1e-7 * max(np.abs(diagonal).max(), 1.0)
