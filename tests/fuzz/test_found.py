"""What the campaign found, each as a small call that once broke a promise."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from manifast import LDE, LPP, NSSE, SDACV, SDECV, LaplacianEigenmaps, LapRLSCV, OutOfSample, RBFDiscriminant
from manifast.datasets import load_images
from manifast.embeddings import ClassicalMDS
from manifast.extensions import KernelRidge, LandmarkIsomap, Linear
from manifast.graphs import radius_graph
from manifast.kernels import gaussian, l1_code, rbf_apply
from manifast.metrics import embedding_error
from manifast.model_selection import LabeledRows, compare
from manifast.scale import sample_rows, transform_to
from manifast.spectral import LowRankSum, fix_signs, smallest_eigenvectors
from manifast.theory import category_conditions, covering_number, inverse_growth

pytestmark = pytest.mark.filterwarnings("ignore")  # NumPy's own, of overflows that are dealt with
RNG = np.random.default_rng(0)
X = RNG.standard_normal((20, 3))
Y = RNG.standard_normal((20, 2))
LABELS = np.arange(20) % 2


def lying():
    """A sparse matrix whose column indices are out of range."""
    S = sp.csr_array(np.eye(4))
    S.indices[0] = 2**30
    return S


def test_a_sparse_matrix_that_lies_is_refused_by_theory():
    with pytest.raises(ValueError, match="L_categories must be a valid CSR matrix"):
        category_conditions(np.eye(4), lying(), 1.0)


@pytest.mark.parametrize("sigma", [1e-200, 5e-324, 1e-160, 1e200])
def test_a_row_of_a_gaussian_kernel_does_not_depend_on_the_others(sigma):
    rows = np.array([[1e300, 0.0], [0.0, 0.0], [sigma, 0.0], [1e300, 0.0], [-1e300, sigma], [1e-150, 2.0]])
    whole = gaussian(rows, sigma=sigma)
    for i in range(len(rows)):
        assert_array_equal(gaussian(rows[i : i + 1], rows, sigma=sigma)[0], whole[i])
        for j in range(len(rows)):
            assert_array_equal(gaussian(rows[i : i + 1], rows[j : j + 1], sigma=sigma)[0, 0], whole[i, j])
    squares = np.square((rows[:, None].astype(np.longdouble) - rows) / np.longdouble(sigma)).sum(axis=2)
    assert_allclose(whole, np.exp(-squares), rtol=1e-13, atol=1e-300)
    coef = RNG.standard_normal((len(rows), 2))
    sums = rbf_apply(rows, rows, coef, sigma=sigma)
    for i in range(len(rows)):
        assert_array_equal(rbf_apply(rows[i : i + 1], rows, coef, sigma=sigma)[0], sums[i])


def test_residuals_beyond_the_range_are_refused():
    with pytest.raises(ValueError, match="squares in the range"):
        l1_code(np.full((1, 2), 1.7e308), [[4e8, -1e9]], lam=0.002, tol=1e300)


def test_a_matrix_that_is_not_finite_has_no_eigenvectors():
    with pytest.raises(ValueError, match="must be finite"):
        smallest_eigenvectors(np.full((3, 3), np.nan), 1, check=False)
    with pytest.raises(ValueError, match="finite"):
        smallest_eigenvectors(LowRankSum(sp.csr_array(np.eye(3)), np.full((3, 1), np.inf), np.ones(1)), 1)


def test_parts_of_a_sum_must_fit():
    S = sp.csr_array(np.eye(3))
    with pytest.raises(ValueError, match=r"A\.sparse must be a sparse matrix"):
        smallest_eigenvectors(LowRankSum(np.eye(3), np.ones((3, 1)), np.ones(1)), 1)
    with pytest.raises(ValueError, match=r"A\.factor must have 3 rows"):
        smallest_eigenvectors(LowRankSum(S, np.ones((3, 1)), np.ones(2)), 1)


@pytest.mark.parametrize("option", [{"tol": 10**400}, {"max_iter": 1.5}, {"null": 10**400}, {"tol": "x"}])
def test_options_of_eigenvectors_are_checked(option):
    with pytest.raises(ValueError, match=next(iter(option))):
        smallest_eigenvectors(np.eye(4), 1, **option)


def test_signs_of_lists_of_no_rows_and_of_nan():
    assert_array_equal(fix_signs([[-1.0], [0.5]]), [[1.0], [-0.5]])
    assert fix_signs(np.zeros((0, 2))).shape == (0, 2)
    with pytest.raises(ValueError, match="finite"):
        fix_signs(np.array([[np.nan]]))


@pytest.mark.parametrize("scale", [1.0, 1e200, 1e-200])
def test_embedding_error_at_any_scale(scale):
    moved = Y @ [[0.0, 1.0], [-1.0, 0.0]] + 0.1 * X[:, :2]
    expected = embedding_error(Y[:15], Y[15:], moved[:15], moved[15:])
    assert_allclose(embedding_error(scale * Y[:15], scale * Y[15:], moved[:15], moved[15:]), expected, rtol=1e-10)


def test_embedding_error_without_a_row_away_from_the_centre():
    with pytest.raises(ValueError, match="ref_test must have a row"):
        embedding_error(np.zeros((3, 1)), np.zeros((2, 1)), np.ones((3, 1)), np.ones((2, 1)))


@pytest.mark.parametrize("order", ["<", ">"])
def test_float32_of_either_byte_order_stays_float32(order):
    model = LPP().fit(X)
    assert model.transform(X.astype(f"{order}f4")).dtype == np.float32
    assert_array_equal(model.transform(X.astype(f"{order}f4")), model.transform(X.astype(np.float32)))


def test_times_are_no_numbers():
    with pytest.raises(ValueError, match="real numbers"):
        LPP().fit(np.arange(40).reshape(20, 2).astype("datetime64[s]"))


def test_images_beyond_float32_are_refused():
    model = LaplacianEigenmaps(beta=1e-4, extension="sparse", n_neighbors=3).fit(10 * X)
    model.extension_.map_.images[:] = 1e200
    assert np.isfinite(model.transform(X)).all()
    with pytest.raises(ValueError, match="range of float32"):
        model.transform(X.astype(np.float32))


def test_an_embedding_beyond_float32_is_refused():
    with pytest.raises(ValueError, match="range of float32"):
        LDE(kernel="poly").fit((X + 1e10).astype(np.float32), LABELS)


@pytest.mark.parametrize("extension", [LandmarkIsomap(n_neighbors=5), Linear(), KernelRidge()])
def test_maps_of_numbers_whose_squares_leave_the_range(extension):
    """A finite map or a sentence, and nothing half fitted."""
    for rows, images in ((X * 1e307, Y), (X, Y * 1e307)):
        try:
            extension.fit(rows, images)
        except ValueError as error:
            assert "squares in the range" in str(error)
            assert not hasattr(extension, "map_")
        else:
            assert np.isfinite(extension.predict(rows)).all()


@pytest.mark.parametrize("scale", [1e308, 1e-300])
def test_nsse_of_huge_and_tiny_rows(scale):
    model = NSSE().fit(np.clip(X, -1, 1) * scale, LABELS)
    assert 0 < model.sigma_ < np.inf
    assert np.isfinite(model.embedding_).all()


@pytest.mark.parametrize("sigma", [1e-200, 1e200])
def test_nsse_of_widths_whose_squares_leave_the_range(sigma):
    with pytest.raises(ValueError, match="sigma"):
        NSSE(sigma=sigma).fit(X, LABELS)


def test_masked_blocks_are_refused():
    blocks = iter([np.ma.masked_array(X, mask=np.eye(20, 3, dtype=bool))])
    with pytest.raises(ValueError, match="masked"):
        sample_rows(blocks, 3)


def test_a_metric_within_classes_of_rows_whose_squares_vanish():
    rows = 1e-170 * np.random.default_rng(1).standard_normal((10, 33))
    rows[0, 0] = 1.0
    model = RBFDiscriminant(metric="within").fit(rows, [1, 1, 1, 0, 2, 2, 0, 0, 1, 2])
    assert np.isfinite(model.decision_function(rows)).all()


def test_widths_of_other_rows_are_refused():
    with pytest.raises(ValueError, match="beta must be"):
        radius_graph(X, 2.0, beta=np.array([1.0, 2.0]))


def test_counts_of_a_narrow_dtype():
    model = LaplacianEigenmaps(n_neighbors=np.int8(4)).fit(X)
    assert_array_equal(model.transform(X), LaplacianEigenmaps(n_neighbors=4).fit(X).transform(X))


def test_a_ridge_beyond_the_range():
    with pytest.raises(ValueError, match="ridge"):
        LPP(alpha=2e4, beta=2.4e-3, n_neighbors=8).fit(np.round(2 * np.random.default_rng(0).standard_normal((22, 8))))


def test_a_width_that_is_no_double():
    with pytest.raises(ValueError, match="beta"):
        LPP(beta=10**400).fit(1e200 * X)


def test_eigenvectors_of_subnormal_numbers():
    values, _ = smallest_eigenvectors(np.diag([1.0, 2.0, 3.0]) * 5e-324, 1)
    assert 0 <= values[0] <= 1e-322


def test_a_comparison_of_no_methods():
    with pytest.raises(ValueError, match="methods"):
        compare(X, LABELS, {})


def test_a_radius_that_vanishes_beside_the_rows_ends():
    assert_array_equal(covering_number(1e300 * X, LABELS, 1e-300, unseen=False), [10, 10])


def test_growth_of_rows_whose_squares_leave_the_range():
    with pytest.raises(ValueError, match="X must be scaled"):
        inverse_growth(1e200 * X)


def test_rows_of_objects_are_not_written_to_a_file(tmp_path):
    with pytest.raises(ValueError, match="references to objects"):
        transform_to(LPP().fit(X), X.astype(object), tmp_path / "images.npy")


def test_a_single_value_has_no_rows():
    with pytest.raises(ValueError, match="X must have rows"):
        LabeledRows(RBFDiscriminant()).fit(np.float64(1.0), [0, 1])


def test_an_infinite_number_of_landmarks():
    with pytest.raises(ValueError, match="landmarks"):
        OutOfSample(ClassicalMDS(), landmarks=float("inf")).fit(X)


@pytest.mark.parametrize("model", [SDACV(), SDECV()], ids=["SDACV", "SDECV"])
def test_a_search_over_weights_goes_on_where_all_rows_are_copies(model):
    copies = np.ones((20, 3))
    assert np.isfinite(model.fit(copies, LABELS).transform(copies)).all()


@pytest.mark.parametrize("seed", range(5))
def test_a_search_over_weights_goes_on_where_a_ridge_of_1_is_lost_in_rounding(seed):
    rows = (1e9 * np.random.default_rng(seed).standard_normal((38, 5))).astype(np.float32)
    labels = np.arange(38) % 3
    assert LapRLSCV(9, 6e5, cv=2, n_repeats=1).fit(rows, labels).predict(rows).shape == (38,)


@pytest.mark.parametrize("name", ["set.npz", "set.mat", "set/0/a.png"])
def test_a_damaged_file_of_images_is_refused_in_words(tmp_path, name):
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    if name.endswith("npz"):
        np.savez(tmp_path / name, images=np.zeros((2, 3, 3)))
        whole = bytearray((tmp_path / name).read_bytes())
        whole[4:6] = whole[-60:-58] = b"\xff\xff"
    (tmp_path / name).write_bytes(bytes(whole) if name.endswith("npz") else b"\x89PNG" + bytes(200))
    with pytest.raises(ValueError, match="must be a whole file"):
        load_images("set", tmp_path)


@pytest.mark.parametrize("images", [np.ones((2, 3, 3)) + 1j, np.zeros((2, 0, 3)), np.full((2, 2, 2), "a")])
def test_images_that_are_no_numbers_are_refused(tmp_path, images):
    np.savez(tmp_path / "set.npz", images=images)
    with pytest.raises(ValueError, match="must be real numbers, at least one pixel each"):
        load_images("set", tmp_path, size=2)


def test_drawing_refuses_in_words():
    plotting = pytest.importorskip("manifast.plotting")
    pytest.importorskip("matplotlib", reason="draws")
    for wrong in (10**400, float("inf"), "2", 0):
        with pytest.raises(ValueError, match="n_components must be"):
            plotting.plot_spectrum([1.0, 2.0, 3.0], n_components=wrong)
        with pytest.raises(ValueError, match="components must be"):
            plotting.plot_embedding(X, components=[0, wrong] if wrong else 0)
    with pytest.raises(ValueError, match="values must hold"):
        plotting.plot_spectrum([10**400, 1.0])
    for key, wrong in (("error", 10**400), ("standard_error", -1.0), ("fit_seconds", "soon")):
        with pytest.raises(ValueError, match=f"{key} must be"):
            plotting.plot_comparison([{"name": "one", "error": 0.1} | {key: wrong}])
    with pytest.raises(ValueError, match="report must be"):
        plotting.plot_report(3)
