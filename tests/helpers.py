"""What several test modules use and no fixture needs: rows, neighbours, splits by class, checks of sparse matrices."""

from __future__ import annotations

import inspect

import numpy as np
import scipy.sparse as sp

from manifast._kernels import index_dtype

X10 = np.arange(30.0).reshape(10, 3) ** 1.5


def random_array(n, density, rng):
    """A sparse n x n matrix. SciPy 1.15 has another name for the generator."""
    name = "rng" if "rng" in inspect.signature(sp.random_array).parameters else "random_state"
    return sp.random_array((n, n), density=density, **{name: rng})


def roll(rng, n):
    t = rng.uniform(3, 12, n)
    return np.c_[t * np.cos(t), rng.uniform(0, 20, n), t * np.sin(t)]


def split_classes(y, per_class, seed):
    """Training rows, so many of each class, and the others."""
    rng = np.random.default_rng(seed)
    train = np.concatenate([rng.permutation(np.flatnonzero(y == c))[:per_class] for c in np.unique(y)])
    return train, np.setdiff1d(np.arange(len(y)), train)


def nearest(X, k, queries=None):
    """The k nearest rows of X by a plain sort; without queries a row is not its own neighbour."""
    Q = X if queries is None else queries
    d = np.linalg.norm(Q[:, None].astype(float) - X[None], axis=2)
    if queries is None:
        np.fill_diagonal(d, np.inf)
    return np.argsort(d, axis=1, kind="stable")[:, :k]


def check_matrix(M, wanted, tolerance=1e-12):
    """Values, and the promises on form: canonical CSR, exactly symmetric, rows sum to zero, no negative eigenvalue."""
    n = len(wanted)
    assert isinstance(M, sp.csr_array) and M.shape == (n, n) and M.dtype == np.float64
    assert M.indices.dtype == M.indptr.dtype == index_dtype(max(n, M.nnz))
    form = sp.csr_array((M.data, M.indices, M.indptr), shape=M.shape)  # without the flags we set ourselves
    assert form.has_canonical_format
    dense = M.toarray()
    size = max(1.0, np.abs(wanted).max())  # blocks have entries of size 1, but may cancel
    np.testing.assert_allclose(dense, wanted, rtol=0, atol=tolerance * size)
    np.testing.assert_array_equal(dense, dense.T)
    assert np.abs(dense.sum(axis=1)).max() <= 1e-12 * size
    assert np.linalg.eigvalsh(dense).min() >= -1e-12 * n * size


def same_bits(A, B):
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(A, name).view(np.uint8), getattr(B, name).view(np.uint8))
