"""How far an embedding of new points is from what it should be."""

from __future__ import annotations

from typing import Any

import numpy as np

from manifast._validation import Array, as_matrix

__all__ = ["alignment_error", "embedding_error", "misclassification_rate"]


def embedding_error(ref_train: Any, ref_test: Any, train: Any, test: Any) -> float:
    """How much the embedding of test rows moves when they are new instead of trained on (LGRM, Fig. 5).

    A similarity (rotation, scale, shift) is fitted from `train` to `ref_train`, the same rows in both embeddings, and
    applied to `test`; the result is the mean squared distance to `ref_test`, divided by the mean squared norm of
    `ref_test` about the centre of `ref_train`. It measures stability, not quality.

    Parameters
    ----------
    ref_train, ref_test : arrays of shape (n, d) and (m, d)
        Embedding of all rows together.
    train, test : arrays of shape (n, d) and (m, d)
        Embedding of the training rows alone, and what its map makes of the test rows.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from manifast.metrics import embedding_error
    >>> Y = np.random.default_rng(0).standard_normal((30, 2))
    >>> turned = 3 * Y @ [[0, 1], [-1, 0]] + 5
    >>> embedding_error(Y[:20], Y[20:], turned[:20], turned[20:]) < 1e-25
    True
    """
    reference, moved = as_matrix(ref_train, "ref_train", dtype=np.float64), as_matrix(train, "train", dtype=np.float64)
    new_reference = as_matrix(ref_test, "ref_test", dtype=np.float64, columns=reference.shape[1])
    new_moved = as_matrix(test, "test", dtype=np.float64, columns=moved.shape[1])
    _same_shape(reference, moved, ("ref_train", "train"))
    _same_shape(new_reference, new_moved, ("ref_test", "test"))
    rotation, scale = _similarity(moved - moved.mean(axis=0), reference - reference.mean(axis=0), True)
    target = new_reference - reference.mean(axis=0)
    placed = scale * (new_moved - moved.mean(axis=0)) @ rotation
    return float(np.square(placed - target).sum() / np.square(target).sum())


def alignment_error(Y: Any, Y_batch: Any, squared: bool = True, scale: bool = True) -> float:
    """What remains between two embeddings of the same rows after the best similarity (SPARSE, sec. 4.3).

    Parameters
    ----------
    Y : array of shape (n, d)
        Moved onto `Y_batch`.
    Y_batch : array of shape (n, d)
    squared : bool, default True
        The squared Frobenius norm of the difference, as in the paper's table, or its root.
    scale : bool, default True
        Fit a scale beside rotation and shift.

    Returns
    -------
    float
        Relative to the (squared) Frobenius norm of the centred `Y_batch`.

    Examples
    --------
    >>> from manifast.metrics import alignment_error
    >>> round(alignment_error([[0.0], [1.0], [2.0]], [[0.0], [2.0], [4.0]]), 12)
    0.0
    """
    moved, target = as_matrix(Y, "Y", dtype=np.float64), as_matrix(Y_batch, "Y_batch", dtype=np.float64)
    _same_shape(target, moved, ("Y_batch", "Y"))
    moved, target = moved - moved.mean(axis=0), target - target.mean(axis=0)
    rotation, factor = _similarity(moved, target, scale)
    error = np.square(factor * moved @ rotation - target).sum() / np.square(target).sum()
    return float(error if squared else np.sqrt(error))


def misclassification_rate(y_true: Any, y_pred: Any) -> float:
    """Share of labels that differ.

    Examples
    --------
    >>> from manifast.metrics import misclassification_rate
    >>> misclassification_rate([0, 1, 1, 0], [0, 1, 0, 0])
    0.25
    """
    truth, guess = np.asarray(y_true), np.asarray(y_pred)
    if truth.ndim != 1 or truth.shape != guess.shape or not len(truth):
        raise ValueError(f"y_pred must have the shape of y_true, ({len(truth)},). Got {guess.shape} instead.")
    return float(np.mean(truth != guess))


def _similarity(moved: Array, target: Array, scale: bool) -> tuple[Array, float]:
    """Orthogonal R and factor c that minimise |c · moved R - target| for centred rows (Procrustes)."""
    left, values, right = np.linalg.svd(moved.T @ target)
    size = np.square(moved).sum()
    return left @ right, float(values.sum() / size) if scale and size > 0 else 1.0


def _same_shape(first: Array, second: Array, names: tuple[str, str]) -> None:
    if first.shape != second.shape:
        raise ValueError(f"{names[1]} must have the shape of {names[0]}, {first.shape}. Got {second.shape} instead.")
