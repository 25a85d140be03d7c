"""Dense factors in blocks of our own, against NumPy; and that large ones neither crash nor hold up Ctrl-C."""

from __future__ import annotations

import signal
import time
from threading import Barrier, get_ident

import numpy as np
import pytest
import scipy.linalg as la
import scipy.sparse as sp
from helpers import random_array
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse.linalg import aslinearoperator

from manifast import LPP, Isomap, RBFDiscriminant, _threads
from manifast._linalg import dense as _dense
from manifast.extensions import KernelRidge
from manifast.spectral import smallest_eigenvectors

SIZES = [1, 5, 16, 17, 32, 75]
BLOCKS = [16, None]  # our own blocks, or LAPACK at once


def definite(n, dtype, order):
    G = np.random.default_rng(n).standard_normal((n, n + 3))
    return np.array(G @ G.T / n + np.eye(n), dtype=dtype, order=order)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", SIZES)
class TestAgainstNumpy:
    @pytest.mark.parametrize("block", BLOCKS)
    def test_factor(self, n, dtype, order, block):
        A = definite(n, dtype, order)
        L = A.copy(order="K")
        L[np.triu_indices(n, 1)] = np.nan  # is not read
        assert _dense.factor(L, block=block)
        assert L.dtype == dtype
        assert np.isnan(L[np.triu_indices(n, 1)]).all()
        assert_allclose(np.tril(L), np.linalg.cholesky(A), rtol=0, atol=200 * np.finfo(dtype).eps)

    @pytest.mark.parametrize("block", BLOCKS)
    def test_solves(self, n, dtype, order, block):
        A, B = definite(n, dtype, order), np.random.default_rng(1).standard_normal((n, 3)).astype(dtype)
        before = B.copy()
        L = A.copy(order="K")
        _dense.factor(L, block=block)
        tolerance = {"rtol": 0, "atol": 500 * np.finfo(dtype).eps}
        triangle = np.tril(L).astype(np.float64)
        found = _dense.solve(L, B, block=block)
        assert found.dtype == dtype
        assert_allclose(found, np.linalg.solve(A.astype(np.float64), B), **tolerance)
        assert_allclose(
            _dense.solve_triangle(L, B, block=16), la.solve_triangular(triangle, B, lower=True), **tolerance
        )
        turned = _dense.solve_triangle(L, B, transposed=True, block=16)
        assert_allclose(turned, la.solve_triangular(triangle.T, B), **tolerance)
        assert_array_equal(B, before)

    @pytest.mark.parametrize("block", [16, None])
    def test_inverses(self, n, dtype, order, block):
        A = definite(n, dtype, order)
        L = A.copy(order="K")
        _dense.factor(L, block=16)
        tolerance = {"rtol": 0, "atol": 500 * np.finfo(dtype).eps}
        triangle = L.copy(order="K")
        _dense.invert_triangle(triangle, block=block)
        assert_allclose(triangle, np.linalg.inv(np.tril(L).astype(np.float64)), **tolerance)
        found = _dense.inverse(L, block=block)
        assert found is L
        assert_array_equal(found, found.T)
        assert_allclose(found, np.linalg.inv(A.astype(np.float64)), **tolerance)

    def test_a_general_matrix(self, n, dtype, order):
        rng = np.random.default_rng(n)
        A = np.array(rng.standard_normal((n, n)) + 2 * np.eye(n)[::-1], dtype=dtype, order=order)
        B = rng.standard_normal((n, 2)).astype(dtype)
        expected = np.linalg.solve(A.astype(np.float64), B)
        room = 5000 * np.finfo(dtype).eps * np.abs(expected).max() * np.linalg.cond(A.astype(np.float64))
        assert_allclose(_dense.solve_general(A.copy(order="K"), B, block=16), expected, rtol=0, atol=room)


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("n", SIZES)
def test_what_is_not_definite_is_told(n, block):
    A = definite(n, np.float64, "C")
    for bad in (-1.0, np.nan):
        L = A.copy()
        L[n - 1, n - 1] = bad
        assert not _dense.factor(L, block=block)
        L = A.copy()
        L[0, 0] = bad
        assert not _dense.factor(L, block=block)


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_part_of_a_larger_matrix(order):
    A, B = definite(20, np.float64, order), np.random.default_rng(0).standard_normal((20, 3))
    large = np.full((30, 40), 7.0, order=order)
    large[5:25, 10:30] = A
    part = large[5:25, 10:30]
    assert _dense.factor(part)
    assert_allclose(np.tril(part), np.linalg.cholesky(A), rtol=0, atol=1e-13)
    assert_allclose(_dense.solve(part, B), np.linalg.solve(A, B), rtol=0, atol=1e-13)
    assert_allclose(_dense.solve(part, B[:, :1]), np.linalg.solve(A, B[:, :1]), rtol=0, atol=1e-13)
    part[:] = 7.0
    assert (large == 7.0).all()


