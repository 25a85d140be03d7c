"""Labels of rows: classes of any kind in order, the class of every row, and what a method asks of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from manifast._validation import Array

UNLABELLED = -1


@dataclass(frozen=True)
class Labels:
    """Classes in order, and the number of each row's class there, -1 for rows without a label."""

    classes: Array
    codes: Array

    @property
    def count(self) -> int:
        """How many classes there are."""
        return len(self.classes)

    @property
    def sizes(self) -> Array:
        """Rows of each class."""
        return np.bincount(self.codes[self.codes >= 0], minlength=self.count)

    @property
    def labelled(self) -> Array:
        """Rows that have a label, ascending."""
        return np.flatnonzero(self.codes >= 0)

    @property
    def members(self) -> list[Array]:
        """Rows of each class, ascending."""
        order = np.argsort(self.codes, kind="stable")
        return np.split(order, np.searchsorted(self.codes[order], np.arange(self.count + 1)))[1:-1]

    @property
    def indicators(self) -> Array:
        """One-hot labels (n, classes); rows without a label are zero."""
        hot: Array = self.codes[:, None] == np.arange(self.count)
        return hot.astype(np.float64)


def read_labels(
    estimator: Any, y: Any, n: int, *, unlabelled: bool = False, least_classes: int = 2, least_members: int = 1
) -> Labels:
    """Labels of n rows, checked; with `unlabelled`, -1 stands for none, also in an array of strings and -1.

    Messages name the estimator, or what else asks, given by its name.
    """
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import column_or_1d

    name = estimator if isinstance(estimator, str) else type(estimator).__name__
    if y is None:
        raise ValueError(f"{name} requires y to be passed, but the target y is None.")
    if unlabelled and isinstance(y, list | tuple) and any(isinstance(label, str) for label in y):
        y = np.array(y, dtype=object)  # NumPy would turn -1 into a string
    y = column_or_1d(y, warn=True)
    if y.shape[0] != n:
        raise ValueError(f"y must hold one label per row of X, {n}. Got {y.shape[0]} instead.")
    if y.dtype.kind in "fc" and not np.isfinite(y).all():
        raise ValueError("y must not hold NaN or infinity. Got a label that is not finite.")
    with_label = np.ones(n, dtype=bool)
    if unlabelled:
        with_label = np.array([label != UNLABELLED for label in y.tolist()], dtype=bool)
        if not with_label.any():
            raise ValueError("y must hold at least one label. Got only -1, which means unlabelled.")
    known = y[with_label]
    if known.dtype.kind == "O":
        known = _of_one_kind(known.tolist())
    check_classification_targets(known)
    classes, inside = np.unique(known, return_inverse=True)
    if len(classes) < least_classes:
        raise ValueError(
            f"{name} needs at least {least_classes} classes: y must hold more than one class. "
            f"Got {len(classes)} class instead."
        )
    codes = np.full(n, -1, dtype=np.int64)
    codes[with_label] = inside.reshape(-1)
    labels = Labels(classes, codes)
    small = np.flatnonzero(labels.sizes < least_members)
    if len(small):
        raise ValueError(
            f"every class must have at least {least_members} members for {name}. "
            f"Got class {classes[small[0]]!r} with {labels.sizes[small[0]]}."
        )
    return labels


def _of_one_kind(labels: list[Any]) -> Array:
    """Labels of an object array in their own dtype: strings beside -1 are strings again."""
    missing = [label for label in labels if label is None or label != label]
    if missing:
        raise ValueError(f"y must not hold missing labels. Got {missing[0]!r}: drop or label those rows.")
    kinds = {isinstance(label, str) for label in labels}
    if len(kinds) > 1:
        raise ValueError("y must hold labels of one kind. Got strings and others: use str(label) for all.")
    return np.array(labels)
