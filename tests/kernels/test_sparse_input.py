"""Damaged and hostile sparse input: a ValueError before SciPy or the core may index with it, never a crash."""

import numpy as np
import pytest
import scipy.sparse as sp

from manifast import GFHF, LGC, LGRM, LaplacianEigenmaps, LapRLS
from manifast._core.cholesky import Cholesky
from manifast._linalg.multilevel import laplacian_eigenvectors
from manifast._linalg.sparse_cholesky import SparseCholesky
from manifast._linalg.systems import grounded_solution, spd_solver
from manifast._paths import shortest_paths
from manifast._sparse import checked_sparse
from manifast.graphs import connect_components, knn_graph, mean_sq_distance, n_components
from manifast.kernels import laplacian
from manifast.spectral import LowRankSum, smallest_eigenvectors

FORMATS = ("csr", "csc", "coo", "bsr", "dia", "lil", "dok")

# In a fresh interpreter, as these crashed: what is asked of a damaged graph W of 60 rows X with labels y.
PREPARE = """
import numpy as np, scipy.sparse as sp
from manifast import GFHF, LGC, LGRM, FME, LapRLS, RMGT, LaplacianEigenmaps, LPP
from manifast.graphs import connect_components, knn_graph, mean_sq_distance, n_components
from manifast.kernels import laplacian
from manifast.spectral import LowRankSum, smallest_eigenvectors
from manifast._linalg.systems import spd_solver, grounded_solution
from manifast.extensions import LatentVariable, LandmarkIsomap, Nystrom
X = np.random.default_rng(0).standard_normal((60, 4))
y = np.where(np.arange(60) < 20, np.arange(60) % 2, -1)
def graph(index=np.int32):
    W = knn_graph(X, 6)
    W.indices, W.indptr = W.indices.astype(index), W.indptr.astype(index)
    return W
def pointer(W):
    W.indptr[5] = 2**30
    return W
def outside(W):
    W.indices[7] = 10**7
    return W
def negative(W):
    W.indices[7] = -10**7
    return W
def wrapped(W):
    W.indices = W.indices.astype(np.int64)
    W.indices[7] += 2**32
    return W
def short(W):
    W.indices = W.indices[:-40]
    return W
def pair(W):
    W = W.tocoo()
    W.coords[1][7] = 10**7
    return W
def column(W):
    W = W.tocsc()
    W.indices[7] = 10**7
    return W
def block(W):
    W = W.tobsr((2, 2))
    W.indices[7] = 10**7
    return W
DAMAGES = (pointer, outside, negative, wrapped, short, pair, column, block)
def refuses(call):
    for damage in DAMAGES:
        for index in (np.int32, np.int64):
            try:
                call(damage(graph(index)))
            except ValueError as error:
                assert "valid" in str(error), error
            else:
                raise AssertionError(damage.__name__)
"""

USES = [
    "laplacian(W)",
    "n_components(W)",
    "connect_components(W, X)",
    "connect_components(graph(), W)",
    "smallest_eigenvectors(W, 2)",
    "smallest_eigenvectors(W, 2, check=False)",
    "smallest_eigenvectors(np.eye(60), 2, B=W)",
    "smallest_eigenvectors(LowRankSum(W, np.ones((60, 1)), np.ones(1)), 2)",
    "GFHF(graph=W).fit(X, y)",
    "LGC(graph=W).fit(X, y)",
    "RMGT(graph=W).fit(X, y)",
    "LapRLS(graph=W).fit(X, y)",
    "FME(graph=W).fit(X, y)",
    "GFHF(graph='precomputed').fit(W, y)",
    "LaplacianEigenmaps(affinity='precomputed').fit(W)",
    "LGRM(local=W).fit(X)",
    "LaplacianEigenmaps(n_neighbors=5).fit(W)",
    "LaplacianEigenmaps(n_neighbors=5).fit(graph()).transform(W)",
    "GFHF(n_neighbors=5).fit(W, y)",
    "LatentVariable().fit(W, X)",
    "LandmarkIsomap(n_neighbors=5).fit(graph(), X).predict(W)",
    "knn_graph(W, 3)",
    "mean_sq_distance(W)",
    "spd_solver(W)",
    "grounded_solution(W, np.ones(60), np.ones((60, 1)))",
]


@pytest.mark.parametrize("part", range(3))
def test_a_damaged_matrix_is_refused_and_crashes_nothing(part, run_python):
    # Several in one interpreter, whose start takes longer; a crash prints the line it happened in.
    calls = "\n".join(f"refuses(lambda W: {use})" for use in USES[part::3])
    run_python(f"import faulthandler; faulthandler.enable()\n{PREPARE}\n{calls}", OMP_NUM_THREADS="1")