def test_a_singular_general_matrix_is_refused():
    A = np.ones((40, 40))
    with pytest.raises(la.LinAlgError, match="singular"):
        _dense.solve_general(A, np.ones((40, 1)), block=16)


def test_no_part_is_larger_than_a_step(monkeypatch):
    monkeypatch.setattr(_dense, "_FLOPS", 1.0)  # one row at a time
    A, B = definite(50, np.float64, "C"), np.ones((50, 4))
    L = A.copy()
    assert _dense.factor(L, block=16)
    assert_allclose(_dense.solve(L, B, block=16), np.linalg.solve(A, B))
    assert_allclose(_dense.inverse(L, block=16), np.linalg.inv(A))
    assert_allclose(_dense.product(A, B), A @ B)
    assert_allclose(_dense.solve_general(A.copy(), B, block=16), np.linalg.solve(A, B))


@pytest.fixture
def two_threads(monkeypatch):
    monkeypatch.setattr(_dense, "_LITTLE", 0.0)
    monkeypatch.setattr(_threads, "available_threads", lambda: 2)


def test_factors_are_made_side_by_side(two_threads):
    matrices = {n: definite(n, np.float64, "F") for n in (3, 7, 30)}
    found = _dense.factored(lambda n: matrices[n].copy(order="F"), [30, 7, 3], 30)
    for n, L in zip([30, 7, 3], found, strict=True):
        assert_array_equal(np.tril(L), np.tril(la.cholesky(matrices[n], lower=True)))
    assert _dense.factored(lambda sign: sign * np.eye(4, order="F"), [1.0, -1.0], 4)[1] is None


def test_parts_run_side_by_side(two_threads):
    together = Barrier(2, timeout=60)
    seen = []

    def work(part):
        together.wait()  # only two threads pass
        seen.append((part.start, part.stop, get_ident()))

    _dense._each(10, 1.0, work)
    assert sorted(part[:2] for part in seen) == [(0, 5), (5, 10)]
    assert len({thread for *_, thread in seen}) == 2


def test_blas_has_its_threads_again_after_parts_that_fail(two_threads):
    def work(part):
        raise FloatingPointError("this part")

    before = [library.num_threads for library in _threads._blas().lib_controllers]
    with pytest.raises(FloatingPointError, match="this part"):
        _dense._each(10, 1.0, work)
    assert [library.num_threads for library in _threads._blas().lib_controllers] == before


def test_nothing_runs_on_after_an_interrupt(two_threads):
    ended = []

    def work(part):
        if part.start == 0:
            signal.raise_signal(signal.SIGINT)
        time.sleep(0.2)
        ended.append(part.start)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            _dense._each(2, 1.0, work)
        assert sorted(ended) == [0, 1]
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("n", SIZES)
def test_factors_on_two_threads(two_threads, n):
    A, B = definite(n, np.float64, "C"), np.random.default_rng(1).standard_normal((n, 7))
    L = A.copy()
    assert _dense.factor(L, block=16)
    assert_allclose(np.tril(L), np.linalg.cholesky(A), rtol=0, atol=1e-13)
    assert_allclose(_dense.solve(L, B, block=16), np.linalg.solve(A, B), rtol=0, atol=1e-12)
    assert_allclose(_dense.inverse(L, block=16), np.linalg.inv(A), rtol=0, atol=1e-12)
    assert_allclose(_dense.product(A, B), A @ B, rtol=0, atol=1e-12)
    assert_allclose(_dense.solve_general(A.copy(), B, block=16), np.linalg.solve(A, B), rtol=0, atol=1e-12)


@pytest.mark.parametrize("order", ["C", "F"])
def test_copies_and_sums_in_parts(monkeypatch, order):
    monkeypatch.setattr(_dense, "_NUMBERS", 1.0)  # one row at a time
    A = np.asarray(np.random.default_rng(0).standard_normal((30, 30)), order=order)
    found = _dense.copied(A)
    assert_array_equal(found, A)
    assert found.flags.f_contiguous == A.flags.f_contiguous
    assert not np.shares_memory(found, A)
    other = random_array(30, 0.2, np.random.default_rng(1)).tocsr()
    other = sp.csr_array(other + other.T)
    for added in (other, other.toarray()):
        found = _dense.copied(A)
        _dense.add(found, added)
        assert_array_equal(found, A + other.toarray())


