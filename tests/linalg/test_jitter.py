"""The one ladder of jitters: the smallest that helps, how much it took, and an end where nothing helps."""

import numpy as np
import pytest

from manifast._linalg.dense import factor_jittered, smallest_jitter

EPS = float(np.finfo(float).eps)


@pytest.mark.parametrize("order", ["C", "F"])
def test_definite_matrices_take_none(rng, order):
    A = np.array(rng.standard_normal((30, 30)), order=order)
    A = np.array(A @ A.T + np.eye(30), order=order)
    kept = A.copy()
    triangle, jitter = factor_jittered(A, "A", ridge=0.5)
    assert jitter == 0.0
    np.testing.assert_array_equal(A, kept)
    L = np.tril(triangle)
    np.testing.assert_allclose(L @ L.T, A + 0.5 * np.eye(30), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(("missing", "exponent"), [(0.5, 0), (5.0, 1), (5e6, 7)])
def test_smallest_that_helps(missing, exponent):
    """Of 20 directions one is negative by so many units of rounding."""
    unit = 20 * EPS * 4.0
    A = np.diag(np.r_[np.full(19, 4.0), -missing * unit])
    triangle, jitter = factor_jittered(A, "A")
    assert jitter == unit * 10.0**exponent
    np.testing.assert_allclose(triangle.diagonal() ** 2, A.diagonal() + jitter, rtol=1e-12)


def test_size_is_that_of_the_caller():
    jitter = factor_jittered(np.diag([0.0, 0.0]), "A", size=100.0)[1]
    assert jitter == 2 * EPS * 100.0


def test_an_indefinite_matrix_is_refused_by_its_name():
    with pytest.raises(ValueError, match=r"the kernel must be positive semidefinite\. .*even with 4e-09 added"):
        factor_jittered(np.diag([1.0, -1.0]), "the kernel")


def test_every_step_is_tried_once():
    tried = []
    with pytest.raises(np.linalg.LinAlgError):
        smallest_jitter(lambda jitter: bool(tried.append(jitter)), 2.0, 10, "it")
    assert tried == [0.0, *(20 * EPS * 10.0**e for e in range(8))]