@pytest.fixture
def graph():
    return knn_graph(np.random.default_rng(1).standard_normal((40, 3)), 5)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("made", [sp.csr_array, sp.csr_matrix])
def test_every_format_gives_the_same_canonical_matrix(graph, kind, made):
    read = checked_sparse(made(graph).asformat(kind), "W", square=True)
    assert isinstance(read, sp.csr_array)
    assert read.has_canonical_format
    for name in ("data", "indices", "indptr"):
        assert np.array_equal(getattr(read, name), getattr(graph, name))


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_may_be_empty(kind):
    assert checked_sparse(sp.csr_array((4, 4)).asformat(kind), "W").nnz == 0


def test_diagonals_longer_or_shorter_than_the_matrix():
    data = np.arange(1.0, 13.0).reshape(3, 4)
    for shape in ((4, 4), (3, 6), (6, 3), (2, 2)):
        wide = sp.dia_array((data, [0, 1, -1]), shape=shape)
        assert np.array_equal(checked_sparse(wide, "W").toarray(), wide.toarray())


def test_order_and_duplicates_are_judged_by_the_arrays_not_by_old_flags():
    W = sp.csr_array(np.ones((3, 3)))
    assert W.has_canonical_format
    W.indices[:] = [2, 1, 0, 0, 0, 2, 0, 1, 2]
    before = W.indices.copy()
    read = checked_sparse(W, "W")
    assert read.indices.tolist() == [0, 1, 2, 0, 2, 0, 1, 2]
    assert read.data.tolist() == [1, 1, 1, 2, 1, 1, 1, 1]
    assert np.array_equal(W.indices, before)


def test_what_is_stored_beyond_the_last_pointer_is_left_out():
    W = sp.csr_array(np.eye(3))
    W.indices, W.data = np.append(W.indices, 99).astype(np.int32), np.append(W.data, np.nan)
    assert np.array_equal(checked_sparse(W, "W", finite=True).toarray(), np.eye(3))


@pytest.mark.parametrize("dtype", ["i1", "u8", ">f8", "f2", "f4", "?", "g"])
def test_other_dtypes_of_entries_and_indices(dtype):
    W = sp.csr_array(np.eye(3))
    W.data = W.data.astype(dtype)  # SciPy itself makes no matrix of some
    W.indices, W.indptr = W.indices.astype(">i8"), W.indptr.astype(np.uint64)
    read = checked_sparse(W, "W")
    assert read.dtype == (np.float32 if dtype in ("f2", "f4") else np.float64)
    assert np.array_equal(read.toarray(), np.eye(3))


def test_what_else_is_refused():
    W = sp.csr_array(np.eye(3))
    wrong = [
        (sp.csr_array(np.ones((2, 3))), "square"),
        (W * 1j, "real numbers"),
        (sp.csr_array(np.diag([1.0, np.inf, 1.0])), "finite"),
    ]
    for value, said in wrong:
        with pytest.raises(ValueError, match=f"W must.*{said}"):
            checked_sparse(value, "W", square=True, finite=True)
    for name, value in (("indptr", W.indptr * 1.0), ("indptr", W.indptr[:-1]), ("indptr", W.indptr + 1),
                        ("indices", W.indices[None]), ("data", W.data[:-1])):  # fmt: skip
        damaged = W.copy()
        setattr(damaged, name, value)
        with pytest.raises(ValueError, match="W must be a valid CSR matrix"):
            checked_sparse(damaged, "W")
    lists = W.tolil()
    lists.rows[0] = [0, 1]
    diagonals = W.todia()
    diagonals.offsets = np.array([0, 1])
    for damaged in (lists, diagonals):
        with pytest.raises(ValueError, match="W must be a valid"):
            checked_sparse(damaged, "W")


def test_it_shares_the_arrays_of_what_is_in_order(graph):
    read = checked_sparse(graph, "W")
    assert np.shares_memory(read.data, graph.data)
    assert np.shares_memory(read.indices, graph.indices)


ASYMMETRIC = """
import numpy as np, scipy.sparse as sp
n = 3000
A = sp.diags_array([-np.ones(n - 1), np.full(n, 3.0), -np.ones(n - 1)], offsets=[-1, 0, 1], format="lil")
for place in ((2251, 58), (2984, 1647), (320, 1158), (2173, 2506)):
    A[place] = 1e-10
A = A.tocsr()
"""


def test_a_collision_of_hashes_is_not_symmetry(run_python):
    said = run_python(
        ASYMMETRIC
        + """
from manifast._core.cholesky import Cholesky
from manifast.spectral import smallest_eigenvectors
core = Cholesky(A.indptr.astype(np.int64), A.indices, np.inf, 1)
print(core.symmetric, core.feasible)
try:
    core.factor(A.data, 0.0, None, 1)
except ValueError as error:
    print("refused")
try:
    smallest_eigenvectors(A, 3, method="direct")
except ValueError as error:
    print(error)
"""
    )
    assert said.split("\n")[:2] == ["False False", "refused"]
    assert "symmetric" in said.split("\n")[2]


