"""The linear classifier (4) of THEORY: one hyperplane of largest margin between every two classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from manifast._linalg.nearest_point import widest_slab
from manifast._validation import Array, as_columns
from manifast.theory._rows import labelled_rows
from manifast.theory.margins import centred, pairs_of_classes

__all__ = ["LinearClassifier", "linear_classifier"]


@dataclass(frozen=True)
class LinearClassifier:
    """What `linear_classifier` found.

    `classes` are the labels in ascending order. A row of `pairs` holds the numbers of two classes, the same row of
    `normals` the unit normal of the hyperplane between them, which points to the first, and `offsets` its offset: a
    point z is on the side of the first where (z - center)·normal + offset is positive. `margin` is γ of eq. (1).
    """

    classes: Array
    pairs: Array
    normals: Array
    offsets: Array
    center: Array
    margin: float

    def predict(self, Y: Any) -> Any:
        """Classes of rows of the embedding, as a masked array: rows that no class claims against all others are masked.

        Parameters
        ----------
        Y : array of shape (m, d)

        Returns
        -------
        numpy.ma.MaskedArray of shape (m,)
        """
        rows = as_columns(Y, "Y")
        if rows.shape[1] != self.normals.shape[1]:
            raise ValueError(f"Y must have {self.normals.shape[1]} columns. Got {rows.shape[1]} instead.")
        sides = (rows.astype(np.float64) - self.center) @ self.normals.T + self.offsets
        won = np.zeros((len(rows), len(self.classes)), dtype=np.int64)
        for (k, m), side in zip(self.pairs, sides.T, strict=True):
            won[:, k] += side > 0
            won[:, m] += side < 0
        first = won.argmax(axis=1)
        return np.ma.MaskedArray(self.classes[first], mask=won.max(axis=1) < len(self.classes) - 1)

    def error(self, Y: Any, y: Any) -> float:
        """Share of rows that are not classified correctly; a row that no class claims is not.

        Parameters
        ----------
        Y : array of shape (m, d)
        y : array of m labels

        Returns
        -------
        float
        """
        found, truth = self.predict(Y), np.asarray(y)
        if truth.shape != found.shape:
            raise ValueError(f"y must hold one label per row of Y, {len(found)}. Got shape {truth.shape} instead.")
        return float(1.0 - np.mean((found.data == truth) & ~np.ma.getmaskarray(found)))


def linear_classifier(Y: Any, y: Any) -> LinearClassifier:
    """The linear classifier (4) that Theorems 2, 5 and 8 speak of.

    Between every two classes it puts the hyperplane in the middle of their widest empty slab, see `separation_margin`.
    A row is of class l where it is on the side of l of all hyperplanes of l. There may be no such class.

    Parameters
    ----------
    Y : array of shape (n, d)
        An embedding in which every two classes can be separated.
    y : array of n labels

    Returns
    -------
    LinearClassifier
        With `predict` and `error` for rows of the embedding, such as `model.transform(X_new)`.

    Examples
    --------
    >>> from manifast.theory import linear_classifier
    >>> found = linear_classifier([[0.0], [1.0], [3.0], [8.0]], ["a", "a", "b", "c"])
    >>> found.predict([[1.5], [2.5], [7.0]]).tolist()
    ['a', 'b', 'c']
    >>> found.error([[1.5], [2.5]], ["a", "a"])
    0.5
    """
    Y, labels = labelled_rows("linear_classifier", "Y", Y, y)
    rows, center, exponent = centred(Y)
    pairs, normals, offsets, narrowest = [], [], [], np.inf
    for pair, (A, B) in pairs_of_classes(rows, labels):
        width, normal = widest_slab(A, B)
        if normal is None:
            names = " and ".join(repr(labels.classes[each].item()) for each in pair)
            raise ValueError(f"Y must separate every two classes by a hyperplane. Got none between {names}.")
        pairs.append(pair)
        normals.append(normal)
        offsets.append(-(float((A @ normal).min()) + float((B @ normal).max())) / 2)
        narrowest = min(narrowest, width)
    return LinearClassifier(
        labels.classes,
        np.array(pairs),
        np.array(normals),
        np.ldexp(np.array(offsets), exponent),
        center,
        float(np.ldexp(narrowest, exponent)),
    )
