"""The same embeddings as scikit-learn and tapkee, on data without ties."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg import subspace_angles
from sklearn.datasets import make_swiss_roll
from sklearn.manifold import Isomap as SkIsomap
from sklearn.manifold import LocallyLinearEmbedding as SkLLE
from sklearn.manifold import SpectralEmbedding
from sklearn.neighbors import kneighbors_graph

from manifast import LTSA, ClassicalMDS, DiffusionMaps, Isomap, LaplacianEigenmaps, LocallyLinearEmbedding

X = make_swiss_roll(700, random_state=0)[0]
K = 12
WIDTH = 20.0


def angle(Y, Z):
    """Of the spaces of the columns and the constant."""
    with_constant = [np.column_stack([np.ones(len(Y)), A]) for A in (Y, Z)]
    return float(subspace_angles(*with_constant)[0])


def directed_heat():
    """Heat weights of each row's own list of neighbours."""
    lists = kneighbors_graph(X, K, mode="distance")
    lists.data = np.exp(-(lists.data**2) / WIDTH)
    return lists


@pytest.mark.parametrize("method", ["standard", "modified", "ltsa"])
@pytest.mark.parametrize("d", [2, 3])
def test_lle_of_scikit_learn(method, d):
    theirs = SkLLE(n_components=d, n_neighbors=K, method=method, eigen_solver="dense").fit(X)
    assert angle(LocallyLinearEmbedding(d, n_neighbors=K, method=method).fit(X).embedding_, theirs.embedding_) < 1e-6


def test_scikit_learns_hessian_method_is_ltsa():
    """It takes all directions beside the tangent space, not those of the second order (see `_local.hessian_matrix`)."""
    theirs = SkLLE(n_components=2, n_neighbors=K, method="hessian", eigen_solver="dense").fit(X).embedding_
    assert angle(LTSA(2, n_neighbors=K).fit(X).embedding_, theirs) < 1e-6
    assert 1e-4 < angle(LocallyLinearEmbedding(2, n_neighbors=K, method="hessian").fit(X).embedding_, theirs) < 0.1


def test_isomap_and_eigenmaps_of_scikit_learn():
    theirs = SkIsomap(n_components=3, n_neighbors=K).fit(X).embedding_
    assert angle(Isomap(3, n_neighbors=K).fit(X).embedding_, theirs) < 1e-6
    W = directed_heat().maximum(directed_heat().T)
    ours = LaplacianEigenmaps(3, n_neighbors=K, beta=WIDTH).fit(X)
    np.testing.assert_allclose(ours.affinity_matrix_.toarray(), W.toarray(), atol=1e-12)
    theirs = SpectralEmbedding(3, affinity="precomputed", eigen_solver="arpack", random_state=0).fit(sp.csr_matrix(W))
    assert angle(ours.embedding_, theirs.embedding_) < 1e-6


@pytest.mark.parametrize(
    ("model", "method", "options"),
    [
        (LocallyLinearEmbedding(2, n_neighbors=K), "lle", {}),
        (LocallyLinearEmbedding(2, n_neighbors=K, method="hessian"), "hlle", {}),
        (LocallyLinearEmbedding(2, n_neighbors=K, method="ltsa"), "ltsa", {}),
        (ClassicalMDS(2), "mds", {}),
        (DiffusionMaps(2, alpha=1.0, beta=WIDTH), "dm", {"gaussian_kernel_width": WIDTH}),
    ],
    ids=str,
)
def test_tapkee(model, method, options):
    tapkee = pytest.importorskip("tapkee", reason="tapkee is not installed")
    theirs = tapkee.embed(np.asfortranarray(X.T), method=method, num_neighbors=K, target_dimension=2, **options)
    assert angle(model.fit(X).embedding_, np.asarray(theirs)) < 1e-6


def test_eigenmaps_of_tapkee_count_an_edge_of_both_ends_twice():
    tapkee = pytest.importorskip("tapkee", reason="tapkee is not installed")
    options = {"num_neighbors": K, "target_dimension": 2, "gaussian_kernel_width": WIDTH}
    theirs = np.asarray(tapkee.embed(np.asfortranarray(X.T), method="la", **options))
    W = directed_heat() + directed_heat().T
    assert angle(LaplacianEigenmaps(2, affinity="precomputed").fit(W).embedding_, theirs) < 1e-6


@pytest.mark.parametrize(("beta", "d"), [(WIDTH, 5), ("mean", 10), (1.0, 3)])
def test_diffusion_maps_by_products_and_by_a_factor(beta, d):
    """The narrow width has eigenvalues too close for products alone."""
    model = DiffusionMaps(d, beta=beta, alpha=1.0).fit(X)
    squares = ((X[:, None] - X) ** 2).sum(axis=2)
    kernel = np.exp(-squares / (beta if beta != "mean" else squares.sum() / (700 * 699)))
    q = kernel.sum(axis=1)
    kernel = kernel / q[:, None] / q
    roots = np.sqrt(kernel.sum(axis=1))
    values, vectors = np.linalg.eigh(kernel / roots[:, None] / roots)
    np.testing.assert_allclose(model.eigenvalues_, values[::-1][1 : d + 1], atol=1e-10)
    assert angle(model.embedding_, (vectors / roots[:, None])[:, ::-1][:, 1 : d + 1]) < 1e-6