@pytest.mark.parametrize("seed", range(20))
def test_the_factor_sees_every_single_entry_that_has_no_partner(seed):
    rng = np.random.default_rng(seed)
    dense = rng.random((30, 30)) < 0.1
    dense |= dense.T
    np.fill_diagonal(dense, rng.random(30) < 0.5)
    i, j = rng.choice(30, 2, replace=False)
    for matrix in (dense, dense ^ (np.arange(900).reshape(30, 30) == 30 * i + j)):
        A = sp.csr_array(matrix.astype(np.float64))
        core = Cholesky(A.indptr.astype(np.int64), A.indices.astype(np.int32), np.inf, 1)
        assert core.symmetric == np.array_equal(matrix, matrix.T)
        assert core.feasible == core.symmetric
    with pytest.raises(ValueError, match="symmetric"):
        SparseCholesky(A)


def test_the_core_of_the_factor_checks_what_it_indexes_with():
    indptr, columns = np.array([0, 1, 2]), np.array([0, 1], dtype=np.int32)
    for pointers, indices in (([0, 2, 1], columns), ([0, 1, 3], columns), ([1, 1, 2], columns), ([0, 1, 2], [0, 2]),
                              ([0, 1, 2], [-1, 1]), ([0, 2, 2], [0, 0]), ([0, 2, 2], [1, 0])):  # fmt: skip
        core = Cholesky(np.array(pointers, dtype=np.int64), np.array(indices, dtype=np.int32), np.inf, 1)
        assert not core.symmetric
        with pytest.raises(ValueError, match="feasible"):
            core.factor(np.ones(2), 0.0, None, 1)
        with pytest.raises(ValueError, match="factor"):
            core.solve(np.ones((2, 1)), 1)
    with pytest.raises(ValueError, match="indptr"):
        Cholesky(np.empty(0, dtype=np.int64), columns, np.inf, 1)
    core = Cholesky(indptr.astype(np.int64), columns, np.inf, 1)
    core.factor(np.ones(2), 0.0, None, 1)
    with pytest.raises(ValueError, match="2 rows"):
        core.solve(np.ones((3, 1)), 1)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_laplacian_sees_every_asymmetry(seed, index, dtype):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 60))
    dense = np.where(rng.random((n, n)) < 0.3, rng.random((n, n)), 0).astype(dtype)
    dense = np.maximum(dense, dense.T)
    laplacian(sp.csr_array(dense))
    i, j = rng.choice(n, 2, replace=False)
    dense[i, j] = 0 if dense[i, j] and seed % 2 else dense[i, j] + dtype(0.01)
    W = sp.csr_array(dense)
    W.indices, W.indptr = W.indices.astype(index), W.indptr.astype(index)
    with pytest.raises(ValueError, match="W must be symmetric"):
        laplacian(W)


def test_an_asymmetry_within_rounding_is_evened_out_for_the_multilevel_solver():
    rng = np.random.default_rng(0)
    W = knn_graph(rng.standard_normal((3000, 2)), 8)
    lone = sp.csr_array(([1e-14] * 3, ([5, 700, 2999], [2500, 9, 1])), shape=W.shape)
    values, _, _, _ = laplacian_eigenvectors(sp.csr_array(W + lone), 3)
    assert np.allclose(values, laplacian_eigenvectors(W, 3)[0], rtol=1e-6)


def test_valid_graphs_of_any_format_still_work(graph):
    X = np.random.default_rng(1).standard_normal((40, 3))
    y = np.where(np.arange(40) < 10, np.arange(40) % 2, -1)
    expected = GFHF(graph=graph).fit(X, y).scores_
    for kind in FORMATS:
        other = graph.asformat(kind)
        assert np.array_equal(GFHF(graph=other).fit(X, y).scores_, expected)
        assert n_components(other) == n_components(graph)
        assert np.array_equal(shortest_paths(other), shortest_paths(graph))
    for model in (LGC(graph=graph), LapRLS(graph=graph)):
        model.fit(X, y)
    L = laplacian(graph)[0]
    LGRM(local=L).fit(X)
    LaplacianEigenmaps(affinity="precomputed").fit(connect_components(graph, X))
    smallest_eigenvectors(LowRankSum(L, np.ones((40, 1)), np.ones(1)), 2)
    assert mean_sq_distance(sp.coo_array(X)) == pytest.approx(mean_sq_distance(X))
    W = abs(graph)
    spd_solver(sp.csr_array(L + sp.eye_array(40)))(np.ones((40, 1)))
    grounded_solution(W, np.ones(40), np.ones((40, 1)))