class TestLowRank:
    @pytest.mark.parametrize("rank", [1, 5, 63, 64, 65, 150])
    @pytest.mark.parametrize("order", ["C", "F"])
    def test_a_matrix_of_that_rank(self, rng, rank, order):
        G = rng.standard_normal((200, rank)) * np.geomspace(1, 1e-3, rank)
        A = np.asarray(G @ G.T, order=order)
        before = A.copy()
        tolerance = 1e-12 * A.diagonal().max()
        factor = _dense.low_rank(A, tolerance, rank)
        assert_array_equal(A, before)
        assert factor.shape == (200, rank)
        assert_allclose(factor @ factor.T, A, rtol=0, atol=2 * tolerance)
        assert _dense.low_rank(A, tolerance, rank - 1) is None

    @pytest.mark.parametrize("width", [0.5, 2.0, 8.0])
    def test_a_smooth_kernel_with_copies(self, rng, width):
        X = rng.standard_normal((120, 3))
        X = np.vstack([X, X[:40]])
        K = np.exp(-((X[:, None] - X) ** 2).sum(-1) / width**2)
        factor = _dense.low_rank(K, 1e-12, len(K))
        assert factor.shape[1] <= 120
        # What is left is positive semidefinite, so its diagonal bounds its entries.
        assert_allclose(factor @ factor.T, K, rtol=0, atol=1e-12 + 200 * np.finfo(float).eps)
        exact = np.linalg.eigvalsh(K)
        assert factor.shape[1] <= np.sum(exact > 1e-16) + 10

    def test_nothing(self):
        assert _dense.low_rank(np.zeros((7, 7)), 0.0, 3).shape == (7, 0)


LARGE = """
import numpy as np
from sklearn.decomposition import PCA
from manifast import OutOfSample
X = np.random.default_rng(0).standard_normal((17000, 5))
model = OutOfSample(PCA(2), 'rbf').fit(X)
print(np.abs(model.transform(X[:500]) - model.embedding_[:500]).max() < 1e-4)
"""


@pytest.mark.heavy
@pytest.mark.process
def test_seventeen_thousand_rows(run_python):
    # OpenBLAS 0.3.31 ends the process from 16,000 rows on, on more than one thread.
    assert run_python(LARGE, timeout=1200, OPENBLAS_NUM_THREADS="2").strip() == "True"


INTERRUPTED = """
import signal, sys, time, warnings
import numpy as np
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job starts with SIGINT ignored
import manifast, manifast.spectral
from manifast._linalg import dense as _dense
# Loaded before: Python ends by the signal, caught or not, that comes while a dataclass is made.
manifast.NSSE, manifast.LGRM, manifast.LFDA, manifast.RBFDiscriminant, manifast.LapRLS
rng = np.random.default_rng(0)
warnings.simplefilter("ignore")
{prepare}
print("ready", flush=True)
try:
    while True:
        {call}
except KeyboardInterrupt:
    print(time.time(), flush=True)
"""
ROWS = "X, y = rng.standard_normal(({n}, 20)), rng.integers(0, 3, {n})"
MATRIX = "A = np.full((9000, 9000), 1e-6); A.flat[::9001] = 1.0"
FEW = ROWS.format(n=4000) + "; few = np.where(rng.random(4000) < 0.1, y, -1)"


@pytest.mark.heavy
@pytest.mark.process
@pytest.mark.parametrize(
    ("prepare", "call"),
    [
        (MATRIX, "_dense.factor(A)"),
        (MATRIX, "_dense.inverse(A)"),
        (ROWS.format(n=2500), "manifast.NSSE(2).fit(X, y)"),
        (ROWS.format(n=5000), "manifast.LGRM().fit(X)"),
        (ROWS.format(n=3000), "manifast.LFDA(kernel='rbf').fit(X, y)"),
        (ROWS.format(n=4000), "manifast.RBFDiscriminant().fit(X, y)"),
        (FEW, "manifast.LapRLS(kernel='rbf').fit(X, few)"),
        ("G = rng.standard_normal((4000, 4000)); A = G + G.T", "manifast.spectral.smallest_eigenvectors(A, 10)"),
    ],
    ids=["factor", "inverse", "NSSE", "LGRM", "LFDA", "RBFDiscriminant", "LapRLS", "eigenvectors"],
)
@pytest.mark.parametrize("wait", [0.5, 1.5, 3.0])
def test_ctrl_c_ends_dense_work_within_a_second(seconds_to_interrupt, prepare, call, wait):
    # The best of three: other processes may hold up the first.
    code = INTERRUPTED.format(prepare=prepare, call=call)
    assert any(seconds_to_interrupt(code, wait) < 1 for _ in range(3))


