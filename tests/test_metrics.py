"""Metrics: exact on constructed cases, invariant where they should be."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import orthogonal_procrustes
from scipy.spatial import procrustes

from manifast.metrics import alignment_error, embedding_error, misclassification_rate


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