# Extreme scales and inputs that used to end in other exceptions


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_an_operator_of_extreme_scale(scale):
    A = np.diag(np.append(np.linspace(0.01, 0.1, 10), np.linspace(1, 2, 490)))
    operator = aslinearoperator(A)
    expected = smallest_eigenvectors(operator, 3)[0]
    scaled = smallest_eigenvectors(scale * operator, 3)[0]
    assert_allclose(scaled / scale, expected, rtol=1e-9)


def test_eigenproblems_without_a_sense_are_refused():
    operator, A = aslinearoperator(np.eye(10)), np.diag(np.arange(1.0, 7.0))
    for method in ("dense", "direct", "multilevel"):
        with pytest.raises(ValueError, match=r"method must be 'auto' or 'lanczos' for a LinearOperator\. Got"):
            smallest_eigenvectors(operator, 1, method=method)
    with pytest.raises(ValueError, match=r"A must have at least 1 row\. Got"):
        smallest_eigenvectors(np.empty((0, 0)), 1)
    for null in (np.ones((6, 2)), np.column_stack([np.ones(6), 1e-200 * np.ones(6)])):
        with pytest.raises(ValueError, match=r"null must be linearly independent vectors"):
            smallest_eigenvectors(A, 1, null=null)
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="A must be an operator with finite images"):
        smallest_eigenvectors(aslinearoperator(np.full((10, 10), np.inf)), 1)


@pytest.mark.parametrize("shape", [(15, 20), (20, 15)])
@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_rows_of_zeros_span_nothing(shape, alpha):
    with pytest.raises(ValueError, match=r"n_components must be at most 0, the dimensions that X spans\. Got 2"):
        LPP(alpha=alpha).fit(np.zeros(shape))


def test_a_discriminant_of_the_largest_numbers_predicts(rng):
    y = np.arange(40) % 2
    X = 1.7e308 * np.clip((2 * y - 1)[:, None] + 0.1 * rng.standard_normal((40, 2)), -1, 1)
    with np.errstate(all="ignore"):  # scikit-learn adds up all entries to see whether they are finite
        model = RBFDiscriminant().fit(X, y)
        assert np.isfinite(model.sigma_)
        assert model.score(X, y) == 1.0


def test_eigenvalues_of_isomap_are_in_range_or_none(rng):
    X = rng.standard_normal((60, 3))
    expected = Isomap().fit(X).eigenvalues_
    assert_allclose(Isomap().fit(X * 2.0**320).eigenvalues_, expected * 2.0**640)
    for scale in (1e200, 1e-200):
        model = Isomap().fit(X * scale)
        assert np.isfinite(model.embedding_).all()
        with pytest.raises(AttributeError, match="eigenvalues_ are in squared units of X, which leave the range"):
            _ = model.eigenvalues_


def test_polynomial_kernels_refuse_what_leaves_the_range(rng):
    X = rng.standard_normal((30, 3))
    model = KernelRidge(kernel="poly").fit(X, X[:, :2])
    with pytest.raises(
        ValueError, match=r"X must be rows whose image under the polynomial kernel is finite\. Got row 1"
    ):
        model.predict(np.vstack([X[0], 1e200 * X[1]]))
    with pytest.raises(ValueError, match="degree and coef0 must keep"):
        KernelRidge(kernel="poly").fit(1e120 * X, X[:, :2])
    for kernel in ("poly", "linear"):
        with pytest.raises(ValueError, match="X and Y must have squares in the range of numbers"):
            KernelRidge(kernel=kernel).fit(1e200 * X, X[:, :2])


@pytest.mark.parametrize("n", [50, _dense._WHOLE + 1])
def test_work_on_matrices_side_by_side_keeps_to_one_thread(monkeypatch, n):
    """Small parallel regions side by side would wait for each other on busy cores; large matrices have all threads."""
    monkeypatch.setattr(_threads, "available_threads", lambda: 3)

    def threads_of(item):
        with _threads.kernel_threads(None) as threads:
            return item, threads

    found = _dense.for_each_matrix(threads_of, range(7), n, 1e9)
    assert found == [(item, 1 if n <= _dense._WHOLE else 3) for item in range(7)]
